"""The commands that embed the texts of a file, compare them by several methods, and list these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Annotated

import numpy as np
import typer

from neuralviz.cli import options
from neuralviz.cli.console import (
    make_folder,
    print_line,
    print_message,
    print_table,
    run_task,
    stop,
)
from neuralviz.embedders import (
    FOR_CORPORA,
    METHODS,
    EmbedderSpec,
    embedder_spec,
    embedder_specs,
    make_embedder,
    split_options,
)
from neuralviz.embedders.specs import Option
from neuralviz.errors import LossWarning, NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.similarity import Similarity, rank_correlations, write_products
from neuralviz.evaluation.similarity import similarity as compute_similarity
from neuralviz.jobs.comparing import Compare, Comparison
from neuralviz.micro_tuning.settings import PRECISION_LINES
from neuralviz.models.shared import LOADERS
from neuralviz.store.writing import check_destination, check_folder, write_text, write_vectors
from neuralviz.words import joined, many, number

COMPARED = ("neural", "mean", "sbert-wk")
MAX_METHODS = 4
MAX_TEXTS = 2000
MAX_DRAWN = 300

commands = typer.Typer(add_completion=False)


@commands.command()
def embed(
    file: options.FileArgument,
    output: options.TableOutput,
    method: options.MethodOption = "neural",
    option: Annotated[list[str] | None, options.declare_options()] = None,
    model: options.MethodsModel = None,
    column: options.ColumnOption = None,
    header: options.HeaderOption = None,
    no_header: options.NoHeaderOption = False,
    limit: options.LimitOption = None,
    batch_size: options.BatchSizeOption = None,
) -> None:
    """Embed the texts of a file. Writes the columns `id`, `text` and `vector`."""
    check_destination(output)
    spec = embedder_spec(method, split_options(option or []), model_id=model)
    read = options.read_file(file, column, limit, options.header_line(header, no_header))
    if output.exists() and output.samefile(file):
        raise NeuralvizError("The output file is the input file. Choose another output.")
    (embedded,) = _embed_texts([spec], read.texts, batch_size)
    if embedded.vectors is None:
        raise stop("Stopped before the first batch finished; nothing was written.")
    rows, ids = embedded.finished, options.list_ids(read)
    write_vectors(
        output, [ids[i] for i in rows], [read.texts[i] for i in rows], embedded.vectors[rows]
    )
    learning = options.describe_learning([spec])
    if len(rows) < len(ids):
        raise stop(
            f"Stopped. Wrote the {len(rows):,} of {many(len(ids), 'embedding')} that were finished "
            f"(longest texts first) to {output}{learning}."
        )
    size = f"{many(len(rows), 'embedding')} of {embedded.vectors.shape[1]:,} values"
    print_message(f"Wrote {size} to {output}{learning}.")


@commands.command()
def similarity(
    file: options.FileArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Output folder for products.parquet, products.csv and similarity.html; "
            "created if missing.",
        ),
    ],
    method: Annotated[
        list[str] | None,
        options.declare_methods(", ".join(COMPARED), f"Use at most {MAX_METHODS}. "),
    ] = None,
    option: Annotated[list[str] | None, options.declare_options()] = None,
    model: options.MethodsModel = None,
    column: options.ColumnOption = None,
    header: options.HeaderOption = None,
    no_header: options.NoHeaderOption = False,
    limit: options.LimitOption = None,
    batch_size: options.BatchSizeOption = None,
) -> None:
    """Compute the cosine similarity of all pairs of texts in a file by one or more methods."""
    methods = method or COMPARED
    if len(methods) > MAX_METHODS:
        raise SettingsError(f"Too many methods ({len(methods)}). Use at most {MAX_METHODS}.")
    check_folder(output)
    specs = embedder_specs(methods, split_options(option or []), model)
    read = options.read_file(file, column, limit, options.header_line(header, no_header))
    n_texts = len(read.texts)
    if n_texts < 2:
        raise TextError("The file contains only one text. A comparison needs at least two.")
    if n_texts > MAX_TEXTS:
        raise TextError(
            f"{n_texts:,} texts make {n_texts * (n_texts - 1) // 2:,} pairs, which is too "
            f"many. Use --limit {MAX_TEXTS} or less."
        )
    embedded = _embed_texts(specs, read.texts, batch_size)
    similarities = [
        compute_similarity(result.method, read.texts, result.vectors)
        for result in embedded
        if result.vectors is not None and result.n_done == n_texts
    ]
    if not similarities:
        raise stop("Stopped before a method was finished; nothing was written.")
    _write(similarities, options.list_ids(read), read.ids is not None, output)
    _show(similarities)
    names = [similarity.method for similarity in similarities]
    pairs = many(n_texts * (n_texts - 1) // 2, "pair")
    wrote = f"Wrote the cosine similarities of {pairs} to {output} ({'; '.join(names)})."
    if rest := [result.method for result in embedded if result.method not in names]:
        raise stop(f"Stopped. {wrote} Not finished: {'; '.join(rest)}.")
    print_message(wrote)


def _embed_texts(
    specs: Sequence[EmbedderSpec], texts: Sequence[str], batch_size: int | None
) -> Comparison:
    """Embed texts by each method until Ctrl-C is pressed; print what to know of the vectors."""
    for spec in specs:  # a model that cannot be loaded is named before anything is embedded
        make_embedder(spec, LOADERS)
    task = replace(Compare.for_current_models(specs, texts), batch_size=batch_size)
    embedded, _ = run_task(task)
    for spec, result in zip(specs, embedded, strict=True):
        if result.error:
            raise NeuralvizError(result.error)
        if result.unread:
            print_message(f"{result.method}: {result.unread}")
        if result.vectors is None:
            continue
        if n_zeros := int((~result.vectors.any(axis=1)).sum()):
            reason = make_embedder(spec, LOADERS).zeros_mean
            print_message(f"Zero vectors for {many(n_zeros, 'text')} ({result.method}): {reason}")
        if n_rose := int(result.loss_rose.sum()):
            print_message(str(LossWarning(n_rose, result.n_done)))
    return embedded


def _write(
    similarities: Sequence[Similarity], ids: Sequence[str], have_ids: bool, folder: Path
) -> None:
    from neuralviz.plots.compare import similarity_page  # loads plotly

    make_folder(folder)
    for ending in ("parquet", "csv"):
        write_products(folder / f"products.{ending}", similarities, ids)
    n_drawn = min(len(ids), MAX_DRAWN)
    drawn = [method.in_order(range(n_drawn)) for method in similarities]
    drawn_texts = many(len(ids), "text")
    if n_drawn < len(ids):
        drawn_texts = f"the first {n_drawn:,} of {len(ids):,} texts"
        print_message(f"The figure shows {drawn_texts}; the tables contain all of them.")
    labels = list(ids[:n_drawn]) if have_ids else None
    page = similarity_page(drawn, labels, f"Cosine similarity of {drawn_texts}")
    write_text(folder / "similarity.html", page)


def _show(similarities: Sequence[Similarity]) -> None:
    names = [similarity.method for similarity in similarities]
    spreads = []
    for similarity in similarities:
        values = similarity.of_pairs
        statistics = (values.mean(), values.std(), values.min(), values.max())
        spreads.append([similarity.method, *(number(value, ".3f") for value in statistics)])
    print_table(["cosine similarity", "mean", "sd", "lowest", "highest"], spreads)
    if len(names) > 1:
        print_line()
        correlations = [
            [name, *("–" if np.isnan(value) else number(value, ".3f") for value in row)]
            for name, row in zip(names, rank_correlations(similarities), strict=True)
        ]
        print_table(["Spearman", *names], correlations)


# --- the methods ---------------------------------------------------------------------------------


_JOINING = (
    "Use --option NAME=VALUE to set an option and --model MODEL to choose the model.\n\n"
    "Put a plus between names to concatenate methods, as in neural+mean: each embedding is "
    "normalised,\nthen the concatenation is normalised again. An option applies to every method "
    "that has it; use\nMETHOD.NAME=VALUE, such as mean.layer=all, for one method, and "
    "METHOD.model=MODEL for its model.\n\n"
    f"{fill(options.OWN_SETTINGS, 100)}\n\n"
    "Precision is how exactly micro-tuning is computed. Where nothing else is set, `neuralviz "
    f"corpus`\nuses {joined([f'{name}={value}' for name, value in FOR_CORPORA.items()])}."
)


@commands.command("methods")
def list_methods() -> None:
    """List the embedding methods with their models and options."""
    options_once: dict[str, Option] = {}
    for method in METHODS.values():
        options_once = {option.name: option for option in method.options} | options_once
    for name, method in METHODS.items():
        typer.echo(f"{name}\n  {method.line}\n  model: {method.model_id}")
        if method.options:
            names = [_name_option(option, options_once[option.name]) for option in method.options]
            typer.echo(_fill(", ".join(names), "  options: ", 11))
    typer.echo("\nOptions and their defaults; a method whose default differs shows its own:")
    for option in options_once.values():
        typer.echo(f"  {option.name}={option.default}")
        typer.echo(_fill(f"{option.line}: {option.expects}.", " " * 6, 6))
    typer.echo(f"\n{_JOINING}")
    for precision, line in PRECISION_LINES.items():
        typer.echo(_fill(line, f"  {precision:<11}", 13))


def _name_option(option: Option, first: Option) -> str:
    """An option's name, with its default where that is another one than the first method's."""
    return option.name if option.default == first.default else f"{option.name}={option.default}"


def _fill(text: str, begin: str, width: int) -> str:
    """A text in lines of 100 characters; further lines begin with ``width`` blanks."""
    return fill(text, 100, initial_indent=begin, subsequent_indent=" " * width)
