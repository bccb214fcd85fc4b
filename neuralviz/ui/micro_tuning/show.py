"""The figures of a run on the micro-tuning page that change while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from neuralviz.headlines.micro_tuning import (
    compare_with_earlier,
    describe_learning,
    describe_neurons,
    describe_progress,
    first_words,
    neurons_stand_out,
)
from neuralviz.jobs import Run
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.plots.micro_tuning import (
    EXTREME,
    MAX_LINES,
    Norms,
    delta_norm_figure,
    describe_run,
    loss_figure,
    neurons_figure,
    short_layer_names,
)
from neuralviz.plots.standalone import About, file_name
from neuralviz.ui.live_figure import draw_live_figure, draw_once
from neuralviz.ui.page import plain
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.ui.stage import show_headline, show_only_on_stage, slide
from neuralviz.words import many, number

HEIGHT = 390  # px: both figures are seen on the first screen
NAMED_TEXTS = 5  # in a warning
STAGE_TEXTS = 5  # of more texts, only the chosen one is listed on the stage
STAGE_LETTERS = 90  # of each, on one line


def show_run(
    runs: SessionRuns, run: Run[RunRecord], earlier: Run[RunRecord] | None, text: int
) -> None:
    """Show a run, live until it is over, drawn over an earlier one if there is one."""
    sentences = RunSentences(describe_stopped=_describe_stopped)
    st.subheader(f"Run {run.number}", anchor=False)
    if earlier is not None and not earlier.is_over:
        show_run_panel(runs, earlier, lambda *_: None, sentences=sentences)

    def draw(record: RunRecord, _live: bool) -> None:
        if record.started_texts:
            show_record(record, f"run-{run.id}", text, run.number, earlier)

    show_run_panel(runs, run, draw, sentences=sentences)
    st.caption(plain(_describe_settings(run.result)))


def _describe_stopped(record: RunRecord) -> str:
    if not record.epochs_reached:
        return "Stopped before the first step."
    return f"Stopped. {describe_progress(record)}".rstrip()


def _describe_settings(record: RunRecord) -> str:
    settings = record.settings
    noun = "blueprint" if len(settings.blueprints) == 1 else "blueprints"
    masking = f"{noun} {', '.join(map(str, settings.blueprints))}"
    return (
        f"{many(len(record.texts), 'text')}, {many(settings.epochs, 'epoch')}, learning rate "
        f"{settings.learning_rate:g}, {many(len(settings.layers), 'layer')}, "
        f"{'no masking' if settings.predict_unmasked else masking}; {record.model_id}, "
        f"{settings.precision_in_words}"
    )


def show_record(
    record: RunRecord,
    key: str,
    text: int,
    run_number: int = 1,
    earlier_run: Run[RunRecord] | None = None,
) -> None:
    """Show what is known of a run, also while it goes on.

    Args:
        record: what is known of it.
        key: begins the keys of its widgets.
        text: the one that is looked at.
        run_number: of the run.
        earlier_run: another run on the same texts, drawn in pale colours.
    """
    provenance = describe_run(record, text)
    earlier, numbers = None, (run_number, 0)
    if earlier_run is not None and earlier_run.result.started_texts:
        earlier, numbers = earlier_run.result, (run_number, earlier_run.number)

    def draw_losses() -> go.Figure:
        pale = None if earlier is None else _select_curves(earlier, text)
        return loss_figure(_select_curves(record, text), record.texts, text, pale, numbers)

    def draw_norms() -> go.Figure:
        pale = None if earlier is None else _select_norms(earlier, text)
        return delta_norm_figure(_select_norms(record, text), pale, numbers)

    with slide(f"{key}-learning", plain(describe_learning(record, text))):
        _show_stage_texts(record, key, text)
        if earlier is not None:
            st.markdown(plain(compare_with_earlier(record, earlier, numbers)))
        _show_warnings(record)
        with st.container(key=f"tune-figures-{key}"):
            loss_column, norm_column = st.columns(2)
        seen = (record, text, earlier)
        with loss_column:
            _draw(draw_losses, seen, f"{key}-loss", "micro-tuning loss", provenance)
        with norm_column:
            _draw(draw_norms, seen, f"{key}-norm", "micro-tuning delta norm", provenance)
    if record.epochs_done(text):
        _show_neurons(record, key, text, provenance)


def _draw(
    make: Callable[[], go.Figure],
    seen: tuple[object, ...],
    key: str,
    name: str,
    provenance: About,
    height: int = HEIGHT,
) -> None:
    """Draw a figure, which is made again only when what is ``seen`` in it has changed."""
    draw_live_figure(
        draw_once(key, seen, make),
        key=key,
        height=height,
        name=file_name(name, provenance),
        footer=provenance.line,
    )


def _select_curves(record: RunRecord, text: int) -> np.ndarray:
    """[text, epoch + 1] losses; of many texts, only those as far as the chosen text, else NaN."""
    curves = record.loss_curves()
    if len(curves) > MAX_LINES:
        curves[np.setdiff1d(np.arange(len(curves)), record.texts_like(text))] = np.nan
    return curves


def _select_norms(record: RunRecord, text: int) -> Norms:
    return Norms(record.delta_norm[:, text], record.settings.layers)


def _show_stage_texts(record: RunRecord, key: str, text: int) -> None:
    """List the numbered texts on the stage, which hides the inputs of the page."""
    if len(record.texts) == 1:
        return
    rows = range(len(record.texts)) if len(record.texts) <= STAGE_TEXTS else [text]
    with show_only_on_stage(f"texts-{key}"):
        st.text("\n".join(f"{i + 1}. {first_words(record.texts[i], STAGE_LETTERS)}" for i in rows))


def _show_neurons(record: RunRecord, key: str, text: int, provenance: About) -> None:
    """The neurons of a layer, sorted by their delta; a slide where some stand out."""
    names = short_layer_names(record.settings.layers)
    layer = st.session_state.get(f"{key}-layer", 0)
    stands_out = neurons_stand_out(record.last[layer][text])
    slide_key = f"{key}-neurons"
    with slide(slide_key) if stands_out else st.container(key=f"{slide_key}-alike"):
        place = st.container()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            layer = st.selectbox(
                "Layer", range(len(names)), format_func=names.__getitem__, key=f"{key}-layer"
            )
            change = record.last[layer][text]
            with_all = len(change) > 2 * EXTREME and st.toggle(
                f"All {len(change):,} neurons", key=f"{key}-every"
            )
        with place:
            show_headline(plain(describe_neurons(change, names[layer])), key=slide_key)

        def draw_neurons() -> go.Figure:
            layer_name = record.settings.layers[layer]
            return neurons_figure(record.delta(layer, text), layer_name, all_neurons=with_all)

        seen = (record, text, layer, with_all)
        _draw(draw_neurons, seen, f"{key}-delta", "micro-tuning neurons", provenance, 340)
        strongest = record.strongest_neurons(layer, text)
        listed = [f"**{neuron}** ({number(change[neuron], '+#.3g')})" for neuron in strongest]
        st.caption(f"Neurons that changed most: {', '.join(listed)}")


def _show_warnings(record: RunRecord) -> None:
    """Warn of divergence, rising losses and texts in another language."""
    if record.diverged:
        st.warning(
            f"The run diverged on {_name_texts(record.diverged)}: the loss became infinite or NaN. "
            "The last finite weights are shown. Lower the learning rate (the paper uses 0.01)."
        )
    elif risen := [i for i in record.started_texts if record.loss_rose(i)]:
        st.warning(
            f"The loss of {_name_texts(risen)} rose instead of falling. Lower the learning "
            "rate (the paper uses 0.01)."
        )
    foreign = [i for i, report in record.reports.items() if report.text.looks_foreign]
    if foreign:
        st.warning(
            f"Many words in {_name_texts(foreign)} are not in the model's vocabulary, or are "
            "split into several tokens. For texts in another language, choose a model for that "
            "language; the bundled model is for English and ignores case."
        )


def _name_texts(texts: Collection[int]) -> str:
    """``text 3``, ``texts 1, 2``, ``texts 1, 2, 3, 4, 5 and 12 more``."""
    remainder = f" and {len(texts) - NAMED_TEXTS:,} more" if len(texts) > NAMED_TEXTS else ""
    numbers = ", ".join(str(i + 1) for i in sorted(texts)[:NAMED_TEXTS])
    return f"text{'s' * (len(texts) > 1)} {numbers}{remainder}"
