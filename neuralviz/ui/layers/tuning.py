"""The view of changes by block: which layers of which blocks micro-tuning on a text changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.jobs.micro_tuning import TuneBlocks
from neuralviz.layers.marks import is_noise, kind_in_words, kinds_of_blocks, mark_grid
from neuralviz.models.shared import ModelRef
from neuralviz.plots.layers import block_totals_figure, marks_figure
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.layers import one_text
from neuralviz.ui.micro_tuning.choose import layers_to_choose_from, run_settings
from neuralviz.ui.model_choice import chosen_model_id
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.run_panel import SessionRuns, Words, run_panel
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.jobs.micro_tuning import Marks
    from neuralviz.layers.marks import MarkGrid
    from neuralviz.models.language_model import Layer

KEY = "layers-marks"
RUNS = SessionRuns(KEY)
LIVE_SECONDS = 0.4
PAPERS_MIX = "(2, 1), (1, 1), (1, 2), (1, 3)"
MEASURES = {"per value": "Root mean square change", "norm": "Norm of the delta"}


def show() -> None:
    """The whole view."""
    text = one_text()
    model_id = chosen_model_id()
    choice = layers_to_choose_from(model_id)
    if choice is not None:
        _ask(model_id, text, choice[0])
    run = RUNS.last()
    if run is not None:
        run_panel(
            RUNS, run, partial(_show, run), words=_words(run), bar_stays=True, every=LIVE_SECONDS
        )


# --- before a run ------------------------------------------------------------------------------


def _ask(model_id: str, text: str, layers: Sequence[Layer]) -> None:
    """Widgets for a run, and its start; the first one of a session starts by itself."""
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
            help="Number of passes over all masked inputs of the text, from 1 to 1000.",
        )
        learning_rate = columns[1].number_input(
            "Learning rate",
            value=0.01,
            step=0.005,
            format="%g",
            key="layers-rate",
            bind="query-params",
            persist_state="session",
            help="AdamW's learning rate. The paper uses 0.01.",
        )
    pressed = button.button(
        "Tune", type="primary", icon=":material/play_arrow:", width="stretch", key=f"{KEY}-tune"
    )
    if not pressed and RUNS.last() is not None:
        return
    grid = mark_grid(layers, kinds)
    try:
        settings = run_settings(grid.names, PAPERS_MIX, epochs, learning_rate, unmasked=False)
        if not text.strip():
            raise TextError("The text is empty. Enter at least one word.")
        RUNS.start(TuneBlocks(ModelRef.now(model_id), text, settings, grid), again=True)
    except NeuralvizError as error:
        show_error(error, "Showing the last run instead." if RUNS.last() else "")


def _choose_kinds(layers: Sequence[Layer]) -> list[str]:
    kinds = kinds_of_blocks(layers)
    key = "layers-kinds"
    selected = st.session_state.get(key)
    if selected is None or not set(selected) <= set(kinds):  # another model may have other kinds
        st.session_state[key] = [kind for kind in kinds if not is_noise(kind)]
    chosen = st.multiselect(
        "Kinds of layers to tune in every block",
        kinds,
        format_func=kind_in_words,
        key=key,
        persist_state="session",
    )
    if any(map(is_noise, kinds)):
        st.caption(
            "The key bias of attention is off by default. It cannot change the model's "
            "output, so its gradient is rounding noise, which AdamW scales up to full steps."
        )
    return chosen


# --- a run -------------------------------------------------------------------------------------


def _words(run: Run[Marks]) -> Words:
    def stopped(_: Marks) -> str:
        if not run.progress.share:
            return "Stopped before the first step."
        return f"Stopped after {run.progress.share:.0%}. The result so far is shown."

    return Words(stopped=stopped)


def _show(run: Run[Marks], marks: Marks, live: bool) -> None:
    st.caption(plain(_about(_task(run))))
    if not marks.epochs_known:
        return
    if marks.diverged:
        st.warning(
            "The run diverged: the loss became infinite or NaN. The last finite weights are "
            "shown. Lower the learning rate (the paper uses 0.01)."
        )
    elif marks.loss_rose:
        st.warning(
            "The loss rose instead of falling. Lower the learning rate (the paper uses 0.01)."
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
    _figures(run, marks, measure or "per value", live)


def _task(run: Run[Marks]) -> TuneBlocks:
    return cast("TuneBlocks", run.task)


def _about(task: TuneBlocks) -> str:
    settings = task.settings
    return (
        f"“{shorten(task.text, 60)}”, {many(settings.epochs, 'epoch')}, learning rate "
        f"{settings.learning_rate:g}, {many(len(settings.layers), 'layer')} in "
        f"{many(len(task.grid.blocks), 'block')}; {task.model.id}, {settings.precision_in_words}"
    )


def _loss(marks: Marks) -> None:
    losses = marks.loss[: marks.epochs_known]
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return
    delta, arrow, is_good = _since_start(finite)
    st.metric(
        "Loss at the masked positions, nats",
        f"{finite[-1]:.2f}",
        delta=delta or None,
        delta_arrow=arrow,
        delta_color="normal" if is_good else "inverse",  # of a number without a sign
        chart_data=finite.tolist() if len(finite) > 1 else None,
        chart_type="line",
    )


def _since_start(losses: np.ndarray) -> tuple[str, Literal["up", "down", "off"], bool]:
    """How far a loss fell or rose, without a sign: the arrow says which; and whether it is good."""
    if len(losses) < 2:
        return "", "off", True
    change = float(losses[-1] - losses[0])
    size = f"{abs(change):.2f}"
    if not float(size):
        return "unchanged since epoch 0", "off", True
    return f"{size} since epoch 0", "down" if change < 0 else "up", change < 0


def _figures(run: Run[Marks], marks: Marks, measure: str, live: bool) -> None:
    task, per_value, n_epochs = _task(run), measure == "per value", marks.epochs_known
    grid = task.grid
    norms = grid.norms(marks.norms, per_value=per_value)
    totals = grid.totals(marks.norms, per_value=per_value)
    name, height = MEASURES[measure], max(360, 150 + 32 * len(grid.kinds))
    left, right = st.columns([3, 2])
    below_left, below_right = st.columns([3, 2])
    with below_left:
        epoch = _choose_epoch(run, n_epochs, live)
    with below_right:
        _loss(marks)
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
                key=f"{KEY}-grid-{run.id}",
                numbers=lambda: _numbers(grid, marks),
                name="change-by-block-and-kind-of-layer",
                height=height,
            )
        st.caption(
            "Each cell shows how much one kind of layer changed in one block: "
            + (
                "the root mean square over its values, so that layers of different sizes can be "
                "compared."
                if per_value
                else "the norm of its delta, which grows with the layer's size."
            )
            + " Bright cells have changed most by this epoch."
        )
    with right:
        figure = block_totals_figure(
            totals, grid.blocks, measure=name.lower(), epochs=task.settings.epochs
        )
        show_figure(
            figure,
            key=f"{KEY}-totals-{run.id}",
            numbers=lambda: pd.DataFrame(
                {
                    "epoch": np.repeat(np.arange(1, n_epochs + 1), len(grid.blocks)),
                    "block": np.tile(grid.blocks, n_epochs),
                    name.lower(): totals[:n_epochs].ravel(),
                }
            ),
            name="change-by-block",
            height=height,
        )
        st.caption(
            "All kinds of layers in a block together (root "
            f"{'mean square' if per_value else 'of the sum of squares'}). AdamW's first step "
            "changes every value by the learning rate, "
            f"{task.settings.learning_rate:g}; after that, values with a steady gradient "
            "keep moving, and those with a fluctuating one slow down."
        )


def _choose_epoch(run: Run[Marks], n_epochs: int, live: bool) -> int:
    """The epoch that the heatmap shows: the latest while the run goes on."""
    label = "Epoch shown in the heatmap"
    if n_epochs < 2:
        return n_epochs
    if live:
        st.slider(label, 1, _task(run).settings.epochs, n_epochs, disabled=True)
        return n_epochs
    return st.slider(label, 1, n_epochs, n_epochs, key=f"{KEY}-epoch-{run.id}")


def _numbers(grid: MarkGrid, marks: Marks) -> pd.DataFrame:
    """A row for every tuned layer and epoch."""
    n_epochs = marks.epochs_known
    of_layer = pd.DataFrame(
        {
            "layer": grid.names,
            "kind": [grid.kinds[row] for row in grid.rows],
            "block": [grid.blocks[column] for column in grid.columns],
            "values": grid.sizes,
        }
    )
    epochs = pd.DataFrame({"epoch": range(1, n_epochs + 1)})
    table = epochs.merge(of_layer, how="cross")
    norm = marks.norms[:n_epochs].ravel()
    return table.assign(norm=norm, root_mean_square=norm / np.sqrt(table["values"]))
