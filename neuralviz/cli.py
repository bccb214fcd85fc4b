"""The command line: the same work without a browser.

What needs torch is imported when a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from neuralviz import __version__
from neuralviz.errors import LossWarning, NeuralvizError
from neuralviz.terminal import printable

if TYPE_CHECKING:
    import numpy as np

    from neuralviz.corpus.reading import ReadTexts
    from neuralviz.embedders import Embedder
    from neuralviz.micro_tuning import MicroTuning, TuningSettings
    from neuralviz.models import LanguageModel

REFUSED = 2
INTERRUPTED = 130
MANY_POSITIONS = 200_000  # masked positions of a run that takes minutes


class _Commands(TyperGroup):
    """Commands whose errors are sentences on standard error."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NeuralvizError as error:
            _say(str(error))
            raise typer.Exit(REFUSED) from error
        except KeyboardInterrupt as interrupt:
            _say("Stopped.")
            raise typer.Exit(INTERRUPTED) from interrupt


app = typer.Typer(
    cls=_Commands,
    help="See what a masked language model learns from a text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
models = typer.Typer(help="List, look into and export language models.", no_args_is_help=True)
app.add_typer(models, name="models")

ModelOption = Annotated[
    str, typer.Option("--model", help="“bundled”, the id of a model on the hub, or a folder.")
]


def main() -> None:
    """Entry point of the command ``neuralviz``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # terminals that cannot show every character
    app(prog_name="neuralviz")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"neuralviz {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    pass


@app.command("app", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def open_app(
    context: typer.Context,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="By default 8501, or the next one that is free."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to serve at; 0.0.0.0 for everybody on the network.")
    ] = "localhost",
) -> None:
    """Open the app in the browser.

    Other options go to `streamlit run` as they are: `--server.headless true` opens no browser.
    """
    from neuralviz.paths import app_folder

    command = [sys.executable, "-m", "streamlit", "run", str(app_folder() / "app.py")]
    command += [f"--server.address={host}"]
    command += [f"--server.port={port}"] if port else []
    os.execv(sys.executable, [*command, *context.args])


@app.command()
def embed(
    file: Annotated[Path, typer.Argument(help="One text a line, or a CSV with a column of texts.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet, .csv or .jsonl file to write.")
    ],
    method: Annotated[str, typer.Option(help="How to embed: neural.")] = "neural",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the method, again and again. neural: layers=head (or last_block, or "
            "names as `neuralviz models layers` lists them), blueprints='(2,1), (1,3)', epochs=10, "
            "learning_rate=0.01, weight_decay=0.01, predict_unmasked=no.",
        ),
    ] = None,
    model: ModelOption = "bundled",
    column: Annotated[str | None, typer.Option(help="The CSV column of the texts.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first so many texts.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts that go together.")] = 32,
) -> None:
    """Embed the texts of a file: columns `id`, `text` and `vector`."""
    from neuralviz.corpus.writing import check_destination
    from neuralviz.embedders import make_embedder, read_options
    from neuralviz.micro_tuning.settings import TuningSettings, check_numbers

    check_destination(output)
    values = read_options(method, _split_options(option or []))
    numbers = ("epochs", "learning_rate", "weight_decay")  # looked at before a download
    check_numbers(*(values.get(name, getattr(TuningSettings, name)) for name in numbers))
    read = _read_file(file, column)
    if output.exists() and output.samefile(file):
        raise NeuralvizError("The output is the file that is read; give another name.")
    texts = read.texts[:limit]
    ids = (read.ids or tuple(str(number) for number in range(1, len(read.texts) + 1)))[:limit]
    language_model = _load(model)
    embedder = make_embedder(method, language_model, values)
    _embed(language_model, embedder, texts, ids, output, batch_size)


def _split_options(options: list[str]) -> dict[str, str]:
    """``name=value`` pairs as a mapping."""
    values: dict[str, str] = {}
    for entry in options:
        name, sign, value = entry.partition("=")
        if not sign:
            raise NeuralvizError(f"“{entry[:40]}” is not an option; write NAME=VALUE.")
        if name.strip() in values:
            raise NeuralvizError(f"The option {name.strip()} is given twice.")
        values[name.strip()] = value.strip()
    return values


def _read_file(file: Path, column: str | None) -> ReadTexts:
    """The texts of a file; what was left out is said."""
    from neuralviz.corpus.reading import read_texts

    try:
        content = file.read_bytes()
    except OSError as error:
        raise NeuralvizError(f"{file} cannot be read: {error.strerror or error}.") from error
    read = read_texts(file.name, content, column=column)
    if read.column is not None and column is None:
        _say(f"The texts are those of the column “{read.column}”; --column takes another one.")
    for note in read.notes:
        _say(note)
    return read


def _embed(
    model: LanguageModel,
    embedder: Embedder,
    texts: tuple[str, ...],
    ids: tuple[str, ...],
    output: Path,
    batch_size: int,
) -> None:
    """Embed batch by batch and write; when interrupted, write what is finished."""
    import numpy as np
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    from neuralviz.corpus.writing import write_vectors
    from neuralviz.embedders import NeuralEmbedder
    from neuralviz.micro_tuning.plan import count_masked
    from neuralviz.models import tokenize

    tokenized = tokenize(model, texts)  # an unreadable text is found before the work
    if isinstance(embedder, NeuralEmbedder):
        positions = sum(count_masked(text, embedder.settings) for text in tokenized)
        if positions * embedder.settings.epochs > MANY_POSITIONS:
            _say("This may take minutes; Ctrl-C ends it and keeps the batches that are finished.")
    finished: list[np.ndarray] = []
    n_rose = 0
    stopped = False
    columns = (TextColumn("Embedding"), BarColumn(), MofNCompleteColumn(), Remaining())
    console = _stderr()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(texts))
        try:
            for start in range(0, len(texts), batch_size):
                batch = texts[start : start + batch_size]
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always", LossWarning)
                    finished.append(np.asarray(embedder.encode(batch, batch_size=batch_size)))
                n_rose += sum(w.message.n for w in caught if isinstance(w.message, LossWarning))
                progress.advance(task, len(batch))
        except KeyboardInterrupt:
            stopped = True
    if not finished:
        _say("Stopped before the first batch was finished; nothing was written.")
        raise typer.Exit(INTERRUPTED)
    vectors = np.concatenate(finished)
    n_texts, dim = vectors.shape
    write_vectors(output, ids[:n_texts], texts[:n_texts], vectors)
    _warn_of_zeros(vectors)
    if n_rose:
        _say(str(LossWarning(n_rose, n_texts)))
    if stopped:
        _say(f"Stopped. The first {n_texts:,} of {len(texts):,} texts are kept in {output}.")
        raise typer.Exit(INTERRUPTED)
    _say(f"{_count(n_texts, 'vector')} of {dim:,} values in {output}.")


def _warn_of_zeros(vectors: np.ndarray) -> None:
    zeros = int((~vectors.any(axis=1)).sum())
    if zeros:
        _say(f"{_count(zeros, 'vector')} of zeros: no weight moved; lower the learning rate.")


@app.command()
def tune(
    text: Annotated[str, typer.Argument(help="The text to learn.")],
    layers: Annotated[
        str, typer.Option(help="head, last_block, or names of layers with commas between them.")
    ] = "head",
    blueprints: Annotated[
        str, typer.Option(help="Pairs (keep, mask).")
    ] = "(2, 1), (1, 1), (1, 2), (1, 3)",
    epochs: Annotated[int, typer.Option(help="Passes over the text, 1 to 1000.")] = 10,
    learning_rate: Annotated[float, typer.Option(help="Of AdamW, above 0.")] = 0.01,
    model: ModelOption = "bundled",
) -> None:
    """Micro-tune on a text: watch the loss fall, and see which words wrote the embedding."""
    from neuralviz.embedders.registry import read_layers
    from neuralviz.micro_tuning import TuningSettings, check_settings, parse_blueprints
    from neuralviz.micro_tuning.settings import check_numbers

    pairs = parse_blueprints(blueprints)
    check_numbers(epochs, learning_rate, TuningSettings.weight_decay)  # before a download
    language_model = _load(model)
    settings = check_settings(
        language_model,
        layers=read_layers(layers),
        blueprints=pairs,
        epochs=epochs,
        learning_rate=learning_rate,
    )
    _tune(language_model, text, settings)


def _tune(model: LanguageModel, text: str, settings: TuningSettings) -> None:
    """Show a run while it goes on and what came of it."""
    from rich.live import Live

    from neuralviz import terminal
    from neuralviz.micro_tuning.plan import count_masked
    from neuralviz.micro_tuning.run import MAX_FOLLOWED_VALUES, followed_values, tune
    from neuralviz.models import tokenize

    console = Console(highlight=False)
    (tokens,) = tokenize(model, [text])
    positions = count_masked(tokens, settings)
    console.print(
        f"{_count(len(tokens), 'token')} in {_count(len(tokens.chunks), 'chunk')}, "
        f"{positions:,} masked positions an epoch"
    )
    if positions * settings.epochs > MANY_POSITIONS:
        _say("This may take minutes; Ctrl-C ends it.")
    follow = followed_values(model, [tokens], settings) <= MAX_FOLLOWED_VALUES
    events = tune(model, [tokens], settings, with_token_shares=follow)
    losses: list[float] = []
    event = None
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            for event in events:
                losses[event.epoch - 1 :] = [float(event.epoch_loss[0])]
                if console.is_terminal:
                    live.update(terminal.draw_run(event, losses, settings.layers), refresh=True)
                elif event.step * event.epochs == event.epoch * event.steps:
                    width = len(str(event.epochs))
                    console.print(
                        f"epoch {event.epoch:>{width}}/{event.epochs}  loss {losses[-1]:.4f}"
                    )
    except KeyboardInterrupt:
        if event is None:
            raise
        console.print(terminal.draw_run(event, losses, settings.layers))
        _say(f"Stopped after step {event.step:,} of {event.steps:,}; this is how far it came.")
        raise typer.Exit(INTERRUPTED) from None
    assert event is not None and event.result is not None  # a run ends with its result
    console.print(terminal.describe_loss(losses))
    console.print(terminal.draw_curve(losses, settings.epochs))
    console.print(terminal.draw_norms(event.delta_norm[0], settings.layers))
    _conclude(console, event.result)


def _conclude(console: Console, result: MicroTuning) -> None:
    """What came of a run, and what to mind."""
    from neuralviz import terminal

    if result.shares is None:
        console.print("The text is too long to follow which words wrote its embedding.")
    else:
        console.print(terminal.draw_words(result))
    if result.diverged[0]:
        _say("The loss ceased to be finite; what is shown is the last that was. "
             "Lower the learning rate.")  # fmt: skip
    elif result.loss_rose[0]:
        _say("The loss ended above where it started; lower the learning rate.")
    if result.texts[0].looks_foreign:
        _say(
            "Many words of this text are not in the model's vocabulary, or only in pieces; it may "
            "be in a language that the model has not learnt."
        )


@models.command("list")
def list_models() -> None:
    """List the models that need no network."""
    typer.echo("bundled\n  6 layers, 384 wide, uncased English; comes with neuralviz")
    for name, size in _cached_models():
        typer.echo(f"{name}\n  in the hub's cache on this machine, {size}")
    typer.echo(
        "\nAny other masked language model can be given by its id on the hub, such as\n"
        "bert-base-uncased, or as a folder."
    )


def _cached_models() -> Iterator[tuple[str, str]]:
    """Masked language models in the hub's cache, and their sizes."""
    import json

    from huggingface_hub import errors, scan_cache_dir

    try:
        repositories = scan_cache_dir().repos
    except (errors.CacheNotFound, OSError):
        return
    for repository in sorted(repositories, key=lambda r: r.repo_id):
        for revision in repository.revisions:
            files = {file.file_name: file.file_path for file in revision.files}
            if "config.json" not in files or not any(n.endswith(".safetensors") for n in files):
                continue
            try:
                config = json.loads(files["config.json"].read_text("utf-8"))
            except (OSError, ValueError):
                continue
            if any("ForMaskedLM" in str(name) for name in config.get("architectures") or ()):
                yield repository.repo_id, repository.size_on_disk_str
                break


@models.command("layers")
def list_layers(
    model: Annotated[str, typer.Argument(help="“bundled”, a hub id, or a folder.")] = "bundled",
) -> None:
    """List what of a model can be micro-tuned: its 1-D parameters, by block."""
    loaded = _load(model)
    heading = None
    for layer in loaded.layers:
        of = layer.part if layer.block is None else f"block {layer.block}"
        if of != heading:
            typer.echo(of)
            heading = of
        marks = [
            name
            for name, members in (
                ("head", loaded.head_layers),
                ("last_block", loaded.last_block_layers),
            )
            if layer.name in members
        ]
        typer.echo(f"  {layer.size:>6}  {layer.name}" + "".join(f"  [{mark}]" for mark in marks))
    typer.echo("\n[head] is the default; [last_block] is short for the layers marked so.")


@models.command("export")
def export(
    model: Annotated[str, typer.Argument(help="“bundled”, a hub id, or a folder.")],
    folder: Annotated[Path, typer.Argument(help="A folder to create.")],
) -> None:
    """Write a model as a plain folder in float32 that `transformers` loads."""
    from neuralviz.models import export_model

    written = export_model(_load(model), folder)
    _say(f"{model} is in {written}.")


def _load(model_id: str) -> LanguageModel:
    """A model; on a terminal it is said that it is being loaded."""
    with _status(f"Loading the model {model_id} …"):
        from neuralviz.models import load_model

        return load_model(model_id)


@contextmanager
def _status(sentence: str) -> Iterator[None]:
    console = _stderr()
    if console.is_terminal:
        with console.status(Text(printable(sentence))):
            yield
    else:
        yield


def _say(sentence: str) -> None:
    """A sentence on standard error, on one line."""
    _stderr().print(Text(printable(sentence)), soft_wrap=True)


def _stderr() -> Console:
    return Console(stderr=True, highlight=False)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
