"""What the micro-tuning page shows of its runs, while they go on and after."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.jobs.queue import Job, job_queue
from neuralviz.micro_tuning import TuningSettings, parse_blueprints
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.micro_tuning.record_file import load_record
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    Precision,
    check_numbers,
    check_tolerance,
)
from neuralviz.micro_tuning.watching import watch
from neuralviz.models import BUNDLED, bundled
from neuralviz.models.language_model import head_layers, last_block_layers, layers_of
from neuralviz.paths import sample_data
from neuralviz.plots.micro_tuning import (
    delta_heatmap,
    delta_norm_figure,
    loss_figure,
    products_figure,
    shares_figure,
    shares_width,
    short_layer_names,
)
from neuralviz.plots.theme import shorten
from neuralviz.store.writing import frame_csv
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.job_panel import job_panel
from neuralviz.ui.live_figure import live_figure
from neuralviz.ui.model_choice import load_for_app, model_or_none
from neuralviz.ui.page import plain
from neuralviz.ui.session import is_here, is_served, session_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.models.language_model import Layer

RECORDED_RUN = "recorded_run.npz"
LIVE_SECONDS = 0.4
FIRST_FIGURES_SECONDS = 2.0
KEPT_RUNS = 8
MAX_UNFINISHED = 4
DOUBLE_CLICK_SECONDS = 1.0
FOLD_EVERY = 100  # events; a page that is not looked at leaves no more of them unfolded
LONG_WORK_SECONDS = 60
MASKED_TOKENS_PER_SECOND = 4000  # and epoch; on two cores, the bundled model's head, exact
FAST_EPOCH = 0.15  # of an exact one, from the second on
SHORT_WORK = 20_000  # characters times epochs: needs no announcement
SHOWN_PRODUCTS = 100


@dataclass
class Run:
    """A run of this browser session: its job and what has been seen of it."""

    number: int
    record: RunRecord
    job: Job = field(init=False)
    submitted: float = field(default_factory=time.monotonic)
    _folding: threading.Lock = field(default_factory=threading.Lock)

    def has_just_begun(self) -> bool:
        """Whether the next click on *Tune* may be the second of a double click."""
        age = time.monotonic() - self.submitted
        return age < DOUBLE_CLICK_SECONDS and not self.job.is_over

    def catch_up(self, job: Job) -> None:
        """Fold the job's events that have come since; the page does it, or else the worker."""
        with self._folding:
            for event in job.take():
                self.record.add(event)


# --- before a run ------------------------------------------------------------------------------


def layers_to_choose_from(model_id: str) -> tuple[tuple[Layer, ...], int] | None:
    """1-D parameters and vocabulary size; of the bundled model without loading it.

    None when the model cannot be had yet; the page has said so.
    """
    if model_id == BUNDLED:
        shapes = bundled.shapes()
        return layers_of(shapes, "bert"), shapes["cls.predictions.bias"][0]
    model = model_or_none(model_id)
    return None if model is None else (model.layers, model.vocab_size)


def layer_choice(layers: Sequence[Layer], vocab_size: int) -> tuple[str, ...]:
    """Widgets for the layers to tune; the names of the chosen ones."""
    presets = _presets(layers, vocab_size)
    first = next(iter(presets), "Choose")
    preset = st.pills(
        "Layers",
        [*presets, "Choose"],
        default=first,
        required=True,
        key="layers",
        bind="query-params",
    )
    if preset != "Choose":
        chosen = presets[preset or first]
        st.caption(plain(", ".join(short_layer_names(chosen))))
        return chosen
    by_name = {layer.name: layer for layer in layers}
    return tuple(
        st.multiselect(
            "1-D parameters, by block",
            list(by_name),
            default=list(presets.get(first, ())),
            format_func=lambda name: _in_words(by_name[name]),
            key="chosen-layers",
            bind="query-params",
            help="Attention's key biases cannot change what the model says: their delta is noise.",
        )
    )


def _in_words(layer: Layer) -> str:
    place = layer.part if layer.block is None else f"block {layer.block}"
    return f"{place} · {layer.kind} ({layer.size:,})"


def _presets(layers: Sequence[Layer], vocab_size: int) -> dict[str, tuple[str, ...]]:
    presets = {"Head": head_layers(layers, vocab_size), "Last block": last_block_layers(layers)}
    if presets["Last block"]:
        last = next(la for la in layers if la.name == presets["Last block"][-1])
        presets["Every block"] = tuple(
            la.name for la in layers if la.block is not None and la.kind == last.kind
        )
    return {name: chosen for name, chosen in presets.items() if chosen}


