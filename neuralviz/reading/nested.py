"""The text in nested values: lists of sentences, messages, and objects with a text in them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from neuralviz.reading.headers import TEXT_COLUMNS
from neuralviz.reading.lines import tidy
from neuralviz.words import many

_KEYS = (*TEXT_COLUMNS, "full_text", "value", "parts", "messages")
_PYTHON = re.compile(r"\[\s*(['\"{[]|\])|\{\s*'")  # how Python prints lists and objects
_NUMPY = re.compile(r"(['\"])\s+(?=['\"])")  # how numpy prints arrays: no commas between texts
_COMMAS = re.compile(r"['\"],\s")
_LONGEST = 200_000  # characters of what Python printed
_PARTS = ("type", "text")  # of formatted texts, whose blanks stand in the parts


def extract_text(value: Any) -> str | None:
    """The text in a value, None where it is not clear which of its parts is one.

    Texts in a list are joined: sentences and words by a blank, messages by the end of a line. Of an
    object, the part that is called like a text is taken; a message is one, with its ``content``.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return tidy(value)
    if isinstance(value, Mapping):
        by_name = {str(key).strip().lower(): key for key in reversed(list(value))}
        texts = [extract_text(value[by_name[key]]) for key in _KEYS if key in by_name]
        return next(filter(None, texts), "" if "" in texts else None)
    if not isinstance(value, list | tuple):
        return None
    if any(isinstance(part, Mapping) for part in value):
        if all(isinstance(part, str) or _is_span(part) for part in value):
            return tidy("".join(part if isinstance(part, str) else part["text"] for part in value))
        parts = [extract_text(part) for part in value if not _is_other_medium(part)]
        return None if None in parts or not parts else "\n".join(filter(None, parts))
    parts = [extract_text(part) for part in value]
    return None if None in parts else " ".join(filter(None, parts))


def flatten_texts(name: str, values: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """The cells of a column of texts, with the text of those that are nested.

    Args:
        name: of the column.
        values: its cells; nested ones are written as JSON, or as Python prints them.

    Returns:
        The cells, and sentences on those that were nested.
    """
    flat: list[str] = []
    n_joined = n_unclear = 0
    for value in values:
        nested = parse_nested(value)
        text = None if nested is None else extract_text(nested)
        n_joined += text is not None
        n_unclear += nested is not None and text is None
        flat.append(value if text is None else text)
    notes: tuple[str, ...] = ()
    if n_joined:
        notes = (
            f"Took the text out of {many(n_joined, 'nested value')} in the column “{name[:40]}”: "
            "lists are joined, and of objects the text or content is read.",
        )
    if n_unclear:
        notes += (
            f"{many(n_unclear, 'value')} in the column “{name[:40]}” "
            f"{'is a list or object' if n_unclear == 1 else 'are lists or objects'} without a "
            "clear text, read as written. Put the texts into a column of their own.",
        )
    return (flat, notes) if n_joined else (values, notes)


def parse_nested(cell: str) -> Any:
    """The list or object that a cell holds, as JSON or as Python prints it; None for another."""
    if not cell.lstrip().startswith(("[", "{")):
        return None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        value = _parse_python(cell.strip())
    return value if isinstance(value, list | dict) else None


def _parse_python(cell: str) -> Any:
    """The value of a list or object as Python or numpy prints it; nothing is run."""
    if len(cell) > _LONGEST or not _PYTHON.match(cell):
        return None
    if _NUMPY.search(cell) and not _COMMAS.search(cell):
        cell = _NUMPY.sub(r"\1, ", cell)
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _is_span(part: Any) -> bool:
    """Whether it is a piece of a formatted text, such as a link."""
    return isinstance(part, Mapping) and set(part) >= set(_PARTS) and isinstance(part["text"], str)


def _is_other_medium(part: Any) -> bool:
    """Whether it is an image or a sound in a message."""
    return isinstance(part, Mapping) and "type" in part and not any(key in part for key in _KEYS)
