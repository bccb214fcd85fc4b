"""Texts and ids as they are kept: without unreadable characters, and none alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as numbers
from typing import Literal

from neuralviz.errors import LONG_TEXT
from neuralviz.reading.lines import count_unreadable, tidy
from neuralviz.reading.table import MAX_CHARACTERS
from neuralviz.words import many, name_lines


def clean_texts(
    parts: Sequence[str],
    starts: Sequence[int],
    blanks: Literal["line", "row", ""] = "",
    unit: str = "line",
) -> tuple[tuple[str, ...], tuple[str, ...], list[int]]:
    """Texts without blanks and unreadable characters, notes that say so, and which parts they are.

    ``blanks`` says how parts without text are counted: as empty lines, as rows without a text, or,
    empty, not at all. ``starts`` is the line, or whatever ``unit`` is, that each part begins in.
    """
    texts, used, too_long = [], [], []
    unreadable = 0
    for place, part in enumerate(parts):
        text = tidy(part)
        unreadable += count_unreadable(part)
        if len(part) > MAX_CHARACTERS:
            too_long.append(starts[place])
        elif text:
            texts.append(text)
            used.append(place)
    notes = []
    if unreadable:
        notes.append(f"Replaced {many(unreadable, 'unreadable character')} with spaces.")
    left_out = len(parts) - len(texts) - len(too_long)
    if blanks and left_out:
        is_row = blanks == "row"  # whose other fields may hold something
        left_out_parts = (
            f"{many(left_out, 'row')} without a text" if is_row else many(left_out, "empty line")
        )
        notes.append(f"Skipped {left_out_parts}.")
    if too_long:
        notes.append(
            f"Skipped {many(len(too_long), 'text')} with more than {MAX_CHARACTERS:,} "
            f"characters ({name_lines(too_long, unit)})."
        )
    longest = max(range(len(texts)), key=lambda index: len(texts[index]), default=0)
    if texts and len(texts[longest]) > LONG_TEXT:
        notes.append(
            f"The longest text has {len(texts[longest]):,} characters ("
            f"{name_lines([starts[used[longest]]], unit)})."
        )
    return tuple(texts), tuple(notes), used


def make_ids_unique(ids: Sequence[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Ids of which no two are alike and none is missing, with notes; None if all are missing."""
    used_ids = {text_id for text_id in ids if text_id}
    if not used_ids:
        return None, ()
    counts: dict[str, int] = {}  # how often, by id
    free = numbers(1)
    unique: list[str] = []
    repeated = missing = 0
    for text_id in ids:
        if not text_id:
            missing += 1
            text_id = next(text for number in free if (text := str(number)) not in used_ids)
        elif text_id in counts:
            repeated += 1
            first = text_id
            while text_id in used_ids:
                counts[first] += 1
                text_id = f"{first} ({counts[first]})"
        counts.setdefault(text_id, 1)
        used_ids.add(text_id)
        unique.append(text_id)
    notes = []
    if repeated:
        notes.append(f"Added a number in brackets to {many(repeated, 'duplicate ID')}.")
    if missing:
        notes.append(f"Numbered {many(missing, 'text')} without an ID.")
    return tuple(unique), tuple(notes)
