"""What was predicted of labels: confusions, probes, and the labels that can be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuralviz.words import joined, many

MOST_LABELS = 12  # in a matrix that is read; the rarest of more are put together


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each label was predicted for the texts of each label.

    ``labels`` has the most frequent first; ``counts`` is [own label, predicted label].
    """

    labels: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def from_predictions(cls, labels: Sequence[str], predicted: Sequence[str]) -> Confusion:
        """Count the predictions of some texts, each the own label of some text."""
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


FOLDS = 5  # of cross-validation
MOST_NAMED = 10  # labels that are left out; of more the others are counted


@dataclass(frozen=True)
class Probed:
    """How often a probe tells the label of a text that it has not seen.

    Attributes:
        accuracy: share of the texts, 0 … 1; each was asked for once.
        baseline: 0 … 1 share of the most frequent label, which guessing it reaches.
        tfidf: 0 … 1 what logistic regression on the TF-IDF of the texts' words reaches in the same
            folds; None where the texts have no words.
        interval: bounds of the accuracy, Wilson's interval at 95% (Wilson 1927).
        left_out: labels of too few texts, which were not asked for.
        confusion: which labels were taken for which.
    """

    accuracy: float
    n: int
    n_labels: int
    folds: int
    baseline: float
    tfidf: float | None
    interval: tuple[float, float]
    left_out: tuple[str, ...] = ()
    confusion: Confusion | None = field(default=None, compare=False)


def rare_labels(labels: Sequence[str], texts: Sequence[Hashable]) -> dict[str, int]:
    """Labels that fewer than `FOLDS` different texts have, and how many have them.

    Texts, one a label, may be given by their places among different ones.
    """
    counts = Counter(label for label, _ in dict.fromkeys(zip(labels, texts, strict=True)))
    return {label: count for label, count in counts.items() if count < FOLDS}


def why_not_probed(labels: Sequence[str], texts: Sequence[Hashable]) -> str:
    """Why a probe cannot be asked for labels of texts; empty where it can be."""
    if len(set(labels)) < 2:
        return "All texts have the same label. At least two different labels are needed."
    rare = rare_labels(labels, texts)
    n_left = len(set(labels)) - len(rare)
    if n_left < 2:
        rarest, fewest = min(rare.items(), key=lambda entry: entry[1])
        verb = "has" if fewest == 1 else "have"
        return (
            f"A probe needs at least two labels with {FOLDS} different texts each, as it is "
            f"cross-validated in {FOLDS} folds; {'only one' if n_left else 'no'} label has so "
            f"many. For example, {many(fewest, 'different text')} {verb} the label "
            f"“{rarest[:40]}”."
        )
    return ""


def left_out_in_words(rare: Mapping[str, int]) -> str:
    """A sentence on the `rare_labels` that were left out of a probe; empty where none was."""
    if not rare:
        return ""
    named = [f"“{label[:40]}” ({count})" for label, count in list(rare.items())[:MOST_NAMED]]
    if n_unnamed := len(rare) - len(named):
        named.append(many(n_unnamed, "other"))
    noun = "label" if len(rare) == 1 else "labels"
    return (
        f"The probe leaves out the {noun} {joined(named)}: fewer than {FOLDS} different texts "
        f"{'have it' if len(rare) == 1 else 'have each'}."
    )
