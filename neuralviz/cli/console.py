"""What all commands share: errors as sentences, Ctrl-C, tables and progress bars."""

from __future__ import annotations

import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from neuralviz.errors import LossWarning, NeuralvizError, PrecisionWarning, ShouldStop, Stopped

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from neuralviz.jobs.task import Progress, Task

E = TypeVar("E")
R = TypeVar("R")

REFUSED = 2
INTERRUPTED = 130
KEPT = "kept"  # in a context's `meta`: what Ctrl-C leaves
FOLDED_EVERY = 0.2  # seconds between two looks at a task's result, at least
FOLDING_SHARE = 20  # times the duration of such a look, as large results are copied
_OPTIONS = {  # options by the advice in notes and errors
    r"choose (?:line|row) (\d+) as the header": r"--header \1",
    r"choose no header": "--no-header",
    r"Assign a column to (\w+)": r"--role \1=…",
    r"Assign columns to the roles of one of them": "--role ROLE=COLUMN",
    r"match by row": "--in-order",
}


# --- commands ------------------------------------------------------------------------------------


class Commands(TyperGroup):
    """Commands whose errors are sentences on standard error."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _print_warnings():
                return super().invoke(ctx)
        except typer.BadParameter as error:
            if error.param is None:
                raise
            name, problem = error.param.opts[0], error.message
            print_message(f"{name}: {problem}." if problem else f"{name} is missing. See --help.")
            raise typer.Exit(REFUSED) from error
        except NeuralvizError as error:
            print_message(str(error))
            raise typer.Exit(REFUSED) from error
        except KeyboardInterrupt as error:
            raise stop(f"Stopped. {ctx.meta.get(KEPT, '')}".rstrip()) from error

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_types(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command = self.load(command)
            _flags_without_types(command.get_params(typer.Context(command, parent=ctx)))
        return name, command, rest

    def load(self, command: Any) -> Any:
        return command


def _flags_without_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Print warnings as sentences, that of emulated precision once."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def print_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, LossWarning | PrecisionWarning):
                print_message(str(message))
            else:
                show(message, category, *place)

        warnings.simplefilter("once", PrecisionWarning)
        warnings.showwarning = print_warning  # type: ignore[assignment]
        yield


# --- Ctrl-C --------------------------------------------------------------------------------------


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM; a subclass, as Python may die of a KeyboardInterrupt that was caught."""


_interrupted = threading.Event()


def interrupt(*_: object) -> None:
    """Handle Ctrl-C and SIGTERM: raise `Interrupted`, and remember it if a library swallows it."""
    _interrupted.set()
    raise Interrupted


@contextmanager
def stop_on_interrupt() -> Iterator[ShouldStop]:
    """Yield a function that says whether Ctrl-C was pressed, even before; a second interrupts."""
    before = signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        _interrupted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield _interrupted.is_set
    finally:
        signal.signal(signal.SIGINT, before)
        _interrupted.clear()


# --- tasks ---------------------------------------------------------------------------------------


def run_task(task: Task[E, R], watch: Callable[[R], None] | None = None) -> tuple[R, bool]:
    """Run a task with a bar or ``watch``; return its last result and whether it was stopped."""
    result, events, stopped = task.start(), list[E](), False
    next_fold = 0.0
    bar = nullcontext(watch) if watch else _bar(task.progress)
    with stop_on_interrupt() as should_stop, bar as show:

        def fold() -> None:
            nonlocal result, next_fold
            began = time.monotonic()
            result = task.fold(result, events)
            events.clear()
            show(result)
            ended = time.monotonic()
            next_fold = ended + max(FOLDED_EVERY, FOLDING_SHARE * (ended - began))

        def add(event: E) -> None:
            events.append(event)
            if time.monotonic() > next_fold:
                fold()

        try:
            task.carry_out(add, should_stop)
            stopped = should_stop()
        except (KeyboardInterrupt, Stopped):
            stopped = True
        fold()
    return result, stopped


def run_work(work: Callable[..., R], describe: Callable[[E], Progress]) -> R | None:
    """Run ``work`` (``on_progress``, ``should_stop``) with a bar; None if it was stopped."""
    with stop_on_interrupt() as should_stop, _bar(describe) as report:
        try:
            return work(on_progress=report, should_stop=should_stop)
        except (KeyboardInterrupt, Stopped):
            return None


@contextmanager
def _bar(describe: Callable[[E], Progress]) -> Iterator[Callable[[E], None]]:
    """Yield a function that draws the progress of an event or a result."""
    with progress_bars() as bars:
        bar = bars.add_task("Loading the model …", total=None)

        def draw(event: E) -> None:
            progress = describe(event)
            if progress.doing:
                bars.update(bar, description=printable(progress.doing))
            bars.update(bar, completed=progress.n_done, total=progress.total or None)

        yield draw


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Bars with the time left, on a terminal only."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    console = stderr()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        yield bars


@contextmanager
def status(sentence: str) -> Iterator[None]:
    console = stderr()
    with console.status(Text(printable(sentence))) if console.is_terminal else nullcontext():
        yield


# --- what is printed -----------------------------------------------------------------------------


def printable(text: str) -> str:
    """A user's text on one line, without control characters."""
    return "".join(c if c.isprintable() or c == "\u200d" else " " for c in text)


def print_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    aligned_left: Collection[int] = (0,),
    bold: Collection[tuple[int, int]] = (),
) -> None:
    """Print a table; ``aligned_left`` are columns, ``bold`` the row and column of cells."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column, head in enumerate(heads):
        table.add_column(
            Text(printable(head)), justify="left" if column in aligned_left else "right"
        )
    for row, cells in enumerate(rows):
        styles = ["bold" if (row, column) in bold else "" for column in range(len(cells))]
        table.add_row(*(Text(printable(c), s) for c, s in zip(cells, styles, strict=True)))
    stdout().print(table)


def print_line(text: str = "", style: str = "") -> None:
    stdout().print(Text(printable(text), style))


def print_message(sentence: str) -> None:
    """Print a sentence on standard error, with the options for its advice; quotes stay."""
    parts = re.split("(“[^”]*”)", sentence)
    for advice, option in _OPTIONS.items():
        parts[::2] = [re.sub(advice, rf"\g<0> ({option})", part) for part in parts[::2]]
    stderr().print(Text(printable("".join(parts))), soft_wrap=True)


def print_notes(notes: Sequence[str]) -> None:
    for note in filter(None, notes):
        print_message(note)


def stop(sentence: str) -> typer.Exit:
    """Print what became of a stopped command, and return the exit to raise."""
    _interrupted.clear()
    print_message(sentence)
    return typer.Exit(INTERRUPTED)


def confirm_deleting(question: str) -> None:
    """Ask; end the command unless the answer is yes."""
    if not typer.confirm(printable(question), err=True):
        print_message("Nothing deleted.")
        raise typer.Exit


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NeuralvizError(f"Could not create {path}: {error.strerror or error}.") from error


def stdout() -> Console:
    return Console(highlight=False)


def stderr() -> Console:
    return Console(stderr=True, highlight=False)
