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
        yardstick: the yardstick.
        sample: what it was measured on: ``480 texts``.
        noun: what the neighbours vote for: ``form``; marked up already.
        k: neighbours that vote.
        question: what a probe tells: ``which form a text has``; marked up already.
    """

    yardstick: Yardstick
    sample: str
    noun: str = "label"
    k: int = 0
    question: str = ""

    @classmethod
    def from_data(
        cls, yardstick: Yardstick, data: DataSet, measured: Measured, quote: Name
    ) -> Claim:
        """The claim for a yardstick; ``quote`` escapes what is a user's."""
        noun = data.columns.get("label", "label")
        if len(noun) > _LONGEST_NOUN or not noun.replace("_", "").replace(" ", "").isalnum():
            noun = f"“{noun if len(noun) <= _LONGEST_NOUN else noun[:_LONGEST_NOUN] + '…'}”"
        k = measured.neighbours.k if measured.neighbours is not None else 0
        question = data.question if isinstance(data, LabelledData) else ""
        noun = quote(noun)
        return cls(
            yardstick,
            yardstick.describe_sample(data, measured),
            noun,
            k,
            question or f"which {noun} a text has",
        )

    @property
    def this_sample(self) -> str:
        """``these 480 texts``, ``this 1 text``."""
        return f"{'this' if self.sample.startswith('1 ') else 'these'} {self.sample}"

    def describe_success(self, degree: str) -> str:
        """What a method does ``best``, ``better``, or ``better than`` another."""
        match self.yardstick.measure:
            case "neighbours":
                return f"finds the {self.noun} of a text {degree}"
            case "probe":
                return f"tells a probe {degree} {self.question}"
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
            again: whether the sentence has named the sample already.
        """
        sample = "them" if again else self.this_sample
        match self.yardstick.measure:
            case "neighbours":
                return f"for {values} of {sample}, {self.voters} for the right {self.noun}"
            case "probe":
                return f"the probe is right for {values} of {sample}"
            case "pairs" | "triplets":
                return f"{values} of {sample} come out wrong"
            case _:
                return f"{self.yardstick.title} {values}{'' if again else f' on {sample}'}"

    def list_values(self, entries: Sequence[tuple[str, str]]) -> str:
        """Names and values to be proved with: ``84.0% (a), 79.4% (b) and 57.3% (c)``."""
        named, rest = _split_named(entries)
        parts = [f"{value} ({name})" for name, value in named]
        if rest:
            parts.append(f"{self._at_most} {rest[0][1]} ({len(rest)} others)")
        return joined(parts)

    def list_others(self, entries: Sequence[tuple[str, str]]) -> str:
        """Names and values to follow a proof: ``; b 79.4%, c 57.3%``."""
        named, rest = _split_named(entries)
        parts = [f"{name} {value}" for name, value in named]
        if rest:
            parts.append(f"{len(rest)} others {self._at_most} {rest[0][1]}")
        return f"; {', '.join(parts)}" if parts else ""

    @property
    def _at_most(self) -> str:
        return "at most" if self.yardstick.sign > 0 else "at least"

    @property
    def target(self) -> str:
        """What a correlation is with."""
        return "the quality" if self.yardstick.measure == "paraphrases" else "people's scores"

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


def join_names(names: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``, ``a, b, c, d and 2 others``."""
    named, rest = _split_named(names)
    return joined([*named, *([f"{len(rest)} others"] if rest else [])], last)


def _split_named(methods: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Split methods into those that are named and those that are only counted."""
    n = len(methods) if len(methods) <= MOST_NAMED else MOST_NAMED - 1
    return methods[:n], methods[n:]


def format_distinct(yardstick: Yardstick, values: Sequence[float]) -> list[str]:
    """Values with so many digits that those that differ look different."""
    fewest, most_digits = (1, MOST_DIGITS - 2) if yardstick.is_share else (2, MOST_DIGITS)
    exact = len({yardstick.write(value, most_digits) for value in values})
    digits = next(
        (
            n
            for n in range(fewest, most_digits)
            if len({yardstick.write(v, n) for v in values}) == exact
        ),
        most_digits,
    )
    return [yardstick.write(value, digits) for value in values]
