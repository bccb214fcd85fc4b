"""The micro-tuning page below its title: texts, settings, *Tune*, and the runs of a session."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.embedders import EmbedderSpec, embedder_spec
from neuralviz.errors import NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.similarity import most_similar, similarity
from neuralviz.files import COMMON_VIEW
from neuralviz.headlines import COSINE_IN_SHORT
from neuralviz.headlines import micro_tuning as headlines
from neuralviz.jobs import Run
from neuralviz.jobs.micro_tuning import FillBlanks, TuneTexts
from neuralviz.micro_tuning.blanks import (
    MAX_SCALE,
    describe_blanks,
    describe_deltas,
    sentence_with_blank,
)
from neuralviz.micro_tuning.duration import estimate_seconds
from neuralviz.micro_tuning.events import RUN_FORMAT, FilledBlank, RunRecord
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    Blueprint,
    TuningSettings,
    check_numbers,
    check_tolerance,
    is_fast,
    parse_blueprints,
)
from neuralviz.models import BUNDLED, LanguageModel, TextModel, bundled, tokenize
from neuralviz.models.bundled import text_reader
from neuralviz.models.language_model import Layer, head_layers, last_block_layers, list_layers
from neuralviz.models.shared import ModelRef, find_held, shared_model
from neuralviz.paths import sample_data
from neuralviz.plots import micro_tuning as plots
from neuralviz.plots.compare import Layout, similarity_heatmap, text_names
from neuralviz.plots.report import About
from neuralviz.plots.theme import shorten
from neuralviz.ui import compare
from neuralviz.ui.address import (
    RUN,
    digest_of,
    is_lost,
    mark_lost,
    read_new,
    remember_number,
    visit_number,
    write,
)
from neuralviz.ui.choices import (
    REMEMBERED,
    choose_one,
    choose_precision,
    chosen_model_id,
    load_model_or_none,
)
from neuralviz.ui.downloads import offer_table
from neuralviz.ui.figures import allow_swiping, list_cells, show_figure, show_table
from neuralviz.ui.inputs import (
    ALL_EXAMPLES,
    View,
    ask_texts,
    load_view,
    put_texts_in_address,
    remember_texts,
    save_view,
)
from neuralviz.ui.limits import character_limit, is_served
from neuralviz.ui.pace import let_others_draw, pause
from neuralviz.ui.page import (
    USER_SOURCES,
    dim_old_results,
    hide_on_stage,
    is_tour_at,
    plain,
    point_to,
    result_view_id,
    show_error,
    show_headline,
    show_on_stage,
    show_only_on_stage,
    slide,
    wide_columns,
)
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import about_seconds, many, number, why_above_100

KEY = "micro-tuning"
RUNS = SessionRuns(KEY, kept=8, stops_former=False)
HEIGHT = 300  # px: leaves room for the blank below, on the first screen
SETTINGS_LENGTH = 300  # characters of the line below a run's figures
STAGE_LETTERS = 90  # of the chosen text, on one line of the stage
# session state: the shown runs, the newest one, and the run that a press has started in which visit
SHOWN_RUNS, NEWEST, PRESSED = "shown-runs", "micro-tuning-newest", "micro-tuning-pressed"
KEPT_RUNS = "micro-tuning-kept-runs"  # the address has those, unless it is that of the settings
RECORDED = "recorded"
LONG_TEXT = 1000  # characters, from which on the duration is estimated
LONG_RUN = 10.0  # seconds, from which on it is said
SHOWN_PRODUCTS = 100
BLANKS = SessionRuns("try-delta")
SENTENCE = "sentence"  # session state and address: the sentence with a blank
PATIENCE = 0.6  # seconds: enough to fill most sentences
NO_OTHER = -1
Chosen = tuple[str, tuple[str, ...], TuningSettings | None]  # a model's id, texts, settings
EXAMPLES: Mapping[str, Sequence[str]] = ALL_EXAMPLES["micro-tuning"]


def show() -> None:
    model_id = chosen_model_id()
    input_column, live_column = st.columns([3, 7], gap="large")
    with input_column, st.container(key="tune-inputs"):
        examples = {"Two banks": recorded_run().texts, **EXAMPLES}
        texts = ask_texts(KEY, examples, max_texts=1000).texts
        linked_runs = _recall_linked()
        settings = _ask_run(model_id, texts)
        visible_runs = _choose_runs(linked_runs, (model_id, tuple(texts), settings))
        records = [run.result for run, _ in visible_runs] or [recorded_run()]
        picked = [pick_text(record) for record in records]
    note = _describe_difference(records[-1], model_id, texts, settings)
    with live_column, st.container(key="tune-live"):
        if note:
            st.caption(note)
        with dim_old_results("tune", bool(note)):
            for place, column in enumerate(st.columns(len(picked))[: len(visible_runs)]):
                with column:
                    _show_run(*visible_runs[place], picked[place], place)
            if not visible_runs:
                st.caption("**Recorded run.**" + " Press **Tune** to see it live." * (not note))
                _show_record(recorded_run(), RECORDED, picked[0], 0)
    with dim_old_results("tune-after", bool(note)):
        _show_finished([run for run, _ in visible_runs], picked)
    newest = RUNS.last()
    pressed = st.session_state.get(PRESSED)
    if newest is not None and (newest.id, visit_number()) == pressed:  # on a narrow screen
        point_to(f".st-key-{KEY}-state-{newest.id}", is_framed=False)


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
    _announce_duration(model_id, layers, texts, settings)
    task = TuneTexts(ModelRef.from_id(model_id), tuple(texts), settings)
    if pressed:
        if st.session_state[f"{KEY}-source"] in USER_SOURCES:
            put_texts_in_address(KEY, texts)
        run = RUNS.start(task, again=True, view=result_view_id(KEY))
        st.session_state[PRESSED] = run.id, visit_number()
    is_example = model_id == BUNDLED and st.session_state[f"{KEY}-source"] == "Example"
    if not _restore(task) and is_example and is_tour_at("Micro-tuning"):  # without a press
        RUNS.start(task, again=True, view=COMMON_VIEW)
    return settings


def _announce_duration(
    model_id: str,
    layers: tuple[tuple[Layer, ...], int],
    texts: Sequence[str],
    settings: TuningSettings,
) -> None:
    """Say how long a run on long or many texts takes on this machine."""
    held = find_held("masked", model_id)
    has_gpu = held is not None and held.device.type != "cpu"
    if sum(map(len, texts)) < LONG_TEXT or has_gpu:
        return
    with suppress(TextError):  # of which the run tells
        seconds = _estimate_seconds(model_id, tuple(texts), repr(settings), settings, layers)
        if seconds >= LONG_RUN:
            st.info(
                f"This takes {about_seconds(seconds)} on this machine. You can stop at any time "
                "and keep what is finished.",
                icon=":material/schedule:",
            )


@st.cache_data(max_entries=8, show_spinner=False)
def _estimate_seconds(
    model_id: str,
    texts: tuple[str, ...],
    written_settings: str,  # which tell settings apart
    _settings: TuningSettings,
    _layers: tuple[tuple[Layer, ...], int],
) -> float:
    reader = text_reader() if model_id == BUNDLED else shared_model(model_id)
    return estimate_seconds(tokenize(reader, texts), _settings, *_layers)


def _restore(task: TuneTexts) -> bool:
    """Make the run of a task the last one; return whether there is one, or a recording."""
    is_recorded = _is_recorded((task.model.id, task.texts, task.settings))
    if is_recorded and RUN not in st.query_params:
        return True
    run = RUNS.recall(task, result_view_id(KEY))
    RUNS.name_in_address(run)
    return run is not None or is_recorded


def _is_recorded(chosen: Chosen) -> bool:
    """Whether the recorded run is the one of these settings, and no other one is there."""
    return not _describe_difference(recorded_run(), *chosen) and not _find_own(chosen)


def _find_own(chosen: Chosen) -> list[Run[RunRecord]]:
    """The last run of these settings, if there is one."""
    runs = RUNS.list_runs()
    return [
        run for run in runs if (run.task.model.id, run.task.texts, run.task.settings) == chosen
    ][-1:]


def _recall_linked() -> list[Run[RunRecord]] | None:
    """The runs that a just opened address names; None where the session state decides."""
    linked = read_new(SHOWN_RUNS)
    view_ids = linked.split(".") if linked else []
    runs = [run for view_id in view_ids if (run := _recall_kept(view_id))]
    if len(runs) < len(view_ids):
        mark_lost(SHOWN_RUNS)
    if is_lost(SHOWN_RUNS):
        st.warning("A run of this link is not saved here any more.")
    return None if linked is None else runs


def _keep_run(run: Run[RunRecord]) -> str:
    """The id under which a link finds a run; empty where its result is not kept."""
    kept: dict[str, str] = st.session_state.setdefault(KEPT_RUNS, {})
    if run.view and run.id not in kept:
        settings = json.dumps(asdict(run.task.settings))
        choices = (("model", run.task.model.id), ("settings", settings), ("view", run.view))
        with suppress(OSError):  # no link without a folder to keep it in
            kept[run.id] = save_view(View(run.task.texts, choices=choices))
    return kept.get(run.id, "")


def _recall_kept(view_id: str) -> Run[RunRecord] | None:
    view = load_view(view_id)
    if view is None:
        return None
    with suppress(ValueError, LookupError, TypeError, NeuralvizError):  # of another page
        choices = dict(view.choices)
        settings = json.loads(choices["settings"])
        blueprints = tuple(Blueprint(*pair) for pair in settings.pop("blueprints"))
        settings |= {name: tuple(settings[name]) for name in ("layers", "betas")}
        read = TuningSettings(**settings, blueprints=blueprints)
        return RUNS.recall(
            TuneTexts(ModelRef.from_id(choices["model"]), view.texts, read), choices["view"]
        )
    return None


# --- the settings -------------------------------------------------------------------------------


def find_layers(
    model_id: str, load: Callable[[str], TextModel] = shared_model
) -> tuple[tuple[Layer, ...], int] | None:
    """1-D parameters, none without a head, and vocabulary size; the bundled model is not loaded."""
    if model_id == BUNDLED:
        shapes = bundled.shapes()
        return list_layers(shapes, "bert"), shapes["cls.predictions.bias"][0]
    model = load_model_or_none(model_id, load)
    if isinstance(model, LanguageModel):
        return model.layers, model.vocab_size
    return None if model is None else ((), 0)


def list_presets(layers: Sequence[Layer], vocab_size: int) -> dict[str, tuple[str, ...]]:
    """Names of the layers that are often tuned together."""
    presets = {"Head": head_layers(layers, vocab_size), "Last block": last_block_layers(layers)}
    if presets["Last block"]:
        kind = next(layer.kind for layer in layers if layer.name == presets["Last block"][-1])
        presets["Every block"] = tuple(
            layer.name for layer in layers if layer.block is not None and layer.kind == kind
        )
    return {name: chosen for name, chosen in presets.items() if chosen}


def ask_settings(layers: Sequence[Layer], vocab_size: int) -> TuningSettings | None:
    """Ask for the settings of a run; None, with a message, where one is not valid."""
    with st.expander(
        "Settings", icon=":material/tune:", key="settings", on_change="rerun"
    ) as place:
        chosen = _choose_layers(layers, vocab_size)
        blueprints = st.text_input(
            "Blueprints (keep, mask)",
            "(2, 1), (1, 1), (1, 2), (1, 3)",
            key="blueprints",
            bind="query-params",
            help=(
                "(2, 1) keeps two tokens, masks the next one, and repeats. Each shift of this "
                "pattern gives one masked input. See the Masking blueprints page."
            ),
        )
        epochs, learning_rate = ask_epochs_and_rate("epochs", "learning_rate")
        precision = choose_precision("precision", "exact")
        tolerance = DEFAULT_TOLERANCE
        if is_fast(precision):
            tolerance = st.number_input(
                "Tolerance",
                value=DEFAULT_TOLERANCE,
                step=0.001,
                format="%g",
                key="tolerance",
                bind="query-params",
                help=(
                    "How far the cosine similarity of a fast embedding to the exact one "
                    "may fall below 1."
                ),
            )
        unmasked = st.toggle(
            "Predict all tokens without masking",
            key="unmasked",
            bind="query-params",
            help="The paper found that this works too, but less well.",
        )
    try:
        check_tolerance(tolerance)
        check_numbers(epochs, learning_rate, TuningSettings.weight_decay)
        if not chosen:
            raise SettingsError("Choose at least one layer.")
        settings = TuningSettings(
            chosen,
            epochs=epochs,
            learning_rate=learning_rate,
            blueprints=parse_blueprints(blueprints or ""),
            predict_unmasked=unmasked,
            precision=precision,
            tolerance=tolerance,
        )
    except NeuralvizError as error:
        show_error(error)
        return None
    if settings.precision != "exact" and not place.open:
        st.caption(f"Precision: {settings.precision_in_words}.")
    return settings


def ask_epochs_and_rate(epochs_key: str, rate_key: str) -> tuple[int, float]:
    epochs = st.number_input(
        "Epochs",
        value=TuningSettings.epochs,
        step=1,
        key=epochs_key,
        **REMEMBERED,
        help="Number of passes over all masked inputs of a text, from 1 to 1000.",
    )
    learning_rate = st.number_input(
        "Learning rate",
        value=TuningSettings.learning_rate,
        step=0.005,
        format="%g",
        key=rate_key,
        **REMEMBERED,
        help="AdamW's learning rate. The paper uses 0.01.",
    )
    return epochs, learning_rate


def _choose_layers(layers: Sequence[Layer], vocab_size: int) -> tuple[str, ...]:
    presets = list_presets(layers, vocab_size)
    first = next(iter(presets), "Choose")
    preset = choose_one(st.pills, "Layers", [*presets, "Choose"], default=first, key="layers")
    if preset != "Choose":
        st.caption(plain(", ".join(headlines.short_layer_names(presets[preset]))))
        return presets[preset]
    labels = {layer.name: f"{layer.block_name} · {layer.kind} ({layer.size:,})" for layer in layers}
    return tuple(
        st.multiselect(
            "Layers (1-D parameters), by block",
            list(labels),
            default=list(presets.get(first, ())),
            format_func=labels.__getitem__,
            key="chosen-layers",
            bind="query-params",
            help=(
                "The key biases of attention cannot change the model's output; their delta "
                "is noise."
            ),
        )
    )


# --- what is shown -------------------------------------------------------------------------------


def _choose_runs(
    linked: list[Run[RunRecord]] | None,  # see `_recall_linked`
    settings: Chosen,
) -> list[tuple[Run[RunRecord], Run[RunRecord] | None]]:
    """The runs to show, two at most, each with the earlier run that it is drawn over, if any.

    None for the recorded run.
    """
    runs: list[Run[RunRecord]] = RUNS.list_runs()
    saved, is_recorded = _find_own(settings), _is_recorded(settings)
    newest = RECORDED if is_recorded or not runs else runs[-1].id
    if linked is not None or st.session_state.get(NEWEST) != newest:
        first = [run for run in runs[-2:] if run is runs[-1] or _can_be_overlaid(run, runs[-1])]
        listed = [] if is_recorded else first
        if linked is not None:
            listed = linked or saved
        st.session_state[SHOWN_RUNS] = [run.number for run in listed]
        st.session_state[NEWEST] = newest
    if len(runs) + is_recorded > 1:
        st.pills(
            "Runs",
            sorted(run.number for run in runs),
            selection_mode="multi",
            format_func=lambda number: f"Run {number}",
            key=SHOWN_RUNS,
            persist_state="session",
            help="Two runs on the same texts are drawn in one figure, others side by side.",
        )
    chosen = [run for run in runs if run.number in st.session_state[SHOWN_RUNS]][-2:]
    if not chosen and not is_recorded:
        chosen = runs[-1:]
    write({SHOWN_RUNS: "" if chosen == saved else ".".join(filter(None, map(_keep_run, chosen)))})
    if len(chosen) == 2 and _can_be_overlaid(*chosen):
        return [(chosen[1], chosen[0])]
    return [(run, None) for run in chosen]


def _can_be_overlaid(earlier: Run[RunRecord], run: Run[RunRecord]) -> bool:
    a, b = earlier.result, run.result
    return (a.model_id, a.texts) == (b.model_id, b.texts) and (
        a.settings != b.settings or earlier.status != "done"
    )


def _describe_difference(
    record: RunRecord, model_id: str, texts: Sequence[str], settings: TuningSettings | None
) -> str:
    """A sentence where the figures are not of what the widgets hold; else empty."""
    of_record = record.model_id, record.texts, record.settings
    if (model_id, tuple(texts), settings) == of_record:
        return ""
    sentence = "These figures belong to other texts or settings, or to another model."
    return sentence if settings is None else f"{sentence} Press **Tune** to update them."


@st.cache_resource(max_entries=1, show_spinner=False)
def recorded_run() -> RunRecord:
    """The run of the first example with default settings, from ``scripts/record_run.py``."""
    return RUN_FORMAT.unpack((sample_data() / "recorded_run.npz").read_bytes())


def _show_finished(runs: Sequence[Run[RunRecord]], picked: Sequence[int]) -> None:
    """Show the results of finished runs for their chosen texts; at first the recorded one's."""
    finished = [
        (run.result, run.task.model, f"run-{run.id}", text)
        for run, text in zip(runs, picked, strict=False)
        if run.is_over
    ]
    if not runs:
        record = recorded_run()
        finished = [(record, ModelRef.from_id(record.model_id), RECORDED, picked[0])]
    if finished:
        try_deltas(*finished[-1])
        if not runs:
            _let_the_browser_draw()
        for column, (record, _, key, text) in zip(st.columns(len(finished)), finished, strict=True):
            with column:
                show_results(record, key, text)


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


