"""The rows of a table that have all that is needed of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from neuralviz.errors import TextError
from neuralviz.reading.cells import finite_number
from neuralviz.reading.lines import tidy
from neuralviz.reading.nested import flatten_texts
from neuralviz.reading.table import MAX_CHARACTERS, Table, blank_missing
from neuralviz.words import many, name_lines

_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_WITH_POINT = re.compile(r"\d\.\d")
_PERCENT = re.compile(r"(?<=\d)\s*[%\uff05]$")
_LIKE_NUMBER = re.compile(r"[-+\u2212]?[.,'\s]*\d[\d.,'\s]*+[%\uff05]?")
_MOST_UNREAD = 0.1  # share of numbers that cannot be read, from which a column is refused
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True, eq=False)
class UsableRows:
    """Rows of a table in which nothing is missing.

    Attributes:
        places: of the rows in the table.
        texts: [column][row] tidied, none blank.
        numbers: [column][row] finite.
        notes: those of the table, and sentences on what was left out.
    """

    places: tuple[int, ...]
    texts: tuple[tuple[str, ...], ...]
    numbers: tuple[np.ndarray, ...]
    notes: tuple[str, ...]


def usable_rows(table: Table, texts: Sequence[str], numbers: Sequence[str] = ()) -> UsableRows:
    """The rows that have all of some columns.

    Args:
        table: any; see `blank_missing`.
        texts: columns that may not be blank, and not too long.
        numbers: columns that have to hold numbers.

    Raises:
        TextError: as `check_numbers`.
    """
    table = blank_missing(table, {*texts, *numbers})
    flat = [flatten_texts(name, table.column(name)) for name in texts]
    tidied = [list(map(tidy, values)) for values, _ in flat]
    lengths = np.array([list(map(len, values)) for values in tidied])
    values = np.array([check_numbers(table, name) for name in numbers], dtype=np.float64)
    lacks_text = (lengths == 0).any(axis=0)
    is_long = ~lacks_text & (lengths > MAX_CHARACTERS).any(axis=0)
    lacks_number = np.isnan(values.reshape(len(numbers), len(table))).any(axis=0)
    notes = table.notes + tuple(chain.from_iterable(column_notes for _, column_notes in flat))
    for is_left_out, reason in (
        (lacks_text, f"{_quote_names(texts)} is missing"),
        (is_long, f"{_quote_names(texts)} has more than {MAX_CHARACTERS:,} characters"),
        (lacks_number & ~lacks_text & ~is_long, f"{_quote_names(numbers)} is not a number"),
    ):
        lines = [table.lines[place] for place in np.flatnonzero(is_left_out).tolist()]
        if lines:
            place_names = name_lines(lines, table.unit)
            notes += (f"Skipped {many(len(lines), 'row')}: {reason} ({place_names}).",)
    places = np.flatnonzero(~(lacks_text | is_long | lacks_number)).tolist()
    return UsableRows(
        places=tuple(places),
        texts=tuple(tuple(column[place] for place in places) for column in tidied),
        numbers=tuple(column[places] for column in values),
        notes=notes,
    )


def _quote_names(columns: Sequence[str]) -> str:
    return " or ".join(f"“{column[:40]}”" for column in columns)


def check_numbers(table: Table, title: str) -> list[float | None]:
    """`parse_numbers` a column.

    Raises:
        TextError: a part of its numbers cannot be read, as where decimal signs are mixed.
    """
    column = table.column(title)
    numbers = parse_numbers(column)
    unread_places = [
        place
        for place, (value, number) in enumerate(zip(column, numbers, strict=True))
        if number is None and _LIKE_NUMBER.fullmatch(value.strip())
    ]
    n_numbers = len(numbers) - numbers.count(None) + len(unread_places)
    if unread_places and len(unread_places) >= _MOST_UNREAD * n_numbers:
        first = unread_places[0]
        example = f"“{column[first].strip()[:40]}” ({table.unit} {table.lines[first]:,})"
        raise TextError(
            f"{len(unread_places):,} of {many(n_numbers, 'number')} in the column “{title[:40]}” "
            f"cannot be read, such as {example}. Write all with the same decimal sign, without "
            "thousands separators, and all or none with %."
        )
    return numbers


def parse_numbers(column: Sequence[str]) -> list[float | None]:
    """[row] the numbers of a column as people write them; None where a value is none.

    They may have decimal commas, a true minus sign, or all be percentages, of which 80% is 80. Of
    a column in which only some are, those count of which there are more.

    Args:
        column: the values as text.
    """
    written = [value.strip().replace("\u2212", "-") for value in column]
    bare = [_PERCENT.sub("", value) for value in written]
    numbers = [finite_number(value) for value in _replace_decimal_commas(bare)]
    has_sign = [value != number for value, number in zip(written, bare, strict=True)]
    n_numbers = len(numbers) - numbers.count(None)
    n_shares = sum(
        sign and number is not None for sign, number in zip(has_sign, numbers, strict=True)
    )
    are_shares = 2 * n_shares > n_numbers
    return [
        number if sign == are_shares else None
        for sign, number in zip(has_sign, numbers, strict=True)
    ]


def _replace_decimal_commas(column: Sequence[str]) -> Sequence[str]:
    """A column of numbers whose decimals stand behind commas, with points; others as they are.

    They do where a comma stands in one that it cannot part into thousands, and nowhere a point.
    """
    commas = [bool(_WITH_COMMA.fullmatch(value.strip())) for value in column]
    parts_decimals = any(
        comma and not _THOUSANDS.fullmatch(value.strip())
        for comma, value in zip(commas, column, strict=True)
    )
    if not parts_decimals or any(map(_WITH_POINT.search, column)):
        return column
    return [
        value.replace(",", ".") if comma else value
        for comma, value in zip(commas, column, strict=True)
    ]
