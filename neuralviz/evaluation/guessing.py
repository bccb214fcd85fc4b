"""What the columns of a table may be, by what is in them, where their names do not say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neuralviz.evaluation.roles import OPTIONAL, ROLES, columns_of
from neuralviz.maps.categories import TEXTS_A_LABEL
from neuralviz.reading.cells import finite_number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import Kind
    from neuralviz.reading.table import Table

LOOKED_AT = 500  # rows
SCORE_WORDS = ("score", "rating", "similar", "relat", "gold", "stars")


def guess_roles(table: Table) -> tuple[Kind, dict[str, str]]:
    """The kind of data that a table most likely is, and the column of each role that is found.

    Names count first. Else two columns of texts and one of numbers are scored pairs; a column of
    texts and one whose values come again and again are texts with labels.

    Args:
        table: read already; its first rows are looked at.
    """
    kind = _by_name(table.columns)
    named = columns_of(kind, table.columns)
    if not _lacking(kind, named):
        return kind, named
    table = table.first(LOOKED_AT)
    numbers = [name for name in table.columns if _is_score(table.column(name))]
    texts = _texts(table)
    if len(texts) > 1 and numbers:
        likely = [name for name in numbers if any(word in name.lower() for word in SCORE_WORDS)]
        found = {"text1": texts[0], "text2": texts[1], "score": (likely or numbers)[-1]}
        return "pairs", found | columns_of("pairs", table.columns)
    labels = [name for name in table.columns if _is_label(table.column(name))]
    if texts and labels:
        longest = max(texts, key=lambda name: sum(map(len, table.column(name))))
        likely = [name for name in labels if name != longest]
        if likely:
            found = {"text": longest, "label": likely[0]}
            return "labels", found | columns_of("labels", table.columns)
    return kind, named


def _by_name(columns: Sequence[str]) -> Kind:
    """The kind of which the most is there, and for which there are columns enough."""

    def fits(kind: Kind) -> tuple[bool, int]:
        needed = [role for role in ROLES[kind] if role not in OPTIONAL]
        return len(needed) <= len(columns), len(columns_of(kind, columns))

    return max(("pairs", "groups", "labels", "paraphrases"), key=fits)


def _lacking(kind: Kind, found: dict[str, str]) -> bool:
    return any(role not in found for role in ROLES[kind] if role not in OPTIONAL)


def _texts(table: Table) -> list[str]:
    """Columns of several words a row, seldom the same ones, in their order."""
    found = []
    for name in table.columns:
        filled = [value for value in table.column(name) if value.strip()]
        n_words = sum(len(value.split()) for value in filled)
        if filled and n_words > 1.5 * len(filled) and 2 * len(set(filled)) >= len(filled):
            found.append(name)
    return found


def _is_score(column: Sequence[str]) -> bool:
    """Whether these are numbers, and not the numbers of the rows."""
    numbers = [finite_number(value) for value in column if value.strip()]
    finite = [one for one in numbers if one is not None]
    if len(finite) < len(numbers) or len(set(finite)) < 2:
        return False
    return finite != [finite[0] + place for place in range(len(finite))]


def _is_label(column: Sequence[str]) -> bool:
    """Whether a few values come again and again."""
    filled = [value for value in column if value.strip()]
    return 2 <= len(set(filled)) <= len(filled) / TEXTS_A_LABEL