def _show_run(run: Run[RunRecord], earlier: Run[RunRecord] | None, text: int, place: int) -> None:
    st.subheader(f"Run {run.number}", anchor=False)
    if earlier is not None and not earlier.is_over:
        show_run_panel(RUNS, earlier, lambda *_: None)

    def draw(record: RunRecord, _live: bool) -> None:
        if record.started_texts or record.parts:
            _show_record(record, f"run-{run.id}", text, place, run.number, earlier)

    show_run_panel(RUNS, run, draw)
    settings = {"model": run.task.model.id, **headlines.describe_settings(run.task.settings)}
    st.caption(plain(shorten(About(settings=settings).line, SETTINGS_LENGTH)))


def _show_record(
    record: RunRecord,
    key: str,
    text: int,
    place: int,  # from 0, of runs side by side
    run_number: int = 1,
    earlier_run: Run[RunRecord] | None = None,
) -> None:
    earlier, numbers = None, (run_number, 0)
    if earlier_run is not None and earlier_run.result.started_texts:
        earlier, numbers = earlier_run.result, (run_number, earlier_run.number)
    with slide(f"{key}-learning", plain(headlines.describe_learning(record, text))):
        with show_only_on_stage(f"text-{key}"):
            _explain_tuning(record, text)
        if earlier is not None:
            st.markdown(plain(headlines.compare_with_earlier(record, earlier, numbers)))
        for warning in headlines.describe_warnings(record):
            st.warning(plain(warning))
        figure = plots.loss_figure(record, text, earlier, numbers)
        _draw(figure, record, text, f"{key}-loss", "loss")
    key_of_more = f"tune-more-{place + 1}"
    if record.epochs_done(text) and st.toggle("More figures", key=key_of_more, **REMEMBERED):
        figure = plots.delta_norm_figure(record, text, earlier, numbers)
        with slide(f"{key}-norms"):
            _draw(figure, record, text, f"{key}-norm", "delta norm")
        _show_neurons(record, key, text, place)
        if text in record.reports:
            _show_predictions(record, key, text, place)


