"""The command that lists the ways to embed texts."""

from __future__ import annotations

from textwrap import fill

import typer

from neuralviz.embedders import METHODS
from neuralviz.micro_tuning.settings import PRECISION_LINES

_JOINING = """\
--option NAME=VALUE sets an option, --model MODEL the model. Names with a plus between them are
joined, as in neural+mean: each vector is brought to length 1, and so is the whole. An option goes
to every method that has it; METHOD.NAME=VALUE, as in mean.layer=all, to one of them, and
METHOD.model=MODEL gives one a model of its own.

Precision is how exactly texts are learnt, exact by default; what `neuralviz corpus` keeps is learnt
fast by default."""


commands = typer.Typer(add_completion=False)


@commands.command("methods")
def list_methods() -> None:
    """List the ways to embed texts, each with its model and its options."""

    for name, method in METHODS.items():
        typer.echo(f"{name}\n  {method.line}\n  model: {method.model_id}")
        for option in method.options:
            typer.echo(f"    {f'{option.name}={option.default}':<22}  {option.expects}")
    typer.echo(f"\n{_JOINING}")
    for precision, line in PRECISION_LINES.items():
        typer.echo(fill(line, 100, initial_indent=f"  {precision:<11}", subsequent_indent=" " * 13))
