"""The commands that train: encoders on a saved corpus, and similarity models on scored pairs."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import neuralviz.models
from neuralviz import evaluation, training
from neuralviz.cli.console import (
    Commands,
    print_line,
    print_message,
    print_notes,
    print_table,
    progress_bars,
    run_task,
    status,
    stop,
    stop_on_interrupt,
)
from neuralviz.cli.corpus import find_corpus, open_store
from neuralviz.cli.options import (
    TABLES,
    CorpusArgument,
    HeaderOption,
    NoHeaderOption,
    RoleOption,
    StartModel,
    header_line,
    split_roles,
)
from neuralviz.errors import NeuralvizError, SettingsError, Stopped
from neuralviz.evaluation.lab import kept_vectors
from neuralviz.evaluation.ladder_results import (
    DEFAULT_SEED,
    LadderSettings,
    best_line,
    best_rung,
    ladder_lines,
)
from neuralviz.evaluation.results import EMPTY_CELL
from neuralviz.evaluation.training_tables import (
    TRAINING_TABLES,
    training_frame,
    training_numbers,
    training_table,
)
from neuralviz.headlines.ladder import describe_ladder, warn_of_rung
from neuralviz.headlines.training import trained_part
from neuralviz.jobs.ladder import ClimbLadder, make_similarity_models
from neuralviz.jobs.training import RATES, FillTrainingTable
from neuralviz.models.language_model import MINILM
from neuralviz.models.shared import ModelRef, shared_text_model
from neuralviz.models.trained import check_free_name, encoders_folder
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.store.writing import write_text
from neuralviz.training import similarity
from neuralviz.training.kept import training_folder
from neuralviz.training.record import TrainingEnded, TrainingStarted, TrainingStep
from neuralviz.training.settings import TrainingSettings, check_can_be_saved, with_options
from neuralviz.training.similarity.data import check_different
from neuralviz.training.similarity.kept import check_free_name as check_similarity_name
from neuralviz.training.similarity.settings import RUNG_NAMES, RUNGS
from neuralviz.training.snapshots import Watch
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_results import Ladder
    from neuralviz.training.record import TrainingEvent
    from neuralviz.training.settings import PairKind
    from neuralviz.training.snapshots import Snapshot

BatchOption = Annotated[int, typer.Option(help="Pairs of a step.")]
EpochsOption = Annotated[
    int | None, typer.Option(help="Passes over the texts. Default: 1, or 10 for random and table.")
]
SentencesOption = Annotated[int, typer.Option(help="Sentences of a chunk.")]
ShortestOption = Annotated[int, typer.Option(help="Skip sentences with fewer characters.")]
LongestOption = Annotated[int, typer.Option(help="Skip sentences with more characters.")]

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
    def run(
        corpus: CorpusArgument,
        output: Annotated[
            str, typer.Option("--output", "-o", metavar="NAME", help="Name of the trained encoder.")
        ],
        model: StartModel = MINILM,
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
        batch_size: BatchOption = 64,
        epochs: EpochsOption = None,
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
        sentences: SentencesOption = 2,
        shortest: ShortestOption = 100,
        longest: LongestOption = 250,
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
    """Yield a function that shows events: as JSON lines, or as a bar with lines around it.

    ``untrained`` is the accuracy, 0 … 1, of the whole model as it is, where that was measured.
    """

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
    """An event as ``--json`` prints it.

    Accuracies are 0 … 1 by layer, None without labels; so is a loss that is no number any more, for
    which JSON has no word.
    """
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
    layer_note = " at the last layer" if len(snapshot.accuracy) > 1 else ""  # a table has no layers
    message = f"{moment}, 10-NN accuracy{layer_note}: {snapshot.accuracy[-1]:.1%}"
    if best != len(snapshot.accuracy) - 1:
        message += f" (best at layer {best}: {snapshot.accuracy[best]:.1%})"
    return f"{message}."


# --- tables of the crops paper -------------------------------------------------------------------


@commands.command()
def table(
    experiment: Annotated[
        str, typer.Argument(help=f"Which table to fill: {', '.join(TRAINING_TABLES)}.")
    ],
    corpus: CorpusArgument,
    labels: Annotated[str, typer.Option(help="Column with labels. They are never trained on.")],
    model: StartModel = MINILM,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Train every row this often.")] = 3,
    epochs: EpochsOption = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Adam's highest learning rate, of the whole model.")
    ] = None,
    batch_size: BatchOption = 64,
    sentences: SentencesOption = 2,
    shortest: ShortestOption = 100,
    longest: LongestOption = 250,
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
    saved_corpus = find_corpus(open_store(), corpus)
    saved_corpus.column(labels)  # before a model is loaded
    filled, is_stopped = run_task(
        FillTrainingTable(
            experiment,
            ModelRef.from_id(model),
            saved_corpus.id,
            labels,
            settings,
            tuple(range(1, seeds + 1)),
        )
    )
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


# --- similarity models ---------------------------------------------------------------------------


@commands.command("similarity")
def train_similarity(
    pairs: Annotated[
        Path,
        typer.Argument(help=f"Table ({TABLES}) with the columns sentence1, sentence2 and score."),
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
    name = None if output is None else check_similarity_name(output)
    options: dict[str, Any] = {
        "rungs": tuple(dict.fromkeys(rung or RUNGS)),
        "seeds": tuple(range(DEFAULT_SEED, DEFAULT_SEED + seeds)),
        "max_epochs": epochs,
    }
    LadderSettings(pooling=pooling or "mean", **options)  # type: ignore[arg-type]  # checked first
    line, roles = header_line(header, no_header), split_roles(role)
    given = [
        None if path is None else read_pairs(Source.from_path(path, line), roles)
        for path in (dev, test)
    ]
    all_pairs = read_pairs(Source.from_path(pairs, line), roles)
    split = similarity.split_pairs(all_pairs, *given)
    check_different(split.train.scores, "train")  # before a model is loaded
    print_notes(split.notes)
    print_message(
        f"{many(len(split.train), 'train pair')}, {many(len(split.dev), 'dev pair')}, "
        f"{many(len(split.test), 'test pair')}."
    )
    frozen = ModelRef.from_id(str(Path(model).absolute()) if Path(model).is_dir() else model)
    with status(f"Loading “{model}” …"):
        poolings = evaluation.model_poolings(shared_text_model(frozen.id))
    settings = LadderSettings(pooling=pooling or poolings[0], **options)  # type: ignore[arg-type]
    ladder, is_stopped = run_task(ClimbLadder(frozen, all_pairs, settings, *given))
    if ladder.test is not None:
        print_notes([note for note in ladder.test.notes if note not in split.notes])
    if ladder.baselines:
        _show_ladder(ladder)
    if is_stopped:
        raise stop("Stopped. Features are saved: run the same command again to go on from them.")
    if name is not None:
        _save_best_rung(ladder, frozen, name)


def _save_best_rung(ladder: Ladder, model: ModelRef, name: str) -> None:
    """Save the rung, and of its seeds the one, that is best on the dev pairs."""
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
    """Print the ladder as a table, and its headline."""
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
    print_line(describe_ladder(ladder).replace("**", "").replace("\n\n", " "))


def _format_range(bounds: tuple[float, float] | None, joint: str) -> str:
    return joint.join(map(_format_digits, bounds)) if bounds else ""


def _format_digits(value: float) -> str:
    return EMPTY_CELL if np.isnan(value) else number(value, ".3f")
