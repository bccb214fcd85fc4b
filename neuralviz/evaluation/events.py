"""What an evaluation tells while it goes on, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.evaluation.broken import Overlap
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.measured import Measured


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a cell is, or the comparison that follows all cells of a data set.

    Attributes:
        data, row: numbers; the row is None for overlaps.
        doing: ``embedding``, ``measuring`` or ``comparing``.
        done, total: texts embedded, of all rows that are embedded at once.
        at_once: numbers of the rows that are embedded in one run, this one among them; empty when
            it is alone.
    """

    __repr__ = short_repr

    data: int
    row: int | None
    doing: str
    done: int = 0
    total: int = 0
    at_once: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Cell:
    """A row of an experiment on a data set, finished.

    Attributes:
        data, row: numbers.
        measured: what was; None when it failed as a whole.
        error: why it failed; empty when it did not.
        n_rose: texts whose loss rose while they were learnt, or ceased to be a number.
        dim: values of a vector.
    """

    __repr__ = short_repr

    data: int
    row: int
    measured: Measured | None
    error: str = ""
    n_rose: int = 0
    dim: int = 0

    @property
    def failed(self) -> bool:
        """Whether any of what was asked for is missing."""
        return self.measured is None or bool(self.measured.failed)


@dataclass(frozen=True, eq=False)
class Compared:
    """What the rows break in common on a data set.

    Attributes:
        data: number.
        rows: numbers, in the order of the matrices.
        overlaps: by measure.
        failed: measure to why there is none.
        left_out: rows that are finished, and not compared, because there are so many.
    """

    __repr__ = short_repr

    data: int
    rows: tuple[int, ...]
    overlaps: Mapping[Measure, Overlap] = field(default_factory=dict)
    failed: Mapping[Measure, str] = field(default_factory=dict)
    left_out: int = 0


Event = Progress | Cell | Compared
