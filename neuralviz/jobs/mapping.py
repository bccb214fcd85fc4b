"""Maps of a corpus, and sentences placed on them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.embedders import Embedder
from neuralviz.embedders.specs import EmbedderSpec, list_models, make_embedder, method_labels
from neuralviz.errors import ModelError, SettingsError, ShouldStop, check_stop
from neuralviz.jobs.task import Lane, LatestTask, Progress, Task
from neuralviz.maps.duplicates import SimilarPairs, find_pairs
from neuralviz.maps.groups import HeldGroup, find_held_groups
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import (
    Placer,
    SampledNeighbours,
    check_enough_texts,
    find_embedder,
    make_map,
    neighbours_of_rows,
    sampled_rows,
)
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.projection import STAGES, ProjectionEvent, ProjectionSettings
from neuralviz.micro_tuning.blanks import split_at_blanks
from neuralviz.micro_tuning.events import FilledBlank, take_apart
from neuralviz.models.shared import ModelRef
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import EmbeddingEvent, embed_corpus
from neuralviz.store.importing import find_imported
from neuralviz.store.vectors import KeptEmbedder, embedder_id
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.embedders import NeuralEmbedder

SHARE_OF_EMBEDDING = 0.7  # of the bar
PLACED_NEIGHBOURS = 15
PLACERS = 2  # maps whose vectors are cached
QUICK_PRODUCTS = 3e10  # numbers multiplied when texts are compared in about a second
GROUPED = 600  # sampled texts whose clusters are compared


@dataclass(frozen=True)
class MapChoice:
    """A requested map: how texts are embedded, and how vectors are projected."""

    spec: EmbedderSpec
    settings: ProjectionSettings


@dataclass(frozen=True)
class MapEvent:
    place: int  # number of the map
    event: EmbeddingEvent | ProjectionEvent


@dataclass(frozen=True)
class MapsState:
    place: int = 0  # number of the current map
    event: EmbeddingEvent | ProjectionEvent | None = None  # the latest
    unread: str = ""  # as of `find_unread`, by any of the methods


@dataclass(frozen=True)
class MakeMaps(Task[MapEvent, MapsState]):
    """Embed a corpus and make maps of it; what exists is reused."""

    corpus_id: str
    choices: tuple[MapChoice, ...]
    models: tuple[ModelRef, ...]  # of the choices; other files of a model make other maps

    @classmethod
    def for_current_models(cls, corpus_id: str, choices: Sequence[MapChoice]) -> MakeMaps:
        return cls(corpus_id, tuple(choices), list_models(choice.spec for choice in choices))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        return method_labels([choice.spec for choice in self.choices])

    def start(self) -> MapsState:
        return MapsState()

    def events(self, should_stop: ShouldStop) -> Generator[MapEvent, None, None]:
        store = CorpusStore()
        corpus = store.corpus(self.corpus_id)
        check_enough_texts(corpus)
        for place, choice in enumerate(self.choices):
            if choice.spec.is_imported:
                _, embedder = find_imported([store.vectors], choice.spec, store.keys(corpus))
            else:
                for embedded in embed_corpus(store, corpus, choice.spec, should_stop=should_stop):
                    embedder = embedded.embedder
                    yield MapEvent(place, embedded)
            project = partial(make_map, store, corpus, embedder, choice.settings)
            for event in stream_events(project, should_stop):
                yield MapEvent(place, event)

    def fold(self, result: MapsState, events: Sequence[MapEvent]) -> MapsState:
        for map_event in events:
            unread = getattr(map_event.event, "unread", "") or result.unread
            result = MapsState(map_event.place, map_event.event, unread)
        return result

    def progress(self, result: MapsState) -> Progress:
        method, event = self.methods[result.place], result.event
        # a map is made in seconds or minutes: the embedding by methods that learn takes longer
        share, is_last = 0.0, self.choices[result.place].spec.learns
        if event is None:
            doing = "Loading the model …"
        elif isinstance(event, EmbeddingEvent):
            share = SHARE_OF_EMBEDDING * event.done / max(event.total, 1)
            doing = f"{event.done:,} of {many(event.total, 'different text')} embedded"
        else:
            share = SHARE_OF_EMBEDDING + (1 - SHARE_OF_EMBEDDING) * event.share
            unit = "" if event.stage == "placing" else "epoch "
            counted = f", {unit}{event.n_done:,} of {event.total:,}" if event.total else ""
            doing, is_last = f"{STAGES[event.stage]}{counted}", event.span[1] == 1
        return Progress(
            result.place + share,
            len(self.choices),
            doing=f"{method}: {doing}",
            is_last=is_last and result.place == len(self.choices) - 1,
        )


# --- a sentence on a map -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlacedSentence:
    near: Neighbours  # the nearest texts by the vectors
    position: np.ndarray | None = None  # [1, dimensions]; None until it is known


@dataclass(frozen=True)
class PlaceSentence(LatestTask[PlacedSentence]):
    """Find where a sentence lands on a saved map, and what is near it."""

    lane = "short"

    corpus_id: str
    map_id: str
    spec: EmbedderSpec  # of the map's texts
    sentence: str
    models: tuple[ModelRef, ...]  # of the spec; other files may give another place

    def events(self, should_stop: ShouldStop) -> Generator[PlacedSentence, None, None]:
        placer = _open_placer(CorpusStore().folder, self.corpus_id, self.map_id)
        vector = _load_embedder(self.spec, placer.kept).encode([self.sentence])
        placed = PlacedSentence(placer.near(vector, PLACED_NEIGHBOURS))
        yield placed
        yield replace(placed, position=placer.land(vector, should_stop=should_stop))


def _load_embedder(spec: EmbedderSpec, kept: KeptMap) -> Embedder:
    """The embedder of a map's texts; `ModelError` if its model has changed."""
    embedder = make_embedder(spec)
    if kept.embedder != embedder_id(embedder):
        raise ModelError(
            f"The model of “{method_labels([spec])[0]}” has changed since this map was made. Make "
            "the map again."
        )
    return embedder


