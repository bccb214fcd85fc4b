"""What the columns of a table may be, by what is in them, where their names do not say it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from neuralviz.maps.filtering import TEXTS_A_LABEL
from neuralviz.reading.headers import TEXT_COLUMNS
from neuralviz.reading.roles import OPTIONAL, ROLES, find_role_columns
from neuralviz.reading.rows import parse_numbers

if TYPE_CHECKING:
    from neuralviz.reading.roles import Kind
    from neuralviz.reading.table import Table

LOOKED_AT = 500  # rows
LEAST_NUMBERS = 0.75  # share of the scores that are numbers; others are missing: “n/a”
_COUNTED = re.compile(r"(?:^|[\W_]|q)(?:id|idx|index|year)\d*$", re.I)  # names of no scores
SCORE_WORDS = ("score", "rating", "similar", "relat", "gold", "stars")


def guess_roles(table: Table) -> tuple[Kind, dict[str, str]]:
    """The kind of data that a table most likely is, and the column of each role that is found.

    Names count first. Else two columns of texts and one of numbers are scored pairs; a column of
    texts and one whose values come again and again are texts with labels.

    Args:
        table: read already; its first rows are looked at.
    """
    likely: tuple[Kind, ...] = (_by_name(table.columns), "pairs", "labels")
    named = find_role_columns(likely[0], table.columns)
    if not _lacking(likely[0], named):
        return likely[0], named
    for kind in likely[1:]:
        columns = guess_columns(kind, table)
        if not _lacking(kind, columns):
            return kind, columns
    return likely[0], named


def guess_columns(kind: Kind, table: Table) -> dict[str, str]:
    """The columns of a kind's roles, by their names or else by what is in them; some have none.

    Args:
        kind: of data.
        table: read already; its first rows are looked at.
    """
    named = find_role_columns(kind, table.columns)
    if not _lacking(kind, named):
        return named
    table = table.first(LOOKED_AT)
    texts, by_role = _texts(table), {}
    if kind == "pairs":
        by_role = dict(zip(("text1", "text2"), texts, strict=False))
        numbers = [
            name
            for name in table.columns
            if not _COUNTED.search(name) and _is_score(name, table.column(name))
        ]
        likely = [name for name in numbers if any(word in name.lower() for word in SCORE_WORDS)]
        if numbers:
            by_role["score"] = (likely or numbers)[-1]
    elif kind in ("labels", "groups") and texts:
        by_role["text"] = _choose_text(table, texts)
        labels = [name for name in table.columns if _is_label(table.column(name))]
        likely = [name for name in labels if name != by_role["text"]]
        if likely:
            by_role[kind.removesuffix("s")] = likely[0]
    free = {role: name for role, name in by_role.items() if name not in named.values()}
    return free | named


def _by_name(columns: Sequence[str]) -> Kind:
    """The kind of which the most is there, and for which there are columns enough."""

    def fits(kind: Kind) -> tuple[bool, int]:
        needed = [role for role in ROLES[kind] if role not in OPTIONAL]
        return len(needed) <= len(columns), len(find_role_columns(kind, columns))

    return max(("pairs", "groups", "labels", "paraphrases"), key=fits)


def _lacking(kind: Kind, columns: dict[str, str]) -> bool:
    return any(role not in columns for role in ROLES[kind] if role not in OPTIONAL)


def _texts(table: Table) -> list[str]:
    """Columns of several words a row, seldom the same ones, in their order."""
    names = []
    for name in table.columns:
        filled = [value for value in table.column(name) if value.strip()]
        n_words = sum(len(value.split()) for value in filled)
        if filled and n_words > 1.5 * len(filled) and 2 * len(set(filled)) >= len(filled):
            names.append(name)
    return names


def _choose_text(table: Table, titles: Sequence[str]) -> str:
    """The longest of some columns, or one with a usual name that is not much shorter."""
    lengths = {title: sum(map(len, table.column(title))) for title in titles}
    longest = max(lengths.values())
    named = [
        title
        for title in titles
        if title.strip().lower() in TEXT_COLUMNS and 2 * lengths[title] >= longest
    ]
    return max(named or titles, key=lambda title: lengths[title])


def _is_score(name: str, column: Sequence[str]) -> bool:
    """Whether these are numbers, some perhaps missing, and not those of rows or classes."""
    filled = [value for value in column if value.strip()]
    finite = [value for value in parse_numbers(filled) if value is not None]
    if len(finite) < LEAST_NUMBERS * len(filled) or len(set(finite)) < 2:
        return False
    is_class = "label" in name.lower() and {0, 1, 2} <= set(finite) <= {-1, 0, 1, 2}  # of NLI
    return not is_class and finite != [finite[0] + place for place in range(len(finite))]


def _is_label(column: Sequence[str]) -> bool:
    """Whether a few values come again and again."""
    filled = [value for value in column if value.strip()]
    return 2 <= len(set(filled)) <= len(filled) / TEXTS_A_LABEL
