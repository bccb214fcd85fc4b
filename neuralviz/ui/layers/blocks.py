"""The view of changes by block: which layers of which blocks micro-tuning on a text changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.headlines.layers import describe_blocks, describe_epochs
from neuralviz.jobs.micro_tuning import TuneBlocks
from neuralviz.layers.marks import is_noise, kind_in_words, kinds_of_blocks, mark_grid
from neuralviz.models.shared import ModelRef
from neuralviz.plots.layers import block_totals_figure, marks_figure
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import allow_swiping, show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.layers import ask_more_figures, ask_text
from neuralviz.ui.micro_tuning.choose import (
    ask_epochs_and_rate,
    available_layers,
    run_settings,
)
from neuralviz.ui.model_choice import chosen_model_id
from neuralviz.ui.page import dim_old_results, show_error, wide_columns
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.jobs.micro_tuning import BlockChanges
    from neuralviz.layers.marks import MarkGrid
    from neuralviz.models.language_model import Layer

KEY = "layers-marks"
RUNS = SessionRuns(KEY)
LIVE_SECONDS = 0.4
PAPERS_MIX = "(2, 1), (1, 1), (1, 2), (1, 3)"
MEASURES = {"per value": "Root mean square change", "norm": "Norm of the delta"}


def show() -> None:
    """Draw the view."""
    inputs, output = wide_columns([2, 3], KEY)
    model_id = chosen_model_id()
    matching_run = None
    with inputs:
        text = ask_text()
        choice = available_layers(model_id)
        if choice is not None:
            matching_run = _ask_settings(model_id, text, choice[0])
        measure = _choose_measure()
        epoch_place = st.container()
    run: Run[BlockChanges] | None = matching_run or RUNS.last_to_show()
    if run is None:
        return
    is_old, epoch = matching_run is None, None
    with epoch_place:
        if is_old:
            st.caption(
                "The result is of another text or other settings. Press **Tune** to update it."
            )
        if run.is_over and run.result.epochs_known:
            epoch = _choose_epoch(run)
            _show_loss(run.result)
    with output, dim_old_results(KEY, is_old):
        show_run_panel(
            RUNS,
            run,
            partial(_show_marks, run, measure, epoch),
            sentences=_words(run),
            interval=LIVE_SECONDS,
        )
    if run.is_over and run.result.epochs_known and ask_more_figures():
        with dim_old_results(f"{KEY}-more", is_old):
            _show_by_epoch(run, run.result, measure)


# --- before a run ------------------------------------------------------------------------------


def _ask_settings(model_id: str, text: str, layers: Sequence[Layer]) -> Run[BlockChanges] | None:
    """Widgets for a run, which *Tune* starts; a session's first run starts by itself.

    Returns:
        The last run, unless it has another text or other settings than the widgets.
    """
    button = st.container()
    with st.expander("Settings", icon=":material/tune:"):
        kinds = _choose_kinds(layers)
        epochs, learning_rate = ask_epochs_and_rate(st.columns(2), "layers-epochs", "layers-rate")
    pressed = button.button("Tune", type="primary", icon=":material/play_arrow:", key=f"{KEY}-tune")
    last = RUNS.last()
    grid = mark_grid(layers, kinds)
    try:
        settings = run_settings(grid.names, PAPERS_MIX, epochs, learning_rate, unmasked=False)
        if not text.strip():
            raise TextError("The text is empty. Enter at least one word.")
    except NeuralvizError as error:
        if pressed or last is None:
            show_error(error, "Showing the last run instead." if RUNS.last_to_show() else "")
        return None
    task = TuneBlocks(ModelRef.from_id(model_id), text, settings, grid)
    if pressed or last is None:
        return RUNS.start(task, again=True)
    return last if last.task == task else None


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


def _words(run: Run[BlockChanges]) -> RunSentences:
    def stopped(_: BlockChanges) -> str:
        if not run.progress.share:
            return "Stopped before the first step."
        return f"Stopped after {run.progress.share:.0%}. The result so far is shown."

    return RunSentences(describe_stopped=stopped)


def _show_marks(
    run: Run[BlockChanges], measure: str, epoch: int | None, marks: BlockChanges, live: bool
) -> None:
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
    if live or epoch is None:
        epoch = marks.epochs_known
    grid, per_value = _task(run).grid, measure == "per value"
    with slide(KEY):
        show_headline(
            describe_blocks(grid, marks.norms[epoch - 1], per_value=per_value, epoch=epoch), key=KEY
        )
        with allow_swiping(f"{KEY}-scrolled", 480):
            show_figure(
                marks_figure(
                    grid.norms(marks.norms[epoch - 1], per_value=per_value),
                    [kind_in_words(kind) for kind in grid.kinds],
                    grid.blocks,
                    measure=MEASURES[measure],
                    moment=f"epoch {epoch}",
                    full_kinds=grid.kinds,
                ),
                key=f"{KEY}-grid-{run.id}",
                numbers=lambda: _make_table(grid, marks),
                name="change-by-block-and-kind-of-layer",
                height=max(300, 130 + 30 * len(grid.kinds)),
                provenance=_describe_run(_task(run)),
            )
    st.caption(
        "Each cell shows how much one kind of layer changed in one block: "
        + (
            "the root mean square over its values, so that layers of different sizes can be "
            "compared."
            if per_value
            else "the norm of its delta, which grows with the layer's size."
        )
    )


def _task(run: Run[BlockChanges]) -> TuneBlocks:
    return cast("TuneBlocks", run.task)


def _describe_run(task: TuneBlocks) -> About:
    """Title and settings of a run, for downloads."""
    settings = task.settings
    return About(
        "What micro-tuning on a text changes, by block",
        {
            "text": shorten(task.text, 60),
            "model": task.model.id,
            "micro-tuning": (
                f"{many(settings.epochs, 'epoch')}, learning rate {settings.learning_rate:g}, "
                f"{many(len(settings.layers), 'layer')} in {many(len(task.grid.blocks), 'block')}, "
                f"{settings.precision_in_words}"
            ),
        },
    )


def _show_loss(marks: BlockChanges) -> None:
    losses = marks.loss[: marks.epochs_known]
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return
    delta, arrow, is_good = _describe_change(finite)
    st.metric(
        "Loss at the masked positions, nats (lower is better)",
        f"{finite[-1]:.2f}",
        delta=delta or None,
        delta_arrow=arrow,
        delta_color="normal" if is_good else "inverse",  # the number has no sign
        chart_data=finite.tolist() if len(finite) > 1 else None,
        chart_type="line",
    )


def _describe_change(losses: np.ndarray) -> tuple[str, Literal["up", "down", "off"], bool]:
    """The change of a loss as a phrase without a sign, its arrow, and whether it is good."""
    if len(losses) < 2:
        return "", "off", True
    change = float(losses[-1] - losses[0])
    size = f"{abs(change):.2f}"
    if not float(size):
        return "unchanged since epoch 0", "off", True
    return f"{size} since epoch 0", "down" if change < 0 else "up", change < 0


def _choose_measure() -> str:
    return choose_one(
        st.segmented_control,
        "Measure",
        list(MEASURES),
        format_func=MEASURES.__getitem__,
        default="per value",
        key="layers-measure",
        persist_state="session",
        label_visibility="collapsed",
    )


def _choose_epoch(run: Run[BlockChanges]) -> int:
    """The epoch that the heatmap shows."""
    n_epochs = run.result.epochs_known
    if n_epochs < 2:
        return n_epochs
    label = "Epoch shown in the heatmap"
    return st.slider(label, 1, n_epochs, n_epochs, key=f"{KEY}-epoch-{run.id}")


def _show_by_epoch(run: Run[BlockChanges], marks: BlockChanges, measure: str) -> None:
    """Draw the change of each block, epoch by epoch."""
    task, per_value, n_epochs = _task(run), measure == "per value", marks.epochs_known
    blocks = task.grid.blocks
    totals = task.grid.totals(marks.norms, per_value=per_value)
    with slide(f"{KEY}-epochs"):
        show_headline(describe_epochs(totals[:n_epochs]), key=f"{KEY}-epochs")
        show_figure(
            block_totals_figure(
                totals, blocks, measure=MEASURES[measure].lower(), epochs=task.settings.epochs
            ),
            key=f"{KEY}-totals-{run.id}",
            numbers=lambda: pd.DataFrame(
                {
                    "epoch": np.repeat(np.arange(1, n_epochs + 1), len(blocks)),
                    "block": np.tile(blocks, n_epochs),
                    MEASURES[measure].lower(): totals[:n_epochs].ravel(),
                }
            ),
            name="change-by-block",
            height=420,
            provenance=_describe_run(task),
        )
    st.caption(
        "All kinds of layers in a block together (root "
        f"{'mean square' if per_value else 'of the sum of squares'}). AdamW's first step "
        "changes every value by the learning rate, "
        f"{task.settings.learning_rate:g}; after that, values with a steady gradient "
        "keep moving, and those with a fluctuating one slow down."
    )


def _make_table(grid: MarkGrid, marks: BlockChanges) -> pd.DataFrame:
    """A row for every tuned layer and epoch."""
    n_epochs = marks.epochs_known
    layers_table = pd.DataFrame(
        {
            "layer": grid.names,
            "kind": [grid.kinds[row] for row in grid.rows],
            "block": [grid.blocks[column] for column in grid.columns],
            "values": grid.sizes,
        }
    )
    epochs = pd.DataFrame({"epoch": range(1, n_epochs + 1)})
    table = epochs.merge(layers_table, how="cross")
    norm = marks.norms[:n_epochs].ravel()
    return table.assign(norm=norm, root_mean_square=norm / np.sqrt(table["values"]))
