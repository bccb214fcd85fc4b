"""The view of changes by block: which layers of which blocks micro-tuning on a text changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.headlines.layers import describe_blocks
from neuralviz.jobs import Run
from neuralviz.jobs.micro_tuning import TuneBlocks
from neuralviz.layers.settings import MarkGrid, is_noise, kind_in_words, kinds_of_blocks, mark_grid
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.models.language_model import Layer
from neuralviz.models.shared import ModelRef
from neuralviz.plots.layers import marks_figure
from neuralviz.plots.report import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import choose_one, chosen_model_id
from neuralviz.ui.figures import allow_swiping, show_figure
from neuralviz.ui.layers.text import ask_text
from neuralviz.ui.micro_tuning.choose import ask_epochs_and_rate, check_choices, find_layers
from neuralviz.ui.page import dim_old_results, show_error, wide_columns
from neuralviz.ui.runs import SessionRuns, show_run_panel
from neuralviz.ui.stage import slide
from neuralviz.words import many

KEY = "layers-marks"
RUNS = SessionRuns(KEY)
MEASURES = {"per value": "Root mean square change", "norm": "Norm of the delta"}


def show() -> None:
    inputs, output = wide_columns([2, 3], KEY)
    model_id = chosen_model_id()
    run: Run[RunRecord] | None = None
    with inputs:
        text = ask_text()
        choice = find_layers(model_id)
        if choice is not None:
            run = _ask_settings(model_id, text, choice[0])
        measure = choose_one(
            st.segmented_control,
            "Measure",
            list(MEASURES),
            format_func=MEASURES.__getitem__,
            default="per value",
            key="layers-measure",
            persist_state="session",
            label_visibility="collapsed",
        )
        epoch_place = st.container()
    is_old, run = run is None, run or RUNS.last_to_show()
    if run is None:
        return
    epoch = None
    with epoch_place:
        if is_old:
            st.caption(
                "The result is of another text or other settings. Press **Tune** to update it."
            )
        if run.is_over and run.result.epochs_reached:
            epoch = n_epochs = run.result.epochs_reached
            if n_epochs > 1:
                key = f"{KEY}-epoch-{run.id}"
                epoch = st.slider("Epoch shown in the heatmap", 1, n_epochs, n_epochs, key=key)
            _show_loss(run.result)
    with output, dim_old_results(KEY, is_old):
        draw = partial(_show_marks, run, measure, epoch)
        show_run_panel(RUNS, run, draw)


def _ask_settings(model_id: str, text: str, layers: Sequence[Layer]) -> Run[RunRecord] | None:
    """Ask for a run's settings; *Tune* or a first visit starts it. None if the last run differs."""
    button = st.container()
    with st.expander("Settings", icon=":material/tune:"):
        kinds = _choose_kinds(layers)
        epochs, learning_rate = ask_epochs_and_rate("layers-epochs", "layers-rate")
    pressed = button.button("Tune", type="primary", icon=":material/play_arrow:", key=f"{KEY}-tune")
    last, grid = RUNS.last(), mark_grid(layers, kinds)
    try:
        settings = check_choices(grid.names, epochs, learning_rate)
        if not text.strip():
            raise TextError("The text is empty. Enter at least one word.")
    except NeuralvizError as error:
        if pressed or last is None:
            show_error(error, "Showing the last run instead." if RUNS.last_to_show() else "")
        return None
    task = TuneBlocks(ModelRef.from_id(model_id), (text,), settings, grid)
    if pressed or last is None:
        return RUNS.start(task, again=True)
    return last if last.task == task else None


