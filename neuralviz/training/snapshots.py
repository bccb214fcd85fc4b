"""An encoder's quality during training: nearest neighbours at every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.errors import NeuralvizError, never
from neuralviz.maps.neighbours import K, check_vectors, find_neighbours, knn_right, why_no_votes
from neuralviz.words import many, short_repr

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop

# A snapshot of this size takes as long as seven steps of 64 crops, whatever the model.
MOST_TEXTS = 1000
MOST_CHARACTERS = 1_000_000  # of a snapshot's texts together
FEWEST_TEXTS = 100  # watched if available, however long they are


@dataclass(frozen=True, eq=False)
class Snapshot:
    __repr__ = short_repr

    step: int
    # [layer] 0 … 1 10-NN accuracy, from the embedding output; None without labels
    accuracy: np.ndarray | None
    right: np.ndarray | None  # [labelled text] last-layer vote is right; None without labels
    # [watched text, 10] int32 last-layer neighbours, nearest first; maybe fewer
    nearest: np.ndarray
    # [watched text, dim] float32 of the last layer, if still needed
    vectors: np.ndarray | None = None


class Watch:
    """Takes snapshots of an encoder on a fixed sample of texts, labelled ones if any.

    Labels are one per text, ``""`` for unlabelled; duplicates would vote for each other, so are
    watched once. At most ``n_texts`` with ``characters`` in total (None: no limit) are watched, but
    `FEWEST_TEXTS` if shortened. Texts beyond the window are read in chunks, or cut off unless
    ``is_whole``; ``k`` neighbours vote. `NeuralvizError` if labels and texts differ in number, or
    no two texts share a label.
    """

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[str] | None = None,
        *,
        n_texts: int = MOST_TEXTS,
        characters: int | None = MOST_CHARACTERS,
        is_whole: bool = True,
        k: int = K,
        seed: int = 42,
    ) -> None:
        if labels is not None and len(labels) != len(texts):
            raise NeuralvizError(
                f"Got {len(labels):,} labels for {len(texts):,} texts; expected one per text."
            )
        candidates = np.arange(len(texts))
        if labels is not None and len({label for label in labels if label}) < 2:
            labels = None
        if labels is not None:
            if reason := why_no_votes(labels):
                raise NeuralvizError(reason)
            first = {text: row for row, text in reversed(list(enumerate(texts))) if labels[row]}
            candidates = np.sort(list(first.values()))
        drawn = np.random.default_rng(seed).permutation(candidates)[:n_texts]
        beginning = None  # number of characters read per text
        if characters is not None:
            lengths = np.cumsum([len(texts[i]) for i in drawn])
            n_whole = int(np.searchsorted(lengths, characters, side="right"))
            if n_whole < min(FEWEST_TEXTS, len(drawn)):
                drawn = drawn[:FEWEST_TEXTS]
                beginning = max(1, characters // len(drawn))
            else:
                drawn = drawn[:n_whole]
        self.watched = np.sort(drawn)  # ascending numbers of the watched texts
        # sentence for the page
        self.measured = _in_words(len(drawn), len(candidates), labels is not None, beginning)
        self._texts = [texts[i][:beginning] for i in self.watched]
        self._labels = None if labels is None else [labels[i] for i in self.watched]
        self._is_whole = is_whole
        self._k = k

    @property
    def has_labels(self) -> bool:
        return self._labels is not None and len(set(self._labels)) > 1

    def look(self, learner: Any, step: int, should_stop: ShouldStop = never) -> Snapshot:
        """Take a snapshot by `Learner.of_layers`; `Stopped`, `TextError` for unusable vectors."""
        layers = list(learner.of_layers(self._texts, should_stop, is_whole=self._is_whole))
        check_vectors(layers[-1])
        accuracy = right = None
        compared = layers if self.has_labels else layers[-1:]
        near = [find_neighbours(vectors, self._k, should_stop=should_stop) for vectors in compared]
        if self.has_labels:
            right_at = [knn_right(neighbours, self._labels or (), self._k) for neighbours in near]
            accuracy, right = np.array([hits.mean() for hits in right_at]), right_at[-1]
        return Snapshot(step, accuracy, right, near[-1].indices, layers[-1])


def _in_words(n: int, n_all: int, has_labels: bool, beginning: int | None) -> str:
    label = " with a label" if has_labels else ""
    share = f"all {many(n, 'text')}" if n == n_all else f"{n:,} of {many(n_all, 'text')}"
    read = "read whole" if beginning is None else f"the first {beginning:,} characters of each"
    return f"Measured on {share}{label}, {read}."