def _explain_tuning(record: RunRecord, text: int) -> None:
    explained = headlines.explain_tuning(record.settings)
    if len(record.texts) > 1:
        beginning = headlines.first_words(record.texts[text], STAGE_LETTERS)
        explained += plain(f"  \nText {text + 1}: {beginning}")
    st.markdown(explained)


def _draw(
    figure: go.Figure, record: RunRecord, text: int, key: str, name: str, height: int = HEIGHT
) -> None:
    provenance = plots.describe_run(record, text)
    show_figure(figure, f"micro-tuning {name}", None, provenance, key=key, height=height)


def _show_neurons(record: RunRecord, key: str, text: int, place: int) -> None:
    """The neurons of a layer, sorted by their delta."""
    names, of_layer = headlines.short_layer_names(record.settings.layers), f"tune-layer-{place + 1}"
    remember_number(of_layer, range(len(names)), 0, names)
    layer = st.selectbox("Layer", range(len(names)), format_func=names.__getitem__, key=of_layer)
    figure = plots.neurons_figure(record.delta(layer, text), record.settings.layers[layer])
    _draw(figure, record, text, f"{key}-delta", "neurons", 340)
    change = record.last[layer][text]
    strongest = record.strongest_neurons(layer, text)
    listed = [f"**{neuron}** ({number(change[neuron], '+#.3g')})" for neuron in strongest]
    st.caption(f"Neurons that changed most: {', '.join(listed)}")


