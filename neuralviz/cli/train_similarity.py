"""The command that trains similarity models on scored pairs, and keeps the best."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import neuralviz.models
from neuralviz import evaluation
from neuralviz.cli.common import INTERRUPTED, print_message, status, stop_on_interrupt
from neuralviz.cli.data_sets import RoleOption, split_roles
from neuralviz.cli.terminal import printable
from neuralviz.cli.vectors import HeaderOption, NoHeaderOption, header_line, progress_bars
from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.evaluation.lab import kept_vectors
from neuralviz.evaluation.ladder_results import (
    DEFAULT_SEED,
    FeatureProgress,
    Ladder,
    LadderSettings,
    RungEvent,
    RungResult,
    best_line,
    best_result,
    best_rung,
    ladder_lines,
)
from neuralviz.evaluation.results import EMPTY_CELL
from neuralviz.headlines.ladder import describe_ladder, warn_of_rung
from neuralviz.models.language_model import MINILM
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.training import similarity
from neuralviz.training.similarity.data import check_different
from neuralviz.training.similarity.folder import check_free_name
from neuralviz.training.similarity.settings import (
    RUNG_NAMES,
    RUNGS,
    AutoencoderEpoch,
    SimilarityEpoch,
)
from neuralviz.words import many, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

    from neuralviz.evaluation.ladder_results import LadderEvent

PairsArgument = Annotated[
    Path,
    typer.Argument(
        help="Table (.csv, .tsv, .jsonl, .json, .parquet, .xlsx) with the columns sentence1, "
        "sentence2 and score."
    ),
]


def train_similarity(
    pairs: PairsArgument,
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
        Path | None, typer.Option(help="Dev pairs, to choose by. Default: a fifth of the pairs.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Test pairs. Default: a fifth of the pairs.")
    ] = None,
    role: RoleOption = None,
    header: HeaderOption = None,
    no_header: NoHeaderOption = False,
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
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Train every rung this often.")] = 1,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the pairs at most. Default: 60.")
    ] = None,
) -> None:
    """Learn human scores of pairs of sentences from the layers of a frozen model.

    Features are saved, so the same command is faster the next time.
    """
    name = None if output is None else check_free_name(output)
    rungs = tuple(dict.fromkeys(rung or RUNGS))
    options: dict[str, Any] = {"pooling": pooling or "mean", "rungs": rungs}
    first = DEFAULT_SEED
    settings = LadderSettings(
        seeds=tuple(range(first, first + seeds)), max_epochs=epochs, **options
    )
    line = header_line(header, no_header=no_header)
    roles = split_roles(role)
    held_out_pairs = (
        None if path is None else read_pairs(Source.from_path(path, line), roles)
        for path in (dev, test)
    )
    split = similarity.split_pairs(
        read_pairs(Source.from_path(pairs, line), roles), *held_out_pairs
    )
    check_different(split.train.scores, "train")  # before a model is loaded
    for note in split.notes:
        print_message(note)
    print_message(
        f"{many(len(split.train), 'train pair')}, {many(len(split.dev), 'dev pair')}, "
        f"{many(len(split.test), 'test pair')}."
    )
    with status(f"Loading “{model}” …"):
        frozen = neuralviz.models.load_text_model(model)
    if pooling is None:
        settings = replace(settings, pooling=evaluation.model_poolings(frozen)[0])
    own_embeddings = evaluation.own_embeddings(frozen, split)
    ladder = Ladder()
    stopped = False
    with stop_on_interrupt() as should_stop:
        events = evaluation.train_ladder(
            frozen,
            split,
            settings,
            kept_vectors(),
            own_embedders=own_embeddings,
            should_stop=should_stop,
        )
        try:
            with closing(events), progress_bars() as bars:
                for event in _draw_progress(events, bars):
                    ladder = ladder.having([event])
        except Stopped:
            stopped = True
    if ladder.test is not None:
        for note in ladder.test.notes[len(split.notes) :]:
            print_message(note)
    if ladder.baselines:
        _show(ladder)
    if stopped:
        print_message("Stopped. Features are saved: run the same command again to go on from them.")
        raise typer.Exit(INTERRUPTED)
    if name is not None:
        _save(ladder, str(Path(model).absolute()) if Path(model).is_dir() else model, name)


def _save(ladder: Ladder, model: str, name: str) -> None:
    """Save the rung, and of its seeds the one, that is best on the dev pairs.

    Raises:
        NeuralvizError: the dev pairs choose no rung, or the model cannot be written.
    """
    best = best_rung(ladder)
    if best is None or ladder.test is None:
        if ladder.results:
            raise NeuralvizError(
                "Nothing saved: the dev pairs do not say which rung is best. Use more dev pairs."
            )
        return
    for warning in warn_of_rung(ladder, best):
        print_message(warning)
    similarity_model = similarity.SimilarityModel(
        best_result(ladder, best).trained, ladder.test.scale, model, ladder.test.fingerprint
    )
    similarity.save_similarity_model(similarity_model, name)
    print_message(
        f"Saved “{RUNG_NAMES[best]}” as “{name}”. Score pairs with: neuralviz score PAIRS "
        f"--model {name}"
    )


def _draw_progress(events: Iterator[LadderEvent], bars: Progress) -> Iterator[LadderEvent]:
    """Pass events on; draw a bar for the features and for every rung and seed."""
    tasks: dict[object, TaskID] = {}
    for event in events:
        yield event
        if isinstance(event, FeatureProgress):
            if event.source not in tasks:
                tasks[event.source] = bars.add_task(f"features ({event.source})", total=event.total)
            bars.update(tasks[event.source], completed=event.done)
        elif isinstance(event, RungEvent):
            place = event.rung, event.seed
            if place not in tasks:
                tasks[place] = bars.add_task(f"{RUNG_NAMES[event.rung]}, seed {event.seed}")
            training_event = event.event
            if isinstance(training_event, AutoencoderEpoch | SimilarityEpoch):
                bars.update(
                    tasks[place], completed=training_event.epoch, total=training_event.epochs
                )
        elif isinstance(event, RungResult):
            n_epochs = event.trained.epochs
            bars.update(tasks[event.rung, event.seed], completed=n_epochs, total=n_epochs)


def _show(ladder: Ladder) -> None:
    """Print the ladder as a table, and its main finding."""
    lines = ladder_lines(ladder)
    best = best_line(lines)
    has_seeds = any(line.spread for line in lines)
    table = Table(box=None, pad_edge=False, collapse_padding=has_seeds)
    for head in ("", "dev ↑", "test ↑", "95% interval", "Pearson ↑"):
        table.add_column(head, justify="right" if head else "left")
    if has_seeds:
        table.add_column("test, by seed", justify="right")
    for line in lines:
        mark = " *" if line is best else ""
        cells = [f"{line.name}{mark}", _format_digits(line.dev), _format_digits(line.spearman)]
        cells += [_format_range(line.interval, " to "), _format_digits(line.pearson)]
        if has_seeds:
            cells.append(_format_range(line.spread, " … "))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console = Console(highlight=False)
    console.print(table)
    message = "Spearman with the human scores."
    if best is not None:
        message += " * best on the dev pairs, baselines included."
    console.print(message)
    if headline := describe_ladder(ladder).replace("**", "").replace("\n\n", " "):
        console.print(Text(printable(headline)))


def _format_range(bounds: tuple[float, float] | None, joint: str) -> str:
    return joint.join(map(_format_digits, bounds)) if bounds else ""


def _format_digits(value: float) -> str:
    return EMPTY_CELL if value != value else number(value, ".3f")
