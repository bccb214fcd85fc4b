"""The command that fills a table of trainings: an experiment of the crops paper."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import neuralviz.models
from neuralviz import evaluation
from neuralviz.cli.common import INTERRUPTED, print_message, status, stop_on_interrupt
from neuralviz.cli.saved_corpora import CorpusArgument, find_corpus, open_store
from neuralviz.cli.terminal import printable
from neuralviz.cli.vectors import progress_bars
from neuralviz.errors import SettingsError, Stopped
from neuralviz.evaluation.training_tables import (
    TRAINING_TABLES,
    TrainingCell,
    training_table,
)
from neuralviz.models.language_model import MINILM
from neuralviz.store.writing import write_text
from neuralviz.training.settings import TrainingSettings, with_options
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress

    from neuralviz.evaluation.training_lab import RowProgress
    from neuralviz.evaluation.training_tables import TrainingTable


def table(
    experiment: Annotated[
        str, typer.Argument(help=f"Which table to fill: {', '.join(TRAINING_TABLES)}.")
    ],
    corpus: CorpusArgument,
    labels: Annotated[str, typer.Option(help="Column with labels. They are never trained on.")],
    model: Annotated[
        str,
        typer.Option(help="Model to begin with: a name, a Hugging Face Hub ID, or a folder."),
    ] = MINILM,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Train every row this often.")] = 3,
    epochs: Annotated[
        int | None,
        typer.Option(help="Passes over the texts. Default: 1, or 10 for random and table."),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Adam's highest learning rate, of the whole model.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Pairs of a step.")] = 64,
    sentences: Annotated[int, typer.Option(help="Sentences of a chunk.")] = 2,
    shortest: Annotated[int, typer.Option(help="Skip sentences with fewer characters.")] = 100,
    longest: Annotated[int, typer.Option(help="Skip sentences with more characters.")] = 250,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file for the table.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results, 0 … 1, as JSON.")
    ] = False,
) -> None:
    """Fill a table of the crops paper on a saved corpus: a training for every row and seed.

    Finished rows are saved: run the same command again to resume.
    """
    paper_table = training_table(experiment)
    if output is not None and output.suffix != ".csv":
        raise SettingsError("The table is written as CSV. Use a file name that ends in .csv.")
    settings = with_options(
        TrainingSettings(),
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        sentences=sentences,
        shortest=shortest,
        longest=longest,
    )
    store = open_store()
    saved_corpus = find_corpus(store, corpus)
    of_texts = store.label_names(saved_corpus, labels)
    with status(f"Loading “{model}” …"):
        start = neuralviz.models.load_text_model(model)
    rows = paper_table.rows(settings, start.n_blocks)
    cells: list[TrainingCell] = []
    stopped = False
    with stop_on_interrupt() as should_stop:
        events = evaluation.fill_table(
            rows,
            start,
            store.texts(saved_corpus),
            of_texts,
            seeds=range(1, seeds + 1),
            should_stop=should_stop,
        )
        try:
            with closing(events), progress_bars() as bars:
                cells.extend(_draw_progress(events, bars))
        except Stopped:
            stopped = True
    if output is not None and cells:
        write_text(output, evaluation.training_numbers(paper_table, cells).to_csv(index=False))
    if as_json:
        typer.echo(json.dumps([asdict(cell) for cell in cells], indent=2))
    elif cells:
        _show(paper_table, cells)
    if stopped:
        print_message("Stopped. Finished rows are saved; run the same command again to resume.")
        raise typer.Exit(INTERRUPTED)


def _draw_progress(
    events: Iterator[RowProgress | TrainingCell], bars: Progress
) -> Iterator[TrainingCell]:
    """Pass finished cells on; draw a bar for every row and seed."""
    task, place = None, None
    for event in events:
        if isinstance(event, TrainingCell):
            yield event
            continue
        if task is None or place != (event.row, event.seed):
            place = (event.row, event.seed)
            task = bars.add_task(f"{event.row}, seed {event.seed}", total=event.steps or None)
        bars.update(task, completed=event.step, total=event.steps or None)


def _show(paper_table: TrainingTable, cells: Sequence[TrainingCell]) -> None:
    frame = evaluation.training_frame(paper_table, cells)
    printed_table = Table(box=None, pad_edge=False)
    for place, head in enumerate(frame.columns):
        printed_table.add_column(Text(head), justify="left" if place == 0 else "right")
    for line in frame.itertuples(index=False):
        printed_table.add_row(*(Text(printable(str(cell))) for cell in line))
    console = Console(highlight=False)
    console.print(printed_table)
    seeds = len({cell.seed for cell in cells})
    message = "10-NN accuracy in percent ↑"
    if seeds > 1:
        message += f": mean of {many(seeds, 'seed')} (lowest … highest)"
    console.print(Text(printable(f"{message}. {paper_table.line}")))
