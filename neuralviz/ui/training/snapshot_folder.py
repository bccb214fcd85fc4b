"""A folder of snapshots on the training page: a training by another program, live or over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.headlines.training import describe_lessons
from neuralviz.plots.standalone import About
from neuralviz.plots.training import (
    accuracy_by_layer_figure,
    accuracy_map_figure,
    training_loss_figure,
)
from neuralviz.training.folders import RecordedTraining, read_folder
from neuralviz.training.record import Lesson
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.stage import slide
from neuralviz.words import many

KEY = "training-folder"
LABEL = "label"


def open_folder() -> None:
    """Ask for a folder that `SnapshotCallback` writes, and show its snapshots."""
    if effective_settings().demo:
        return
    with st.expander("Open a folder of snapshots"):
        st.caption(
            "`neuralviz.training.SnapshotCallback` records a training by sentence-transformers' "
            "Trainer into a folder. Open it again to see how far the training has come."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            folder = st.text_input("Folder", key=KEY, placeholder="/path/to/snapshots")
            pressed = st.button("Open", icon=":material/folder_open:", key=f"{KEY}-open")
    if pressed:
        st.session_state.pop(f"{KEY}-read", None)
        if not folder.strip():
            st.info("Enter the path of a folder first.")
            return
        try:
            st.session_state[f"{KEY}-read"] = (folder.strip(), read_folder(folder.strip()))
        except NeuralvizError as error:
            show_error(error)
    if f"{KEY}-read" in st.session_state:
        _show(*st.session_state[f"{KEY}-read"])


def _show(folder: str, recorded: RecordedTraining) -> None:
    lesson = recorded.lesson
    provenance = About(
        "A recorded training",
        {"folder": folder, "model": recorded.model, "steps": f"{lesson.steps:,}"},
    )
    with slide(KEY):
        st.subheader(plain(Path(folder).name), anchor=False)
        show_headline(describe_lessons([lesson], LABEL if recorded.labels else ""), key=KEY)
        state = "finished" if lesson.is_over else "so far"
        st.caption(
            plain(
                f"{folder}: {many(lesson.step, 'step')} of {lesson.steps:,}, {state}; "
                f"{many(len(lesson.snapshots), 'snapshot')} of {many(len(recorded.texts), 'text')}."
            )
        )
        left_column, right_column = wide_columns(2, f"{KEY}-seen")
        with left_column:
            show_figure(
                training_loss_figure([lesson]), key=f"{KEY}-loss", name="training loss",
                height=340, provenance=provenance, numbers=lambda: _tabulate_losses(lesson),
            )  # fmt: skip
        if len(lesson.accuracy):
            with right_column:
                show_figure(
                    accuracy_by_layer_figure([lesson], LABEL), key=f"{KEY}-layers",
                    name="accuracy by layer", height=340, provenance=provenance,
                    numbers=lambda: _tabulate_accuracies(lesson),
                )  # fmt: skip
    if len(lesson.accuracy) > 1:
        with slide(f"{KEY}-maps"):
            show_figure(
                accuracy_map_figure(lesson, [lesson], name=Path(folder).name),
                key=f"{KEY}-steps",
                name="accuracy by step",
                height=340,
                provenance=provenance,
                numbers=lambda: _tabulate_accuracies(lesson),
            )


def _tabulate_losses(lesson: Lesson) -> pd.DataFrame:
    steps = np.arange(1, lesson.step + 1)
    return pd.DataFrame({"step": steps, "loss": lesson.loss, "learning_rate": lesson.learning_rate})


def _tabulate_accuracies(lesson: Lesson) -> pd.DataFrame:
    steps = [snapshot.step for snapshot in lesson.snapshots]
    layers = [f"layer {number}" for number in range(lesson.accuracy.shape[1])]
    return pd.DataFrame(lesson.accuracy, columns=layers).assign(step=steps)
