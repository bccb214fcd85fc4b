"""The runs of the micro-tuning page: started, shown two beside each other."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.micro_tuning.record_file import load_record
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.ui.micro_tuning.draw import show_after, show_record
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import SessionRuns, Words, run_panel
from neuralviz.ui.session import is_served
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.micro_tuning import TuningSettings

RUNS = SessionRuns("micro-tuning", at_once=4, kept=8)
SHOWN = "shown-runs"
_NEWEST = "micro-tuning-newest"
RECORDED_RUN = "recorded_run.npz"
LIVE_SECONDS = 0.4
FIRST_FIGURES_SECONDS = 2.0


def start_run(model_id: str, texts: Sequence[str], settings: TuningSettings) -> None:
    """Start a run; it is shown beside the one before.

    Raises:
        SettingsError: too many runs of this session are not over yet.
    """
    RUNS.start(TuneTexts(ModelRef.now(model_id), tuple(texts), settings), again=True)


def show_runs() -> None:
    """The runs of this session, two side by side; before the first, a recorded one."""
    runs: list[Run[RunRecord]] = RUNS.all()
    if not runs:
        _show_recorded_run()
        return
    if st.session_state.get(_NEWEST) != runs[-1].id:
        st.session_state[_NEWEST] = runs[-1].id
        st.session_state[SHOWN] = [run.number for run in runs[-2:]]
    if len(runs) > 1:
        st.pills(
            "Runs",
            sorted(run.number for run in runs),
            selection_mode="multi",
            format_func=lambda number: f"Run {number}",
            key=SHOWN,
            persist_state="session",
        )
    shown = [run for run in runs if run.number in st.session_state.get(SHOWN, [])][-2:]
    for column, run in zip(st.columns(max(1, len(shown))), shown, strict=False):
        with column:
            st.subheader(f"Run {run.number}", anchor=False)
            st.caption(plain(_about(run.result)))
            run_panel(
                RUNS,
                run,
                partial(_show, f"run-{run.id}", wide=len(shown) == 1),
                words=Words(stopped=_stopped),
                bar_stays=True,
                every=LIVE_SECONDS,
            )


def _show(key: str, record: RunRecord, live: bool, *, wide: bool) -> None:
    if not record.started():
        return
    text = show_record(record, key, wide=wide)
    if not live:
        show_after(record, key, text)


def _stopped(record: RunRecord) -> str:
    if not record.steps:
        return "Stopped before the first step."
    return f"Stopped after {record.progress:.0%}. The result so far is shown."


def _show_recorded_run() -> None:
    st.subheader("Recorded run", anchor=False)
    st.caption(
        "The bundled model on three sentences, with the default settings. Press **Tune** to "
        "micro-tune it on the texts above, live."
    )
    text = show_record(recorded_run(), "recorded", wide=True)
    _let_the_browser_draw()
    show_after(recorded_run(), "recorded", text)


def _let_the_browser_draw() -> None:
    """Hold back what comes next until the first figures can be seen, once a session.

    What lies below them (a table, figures that do not move) makes the browser load megabytes of
    script, and it would do that first.
    """
    if "has-drawn" in st.session_state or not is_served():
        return
    place = st.empty()
    for _ in range(round(FIRST_FIGURES_SECONDS / 0.1)):
        time.sleep(0.1)
        place.empty()  # a click ends the wait here
    st.session_state["has-drawn"] = True


@st.cache_resource(max_entries=1, show_spinner=False)
def recorded_run() -> RunRecord:
    """The default settings on the first example, as ``scripts/record_run.py`` saw it."""
    return load_record(sample_data() / RECORDED_RUN)


def _about(record: RunRecord) -> str:
    n = len(record.texts)
    s = record.settings
    masking = "no masking"
    if not s.predict_unmasked:
        noun = "blueprint" if len(s.blueprints) == 1 else "blueprints"
        masking = f"{noun} {', '.join(map(str, s.blueprints))}"
    return (
        f"{many(n, 'text')}, {many(s.epochs, 'epoch')}, learning rate {s.learning_rate:g}, "
        f"{many(len(s.layers), 'layer')}, {masking}; {record.model_id}, {s.precision_in_words}"
    )
