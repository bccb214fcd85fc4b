"""Options that several commands share, and the texts, specs and settings they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from neuralviz.cli.console import print_message, print_notes
from neuralviz.cluster import LOCAL, is_address
from neuralviz.embedders import METHODS, EmbedderSpec, split_options
from neuralviz.embedders.specs import method_label
from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.reading.source import Source
from neuralviz.reading.texts import Mode, ReadTexts, read_folder, read_texts
from neuralviz.words import joined

if TYPE_CHECKING:
    from neuralviz.cli.ray_work import RayEmbedding

TABLES = ".csv, .tsv, .jsonl, .json, .parquet, .xlsx"
OWN_SETTINGS = (
    "Behind an @, a method can have a model and options of its own: mean@bundled, "
    "neural@epochs=5 or neural@bundled,epochs=5. So the same method can be used several times."
)
ONE_METHOD = (
    "Embedding method, or several concatenated, such as neural+mean. "
    "`neuralviz methods` lists all methods."
)

TEXTS_FILE = f"File with one text per line, a table ({TABLES}), or a folder of such files."

FileArgument = Annotated[Path, typer.Argument(help=TEXTS_FILE)]
CorpusArgument = Annotated[str, typer.Argument(help="Name or ID of a saved corpus.")]
TableOutput = Annotated[
    Path, typer.Option("--output", "-o", help="Output file (.parquet, .csv or .jsonl).")
]
MethodOption = Annotated[str, typer.Option(help=ONE_METHOD)]
MethodsModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Model: “all-MiniLM-L6-v2”, “bundled”, the name of a trained encoder, a Hugging Face "
        "Hub ID, or a folder. Default: the method's own model (see `neuralviz methods`).",
    ),
]
StartModel = Annotated[
    str, typer.Option(help="Model to begin with: a name, a Hugging Face Hub ID, or a folder.")
]
RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE=COLUMN",
        help="Assign a role (text1, text2, score, text, group, label, …) to a column "
        "with another name. Repeatable.",
    ),
]
ColumnOption = Annotated[str | None, typer.Option(help="Column with the texts.")]
HeaderOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Line of the file, or row of the workbook, that names the columns. Default: found.",
    ),
]
NoHeaderOption = Annotated[
    bool, typer.Option("--no-header", help="No line names the columns: the first one is data.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Use only the first N texts.")]
BatchSizeOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Batch size: number of texts embedded at once. Default: 32, or 8 for methods that "
        "micro-tune.",
    ),
]
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
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")]


def declare_methods(default: str, extra: str = "") -> Any:
    return typer.Option(
        "--method",
        help="Embedding method, or several concatenated, such as neural+mean. Repeatable. "
        f"{OWN_SETTINGS} {extra}`neuralviz methods` lists all methods. Default: {default}.",
    )


def declare_options(defaults: Mapping[str, str] | None = None) -> Any:
    """The ``--option`` of commands with several methods; ``defaults`` are their own."""
    note = ""
    if defaults:
        default_options = joined([f"{name}={value}" for name, value in defaults.items()])
        note = f" Methods that micro-tune use {default_options} here unless you set another value."
    return typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Set an option for every method that has it, or for one method with "
        f"METHOD.NAME=VALUE. Repeatable.{note}",
    )


# --- options of settings -------------------------------------------------------------------------


def take_options(**groups: Sequence[inspect.Parameter]) -> Callable[[Callable[..., None]], Any]:
    """Let a command take each group of options as one mapping, named like the group."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += groups.get(parameter.name, [parameter])

        @wraps(command)
        def run(**values: Any) -> None:
            for name, group in groups.items():
                values[name] = {option.name: values.pop(option.name) for option in group}
            command(**values)

        keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        run.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
        return run

    return decorate


def setting_options(settings: type, lines: Mapping[str, str]) -> list[inspect.Parameter]:
    """Options for the fields of a settings dataclass that have a line of help."""
    types, defaults = get_type_hints(settings), {f.name: f.default for f in fields(settings)}
    return [
        _make_option(name, str if get_origin(types[name]) is Literal else types[name],
                     defaults[name], line)
        for name, line in lines.items()
    ]  # fmt: skip


def method_options(method: str) -> list[inspect.Parameter]:
    return [
        _make_option(option.name, str, option.default, f"{option.line}: {option.expects}.")
        for option in METHODS[method].options
    ]


def _make_option(name: str, kind: Any, default: Any, line: str) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(help=line)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


# --- values as typed -----------------------------------------------------------------------------


def header_line(header: int | None, no_header: bool) -> int | None:
    """`Source.header` from the two options."""
    if header is not None and no_header:
        raise SettingsError("Use either --header or --no-header, not both.")
    return 0 if no_header else header


def split_roles(typed: Sequence[str] | None) -> dict[str, str]:
    return split_options(typed or [], "role", "ROLE=COLUMN")


def read_file(
    path: Path,
    column: str | None,
    limit: int | None,
    header: int | None,
    *,
    id_column: str | None = None,
    mode: Mode | None = None,
) -> ReadTexts:
    """Read at most ``limit`` texts, by default a folder's files or a file's lines; print notes."""
    if path.is_dir():
        if header is not None:
            raise SettingsError("--header and --no-header work with a single table only.")
        read = read_folder(path, column, mode=mode or "one", max_texts=limit)
    else:
        source = Source.from_path(path, header)
        read = read_texts(source, column, mode=mode or "line", id_column=id_column, max_texts=limit)
    if read.column is not None and column is None:
        print_message(
            f"Reading texts from the column “{read.column}”. Use --column to choose another."
        )
    print_notes([read.header_note, *read.notes])
    return read


def list_ids(read: ReadTexts) -> tuple[str, ...]:
    """The texts' IDs, or their numbers if there are none."""
    return read.ids or tuple(str(number) for number in range(1, len(read.texts) + 1))


def describe_learning(specs: Sequence[EmbedderSpec]) -> str:
    """Labels of the methods that micro-tune, in brackets, such as `` (neural, exact)``."""
    labels = dict.fromkeys(method_label(spec) for spec in specs if spec.learns)
    return f" ({'; '.join(labels)})" if labels else ""


# --- Ray ----------------------------------------------------------------------------------------


class RayCommand(TyperCommand):
    """A command whose ``--ray`` may have an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, give_ray_a_value(args))


def give_ray_a_value(args: Sequence[str]) -> list[str]:
    """The arguments with the local cluster after each ``--ray`` that no address follows."""
    arguments: list[str] = []
    for place, arg in enumerate(args):
        arguments.append(arg)
        has_address = any(map(is_address, args[place + 1 : place + 2]))
        if arg == "--ray" and not has_address and "--" not in args[:place]:
            arguments.append(LOCAL)
    return arguments


def open_ray(address: str | None) -> AbstractContextManager[RayEmbedding | None]:
    """A context with what embeds corpora on a cluster; with None where Ray was not asked for."""
    return nullcontext() if address is None else ray_work().open_cluster(address)


def ray_work() -> ModuleType:
    if find_spec("ray") is None or find_spec("lance") is None:
        raise NeuralvizError('--ray needs Ray. Install it with: pip install "neuralviz[ray]"')
    return import_module("neuralviz.cli.ray_work")
