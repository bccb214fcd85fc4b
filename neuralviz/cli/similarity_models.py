"""Commands of similarity models: learn human scores of pairs, and score pairs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from neuralviz import evaluation
from neuralviz.cli import options
from neuralviz.cli.console import (
    print_line,
    print_message,
    print_notes,
    print_table,
    run_task,
    run_work,
    status,
    stop,
)
from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.bootstrap import bootstrap, interval, seem_reversed
from neuralviz.evaluation.correlation import REVERSE, correlate
from neuralviz.evaluation.ladder_results import (
    DEFAULT_SEED,
    Ladder,
    LadderSettings,
    best_line,
    best_rung,
    ladder_lines,
)
from neuralviz.evaluation.measures import kept_vectors
from neuralviz.evaluation.results import EMPTY_CELL
from neuralviz.headlines import plain_headline
from neuralviz.headlines.layers import describe_ladder, warn_of_rung
from neuralviz.jobs.ladder import ClimbLadder, make_similarity_models
from neuralviz.jobs.task import Progress
from neuralviz.models.language_model import MINILM
from neuralviz.models.shared import ModelRef, check_free_name, shared_text_model
from neuralviz.reading.pairs import ScoredPairs, read_pairs
from neuralviz.reading.source import Source
from neuralviz.store.embedding import EmbeddingEvent
from neuralviz.store.writing import check_destination, table_bytes, write_table
from neuralviz.training import similarity
from neuralviz.training.similarity.data import check_different
from neuralviz.training.similarity.kept import KIND
from neuralviz.training.similarity.settings import RUNG_NAMES, RUNGS
from neuralviz.words import many, number

DIGITS = 4  # of a score

commands = typer.Typer(add_completion=False)


def train_similarity(
    pairs: Annotated[
        Path,
        typer.Argument(
            help=f"Table ({options.TABLES}) with the columns sentence1, sentence2 and score."
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="NAME", help="Save the best rung under this name."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="Frozen model: a name, a Hugging Face Hub ID, or a folder, of any encoder or "
            "next-token model."
        ),
    ] = MINILM,
    dev: Annotated[
        Path | None,
        typer.Option(help="Dev pairs, which choose the best rung. Default: a fifth of the pairs."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Test pairs. Default: a fifth of the pairs.")
    ] = None,
    role: options.RoleOption = None,
    header: options.HeaderOption = None,
    no_header: options.NoHeaderOption = False,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="mean, cls, sep or last. Default: last for models that predict the next token, "
            "otherwise mean."
        ),
    ] = None,
    rung: Annotated[
        list[str] | None,
        typer.Option(help=f"Rung to train. Repeatable. Default: {', '.join(RUNGS)}."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=100, help="Training runs per rung, each with its own seed.")
    ] = 1,
    epochs: Annotated[
        int, typer.Option(help="Most passes over the pairs.")
    ] = LadderSettings.max_epochs,
) -> None:
    """Learn human scores of pairs of sentences from the layers of a frozen model.

    Features are saved, so the same command is faster the next time.
    """
    name = None if output is None else check_free_name(output, KIND)
    settings = LadderSettings(  # checked before anything is read
        pooling or "mean",  # type: ignore[arg-type]
        tuple(dict.fromkeys(rung or RUNGS)),  # type: ignore[arg-type]
        tuple(range(DEFAULT_SEED, DEFAULT_SEED + seeds)),
        epochs,
    )
    line, roles = options.header_line(header, no_header), options.split_roles(role)
    held_out = [
        None if path is None else read_pairs(Source.from_path(path, line), roles)
        for path in (dev, test)
    ]
    all_pairs = read_pairs(Source.from_path(pairs, line), roles)
    split = similarity.split_pairs(all_pairs, *held_out)
    check_different(split.train.scores, "train")  # before a model is loaded
    print_notes(split.notes)
    print_message(
        f"{many(len(split.train), 'train pair')}, {many(len(split.dev), 'dev pair')}, "
        f"{many(len(split.test), 'test pair')}."
    )
    frozen = ModelRef.from_id(str(Path(model).absolute()) if Path(model).is_dir() else model)
    with status(f"Loading “{model}” …"):
        poolings = evaluation.model_poolings(shared_text_model(frozen.id))
    settings = replace(settings, pooling=pooling or poolings[0])  # type: ignore[arg-type]
    ladder, is_stopped = run_task(ClimbLadder(frozen, all_pairs, settings, *held_out))
    if ladder.test is not None:
        print_notes([note for note in ladder.test.notes if note not in split.notes])
    if ladder.baselines:
        _show_ladder(ladder)
    if is_stopped:
        raise stop("Stopped. Features are saved: run the same command again to resume.")
    if name is not None:
        _save_best_rung(ladder, frozen, name)


def _save_best_rung(ladder: Ladder, model: ModelRef, name: str) -> None:
    best = best_rung(ladder)
    if best is None:
        raise NeuralvizError(
            "Nothing saved: the dev pairs do not say which rung is best. Use more dev pairs."
        )
    print_notes(warn_of_rung(ladder, best))
    rungs = make_similarity_models(model, ladder)
    chosen = next(rung for rung in rungs if rung.trained.settings.rung == best)
    similarity.save_similarity_model(chosen, name)
    print_message(
        f"Saved “{RUNG_NAMES[best]}” as “{name}”. Score pairs with: neuralviz score PAIRS "
        f"--model {name}"
    )


def _show_ladder(ladder: Ladder) -> None:
    lines = ladder_lines(ladder)
    best = best_line(lines)
    heads, rows = ["", "dev ↑", "test ↑", "95% interval", "Pearson ↑", "test, by seed"], []
    for line in lines:
        mark = " *" if line is best else ""
        cells = [f"{line.name}{mark}", _format_digits(line.dev), _format_digits(line.spearman)]
        cells += [_format_range(line.interval, " to "), _format_digits(line.pearson)]
        rows.append([*cells, _format_range(line.spread, "…")])
    has_seeds = any(line.spread for line in lines)
    print_table(heads if has_seeds else heads[:-1], rows if has_seeds else [r[:-1] for r in rows])
    legend = "Spearman with the human scores."
    print_line(f"{legend} * best on the dev pairs, baselines included." if best else legend)
    print_line(plain_headline(describe_ladder(ladder)))


def _format_range(bounds: tuple[float, float] | None, joint: str) -> str:
    return joint.join(map(_format_digits, bounds)) if bounds else ""


def _format_digits(value: float) -> str:
    return EMPTY_CELL if np.isnan(value) else number(value, ".3f")


@commands.command()
def score(
    pairs: Annotated[
        Path,
        typer.Argument(
            help=f"Table ({options.TABLES}) with the columns sentence1 and sentence2. Predictions "
            "are compared with the column score, if there is one."
        ),
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Similarity model: see `neuralviz models list`.")
    ],
    role: options.RoleOption = None,
    header: options.HeaderOption = None,
    no_header: options.NoHeaderOption = False,
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
    line = options.header_line(header, no_header)
    if output is not None:
        check_destination(output)
    similarity_model = similarity.load_similarity_model(model)
    source = Source.from_path(pairs, line)
    read = read_pairs(source, options.split_roles(role), needs_scores=False)
    print_notes([*read.notes, similarity_model.scale.describe_other(read.scores, "table")])
    unread = ""

    def find_progress(event: EmbeddingEvent) -> Progress:
        nonlocal unread
        unread = event.unread
        return Progress(event.done, event.total, doing="features")

    predicted = run_work(partial(similarity_model.score, read, kept_vectors()), find_progress)
    if predicted is None:
        raise stop("Stopped. Nothing was written; features are saved.")
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
    agreement = correlate(predicted, pairs.scores).spearman
    if not np.isfinite(agreement):
        return
    print_message(
        f"Spearman with the scores of the table: {number(agreement, '.3f')}. "
        "It is higher on pairs that the model was trained on."
    )
    drawn = bootstrap(predicted, pairs.scores, ["spearman"], cluster=pairs.numbers)
    if drawn and seem_reversed([interval(drawn["spearman"])]):
        print_message(f"It is significantly below chance (0). {REVERSE}")


def _make_table(pairs: ScoredPairs, predicted: np.ndarray, has_scores: bool) -> pa.Table:
    columns = {
        "sentence1": pa.array(pairs.sentences1, pa.string()),
        "sentence2": pa.array(pairs.sentences2, pa.string()),
        "predicted": pa.array(np.round(predicted, DIGITS)),
    }
    if has_scores:
        columns["score"] = pa.array(pairs.scores, from_pandas=True)
    return pa.table(columns)