def run_settings(
    layers: Sequence[str],
    blueprints: str,
    epochs: int,
    learning_rate: float,
    unmasked: bool,
    precision: Precision = "exact",
    tolerance: float = DEFAULT_TOLERANCE,
) -> TuningSettings:
    """The settings of a run, from what the widgets hold.

    Raises:
        SettingsError: one makes no sense.
    """
    check_numbers(epochs, learning_rate, TuningSettings.weight_decay)
    check_tolerance(tolerance)
    if not layers:
        raise SettingsError("Choose at least one layer to tune.")
    return TuningSettings(
        layers=tuple(layers),
        blueprints=parse_blueprints(blueprints),
        epochs=epochs,
        learning_rate=learning_rate,
        predict_unmasked=unmasked,
        precision=precision,
        tolerance=tolerance,
    )


def say_how_long(texts: Sequence[str], settings: TuningSettings) -> None:
    """A sentence on work that will take minutes, before it starts."""
    if sum(map(len, texts)) * settings.epochs < SHORT_WORK:
        return
    reader = bundled.text_reader().encoder
    n_tokens = sum(map(len, reader.encode_batch(list(texts), add_special_tokens=False)))
    # a period of k + m shifts masks every token m times
    times_masked = sum(blueprint.mask for blueprint in settings.blueprints)
    if settings.predict_unmasked:
        times_masked = 1
    epochs = 1 + (settings.epochs - 1) * (FAST_EPOCH if settings.is_fast else 1)
    seconds = n_tokens * times_masked * epochs / MASKED_TOKENS_PER_SECOND
    if seconds > LONG_WORK_SECONDS:
        minutes = math.ceil(seconds / 60)
        st.info(
            f"{n_tokens:,} tokens: about {minutes} minutes of work on two cores with the "
            "bundled model. You can stop at any time and keep what was learnt.",
            icon=":material/schedule:",
        )


def submit_run(model_id: str, texts: Sequence[str], settings: TuningSettings) -> None:
    """Queue a run; the second click of a double click is none.

    Raises:
        SettingsError: too many runs of this session are waiting.
    """
    runs: list[Run] = st.session_state.setdefault("runs", [])
    record = RunRecord(model_id, settings, texts)
    if runs and runs[-1].has_just_begun():
        last = runs[-1].record
        if (last.model_id, last.settings, last.texts) == (model_id, settings, record.texts):
            return
    if sum(not run.job.is_over for run in runs) >= MAX_UNFINISHED:
        raise SettingsError(
            f"{MAX_UNFINISHED} runs of yours are not over yet; stop one or wait for it."
        )

    def work(job: Job) -> None:
        model = load_for_app(model_id)
        for number, watched in enumerate(watch(model, texts, settings, job.should_stop), 1):
            job.add(watched)
            if number % FOLD_EVERY == 0:
                run.catch_up(job)

    run = Run(runs[-1].number + 1 if runs else 1, record)
    run.job = job_queue().submit(f"Run {run.number}", work, is_here(session_id()))
    runs.append(run)
    over = [run for run in runs if run.job.is_over]
    for run in over[: max(0, len(runs) - KEPT_RUNS)]:
        runs.remove(run)
    st.session_state["shown-runs"] = [run.number for run in runs[-2:]]


# --- runs --------------------------------------------------------------------------------------


def runs_panel() -> None:
    """The runs of this session, two beside each other; before the first, a recorded one."""
    runs: list[Run] = st.session_state.get("runs", [])
    if not runs:
        _show_recorded_run()
        return
    if len(runs) > 1:
        st.pills(
            "Runs",
            [run.number for run in runs],
            selection_mode="multi",
            format_func=lambda number: f"Run {number}",
            key="shown-runs",
        )
    shown = [run for run in runs if run.number in st.session_state.get("shown-runs", [])][-2:]
    for column, run in zip(st.columns(max(1, len(shown))), shown, strict=False):
        with column:
            live = not run.job.is_over
            panel = st.fragment(_run_panel, run_every=LIVE_SECONDS if live else None)
            panel(run, live, wide=len(shown) == 1)


def _show_recorded_run() -> None:
    st.subheader("A recorded run", anchor=False)
    st.caption(
        "The bundled model on three sentences, exact, as the settings stand at the start. "
        "Press **Tune** to see it learn the texts above, live."
    )
    text = _show_record(recorded_run(), "recorded", wide=True)
    _let_the_browser_draw()
    _after(recorded_run(), "recorded", text)


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