@lru_cache(maxsize=PLACERS)
def _open_placer(folder: Path, corpus_id: str, map_id: str) -> Placer:
    store = CorpusStore(folder)
    corpus = store.corpus(corpus_id)
    return Placer(store, corpus, KeptMaps(store).by_id(corpus, map_id))


@dataclass(frozen=True)
class FindNeighbours(LatestTask[SampledNeighbours]):
    """Find the neighbours of a text of a large corpus, or of a sample, by a map's vectors."""

    lane = "short"

    corpus_id: str
    map_id: str
    k: int  # neighbours
    row: int | None = None  # of the text; None for the sample by which maps are measured

    def events(self, should_stop: ShouldStop) -> Generator[SampledNeighbours, None, None]:
        store = CorpusStore()
        corpus = store.corpus(self.corpus_id)
        kept = KeptMaps(store).by_id(corpus, self.map_id)
        rows = sampled_rows(corpus) if self.row is None else np.array([self.row])
        near = neighbours_of_rows(store, corpus, kept, rows, self.k, should_stop=should_stop)
        yield SampledNeighbours(rows, near)


@dataclass(frozen=True)
class AskTexts(LatestTask[tuple[FilledBlank, ...]]):
    """Put the mean neural embedding of a corpus's texts into the model, which fills blanks."""

    lane = "short"

    corpus_id: str
    map_id: str  # whose vectors are meant
    spec: EmbedderSpec  # of the map's texts, one of `DELTAS`
    sentence: str  # with blanks, as of `fill_blanks`
    models: tuple[ModelRef, ...]
    digest: str  # of the rows
    rows: np.ndarray = field(compare=False, repr=False)  # of the texts; of many, a sample

    def events(self, should_stop: ShouldStop) -> Generator[tuple[FilledBlank, ...], None, None]:
        from neuralviz.micro_tuning.predictions import fill_blanks

        split_at_blanks(self.sentence)  # checked before a model is loaded
        store = CorpusStore()
        corpus = store.corpus(self.corpus_id)
        kept = KeptMaps(store).by_id(corpus, self.map_id)
        embedder = cast("NeuralEmbedder", _load_embedder(self.spec, kept))
        check_stop(should_stop)
        vectors = store.vectors.get(find_embedder(store, kept), store.keys(corpus, self.rows))
        if n_unusable := int((~np.isfinite(vectors).all(axis=1)).sum()):
            raise SettingsError(
                f"{many(n_unusable, 'text')} of these {len(vectors):,} cannot be put into the "
                "model: their embeddings contain infinite or NaN values."
            )
        mean = unit_vectors(vectors.mean(axis=0, keepdims=True, dtype=np.float64))[0]
        delta = take_apart(embedder.model, embedder.settings, mean)
        yield fill_blanks(embedder.model, self.sentence, [(1.0, delta)])


# --- what texts have in common ---------------------------------------------------------------


@dataclass(frozen=True)
class FindPairs(LatestTask[float | SimilarPairs]):
    """Find the near-duplicates of a corpus; until then, the share of pairs that were compared."""

    corpus_id: str
    embedder: KeptEmbedder
    n_texts: int

    @property
    def is_quick(self) -> bool:
        return self.embedder.dim * float(self.n_texts) ** 2 <= QUICK_PRODUCTS

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        return "short" if self.is_quick else "long"

    def events(self, should_stop: ShouldStop) -> Generator[float | SimilarPairs, None, None]:
        store = CorpusStore()
        find = partial(find_pairs, store, store.corpus(self.corpus_id), self.embedder)
        pairs = yield from stream_events(find, should_stop)
        yield pairs

    def progress(self, result: float | SimilarPairs | None) -> Progress:
        share = result if isinstance(result, float) else 0.0
        return Progress(share, 1.0, doing=f"Comparing {many(self.n_texts, 'text')}: {share:.0%}")


@dataclass(frozen=True)
class FindHeldGroups(LatestTask[tuple[HeldGroup, ...]]):
    """Find clusters that one of two maps' methods holds together and the other does not."""

    lane = "short"

    corpus_id: str
    map_ids: tuple[str, str]

    def events(self, should_stop: ShouldStop) -> Generator[tuple[HeldGroup, ...], None, None]:
        store = CorpusStore()
        corpus = store.corpus(self.corpus_id)
        maps = [KeptMaps(store).by_id(corpus, map_id) for map_id in self.map_ids]
        rows = sampled_rows(corpus, GROUPED)
        keys = store.keys(corpus, rows)
        vectors = [store.vectors.get(find_embedder(store, kept), keys) for kept in maps]
        clusters = [KeptMaps(store).points(kept)[1].labels[rows] for kept in maps]
        yield find_held_groups(vectors, clusters, store.texts(corpus, rows), should_stop)


R = TypeVar("R")


def stream_events(work: Callable[..., R], should_stop: ShouldStop) -> Generator[Any, None, R]:
    """Run ``work`` on a thread and yield what it reports; closing the stream stops it."""
    reported: queue.SimpleQueue[Any] = queue.SimpleQueue()
    is_closed, end = threading.Event(), object()
    with ThreadPoolExecutor(1, "neuralviz-callbacks") as pool:
        working = pool.submit(
            work, on_progress=reported.put, should_stop=lambda: is_closed.is_set() or should_stop()
        )
        working.add_done_callback(lambda _: reported.put(end))
        try:
            while (event := reported.get()) is not end:
                yield event
        finally:
            is_closed.set()
    return working.result()
