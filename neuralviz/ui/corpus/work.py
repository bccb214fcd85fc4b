"""Embedding a corpus and making its maps, beside the page."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.labels import method_labels
from neuralviz.jobs.queue import job_queue
from neuralviz.maps import projecting
from neuralviz.maps.projecting import ProjectionEvent
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import EmbeddingEvent, embed_corpus
from neuralviz.ui.job_panel import job_panel
from neuralviz.ui.model_choice import LOADERS
from neuralviz.ui.session import is_here, is_served, session_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.queue import Job
    from neuralviz.store.corpora import Corpus
    from neuralviz.ui.corpus.kept import MapChoice

WORK = "corpus-work"  # where the session keeps it
_numbers = itertools.count(1)
_STAGES = {
    "waiting": "Waiting for another map to be made",
    "neighbours": "Finding the nearest texts of every text",
    "layout": "Making the map",
    "clusters": "Finding clusters",
}
WARM_UP_AFTER = 4.0  # seconds: the page is drawn before that takes a core
SHARE_OF_EMBEDDING = 0.7  # of the bar


@dataclass
class MapWork:
    """Work of this browser session: one corpus, the maps that are wanted of it."""

    corpus: Corpus
    choices: tuple[MapChoice, ...]
    number: int = field(default_factory=lambda: next(_numbers))
    job: Job = field(init=False)
    place: int = 0
    embedding: EmbeddingEvent | None = None
    projecting: ProjectionEvent | None = None

    def catch_up(self) -> None:
        """Take in what the worker has told since the last time."""
        for place, event in self.job.take():
            if place != self.place:
                self.place, self.embedding, self.projecting = place, None, None
            if isinstance(event, EmbeddingEvent):
                self.embedding = event
            else:
                self.projecting = event

    @property
    def method(self) -> str:
        """The method that is under way."""
        return method_labels([choice.spec for choice in self.choices])[self.place]

    @property
    def share(self) -> float:
        """Of all that is to do, 0 … 1, about."""
        share = 0.0
        if self.embedding is not None and self.embedding.total:
            share = SHARE_OF_EMBEDDING * self.embedding.done / self.embedding.total
        if self.projecting is not None and self.projecting.total:
            share += (1 - SHARE_OF_EMBEDDING) * self.projecting.done / self.projecting.total
        return (self.place + share) / len(self.choices)

    @property
    def doing(self) -> str:
        """What is under way, in words and counts."""
        event, progress = self.projecting, self.embedding
        if event is not None:
            counted = f", epoch {event.done:,} of {event.total:,}" if event.total else ""
            return f"{self.method}: {_STAGES[event.stage]}{counted}"
        if progress is None:
            return f"{self.method}: getting the model ready …"
        return f"{self.method}: {progress.done:,} of {progress.total:,} different texts embedded"

    @property
    def kept(self) -> str:
        """What is kept of a run that was stopped."""
        progress = self.embedding
        if progress is None or self.projecting is not None:
            return "Stopped. The vectors are kept; the map was not finished."
        return (
            f"Stopped. {progress.done:,} of {progress.total:,} different texts are embedded by "
            f"{self.method} and kept; “Make the map” goes on from there."
        )


def submit(corpus: Corpus, choices: Sequence[MapChoice]) -> None:
    """Queue the maps that are missing, in place of the session's last work, which is stopped."""
    last: MapWork | None = st.session_state.get(WORK)
    if last is not None:
        last.job.stop()
    work = MapWork(corpus, tuple(choices))

    def run(job: Job) -> None:
        from neuralviz.maps.mapping import check_enough_texts, make_map

        check_enough_texts(corpus)
        store = CorpusStore()
        for place, choice in enumerate(work.choices):
            tell = partial(_tell, job, place)
            for event in embed_corpus(
                store, corpus, choice.spec, loaders=LOADERS, should_stop=job.should_stop
            ):
                tell(event)
            make_map(
                store,
                corpus,
                event.embedder,
                choice.settings,
                on_progress=tell,
                should_stop=job.should_stop,
            )

    work.job = job_queue().submit("Map", run, is_here(session_id()))
    st.session_state[WORK] = work


def _tell(job: Job, place: int, event: EmbeddingEvent | ProjectionEvent) -> None:
    job.add((place, event))


def current_work(corpus: Corpus) -> MapWork | None:
    """The session's last work, where it is on this corpus."""
    work: MapWork | None = st.session_state.get(WORK)
    return work if work is not None and work.corpus.id == corpus.id else None


def show_work(work: MapWork) -> None:
    """Progress while it goes on; the page runs again when it is over."""
    work.catch_up()
    if work.job.is_over and not st.session_state.get(f"corpus-seen-{work.number}"):
        st.session_state[f"corpus-seen-{work.number}"] = True
        st.rerun()
    job_panel(work.job, key="corpus-stop", share=work.share, doing=work.doing, stopped=work.kept)


def warm_up() -> None:
    """Import and compile what maps need in the background, once a process."""
    if is_served():
        _start_warm_up()


@cache
def _start_warm_up() -> None:
    timer = threading.Timer(WARM_UP_AFTER, projecting.warm_up)
    timer.daemon = True
    timer.start()
