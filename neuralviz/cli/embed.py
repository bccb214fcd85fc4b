"""The command that writes the vectors of a file's texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuralviz.cli.common import INTERRUPTED, print_message
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.vectors import (
    BatchSizeOption,
    ColumnOption,
    FileArgument,
    HeaderOption,
    LimitOption,
    MethodsModel,
    NoHeaderOption,
    describe_learning,
    embed_texts,
    header_line,
    progress_bars,
    read_file,
    warn_of_time,
    warn_of_vectors,
)
from neuralviz.embedders import embedder_spec, split_options
from neuralviz.errors import NeuralvizError
from neuralviz.store.vectors import MemoryVectors
from neuralviz.store.writing import check_destination, write_vectors
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder
    from neuralviz.reading.texts import ReadTexts


commands = typer.Typer(add_completion=False)


@commands.command()
def embed(
    file: FileArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file (.parquet, .csv or .jsonl).")
    ],
    method: Annotated[
        str,
        typer.Option(
            help=(
                "Embedding method, or several concatenated, such as neural+mean. "
                "`neuralviz methods` lists all methods."
            )
        ),
    ] = "neural",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help=(
                "Set an option of the method, such as `--option layer_start=2`, or of one "
                "concatenated method with METHOD.NAME=VALUE. Repeatable. `neuralviz "
                "methods` lists all options."
            ),
        ),
    ] = None,
    model: MethodsModel = None,
    column: ColumnOption = None,
    header: HeaderOption = None,
    no_header: NoHeaderOption = False,
    limit: LimitOption = None,
    batch_size: BatchSizeOption = 32,
) -> None:
    """Embed the texts of a file. Writes the columns `id`, `text` and `vector`."""

    check_destination(output)
    spec = embedder_spec(method, split_options(option or []), model_id=model)
    read = read_file(file, column, limit, header=header_line(header, no_header=no_header))
    if output.exists() and output.samefile(file):
        raise NeuralvizError("The output file is the input file. Choose another output.")
    (embedder,) = load_embedders([spec])
    _embed(embedder, read, output, batch_size, describe_learning([spec]))


def _embed(
    embedder: Embedder, read: ReadTexts, output: Path, batch_size: int, method_note: str
) -> None:
    """Embed and write; when interrupted, write what is finished."""

    warn_of_time([embedder], read.texts)
    with progress_bars() as progress:
        store = MemoryVectors(0)  # no text is embedded twice
        embedded = embed_texts(embedder, read.texts, store, batch_size, progress, "Embedding")
    finished = embedded.has_vector.nonzero()[0].tolist()
    if embedded.stopped and not finished:
        print_message("Stopped before the first batch finished; nothing was written.")
        raise typer.Exit(INTERRUPTED)
    ids = read.ids or tuple(str(number) for number in range(1, len(read.texts) + 1))
    write_vectors(
        output,
        [ids[i] for i in finished],
        [read.texts[i] for i in finished],
        embedded.vectors[finished],
    )
    warn_of_vectors(embedder, embedded)
    if embedded.stopped:
        print_message(
            f"Stopped. Wrote the {len(finished):,} of {many(len(read.texts), 'embedding')} "
            f"that were finished (longest texts first) to {output}{method_note}."
        )
        raise typer.Exit(INTERRUPTED)
    print_message(
        f"Wrote {many(len(finished), 'embedding')} of {embedder.dim:,} values to {output}"
        f"{method_note}."
    )
