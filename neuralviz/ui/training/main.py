"""The training page below its title."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.results import corpus_view
from neuralviz.training.example import add_textbooks_once
from neuralviz.ui.page import dimmed, plain, show_error
from neuralviz.ui.run_panel import SessionRuns, Words, done_in, run_panel
from neuralviz.ui.training.choose import choose
from neuralviz.ui.training.show import show_lessons

if TYPE_CHECKING:
    from neuralviz.jobs import Run
    from neuralviz.training.record import Lesson
    from neuralviz.ui.training.choose import Chosen

RUNS = SessionRuns("training", at_once=1, kept=3)
LIVE_SECONDS = 1.0


def show() -> None:
    """Corpus, encoder, pairs, *Train*, and what is learnt."""
    try:
        store = CorpusStore()
        add_textbooks_once(store)
        corpora = sorted(store.corpora(), key=lambda one: one.id)
    except NeuralvizError as error:
        show_error(error)
        return
    left, right = st.columns([1, 2], gap="medium")
    with left:
        chosen, pressed = choose(store, corpora)
    is_old = True
    if chosen is not None:
        is_old = _train(chosen, pressed)
    run: Run[tuple[Lesson, ...]] | None = RUNS.last()
    with right:
        if run is None:
            st.info("Press **Train**. The first step is drawn after a few seconds.")
            return
        with dimmed("training", is_old):
            run_panel(
                RUNS,
                run,
                partial(show_lessons, run),
                words=Words(
                    begins="Loading the encoder and looking at the texts before the first step …",
                    stopped=_stopped,
                    done=lambda _: done_in(run),
                ),
                bar_stays=True,
                every=LIVE_SECONDS,
            )


def _train(chosen: Chosen, pressed: bool) -> bool:
    """Start what was asked for, or bring it back; whether what is shown is of something else."""
    view = corpus_view(chosen.corpus.id)
    run = RUNS.recall(chosen.task, view)
    if pressed:
        try:
            again = run is not None and run.status != "done"
            run = RUNS.start(chosen.task, again=again, view=view)
        except SettingsError as error:
            st.error(plain(str(error)))
    return run is None


def _stopped(lessons: tuple[Lesson, ...]) -> str:
    steps = ", ".join(
        f"{one.settings.pairs.kind} after {one.step:,} of {one.steps:,} steps" for one in lessons
    )
    return f"Stopped: {steps}. “Run again” goes on from there."
