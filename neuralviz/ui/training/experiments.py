"""The training page's experiments: the tables of the crops paper, on the chosen corpus."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import SettingsError
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
from neuralviz.store.results import corpus_view
from neuralviz.training.settings import with_options
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import dim_old_results, plain
from neuralviz.ui.run_panel import RunSentences, describe_finish, show_run_panel
from neuralviz.ui.session_runs import SessionRuns

if TYPE_CHECKING:
    from neuralviz.jobs import Run
    from neuralviz.jobs.training import FilledTable
    from neuralviz.models.shared import ModelRef
    from neuralviz.store.corpora import Corpus
    from neuralviz.training.settings import TrainingSettings

RUNS = SessionRuns("training-table", at_once=1, kept=4)
LIVE_SECONDS = 2.0
MOST_SEEDS = 10
PIXELS_A_ROW = 46
STOPPED = "Stopped. Finished rows are saved; “Run again” goes on from there."


def show_experiments(
    corpus: Corpus, model: ModelRef, label: str, settings: TrainingSettings
) -> None:
    """Ask for a table, fill it and show it.

    Args:
        corpus: the training texts.
        model: the start of each training.
        label: column of labels; empty if there is none.
        settings: shared by all rows; for an embedding table, epochs and rate are the model's.
    """
    if not label:
        st.info("The experiments measure 10-NN accuracy. Choose a corpus with labels.")
        return
    if settings.part == "table":
        st.caption("The experiments train the whole model, with its own epochs and rate.")
        first = first_settings("model")
        settings = with_options(
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
    seeds = st.number_input("Seeds", 1, MOST_SEEDS, 1, key="training-table-seeds")
    task = FillTrainingTable(
        name, model, corpus.id, label, settings, tuple(range(1, int(seeds) + 1))
    )
    view = corpus_view(corpus.id)
    run: Run[FilledTable] | None = RUNS.recall(task, view)
    if st.button("Fill the table", icon=":material/table_rows:", key="training-table-fill"):
        try:
            run = RUNS.start(task, again=run is not None and run.status != "done", view=view)
        except SettingsError as error:
            st.error(plain(str(error)))
    visible_run = run or RUNS.last_to_show()
    if visible_run is None:
        return
    with dim_old_results("training-table", is_old=run is None):
        show_run_panel(
            RUNS,
            visible_run,
            partial(_show, visible_run, corpus.name),
            sentences=RunSentences(
                start="Loading the encoder …",
                describe_stopped=lambda _: STOPPED,
                describe_done=lambda _: describe_finish(visible_run),
            ),
            bar_stays=True,
            interval=LIVE_SECONDS,
        )


def _show(run: Run[FilledTable], corpus: str, result: FilledTable, live: bool) -> None:
    if not result.cells:
        return
    task = run.task
    assert isinstance(task, FillTrainingTable)
    table = training_table(task.table)
    show_headline(describe_table(result.cells, plain(task.labels)), key="training-table")
    rows = len({cell.row for cell in result.cells})
    show_figure(
        training_table_figure(table, result.cells, task.labels),
        key=f"training-table-{run.id}",
        numbers=partial(training_numbers, table, result.cells),
        name=f"training {task.table}",
        height=max(320, 140 + PIXELS_A_ROW * rows),
        provenance=About(
            f"Trainings on “{corpus}”",
            {
                "experiment": task.table,
                "model": task.model.id,
                "labels": task.labels,
                "seeds": ", ".join(map(str, task.seeds)),
            },
        ),
    )
    st.dataframe(training_frame(table, result.cells), hide_index=True)
