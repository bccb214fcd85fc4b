"""Probing: how well a small network tells labels from frozen embeddings.

As in SentEval (Conneau and Kiela 2018) and SBERT-WK's Tables V and VI, but with ReLUs, trained
until the loss stops falling, on standardised embeddings, in five folds.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from neuralviz.errors import NeuralvizError, ShouldStop, check_stop, never
from neuralviz.maps.shares import wilson_interval
from neuralviz.words import joined, many

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FOLDS = 5  # of cross-validation
MOST_LABELS = 12  # in a matrix that is read; the rarest of more are put together
MOST_NAMED = 10  # labels that are left out; of more the others are counted
UNITS = 50  # of the hidden layer
BATCH = 64
EPOCHS = 200  # at most; it ends sooner when its loss no longer falls
_WORD = re.compile(r"(?u)\b\w+\b")


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each label was predicted for the texts of each label."""

    labels: tuple[str, ...]  # the most frequent first, of equals by name
    counts: np.ndarray  # [own label, predicted label]

    @classmethod
    def from_predictions(cls, labels: Sequence[str], predicted: Sequence[str]) -> Confusion:
        counted = Counter(labels)
        frequent = sorted(counted, key=lambda label: (-counted[label], _pad_numbers(label)))
        place = {label: index for index, label in enumerate(frequent)}
        counts = np.zeros((len(place), len(place)), dtype=np.int64)
        own, taken = ([place[label] for label in names] for names in (labels, predicted))
        np.add.at(counts, (own, taken), 1)
        return cls(tuple(place), counts)

    @property
    def macro_f1(self) -> float:
        """Mean F1 score of all labels, 0 … 1; 0 for a label that is never right."""
        right = np.diag(self.counts)
        n_either = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        return float(np.mean(2 * right / n_either))

    @property
    def balanced_accuracy(self) -> float:
        """Mean over labels of the share of texts that are right, 0 … 1."""
        return float(np.mean(np.diag(self.counts) / self.counts.sum(axis=1)))

    def merge_rarest(self) -> Confusion:
        """A copy with the rarest labels merged, so that it has `MOST_LABELS` rows at most."""
        if len(self.labels) <= MOST_LABELS:
            return self
        first = MOST_LABELS - 1
        starts = np.arange(MOST_LABELS)
        counts = np.add.reduceat(np.add.reduceat(self.counts, starts, axis=0), starts, axis=1)
        rest = len(self.labels) - first
        return Confusion((*self.labels[:first], f"{rest} rarer labels"), counts)


def _pad_numbers(label: str) -> str:
    """A key that sorts ``3 to 5 words`` before ``10 to 12 words``."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(9), label)


@dataclass(frozen=True, eq=False)
class Accuracy:
    """How often neighbours or a probe predict a text's label; shares are 0 … 1."""

    accuracy: float
    n: int  # texts
    baseline: float  # share of the most frequent label, which guessing it reaches
    interval: tuple[float, float]  # of the accuracy, Wilson's at 95% (Wilson 1927)
    right: np.ndarray  # [text] whether its label is told; the same texts for all methods
    confusion: Confusion | None = None  # which labels are taken for which; None if not recorded
    k: int = 0  # neighbours that vote; 0 for a probe
    tfidf: float | None = None  # what words reach in a probe's folds; None where texts have none
    left_out: tuple[str, ...] = ()  # labels of too few texts, for which no probe was asked

    @classmethod
    def from_predictions(
        cls, labels: Sequence[str], predicted: Sequence[str], **more: Any
    ) -> Accuracy:
        right = np.array(labels) == np.array(predicted)
        n, n_right = len(right), int(right.sum())
        return cls(
            accuracy=n_right / n,
            n=n,
            baseline=max(Counter(labels).values()) / n,
            interval=wilson_interval(n_right, n),
            right=right,
            confusion=Confusion.from_predictions(labels, predicted),
            **more,
        )

    def as_json(self) -> dict[str, Any]:
        names = ("accuracy", "n", "baseline", "interval")
        numbers: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.k:
            numbers["k"] = self.k
        else:
            numbers |= {"folds": FOLDS, "tfidf": self.tfidf, "left_out": list(self.left_out)}
        if (confusion := self.confusion) is None:
            return numbers
        labels = list(confusion.labels)
        return numbers | {
            **({} if self.k else {"n_labels": len(labels)}),
            "macro_f1": confusion.macro_f1,
            "balanced_accuracy": confusion.balanced_accuracy,
            "confusion": {"labels": labels, "counts": confusion.counts.tolist()},
        }


