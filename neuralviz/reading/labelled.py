"""Labelled data in tables: which column is what, and the rows that have all that is needed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from neuralviz.errors import SettingsError, TextError
from neuralviz.reading.cells import finite_number
from neuralviz.reading.columns import flatten_texts, fold_title
from neuralviz.reading.lines import tidy
from neuralviz.reading.table import MAX_CHARACTERS, Table, blank_missing, list_columns
from neuralviz.words import many, name_lines

# --- roles of columns ----------------------------------------------------------------------------

Kind = Literal["pairs", "groups", "labels", "paraphrases"]
ROLES: dict[Kind, Mapping[str, tuple[str, ...]]] = {
    "paraphrases": {
        "original": ("original",),
        "generated": ("generated",),
        "varies": ("varies",),
        "value": ("value",),
        "fixed1": ("fixed1",),
        "fixed2": ("fixed2",),
    },
    "pairs": {
        "text1": ("sentence1", "text1", "a", "sentence A", "question1", "#1 String"),
        "text2": ("sentence2", "text2", "b", "sentence B", "question2", "#2 String"),
        "score": (
            *("score", "similarity", "similarity score", "relatedness score", "is_duplicate"),
            "quality",
        ),
    },
    "groups": {"text": ("text",), "group": ("group",), "role": ("role",)},
    "labels": {"text": ("text",), "label": ("label", "topic", "class", "category")},
}
"""By kind of data, its roles and the names of columns that are taken for them."""

OPTIONAL = ("role",)


def find_roles(
    name: str, columns: Sequence[str], roles: Mapping[str, str]
) -> tuple[Kind, dict[str, str]]:
    """The kind of data that the columns of a file make, and the column of each of its roles.

    ``roles`` are declared, role to column; no column for an optional one that is not to be used.

    Raises:
        TextError: they make none.
        SettingsError: a declared role or its column does not exist.
    """
    _check_roles(name, columns, roles, {role for names in ROLES.values() for role in names})
    lacking: list[list[str]] = []
    for kind, names_by_role in ROLES.items():
        if not set(roles) <= set(names_by_role):
            continue
        chosen = find_role_columns(kind, columns, roles)
        lacking.append([role for role in names_by_role if role not in (*OPTIONAL, *chosen)])
        if not lacking[-1]:
            return kind, chosen
    if roles and lacking:
        raise TextError(
            f"{name} also needs a column for {' or '.join(map(' and '.join, lacking))}. Its "
            f"columns are: {list_columns(columns)}. Assign a column to {lacking[0][0]}."
        )
    raise TextError(
        f"{name} is not a data set. It needs one of these sets of columns: sentence1, sentence2 "
        "and score; text and group; text and label; or original, generated, varies, value, "
        f"fixed1 and fixed2. Its columns are: {list_columns(columns)}. Assign columns to the "
        "roles of one of them; scored pairs have the roles text1, text2 and score."
    )


def _check_roles(
    name: str, columns: Sequence[str], roles: Mapping[str, str], role_names: Collection[str]
) -> None:
    """Refuse roles that there are not, or whose columns a table does not have."""
    assigned = set()
    for role, title in roles.items():
        if role not in role_names:
            raise SettingsError(
                f"Unknown role “{role[:40]}”. Choose from: {', '.join(sorted(role_names))}."
            )
        if not title.strip():
            if role in OPTIONAL:
                continue
            raise SettingsError(f"The role {role} needs a column.")
        column = _find_column(title, columns)
        if column in assigned:
            raise SettingsError(f"The column “{column[:40]}” has two roles. Give it one.")
        assigned.add(column)
        if not column:
            raise SettingsError(
                f"{name} has no column “{title[:40]}” for the role {role}. Its columns are: "
                f"{list_columns(columns)}."
            )


def pair_columns(
    name: str,
    columns: Sequence[str],
    roles: Mapping[str, str],
    needed: Iterable[str] = ("text1", "text2"),
) -> tuple[str, str, str | None]:
    """The columns of two texts and of their score, which may be missing.

    Raises:
        SettingsError: a declared role or its column does not exist, or a needed one has none.
    """
    _check_roles(name, columns, roles, ROLES["pairs"])
    chosen = find_role_columns("pairs", columns, roles)
    for role in needed:
        if role not in chosen:
            raise SettingsError(
                f"{name} needs a column for {role}. Its columns are: {list_columns(columns)}. "
                f"Assign a column to {role}."
            )
    return chosen["text1"], chosen["text2"], chosen.get("score")


def find_role_columns(
    kind: Kind, columns: Sequence[str], roles: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The column of each role of a kind that has one: the declared one, or one by its name."""
    declared = {role: _find_column(title, columns) for role, title in (roles or {}).items()}
    free = [column for column in columns if column not in declared.values()]
    chosen = {
        role: declared[role]
        if role in declared
        else next(filter(None, (_find_column(title, free) for title in names)), "")
        for role, names in ROLES[kind].items()
    }
    return {role: column for role, column in chosen.items() if column}


