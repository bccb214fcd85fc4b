"""The micro-tuning page below its title: texts, settings, *Tune*, and the runs of a session."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from neuralviz.headlines import micro_tuning as headlines
from neuralviz.jobs import Run
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.micro_tuning import TuningSettings
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.record import RunRecord, load_record
from neuralviz.models import BUNDLED
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.plots import micro_tuning as plots
from neuralviz.plots.standalone import About, file_name
from neuralviz.plots.theme import shorten
from neuralviz.store.files import COMMON_VIEW
from neuralviz.ui.figures import draw_live_figure, draw_once
from neuralviz.ui.limits import is_served
from neuralviz.ui.links import RUN, USER_SOURCES, one_history_entry, result_view_id
from neuralviz.ui.micro_tuning.choose import announce_duration, ask_settings, find_layers
from neuralviz.ui.micro_tuning.results import pick_text, show_results, try_deltas
from neuralviz.ui.model_choice import chosen_model_id
from neuralviz.ui.pace import let_others_draw, pause
from neuralviz.ui.page import dim_old_results, plain
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.ui.stage import show_on_stage, show_only_on_stage, slide
from neuralviz.ui.texts import ask_texts, put_texts_in_address
from neuralviz.ui.tour import is_tour_at
from neuralviz.words import name_texts, number

KEY = "micro-tuning"
RUNS = SessionRuns(KEY, kept=8, stops_former=False)
HEIGHT = 390  # px: both figures are seen on the first screen
SETTINGS_LENGTH = 300  # characters of the line below a run's figures
STAGE_TEXTS = 5  # of more texts, only the chosen one is listed on the stage
STAGE_LETTERS = 90  # of each, on one line
SHOWN_RUNS, NEWEST = "shown-runs", "micro-tuning-newest"  # session state
EARLIER = "earlier"  # query parameter: the settings of an earlier run, where they differ
RECORDED = "recorded"
EXAMPLES = {
    "One sentence": [
        "The old lighthouse keeper climbed the stairs every evening to light the lamp."
    ],
    "From the corpus": [
        "Does the moon look bigger near the horizon, or am I only more romantic there?",
        "What do the substitutes talk about for eighty minutes on that bench?",
        "Leaves blamed for delays on line that has no trees",
    ],
    "Word order": ["The dog chased the cat.", "The cat chased the dog.", "The cat was chased."],
    "A short story": [
        "Mina planted a seed in a cracked pot. Nothing happened for weeks, and her brother "
        "laughed at her. Then one morning a green tip broke the soil, and nobody laughed any more."
    ],
}
# Inputs and live figures stand beside each other where both have room. The figures stay in place
# while the sentences above them grow, and when a line takes the place of the bar and *Stop*.
_LAYOUT = """<style>
[data-testid="stColumn"]:has(.st-key-tune-inputs) { min-width: min(255px, 100%); }
[data-testid="stColumn"]:has(.st-key-tune-live) { min-width: min(440px, 100%); }
[class*="st-key-micro-tuning-state-"] { min-height: 42.5px; justify-content: center; }
[class*="st-key-headline-"][class*="-learning"] { min-height: 5.6rem; }
@media (max-width: 640px) {
    [class*="st-key-headline-"][class*="-learning"] { min-height: 11.2rem; }
}
[class*="st-key-tune-figures"] [data-testid="stColumn"] { min-width: min(250px, 100%); }
</style>"""


def show() -> None:
    st.html(_LAYOUT)
    model_id = chosen_model_id()
    input_column, live_column = st.columns([3, 7], gap="large")
    with input_column, st.container(key="tune-inputs"):
        examples = {"Two banks": recorded_run().texts, **EXAMPLES}
        texts = ask_texts(KEY, examples, max_texts=1000).texts
        settings = _ask_run(model_id, texts)
        visible_runs = _choose_runs()
        records = [run.result for run, _ in visible_runs] or [recorded_run()]
        picked = [pick_text(record) for record in records]
    note = _describe_difference(records[-1], model_id, texts, settings)
    with live_column, st.container(key="tune-live"):
        if note:
            st.caption(note)
        with dim_old_results("tune", bool(note)):
            for column, (run, earlier), text in zip(
                st.columns(len(picked)), visible_runs, picked, strict=False
            ):
                with column:
                    _show_run(run, earlier, text)
            if not visible_runs:
                _show_recorded(picked[0])
    with dim_old_results("tune-after", bool(note)):
        _show_finished([run for run, _ in visible_runs], picked)


# --- what is run ---------------------------------------------------------------------------------


def _ask_run(model_id: str, texts: Sequence[str]) -> TuningSettings | None:
    """Ask for settings; start a run at *Tune*, or find the address's. None if they are invalid."""
    layers = find_layers(model_id)
    if layers is None:
        return None
    with show_on_stage("tune"):
        pressed = st.button("Tune", type="primary", icon=":material/play_arrow:", width="stretch")
    settings = ask_settings(*layers)
    if pressed and settings is None:
        st.info("Not started. Correct the settings first.")
    elif pressed and not texts:
        st.info("Micro-tuning needs a text. Paste one, or choose an example.")
    if settings is None or not texts:
        return settings
    announce_duration(texts, settings)
    task = TuneTexts(ModelRef.from_id(model_id), tuple(texts), settings)
    if pressed:
        with one_history_entry():
            if st.session_state[f"{KEY}-source"] in USER_SOURCES:
                put_texts_in_address(KEY, texts)
            RUNS.start(task, again=True, view=result_view_id(KEY))
    if not _restore(task) and _is_tour_example(model_id):
        RUNS.start(task, again=True, view=COMMON_VIEW)
    return settings


