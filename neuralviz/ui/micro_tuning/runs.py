"""Starts, chooses and shows the runs of the micro-tuning page, side by side or overlaid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.headlines.micro_tuning import describe_progress
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.micro_tuning.record import RunRecord, load_record
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.ui.links import RUN, result_view_id
from neuralviz.ui.micro_tuning.draw import EarlierRun, show_record
from neuralviz.ui.micro_tuning.earlier_run import put_earlier_in_address, restore_earlier
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.micro_tuning import TuningSettings

KEY = "micro-tuning"
RUNS = SessionRuns(KEY, at_once=4, kept=8)
SHOWN_RUNS = "shown-runs"
RECORDED = "recorded"
_NEWEST = "micro-tuning-newest"
RECORDED_RUN = "recorded_run.npz"
LIVE_SECONDS = 0.4


@dataclass(frozen=True)
class Overlay:
    """A run to show, drawn over an earlier run on the same texts if there is one."""

    run: Run[RunRecord]
    earlier: Run[RunRecord] | None = None

    @property
    def record(self) -> RunRecord:
        return self.run.result

    @property
    def key(self) -> str:
        """Begins the keys of its widgets."""
        return f"run-{self.run.id}"


def start_run(model_id: str, texts: Sequence[str], settings: TuningSettings, view: str) -> None:
    """Start a run; if the run before has the same texts, the new one is drawn over it.

    Args:
        model_id, texts, settings: what is run.
        view: id under which its result is kept.

    Raises:
        SettingsError: too many runs of this session are not over yet.
    """
    RUNS.start(TuneTexts(ModelRef.from_id(model_id), tuple(texts), settings), again=True, view=view)


def restore_run(model_id: str, texts: Sequence[str], settings: TuningSettings) -> bool:
    """Make the run with these settings the last one; whether there is one, or a recording."""
    restore_earlier(RUNS, texts)
    recorded, settings_key = recorded_run(), (model_id, tuple(texts), settings)
    runs: list[Run[RunRecord]] = RUNS.list_runs()
    is_recorded = settings_key == (recorded.model_id, recorded.texts, recorded.settings)
    is_first = not runs and RUN not in st.query_params
    if not texts or (is_recorded and is_first):
        return is_recorded
    task = TuneTexts(ModelRef.from_id(model_id), tuple(texts), settings)
    return RUNS.recall(task, result_view_id(KEY)) is not None or (is_recorded and not runs)


def choose_runs() -> list[Overlay]:
    """The runs to show, two at most; two on the same texts make one overlay."""
    runs: list[Run[RunRecord]] = RUNS.list_runs()
    if not runs:
        return []
    if st.session_state.get(_NEWEST) != runs[-1].id:
        st.session_state[_NEWEST] = runs[-1].id
        st.session_state[SHOWN_RUNS] = [
            run.number for run in runs[-2:] if run is runs[-1] or _can_be_overlaid(run, runs[-1])
        ]
    if len(runs) > 1:
        st.pills(
            "Runs",
            sorted(run.number for run in runs),
            selection_mode="multi",
            format_func=lambda number: f"Run {number}",
            key=SHOWN_RUNS,
            persist_state="session",
            help="Two runs on the same texts are drawn in one figure, others side by side.",
        )
    chosen = [run for run in runs if run.number in st.session_state.get(SHOWN_RUNS, [])][-2:]
    is_over_another = len(chosen) == 2 and _can_be_overlaid(*chosen)
    put_earlier_in_address(RUNS, chosen[0] if is_over_another else None)
    if is_over_another:
        return [Overlay(chosen[1], earlier=chosen[0])]
    return [Overlay(run) for run in chosen] or [Overlay(runs[-1])]


def _can_be_overlaid(earlier: Run[RunRecord], run: Run[RunRecord]) -> bool:
    a, b = earlier.result, run.result
    return (a.model_id, a.texts) == (b.model_id, b.texts) and (
        a.settings != b.settings or earlier.status != "done"
    )


def show_run(overlay: Overlay, text: int) -> None:
    """Show a run, live until it is over."""
    run, earlier = overlay.run, overlay.earlier
    st.subheader(f"Run {run.number}", anchor=False)
    if earlier is not None and not earlier.is_over:
        show_run_panel(
            RUNS,
            earlier,
            lambda *_: None,
            sentences=RunSentences(describe_stopped=_describe_stopped),
        )
    show_run_panel(
        RUNS,
        run,
        partial(_draw_run, overlay, text),
        sentences=RunSentences(describe_stopped=_describe_stopped),
        interval=LIVE_SECONDS,
    )
    st.caption(plain(_describe_run(run.result)))


def _draw_run(overlay: Overlay, text: int, record: RunRecord, _live: bool) -> None:
    if not record.started():
        return
    earlier = None
    if overlay.earlier is not None and overlay.earlier.result.started():
        numbers = overlay.run.number, overlay.earlier.number
        earlier = EarlierRun(overlay.earlier.result, numbers)
    show_record(record, overlay.key, text, earlier)


def _describe_stopped(record: RunRecord) -> str:
    if not record.epochs_reached:
        return "Stopped before the first step."
    return f"Stopped. {describe_progress(record)}".rstrip()


def show_recorded(text: int) -> None:
    """Show the recorded run to visitors who have not started one."""
    record = recorded_run()
    show_record(record, RECORDED, text, draw_above=partial(_explain_recorded, record))


def _explain_recorded(record: RunRecord) -> None:
    values = sum(len(last[0]) for last in record.last)
    st.caption(
        f"**Recorded run.** The model was trained on each text alone. What changed in its "
        f"weights, {values:,} numbers, is the text's neural embedding. Press **Tune** to see it "
        "live."
    )


@st.cache_resource(max_entries=1, show_spinner=False)
def recorded_run() -> RunRecord:
    """The run of the first example with default settings, from ``scripts/record_run.py``."""
    return load_record(sample_data() / RECORDED_RUN)


def _describe_run(record: RunRecord) -> str:
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
