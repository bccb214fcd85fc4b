"""What the commands share: sentences on standard error, one way to be refused."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from neuralviz.cli.terminal import printable
from neuralviz.errors import NeuralvizError

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop

REFUSED = 2
INTERRUPTED = 130
_REFUSAL = "Input should be "
_WISHES = {
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}
_OPTIONS = {  # by what notes and errors advise, which pages say as well
    r"choose (?:line|row) (\d+) as the header": r"--header \1",
    r"choose no header": "--no-header",
    r"Assign a column to (\w+)": r"--role \1=…",
    r"Assign columns to the roles of one of them": "--role ROLE=COLUMN",
    r"match by row": "--in-order",
}
MANY_POSITIONS = 200_000  # masked positions of a run that takes minutes


class Commands(TyperGroup):
    """Commands whose errors are sentences on standard error."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            sentence = _in_words(error)
            if sentence is None:
                raise
            say(sentence)
            raise typer.Exit(REFUSED) from error
        except NeuralvizError as error:
            say(str(error))
            raise typer.Exit(REFUSED) from error
        except KeyboardInterrupt as stop:
            say("Stopped.")
            raise typer.Exit(INTERRUPTED) from stop

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_types(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command = self.load(command)
            _flags_without_types(command.get_params(typer.Context(command, parent=ctx)))
        return name, command, rest

    def load(self, command: Any) -> Any:
        """The command itself, where another one stands for it until it is used."""
        return command


def _flags_without_types(parameters: list[Any]) -> list[Any]:
    """The same ones; of a flag, ``--help`` does not say that it is a ``<bool>``."""
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


def _in_words(error: typer.BadParameter) -> str | None:
    """A sentence on a value that pydantic refuses, which typer asks; None for other errors."""
    if error.param is None or not error.message.startswith(_REFUSAL):
        return None
    wish = error.message.removeprefix(_REFUSAL).split(",")[0]
    for theirs, ours in _WISHES.items():
        wish = wish.replace(theirs, ours)
    return f"{error.param.opts[0]} must be {wish}."


@contextmanager
def status(sentence: str) -> Iterator[None]:
    """On a terminal, a sentence for as long as something takes."""
    console = stderr()
    if console.is_terminal:
        with console.status(Text(printable(sentence))):
            yield
    else:
        yield


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, by a name of its own.

    Python remembers a KeyboardInterrupt that has left code made from a string, which many packages
    run while they are imported, and dies of it at its end although it was caught. A subclass it
    does not remember.
    """


_interrupted = threading.Event()


def interrupt(*_: object) -> None:
    """What Ctrl-C and SIGTERM do.

    Raises:
        Interrupted: always.
    """
    _interrupted.set()
    raise Interrupted


def check_interrupted() -> None:
    """For long work in other people's code, which may swallow what `interrupt` raises there.

    Raises:
        Interrupted: there was an interrupt.
    """
    if _interrupted.is_set():
        _interrupted.clear()
        raise Interrupted


@contextmanager
def stop_on_interrupt() -> Iterator[ShouldStop]:
    """Whether Ctrl-C was pressed, for work that ends at a good moment; a second one ends it now."""
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def confirmed(question: str) -> bool:
    """Whether the answer is yes.

    Raises:
        NeuralvizError: there is nobody to answer.
    """
    typer.echo(printable(question), nl=False, err=True)
    answer = "" if sys.stdin is None or sys.stdin.closed else sys.stdin.readline()
    if not answer:
        typer.echo(err=True)
        raise NeuralvizError("Nothing deleted: no answer. Use --yes to delete without asking.")
    return answer.strip().lower() in ("y", "yes")


def say(sentence: str) -> None:
    """A sentence on standard error, on one line, with the options for what it advises."""
    for advice, option in _OPTIONS.items():
        sentence = re.sub(advice, rf"\g<0> ({option})", sentence)
    stderr().print(Text(printable(sentence)), soft_wrap=True)


def stderr() -> Console:
    """Standard error, as it is now."""
    return Console(stderr=True, highlight=False)
