"""The scale that people's scores are on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_COMMON = (  # lowest score, highest score, and what the highest of the data is above
    (0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), (1.0, 5.0, 4.0), (0.0, 5.0, 4.0), (1.0, 7.0, 5.0),
    (0.0, 10.0, 7.0), (0.0, 100.0, 50.0),
)  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """From people's scores to shares of their scale, and back.

    Attributes:
        low, high: the lowest and the highest score of the scale.
    """

    low: float
    high: float

    @classmethod
    def of(cls, scores: np.ndarray) -> Scale:
        """A common scale, of which scores reach the upper part; else the range of the scores.

        Args:
            scores: [pair] finite.
        """
        lowest, highest = float(np.min(scores)), float(np.max(scores))
        for low, high, above in _COMMON:
            if low <= lowest and above < highest <= high:
                return cls(low, high)
        return cls(lowest, highest) if lowest < highest else FIVE

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """[pair] 0 … 1 for scores on the scale."""
        return (np.asarray(scores, np.float64) - self.low) / (self.high - self.low)

    def scores(self, shares: np.ndarray) -> np.ndarray:
        """[pair] on people's scale."""
        return self.low + np.asarray(shares, np.float64) * (self.high - self.low)


FIVE, UNIT = Scale(0.0, 5.0), Scale(0.0, 1.0)
