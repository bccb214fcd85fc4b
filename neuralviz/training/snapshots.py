"""How good an encoder is while it is trained: what the nearest texts say, at every layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from neuralviz.errors import NeuralvizError, never
from neuralviz.maps.neighbourhoods import K, knn_right, why_no_votes
from neuralviz.maps.neighbours import check_vectors, find_neighbours
from neuralviz.words import many, short_repr

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop

# A snapshot of so much takes as long as seven steps of 64 crops, whatever the model.
MOST_TEXTS = 1000
MOST_CHARACTERS = 1_000_000  # of all texts of a snapshot together
FEWEST_TEXTS = 100  # that are watched where there are so many, however long they are


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An encoder after some steps; 0 is before.

    Attributes:
        accuracy: [layer] 0 … 1 share of the labelled texts whose 10 nearest vote for their label;
            None without labels. Layer 0 is the embedding output.
        right: [labelled text] whether its neighbours vote for its label at the last layer; None
            without labels.
        nearest: [watched text, 10] int32 numbers of the nearest others at the last layer, the
            nearest first; fewer where there are no more.
        vectors: [watched text, dim] float32 of the last layer; None once they are not needed.
    """

    __repr__ = short_repr

    step: int
    accuracy: np.ndarray | None
    right: np.ndarray | None
    nearest: np.ndarray
    vectors: np.ndarray | None = None


class Layered(Protocol):
    """What gives texts a vector at every layer, such as a `Learner`."""

    def of_layers(
        self, texts: Sequence[str], should_stop: ShouldStop = ..., *, is_whole: bool = ...
    ) -> Iterable[np.ndarray]:
        """A [text, dim] float32 array of every layer, the embedding output first."""
        ...


class Watch:
    """Takes snapshots on the same texts every time, each read whole.

    With labels, a text that is there several times is watched once: it would vote for itself.

    What a snapshot costs has a bound: of texts that are too long together, fewer are watched. Where
    `FEWEST_TEXTS` of them are too long still, the beginning of each is read.

    Args:
        texts: the corpus.
        labels: one a text, ``""`` for none; None where there are none at all. Fewer than two
            different ones tell nothing apart, and are as none.
        n_texts: texts that are watched, drawn from those with a label where there are labels.
        characters: of all watched texts together, at most; None for any number.
        is_whole: False cuts off what is behind the learner's window.
        k: neighbours that vote.

    Attributes:
        watched: [watched text] numbers of the texts, ascending.
        measured: how many texts are watched and what is read of them, as a sentence.

    Raises:
        NeuralvizError: there is not one label a text, or no two texts share a label.
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
        beginning = None  # characters of a text that are read
        if characters is not None:
            lengths = np.cumsum([len(texts[i]) for i in drawn])
            n_whole = int(np.searchsorted(lengths, characters, side="right"))
            if n_whole < min(FEWEST_TEXTS, len(drawn)):
                drawn = drawn[:FEWEST_TEXTS]
                beginning = max(1, characters // len(drawn))
            else:
                drawn = drawn[:n_whole]
        self.watched = np.sort(drawn)
        self.measured = _in_words(len(drawn), len(candidates), labels is not None, beginning)
        self._texts = [texts[i][:beginning] for i in self.watched]
        self._labels = None if labels is None else [labels[i] for i in self.watched]
        self._is_whole = is_whole
        self._k = k

    @property
    def has_labels(self) -> bool:
        """Whether accuracy can be measured: the watched texts have two different labels or more."""
        return self._labels is not None and len(set(self._labels)) > 1

    def look(self, learner: Layered, step: int, should_stop: ShouldStop = never) -> Snapshot:
        """The snapshot of an encoder.

        Raises:
            Stopped: ``should_stop`` said so.
            TextError: its vectors are no usable numbers: the learning rate is far too high.
        """
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
    """What is measured, as a sentence."""
    label = " with a label" if has_labels else ""
    share = f"all {many(n, 'text')}" if n == n_all else f"{n:,} of {many(n_all, 'text')}"
    read = "read whole" if beginning is None else f"the first {beginning:,} characters of each"
    return f"Measured on {share}{label}, {read}."
