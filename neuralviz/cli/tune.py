"""The command that micro-tunes on one text and draws the run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live

from neuralviz.cli import terminal
from neuralviz.cli.common import INTERRUPTED, MANY_POSITIONS, print_message
from neuralviz.cli.loading import ModelOption, load, print_precision_warnings
from neuralviz.embedders.methods import read_layers
from neuralviz.micro_tuning import TuningSettings, check_settings, parse_blueprints
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    check_numbers,
    check_precision,
    check_tolerance,
)
from neuralviz.models import tokenize
from neuralviz.models.tokens import check_texts
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.micro_tuning import MicroTuning
    from neuralviz.models import LanguageModel


commands = typer.Typer(add_completion=False)


@commands.command()
def tune(
    text: Annotated[str, typer.Argument(help="Text to micro-tune on.")],
    layers: Annotated[
        str,
        typer.Option(
            help=("Layers to tune: head, last_block, or layer names separated by commas.")
        ),
    ] = "head",
    blueprints: Annotated[
        str, typer.Option(help="Masking blueprints: pairs (keep, mask).")
    ] = "(2, 1), (1, 1), (1, 2), (1, 3)",
    epochs: Annotated[int, typer.Option(help="Number of epochs, from 1 to 1000.")] = 10,
    learning_rate: Annotated[float, typer.Option(help="AdamW's learning rate, above 0.")] = 0.01,
    precision: Annotated[
        str,
        typer.Option(
            help=(
                "Precision: exact; fast, several times faster, see --tolerance; "
                "bf16, for processors that support it; or fast+bf16."
            )
        ),
    ] = "exact",
    tolerance: Annotated[
        float,
        typer.Option(
            help=(
                "With fast: how far the cosine similarity to the exact embedding may fall "
                "below 1. It is an estimate."
            )
        ),
    ] = 0.005,
    model: ModelOption = "bundled",
) -> None:
    """Micro-tune on a text: watch the loss fall and see which words shaped the embedding."""

    check_texts([text])  # before a model is loaded
    pairs = parse_blueprints(blueprints)
    check_numbers(epochs, learning_rate, TuningSettings.weight_decay)
    check_precision(precision)
    check_tolerance(tolerance)
    language_model = load(model)
    settings = check_settings(
        language_model,
        layers=read_layers(layers),
        blueprints=pairs,
        epochs=epochs,
        learning_rate=learning_rate,
        precision=precision,
        tolerance=tolerance,
    )
    if not settings.is_fast and tolerance != DEFAULT_TOLERANCE:
        print_message("--tolerance has no effect without --precision fast or fast+bf16.")
    if settings.in_bf16:
        from neuralviz.micro_tuning.products import warn_of_imitated_bf16

        with print_precision_warnings():
            warn_of_imitated_bf16(language_model.device)
    _tune(language_model, text, settings)


def _tune(model: LanguageModel, text: str, settings: TuningSettings) -> None:
    """Show a run, live, and its result."""

    from neuralviz.micro_tuning.loop import tune
    from neuralviz.micro_tuning.predictions import predict_masked
    from neuralviz.micro_tuning.settings import MAX_FOLLOWED_VALUES, count_masked, followed_values
    from neuralviz.micro_tuning.watching import MAX_PREDICTED, compute_loss

    console = Console(highlight=False)
    (tokens,) = tokenize(model, [text])
    positions = count_masked(tokens, settings)
    console.print(
        f"{many(len(tokens), 'token')} in {many(len(tokens.chunks), 'chunk')}, "
        f"{many(positions, 'masked position')} per epoch, {settings.precision_in_words}"
    )
    if positions * settings.epochs > MANY_POSITIONS:
        print_message("This may take several minutes. Press Ctrl-C to stop.")
    follow = followed_values(model, [tokens], settings) <= MAX_FOLLOWED_VALUES
    events = tune(model, [tokens], settings, with_token_shares=follow)
    losses: list[float] = []
    event = None
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            for event in events:
                losses.append(float(event.loss[0]))
                if console.is_terminal:
                    live.update(terminal.draw_run(event, losses, settings.layers), refresh=True)
                else:
                    console.print(terminal.loss_line(losses, settings.epochs))
    except KeyboardInterrupt:
        if event is None:
            raise
        console.print(terminal.draw_run(event, losses, settings.layers))
        print_message(f"Stopped after epoch {event.epoch:,} of {event.epochs:,}.")
        raise typer.Exit(INTERRUPTED) from None
    assert event is not None and event.result is not None  # a run ends with its result
    deltas = [delta[0] for delta in event.result.deltas]
    after = predict_masked(model, tokens, settings, deltas, at_most=MAX_PREDICTED)
    loss = compute_loss(after, tokens, settings)
    if loss is not None:
        losses.append(loss)
        if not console.is_terminal:
            console.print(terminal.loss_line(losses, settings.epochs))
    ended = len(losses) > 1 and math.isfinite(losses[-1])
    epochs_note = f", before and after {many(len(losses) - 1, 'epoch')}" if ended else ""
    console.print(f"{terminal.describe_loss(losses)}{epochs_note}")
    console.print(terminal.draw_curve(losses, settings.epochs))
    console.print(terminal.draw_norms(event.delta_norm[0], settings.layers))
    _conclude(console, event.result)


def _conclude(console: Console, result: MicroTuning) -> None:
    """Print the result of a run, and warnings."""
    if result.shares is None:
        console.print("The text is too long to compute which words shaped its embedding.")
    else:
        console.print(terminal.draw_words(result))
    if result.diverged[0]:
        print_message(
            "The run diverged: the loss became infinite or NaN. The last finite values are "
            "shown. Lower the learning rate."
        )
    elif result.loss_rose[0]:
        print_message("The loss rose instead of falling. Lower the learning rate.")
    if result.texts[0].looks_foreign:
        print_message(
            "Many words in this text are not in the model's vocabulary, or are split into several "
            "tokens. It may be in a language that the model does not know."
        )