def probe(
    vectors: ArrayLike,
    labels: Sequence[str],
    texts: Sequence[str],
    *,
    seed: int = 0,
    should_stop: ShouldStop = never,
) -> Accuracy:
    """Probe finite [text, dim] vectors; NeuralvizError if fewer than two labels remain."""
    x = np.asarray(vectors, dtype=np.float32)
    if problem := why_not_probed(labels, texts):
        raise NeuralvizError(problem)
    rare = rare_labels(labels, texts)
    usable = [row for row, label in enumerate(labels) if label not in rare]
    x, labels, texts = x[usable], [labels[row] for row in usable], [texts[row] for row in usable]
    places = list(folds(labels, texts, seed))
    predicted = _predict(x, labels, lambda n: make_probe(n, seed), places, should_stop)
    words = _tfidf_accuracy(tuple(texts), tuple(labels), seed)
    more = {"tfidf": words, "left_out": tuple(rare)}
    return Accuracy.from_predictions(labels, predicted.tolist(), **more)


def make_probe(n: int, seed: int = 0) -> Pipeline:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier(
        hidden_layer_sizes=(UNITS,), batch_size=min(BATCH, n), max_iter=EPOCHS, random_state=seed
    )
    return make_pipeline(StandardScaler(), network)


def folds(
    labels: Sequence[str], texts: Sequence[str], seed: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places of training and of test texts, `FOLDS` times; equal texts share a fold."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    x, y = np.zeros(len(labels)), np.array(labels)
    if len(set(texts)) == len(texts):
        yield from StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y)
        return
    _, text = np.unique(np.array(texts, dtype=object), return_inverse=True)
    yield from StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(x, y, text)


def _predict(
    x: Any,
    labels: Sequence[str],
    make: Callable[[int], Pipeline],
    places: Sequence[tuple[np.ndarray, np.ndarray]],
    should_stop: ShouldStop,
) -> np.ndarray:
    """[text] labels predicted by models made for the number of training texts."""
    from sklearn.exceptions import ConvergenceWarning

    y = np.array(labels)
    predicted = y.copy()
    for learnt, tested in places:
        check_stop(should_stop)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(len(learnt)).fit(x[learnt], y[learnt])
        predicted[tested] = model.predict(x[tested])
    return predicted


@lru_cache(maxsize=8)
def _tfidf_accuracy(texts: tuple[str, ...], labels: tuple[str, ...], seed: int) -> float | None:
    """Accuracy by the texts' words in the same folds, computed once for all methods."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def make(_n: int) -> Pipeline:
        words = TfidfVectorizer(token_pattern=_WORD.pattern, sublinear_tf=True)
        return make_pipeline(words, LogisticRegression(max_iter=1000))

    places = list(folds(labels, texts, seed))
    if not all(any(_WORD.search(texts[row]) for row in learnt) for learnt, _ in places):
        return None
    predicted = _predict(np.array(texts, dtype=object), labels, make, places, never)
    return float((predicted == np.array(labels)).mean())


def rare_labels(labels: Sequence[str], texts: Sequence[Hashable]) -> dict[str, int]:
    """Labels of fewer than `FOLDS` distinct texts, with counts; texts may be given as numbers."""
    counts = Counter(label for label, _ in dict.fromkeys(zip(labels, texts, strict=True)))
    return {label: count for label, count in counts.items() if count < FOLDS}


def why_not_probed(labels: Sequence[str], texts: Sequence[Hashable]) -> str:
    if len(set(labels)) < 2:
        return "All texts have the same label. At least two different labels are needed."
    rare = rare_labels(labels, texts)
    n_left = len(set(labels)) - len(rare)
    if n_left >= 2:
        return ""
    return (
        f"A probe needs at least two labels with {FOLDS} different texts each; "
        f"{n_left or 'none'} of {many(len(set(labels)), 'label')} has that many."
    )


def left_out_in_words(rare: Mapping[str, int]) -> str:
    if not rare:
        return ""
    named = [f"“{label[:40]}” ({count})" for label, count in list(rare.items())[:MOST_NAMED]]
    if n_unnamed := len(rare) - len(named):
        named.append(many(n_unnamed, "other"))
    return f"The probe leaves out labels of fewer than {FOLDS} different texts: {joined(named)}."