def pick_text(record: RunRecord) -> int:
    """Ask for a text of a run; other runs on the same texts keep the choice."""
    if len(record.texts) == 1:
        return 0
    key = f"look-at-{digest_of(repr(record.texts))}"  # runs side by side have texts of their own
    remember_number(key, range(len(record.texts)), 0, record.texts)
    return st.selectbox(
        "Look at text",
        range(len(record.texts)),
        format_func=lambda i: f"{i + 1}. {shorten(record.texts[i], 60)}",
        key=key,
        persist_state="session",
    )


def show_results(record: RunRecord, key: str, text: int) -> None:
    """Show a text of a run that is over: word shares, cosine similarities, downloads."""
    if not record.started_texts:
        return
    if text in record.reports:
        _show_shares(record, key, text)
    else:
        st.caption("Which words changed the weights is known only once a run has finished.")
    if text in record.started_texts and len(record.texts_like(text)) > 1:
        _show_products(record, key, text)
    tables = {
        "Embeddings": ("neural embeddings", list_embeddings),
        "Losses": ("micro-tuning losses", list_losses),
        "Norms of the deltas": ("micro-tuning delta norms", list_norms),
    }
    provenance = plots.describe_run(record)
    for label, (name, make) in tables.items():
        offer_table(label, partial(make, record), name, place=f"{key}-loss", provenance=provenance)


