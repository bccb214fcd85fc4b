"""The training page below its title."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.jobs import Run
from neuralviz.jobs.training import TrainOnCorpus, example_training, recorded_lessons
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.results import corpus_view
from neuralviz.training.example import NAME, add_textbooks, add_textbooks_once, textbooks
from neuralviz.ui.corpora import corpus_store
from neuralviz.ui.page import dim_old_results, plain, show_error
from neuralviz.ui.run_panel import RunSentences, describe_finish, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import hide_on_stage
from neuralviz.ui.training.choose import choose, load_texts
from neuralviz.ui.training.experiments import show_experiments
from neuralviz.ui.training.show import show_lessons
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.store.corpora import Corpus
    from neuralviz.training.record import Lesson
    from neuralviz.ui.training.choose import TrainingChoice

RUNS = SessionRuns("training", at_once=1, kept=3)
LIVE_SECONDS = 0.5
RECORDED = "Recorded run. Press “Train” to see it live."
# What stands above the figures takes little room, so that the first screen has them.
_LAYOUT = """<style>
[class*="st-key-training-state-"]:not(:has([data-testid="stAlert"])) { margin-top: -0.8rem; }
</style>"""


def show() -> None:
    """Show corpus, encoder, pairs, *Train* and the training; at first, the recorded one."""
    st.html(_LAYOUT)
    try:
        store = CorpusStore()
        add_textbooks_once(store)
        saved_corpora = corpus_store().corpora()
        corpora = sorted(saved_corpora, key=lambda corpus: corpus.name != NAME)  # the example first
    except NeuralvizError as error:
        show_error(error)
        return
    if not corpora:
        _offer_example(store)
        return
    chosen, pressed = choose(corpora)
    _show_training(corpora, chosen, pressed=pressed)
    if chosen is not None:
        with hide_on_stage("training-experiments"), st.expander("Experiments of the paper"):
            task = chosen.task
            show_experiments(chosen.corpus, task.model, task.labels, task.settings[0])


def _show_training(
    corpora: Sequence[Corpus], chosen: TrainingChoice | None, *, pressed: bool
) -> None:
    requested_run = None if chosen is None else _find_run(chosen, pressed)
    run = requested_run or RUNS.last_to_show() or _find_recorded(corpora)
    if run is None:
        st.info("Press **Train**. The first step is drawn after a few seconds.")
        return
    if requested_run is None:
        st.caption(
            "The results below are of another corpus or other settings. Press **Train** to see "
            "yours."
        )
    is_recorded = run not in RUNS.list_runs()
    with dim_old_results("training", requested_run is None):
        show_run_panel(
            RUNS,
            run,
            partial(show_lessons, run, is_recorded=is_recorded),
            sentences=RunSentences(
                start="Loading the encoder and making the first pairs …",
                error_advice=_describe_resumption(run),
                describe_stopped=_describe_stopped,
                describe_done=partial(
                    _describe_done,
                    run,
                    is_recorded=is_recorded,
                    is_asked_for=requested_run is not None,
                ),
            ),
            interval=LIVE_SECONDS,
        )


def _offer_example(store: CorpusStore) -> None:
    st.info("No corpora yet. Add one on the page *Corpus map*, or open the example.")
    if st.button("Open the example", type="primary"):
        try:
            add_textbooks(store)
        except NeuralvizError as error:
            show_error(error)
        else:
            st.rerun()


def _find_run(chosen: TrainingChoice, pressed: bool) -> Run[tuple[Lesson, ...]] | None:
    """The run of the choice: started now, remembered, saved or recorded; else None."""
    view = corpus_view(chosen.corpus.id)
    run = RUNS.recall(chosen.task, view)
    if pressed:
        try:
            again = run is not None and run.status != "done"
            return RUNS.start(chosen.task, again=again, view=view)
        except SettingsError as error:
            st.error(plain(str(error)))
    if run is not None:
        return run
    recorded = _load_recorded_run(chosen.corpus.id) if chosen.corpus.name == NAME else None
    return recorded if recorded is not None and recorded.task == chosen.task else None


def _find_recorded(corpora: Sequence[Corpus]) -> Run[tuple[Lesson, ...]] | None:
    """The recorded run of the example, if its corpus is saved."""
    example = next((corpus for corpus in corpora if corpus.name == NAME), None)
    return None if example is None else _load_recorded_run(example.id)


@st.cache_resource(max_entries=1, show_spinner=False)
def _load_recorded_run(corpus_id: str) -> Run[tuple[Lesson, ...]] | None:
    """The recorded training as a run that is over, the same one for all sessions.

    None where it is of other texts: a corpus of one's own may have the example's name.
    """
    lessons, texts = recorded_lessons(), load_texts(corpus_id)
    if not lessons or texts != tuple(textbooks().texts):
        return None
    task = example_training(CorpusStore().corpus(corpus_id), texts)
    return Run.from_result(task, lessons, status="done", finished=0.0, seconds=0.0)


def _describe_done(
    run: Run[tuple[Lesson, ...]], _: object, *, is_recorded: bool, is_asked_for: bool
) -> str:
    if not is_recorded:
        return describe_finish(run)
    return RECORDED if is_asked_for else "Recorded run."


def _describe_resumption(run: Run[tuple[Lesson, ...]]) -> str:
    """Where *Run again* resumes a failed training; empty where it would begin anew."""
    if run.status != "failed" or run.has_nothing or not isinstance(run.task, TrainOnCorpus):
        return ""
    steps = " and ".join(
        f"{settings.pairs.kind} after {many(kept, 'step')}"
        for settings, kept in zip(run.task.settings, run.task.kept_steps(), strict=True)
        if kept
    )
    return f"“Run again” goes on from what was saved: {steps}." if steps else ""


def _describe_stopped(lessons: tuple[Lesson, ...]) -> str:
    steps = " and ".join(
        f"{lesson.settings.pairs.kind} after {lesson.step:,} of {lesson.steps:,} steps"
        for lesson in lessons
    )
    return f"Stopped: {steps}. “Run again” goes on from there."
