"""The commands that train: encoders on a saved corpus, and similarity models on scored pairs."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import typer

import neuralviz.models
from neuralviz import training
from neuralviz.cli.console import (
    Commands,
    print_message,
    progress_bars,
    status,
    stop,
    stop_on_interrupt,
)
from neuralviz.cli.corpus import open_corpus
from neuralviz.cli.options import CorpusArgument, StartModel, setting_options, take_options
from neuralviz.cli.similarity_models import train_similarity
from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.evaluation.measures import kept_vectors
from neuralviz.headlines import plain_headline
from neuralviz.headlines.training import (
    describe_lessons,
    describe_trained_layers,
    describe_untrained,
    trained_part,
)
from neuralviz.jobs.training import RATES
from neuralviz.models.language_model import MINILM
from neuralviz.models.shared import check_free_name, encoders_folder
from neuralviz.training.record import (
    Lesson,
    LessonChange,
    TrainingEnded,
    TrainingEvent,
    TrainingStarted,
    TrainingStep,
    Watch,
    make_change,
    training_folder,
)
from neuralviz.training.settings import PAIR_LINES, PairKind, TrainingSettings, check_can_be_saved
from neuralviz.words import many

LINES = {
    "part": "What is trained: model, or table (the token embeddings alone).",
    "start": "Start from pretrained or random weights.",
    "frozen_blocks": "Number of blocks to freeze, from below.",
    "pooling": "Pooling: mean, cls or sep.",
    "batch_size": "Pairs per step.",
    "epochs": "Passes over the texts. Default: 1, or 10 for random and table.",
    "learning_rate": "Adam's highest learning rate. Default: 1e-4, or 0.003 for a table. The "
    "paper, with far more texts, uses 2e-5 and 0.5.",
    "temperature": "What cosine similarities are divided by.",
    "seed": "Random seed of pairs, batches and dropout.",
    "sentences": "Sentences per chunk.",
    "shortest": "Skip sentences with fewer characters.",
    "longest": "Skip sentences with more characters.",
    "splitting": "How texts are split: sentencex, or full-stops as in the authors' program.",
}
SECONDS_A_LINE = 30.0  # in a file, which has no bar
_STEP_NUMBERS = ("step", "steps", "epoch", "loss", "learning_rate", "alignment", "uniformity")

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
        steps: Annotated[int | None, typer.Option(help="Stop after this many steps.")] = None,
        as_json: Annotated[
            bool, typer.Option("--json", help="Print events as JSON lines.")
        ] = False,
    ) -> None:
        settings = TrainingSettings(pairs=kind, max_steps=steps, **options)
        if settings.learning_rate is None:
            settings = replace(settings, learning_rate=RATES[settings.part])
        _train(corpus, output, model, labels, settings, as_json)

    line = f"Train on {kind}: {PAIR_LINES[kind]}."
    run.__doc__ = f"{line}\n\n    Run the same command again to resume."
    return run


for _kind in PAIR_LINES:
    commands.command(_kind)(_make_command(_kind))


def _train(
    corpus: str,
    output: str,
    model_id: str,
    label: str | None,
    settings: TrainingSettings,
    as_json: bool,
) -> None:
    name = check_free_name(output)
    check_can_be_saved(settings.pooling)
    store, saved_corpus = open_corpus(corpus)
    texts = store.texts(saved_corpus)
    watch = Watch(texts, store.label_names(saved_corpus, label)) if label is not None else None
    with status(f"Loading “{model_id}” …"):
        model = neuralviz.models.load_text_model(model_id)
        training.check_family_can_be_saved(model, settings)
    checkpoints = training_folder(training.identity(model, texts, settings)[:16])
    changes: list[LessonChange] = []
    untrained, result, next_line = None, None, 0.0
    with stop_on_interrupt() as should_stop, suppress(Stopped):
        if watch is not None:
            with status("Measuring the whole model, untrained …"):
                untrained = training.measure_untrained(
                    model, settings, watch, kept_vectors(), should_stop
                )
        with progress_bars() as bars:
            bar = bars.add_task("training", total=None)
            for event in training.train(
                model,
                texts,
                settings,
                watch=watch,
                watch_every=None,
                folder=checkpoints,
                should_stop=should_stop,
            ):
                changes.append(make_change(event))
                if as_json:
                    typer.echo(json.dumps(event_json(event, untrained)))
                elif isinstance(event, TrainingStarted):
                    message = _describe_start(event, settings)
                    bars.console.print(message, highlight=False, markup=False)
                elif isinstance(event, TrainingStep):
                    bars.update(bar, description=f"loss {event.loss:.3f}")
                    if not bars.console.is_terminal and time.monotonic() >= next_line:
                        next_line = time.monotonic() + SECONDS_A_LINE
                        print_message(
                            f"Step {event.step:,} of {event.steps:,}: loss {event.loss:.3f}"
                        )
                if isinstance(event, TrainingEnded):
                    result = event.result
                else:
                    bars.update(bar, total=event.steps, completed=event.step)
    lesson = Lesson(settings, untrained=untrained).having(changes)
    if result is None or result.is_stopped:
        steps = many(lesson.step, "step")
        raise stop(f"Stopped after {steps}. Run the same command again to resume.")
    if not as_json:
        print_message(_describe_end(lesson, label or ""))
    try:
        training.save_encoder(result, model, encoders_folder() / name)
    except NeuralvizError as error:
        raise NeuralvizError(
            f"{error} The training is saved: run the command again with another --output."
        ) from error
    shutil.rmtree(checkpoints, ignore_errors=True)
    print_message(f"Saved the encoder as “{name}”. Use it with --model {name}.")


def event_json(event: TrainingEvent, untrained: float | None = None) -> dict[str, Any]:
    """An event for ``--json``: accuracies 0 … 1 by layer; None if missing or no number."""
    if isinstance(event, TrainingStarted):
        counts = {"step": event.step, "steps": event.steps, "texts": event.n_pairs}
        values = {"event": "start", **counts, "measured": event.measured}
        values["whole_model_untrained"] = untrained
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


def _describe_start(event: TrainingStarted, settings: TrainingSettings) -> str:
    sizes = f"{many(event.n_pairs, 'text')}, {many(event.steps, 'step')}."
    resuming = f"Resuming after {many(event.step, 'step')}." if event.step else ""
    sentences = (resuming, event.skipped, event.measured)
    return " ".join(filter(None, [f"Training {trained_part(settings)}: {sizes}", *sentences]))


def _describe_end(lesson: Lesson, label: str) -> str:
    """What the page says of the training, as plain text."""
    sentences = [describe_lessons([lesson], label), describe_untrained([lesson])]
    if len(lesson.accuracy) and lesson.accuracy.shape[1] > 1:  # tables have no layers
        sentences.append(describe_trained_layers([lesson]))
    return plain_headline(" ".join(filter(None, sentences)))


commands.command("similarity")(train_similarity)