def _run_panel(run: Run, live: bool, *, wide: bool) -> None:
    """One run; drawn again every few tenths of a second while it goes on."""
    run.catch_up(run.job)
    if live and run.job.is_over:
        st.rerun()
    record = run.record
    st.subheader(f"Run {run.number}", anchor=False)
    st.caption(plain(_about(record)))
    _state(run)
    if record.started():
        key = f"run-{run.number}"
        text = _show_record(record, key, wide=wide)
        if not live:
            _after(record, key, text)


def _about(record: RunRecord) -> str:
    n = len(record.texts)
    s = record.settings
    masks = "nothing masked" if s.predict_unmasked else ", ".join(map(str, s.blueprints))
    return (
        f"{n:,} text{'s' * (n != 1)}, {s.epochs} epoch{'s' * (s.epochs != 1)} at a learning rate "
        f"of {s.learning_rate:g}, {len(s.layers)} layer{'s' * (len(s.layers) != 1)}, {masks}; "
        f"{record.model_id}, {s.precision_in_words}"
    )


def _state(run: Run) -> None:
    """Progress with *Stop*, place in the queue, or how the run ended."""
    job, record = run.job, run.record
    n = len(record.texts)
    what = f"step {record.steps_done} of {record.steps}"
    if n > 1:
        what = f"{record.texts_done:,} of {n:,} texts, {what}"
    what += _time_left(job.seconds, record.progress)
    how_far = f" after {record.progress:.0%}" if record.steps else ""
    job_panel(
        job,
        key=f"stop-{run.number}",
        share=record.progress,
        doing=what if record.steps else "Getting the model ready …",
        stopped=f"Stopped{how_far}. What was learnt until then is kept.",
    )


def _time_left(seconds: float, progress: float) -> str:
    """How long a run that is under way will still take, once that can be told."""
    left = seconds / progress - seconds if progress else 0.0
    if seconds < 5 or left < 10:
        return ""
    return f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"


def _show_record(record: RunRecord, key: str, *, wide: bool) -> int:
    """What a run shows while it goes on, and the text that is looked at.

    ``wide`` puts figures beside each other.
    """
    _warnings(record)
    places = st.columns(2) if wide else [st.container(), st.container()]
    with places[0]:
        text = _pick_text(record, key)
        figure = loss_figure(record.loss_curves(), record.texts)
        live_figure(figure, key=f"{key}-loss", height=380, name="loss")
    with places[1]:
        layer = _pick_layer(record, key)
        figure = delta_norm_figure(
            record.delta_norm[:, text], record.settings.layers, record.epochs_learnt(text)
        )
        live_figure(figure, key=f"{key}-norm", height=380, name="delta-norm")
    strongest = record.strongest_neurons(layer, text)
    moved = record.last[layer][text, strongest]
    figure = delta_heatmap(
        record.delta(layer, text), record.settings.layers[layer], strongest, moved
    )
    live_figure(figure, key=f"{key}-delta", height=340, name="delta")
    st.caption(
        "Strongest neurons: "
        + ", ".join(
            f"**{neuron}** ({by:+.3g})" for neuron, by in zip(strongest, moved, strict=True)
        )
    )
    return text


def _pick_text(record: RunRecord, key: str) -> int:
    return st.selectbox(
        "Text",
        record.started(),
        format_func=lambda i: f"{i + 1}. {shorten(record.texts[i], 60)}",
        key=f"{key}-text",
    )


def _pick_layer(record: RunRecord, key: str) -> int:
    names = short_layer_names(record.settings.layers)
    return st.selectbox(
        "Layer", range(len(names)), format_func=lambda i: names[i], key=f"{key}-layer"
    )


def _warnings(record: RunRecord) -> None:
    """What a person should know before believing the figures."""
    if record.diverged:
        which = _numbers(record.diverged)
        st.warning(
            f"The loss of text {which} ceased to be a number: the learning rate is too high. The "
            "last finite weights are kept; the paper's learning rate is 0.01."
        )
    elif rose := [i for i in record.started() if record.loss_rose(i)]:
        st.warning(
            f"The loss of text {_numbers(rose)} rose: the learning rate is too high for the model "
            "to learn. The paper's is 0.01."
        )
    foreign = [i for i, report in record.reports.items() if report.text.looks_foreign]
    if foreign:
        st.warning(
            f"Many words of text {_numbers(foreign)} are not in the model's vocabulary, or only in "
            "pieces. Is it in another language? The bundled model is for English and reads "
            "everything in lower case."
        )


