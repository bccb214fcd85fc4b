"""What the commands share: the app they belong to, sentences, models, one way to be refused."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import neuralviz.models
from neuralviz import __version__
from neuralviz.cli.terminal import printable
from neuralviz.errors import NeuralvizError, PrecisionWarning

if TYPE_CHECKING:
    from neuralviz.models import LanguageModel

REFUSED = 2
INTERRUPTED = 130
MANY_POSITIONS = 200_000  # masked positions of a run that takes minutes


class Commands(TyperGroup):
    """Commands whose errors are sentences on standard error."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NeuralvizError as error:
            say(str(error))
            raise typer.Exit(REFUSED) from error
        except KeyboardInterrupt as interrupt:
            say("Stopped.")
            raise typer.Exit(INTERRUPTED) from interrupt


app = typer.Typer(
    cls=Commands,
    help="See what a language model learns from a text, and compare embeddings of texts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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


def load(model_id: str) -> LanguageModel:
    """A masked language model; on a terminal it is said that it is being loaded."""
    with status(f"Loading the model {model_id} …"):
        return neuralviz.models.load_model(model_id)


@contextmanager
def status(sentence: str) -> Iterator[None]:
    """On a terminal, a sentence for as long as something takes."""
    console = stderr()
    if console.is_terminal:
        with console.status(Text(printable(sentence))):
            yield
    else:
        yield


@contextmanager
def precision_warnings_said() -> Iterator[None]:
    """A warning of a precision that is imitated becomes one sentence on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        yield
    said = False
    for one in caught:
        if not issubclass(one.category, PrecisionWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        elif not said:
            said = True
            say(str(one.message))


def say(sentence: str) -> None:
    """A sentence on standard error, on one line."""
    stderr().print(Text(printable(sentence)), soft_wrap=True)


def stderr() -> Console:
    """Standard error, as it is now."""
    return Console(stderr=True, highlight=False)
