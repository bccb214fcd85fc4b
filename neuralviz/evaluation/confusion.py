"""Which labels are taken for which, and the measures that count every label alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_LABELS = 12  # in a matrix that is read; the rarest of more are put together


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each label was predicted for the texts of each label.

    Attributes:
        labels: the most frequent first, those of equal numbers in their order.
        counts: [own label, predicted label] texts.
    """

    labels: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def from_predictions(cls, labels: Sequence[str], predicted: Sequence[str]) -> Confusion:
        """Count the predictions of some texts.

        Args:
            labels: [text] labels.
            predicted: [text] labels, each the own one of some text.
        """
        frequent = sorted(Counter(labels).items(), key=lambda entry: (-entry[1], entry[0]))
        place = {label: index for index, (label, _) in enumerate(frequent)}
        counts = np.zeros((len(place), len(place)), dtype=np.int64)
        np.add.at(
            counts, ([place[label] for label in labels], [place[label] for label in predicted]), 1
        )
        return cls(tuple(place), counts)

    @property
    def macro_f1(self) -> float:
        """0 … 1 mean of the F1 scores of all labels; 0 for a label that is never right."""
        right = np.diag(self.counts)
        n_either = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        return float(np.mean(2 * right / n_either))

    @property
    def balanced_accuracy(self) -> float:
        """0 … 1 mean of the shares of each label's texts that are right."""
        return float(np.mean(np.diag(self.counts) / self.counts.sum(axis=1)))

    def at_most(self, n: int = MOST_LABELS) -> Confusion:
        """A copy that merges the rarest labels, so that there are ``n`` rows."""
        if len(self.labels) <= n:
            return self
        first, rest = n - 1, len(self.labels) - n + 1
        part = np.minimum(np.arange(len(self.labels)), first)
        counts = np.zeros((n, n), dtype=np.int64)
        np.add.at(counts, (part[:, None], part[None, :]), self.counts)
        return Confusion((*self.labels[:first], f"{rest} rarer labels"), counts)

    def as_json(self) -> dict[str, Any]:
        """The measures, and the matrix by ``labels`` and ``counts``."""
        return {
            "macro_f1": self.macro_f1,
            "balanced_accuracy": self.balanced_accuracy,
            "confusion": {"labels": list(self.labels), "counts": self.counts.tolist()},
        }
