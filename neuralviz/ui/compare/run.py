"""A comparison: the same texts embedded by several methods, beside the page, a batch at a time."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.embedders import EmbedderSpec, make_embedder
from neuralviz.embedders.cache import VectorCache
from neuralviz.embedders.concatenated import join
from neuralviz.embedders.labels import method_labels
from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.similarity import Similarity, similarity
from neuralviz.jobs.queue import Job, job_queue
from neuralviz.ui.model_choice import LOADERS
from neuralviz.ui.session import is_here, session_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAIR = ("compare-first", "compare-second")  # where the session keeps the pair that is looked at
BATCH_SIZE = 8  # texts: after so many, cells appear
_numbers = itertools.count(1)


@dataclass(frozen=True, eq=False)
class Step:
    """What the worker tells: vectors of some texts by one method, or why it cannot go on."""

    method: int
    at: np.ndarray | None = None
    vectors: np.ndarray | None = None
    loss_rose: np.ndarray | None = None
    error: str = ""


@dataclass
class Comparison:
    """A comparison of this browser session and what is known of it so far.

    Attributes:
        specs, methods: what is compared, and its labels, no two alike.
        texts: in the order given.
        labels: columns of labels by name, one value a text.
        vectors: by method [text, dim], NaN where there is none yet; None before the first.
        loss_rose: [method, text] where micro-tuning was no learning.
        errors: by method, why it has ended.
    """

    specs: tuple[EmbedderSpec, ...]
    texts: tuple[str, ...]
    labels: dict[str, tuple[str, ...]]
    methods: tuple[str, ...] = field(init=False)
    vectors: list[np.ndarray | None] = field(init=False)
    loss_rose: np.ndarray = field(init=False)
    errors: dict[int, str] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_numbers))
    job: Job = field(init=False)
    _folding: threading.Lock = field(default_factory=threading.Lock)
    _similarities: dict[int, tuple[int, Similarity]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.methods = method_labels(self.specs)
        self.vectors = [None] * len(self.specs)
        self.loss_rose = np.zeros((len(self.specs), len(self.texts)), dtype=bool)

    def catch_up(self) -> None:
        """Take in what the worker has told since the last time."""
        with self._folding:
            for step in self.job.take():
                if step.error:
                    self.errors[step.method] = step.error
                    continue
                if step.at is None or step.vectors is None:
                    continue
                kept = self.vectors[step.method]
                if kept is None:
                    shape = (len(self.texts), step.vectors.shape[1])
                    kept = self.vectors[step.method] = np.full(shape, np.nan, dtype=np.float32)
                kept[step.at] = step.vectors
                self.loss_rose[step.method, step.at] = step.loss_rose

    def n_done(self, method: int) -> int:
        """Texts that a method has embedded."""
        vectors = self.vectors[method]
        return 0 if vectors is None else int((~np.isnan(vectors[:, 0])).sum())

    @property
    def progress(self) -> float:
        """Share of the vectors that are there, 0 … 1; those of a method that failed count."""
        n = len(self.texts)
        done = sum(n if m in self.errors else self.n_done(m) for m in range(len(self.specs)))
        return done / (n * len(self.specs))

    def similarity(self, method: int) -> Similarity | None:
        """The products of a method so far; None before its first two texts."""
        n_done, vectors = self.n_done(method), self.vectors[method]
        if vectors is None or n_done < 2:
            return None
        at, known = self._similarities.get(method, (0, None))
        if known is None or at != n_done:
            known = similarity(self.methods[method], self.texts, vectors)
            self._similarities[method] = (n_done, known)
        return known


@cache
def vector_cache() -> VectorCache:
    """The vectors that this process keeps."""
    return VectorCache()


def submit(comparison: Comparison) -> None:
    """Queue a comparison in place of the session's last one, which is stopped.

    The quick methods go first, those that learn every text last.
    """
    last: Comparison | None = st.session_state.get("comparison")
    if last is not None:
        last.job.stop()
    for key in PAIR:  # the pair on which the methods disagree most comes first again
        st.session_state.pop(key, None)
    texts = comparison.texts
    order = sorted(range(len(comparison.specs)), key=lambda m: comparison.specs[m].learns)

    def work(job: Job) -> None:
        for method in order:
            try:
                for step in embed(method, comparison.specs[method], texts, job.should_stop):
                    job.add(step)
            except NeuralvizError as error:
                job.add(Step(method, error=str(error)))
            if job.should_stop():
                return

    comparison.job = job_queue().submit("Comparison", work, is_here(session_id()))
    st.session_state["comparison"] = comparison


def embed(
    method: int, spec: EmbedderSpec, texts: Sequence[str], should_stop: Callable[[], bool]
) -> Iterator[Step]:
    """Vectors of the texts, a step a batch; those that are kept come at once."""
    if spec.parts:
        yield from _embed_joined(method, spec, texts, should_stop)
        return
    embedder = make_embedder(spec, LOADERS)
    kept = vector_cache().get(embedder, texts)
    known = {i: vector for i, vector in enumerate(kept) if vector is not None}
    if known:
        vectors = np.stack(list(known.values()))
        yield Step(method, np.array(list(known)), vectors, np.zeros(len(known), dtype=bool))
    missing = [i for i, vector in enumerate(kept) if vector is None]
    size = BATCH_SIZE if spec.learns else 4 * BATCH_SIZE
    for batch in embedder.embed_in_batches(texts, size, only=missing, should_stop=should_stop):
        sound = ~batch.loss_rose
        vector_cache().put(embedder, [texts[i] for i in batch.at[sound]], batch.vectors[sound])
        yield Step(method, batch.at, batch.vectors, batch.loss_rose)


def _embed_joined(
    method: int, spec: EmbedderSpec, texts: Sequence[str], should_stop: Callable[[], bool]
) -> Iterator[Step]:
    """Each part on its own, so that none is computed twice; cells appear with the slowest."""
    order = sorted(range(len(spec.parts)), key=lambda part: spec.parts[part].learns)
    parts: dict[int, np.ndarray] = {}
    loss_rose = np.zeros(len(texts), dtype=bool)
    for place in order:
        for step in embed(method, spec.parts[place], texts, should_stop):
            if step.at is None or step.vectors is None:
                continue
            if place not in parts:
                parts[place] = np.zeros((len(texts), step.vectors.shape[1]), dtype=np.float32)
            parts[place][step.at] = step.vectors
            loss_rose[step.at] |= step.loss_rose
            if place == order[-1]:
                vectors = join([parts[p][step.at] for p in range(len(spec.parts))])
                yield Step(method, step.at, vectors, loss_rose[step.at])
        if should_stop():
            return
