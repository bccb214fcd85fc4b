"""The figures of a run on the micro-tuning page that change while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.headlines.micro_tuning import (
    compare_with_earlier,
    describe_learning,
    describe_neurons,
    first_words,
    neurons_stand_out,
)
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
from neuralviz.plots.standalone import file_name
from neuralviz.ui.headline import show_headline
from neuralviz.ui.live_figure import draw_live_figure, draw_once
from neuralviz.ui.page import plain
from neuralviz.ui.stage import show_only_on_stage, slide
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.plots.standalone import About

HEIGHT = 390  # px: both figures are seen on the first screen
NAMED_TEXTS = 5  # in a warning
STAGE_TEXTS = 5  # of more texts, only the chosen one is listed on the stage
STAGE_LETTERS = 90  # of each, on one line


@dataclass(frozen=True, eq=False)
class EarlierRun:
    """An earlier run on the same texts, drawn in pale colours, and the numbers of both runs."""

    record: RunRecord
    numbers: tuple[int, int]


def show_record(
    record: RunRecord,
    key: str,
    text: int,
    earlier: EarlierRun | None = None,
    *,
    draw_above: Callable[[], None] = lambda: None,
) -> None:
    """Show what is known of a run, also while it goes on.

    Args:
        record: what is known of it.
        key: begins the keys of its widgets.
        text: the one that is looked at.
        earlier: another run on the same texts.
        draw_above: draws what stands between the headline and its figures.
    """
    provenance = describe_run(record, text)
    runs = (2, 1) if earlier is None else earlier.numbers
    with slide(f"{key}-learning"):
        show_headline(plain(describe_learning(record, text)), key=f"{key}-learning")
        _show_stage_texts(record, key, text)
        if earlier is not None:
            st.markdown(plain(compare_with_earlier(record, earlier.record, earlier.numbers)))
        draw_above()
        _show_warnings(record)
        with st.container(key=f"tune-figures-{key}"):
            loss_column, norm_column = st.columns(2)
        with loss_column:
            draw_live_figure(
                draw_once(
                    f"{key}-loss",
                    (record, text, earlier and earlier.record),
                    lambda: loss_figure(
                        _curves(record, text),
                        record.texts,
                        text,
                        None if earlier is None else _curves(earlier.record, text),
                        runs,
                    ),
                ),
                key=f"{key}-loss",
                height=HEIGHT,
                name=file_name("micro-tuning loss", provenance),
                footer=provenance.line,
            )
        with norm_column:
            draw_live_figure(
                draw_once(
                    f"{key}-norm",
                    (record, text, earlier and earlier.record),
                    lambda: delta_norm_figure(
                        _norms(record, text),
                        None if earlier is None else _norms(earlier.record, text),
                        runs,
                    ),
                ),
                key=f"{key}-norm",
                height=HEIGHT,
                name=file_name("micro-tuning delta norm", provenance),
                footer=provenance.line,
            )
    if record.epochs_done(text):
        names = f"{key}-neurons"
        layer = st.session_state.get(f"{key}-layer", 0)
        stands_out = neurons_stand_out(record.last[layer][text])
        with slide(names) if stands_out else st.container(key=f"{names}-alike"):
            _show_neurons(record, key, text, provenance)


def _show_stage_texts(record: RunRecord, key: str, text: int) -> None:
    """List the numbered texts on the stage, which hides the inputs of the page."""
    if len(record.texts) == 1:
        return
    rows = range(len(record.texts)) if len(record.texts) <= STAGE_TEXTS else [text]
    with show_only_on_stage(f"texts-{key}"):
        st.text("\n".join(f"{i + 1}. {first_words(record.texts[i], STAGE_LETTERS)}" for i in rows))


def _curves(record: RunRecord, text: int) -> np.ndarray:
    """[text, epoch + 1] losses; of many texts, only those as far as the chosen text, else NaN."""
    curves = record.loss_curves()
    if len(curves) > MAX_LINES:
        curves[np.setdiff1d(np.arange(len(curves)), record.alike(text))] = np.nan
    return curves


def _norms(record: RunRecord, text: int) -> Norms:
    return Norms(record.delta_norm[:, text], record.settings.layers)


def _show_neurons(record: RunRecord, key: str, text: int, provenance: About) -> None:
    """The neurons of a layer, sorted by their delta."""
    place = st.container()
    row = st.container(horizontal=True, vertical_alignment="bottom")
    names = short_layer_names(record.settings.layers)
    with row:
        layer = st.selectbox(
            "Layer", range(len(names)), format_func=lambda i: names[i], key=f"{key}-layer"
        )
        n = record.last[layer].shape[1]
        with_all = n > 2 * EXTREME and st.toggle(f"All {n:,} neurons", key=f"{key}-every")
    change = record.last[layer][text]
    with place:
        show_headline(plain(describe_neurons(change, names[layer])), key=f"{key}-neurons")
    draw_live_figure(
        draw_once(
            f"{key}-delta",
            (record, text, layer, with_all),
            lambda: neurons_figure(
                record.delta(layer, text), record.settings.layers[layer], all_neurons=with_all
            ),
        ),
        key=f"{key}-delta",
        height=340,
        name=file_name("micro-tuning neurons", provenance),
        footer=provenance.line,
    )
    strongest = record.strongest_neurons(layer, text)
    st.caption(_describe_strongest(strongest, change[strongest]))


def _describe_strongest(neurons: Sequence[int], changes: np.ndarray) -> str:
    """A sentence on the neurons and their changes; a common change is named once."""
    signed = [number(change, "+#.3g") for change in changes]
    sizes = {change.lstrip("+−") for change in signed}
    if len(sizes) > 1:
        listed = [
            f"**{neuron}** ({change})" for neuron, change in zip(neurons, signed, strict=True)
        ]
        return f"Neurons that changed most: {', '.join(listed)}"
    shared = signed[0] if len(set(signed)) == 1 else f"±{sizes.pop()}"
    listed = [f"**{neuron}**" for neuron in neurons]
    return f"Neurons that changed most (each by {shared}): {', '.join(listed)}"


def _show_warnings(record: RunRecord) -> None:
    """Warn of divergence, rising losses and texts in another language."""
    if record.diverged:
        st.warning(
            f"The run diverged on {_name_texts(record.diverged)}: the loss became infinite or NaN. "
            "The last finite weights are shown. Lower the learning rate (the paper uses 0.01)."
        )
    elif risen := [i for i in record.started() if record.loss_rose(i)]:
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