def _find_column(title: str, columns: Sequence[str]) -> str:
    """The column of a name, or one that differs by capitals or signs; empty if there is none."""
    if title in columns:
        return title
    for fold in (str.casefold, fold_title):
        folded = fold(title.strip())
        column = next((name for name in columns if folded and fold(name.strip()) == folded), "")
        if column:
            return column
    return ""


# --- usable rows ---------------------------------------------------------------------------------

_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_WITH_POINT = re.compile(r"\d\.\d")
_PERCENT = re.compile(r"(?<=\d)\s*[%\uff05]$")
_LIKE_NUMBER = re.compile(r"[-+\u2212]?[.,'\s]*\d[\d.,'\s]*+[%\uff05]?")
_MOST_UNREAD = 0.1  # share of numbers that cannot be read, from which a column is refused
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True, eq=False)
class UsableRows:
    """Rows of a table in which nothing is missing."""

    places: tuple[int, ...]  # of the rows in the table
    texts: tuple[tuple[str, ...], ...]  # [column][row] tidied, none blank
    numbers: tuple[np.ndarray, ...]  # [column][row] finite
    notes: tuple[str, ...]  # those of the table, and sentences on what was left out


def usable_rows(table: Table, texts: Sequence[str], numbers: Sequence[str] = ()) -> UsableRows:
    """The rows that have all of some columns: a text that is not too long, and a number.

    Raises:
        TextError: as `check_numbers`.
    """
    table = blank_missing(table, {*texts, *numbers})
    flat = [flatten_texts(name, table.column(name)) for name in texts]
    tidied = [list(map(tidy, values)) for values, _ in flat]
    lengths = np.array([list(map(len, values)) for values in tidied])
    written = np.array([list(map(len, values)) for values, _ in flat])  # cut cells may end blank
    values = np.array([check_numbers(table, name) for name in numbers], dtype=np.float64)
    lacks_text = (lengths == 0).any(axis=0)
    is_long = ~lacks_text & (written > MAX_CHARACTERS).any(axis=0)
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
    """
    written = [value.strip().replace("\u2212", "-") for value in column]
    bare = [_PERCENT.sub("", value) for value in written]
    numbers = [finite_number(value) for value in _replace_decimal_commas(bare)]
    signed = [
        (number, value != text) for number, value, text in zip(numbers, written, bare, strict=True)
    ]
    shares = [has_sign for number, has_sign in signed if number is not None]
    are_shares = 2 * sum(shares) > len(shares)
    return [number if has_sign == are_shares else None for number, has_sign in signed]


def _replace_decimal_commas(column: Sequence[str]) -> Sequence[str]:
    """A column of numbers whose decimals stand behind commas, with points; others as they are.

    They do where a comma stands in one that it cannot part into thousands, and nowhere a point.
    """
    values = [value.strip() for value in column]
    parts_decimals = any(
        _WITH_COMMA.fullmatch(value) and not _THOUSANDS.fullmatch(value) for value in values
    )
    if not parts_decimals or any(map(_WITH_POINT.search, values)):
        return column
    return [value.replace(",", ".") if _WITH_COMMA.fullmatch(value) else value for value in values]
