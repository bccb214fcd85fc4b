"""The scale that people's scores are on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralviz.words import number

_COMMON = (  # lowest score, highest score, and what the highest of the data is above
    (0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), (1.0, 5.0, 4.0), (0.0, 5.0, 4.0), (1.0, 7.0, 5.0),
    (1.0, 10.0, 7.0), (0.0, 10.0, 7.0), (0.0, 100.0, 50.0),
)  # fmt: skip


FEWEST = 6  # scores, of which some should reach the upper part of their scale


@dataclass(frozen=True)
class Scale:
    """From people's scores to shares of their scale, and back.

    Attributes:
        low, high: the lowest and the highest score of the scale.
    """

    low: float
    high: float

    @classmethod
    def from_scores(cls, scores: np.ndarray) -> Scale:
        """A common scale, of which scores reach the upper part; else the range of the scores.

        Scales from 1 on are those of ratings: whole numbers, or scores of which the lowest is 1.

        Args:
            scores: [pair] finite.
        """
        if (common := _find_common(scores)) is not None:
            return common
        lowest, highest = float(np.min(scores)), float(np.max(scores))
        return cls(lowest, highest) if lowest < highest else FIVE

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """[pair] 0 … 1 for scores on the scale."""
        return (np.asarray(scores, np.float64) - self.low) / (self.high - self.low)

    def scores(self, shares: np.ndarray) -> np.ndarray:
        """[pair] on people's scale."""
        return self.low + np.asarray(shares, np.float64) * (self.high - self.low)

    def describe_other(self, scores: np.ndarray, whose: str) -> str:
        """A sentence on scores that seem to be on another scale; empty where they do not.

        Args:
            scores: [pair] NaN where there is none.
            whose: such as ``test pairs``.
        """
        scores = scores[np.isfinite(scores)]
        if not len(scores):
            return ""
        common = _find_common(scores)
        theirs = common or Scale(float(scores.min()), float(scores.max()))
        slack = (self.high - self.low) / 10
        is_outside = scores.min() < self.low - slack or scores.max() > self.high + slack
        least = self.high if common else (self.low + self.high) / 2
        if not is_outside and (theirs.high >= least or len(scores) < FEWEST):
            return ""
        bounds = (theirs.low, theirs.high, self.low, self.high)
        low, high, train_low, train_high = map(number, bounds)
        return (
            f"The scores of the {whose} seem to be on another scale (from {low} to {high}) than "
            f"those of the train pairs (from {train_low} to {train_high})."
        )


def _find_common(scores: np.ndarray) -> Scale | None:
    """The common scale of which scores reach the upper part, as of `Scale.from_scores`."""
    lowest, highest = float(np.min(scores)), float(np.max(scores))
    is_rating = lowest == 1 or bool((np.mod(scores, 1) == 0).all())
    for low, high, threshold in _COMMON:
        if low == 1 and not is_rating:
            continue  # from 0 on, of which these scores happen to lack the lowest
        if low <= lowest and threshold < highest <= high:
            return Scale(low, high)
    return None


FIVE, UNIT = Scale(0.0, 5.0), Scale(0.0, 1.0)
