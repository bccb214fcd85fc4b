"""Which column of a table holds its texts: content decides, and names decide between equals."""

from __future__ import annotations

import re
from collections.abc import Sequence

from neuralviz.errors import TextError
from neuralviz.reading.cells import finite_number
from neuralviz.reading.headers import TEXT_COLUMNS
from neuralviz.reading.nested import extract_text, parse_nested
from neuralviz.reading.table import Table

_LOOKED_AT = 2000  # values of a column, about
_PHRASE = 1.5  # words of a value, on average, from which a column reads as texts
_PLAIN = ("text", "texts", "sentence")  # names that mean texts, even of a single word
_SENTENCE = 3  # words from which it does without doubt
_VECTOR = re.compile(r"\[[-+\d.eE\s,]*+\]")
_WORD = re.compile(r"[^\W\d_]")
_WITHOUT_BLANKS = re.compile("[\u0e00-\u109f\u1780-\u17ff\u2e80-\uabff\uf900-\ufaff]")


def guess_column(file_name: str, table: Table) -> str:
    """The column that reads most as texts; of several, the one with the most usual name.

    Without a usual name, the one with the longest texts. A usual name above numbers, single words
    or a few values that come again and again counts only where no other column has sentences.

    Args:
        file_name: for messages.
        table: with a column.

    Raises:
        TextError: no column has a word in it, nor a usual name; or each is the same in every row.
    """
    samples = dict(zip(table.columns, map(_take_sample, table.values), strict=True))
    rates = {title: rate_texts(values) for title, values in samples.items()}
    by_name = {title.strip().lower(): title for title in reversed(table.columns)}
    named = [by_name[title] for title in TEXT_COLUMNS if title in by_name]
    if not any(rates.values()):
        filled = [title for title in named if samples[title] or not len(table)]
        if filled or not len(table):
            return next(iter(filled), table.columns[0])
        raise _no_texts_error(file_name, table, "no words in")
    texts = [
        title
        for title in named
        if rates[title] >= 2
        or (rates[title] and title.strip().lower() in _PLAIN and not _is_repeated(samples[title]))
    ]
    if texts:
        return texts[0]
    sentences = [title for title in table.columns if rates[title] == 3]
    words = [title for title in named if rates[title]]
    if words and not sentences:
        return words[0]
    best = max(rates.values()) if sentences else 1
    likely = [title for title in table.columns if rates[title] >= best]
    if len(table.columns) > 1 and len(table) > 2:  # the same in every row is a mark of the format
        likely = [title for title in likely if len(set(samples[title])) > 1]
    if not likely:
        raise _no_texts_error(file_name, table, "the same words in every row of")
    return max(likely, key=lambda title: sum(map(len, map(_extract_text, samples[title]))))


def _no_texts_error(file_name: str, table: Table, reason: str) -> TextError:
    listed = ", ".join(f"“{title[:40]}”" for title in table.columns[:12])
    sentence = (
        f"{file_name} has no column with texts: {reason} {listed}. If one of them contains the "
        "texts, rename it to “text”."
    )
    return TextError(" ".join([sentence, *table.notes]))


def rate_texts(values: Sequence[str]) -> int:
    """How much values read as texts.

    Returns:
        0 for those without words, 1 for single words or a few values that come again and again,
        2 for phrases, 3 for sentences.
    """
    filled = [value for value in values if value.strip()]
    n_words = [_count_words(_extract_text(value)) for value in filled]
    if not any(n_words):
        return 0
    mean = sum(n_words) / len(filled)
    if _is_repeated(filled):
        return 1
    return 3 if mean >= _SENTENCE else 2 if mean >= _PHRASE else 1


def _is_repeated(filled: Sequence[str]) -> bool:
    """Whether values come again and again, as labels do."""
    return len(filled) >= 4 and 2 * len(set(filled)) <= len(filled)


def _take_sample(values: Sequence[str]) -> list[str]:
    """Some values from all over a column, with words in them if there are any."""
    step = max(1, len(values) // _LOOKED_AT)
    filled = [value for value in values[::step] if value.strip()]
    return filled or [value for value in values if value.strip()][:_LOOKED_AT]


def _extract_text(value: str) -> str:
    """The text in a value; nothing for lists of numbers and objects without a text."""
    if value.startswith(("[", "{")):
        nested = parse_nested(value)
        if nested is not None:
            return extract_text(nested) or ""
        if _VECTOR.fullmatch(value):
            return ""
    return value


def _count_words(text: str) -> float:
    """Words with a letter, less numbers; in scripts without blanks, two characters are one."""
    n_wide = 0 if text.isascii() else len(_WITHOUT_BLANKS.findall(text))
    parts = text.split()
    n_words = sum(1 for part in parts if _WORD.search(part) and not _is_number(part))
    return max(min(n_words, 1), 2 * n_words - len(parts), n_wide / 2)


def _is_number(word: str) -> bool:
    return word[0] in "+-.0123456789" and finite_number(word) is not None
