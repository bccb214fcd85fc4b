"""The command that micro-tunes on one text and draws the run with characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from neuralviz.cli.console import (
    print_message,
    printable,
    run_task,
    stdout,
    stop,
)
from neuralviz.cli.options import method_options, take_options
from neuralviz.embedders.specs import embedder_spec
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.micro_tuning import check_settings
from neuralviz.micro_tuning.settings import count_masked
from neuralviz.models import BUNDLED, tokenize
from neuralviz.models.shared import ModelRef, shared_model
from neuralviz.models.tokens import check_texts
from neuralviz.words import many, number, why_above_100

if TYPE_CHECKING:
    from neuralviz.micro_tuning.events import TextReport
    from neuralviz.micro_tuning.record import RunRecord

VERMILLION, BLUE = "#D55E00", "#0072B2"
CURVE_WIDTH = 64  # characters, at most
SHOWN_WORDS = 12
LONGEST_WORD = 24  # characters
_COLUMNS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"

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
    losses = _list_losses(record)
    if is_stopped:
        if losses:
            console.print(_draw_run(record))
        raise stop(f"Stopped after epoch {record.epochs_reached:,} of {epochs:,}.")
    has_ended = len(losses) > 1 and math.isfinite(losses[-1])
    epochs_note = f", before and after {many(len(losses) - 1, 'epoch')}" if has_ended else ""
    console.print(f"{describe_loss(losses)}{epochs_note}")
    console.print(_draw_curve(losses))
    console.print(_draw_norms(record))
    report = record.reports[0]
    console.print(draw_words(report))
    if record.diverged:
        print_message(
            "The run diverged: the loss became infinite or NaN. The last finite values are "
            "shown. Lower the learning rate."
        )
    elif record.loss_rose(0):
        print_message("The loss rose instead of falling. Lower the learning rate.")
    if report.text.looks_foreign:
        print_message(
            "Many words in this text are not in the model's vocabulary, or are split into several "
            "tokens. It may be in a language that the model does not know."
        )


def _list_losses(record: RunRecord) -> list[float]:
    """The measured losses after 0, 1, … epochs, infinite and NaN ones included."""
    losses = record.loss_curve(0).tolist()
    return losses if math.isfinite(losses[-1]) else losses[: record.epochs_reached]


def describe_loss(losses: Sequence[float]) -> str:
    """The loss in words: at the start, and when last measured."""
    if not math.isfinite(losses[0]):
        return "loss infinite or NaN from the start: the run diverged"
    if len(losses) < 2:
        return f"loss {losses[0]:.3f} nats"
    if not math.isfinite(losses[-1]):
        epochs = next(epoch for epoch, loss in enumerate(losses) if not math.isfinite(loss))
        return (
            f"loss {losses[0]:.3f} nats, after {many(epochs, 'epoch')} infinite or NaN: "
            "the run diverged"
        )
    return f"loss {losses[0]:.3f} → {losses[-1]:.3f} nats"


# --- pictures ------------------------------------------------------------------------------------


def _draw_run(record: RunRecord) -> RenderableType:
    losses, epochs = _list_losses(record), record.settings.epochs
    if not losses:
        return Text("Loading the model …")
    progress = Table.grid(padding=(0, 1))
    progress.add_row(
        Text(f"epoch {record.epochs_reached}/{epochs}"),
        ProgressBar(epochs, record.epochs_reached, width=40, complete_style=VERMILLION),
        Text(describe_loss(losses)),
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
    """A bar of a share (-1 … 1), to an eighth of a character; hatched below 0."""
    if share < 0:
        return "░" * round(min(-share, 1.0) * width)
    eighths = round(min(share, 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _draw_norms(record: RunRecord) -> RenderableType:
    norms = record.delta_norm[record.epochs_reached - 1, 0]
    largest = float(np.max(norms, initial=0.0)) or 1.0
    table = Table.grid(padding=(0, 1))
    for name, norm in zip(record.settings.layers, norms, strict=True):
        bar = Text(_draw_bar(norm / largest, 16), BLUE)
        table.add_row(Text(f"{norm:8.3f}"), bar, Text(name, overflow="fold"))
    return Group(Text("norm of each layer's delta", "dim"), table, Text())


def draw_words(report: TextReport) -> RenderableType:
    if report.shares is None:
        return Text("The text is too long to compute which words shaped its embedding.")
    text = report.text
    by_word = np.bincount(text.words, weights=report.shares, minlength=len(text.word_spans))
    unknown = np.bincount(text.words, weights=text.unknown, minlength=len(by_word)) > 0
    largest = float(np.abs(by_word).max()) or 1.0
    order = np.argsort(-np.abs(by_word), kind="stable")
    table = Table.grid(padding=(0, 1))
    for word_index in order[:SHOWN_WORDS]:
        start, end = text.word_spans[word_index]
        word, share = printable(text.text[start:end]), by_word[word_index]
        name = Text(word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…")
        if unknown[word_index]:
            name.append(" (unknown)", "dim")
        bar = Text(_draw_bar(share / largest, 32), VERMILLION if share >= 0 else BLUE)
        table.add_row(name, Text(f"{number(share, ',.1%'):>6}", justify="right"), bar)
    rest = {"weight decay": report.decay_share}
    if len(order) > SHOWN_WORDS:
        other_words = many(len(order) - SHOWN_WORDS, "other word")
        rest = {other_words: by_word[order[SHOWN_WORDS:]].sum()} | rest
    notes = [" · ".join(f"{name} {number(share, ',.1%')}" for name, share in rest.items())]
    notes.append(why_above_100([*by_word[order[:SHOWN_WORDS]], *rest.values()]))
    title = "words that shaped the embedding, by their share of the delta"
    return Group(Text(title, "dim"), table, *(Text(note, "dim") for note in notes if note))
