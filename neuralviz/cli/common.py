"""What the commands share: messages on standard error, errors, interrupts."""

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
_OPTIONS = {  # options by the advice in notes and errors
    r"choose (?:line|row) (\d+) as the header": r"--header \1",
    r"choose no header": "--no-header",
    r"Assign a column to (\w+)": r"--role \1=…",
    r"Assign columns to the roles of one of them": "--role ROLE=COLUMN",
    r"match by row": "--in-order",
}
MANY_POSITIONS = 200_000  # masked positions; a run with more takes minutes


class Commands(TyperGroup):
    """Commands whose errors are sentences on standard error."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            sentence = _describe_bad_value(error)
            if sentence is None:
                raise
            print_message(sentence)
            raise typer.Exit(REFUSED) from error
        except NeuralvizError as error:
            print_message(str(error))
            raise typer.Exit(REFUSED) from error
        except KeyboardInterrupt as stop:
            print_message("Stopped.")
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
        """The command itself; a subclass may load it here."""
        return command


def _flags_without_types(parameters: list[Any]) -> list[Any]:
    """The same parameters; ``--help`` no longer shows ``<bool>`` behind a flag."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def _describe_bad_value(error: typer.BadParameter) -> str | None:
    """A sentence on an option's value that pydantic refuses; None for other errors."""
    if error.param is None or not error.message.startswith(_REFUSAL):
        return None
    wish = error.message.removeprefix(_REFUSAL).split(",")[0]
    for pydantic_phrase, plain_phrase in _WISHES.items():
        wish = wish.replace(pydantic_phrase, plain_phrase)
    return f"{error.param.opts[0]} must be {wish}."


@contextmanager
def status(sentence: str) -> Iterator[None]:
    """On a terminal, show a sentence while the context lasts."""
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
    """Handle Ctrl-C and SIGTERM.

    Raises:
        Interrupted: always.
    """
    _interrupted.set()
    raise Interrupted


def check_interrupted() -> None:
    """Raise an interrupt that a library's code has swallowed; for use in long loops.

    Raises:
        Interrupted: Ctrl-C was pressed or SIGTERM came.
    """
    if _interrupted.is_set():
        _interrupted.clear()
        raise Interrupted


@contextmanager
def stop_on_interrupt() -> Iterator[ShouldStop]:
    """Yield a function that says whether Ctrl-C was pressed; a second Ctrl-C interrupts."""
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


def ask_confirmation(question: str) -> bool:
    """Ask a question on standard error; whether the answer is yes.

    Raises:
        NeuralvizError: standard input has no answer.
    """
    typer.echo(printable(question), nl=False, err=True)
    answer = "" if sys.stdin is None or sys.stdin.closed else sys.stdin.readline()
    if not answer:
        typer.echo(err=True)
        raise NeuralvizError("Nothing deleted: no answer. Use --yes to delete without asking.")
    return answer.strip().lower() in ("y", "yes")


def print_message(sentence: str) -> None:
    """Print a sentence on standard error, on one line, with the options for what it advises.

    What stands in quotation marks, such as a user's text, stays as it is.
    """
    parts = re.split("(“[^”]*”)", sentence)
    for advice, option in _OPTIONS.items():
        parts[::2] = [re.sub(advice, rf"\g<0> ({option})", part) for part in parts[::2]]
    stderr().print(Text(printable("".join(parts))), soft_wrap=True)


def stderr() -> Console:
    """A console on the current standard error."""
    return Console(stderr=True, highlight=False)
