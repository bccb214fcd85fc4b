"""What the commands share: sentences on standard error, one way to be refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from neuralviz.cli.terminal import printable
from neuralviz.errors import NeuralvizError

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


@contextmanager
def status(sentence: str) -> Iterator[None]:
    """On a terminal, a sentence for as long as something takes."""
    console = stderr()
    if console.is_terminal:
        with console.status(Text(printable(sentence))):
            yield
    else:
        yield


def say(sentence: str) -> None:
    """A sentence on standard error, on one line."""
    stderr().print(Text(printable(sentence)), soft_wrap=True)


def stderr() -> Console:
    """Standard error, as it is now."""
    return Console(stderr=True, highlight=False)
