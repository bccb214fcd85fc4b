"""The command that compares the cosine similarities of texts by several methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from neuralviz.cli.common import INTERRUPTED, print_message
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.vectors import (
    OWN_SETTINGS_HELP,
    BatchSizeOption,
    ColumnOption,
    EmbeddedTexts,
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
from neuralviz.embedders.specs import method_labels
from neuralviz.errors import NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.similarity import rank_correlations, write_products
from neuralviz.evaluation.similarity import similarity as products_of
from neuralviz.plots.compare import similarity_heatmaps
from neuralviz.plots.standalone import standalone_html
from neuralviz.store.vectors import MemoryVectors
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
                f"Repeatable, up to {MAX_METHODS}. {OWN_SETTINGS_HELP} "
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
    """Embed by each method in turn and write; when interrupted, write what is finished."""

    results: list[EmbeddedTexts] = []
    store = MemoryVectors()  # methods may have parts in common
    with progress_bars() as progress:
        for name, embedder in zip(names, embedders, strict=True):
            results.append(embed_texts(embedder, read.texts, store, batch_size, progress, name))
            if results[-1].stopped:
                break
    kept = _collect_finished(names, results, read)
    for embedder, result in zip(embedders, kept.results, strict=False):
        warn_of_vectors(embedder, result)
    if not kept.names:
        print_message("Stopped before two texts were embedded; nothing was written.")
        raise typer.Exit(INTERRUPTED)
    similarities = kept.similarities()
    _write(similarities, kept.ids, read.ids is not None, len(read.texts), output)
    _show(similarities)
    if results[-1].stopped:
        print_message(f"Stopped. Wrote {kept.describe(names, len(read.texts), output)}.")
        raise typer.Exit(INTERRUPTED)
    n_pairs = len(kept.texts) * (len(kept.texts) - 1) // 2
    print_message(
        f"Wrote the cosine similarities of {many(n_pairs, 'pair')} to {output} "
        f"({'; '.join(names)})."
    )


@dataclass(frozen=True, eq=False)
class _Finished:
    """The finished part of a comparison: the same texts by every method."""

    names: list[str]
    results: list[EmbeddedTexts]
    texts: list[str]
    ids: list[str]

    def similarities(self) -> list[Similarity]:
        return [
            products_of(name, self.texts, result.vectors[result.has_vector])
            for name, result in zip(self.names, self.results, strict=True)
        ]

    def describe(self, names: Sequence[str], n_texts: int, output: Path) -> str:
        texts_note = f"{len(self.texts):,} of {many(n_texts, 'text')}"
        rest = [name for name in names if name not in self.names]
        not_finished = f"; not finished: {'; '.join(rest)}" if rest else ""
        method_list = "; ".join(self.names)
        return f"the cosine similarities of {texts_note} to {output} ({method_list}{not_finished})"


def _collect_finished(
    names: Sequence[str], results: Sequence[EmbeddedTexts], read: ReadTexts
) -> _Finished:
    """The methods with all texts finished; if there are none, what the first method finished."""
    whole = [index for index, result in enumerate(results) if result.has_vector.all()]
    chosen = whole or ([0] if results[0].has_vector.sum() >= 2 else [])
    finished_rows = results[0].has_vector.nonzero()[0] if chosen else ()
    ids = read.ids or tuple(str(number) for number in range(1, len(read.texts) + 1))
    return _Finished(
        names=[names[index] for index in chosen],
        results=[results[index] for index in chosen],
        texts=[read.texts[i] for i in finished_rows],
        ids=[ids[i] for i in finished_rows],
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
        [method_similarity.in_order(range(n_drawn)) for method_similarity in similarities],
        list(ids[:n_drawn]) if have_ids else None,
    )
    if n_drawn < n_texts:
        finished_note = "" if n_done == n_texts else f" finished of {n_texts:,}"
        total_note = f" of {n_done:,}" if n_drawn < n_done else ""
        title = f"Cosine similarity of the first {n_drawn:,}{total_note} texts{finished_note}"
        figure.update_layout(title_text=title)
        if total_note:
            print_message(
                f"The figure shows the first {n_drawn:,}{total_note} texts; the tables contain all "
                "of them."
            )
    write_text(folder / "similarity.html", standalone_html(figure))


def _show(similarities: Sequence[Similarity]) -> None:
    """How each method spreads its products, and how similarly the methods rank the pairs."""

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("cosine similarity")
    for heading in ("mean", "sd", "lowest", "highest"):
        table.add_column(heading, justify="right")
    for method_similarity in similarities:
        values = method_similarity.of_pairs
        statistics = (values.mean(), values.std(), values.min(), values.max())
        table.add_row(method_similarity.method, *(number(value, ".3f") for value in statistics))
    console.print(table)
    if len(similarities) < 2:
        return
    names = [method_similarity.method for method_similarity in similarities]
    table = Table(box=None, pad_edge=False)
    table.add_column("Spearman")
    for name in names:
        table.add_column(name, justify="right")
    for name, row in zip(names, rank_correlations(similarities), strict=True):
        table.add_row(name, *(number(value, ".3f") if value == value else "–" for value in row))
    console.print()
    console.print(table)