def _is_tour_example(model_id: str) -> bool:
    """Whether *Tune* needs no press: on the tour, for an example with the bundled model."""
    is_example = st.session_state.get(f"{KEY}-source") == "Example"
    return is_tour_at("Micro-tuning") and is_example and model_id == BUNDLED


def _restore(task: TuneTexts) -> bool:
    """Make the run of a task the last one; return whether there is one, or a recording."""
    _restore_earlier(task)
    recorded = recorded_run()
    requested = (task.model.id, task.texts, task.settings)
    is_recorded = not RUNS.list_runs() and requested == (
        recorded.model_id,
        recorded.texts,
        recorded.settings,
    )
    if is_recorded and RUN not in st.query_params:
        return True
    if RUNS.recall(task, result_view_id(KEY)) is not None:
        return True
    RUNS.mention_unknown_run()
    return is_recorded


def _restore_earlier(task: TuneTexts) -> None:
    """Make the run that the address names beside that of ``task`` the last one."""
    written = st.query_params.get(EARLIER)
    if not written:
        return
    try:
        earlier = replace(task, settings=_read_changes(written, task.settings))
        if RUNS.find(earlier) or RUNS.recall(earlier, result_view_id(KEY)):
            return
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # not written by this page
    del st.query_params[EARLIER]
    st.toast("The earlier run in this link is not saved here. Showing the newer one alone.")


def _write_changes(earlier: TuningSettings, settings: TuningSettings) -> str:
    values = asdict(settings)
    return json.dumps({k: v for k, v in asdict(earlier).items() if v != values[k]})


def _read_changes(written: str, settings: TuningSettings) -> TuningSettings:
    changes = json.loads(written)
    for name in changes.keys() & {"layers", "betas"}:
        changes[name] = tuple(changes[name])
    if "blueprints" in changes:
        changes["blueprints"] = tuple(Blueprint(*pair) for pair in changes["blueprints"])
    return replace(settings, **changes)


# --- what is shown -------------------------------------------------------------------------------


def _choose_runs() -> list[tuple[Run[RunRecord], Run[RunRecord] | None]]:
    """The runs to show, two at most, each with the earlier run that it is drawn over, if any."""
    runs: list[Run[RunRecord]] = RUNS.list_runs()
    if not runs:
        return []
    if st.session_state.get(NEWEST) != runs[-1].id:
        st.session_state[NEWEST] = runs[-1].id
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
    if len(chosen) == 2 and _can_be_overlaid(*chosen):
        earlier, run = chosen
        if earlier.view:
            changes = _write_changes(earlier.result.settings, run.result.settings)
            st.query_params[EARLIER] = changes
        return [(run, earlier)]
    st.query_params.pop(EARLIER, None)
    return [(run, None) for run in chosen or runs[-1:]]


def _can_be_overlaid(earlier: Run[RunRecord], run: Run[RunRecord]) -> bool:
    a, b = earlier.result, run.result
    return (a.model_id, a.texts) == (b.model_id, b.texts) and (
        a.settings != b.settings or earlier.status != "done"
    )


def _describe_difference(
    record: RunRecord, model_id: str, texts: Sequence[str], settings: TuningSettings | None
) -> str:
    """A sentence where the figures are not of what the widgets hold; else empty."""
    if model_id != record.model_id:
        return "These figures belong to another model."
    if (tuple(texts), settings) == (record.texts, record.settings):
        return ""
    advice = " Press **Tune** to update them." if settings is not None and texts else ""
    return f"These figures belong to other texts or settings.{advice}"


@st.cache_resource(max_entries=1, show_spinner=False)
def recorded_run() -> RunRecord:
    """The run of the first example with default settings, from ``scripts/record_run.py``."""
    return load_record(sample_data() / "recorded_run.npz")


def _show_recorded(text: int) -> None:
    """Show the recorded run to visitors who have not started one."""
    record = recorded_run()
    values = sum(len(last[0]) for last in record.last)
    st.caption(
        f"**Recorded run.** The model was trained on each text alone. What changed in its "
        f"weights, {values:,} numbers, is the text's neural embedding. Press **Tune** to see it "
        "live."
    )
    _show_record(record, RECORDED, text)


def _show_finished(runs: Sequence[Run[RunRecord]], picked: Sequence[int]) -> None:
    """Show the results of finished runs for their chosen texts; at first the recorded one's."""
    if not runs:
        record = recorded_run()
        _let_the_browser_draw()
        try_deltas(record, ModelRef.from_id(record.model_id), RECORDED, picked[0])
        show_results(record, RECORDED, picked[0])
        return
    finished = [(run, text) for run, text in zip(runs, picked, strict=True) if run.is_over]
    if not finished:
        return
    newest, newest_text = finished[-1]
    try_deltas(newest.result, newest.task.model, f"run-{newest.id}", newest_text)
    for column, (run, text) in zip(st.columns(len(finished)), finished, strict=True):
        with column:
            show_results(run.result, f"run-{run.id}", text)


def _let_the_browser_draw() -> None:
    """Hold back what comes next until the first figures can be seen, once a session."""
    # the browser would first load megabytes of script for tables and static figures below them
    if "has-drawn" in st.session_state or not is_served():
        return
    with let_others_draw():
        for _ in range(20):
            pause(0.1)
    st.session_state["has-drawn"] = True


# --- a run, also while it goes on ----------------------------------------------------------------


def _show_run(run: Run[RunRecord], earlier: Run[RunRecord] | None, text: int) -> None:
    sentences = RunSentences(describe_stopped=_describe_stopped)
    st.subheader(f"Run {run.number}", anchor=False)
    if earlier is not None and not earlier.is_over:
        show_run_panel(RUNS, earlier, lambda *_: None, sentences=sentences)

    def draw(record: RunRecord, _live: bool) -> None:
        if record.started_texts:
            _show_record(record, f"run-{run.id}", text, run.number, earlier)

    show_run_panel(RUNS, run, draw, sentences=sentences)
    st.caption(plain(shorten(plots.describe_run(run.result).line, SETTINGS_LENGTH)))


def _describe_stopped(record: RunRecord) -> str:
    if not record.epochs_reached:
        return "Stopped before the first step."
    return f"Stopped. {headlines.describe_progress(record)}".rstrip()


