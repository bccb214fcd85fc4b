"""The same texts embedded by several methods, and what distinguishes a pair of them."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from neuralviz.embedders import Embedder
from neuralviz.embedders.base import find_unread
from neuralviz.embedders.specs import EmbedderSpec, list_models, make_embedder, method_labels
from neuralviz.errors import ModelError, NeuralvizError, ShouldStop, check_stop, describe_unexpected
from neuralviz.evaluation.explanation import (
    Deletions,
    Explanation,
    explain,
    explain_splits,
    find_unknown_words,
    try_deletions,
)
from neuralviz.evaluation.similarity import Similarity, similarity
from neuralviz.files import RecordFormat
from neuralviz.jobs.task import KeptTask, LatestTask, Progress
from neuralviz.micro_tuning.watching import find_hardly_read
from neuralviz.models.shared import LOADERS, ModelRef
from neuralviz.store.embedding import embed
from neuralviz.store.vectors import MemoryVectors
from neuralviz.words import many

BATCH_SIZE = 8  # texts between two updates
MOST_DELETED, MOST_LEARNT = 120, 30  # words of a pair; fewer where every text is learnt anew


@dataclass(frozen=True, eq=False)
class Step:
    """Vectors of some texts by one method, or why it failed."""

    method: int
    rows: np.ndarray | None = None
    vectors: np.ndarray | None = None
    loss_rose: np.ndarray | None = None
    unread: str = ""
    hardly_read: tuple[tuple[str, tuple[int, ...]], ...] = ()
    error: str = ""


@dataclass(frozen=True, eq=False)
class MethodEmbeddings:
    """The embeddings of the texts by one method so far."""

    method: str  # label
    texts: tuple[str, ...]
    loss_rose: np.ndarray  # [text] true where micro-tuning diverged
    vectors: np.ndarray | None = None  # [text, dim], NaN where missing; None before the first
    unread: str = ""  # as of `find_unread`
    hardly_read: tuple[tuple[str, tuple[int, ...]], ...] = ()  # as of `list_unread`
    error: str = ""  # why the method failed; empty if it did not

    @cached_property
    def finished(self) -> np.ndarray:
        """[finished] indices of the embedded texts."""
        has_vector = [] if self.vectors is None else ~np.isnan(self.vectors[:, 0])
        return np.flatnonzero(has_vector)

    @cached_property
    def n_done(self) -> int:
        return len(self.finished)

    @cached_property
    def similarity(self) -> Similarity | None:
        """The products so far; None before the second text."""
        if self.vectors is None or self.n_done < 2:
            return None
        return similarity(self.method, self.texts, self.vectors)

    def having(self, steps: Sequence[Step]) -> MethodEmbeddings:
        vectors = None if self.vectors is None else self.vectors.copy()
        loss_rose, messages = self.loss_rose.copy(), dict[str, Any]()
        for step in steps:
            named = {name: getattr(step, name) for name in ("unread", "hardly_read", "error")}
            messages |= {name: content for name, content in named.items() if content}
            if step.rows is None or step.vectors is None:
                continue
            if vectors is None:
                shape = (len(self.texts), step.vectors.shape[1])
                vectors = np.full(shape, np.nan, dtype=np.float32)
            vectors[step.rows] = step.vectors
            loss_rose[step.rows] = step.loss_rose
        return replace(self, vectors=vectors, loss_rose=loss_rose, **messages)


Comparison = tuple[MethodEmbeddings, ...]  # a result per method, in their order


@dataclass(frozen=True)
class Compare(KeptTask[Step, Comparison]):
    """Embed the same texts by several methods, a batch at a time."""

    format = RecordFormat("a comparison", version=7, classes=(MethodEmbeddings,))

    specs: tuple[EmbedderSpec, ...]
    texts: tuple[str, ...]  # at least one
    models: tuple[ModelRef, ...]  # other files of a model make another comparison
    batch_size: int | None = None  # as of `embed`

    @classmethod
    def for_current_models(cls, specs: Sequence[EmbedderSpec], texts: Sequence[str]) -> Compare:
        return cls(tuple(specs), tuple(texts), list_models(specs))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        return method_labels(self.specs)

    def start(self) -> Comparison:
        all_false = np.zeros(len(self.texts), dtype=bool)
        return tuple(MethodEmbeddings(method, self.texts, all_false) for method in self.methods)

    def events(self, should_stop: ShouldStop) -> Generator[Step, None, None]:
        # the quick methods go first, those that learn every text last
        for method in sorted(range(len(self.specs)), key=lambda m: self.specs[m].learns):
            try:
                spec, vectors = self.specs[method], memory_vectors()
                for event in embed(
                    self.texts, spec, vectors, batch_size=self.batch_size, should_stop=should_stop
                ):
                    if len(event.at):
                        yield Step(method, event.at, event.vectors, event.loss_rose, event.unread)
            except NeuralvizError as error:
                yield Step(method, error=str(error))
            except (RuntimeError, MemoryError) as error:  # torch's, mostly for lack of memory
                yield Step(method, error=describe_unexpected(error))
            check_stop(should_stop)
        for method, spec in enumerate(self.specs):
            with suppress(NeuralvizError, RuntimeError, MemoryError):  # said by then
                unknown = find_unread(make_embedder(spec), self.texts).unknown
                read = [(m, find_hardly_read(m, self.texts, should_stop)) for m in spec.judges]
                yield Step(method, hardly_read=(("", tuple(unknown)), *read))

    def fold(self, result: Comparison, events: Sequence[Step]) -> Comparison:
        method_steps = [[step for step in events if step.method == m] for m in range(len(result))]
        return tuple(
            embedded.having(steps) if steps else embedded
            for embedded, steps in zip(result, method_steps, strict=True)
        )

    def progress(self, result: Comparison) -> Progress:
        n = len(self.texts)
        n_done = sum(n if embedded.error else embedded.n_done for embedded in result)
        started = any(embedded.n_done for embedded in result)
        last = "Checking how well the model reads the texts …"
        doing = describe_missing(result) or last if started else ""
        is_last = all(embedded.n_done or embedded.error for embedded in result)
        return Progress(n_done, n * len(result), doing=doing, is_last=is_last)

    def cache_key(self) -> str:
        specs = [spec.to_json() for spec in self.specs]
        models = [model.identity() for model in self.models]
        return json.dumps([self.format.version, specs, self.texts, models])

    def is_whole(self, result: Comparison) -> bool:
        return not any(embedded.error for embedded in result)


def describe_missing(result: Comparison) -> str:
    """How many texts each unfinished method has embedded."""
    return "; ".join(
        f"{embedded.method}: {embedded.n_done:,} of {many(len(embedded.texts), 'text')} embedded"
        for embedded in result
        if embedded.n_done < len(embedded.texts) and not embedded.error
    )


@cache
def memory_vectors() -> MemoryVectors:
    return MemoryVectors()


# --- a pair of texts -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """Which words make two texts similar by one method."""

    place: int  # of the method
    plain: Explanation | None = None
    centred: Explanation | None = None  # with the mean of all compared texts subtracted
    deletions: Deletions | None = None  # if tried
    unknown: tuple[str, ...] = ()  # words, to the method's model
    error: str = ""


@dataclass(frozen=True)
class ExplainPair(LatestTask[dict[int, PairExplanation]]):
    """Explain a pair's cosine by several methods, then leave words out to check them."""

    lane = "short"

    specs: tuple[EmbedderSpec, ...]
    places: tuple[int, ...]  # of the methods in the comparison
    texts: tuple[str, str]
    models: tuple[ModelRef, ...]  # so that other model files make another task
    centres: tuple[bytes, ...]  # by method, the float64 mean of all texts' unit vectors

    def events(self, should_stop: ShouldStop) -> Generator[dict[int, PairExplanation], None, None]:
        explained: dict[int, PairExplanation] = {}
        exact: dict[int, tuple[Embedder, Explanation]] = {}
        for place, spec, content in zip(self.places, self.specs, self.centres, strict=True):
            limit = MOST_LEARNT if spec.learns else MOST_DELETED
            try:
                embedder, centre = make_embedder(spec, LOADERS), np.frombuffer(content)
                explain_pair = partial(
                    explain, embedder, *self.texts, most_words=limit, should_stop=should_stop
                )
                plain = explain_pair()
                if plain.splits is not None:
                    centred = explain_splits(embedder.name, *plain.splits, centre)
                    if sum(map(len, plain.words.spans)) <= limit:
                        exact[place] = embedder, plain
                else:
                    centred = explain_pair(centre=centre)
                unknown = find_unknown_words(embedder, plain)
                kept = plain.drop_splits(), centred.drop_splits()
                part = PairExplanation(place, *kept, unknown=unknown)
            except NeuralvizError as error:
                part = PairExplanation(place, error=str(error))
            except (RuntimeError, MemoryError) as error:  # torch's, mostly for lack of memory
                part = PairExplanation(place, error=describe_unexpected(error))
            explained[place] = part
            yield dict(explained)
        for place, (embedder, plain) in exact.items():
            with suppress(ModelError, RuntimeError, MemoryError):
                deletions = try_deletions(embedder, plain, should_stop=should_stop)
                explained[place] = replace(explained[place], deletions=deletions)
                yield dict(explained)

    def progress(self, result: dict[int, PairExplanation] | None) -> Progress:
        n_split = len(result or ())
        n_tried = sum(part.deletions is not None for part in (result or {}).values())
        doing = "Leaving words out" if n_split == len(self.specs) else ""
        return Progress(n_split + n_tried, 2 * len(self.specs), doing=doing)