def _numbers(texts: Sequence[int] | set[int]) -> str:
    first = ", ".join(str(i + 1) for i in sorted(texts)[:5])
    return first + (" and others" if len(texts) > 5 else "")


def _after(record: RunRecord, key: str, text: int) -> None:
    """What can be said when a text is learnt: who wrote the delta, predictions, products."""
    report = record.reports.get(text)
    if report is not None:
        _shares(record, key, text)
        _predictions(record, key, text)
    started = record.started()
    if len(started) > 1:
        shown = started[:SHOWN_PRODUCTS]
        vectors = record.embeddings()[: len(shown)]
        products = vectors @ vectors.T
        labels = [record.texts[i] for i in shown]
        if len(shown) < len(started):
            st.caption(f"The first {len(shown)} of {len(started):,} texts are drawn.")
        table = pd.DataFrame(products, columns=[f"text {i + 1}" for i in shown])
        table.insert(0, "text", labels)
        show_figure(
            products_figure(labels, products),
            key=f"{key}-products",
            numbers=table,
            name="products",
            height=min(720, 200 + 60 * len(shown)),
        )
    _take_away(record, key)


def _shares(record: RunRecord, key: str, text: int) -> None:
    report = record.reports[text]
    if report.shares is None:
        st.caption(
            "Which words wrote the embedding is not followed here: for long texts, and for the "
            "output layer's own bias, it would cost too much time and memory."
        )
        return
    words = [report.text.text[start:end] for start, end in report.text.word_spans]
    shares = np.bincount(report.text.words, weights=report.shares, minlength=len(words))
    lacking = np.bincount(report.text.words, weights=report.text.unknown, minlength=len(words)) > 0
    labels = [
        f"{word} (?)" if unknown else word for word, unknown in zip(words, lacking, strict=True)
    ]
    with swiped(f"{key}-shares-wide", shares_width(labels)):
        show_figure(
            shares_figure(labels, shares, "Which words wrote the embedding"),
            key=f"{key}-shares",
            numbers=pd.DataFrame({"word": words, "share": shares, "unknown": lacking}),
            name="word-shares",
            height=400,
        )
    note = f"Words and weight decay ({report.decay_share:.1%}) sum to 100 %."
    if lacking.any():
        unknown = ", ".join(dict.fromkeys(w for w, u in zip(words, lacking, strict=True) if u))
        note += f" Marked (?), because the vocabulary does not know them: {shorten(unknown, 200)}."
    if record.settings.in_bf16:
        note += " Rounding to bfloat16 moves these shares far more than it moves the embedding."
    st.caption(plain(note))


def _predictions(record: RunRecord, key: str, text: int) -> None:
    report = record.reports[text]
    said = report.predictions
    st.markdown("**What the model says at the hidden words**")
    table = pd.DataFrame(
        {
            "input": said.input + 1,
            "hidden": [report.text.piece(token) for token in said.token],
            "before": said.before * 100,
            "after": said.after * 100,
            "before, likeliest": said.words_before,
            "after, likeliest": said.words_after,
        }
    )
    st.dataframe(
        table,
        hide_index=True,
        height=320,
        key=f"{key}-predictions",
        column_config={
            name: st.column_config.ProgressColumn(
                name, format="%.1f %%", min_value=0, max_value=100
            )
            for name in ("before", "after")
        },
    )
    st.caption(
        f"Probability of the hidden word: {said.before.mean():.0%} before and "
        f"{said.after.mean():.0%} after on average; it rose at "
        f"{(said.after > said.before).mean():.0%} of {len(said.input):,} hidden positions."
    )


def _take_away(record: RunRecord, key: str) -> None:
    """Losses and embeddings as files."""
    started = record.started()

    def losses() -> str:
        epochs = np.arange(len(record.loss))
        table = pd.DataFrame(record.loss[:, started], columns=[f"text {i + 1}" for i in started])
        table.insert(0, "epochs learnt", epochs)
        return frame_csv(table)

    def embeddings() -> bytes:
        table = {
            "id": [str(i + 1) for i in started],
            "text": [record.texts[i] for i in started],
            "vector": list(record.embeddings()),
        }
        return pd.DataFrame(table).to_parquet(index=False)

    with st.popover(
        "Download the run", icon=":material/download:", type="tertiary", key=f"{key}-all"
    ):
        st.download_button(
            "Embeddings (parquet)", embeddings, "neural-embeddings.parquet",
            key=f"{key}-embeddings", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Losses (CSV)", losses, "losses.csv",
            key=f"{key}-losses", on_click="ignore", width="stretch",
        )  # fmt: skip
