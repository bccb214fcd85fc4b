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
    written = [values for values, _ in flat]
    typed = [check_numbers(table, name) for name in numbers]
    used: list[int] = []
    values: list[list[float]] = []
    without_text, without_number, too_long = [], [], []
    for place, line in enumerate(table.lines):
        row = [column[place] for column in typed]
        finite = [value for value in row if value is not None]
        if not all(tidy(column[place]) for column in written):
            without_text.append(line)
        elif max(len(column[place]) for column in written) > MAX_CHARACTERS:
            too_long.append(line)
        elif len(finite) < len(row):
            without_number.append(line)
        else:
            used.append(place)
            values.append(finite)
    notes = table.notes + tuple(chain.from_iterable(column_notes for _, column_notes in flat))
    for lines, reason in (
        (without_text, f"{_quote_names(texts)} is missing"),
        (too_long, f"{_quote_names(texts)} has more than {MAX_CHARACTERS:,} characters"),
        (without_number, f"{_quote_names(numbers)} is not a number"),
    ):
        if lines:
            place_names = name_lines(lines, table.unit)
            notes += (f"Skipped {many(len(lines), 'row')}: {reason} ({place_names}).",)
    return UsableRows(
        places=tuple(used),
        texts=tuple(tuple(tidy(column[place]) for place in used) for column in written),
        numbers=tuple(np.array(values, dtype=np.float64).reshape(len(used), len(numbers)).T),
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
    is_share = [
        written_value != bare_value for written_value, bare_value in zip(written, bare, strict=True)
    ]
    of_numbers = [
        is_percent
        for is_percent, number in zip(is_share, numbers, strict=True)
        if number is not None
    ]
    are_shares = 2 * sum(of_numbers) > len(of_numbers)
    return [
        number if is_percent == are_shares else None
        for is_percent, number in zip(is_share, numbers, strict=True)
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
