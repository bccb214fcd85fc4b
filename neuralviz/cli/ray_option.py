"""The option ``--ray`` of the commands for corpora; `ray_work` does what it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from neuralviz.cluster.addresses import LOCAL, is_address, is_like_address
from neuralviz.errors import NeuralvizError

if TYPE_CHECKING:
    from types import ModuleType

RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help=(
            "Use Ray: all cores of this machine, or the cluster whose head is at ADDRESS "
            "(HOST:PORT, or “auto” on a machine of the cluster). For corpora of any size."
        ),
    ),
]


class RayCommand(TyperCommand):
    """A command whose ``--ray`` takes an address, or stands alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a ``--ray`` that stands alone its value."""
        return super().parse_args(ctx, give_ray_a_value(args))


def give_ray_a_value(args: Sequence[str]) -> list[str]:
    """The arguments with a value for ``--ray``: the next one if it is an address, else local."""
    arguments: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*arguments, arg, *rest]
        if arg == "--ray":
            has_address = bool(rest) and _is_meant_as_address(rest[0])
            arg = f"--ray={rest.pop(0) if has_address else LOCAL}"
        arguments.append(arg)
    return arguments


def _is_meant_as_address(text: str) -> bool:
    """Whether a text is an address or looks like one, and is not an existing file."""
    return is_address(text) or (is_like_address(text) and not Path(text).exists())


def ray_work() -> ModuleType:
    """`neuralviz.cli.ray_work`, which loads Ray.

    Raises:
        NeuralvizError: it is not installed.
    """
    if find_spec("ray") is None or find_spec("lance") is None:
        raise NeuralvizError('--ray needs Ray. Install it with: pip install "neuralviz[ray]"')
    return import_module("neuralviz.cli.ray_work")