def _show_record(
    record: RunRecord,
    key: str,
    text: int,
    run_number: int = 1,
    earlier_run: Run[RunRecord] | None = None,
) -> None:
    provenance = plots.describe_run(record, text)
    earlier, numbers = None, (run_number, 0)
    if earlier_run is not None and earlier_run.result.started_texts:
        earlier, numbers = earlier_run.result, (run_number, earlier_run.number)

    def draw_losses() -> go.Figure:
        pale = None if earlier is None else earlier.loss_curve(text)
        return plots.loss_figure(_select_curves(record, text), record.texts, text, pale, numbers)

    def draw_norms() -> go.Figure:
        pale = None if earlier is None else _select_norms(earlier, text)
        return plots.delta_norm_figure(_select_norms(record, text), pale, numbers)

    with slide(f"{key}-learning", plain(headlines.describe_learning(record, text))):
        _show_stage_texts(record, key, text)
        if earlier is not None:
            st.markdown(plain(headlines.compare_with_earlier(record, earlier, numbers)))
        _show_warnings(record)
        with st.container(key=f"tune-figures-{key}"):
            loss_column, norm_column = st.columns(2)
        dependencies = (record, text, earlier)
        with loss_column:
            _draw(draw_losses, dependencies, f"{key}-loss", "micro-tuning loss", provenance)
        with norm_column:
            _draw(draw_norms, dependencies, f"{key}-norm", "micro-tuning delta norm", provenance)
    if record.epochs_done(text):
        _show_neurons(record, key, text, provenance)


def _draw(
    make: Callable[[], go.Figure],
    dependencies: tuple[object, ...],
    key: str,
    name: str,
    provenance: About,
    height: int = HEIGHT,
) -> None:
    draw_live_figure(
        draw_once(key, dependencies, make),
        key=key,
        height=height,
        name=file_name(name, provenance),
        footer=provenance.line,
    )


def _select_curves(record: RunRecord, text: int) -> np.ndarray:
    """[text, epoch + 1] losses; of many texts, only those as far as the chosen text, else NaN."""
    curves = record.loss_curves()
    if len(curves) > plots.MAX_LINES:
        curves[np.setdiff1d(np.arange(len(curves)), record.texts_like(text))] = np.nan
    return curves


def _select_norms(record: RunRecord, text: int) -> plots.Norms:
    return plots.Norms(record.delta_norm[:, text], record.settings.layers)


def _show_stage_texts(record: RunRecord, key: str, text: int) -> None:
    """List the numbered texts on the stage, which hides the inputs of the page."""
    if len(record.texts) == 1:
        return
    rows = range(len(record.texts)) if len(record.texts) <= STAGE_TEXTS else [text]
    with show_only_on_stage(f"texts-{key}"):
        st.text(
            "\n".join(
                f"{i + 1}. {headlines.first_words(record.texts[i], STAGE_LETTERS)}" for i in rows
            )
        )


def _show_neurons(record: RunRecord, key: str, text: int, provenance: About) -> None:
    """The neurons of a layer, sorted by their delta."""
    names = plots.short_layer_names(record.settings.layers)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layer = st.selectbox(
            "Layer", range(len(names)), format_func=names.__getitem__, key=f"{key}-layer"
        )
        change = record.last[layer][text]
        with_all = len(change) > 2 * plots.EXTREME and st.toggle(
            f"All {len(change):,} neurons", key=f"{key}-every"
        )

    def draw_neurons() -> go.Figure:
        layer_name = record.settings.layers[layer]
        return plots.neurons_figure(record.delta(layer, text), layer_name, all_neurons=with_all)

    dependencies = (record, text, layer, with_all)
    _draw(draw_neurons, dependencies, f"{key}-delta", "micro-tuning neurons", provenance, 340)
    strongest = record.strongest_neurons(layer, text)
    listed = [f"**{neuron}** ({number(change[neuron], '+#.3g')})" for neuron in strongest]
    st.caption(f"Neurons that changed most: {', '.join(listed)}")


def _show_warnings(record: RunRecord) -> None:
    if record.diverged:
        st.warning(
            f"The run diverged on {name_texts(sorted(record.diverged))}: the loss became infinite "
            "or NaN. The last finite weights are shown. Lower the learning rate (the paper uses "
            "0.01)."
        )
    elif risen := [i for i in record.started_texts if record.loss_rose(i)]:
        st.warning(
            f"The loss of {name_texts(risen)} rose instead of falling. Lower the learning "
            "rate (the paper uses 0.01)."
        )
    foreign = [i for i, report in record.reports.items() if report.text.looks_foreign]
    if foreign:
        st.warning(
            f"Many words in {name_texts(foreign)} are not in the model's vocabulary, or are "
            "split into several tokens. For texts in another language, choose a model for that "
            "language; the bundled model is for English and ignores case."
        )
