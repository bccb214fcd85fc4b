"""Which texts of a corpus are looked at: those with some labels, and numbers within bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from neuralviz.words import many, number

NAMED_VALUES = 3  # of a label, in a sentence


@dataclass(frozen=True)
class TextFilter:
    """Conditions on the texts that are shown; a text must meet all of them.

    Attributes:
        labels: by column, the values of which it must have one; ``""`` is no value.
        ranges: by column of numbers, the lowest and the highest; a text without a number is out.
    """

    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.labels or self.ranges)

    def within(
        self,
        codes: Callable[[str], tuple[np.ndarray, Sequence[str]]],
        numbers: Callable[[str], np.ndarray],
        n_texts: int,
    ) -> np.ndarray:
        """[text] whether it lets a text through.

        Args:
            codes: gives [text] which of some names each has in a column, -1 for none; and these.
            numbers: gives [text] the numbers of a column.
            n_texts: of the corpus.
        """
        mask = np.ones(n_texts, dtype=bool)
        for name, allowed in self.labels.items():
            text_codes, names = codes(name)
            mask &= np.array([*(label in allowed for label in names), "" in allowed])[text_codes]
        for name, (low, high) in self.ranges.items():
            values = numbers(name)
            mask &= (values >= low) & (values <= high)  # NaN is neither
        return mask

    def describe(self, n_shown: int, n_texts: int) -> str:
        """A sentence on how many texts are shown, and why; plain text.

        Args:
            n_shown: texts that are let through.
            n_texts: of the corpus.
        """
        reasons = []
        for name, allowed in self.labels.items():
            named = [value or "no value" for value in allowed[:NAMED_VALUES]]
            rest = len(allowed) - len(named)
            suffix = f" or {rest} more" if rest else ""
            reasons.append(f"{name} is {' or '.join(named)}{suffix}")
        for name, (low, high) in self.ranges.items():
            reasons.append(f"{name} is {number(low)} to {number(high)}")
        return f"Showing {n_shown:,} of {many(n_texts, 'text')}: {', and '.join(reasons)}."
