"""The command that lists the ways to embed texts."""

from __future__ import annotations

import typer

from neuralviz.cli.common import app

_JOINING = """\
--option NAME=VALUE sets an option, --model MODEL the model. Names with a plus between them are
joined, as in neural+mean: each vector is brought to length 1, and so is the whole. An option goes
to every method that has it; METHOD.NAME=VALUE, as in mean.layer=all, to one of them, and
METHOD.model=MODEL gives one a model of its own."""


@app.command("methods")
def list_methods() -> None:
    """List the ways to embed texts, each with its model and its options."""
    from neuralviz.embedders import METHODS

    for name, method in METHODS.items():
        typer.echo(f"{name}\n  {method.line}\n  model: {method.model_id}")
        for option in method.options:
            typer.echo(f"    {f'{option.name}={option.default}':<22}  {option.expects}")
    typer.echo(f"\n{_JOINING}")
