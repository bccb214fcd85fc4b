"""Words for missing values, as pandas reads them, and codes that only look like them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from neuralviz.reading.table import Table
from neuralviz.words import joined, many

MISSING = frozenset(
    """#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan
null|-""".replace("\n", "|").split("|")
)
"""What pandas reads as missing by default, and a dash."""

_LONGEST = max(map(len, MISSING))
_MOST_BLANKS = 8  # around such a word
_ALIKE = 0.8  # share of the other values that are codes of the same form


def blank_missing(table: Table, titles: Collection[str] | None = None) -> Table:
    """A table in which words such as ``NA`` are empty, with notes that count them.

    A word stays where the other values of its column are codes of its form: ``NA`` beside ``DE``
    and ``FR`` is a country.

    Args:
        table: any.
        titles: of the columns to look at; by default all.
    """
    values: list[Sequence[str]] = []
    notes: list[str] = []
    for title, column in zip(table.columns, table.values, strict=True):
        looked_at = column if titles is None or title in titles else ()
        counts = Counter(word for value in looked_at if (word := _missing_word(value)))
        codes = _find_codes(counts, column) if counts else []
        if codes:
            notes.append(
                f"Read {_list_words(codes)} in the column “{title[:40]}” as a value, because the "
                "other values are codes of the same length."
            )
        blank = counts.keys() - set(codes)
        if blank:
            n = sum(counts[word] for word in blank)
            notes.append(
                f"Read {_list_words(sorted(blank))} in the column “{title[:40]}” as missing "
                f"({many(n, 'row')})."
            )
            column = ["" if _missing_word(value) in blank else value for value in column]
        values.append(column)
    return replace(table, values=tuple(values), notes=(*table.notes, *notes)) if notes else table


def _missing_word(value: str) -> str:
    """The word for a missing value that this is; empty for another value."""
    word = value.strip() if len(value) <= _LONGEST + _MOST_BLANKS else ""
    return word if word in MISSING else ""


def _find_codes(words: Iterable[str], column: Sequence[str]) -> list[str]:
    """The words that have the form of the other values of their column."""
    others = {value.strip() for value in column} - MISSING - {""}
    forms = Counter(map(_form, others))
    return [
        word
        for word in sorted(words)
        if word.isalpha() and len(others) > 1 and forms[_form(word)] >= _ALIKE * len(others)
    ]


def _form(word: str) -> tuple[int, bool, bool, bool]:
    """What codes of a kind have in common: length, letters and case."""
    return len(word), word.isalpha(), word.isupper(), word.islower()


def _list_words(words: Sequence[str]) -> str:
    return joined([f"“{word}”" for word in words])
