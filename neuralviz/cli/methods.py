"""The command that lists the embedding methods."""

from __future__ import annotations

from textwrap import fill

import typer

from neuralviz.embedders import FOR_CORPORA, METHODS
from neuralviz.micro_tuning.settings import PRECISION_LINES
from neuralviz.words import joined

_JOINING = (
    "Use --option NAME=VALUE to set an option and --model MODEL to choose the "
    "model.\n\nPut a plus between names to concatenate methods, as in neural+mean: "
    "each embedding is normalised,\nthen the concatenation is normalised again. An "
    "option applies to every method that has it; use\nMETHOD.NAME=VALUE, such as "
    "mean.layer=all, for one method, and METHOD.model=MODEL for its "
    "model.\n\nBehind an @, a method can have a model and options of its own: mean@bundled,\n"
    "neural@epochs=5 or neural@bundled,epochs=5. So the same method can be used several times:\n"
    "--method mean@bundled --method mean@all-MiniLM-L6-v2.\n\n"
    "Precision is how exactly micro-tuning is computed. Where nothing else is "
    f"set, `neuralviz corpus`\nuses {joined([f'{k}={v}' for k, v in FOR_CORPORA.items()])}."
)


commands = typer.Typer(add_completion=False)


@commands.command("methods")
def list_methods() -> None:
    """List the embedding methods with their models and options."""

    for name, method in METHODS.items():
        typer.echo(f"{name}\n  {method.line}\n  model: {method.model_id}")
        for option in method.options:
            typer.echo(f"    {option.name}={option.default}")
            typer.echo(
                fill(
                    f"{option.line}: {option.expects}",
                    100,
                    initial_indent=" " * 6,
                    subsequent_indent=" " * 6,
                )
            )
    typer.echo(f"\n{_JOINING}")
    for precision, line in PRECISION_LINES.items():
        typer.echo(fill(line, 100, initial_indent=f"  {precision:<11}", subsequent_indent=" " * 13))