def _show_shares(record: RunRecord, key: str, text: int) -> None:
    report = record.reports[text]
    if report.shares is None:
        st.caption(
            "Word shares are not available for long texts, for the output layer's bias, or where "
            "the words' parts of the change nearly cancel."
        )
        return
    words, shares, unknown = report.words
    labels = [f"{word} (?)" if is_so else word for word, is_so in zip(words, unknown, strict=True)]
    with slide(f"{key}-words", plain(headlines.describe_words(record, text))):
        with show_only_on_stage(f"embedding-{key}"):
            against = " Words below 0 worked against this change."
            is_against = bool(min(shares) < -headlines.VISIBLE)
            st.markdown(headlines.EMBEDDING_IN_SHORT + against * is_against)
        with allow_swiping(f"{key}-shares-wide", plots.shares_width(labels)):
            show_figure(
                plots.shares_figure(labels, shares),
                f"word shares of text {text + 1}",
                pd.DataFrame({"word": words, "share": shares, "unknown": unknown}),
                plots.describe_run(record, text),
                key=f"{key}-shares",
                height=400,
            )
    decay = number(report.decay_share, ",.1%")
    notes = [
        f"The shares of all words and of weight decay ({decay}) sum to 100%.",
        why_above_100([*shares, report.decay_share]),
    ]
    if unknown.any():
        notes.append("Words marked (?) are not in the vocabulary.")
    if record.settings.in_bf16:
        notes.append("Rounding to bfloat16 changes these shares far more than the embedding.")
    st.caption(plain(" ".join(filter(None, notes))))


