"""The view of micro-tuning: in which blocks, and in what of them, a text leaves its mark."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.jobs.queue import Job, job_queue
from neuralviz.plots.layers import block_totals_figure, marks_figure
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.job_panel import job_panel
from neuralviz.ui.layers import one_text
from neuralviz.ui.micro_tuning import layers_to_choose_from, run_settings
from neuralviz.ui.model_choice import chosen_model_id, load_for_app
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.session import is_here, session_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.layers.marks import MarkGrid
    from neuralviz.micro_tuning import TuningSettings
    from neuralviz.models.language_model import Layer

KEY = "layers-marks"
LIVE_SECONDS = 0.4
LONG_SECONDS = 60
PAPERS_MIX = "(2,1), (1,1), (1,2), (1,3)"
MEASURES = {"per value": "Mean move of a value", "length": "Length of the delta"}


@dataclass
class MarkRun:
    """A run of this browser session; its worker fills in what is known, the page reads it.

    Attributes:
        model_id, text, settings: what is run.
        grid: where each tuned parameter stands.
        norms: [epoch, parameter] length of each delta after the epoch; NaN where not known yet.
        loss: [epoch] in nats before the epoch's steps; NaN where not known yet.
        step, steps: optimiser steps done, and in all.
        first_step: when the first was done, on the monotonic clock.
        diverged: whether loss or weights ceased to be finite.
    """

    number: int
    model_id: str
    text: str
    settings: TuningSettings
    grid: MarkGrid
    norms: np.ndarray = field(init=False)
    loss: np.ndarray = field(init=False)
    step: int = 0
    steps: int = 0
    first_step: float = 0.0
    diverged: bool = False
    job: Job = field(init=False)

    def __post_init__(self) -> None:
        self.norms = np.full((self.settings.epochs, len(self.grid.names)), np.nan)
        self.loss = np.full(self.settings.epochs, np.nan)

    @property
    def asked_for(self) -> tuple[str, str, TuningSettings]:
        return self.model_id, self.text, self.settings

    @property
    def epochs_known(self) -> int:
        """Epochs that something is known of, the one under way included."""
        return int((~np.isnan(self.norms[:, 0])).sum())

    @property
    def seconds_left(self) -> float:
        """How long the steps that are left will take; 0 before that can be told."""
        if self.step < 2:
            return 0.0
        of_step = (time.monotonic() - self.first_step) / (self.step - 1)
        return of_step * (self.steps - self.step)

    @property
    def loss_rose(self) -> bool:
        known = self.loss[: self.epochs_known]
        return len(known) > 1 and not known[-1] <= known[0]


def show() -> None:
    """The whole view."""
    text = one_text()
    model_id = chosen_model_id()
    choice = layers_to_choose_from(model_id)
    if choice is not None:
        _ask(model_id, text, choice[0])
    run: MarkRun | None = st.session_state.get(f"{KEY}-run")
    if run is not None:
        live = not run.job.is_over
        st.fragment(_panel, run_every=LIVE_SECONDS if live else None)(run, live)


# --- before a run ------------------------------------------------------------------------------


def _ask(model_id: str, text: str, layers: Sequence[Layer]) -> None:
    """Widgets for a run, and its start; the first one of a session starts by itself."""
    from neuralviz.layers.marks import mark_grid

    button, below = st.columns([1, 7])
    with below.expander("Settings", icon=":material/tune:"):
        kinds = _choose_kinds(layers)
        columns = st.columns(2)
        epochs = columns[0].number_input(
            "Epochs",
            value=10,
            step=1,
            key="layers-epochs",
            bind="query-params",
            persist_state="session",
            help="1 … 1000",
        )
        learning_rate = columns[1].number_input(
            "Learning rate",
            value=0.01,
            step=0.005,
            format="%g",
            key="layers-rate",
            bind="query-params",
            persist_state="session",
            help="Of AdamW; the paper uses 0.01.",
        )
    pressed = button.button(
        "Tune", type="primary", icon=":material/play_arrow:", width="stretch", key=f"{KEY}-tune"
    )
    if not pressed and f"{KEY}-run" in st.session_state:
        return
    grid = mark_grid(layers, kinds)
    try:
        settings = run_settings(grid.names, PAPERS_MIX, epochs, learning_rate, unmasked=False)
        _submit(model_id, text, settings, grid)
    except NeuralvizError as error:
        kept = f"{KEY}-run" in st.session_state
        show_error(error, "Below is the last run." if kept else "")


def _choose_kinds(layers: Sequence[Layer]) -> list[str]:
    from neuralviz.layers.marks import is_noise, kind_in_words, kinds_of_blocks

    kinds = kinds_of_blocks(layers)
    key = "layers-kinds"
    kept = st.session_state.get(key)
    if kept is None or not set(kept) <= set(kinds):  # another model may have other kinds
        st.session_state[key] = [kind for kind in kinds if not is_noise(kind)]
    chosen = st.multiselect(
        "Kinds of parameters, tuned in every block",
        kinds,
        format_func=kind_in_words,
        key=key,
        persist_state="session",
    )
    if any(map(is_noise, kinds)):
        st.caption(
            "Attention's key bias is left out at first: it cannot change what the model says, so "
            "its gradient is rounding noise, which AdamW blows up to full steps."
        )
    return chosen


def _submit(model_id: str, text: str, settings: TuningSettings, grid: MarkGrid) -> None:
    """Start a run; it takes the place of the last one, which is stopped if it still goes on.

    Raises:
        TextError: there is no text.
    """
    if not text.strip():
        raise TextError("The text is empty; give it at least one word.")
    last: MarkRun | None = st.session_state.get(f"{KEY}-run")
    run = MarkRun(last.number + 1 if last else 1, model_id, text, settings, grid)
    if last is not None and not last.job.is_over:
        if last.asked_for == run.asked_for:
            return  # the second click of a double click
        last.job.stop()

    def work(job: Job) -> None:
        model = load_for_app(model_id)
        from neuralviz.micro_tuning import micro_tune

        events = micro_tune(
            model,
            [text],
            layers=settings.layers,
            epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            should_stop=job.should_stop,
        )
        for event in events:
            run.norms[event.epoch - 1] = event.delta_norm[0]
            run.loss[event.epoch - 1] = event.epoch_loss[0]
            if event.step == 1:
                run.first_step = time.monotonic()
            run.step, run.steps = event.step, event.steps
            if event.result is not None:
                run.diverged = bool(event.result.diverged[0])

    run.job = job_queue().submit("Where a text leaves its mark", work, is_here(session_id()))
    st.session_state[f"{KEY}-run"] = run


# --- a run -------------------------------------------------------------------------------------


def _panel(run: MarkRun, live: bool) -> None:
    """The run; drawn again every few tenths of a second while it goes on."""
    if live and run.job.is_over:
        st.rerun()
    _progress(run)
    st.caption(plain(_about(run)))
    if not run.epochs_known:
        return
    if run.diverged:
        st.warning(
            "The loss ceased to be a number: the learning rate is too high. The last finite "
            "weights are kept; the paper's learning rate is 0.01."
        )
    elif run.loss_rose:
        st.warning(
            "The loss rose: the learning rate is too high for the model to learn. The paper's is "
            "0.01."
        )
    measure = st.segmented_control(
        "Measure",
        list(MEASURES),
        format_func=MEASURES.__getitem__,
        default="per value",
        required=True,
        key="layers-measure",
        persist_state="session",
        label_visibility="collapsed",
    )
    _figures(run, measure or "per value", live)


def _about(run: MarkRun) -> str:
    settings = run.settings
    return (
        f"“{shorten(run.text, 60)}”, {settings.epochs} epoch{'s' * (settings.epochs != 1)} at a "
        f"learning rate of {settings.learning_rate:g}; {run.model_id}, "
        f"{len(settings.layers)} parameters in {len(run.grid.blocks)} "
        f"block{'s' * (len(run.grid.blocks) != 1)}, {settings.precision_in_words}"
    )


def _progress(run: MarkRun) -> None:
    """Progress with *Stop*, place in the queue, or how the run ended."""
    share, left = run.step / run.steps if run.steps else 0.0, run.seconds_left
    soon = "" if left < LONG_SECONDS else f", about {left / 60:.0f} min left"
    job_panel(
        run.job,
        key=f"{KEY}-stop-{run.number}",
        share=share,
        doing=f"step {run.step:,} of {run.steps:,}{soon}"
        if run.steps
        else "Getting the model ready …",
        stopped=f"Stopped after {share:.0%}. What was learnt until then is kept.",
    )


def _loss(run: MarkRun) -> None:
    known = run.loss[: run.epochs_known]
    finite = known[np.isfinite(known)]
    if not len(finite):
        return
    st.metric(
        "Loss at the hidden words, nats",
        f"{finite[-1]:.2f}",
        delta=f"{finite[-1] - finite[0]:+.2f} since the first epoch" if len(finite) > 1 else None,
        delta_color="inverse",
        chart_data=finite.tolist() if len(finite) > 1 else None,
        chart_type="line",
    )


def _figures(run: MarkRun, measure: str, live: bool) -> None:
    from neuralviz.layers.marks import kind_in_words

    per_value, grid, known = measure == "per value", run.grid, run.epochs_known
    norms = grid.norms(run.norms, per_value=per_value)
    totals = grid.totals(run.norms, per_value=per_value)
    name, height = MEASURES[measure], max(360, 150 + 32 * len(grid.kinds))
    left, right = st.columns([3, 2])
    below_left, below_right = st.columns([3, 2])
    with below_left:
        epoch = _choose_epoch(run, live)
    with below_right:
        _loss(run)
    with left:
        figure = marks_figure(
            norms[epoch - 1],
            [kind_in_words(kind) for kind in grid.kinds],
            grid.blocks,
            measure=name,
            when=f"epoch {epoch}",
            full_kinds=grid.kinds,
        )
        with swiped(f"{KEY}-wide", 560):
            show_figure(
                figure,
                key=f"{KEY}-grid-{run.number}",
                numbers=lambda: _numbers(run),
                name="marks by block and kind",
                height=height,
            )
        st.caption(
            "Each cell: how far one kind of parameter has moved in one block, as "
            + (
                "the root mean square over its values, so that long and short ones compare."
                if per_value
                else "the length of its delta, which grows with the number of its values."
            )
            + " The colours span this epoch's cells: bright is where the text leaves its mark."
        )
    with right:
        figure = block_totals_figure(
            totals, grid.blocks, measure=name.lower(), epochs=run.settings.epochs
        )
        show_figure(
            figure,
            key=f"{KEY}-totals-{run.number}",
            numbers=lambda: pd.DataFrame(
                {
                    "epoch": np.repeat(np.arange(1, known + 1), len(grid.blocks)),
                    "block": np.tile(grid.blocks, known),
                    measure: totals[:known].ravel(),
                }
            ),
            name="marks by block",
            height=height,
        )
        st.caption(
            "All kinds of a block together: the root of the sum of the squares. AdamW's first step "
            f"moves every value by the learning rate, {run.settings.learning_rate:g}; what keeps "
            "its direction goes on, and what wavers falls behind."
        )


def _choose_epoch(run: MarkRun, live: bool) -> int:
    """The epoch that the heatmap shows: the latest while the run goes on."""
    known = run.epochs_known
    if known < 2:
        return known
    if live:
        st.slider("Heatmap after epoch", 1, run.settings.epochs, known, disabled=True)
        return known
    return st.slider("Heatmap after epoch", 1, known, known, key=f"{KEY}-epoch-{run.number}")


def _numbers(run: MarkRun) -> pd.DataFrame:
    """A row for every tuned parameter and epoch."""
    grid, known = run.grid, run.epochs_known
    of_parameter = pd.DataFrame(
        {
            "parameter": grid.names,
            "kind": [grid.kinds[row] for row in grid.rows],
            "block": [grid.blocks[column] for column in grid.columns],
            "values": grid.sizes,
        }
    )
    epochs = pd.DataFrame({"epoch": range(1, known + 1)})
    table = epochs.merge(of_parameter, how="cross")
    length = run.norms[:known].ravel()
    return table.assign(length=length, per_value=length / np.sqrt(table["values"]))
