"""What a probe told from embeddings, and which labels it can be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from neuralviz.words import many

FOLDS = 5  # of cross-validation


@dataclass(frozen=True)
class Probed:
    """How often a probe tells the label of a text that it has not seen.

    Attributes:
        accuracy: share of the texts, 0 … 1.
        n: texts that it was asked for: each once.
        n_labels: different labels.
        folds: of cross-validation.
        baseline: 0 … 1 share of the most frequent label, which guessing it reaches.
        tfidf: 0 … 1 what logistic regression on the TF-IDF of the texts' words reaches in the same
            folds; None where the texts have no words.
        interval: bounds of the accuracy, Wilson's interval at 95% (Wilson 1927).
    """

    accuracy: float
    n: int
    n_labels: int
    folds: int
    baseline: float
    tfidf: float | None
    interval: tuple[float, float]


def why_not_probed(labels: Sequence[str], texts: Sequence[Hashable]) -> str:
    """Why a probe cannot be asked for labels; empty where it can be.

    Args:
        labels: one a text.
        texts: or their places among different ones; one that is there twice counts once.
    """
    counts = Counter(label for label, _ in dict.fromkeys(zip(labels, texts, strict=True)))
    if len(counts) < 2:
        return "All texts have the same label. At least two different labels are needed."
    rarest, fewest = min(counts.items(), key=lambda entry: entry[1])
    if fewest < FOLDS:
        others = sum(count < FOLDS for count in counts.values()) - 1
        also = f" ({many(others, 'other label')} as well)" if others else ""
        return (
            f"Only {many(fewest, 'different text')} {'has' if fewest == 1 else 'have'} the label "
            f"“{rarest[:40]}”{also}. A probe needs at least {FOLDS} different texts with each "
            f"label: it is cross-validated in {FOLDS} folds."
        )
    return ""
