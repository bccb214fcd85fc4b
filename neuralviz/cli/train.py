"""The commands that train an encoder on a saved corpus."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import neuralviz.models
from neuralviz import training
from neuralviz.cli.common import INTERRUPTED, Commands, print_message, status, stop_on_interrupt
from neuralviz.cli.saved_corpora import CorpusArgument, find_corpus, open_store
from neuralviz.cli.train_similarity import train_similarity
from neuralviz.cli.train_table import table
from neuralviz.cli.vectors import progress_bars
from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.evaluation.lab import kept_vectors
from neuralviz.headlines.training import trained_part
from neuralviz.jobs.training import RATES
from neuralviz.models.language_model import MINILM
from neuralviz.models.trained import check_free_name, encoders_folder
from neuralviz.training.kept import training_folder
from neuralviz.training.record import TrainingEnded, TrainingStarted, TrainingStep
from neuralviz.training.settings import TrainingSettings, check_can_be_saved, with_options
from neuralviz.training.snapshots import Watch
from neuralviz.words import many, number

if TYPE_CHECKING:
    from rich.progress import TaskID

    from neuralviz.training.record import TrainingEvent
    from neuralviz.training.settings import PairKind
    from neuralviz.training.snapshots import Snapshot

commands = typer.Typer(
    cls=Commands,
    help="Train an encoder on a saved corpus, or similarity models on scored pairs.",
    no_args_is_help=True,
    add_completion=False,
)

_LINES: dict[PairKind, str] = {
    "crops": "Train on crops: two different chunks of a text should be near each other.",
    "dropout": "Train on dropout: a chunk, read twice, should be near itself.",
    "masking": "Train on masking: as crops, with tokens of both chunks masked.",
}


def _command(kind: PairKind) -> Callable[..., None]:
    def run(
        corpus: CorpusArgument,
        output: Annotated[
            str, typer.Option("--output", "-o", metavar="NAME", help="Name of the trained encoder.")
        ],
        model: Annotated[
            str,
            typer.Option(help="Model to begin with: a name, a Hugging Face Hub ID, or a folder."),
        ] = MINILM,
        labels: Annotated[
            str | None,
            typer.Option(help="Column with labels, to measure k-NN accuracy before and after."),
        ] = None,
        part: Annotated[
            str, typer.Option(help="model, or table: the token embeddings alone.")
        ] = "model",
        start: Annotated[str, typer.Option(help="pretrained or random weights.")] = "pretrained",
        frozen_blocks: Annotated[
            int, typer.Option(help="Blocks from below that are not trained.")
        ] = 0,
        pooling: Annotated[str, typer.Option(help="mean, cls or sep.")] = "mean",
        batch_size: Annotated[int, typer.Option(help="Pairs of a step.")] = 64,
        epochs: Annotated[
            int | None,
            typer.Option(help="Passes over the texts. Default: 1, or 10 for random and table."),
        ] = None,
        steps: Annotated[int | None, typer.Option(help="End after so many steps.")] = None,
        learning_rate: Annotated[
            float | None,
            typer.Option(
                help="Adam's highest learning rate. Default: 1e-4, or 0.003 for a table. The "
                "paper, with far more texts, has 2e-5 and 0.5."
            ),
        ] = None,
        temperature: Annotated[float, typer.Option(help="Divides the cosines.")] = 0.05,
        seed: Annotated[int, typer.Option(help="Decides pairs, batches and dropout.")] = 42,
        sentences: Annotated[int, typer.Option(help="Sentences of a chunk.")] = 2,
        shortest: Annotated[int, typer.Option(help="Skip sentences with fewer characters.")] = 100,
        longest: Annotated[int, typer.Option(help="Skip sentences with more characters.")] = 250,
        splitting: Annotated[
            str, typer.Option(help="sentencex, or full-stops as in the authors' program.")
        ] = "sentencex",
        as_json: Annotated[
            bool, typer.Option("--json", help="Print events as JSON lines.")
        ] = False,
    ) -> None:
        options: dict[str, Any] = {
            "pairs": kind,
            "part": part,
            "start": start,
            "frozen_blocks": frozen_blocks,
            "pooling": pooling,
            "batch_size": batch_size,
            "epochs": epochs,
            "max_steps": steps,
            "learning_rate": learning_rate,
            "temperature": temperature,
            "seed": seed,
            "sentences": sentences,
            "shortest": shortest,
            "longest": longest,
            "splitting": splitting,
        }
        settings = with_options(TrainingSettings(), **options)
        if learning_rate is None:
            settings = with_options(settings, learning_rate=RATES[settings.part])
        _train(corpus, output, model, labels, settings, as_json=as_json)

    run.__doc__ = f"{_LINES[kind]}\n\n    Run the same command again to resume."
    return run


for _kind in _LINES:
    commands.command(_kind)(_command(_kind))
commands.command("table")(table)
commands.command("similarity")(train_similarity)


def _train(
    corpus: str,
    output: str,
    model_id: str,
    labels: str | None,
    settings: TrainingSettings,
    *,
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
        last = None
        try:
            untrained = None
            if watch is not None:
                with status("Measuring the whole model, untrained …"):
                    untrained = training.measure_untrained(
                        model, settings, watch, kept_vectors(), should_stop
                    )
            with status_of_training(as_json, trained_part(settings), untrained) as show:
                for last in events:
                    show(last)
        except Stopped as stop:
            n_steps = last.step if isinstance(last, TrainingStep) else 0
            print_message(
                f"Stopped after {many(n_steps, 'step')}. Run the same command again to resume."
                if n_steps
                else "Stopped before the first step."
            )
            raise typer.Exit(INTERRUPTED) from stop
    assert isinstance(last, TrainingEnded)
    result = last.result
    if result.is_stopped:
        print_message(
            f"Stopped after {many(result.step, 'step')} of {result.steps:,}. Run the same command "
            "again to resume."
        )
        raise typer.Exit(INTERRUPTED)
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


@contextmanager
def status_of_training(
    as_json: bool, part: str, untrained: float | None
) -> Iterator[Callable[[TrainingEvent], None]]:
    """Yield a function that shows events: as JSON lines, or as a bar with lines around it.

    Args:
        as_json: print JSON lines.
        part: what is trained, in words.
        untrained: 0 … 1 accuracy of the whole model as it is; None where it is not measured.
    """
    if as_json:

        def show_json(event: TrainingEvent) -> None:
            line = event_json(event)
            if isinstance(event, TrainingStarted):
                line["whole_model_untrained"] = untrained
            typer.echo(json.dumps(line))

        yield show_json
        return
    with progress_bars() as bars:
        task: TaskID | None = None

        def show(event: TrainingEvent) -> None:
            nonlocal task
            if isinstance(event, TrainingStarted):
                bars.console.print(_describe_start(event, part), highlight=False)
                task = bars.add_task("training", total=event.steps, completed=event.step)
            elif isinstance(event, TrainingStep) and task is not None:
                bars.update(task, completed=event.step, description=f"loss {event.loss:.3f}")
            elif isinstance(event, TrainingEnded):
                bars.console.print(_describe_end(event, untrained), highlight=False)

        yield show


def event_json(event: TrainingEvent) -> dict[str, Any]:
    """An event as ``--json`` prints it.

    Accuracies are 0 … 1 by layer, None without labels; so is a loss that is no number any more, for
    which JSON has no word.
    """
    accuracy = None
    if event.snapshot is not None and event.snapshot.accuracy is not None:
        accuracy = event.snapshot.accuracy.tolist()
    if isinstance(event, TrainingStarted):
        return {
            "event": "start",
            "step": event.step,
            "steps": event.steps,
            "texts": event.n_pairs,
            "measured": event.measured,
            "accuracy": accuracy,
        }
    if isinstance(event, TrainingStep):
        return {
            "event": "step",
            "step": event.step,
            "steps": event.steps,
            "epoch": event.epoch,
            "loss": _finite_or_none(event.loss),
            "learning_rate": event.learning_rate,
            "alignment": _finite_or_none(event.alignment),
            "uniformity": _finite_or_none(event.uniformity),
            "accuracy": accuracy,
        }
    return {
        "event": "end",
        "step": event.result.step,
        "steps": event.result.steps,
        "diverged": event.result.diverged,
        "accuracy": accuracy,
    }


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    loss = event.result.loss
    message = (
        f"Loss: {number(float(loss[0]), '.3f')} at first, {number(float(loss[-1]), '.3f')} at last."
    )
    snapshot = event.snapshot
    if untrained is not None and snapshot is not None and snapshot.accuracy is not None:
        than = "does better" if untrained > snapshot.accuracy[-1] else "has no more"
        message += f" The whole model, untrained, {than}: {untrained:.1%}."
    return f"{message} {_describe_accuracy('After', event.snapshot)}".rstrip()


def _describe_accuracy(moment: str, snapshot: Snapshot | None) -> str:
    if snapshot is None or snapshot.accuracy is None:
        return ""
    best = int(snapshot.accuracy.argmax())
    layer_note = " at the last layer" if len(snapshot.accuracy) > 1 else ""  # a table has no layers
    message = f"{moment}, 10-NN accuracy{layer_note}: {snapshot.accuracy[-1]:.1%}"
    if best != len(snapshot.accuracy) - 1:
        message += f" (best at layer {best}: {snapshot.accuracy[best]:.1%})"
    return f"{message}."