def _show_predictions(record: RunRecord, key: str, text: int, place: int) -> None:
    report = record.reports[text]
    before, after = report.before, report.after
    title = "What the model predicts at the masked positions"
    st.markdown(f"**{title}**")
    table = pd.DataFrame(
        {
            "masked input": before.input + 1,
            "masked token": [f"“{report.text.piece(token)}”" for token in before.token],
            "probability before": before.probability * 100,
            "probability after": after.probability * 100,
            "top predictions before": before.top_words,
            "top predictions after": after.top_words,
        }
    )
    show_table(
        table,
        f"{key}-predictions",
        name=f"tune-predictions-{place + 1}",  # a run's id differs from visit to visit
        title=title,
        height=320,
        column_config={
            name: st.column_config.ProgressColumn(name, format="%.1f%%", min_value=0, max_value=100)
            for name in ("probability before", "probability after")
        },
    )
    share = (after.probability > before.probability).mean()
    n_positions = many(len(before), "masked position")
    st.caption(f"The probability of the masked token rose at {share:.0%} of {n_positions}.")


def _show_products(record: RunRecord, key: str, text: int) -> None:
    """Cosine similarities of ``text`` and the other texts that have had as many epochs."""
    alike = record.texts_like(text)
    shown_texts = alike[:SHOWN_PRODUCTS]
    vectors = record.embeddings()[np.searchsorted(record.started_texts, shown_texts)]
    labels, names = [record.texts[i] for i in shown_texts], text_names(record.texts)
    products = similarity("Cosine similarity of the embeddings", labels, vectors)
    layout = Layout([names[i] for i in shown_texts], np.arange(len(shown_texts)))
    if len(shown_texts) < len(alike):
        st.caption(f"Showing the first {len(shown_texts)} of {len(alike):,} texts.")
    table = pd.DataFrame(products.products, columns=[f"text {i + 1}" for i in shown_texts])
    table.insert(0, "text", labels)
    with slide(f"{key}-similar", plain(headlines.describe_similar(products, shown_texts))):
        pairs = most_similar(products)
        named = [shown_texts[place] for place in pairs[0]] if len(pairs) == 1 else []
        with show_only_on_stage(f"cosine-{key}"):
            colours = "Colours span only the values shown. " * (len(shown_texts) > 2)
            colours += "Empty: a text with itself."
            st.markdown(f"{headlines.EMBEDDING_IN_SHORT} {COSINE_IN_SHORT} {colours}")
            compare.show_beginnings(record.texts, named)
        texts = [record.texts[place] for place in named]
        compare.offer_reasons(texts, [find_method(record)], key)
        show_figure(
            similarity_heatmap(products, layout),
            "products of neural embeddings",
            table,
            plots.describe_run(record),
            key=f"{key}-products",
            height=min(720, 200 + 60 * len(shown_texts)),
        )


