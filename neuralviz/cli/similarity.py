"""The command that sets the products of texts by several methods beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from neuralviz.cli.common import INTERRUPTED, say
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.vectors import (
    OF_ITS_OWN,
    BatchSizeOption,
    ColumnOption,
    Embedded,
    FileArgument,
    HeaderOption,
    LimitOption,
    MethodsModel,
    NoHeaderOption,
    embed_texts,
    header_line,
    options_option,
    progress_bars,
    read_file,
    warn_of_time,
    warn_of_vectors,
)
from neuralviz.embedders import embedder_specs, split_options
from neuralviz.embedders.labels import method_labels
from neuralviz.errors import NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.similarity import rank_correlations
from neuralviz.evaluation.similarity import similarity as products_of
from neuralviz.evaluation.similarity_files import write_products
from neuralviz.plots.compare import similarity_heatmaps
from neuralviz.plots.standalone import standalone_html
from neuralviz.store.memory import MemoryVectors
from neuralviz.store.writing import check_folder, write_text
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder
    from neuralviz.evaluation.similarity import Similarity
    from neuralviz.reading.texts import ReadTexts

DEFAULT_METHODS = ("neural", "mean", "sbert-wk")
MAX_METHODS = 4
MAX_TEXTS = 2000
MAX_DRAWN = 300


commands = typer.Typer(add_completion=False)


@commands.command()
def similarity(
    file: FileArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help=(
                "Output folder for products.parquet, products.csv and similarity.html; "
                "created if missing."
            ),
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Embedding method, or several concatenated, such as neural+mean. "
                f"Repeatable, up to {MAX_METHODS}. {OF_ITS_OWN} "
                "`neuralviz methods` lists all methods. "
                f"Default: {', '.join(DEFAULT_METHODS)}."
            ),
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        options_option(),
    ] = None,
    model: MethodsModel = None,
    column: ColumnOption = None,
    header: HeaderOption = None,
    no_header: NoHeaderOption = False,
    limit: LimitOption = None,
    batch_size: BatchSizeOption = 32,
) -> None:
    """Compute the cosine similarity of all pairs of texts in a file by one or more methods."""

    methods = method or list(DEFAULT_METHODS)
    if len(methods) > MAX_METHODS:
        raise SettingsError(f"Too many methods ({len(methods)}). Use at most {MAX_METHODS}.")
    check_folder(output)
    specs = embedder_specs(methods, split_options(option or []), model)
    read = read_file(file, column, limit, header=header_line(header, no_header=no_header))
    n_texts = len(read.texts)
    if n_texts < 2:
        raise TextError("The file contains only one text. A comparison needs at least two.")
    if n_texts > MAX_TEXTS:
        raise TextError(
            f"{n_texts:,} texts make {n_texts * (n_texts - 1) // 2:,} pairs, which is too "
            f"many. Use --limit {MAX_TEXTS} or less."
        )
    embedders = load_embedders(specs)
    warn_of_time(embedders, read.texts)
    names = method_labels(specs)
    _compare(names, embedders, read, output, batch_size)


def _compare(
    names: Sequence[str],
    embedders: Sequence[Embedder],
    read: ReadTexts,
    output: Path,
    batch_size: int,
) -> None:
    """Embed by one method after the other and write; when interrupted, what is finished."""

    results: list[Embedded] = []
    store = MemoryVectors()  # methods may have parts in common
    with progress_bars() as progress:
        for name, embedder in zip(names, embedders, strict=True):
            results.append(embed_texts(embedder, read.texts, store, batch_size, progress, name))
            if results[-1].stopped:
                break
    kept = _kept(names, results, read)
    for embedder, result in zip(embedders, kept.results, strict=False):
        warn_of_vectors(embedder, result)
    if not kept.names:
        say("Stopped before two texts were embedded; nothing was written.")
        raise typer.Exit(INTERRUPTED)
    similarities = kept.similarities()
    _write(similarities, kept.ids, read.ids is not None, len(read.texts), output)
    _show(similarities)
    if results[-1].stopped:
        say(f"Stopped. Wrote {kept.describe(names, len(read.texts), output)}.")
        raise typer.Exit(INTERRUPTED)
    n_pairs = len(kept.texts) * (len(kept.texts) - 1) // 2
    say(
        f"Wrote the cosine similarities of {many(n_pairs, 'pair')} to {output} "
        f"({'; '.join(names)})."
    )


@dataclass(frozen=True, eq=False)
class _Kept:
    """What is finished of a comparison: the same texts by every method."""

    names: list[str]
    results: list[Embedded]
    texts: list[str]
    ids: list[str]

    def similarities(self) -> list[Similarity]:
        return [
            products_of(name, self.texts, result.vectors[result.done])
            for name, result in zip(self.names, self.results, strict=True)
        ]

    def describe(self, names: Sequence[str], n_texts: int, output: Path) -> str:
        of = f"{len(self.texts):,} of {many(n_texts, 'text')}"
        rest = [name for name in names if name not in self.names]
        not_finished = f"; not finished: {'; '.join(rest)}" if rest else ""
        by = "; ".join(self.names)
        return f"the cosine similarities of {of} to {output} ({by}{not_finished})"


def _kept(names: Sequence[str], results: Sequence[Embedded], read: ReadTexts) -> _Kept:
    """The methods that are finished with all texts; without one, the texts of the first."""
    whole = [at for at, result in enumerate(results) if result.done.all()]
    chosen = whole or ([0] if results[0].done.sum() >= 2 else [])
    done = results[0].done.nonzero()[0] if chosen else ()
    ids = read.ids or tuple(str(number) for number in range(1, len(read.texts) + 1))
    return _Kept(
        names=[names[at] for at in chosen],
        results=[results[at] for at in chosen],
        texts=[read.texts[i] for i in done],
        ids=[ids[i] for i in done],
    )


def _write(
    similarities: Sequence[Similarity],
    ids: Sequence[str],
    have_ids: bool,
    n_texts: int,
    folder: Path,
) -> None:
    """Write the table in two formats and the figure."""

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NeuralvizError(f"Could not create {folder}: {error.strerror or error}.") from error
    for ending in ("parquet", "csv"):
        write_products(folder / f"products.{ending}", similarities, ids)
    n_done = len(ids)
    n_drawn = min(n_done, MAX_DRAWN)
    figure = similarity_heatmaps(
        [one.in_order(range(n_drawn)) for one in similarities],
        list(ids[:n_drawn]) if have_ids else None,
    )
    if n_drawn < n_texts:
        done = "" if n_done == n_texts else f" finished of {n_texts:,}"
        of = f" of {n_done:,}" if n_drawn < n_done else ""
        title = f"Cosine similarity of the first {n_drawn:,}{of} texts{done}"
        figure.update_layout(title_text=title)
        if of:
            say(
                f"The figure shows the first {n_drawn:,}{of} texts; the tables contain all of them."
            )
    write_text(folder / "similarity.html", standalone_html(figure))


def _show(similarities: Sequence[Similarity]) -> None:
    """How each method spreads its products, and how alike the methods order the pairs."""

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("cosine similarity")
    for heading in ("mean", "sd", "lowest", "highest"):
        table.add_column(heading, justify="right")
    for one in similarities:
        values = one.of_pairs
        statistics = (values.mean(), values.std(), values.min(), values.max())
        table.add_row(one.method, *(number(value, ".3f") for value in statistics))
    console.print(table)
    if len(similarities) < 2:
        return
    names = [one.method for one in similarities]
    table = Table(box=None, pad_edge=False)
    table.add_column("Spearman")
    for name in names:
        table.add_column(name, justify="right")
    for name, row in zip(names, rank_correlations(similarities), strict=True):
        table.add_row(name, *(number(value, ".3f") if value == value else "–" for value in row))
    console.print()
    console.print(table)
