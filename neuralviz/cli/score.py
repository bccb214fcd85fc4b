"""The command that scores pairs of sentences with a similarity model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
import typer

from neuralviz.cli.console import print_message, print_notes, progress_bars, stop, stop_on_interrupt
from neuralviz.cli.options import (
    TABLES,
    HeaderOption,
    NoHeaderOption,
    RoleOption,
    header_line,
    split_roles,
)
from neuralviz.errors import Stopped
from neuralviz.evaluation.bootstrap import bootstrap_spearman, interval, seem_reversed
from neuralviz.evaluation.correlation import REVERSE, correlate
from neuralviz.evaluation.lab import kept_vectors
from neuralviz.reading.pairs import read_text_pairs
from neuralviz.reading.source import Source
from neuralviz.store.writing import check_destination, table_bytes, write_table
from neuralviz.training import similarity
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.reading.pairs import ScoredPairs
    from neuralviz.store.embedding import EmbeddingEvent

DIGITS = 4  # of a score

commands = typer.Typer(add_completion=False)


@commands.command()
def score(
    pairs: Annotated[
        Path,
        typer.Argument(
            help=f"Table ({TABLES}) with the columns sentence1 and sentence2. A column score is "
            "compared with."
        ),
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Similarity model: see `neuralviz models list`.")
    ],
    role: RoleOption = None,
    header: HeaderOption = None,
    no_header: NoHeaderOption = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file: .csv, .jsonl or .parquet. Default: CSV on standard output.",
        ),
    ] = None,
) -> None:
    """Score how similar the two sentences of each pair are, as people would.

    Writes the columns `sentence1`, `sentence2`, `predicted` and, if the table has it, `score`.
    """
    line = header_line(header, no_header)
    if output is not None:
        check_destination(output)
    similarity_model = similarity.load_similarity_model(model)
    read = read_text_pairs(Source.from_path(pairs, line), split_roles(role))
    print_notes([*read.notes, similarity_model.scale.describe_other(read.scores, "table")])
    unread = ""
    with stop_on_interrupt() as should_stop, progress_bars() as bars:
        bar = bars.add_task("features", total=None)

        def show(event: EmbeddingEvent) -> None:
            nonlocal unread
            unread = event.unread
            bars.update(bar, completed=event.done, total=event.total)

        try:
            predicted = similarity_model.score(
                read, kept_vectors(), on_progress=show, should_stop=should_stop
            )
        except Stopped as stopped:
            raise stop("Stopped. Nothing was written; features are saved.") from stopped
    print_notes([unread])
    has_score = np.isfinite(read.scores)
    table = _make_table(read, predicted, bool(has_score.any()))
    if output is None:
        typer.echo(table_bytes(".csv", table).decode(), nl=False)
    else:
        write_table(output, table)
        print_message(f"Wrote the scores of {many(len(read), 'pair')} to {output}.")
    _compare(predicted[has_score], read.take(np.flatnonzero(has_score)))


def _compare(predicted: np.ndarray, pairs: ScoredPairs) -> None:
    """Print how scores follow those of the table, if it has any that differ."""
    agreement = correlate(predicted, pairs.scores).spearman
    if not np.isfinite(agreement):
        return
    print_message(
        f"Spearman with the scores of the table: {number(agreement, '.3f')}. "
        "Pairs that the model was trained on make it higher than it is on new ones."
    )
    resampled = bootstrap_spearman(predicted, pairs.scores, cluster=pairs.numbers)
    if len(resampled) and seem_reversed([interval(resampled)]):
        print_message(f"It is clearly below chance (0). {REVERSE}")


def _make_table(pairs: ScoredPairs, predicted: np.ndarray, has_scores: bool) -> pa.Table:
    columns = {
        "sentence1": pa.array(pairs.sentences1, pa.string()),
        "sentence2": pa.array(pairs.sentences2, pa.string()),
        "predicted": pa.array(np.round(predicted, DIGITS)),
    }
    if has_scores:
        columns["score"] = pa.array(pairs.scores, from_pandas=True)
    return pa.table(columns)
