"""The commands that train: encoders on a saved corpus, and similarity models on scored pairs."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import neuralviz.models
from neuralviz import training
from neuralviz.cli.console import (
    Commands,
    print_line,
    print_message,
    print_table,
    progress_bars,
    run_task,
    status,
    stop,
    stop_on_interrupt,
)
from neuralviz.cli.corpus import find_corpus, open_store
from neuralviz.cli.options import CorpusArgument, StartModel, setting_options, take_options
from neuralviz.cli.similarity_models import train_similarity
from neuralviz.errors import NeuralvizError, SettingsError, Stopped
from neuralviz.evaluation.lab import kept_vectors
from neuralviz.evaluation.training_tables import (
    TRAINING_TABLES,
    training_frame,
    training_numbers,
    training_table,
)
from neuralviz.headlines.training import trained_part
from neuralviz.jobs.training import RATES, FillTrainingTable
from neuralviz.models.language_model import MINILM
from neuralviz.models.shared import ModelRef
from neuralviz.models.trained import check_free_name, encoders_folder
from neuralviz.store.writing import write_text
from neuralviz.training.kept import training_folder
from neuralviz.training.record import TrainingEnded, TrainingStarted, TrainingStep
from neuralviz.training.settings import TrainingSettings, check_can_be_saved
from neuralviz.training.snapshots import Watch
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.training.record import TrainingEvent
    from neuralviz.training.settings import PairKind
    from neuralviz.training.snapshots import Snapshot

CHUNK_LINES = {
    "sentences": "Sentences of a chunk.",
    "shortest": "Skip sentences with fewer characters.",
    "longest": "Skip sentences with more characters.",
}
LINES = {
    "part": "model, or table: the token embeddings alone.",
    "start": "pretrained or random weights.",
    "frozen_blocks": "Blocks from below that are not trained.",
    "pooling": "mean, cls or sep.",
    "batch_size": "Pairs of a step.",
    "epochs": "Passes over the texts. Default: 1, or 10 for random and table.",
    "learning_rate": "Adam's highest learning rate. Default: 1e-4, or 0.003 for a table. The "
    "paper, with far more texts, has 2e-5 and 0.5.",
    "temperature": "Divides the cosines.",
    "seed": "Decides pairs, batches and dropout.",
    **CHUNK_LINES,
    "splitting": "sentencex, or full-stops as in the authors' program.",
}
TABLE_LINES = {
    "epochs": LINES["epochs"],
    "learning_rate": "Adam's highest learning rate, of the whole model.",
    "batch_size": LINES["batch_size"],
    **CHUNK_LINES,
}
_STEP_NUMBERS = ("step", "steps", "epoch", "loss", "learning_rate", "alignment", "uniformity")
_LINES: dict[PairKind, str] = {
    "crops": "Train on crops: two different chunks of a text should be near each other.",
    "dropout": "Train on dropout: a chunk, read twice, should be near itself.",
    "masking": "Train on masking: as crops, with tokens of both chunks masked.",
}

commands = typer.Typer(
    cls=Commands,
    help="Train an encoder on a saved corpus, or similarity models on scored pairs.",
    no_args_is_help=True,
    add_completion=False,
)


# --- encoders ------------------------------------------------------------------------------------


def _make_command(kind: PairKind) -> Callable[..., None]:
    @take_options(options=setting_options(TrainingSettings, LINES))
    def run(
        corpus: CorpusArgument,
        output: Annotated[
            str, typer.Option("--output", "-o", metavar="NAME", help="Name of the trained encoder.")
        ],
        *,
        model: StartModel = MINILM,
        labels: Annotated[
            str | None,
            typer.Option(help="Column with labels, to measure k-NN accuracy before and after."),
        ] = None,
        options: dict[str, Any],
        steps: Annotated[int | None, typer.Option(help="End after so many steps.")] = None,
        as_json: Annotated[
            bool, typer.Option("--json", help="Print events as JSON lines.")
        ] = False,
    ) -> None:
        settings = TrainingSettings(pairs=kind, max_steps=steps, **options)
        if settings.learning_rate is None:
            settings = replace(settings, learning_rate=RATES[settings.part])
        _train(corpus, output, model, labels, settings, as_json)

    run.__doc__ = f"{_LINES[kind]}\n\n    Run the same command again to resume."
    return run


for _kind in _LINES:
    commands.command(_kind)(_make_command(_kind))


def _train(
    corpus: str,
    output: str,
    model_id: str,
    labels: str | None,
    settings: TrainingSettings,
    as_json: bool,
) -> None:
    name = check_free_name(output)
    check_can_be_saved(settings.pooling)
    store = open_store()
    saved_corpus = find_corpus(store, corpus)
    texts = store.texts(saved_corpus)
    watch = Watch(texts, store.label_names(saved_corpus, labels)) if labels is not None else None
    with status(f"Loading “{model_id}” …"):
        model = neuralviz.models.load_text_model(model_id)
        training.check_family_can_be_saved(model, settings)
    checkpoints = training_folder(training.identity(model, texts, settings)[:16])
    last, untrained = None, None
    with stop_on_interrupt() as should_stop:
        events = training.train(
            model,
            texts,
            settings,
            watch=watch,
            watch_every=None,
            folder=checkpoints,
            should_stop=should_stop,
        )
        try:
            if watch is not None:
                with status("Measuring the whole model, untrained …"):
                    untrained = training.measure_untrained(
                        model, settings, watch, kept_vectors(), should_stop
                    )
            with _show_training(as_json, trained_part(settings), untrained) as show:
                for last in events:
                    show(last)
        except Stopped as stopped:
            n_steps = last.step if isinstance(last, TrainingStep) else 0
            raise _stop_training(n_steps, "") from stopped
    assert isinstance(last, TrainingEnded)
    result = last.result
    if result.is_stopped:
        raise _stop_training(result.step, f" of {result.steps:,}")
    try:
        training.save_encoder(result, model, encoders_folder() / name)
    except NeuralvizError as error:
        raise NeuralvizError(
            f"{error} The training is kept: run the command again with a free --output to save it."
        ) from error
    shutil.rmtree(checkpoints, ignore_errors=True)
    if result.diverged:
        print_message(
            "The loss diverged: the learning rate was too high. Saved the best weights of the run."
        )
    print_message(f"Saved the encoder as “{name}”. Use it with --model {name}.")


def _stop_training(n_steps: int, total: str) -> typer.Exit:
    if not n_steps:
        return stop("Stopped before the first step.")
    return stop(
        f"Stopped after {many(n_steps, 'step')}{total}. Run the same command again to resume."
    )


@contextmanager
def _show_training(
    as_json: bool, part: str, untrained: float | None
) -> Iterator[Callable[[TrainingEvent], None]]:
    """Yield a function that shows events, as JSON or a bar; ``untrained`` is 0 … 1."""

    def show_json(event: TrainingEvent) -> None:
        line = event_json(event)
        if isinstance(event, TrainingStarted):
            line["whole_model_untrained"] = untrained
        typer.echo(json.dumps(line))

    if as_json:
        yield show_json
        return
    with progress_bars() as bars:
        bar = bars.add_task("training", total=None)

        def show(event: TrainingEvent) -> None:
            if isinstance(event, TrainingStarted):
                bars.console.print(_describe_start(event, part), highlight=False)
                bars.update(bar, total=event.steps, completed=event.step)
            elif isinstance(event, TrainingStep):
                bars.update(bar, completed=event.step, description=f"loss {event.loss:.3f}")
            else:
                bars.console.print(_describe_end(event, untrained), highlight=False)

        yield show


def event_json(event: TrainingEvent) -> dict[str, Any]:
    """An event for ``--json``: accuracies 0 … 1 by layer; None if missing or no number."""
    if isinstance(event, TrainingStarted):
        values: dict[str, Any] = {
            "event": "start",
            "step": event.step,
            "steps": event.steps,
            "texts": event.n_pairs,
            "measured": event.measured,
        }
    elif isinstance(event, TrainingStep):
        numbers = {name: getattr(event, name) for name in _STEP_NUMBERS}
        finite = {name: v if math.isfinite(v) else None for name, v in numbers.items()}
        values = {"event": "step", **finite}
    else:
        result = event.result
        values = {"event": "end", "step": result.step, "steps": result.steps}
        values["diverged"] = result.diverged
    accuracy = event.snapshot.accuracy if event.snapshot is not None else None
    return {**values, "accuracy": None if accuracy is None else accuracy.tolist()}


def _describe_start(event: TrainingStarted, part: str) -> str:
    message = f"Training {part}: {many(event.n_pairs, 'text')}, {many(event.steps, 'step')}."
    if event.step:
        message += f" Resuming after {many(event.step, 'step')}."
    if event.skipped:
        message += f" {event.skipped}"
    if event.snapshot is not None and event.snapshot.accuracy is not None:
        message += f" {event.measured} {_describe_accuracy('Before', event.snapshot)}"
    return message


def _describe_end(event: TrainingEnded, untrained: float | None) -> str:
    first, last = (number(float(event.result.loss[i]), ".3f") for i in (0, -1))
    message = f"Loss: {first} at first, {last} at last."
    snapshot = event.snapshot
    if untrained is not None and snapshot is not None and snapshot.accuracy is not None:
        than = "does better" if untrained > snapshot.accuracy[-1] else "has no more"
        message += f" The whole model, untrained, {than}: {untrained:.1%}."
    return f"{message} {_describe_accuracy('After', snapshot)}".rstrip()


def _describe_accuracy(moment: str, snapshot: Snapshot | None) -> str:
    if snapshot is None or snapshot.accuracy is None:
        return ""
    best = int(snapshot.accuracy.argmax())
    layer_note = " at the last layer" if len(snapshot.accuracy) > 1 else ""  # tables have no layers
    message = f"{moment}, 10-NN accuracy{layer_note}: {snapshot.accuracy[-1]:.1%}"
    if best != len(snapshot.accuracy) - 1:
        message += f" (best at layer {best}: {snapshot.accuracy[best]:.1%})"
    return f"{message}."


# --- tables of the crops paper -------------------------------------------------------------------


@commands.command()
@take_options(options=setting_options(TrainingSettings, TABLE_LINES))
def table(
    experiment: Annotated[
        str, typer.Argument(help=f"Which table to fill: {', '.join(TRAINING_TABLES)}.")
    ],
    corpus: CorpusArgument,
    labels: Annotated[str, typer.Option(help="Column with labels. They are never trained on.")],
    *,
    model: StartModel = MINILM,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Train every row this often.")] = 3,
    options: dict[str, Any],
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
    settings = TrainingSettings(**options)
    saved_corpus = find_corpus(open_store(), corpus)
    saved_corpus.column(labels)  # before a model is loaded
    task = FillTrainingTable(
        experiment,
        ModelRef.from_id(model),
        saved_corpus.id,
        labels,
        settings,
        tuple(range(1, seeds + 1)),
    )
    filled, is_stopped = run_task(task)
    cells = filled.cells
    if output is not None and cells:
        write_text(output, training_numbers(paper_table, cells).to_csv(index=False))
    if as_json:
        typer.echo(json.dumps([asdict(cell) for cell in cells], indent=2))
    elif cells:
        frame = training_frame(paper_table, cells)
        rows = [[str(cell) for cell in line] for line in frame.itertuples(index=False)]
        print_table(list(frame.columns), rows)
        n_seeds = len({cell.seed for cell in cells})
        spread = f": mean of {many(n_seeds, 'seed')} (lowest … highest)" if n_seeds > 1 else ""
        print_line(f"10-NN accuracy in percent ↑{spread}. {paper_table.line}")
    if is_stopped:
        raise stop("Stopped. Finished rows are saved; run the same command again to resume.")


commands.command("similarity")(train_similarity)