def _choose_kinds(layers: Sequence[Layer]) -> list[str]:
    kinds = kinds_of_blocks(layers)
    key = "layers-kinds"
    selected = st.session_state.get(key)
    if selected is None or not set(selected) <= set(kinds):  # another model may have other kinds
        st.session_state[key] = [kind for kind in kinds if not is_noise(kind)]
    return st.multiselect(
        "Kinds of layers to tune in every block",
        kinds,
        format_func=kind_in_words,
        key=key,
        persist_state="session",
        help=(
            "The key bias of attention is off by default. It cannot change the model's "
            "output, so its gradient is rounding noise, which AdamW scales up to full steps."
        ),
    )


def _get_task(run: Run[RunRecord]) -> TuneBlocks:
    return cast("TuneBlocks", run.task)


def _describe_run(task: TuneBlocks) -> About:
    settings = task.settings
    return About(
        "What micro-tuning on a text changes, by block",
        {
            "text": shorten(task.texts[0], 60),
            "model": task.model.id,
            "micro-tuning": (
                f"{many(settings.epochs, 'epoch')}, learning rate {settings.learning_rate:g}, "
                f"{many(len(settings.layers), 'layer')} in {many(len(task.grid.blocks), 'block')}, "
                f"{settings.precision_in_words}"
            ),
        },
    )


def _show_marks(
    run: Run[RunRecord], measure: str, epoch: int | None, record: RunRecord, live: bool
) -> None:
    """Draw how much each kind of layer has changed in each block."""
    if not record.epochs_reached:
        return
    if record.diverged:
        st.warning(
            "The run diverged: the loss became infinite or NaN. The last finite weights are "
            "shown. Lower the learning rate (the paper uses 0.01)."
        )
    elif record.loss_rose(0):
        st.warning(
            "The loss rose instead of falling. Lower the learning rate (the paper uses 0.01)."
        )
    if live or epoch is None:
        epoch = record.epochs_reached
    grid, norms = _get_task(run).grid, record.delta_norm[epoch - 1, 0]
    per_value = measure == "per value"
    headline = describe_blocks(grid, norms, per_value=per_value, epoch=epoch)
    figure = marks_figure(
        grid.norms(norms, per_value=per_value),
        [kind_in_words(kind) for kind in grid.kinds],
        grid.blocks,
        measure=MEASURES[measure],
        moment=f"epoch {epoch}",
        full_kinds=grid.kinds,
    )
    with slide(KEY, headline), allow_swiping(f"{KEY}-scrolled", 480):
        show_figure(
            figure,
            "change-by-block-and-kind-of-layer",
            lambda: _list_changes(grid, record),
            _describe_run(_get_task(run)),
            key=f"{KEY}-grid-{run.id}",
            height=max(300, 130 + 30 * len(grid.kinds)),
        )
    st.caption(
        "Each cell is one kind of layer in one block. The norm of a delta grows with the layer's "
        "size; the root mean square over its values does not."
    )


def _show_loss(record: RunRecord) -> None:
    """Show the last loss, and its course."""
    losses = record.loss[: record.epochs_reached, 0]
    losses = losses[np.isfinite(losses)]
    if len(losses):
        change = f"{losses[-1] - losses[0]:.2f}"
        st.metric(
            "Loss at the masked positions, nats (lower is better)",
            f"{losses[-1]:.2f}",
            delta=f"{change} since epoch 0" if float(change) else None,
            delta_color="inverse",
            chart_data=losses.tolist() if len(losses) > 1 else None,
            chart_type="line",
        )


def _list_changes(grid: MarkGrid, record: RunRecord) -> pd.DataFrame:
    """A row for every tuned layer and epoch."""
    n_epochs = record.epochs_reached
    layers_table = pd.DataFrame(
        {
            "layer": grid.names,
            "kind": [grid.kinds[row] for row in grid.rows],
            "block": [grid.blocks[column] for column in grid.columns],
            "values": grid.sizes,
        }
    )
    table = pd.DataFrame({"epoch": range(1, n_epochs + 1)}).merge(layers_table, how="cross")
    norm = record.delta_norm[:n_epochs, 0].ravel()
    return table.assign(norm=norm, root_mean_square=norm / np.sqrt(table["values"]))
