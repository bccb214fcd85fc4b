"""The command that micro-tunes on one text and draws the run with characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from neuralviz.cli.console import print_message, printable, run_task, stdout, stop
from neuralviz.cli.options import method_options, take_options
from neuralviz.embedders.specs import embedder_spec
from neuralviz.headlines.micro_tuning import describe_learning, describe_warnings
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.micro_tuning import check_settings
from neuralviz.micro_tuning.events import RunRecord, TextReport
from neuralviz.micro_tuning.settings import count_masked
from neuralviz.models import BUNDLED, tokenize
from neuralviz.models.shared import ModelRef, shared_model
from neuralviz.models.tokens import check_texts
from neuralviz.words import many, number, why_above_100

VERMILLION, BLUE = "#D55E00", "#0072B2"
CURVE_WIDTH = 64  # characters, at most
SHOWN_WORDS = 12
LONGEST_WORD = 24  # characters
_COLUMNS = "▁▂▃▄▅▆▇█"

commands = typer.Typer(add_completion=False)


@commands.command()
@take_options(options=method_options("neural"))
def tune(
    text: Annotated[str, typer.Argument(help="Text to micro-tune on.")],
    *,
    options: dict[str, str],
    model: Annotated[
        str, typer.Option(help="Model: “bundled”, a Hugging Face Hub ID, or a folder.")
    ] = BUNDLED,
) -> None:
    """Micro-tune on a text: watch the loss fall and see which words shaped the embedding.

    `neuralviz methods` explains the precisions.
    """
    check_texts([text])  # checked before a model is loaded
    spec = embedder_spec("neural", options)
    language_model = shared_model(model)
    settings = check_settings(language_model, **dict(spec.options))
    if not settings.is_fast and float(options["tolerance"]) != settings.tolerance:
        print_message("--tolerance has no effect without --precision fast or fast+bf16.")
    if settings.in_bf16:
        from neuralviz.micro_tuning.products import warn_of_imitated_bf16  # loads torch

        warn_of_imitated_bf16(language_model.device)
    (tokens,) = tokenize(language_model, [text])
    stdout().print(
        f"{many(len(tokens), 'token')} in {many(len(tokens.chunks), 'chunk')}, "
        f"{many(count_masked(tokens, settings), 'masked position')} per epoch, "
        f"{settings.precision_in_words}"
    )
    _run(TuneTexts(ModelRef.from_id(model), (text,), settings))


def _run(task: TuneTexts) -> None:
    console, epochs, n_printed = stdout(), task.settings.epochs, 0

    def watch(record: RunRecord) -> None:
        nonlocal n_printed
        losses = _list_losses(record)
        if console.is_terminal:
            live.update(_draw_run(record), refresh=True)
            return
        for epoch in range(n_printed, len(losses)):
            console.print(f"epoch {epoch:>{len(str(epochs))}}/{epochs}  loss {losses[epoch]:.4f}")
        n_printed = len(losses)

    with Live(console=console, auto_refresh=False, transient=True) as live:
        record, is_stopped = run_task(task, watch)
    if is_stopped:
        if record.epochs_reached:
            console.print(_draw_run(record))
        raise stop(f"Stopped after epoch {record.epochs_reached:,} of {epochs:,}.")
    console.print(Text(describe_learning(record, 0)))
    console.print(_draw_curve(_list_losses(record)))
    console.print(_draw_norms(record))
    console.print(_draw_words(record.reports[0]))
    for warning in describe_warnings(record):
        print_message(warning)


def _list_losses(record: RunRecord) -> list[float]:
    """The measured losses after 0, 1, … epochs, infinite and NaN ones included."""
    losses = record.loss_curve(0).tolist()
    return losses if math.isfinite(losses[-1]) else losses[: record.epochs_reached]


# --- pictures ------------------------------------------------------------------------------------


def _draw_run(record: RunRecord) -> RenderableType:
    losses, epochs = _list_losses(record), record.settings.epochs
    if not losses:
        return Text("Loading the model …")
    progress = Table.grid(padding=(0, 1))
    progress.add_row(
        Text(f"epoch {record.epochs_reached}/{epochs}"),
        ProgressBar(epochs, record.epochs_reached, width=40, complete_style=VERMILLION),
        Text(describe_learning(record, 0)),
    )
    return Group(progress, _draw_curve(losses), _draw_norms(record))


def _draw_curve(losses: Sequence[float]) -> RenderableType:
    """A column for the loss after 0, 1, … epochs, or for every few; gaps where it is no number."""
    width = min(len(losses), CURVE_WIDTH)
    values = [losses[place] for place in np.linspace(0, len(losses) - 1, width).round().astype(int)]
    top = max((loss for loss in losses if math.isfinite(loss)), default=0.0) or 1.0
    columns = [
        _COLUMNS[round(loss / top * (len(_COLUMNS) - 1))] if math.isfinite(loss) else " "
        for loss in values
    ]
    return Text.assemble(("loss by epoch  ", "dim"), ("".join(columns), VERMILLION), "\n")


def _draw_bar(share: float, width: int) -> str:
    """A bar of a share (-1 … 1), hatched below 0."""
    return ("█" if share >= 0 else "░") * round(min(abs(share), 1.0) * width)


def _draw_norms(record: RunRecord) -> RenderableType:
    norms = record.delta_norm[record.epochs_reached - 1, 0]
    largest = float(np.max(norms, initial=0.0)) or 1.0
    table = Table.grid(padding=(0, 1))
    for name, norm in zip(record.settings.layers, norms, strict=True):
        bar = Text(_draw_bar(norm / largest, 16), BLUE)
        table.add_row(Text(f"{norm:8.3f}"), bar, Text(name, overflow="fold"))
    return Group(Text("norm of each layer's delta", "dim"), table, Text())


def _draw_words(report: TextReport) -> RenderableType:
    if report.shares is None:
        return Text("The text is too long, or its words' parts nearly cancel: no shares.")
    words, shares, unknown = report.words
    largest = float(np.abs(shares).max()) or 1.0
    order = np.argsort(-np.abs(shares), kind="stable")[:SHOWN_WORDS]
    table = Table.grid(padding=(0, 1))
    for place in order:
        word, share = printable(words[place]), shares[place]
        name = Text(word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…")
        if unknown[place]:
            name.append(" (unknown)", "dim")
        bar = Text(_draw_bar(share / largest, 32), VERMILLION if share >= 0 else BLUE)
        table.add_row(name, Text(f"{number(share, ',.1%'):>6}", justify="right"), bar)
    notes = f"weight decay {number(report.decay_share, ',.1%')} {why_above_100(shares)}"
    title = "words that shaped the embedding, by their share of the delta"
    return Group(Text(title, "dim"), table, Text(notes.rstrip(), "dim"))