# --- tables to download --------------------------------------------------------------------------


def list_losses(record: RunRecord) -> pd.DataFrame:
    """A row for every number of epochs from 0; unknown losses are empty."""
    started = record.started_texts
    losses = record.loss_curves()[started].T
    table = pd.DataFrame(losses, columns=[f"text {i + 1}" for i in started])
    table.insert(0, "epoch", np.arange(len(losses)))
    return table


def list_norms(record: RunRecord) -> pd.DataFrame:
    """A row for every started text and finished epoch, a column for every layer."""
    started = record.started_texts
    names = headlines.short_layer_names(record.settings.layers)
    norms = record.delta_norm[:, started].transpose(1, 0, 2)  # [text, epoch, layer]
    axes = {"text": [i + 1 for i in started], "epoch": range(1, norms.shape[1] + 1)}
    values = {name: norms[:, :, i] for i, name in enumerate(names)}
    return list_cells(axes, **values).dropna()


def list_embeddings(record: RunRecord) -> pd.DataFrame:
    """A row for every started text: its id, epochs and embedding."""
    started = record.started_texts
    return pd.DataFrame(
        {
            "id": [str(i + 1) for i in started],
            "text": [record.texts[i] for i in started],
            "epochs": [record.epochs_done(i) for i in started],
            "vector": list(record.embeddings()),
        }
    )


# --- the run as a method of other pages --------------------------------------------------------


def find_method(record: RunRecord) -> EmbedderSpec:
    """The run as a method that embeds texts."""
    settings = record.settings
    # a page must not load another model to know its presets
    layers = find_layers(BUNDLED) if record.model_id == BUNDLED else None
    presets = list_presets(*layers) if layers is not None else {}
    typed = {presets.get("Head"): "head", presets.get("Last block"): "last_block"}
    options = {
        "layers": typed.get(settings.layers, ",".join(settings.layers)),
        "model": record.model_id,
        "blueprints": ", ".join(map(str, settings.blueprints)),
        "predict_unmasked": "yes" if settings.predict_unmasked else "no",
        "precision": settings.precision,
        "learning_rate": str(settings.learning_rate),
        "epochs": str(settings.epochs),
    }
    if settings.is_fast:
        options["tolerance"] = str(settings.tolerance)
    return embedder_spec("neural", options)


# --- blanks that the model fills, before and after -----------------------------------------------


