"""A micro-tuning run drawn with characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from neuralviz.words import many, number, why_above_100

if TYPE_CHECKING:
    from neuralviz.micro_tuning import MicroTuning, TuningEvent

VERMILLION, BLUE, ORANGE = "#D55E00", "#0072B2", "#E69F00"
CURVE_HEIGHT = 8  # lines
SHOWN_WORDS = 12

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille character
_EIGHTHS = " ▏▎▍▌▋▊▉"


def printable(text: str) -> str:
    """A user's text on one line and without characters that steer a terminal."""
    return "".join(c if c.isprintable() or c == "\u200d" else " " for c in text)


def curve(values: Sequence[float], n_points: int, width: int, height: int) -> list[str]:
    """A line through ``values`` in braille dots, two by four in every character.

    Args:
        values: drawn over a vertical range from 0 to their largest; those not finite are gaps.
        n_points: values that the width has room for; more may still come.
        width, height: characters.

    Returns:
        ``height`` lines, top first.
    """
    cells = np.zeros((height, width), dtype=int)
    finite = np.asarray(values, dtype=float)
    top = finite.max(initial=0.0, where=np.isfinite(finite)) or 1.0
    x = np.arange(len(finite)) * (2 * width - 1) / max(n_points - 1, 1)
    y = (1 - finite / top) * (4 * height - 1)
    for i, j in zip([0, *range(len(x) - 1)], range(len(x)), strict=True):
        if not np.isfinite([y[i], y[j]]).all():
            continue
        n_dots = int(max(abs(x[j] - x[i]), abs(y[j] - y[i]))) + 2
        columns = np.linspace(x[i], x[j], n_dots).round().astype(int)
        rows = np.linspace(y[i], y[j], n_dots).round().astype(int)
        for column, row in zip(columns, rows, strict=True):
            cells[row // 4, column // 2] |= _DOTS[row % 4][column % 2]
    return ["".join(chr(0x2800 + cell) for cell in row) for row in cells]


def bar(share: float, width: int) -> str:
    """A bar of ``share`` (-1 … 1) of ``width`` characters, to an eighth of a character.

    Bars of negative shares are hatched.
    """
    if share < 0:
        return "░" * round(min(-share, 1.0) * width)
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def draw_run(event: TuningEvent, losses: Sequence[float], layers: Sequence[str]) -> Group:
    """Draw a run on one text: progress, loss by epoch, norm of each layer's delta.

    Args:
        event: the latest event.
        losses: [epoch] nats after 0, 1, … epochs, so far.
        layers: names of the tuned layers.
    """
    progress = Table.grid(padding=(0, 1))
    progress.add_row(
        Text(f"epoch {event.epoch}/{event.epochs}"),
        ProgressBar(event.epochs, event.epoch, width=40, complete_style=VERMILLION),
        Text(describe_loss(losses)),
    )
    norms = draw_norms(event.delta_norm[0], layers)
    return Group(progress, draw_curve(losses, event.epochs), norms)


def describe_loss(losses: Sequence[float]) -> str:
    """The loss in words: where it started and where it was when last measured."""
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


def loss_line(losses: Sequence[float], epochs: int) -> str:
    """``epoch  2/10  loss 3.1416``: the last of the losses, after 0, 1, … epochs."""
    return f"epoch {len(losses) - 1:>{len(str(epochs))}}/{epochs}  loss {losses[-1]:.4f}"


def draw_curve(losses: Sequence[float], epochs: int) -> RenderableType:
    """The loss after 0, 1, … ``epochs`` epochs, as far as it is known."""
    width = 56
    finite = [loss for loss in losses if np.isfinite(loss)]
    top = f"{max(finite, default=1.0):.2f}"
    labels = [top, *[""] * (CURVE_HEIGHT - 2), "0"]
    lines = curve(losses, epochs + 1, width, CURVE_HEIGHT)
    picture = Text("\n")
    for label, line in zip(labels, lines, strict=True):
        picture.append(f"{label:>8} │", "dim").append(f"{line}\n", VERMILLION)
    picture.append(f"{'':>8} └{'─' * width}\n", "dim")
    picture.append(f"{'loss':>8}  {'0':<{width - len(str(epochs))}}{epochs}  epoch\n", "dim")
    return picture


def draw_norms(norms: np.ndarray, layers: Sequence[str]) -> RenderableType:
    """The norm of each layer's delta [layer], as bars."""
    largest = float(np.max(norms, initial=0.0)) or 1.0
    table = Table.grid(padding=(0, 1))
    for name, norm in zip(layers, norms, strict=True):
        length = Text(bar(norm / largest, 16), BLUE)
        table.add_row(Text(f"{norm:8.3f}"), length, Text(name, overflow="fold"))
    return Group(Text("norm of each layer's delta", "dim"), table, Text())


def draw_words(result: MicroTuning) -> RenderableType:
    """Each word's share of the delta, the largest first."""
    if result.shares is None:
        raise ValueError("This run has no word shares.")
    text, shares = result.texts[0], result.shares[0]
    by_word = np.zeros(len(text.word_spans))
    np.add.at(by_word, text.words, shares.token_shares())
    unknown = np.zeros(len(by_word), dtype=bool)
    np.logical_or.at(unknown, text.words, text.unknown)
    words = [printable(text.text[start:end]) for start, end in text.word_spans]
    largest = float(np.abs(by_word).max()) or 1.0

    order = np.argsort(-np.abs(by_word), kind="stable")
    table = Table.grid(padding=(0, 1))
    for word_index in order[:SHOWN_WORDS]:
        name = Text(
            words[word_index] if len(words[word_index]) <= 24 else f"{words[word_index][:23]}…"
        )
        if unknown[word_index]:
            name.append(" (unknown)", "dim")
        colour = VERMILLION if by_word[word_index] >= 0 else BLUE
        length = Text(bar(by_word[word_index] / largest, 32), colour)
        table.add_row(
            name, Text(f"{number(by_word[word_index], ',.1%'):>6}", justify="right"), length
        )
    rest = {"weight decay": shares.decay_share()}
    if len(order) > SHOWN_WORDS:
        other_words = many(len(order) - SHOWN_WORDS, "other word")
        rest = {other_words: by_word[order[SHOWN_WORDS:]].sum()} | rest
    note = why_above_100([*by_word[order[:SHOWN_WORDS]], *rest.values()])
    return Group(
        Text("words that shaped the embedding, by their share of the delta", "dim"),
        table,
        Text(" · ".join(f"{name} {number(share, ',.1%')}" for name, share in rest.items()), "dim"),
        *([Text(note, "dim")] if note else []),
    )
