"""Probing: what a small network can tell from frozen embeddings.

As in SentEval (Conneau and Kiela 2018) and SBERT-WK's Tables V and VI, the probe is scikit-learn's
`MLPClassifier` with one hidden layer of 50 units, Adam and batches of 64. Unlike
there, its units are ReLUs, it is trained until its loss no longer falls, embeddings are
standardised by the texts that it learns from, and every text is asked for once, by a probe that has
not seen it, in five folds.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from neuralviz.errors import NeuralvizError, Stopped, never
from neuralviz.evaluation.probed import FOLDS, Confusion, Probed, rare_labels, why_not_probed
from neuralviz.maps.shares import wilson_interval

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop

_WORD = re.compile(r"(?u)\b\w+\b")
UNITS = 50  # of the hidden layer
BATCH = 64
EPOCHS = 200  # at most; it ends sooner when its loss no longer falls


def probe(
    vectors: ArrayLike,
    labels: Sequence[str],
    texts: Sequence[str],
    *,
    seed: int = 0,
    should_stop: ShouldStop = never,
) -> tuple[Probed, np.ndarray]:
    """How often a probe tells the label of a text from its embedding.

    Args:
        vectors: [text, dim] finite.
        labels: one a text.
        texts: what is embedded: no text is in two folds, and the baseline learns from its words.
        seed: of the folds, of the probe's first weights and of its batches.

    Returns:
        What it reaches, and [text that was asked for] whether it is right. Texts whose label fewer
        than `FOLDS` different texts have are left out.

    Raises:
        NeuralvizError: there is not one vector, label and text of each, a vector is not finite, or
            fewer than two labels have `FOLDS` different texts each.
        Stopped: ``should_stop`` said so.
    """
    x = np.asarray(vectors, dtype=np.float32)
    if not len(x) == len(labels) == len(texts) or x.ndim != 2:
        raise NeuralvizError(
            f"Got {len(x):,} vectors and {len(labels):,} labels for {len(texts):,} texts; "
            "expected one per text."
        )
    if not np.isfinite(x).all():
        raise NeuralvizError("A vector contains NaN or infinity, so nothing can be told from it.")
    if problem := why_not_probed(labels, texts):
        raise NeuralvizError(problem)
    rare = rare_labels(labels, texts)
    usable = [row for row, label in enumerate(labels) if label not in rare]
    x, labels, texts = x[usable], [labels[row] for row in usable], [texts[row] for row in usable]
    places = list(folds(labels, texts, seed))
    predicted = _predicted(x, labels, lambda n: make_probe(n, seed), places, should_stop)
    right = predicted == np.array(labels)
    n, n_right = len(right), int(right.sum())
    counts = np.unique(np.asarray(labels, dtype=object), return_counts=True)[1]
    probed = Probed(
        accuracy=n_right / n,
        n=n,
        n_labels=len(counts),
        folds=FOLDS,
        baseline=float(counts.max() / n),
        tfidf=_tfidf_accuracy(tuple(texts), tuple(labels), seed),
        interval=wilson_interval(n_right, n),
        left_out=tuple(rare),
        confusion=Confusion.from_predictions(labels, predicted.tolist()),
    )
    return probed, right


def make_probe(n: int, seed: int = 0) -> Pipeline:
    """A probe that has learnt nothing yet, for ``n`` texts to learn from."""
    network = MLPClassifier(
        hidden_layer_sizes=(UNITS,), batch_size=min(BATCH, n), max_iter=EPOCHS, random_state=seed
    )
    return make_pipeline(StandardScaler(), network)


def folds(
    labels: Sequence[str], texts: Sequence[str], seed: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places of the texts to learn from and of those to be asked for, `FOLDS` times.

    Every text is asked for once; a text that is there several times is in one fold.
    """
    x, y = np.zeros(len(labels)), np.array(labels)
    if len(set(texts)) == len(texts):
        yield from StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y)
        return
    _, text = np.unique(np.array(texts, dtype=object), return_inverse=True)
    yield from StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(x, y, text)


def _predicted(
    x: Any,
    labels: Sequence[str],
    make: Callable[[int], Pipeline],
    places: Sequence[tuple[np.ndarray, np.ndarray]],
    should_stop: ShouldStop,
) -> np.ndarray:
    """[text] the labels predicted by models that are made for a number of texts to learn from."""
    y = np.array(labels)
    predicted = y.copy()
    for learnt, tested in places:
        if should_stop():
            raise Stopped
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(len(learnt)).fit(x[learnt], y[learnt])
        predicted[tested] = model.predict(x[tested])
    return predicted


@lru_cache(maxsize=8)
def _tfidf_accuracy(texts: tuple[str, ...], labels: tuple[str, ...], seed: int) -> float | None:
    """What the words of the texts reach in the same folds: found once for all methods."""

    def make(_n: int) -> Pipeline:
        words = TfidfVectorizer(token_pattern=_WORD.pattern, sublinear_tf=True)
        return make_pipeline(words, LogisticRegression(max_iter=1000))

    places = list(folds(labels, texts, seed))
    if not all(any(_WORD.search(texts[row]) for row in learnt) for learnt, _ in places):
        return None
    x = np.array(texts, dtype=object)
    predicted = _predicted(x, labels, make, places, never)
    return float((predicted == np.array(labels)).mean())
