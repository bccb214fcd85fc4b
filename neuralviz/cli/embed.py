"""The command that writes the vectors of a file's texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuralviz.cli.common import INTERRUPTED, say
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.vectors import (
    BatchSizeOption,
    ColumnOption,
    FileArgument,
    LimitOption,
    MethodsModel,
    embed_texts,
    learnt_how,
    progress_bars,
    read_file,
    warn_of_time,
    warn_of_vectors,
)
from neuralviz.embedders import embedder_spec, split_options
from neuralviz.errors import NeuralvizError
from neuralviz.store.memory import MemoryVectors
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
        Path, typer.Option("--output", "-o", help="A .parquet, .csv or .jsonl file to write.")
    ],
    method: Annotated[
        str,
        typer.Option(
            help="How to embed: one that `neuralviz methods` lists, or several joined, as in "
            "neural+mean."
        ),
    ] = "neural",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the method, again and again, as in `--option layer_start=2`; "
            "METHOD.NAME=VALUE is for one of those joined. `neuralviz methods` lists all.",
        ),
    ] = None,
    model: MethodsModel = None,
    column: ColumnOption = None,
    limit: LimitOption = None,
    batch_size: BatchSizeOption = 32,
) -> None:
    """Embed the texts of a file: columns `id`, `text` and `vector`."""

    check_destination(output)
    spec = embedder_spec(method, split_options(option or []), model_id=model)
    read = read_file(file, column, limit)
    if output.exists() and output.samefile(file):
        raise NeuralvizError("The output is the file that is read; give another name.")
    (embedder,) = load_embedders([spec])
    _embed(embedder, read, output, batch_size, learnt_how([spec]))


def _embed(embedder: Embedder, read: ReadTexts, output: Path, batch_size: int, how: str) -> None:
    """Embed and write; when interrupted, write what is finished."""

    warn_of_time([embedder], read.texts)
    with progress_bars() as progress:
        store = MemoryVectors(0)  # nothing is asked for twice
        embedded = embed_texts(embedder, read.texts, store, batch_size, progress, "Embedding")
    finished = embedded.done.nonzero()[0].tolist()
    if embedded.stopped and not finished:
        say("Stopped before the first batch was finished; nothing was written.")
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
        say(f"Stopped. {len(finished):,} of {many(len(read.texts), 'text')} were finished (the "
            f"longest come first) and are kept in {output}{how}.")  # fmt: skip
        raise typer.Exit(INTERRUPTED)
    say(f"{many(len(finished), 'vector')} of {embedder.dim:,} values in {output}{how}.")