def try_deltas(record: RunRecord, model: ModelRef, key: str, text: int) -> None:
    """A sentence with blanks, filled by the run's model before and after tuning on a text."""
    if text not in record.started_texts:
        return
    report = record.reports.get(text)
    first = sentence_with_blank(record.texts[text], report)
    remember_texts(SENTENCE, {SENTENCE: first}, (record.texts, text))
    # a finished run has the answer for the sentence that comes with it; for others the model is
    # loaded, the bundled one unasked
    is_asked = st.session_state.get(f"{key}-predict", False) or model.id == BUNDLED
    is_first = st.session_state[SENTENCE] == first
    blank = report.blank if report is not None and is_first else None
    is_answered = blank or is_asked or find_held("masked", record.model_id) is not None
    with slide(f"{key}-try") if is_answered else st.container():  # an empty slide shows nothing
        hide_on_stage(f"know-{key}").subheader("What does it know now?", anchor=False)
        with show_on_stage("try"), st.container(horizontal=True, vertical_alignment="bottom"):
            sentence = st.text_input(
                "A sentence with a blank: ___",
                max_chars=character_limit(),
                key=SENTENCE,
                persist_state="session",
                help="Any sentence, also one that is not in the text. Write ___ for each blank.",
            )
            pressed = st.button("Predict", icon=":material/psychology:", key=f"{key}-predict")
        answer = st.container()
        is_part = is_first and len(first) + headlines.LONGEST_WORD < len(record.texts[text])
        read = f"… {sentence} …" if is_part else sentence
        scaled = _ask_scales(record, text)
        deltas = tuple(record.text_delta(source) for _, source in scaled)
        task = FillBlanks(model, sentence or "", key, tuple(scaled), deltas)
        draw = partial(_draw_blanks, record, key, sentence or "", read, scaled)
        sentences = RunSentences(start="Reading the sentence …", done="")
        with answer:
            if blank and scaled == [(1.0, text)]:
                draw((blank,), False)
            elif is_answered or BLANKS.find(task) is not None:
                run = BLANKS.start(task, again=pressed)
                show_run_panel(BLANKS, run, draw, sentences=sentences, patience=PATIENCE)
            else:
                st.caption("Press **Predict** to see what the model puts into the blank.")


def _ask_scales(record: RunRecord, text: int) -> list[tuple[float, int]]:
    """Sliders for the deltas to add: pairs of a scale and a text."""

    def ask_scale(place: DeltaGenerator, text: int, key: str) -> None:
        label = "× the delta" if len(record.texts) == 1 else f"× the delta of text {text + 1}"
        scale = place.slider(label, -MAX_SCALE, MAX_SCALE, 1.0, 0.1, key=key, bind="query-params")
        scaled.append((scale, text))

    scaled: list[tuple[float, int]] = []
    first, middle, last = st.columns(3, vertical_alignment="bottom")
    ask_scale(first, text, "delta-scale")
    names = {NO_OTHER: "no other text"}
    names |= {
        i: f"{i + 1}. {shorten(record.texts[i], 40)}" for i in record.started_texts if i != text
    }
    if len(names) > 1:
        key, numbers = "other-delta", range(NO_OTHER, len(record.texts))
        if remember_number(key, numbers, NO_OTHER, (record.texts, text)) not in names:
            st.session_state[key] = NO_OTHER
        second = middle.selectbox(
            "Add the delta of",
            list(names),
            format_func=names.__getitem__,
            key=key,
            persist_state="session",
        )
        if second != NO_OTHER:
            ask_scale(last, second, "other-delta-scale")
    return scaled


def _draw_blanks(
    record: RunRecord,
    key: str,
    sentence: str,
    read: str,  # of the audience
    scaled: list[tuple[float, int]],
    blanks: tuple[FilledBlank, ...] | None,
    _live: bool,
) -> None:
    if blanks is None:
        return
    action = describe_deltas(scaled, len(record.texts))
    show_headline(plain(describe_blanks(blanks, action)), key=f"{key}-try")
    with show_only_on_stage(f"sentence-{key}"):
        _explain_tuning(record, scaled[0][1])
        st.text(f"The blank{'s' * (len(blanks) > 1)}: {read}")
    of_run = plots.describe_run(record)
    provenance = About(
        "What does it know now?",
        {"sentence": sentence, "after": action, **of_run.settings},
        files=(sentence, *of_run.files[1:]),
    )
    show_blanks(blanks, provenance, key)


def show_blanks(blanks: Sequence[FilledBlank], provenance: About, key: str) -> None:
    """Figures side by side of what the model puts into each blank, before and after."""
    columns = wide_columns(len(blanks), f"{key}-blanks")  # high enough for the stage
    for place, (blank, column) in enumerate(zip(blanks, columns, strict=True), 1):
        name = f"blank {place}" if len(blanks) > 1 else "the blank"
        rows = [(row.token, row.before, row.after, row.change) for row in blank.candidates]
        with column:
            show_figure(
                plots.blank_figure(blank, f"What the model puts into {name}"),
                f"blank {place}",
                pd.DataFrame(rows, columns=["token", "before", "after", "change"]),
                provenance,
                key=f"{key}-blank-{place}",
            )
