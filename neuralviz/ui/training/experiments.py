"""The training page's experiments: the tables of the crops paper, on the chosen corpus."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.evaluation.training_tables import (
    TRAINING_TABLES,
    training_frame,
    training_numbers,
    training_table,
)
from neuralviz.headlines.training import describe_table
from neuralviz.jobs.training import FillTrainingTable, first_settings
from neuralviz.plots.standalone import About
from neuralviz.plots.training import training_table_figure
from neuralviz.store.files import corpus_view
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import show_figure
from neuralviz.ui.page import plain
from neuralviz.ui.runs import RunSentences, SessionRuns, find_visible_run, show_visible_run
from neuralviz.ui.stage import show_headline

if TYPE_CHECKING:
    from neuralviz.jobs.training import FilledTable, TrainOnCorpus

RUNS = SessionRuns("training-table")
FILL = "Fill the table"
MOST_SEEDS = 10
PIXELS_A_ROW = 46
STOPPED = "Stopped. Finished rows are saved; “Run again” goes on from there."


def show_experiments(chosen: TrainOnCorpus, corpus: str) -> None:
    """Ask for a table, fill it and show it.

    Args:
        chosen: the training of the page; for an embedding table, epochs and rate are the model's.
        corpus: name of its corpus.
    """
    settings = chosen.settings[0]
    if not chosen.labels:
        st.info("The experiments measure 10-NN accuracy. Choose a corpus with labels.")
        return
    if settings.part == "table":
        st.caption("The experiments train the whole model, with its own epochs and rate.")
        first = first_settings("model")
        settings = replace(
            settings, part="model", epochs=first.n_epochs, learning_rate=first.peak_rate
        )
    name = choose_one(
        st.pills,
        "Experiment",
        list(TRAINING_TABLES),
        key="training-table",
        default=next(iter(TRAINING_TABLES)),
        format_func=str.capitalize,
        help="Each row of the table is a training. Finished rows are saved and found again.",
    )
    st.caption(training_table(name).line)
    n_seeds = st.number_input("Seeds", 1, MOST_SEEDS, 1, key="training-table-seeds")
    seeds = tuple(range(1, int(n_seeds) + 1))
    task = FillTrainingTable(name, chosen.model, chosen.corpus, chosen.labels, settings, seeds)
    pressed = st.button(FILL, icon=":material/table_rows:", key="training-table-fill")
    visible = find_visible_run(RUNS, task, corpus_view(chosen.corpus), pressed=pressed)
    if visible is not None:
        sentences = RunSentences(start="Loading the encoder …", describe_stopped=lambda _: STOPPED)
        draw = partial(_show_table, visible.run.task, corpus)
        show_visible_run(RUNS, visible, FILL, draw, sentences)


def _show_table(task: FillTrainingTable, corpus: str, result: FilledTable, _: bool) -> None:
    if not result.cells:
        return
    table = training_table(task.table)
    show_headline(describe_table(result.cells, plain(task.labels)), key="training-table")
    settings = {
        "experiment": task.table,
        "model": task.model.id,
        "labels": task.labels,
        "seeds": ", ".join(map(str, task.seeds)),
    }
    show_figure(
        training_table_figure(table, result.cells, task.labels),
        key="training-table-figure",
        numbers=partial(training_numbers, table, result.cells),
        name=f"training {task.table}",
        height=max(320, 140 + PIXELS_A_ROW * len({cell.row for cell in result.cells})),
        provenance=About(f"Trainings on “{corpus}”", settings),
    )
    st.dataframe(training_frame(table, result.cells), hide_index=True)
