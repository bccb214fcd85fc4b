"""What the numbers of an evaluation mean for somebody who has never heard of the measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from neuralviz.embedders.labels import short_labels
from neuralviz.evaluation.data import LabelledData
from neuralviz.evaluation.yardsticks import MOST_DIGITS
from neuralviz.words import counted, joined

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet
    from neuralviz.evaluation.measured import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick

T = TypeVar("T")
Name = Callable[[str], str]

MOST_NAMED = 5  # methods; of more the last are only counted
_LONGEST_NOUN = 30  # characters of a column's name that stands in a sentence


@dataclass(frozen=True)
class Claim:
    """How a yardstick is spoken of.

    Attributes:
        by: the yardstick.
        things: what it was measured on: ``480 texts``.
        noun: what the neighbours vote for: ``form``; marked up already.
        k: neighbours that vote.
        asked: what a probe tells: ``which form a text has``; marked up already.
    """

    by: Yardstick
    things: str
    noun: str = "label"
    k: int = 0
    asked: str = ""

    @classmethod
    def of(cls, by: Yardstick, data: DataSet, measured: Measured, quote: Name) -> Claim:
        """The claim for a yardstick; ``quote`` escapes what is a user's."""
        noun = data.columns.get("label", "label")
        if len(noun) > _LONGEST_NOUN or not noun.replace("_", "").replace(" ", "").isalnum():
            noun = f"“{noun if len(noun) <= _LONGEST_NOUN else noun[:_LONGEST_NOUN] + '…'}”"
        k = measured.neighbours.k if measured.neighbours is not None else 0
        asked = data.asked if isinstance(data, LabelledData) else ""
        noun = quote(noun)
        return cls(by, by.things(data, measured), noun, k, asked or f"which {noun} a text has")

    @property
    def these(self) -> str:
        """``these 480 texts``, ``this 1 text``."""
        return f"{'this' if self.things.startswith('1 ') else 'these'} {self.things}"

    def does(self, degree: str) -> str:
        """What a method does ``best``, ``better``, or ``better than`` another."""
        match self.by.measure:
            case "neighbours":
                return f"finds the {self.noun} of a text {degree}"
            case "probe":
                return f"tells a probe {degree} {self.asked}"
            case "pairs":
                return f"tells similar pairs from dissimilar ones {degree}"
            case "triplets":
                return f"tells {degree} which texts belong together"
            case "paraphrases":
                return f"tells {degree} how similar a paraphrase is meant to be"
            case _:
                return f"follows people's scores {degree}"

    def proof(self, values: str, *, again: bool = False) -> str:
        """What the values are of: ``for 84.0% of these 480 texts, …``.

        Args:
            values: one, or several with the names of their methods.
            again: whether the sentence has named the things already.
        """
        of = "them" if again else self.these
        match self.by.measure:
            case "neighbours":
                return f"for {values} of {of}, {self.voters} for the right {self.noun}"
            case "probe":
                return f"the probe is right for {values} of {of}"
            case "pairs" | "triplets":
                return f"{values} of {of} come out wrong"
            case _:
                return f"{self.by.title} {values}{'' if again else f' on {of}'}"

    def each(self, told: Sequence[tuple[str, str]]) -> str:
        """Names and values to be proved with: ``84.0% (a), 79.4% (b) and 57.3% (c)``."""
        shown, others = _few(told)
        parts = [f"{value} ({name})" for name, value in shown]
        if others:
            parts.append(f"{self._at_most} {others[0][1]} ({len(others)} others)")
        return joined(parts)

    def beside(self, told: Sequence[tuple[str, str]]) -> str:
        """Names and values to follow a proof: ``; b 79.4%, c 57.3%``."""
        shown, others = _few(told)
        parts = [f"{name} {value}" for name, value in shown]
        if others:
            parts.append(f"{len(others)} others {self._at_most} {others[0][1]}")
        return f"; {', '.join(parts)}" if parts else ""

    @property
    def _at_most(self) -> str:
        return "at most" if self.by.sign > 0 else "at least"

    @property
    def followed(self) -> str:
        """What a correlation is with."""
        return "the quality" if self.by.measure == "paraphrases" else "people's scores"

    @property
    def voters(self) -> str:
        """``the ten nearest texts vote``."""
        if self.k == 1:
            return "the nearest text votes"
        return f"the {counted(self.k)} nearest texts vote"


def spoken_by(results: Results, name: Name) -> Name:
    """``name`` for the methods of results as they are said, as of `short_labels`."""
    labels = [row.label for row in results.rows]
    short = dict(zip(labels, short_labels(labels), strict=True))
    return lambda label: name(short[label])


def listed(names: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``, ``a, b, c, d and 2 others``."""
    shown, others = _few(names)
    return joined([*shown, *([f"{len(others)} others"] if others else [])], last)


def _few(methods: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Those that are named, and those that are only counted."""
    n = len(methods) if len(methods) <= MOST_NAMED else MOST_NAMED - 1
    return methods[:n], methods[n:]


def written(by: Yardstick, values: Sequence[float]) -> list[str]:
    """Values with so many digits that those that differ look different."""
    fewest, most = (1, MOST_DIGITS - 2) if by.is_share else (2, MOST_DIGITS)
    exact = len({by.write(value, most) for value in values})
    digits = next(
        (n for n in range(fewest, most) if len({by.write(v, n) for v in values}) == exact), most
    )
    return [by.write(value, digits) for value in values]
