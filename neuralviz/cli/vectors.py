"""What the commands that embed the texts of a file share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.progress import TimeRemainingColumn as Remaining

from neuralviz.cli.common import MANY_POSITIONS, print_message, stderr
from neuralviz.embedders.specs import method_label
from neuralviz.errors import LossWarning, NeuralvizError, SettingsError
from neuralviz.reading.folders import read_folder
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from neuralviz.store.embedding import embed
from neuralviz.words import joined, many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.embedders import Embedder, EmbedderSpec
    from neuralviz.reading.texts import Mode, ReadTexts
    from neuralviz.store.vectors import VectorStore

OWN_SETTINGS_HELP = (
    "Behind an @, a method can have a model and options of its own: mean@bundled, "
    "neural@epochs=5 or neural@bundled,epochs=5. So the same method can be used several times."
)
FileArgument = Annotated[
    Path,
    typer.Argument(
        help=(
            "File with one text per line, a table (.csv, .tsv, .jsonl, .json, .parquet, "
            ".xlsx), or a folder of such files."
        )
    ),
]
MethodsModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help=(
            "Model: “all-MiniLM-L6-v2”, “bundled”, the name of a trained encoder, a Hugging Face "
            "Hub ID, or a folder. "
            "Default: the method's own model (see `neuralviz methods`)."
        ),
    ),
]


def options_option(defaults: Mapping[str, str] | None = None) -> Any:
    """``--option`` of commands with several methods.

    Args:
        defaults: of options that are not set, as of `embedder_spec`; by default each method's own.
    """
    note = ""
    if defaults:
        default_options = joined([f"{name}={value}" for name, value in defaults.items()])
        note = f" Methods that micro-tune use {default_options} here unless you set another value."
    return typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help=(
            "Set an option for every method that has it, or for one method with "
            f"METHOD.NAME=VALUE. Repeatable.{note}"
        ),
    )


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
    int, typer.Option(min=1, help=("Batch size: number of texts embedded at once."))
]


@dataclass(frozen=True, eq=False)
class EmbeddedTexts:
    """Texts and their finished vectors.

    Attributes:
        vectors: [text, dim] float32, zeros where a text has none.
        has_vector: [text] whether the text's vector is finished.
        n_rose: number of texts whose loss rose, or became infinite or NaN.
        unread: as of `describe_unread`.
        stopped: whether Ctrl-C was pressed.
    """

    vectors: np.ndarray
    has_vector: np.ndarray
    n_rose: int
    unread: str
    stopped: bool


def header_line(header: int | None, *, no_header: bool) -> int | None:
    """The line that names the columns as `Source.header`, from two options.

    Raises:
        SettingsError: both are set.
    """
    if header is not None and no_header:
        raise SettingsError("Use either --header or --no-header, not both.")
    return 0 if no_header else header


def read_file(
    path: Path,
    column: str | None,
    limit: int | None,
    *,
    header: int | None = None,
    id_column: str | None = None,
    mode: Mode | None = None,
) -> ReadTexts:
    """Read the first ``limit`` texts of a file or a folder and print what was left out.

    A plain text is split into lines, and one in a folder is a text, unless ``mode`` says otherwise.
    """

    if path.is_dir() and header is not None:
        raise SettingsError("--header and --no-header work with a single table only.")
    try:
        if path.is_dir():
            read = read_folder(path, column, mode=mode or "one", max_texts=limit)
        else:
            read = read_texts(
                Source.from_path(path, header),
                column,
                mode=mode or "line",
                id_column=id_column,
                max_texts=limit,
            )
    except OSError as error:
        raise NeuralvizError(f"Could not read {path}: {error.strerror or error}.") from error
    if read.column is not None and column is None:
        print_message(
            f"Reading texts from the column “{read.column}”. Use --column to choose another."
        )
    for note in filter(None, (read.describe_header(path.name), *read.notes)):
        print_message(note)
    return read


def describe_learning(specs: Sequence[EmbedderSpec]) -> str:
    """The labels of methods that micro-tune, in brackets, such as `` (neural, exact)``."""

    labels = dict.fromkeys(method_label(spec) for spec in specs if spec.learns)
    return f" ({'; '.join(labels)})" if labels else ""


def warn_of_time(embedders: Sequence[Embedder], texts: Sequence[str]) -> None:
    """Print a warning if micro-tuning will take minutes."""
    parts = (part for embedder in embedders for part in embedder.parts)
    if sum(part.masked_positions(texts) for part in parts) > MANY_POSITIONS:
        print_message(
            "This may take several minutes. Press Ctrl-C to stop; finished work is saved."
        )


@contextmanager
def progress_bars(*, has_total: bool = True) -> Iterator[Progress]:
    """On a terminal, a bar per task, or a count where the total is not known."""

    columns: tuple[ProgressColumn, ...] = (TextColumn("{task.description}", markup=False),)
    if has_total:
        columns += (BarColumn(), MofNCompleteColumn(), Remaining())
    else:
        columns += (TextColumn("{task.completed:,}"),)
    console = stderr()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield progress


def embed_texts(
    embedder: Embedder,
    texts: Sequence[str],
    store: VectorStore,
    batch_size: int,
    progress: Progress,
    label: str,
) -> EmbeddedTexts:
    """Embed with a progress bar until all texts are embedded or Ctrl-C is pressed."""

    vectors = np.zeros((len(texts), embedder.dim), dtype=np.float32)
    has_vector = np.zeros(len(texts), dtype=bool)
    n_rose, unread, stopped = 0, "", False
    task = progress.add_task(label, total=len(texts))
    try:
        for event in embed(texts, embedder, store, batch_size=batch_size):
            vectors[event.at] = event.vectors
            has_vector[event.at] = True
            n_rose += int(event.loss_rose.sum())
            unread = event.unread
            progress.advance(task, len(event.at))
    except KeyboardInterrupt:
        stopped = True
    return EmbeddedTexts(vectors, has_vector, n_rose, unread, stopped)


def warn_of_vectors(embedder: Embedder, embedded: EmbeddedTexts) -> None:
    """Print warnings about finished vectors: unread parts of texts, zeros, rising losses."""

    if embedded.unread:
        print_message(f"{embedder.name}: {embedded.unread}")
    vectors = embedded.vectors[embedded.has_vector]
    zeros = int((~vectors.any(axis=1)).sum())
    if zeros:
        print_message(
            f"Zero vectors for {many(zeros, 'text')} ({embedder.name}): {embedder.zeros_mean}"
        )
    if embedded.n_rose:
        print_message(str(LossWarning(embedded.n_rose, len(vectors))))
