"""The command ``neuralviz``; a command's module is imported only when it is used."""

from __future__ import annotations

import io
import signal
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from neuralviz import __version__
from neuralviz.cli.console import Commands, interrupt

# The module of each command in `neuralviz.cli`, and its line in ``--help``.
COMMANDS = {
    "app": ("open_app", "Open the app in the browser."),
    "tune": (
        "tune",
        "Micro-tune on a text: watch the loss fall and see which words shaped the embedding.",
    ),
    "embed": ("embed", "Embed the texts of a file. Writes the columns `id`, `text` and `vector`."),
    "similarity": (
        "embed",
        "Compute the cosine similarity of all pairs of texts in a file by one or more methods.",
    ),
    "explain": ("explain", "Explain the cosine similarity of two texts by pairs of their words."),
    "methods": ("embed", "List the embedding methods with their models and options."),
    "corpus": ("corpus", "Save corpora with their embeddings and maps."),
    "project": ("project", "Make a map of a saved corpus, or reuse an existing one."),
    "evaluate": (
        "evaluate",
        "Evaluate embeddings on labelled data: correlations, triplets, pairs, neighbours, probes.",
    ),
    "train": ("train", "Train an encoder on a saved corpus, or similarity models on scored pairs."),
    "score": (
        "similarity_models",
        "Score how similar the two sentences of each pair are, as people would.",
    ),
    "models": ("models", "List, inspect, export and delete models."),
}


def load_command(name: str) -> Any:
    module, _ = COMMANDS[name]
    command = get_command(import_module(f"neuralviz.cli.{module}").commands)
    return getattr(command, "commands", {}).get(name, command)  # a module may have several


class LazyCommands(Commands):
    """The commands of `COMMANDS`, each imported when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def load(self, command: Any) -> Any:
        return load_command(command.name)


app = typer.Typer(
    cls=LazyCommands,
    help="See what a language model learns from a text, and compare text embeddings.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # terminals that cannot show every character
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, interrupt)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, interrupt)  # sent by job schedulers
    app(prog_name="neuralviz")


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"neuralviz {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass
