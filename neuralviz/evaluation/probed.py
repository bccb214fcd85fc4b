"""What a probe told from embeddings, and which labels it can be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neuralviz.words import joined, many

if TYPE_CHECKING:
    from neuralviz.evaluation.confusion import Confusion

FOLDS = 5  # of cross-validation
MOST_NAMED = 10  # labels that are left out; of more the others are counted


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
        left_out: labels of too few texts, which were not asked for.
        confusion: which labels were taken for which; None in results of versions before.
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

    Args:
        labels: one a text.
        texts: or their places among different ones; one that is there twice counts once.
    """
    counts = Counter(label for label, _ in dict.fromkeys(zip(labels, texts, strict=True)))
    return {label: count for label, count in counts.items() if count < FOLDS}


def why_not_probed(labels: Sequence[str], texts: Sequence[Hashable]) -> str:
    """Why a probe cannot be asked for labels; empty where it can be.

    Args:
        labels, texts: as of `rare_labels`.
    """
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
    """A sentence on the labels that were left out of a probe; empty where none was.

    Args:
        rare: as of `rare_labels`.
    """
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
