"""The commands for saved corpora: add, list, embed, export, rename, delete."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuralviz.cli.common import Commands, ask_confirmation, print_message
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.ray_option import RayCommand, RayOption, ray_work
from neuralviz.cli.saved_corpora import (
    CorpusArgument,
    OptionsOption,
    corpus_spec,
    corpus_specs,
    embed_whole_corpus,
    embedder_labels,
    find_corpus,
    find_embedder,
    is_embedded,
    list_embeddings,
    open_store,
    unique_label,
    warn_of_missing,
)
from neuralviz.cli.terminal import printable
from neuralviz.cli.vectors import (
    OWN_SETTINGS_HELP,
    ColumnOption,
    HeaderOption,
    LimitOption,
    MethodsModel,
    NoHeaderOption,
    header_line,
    read_file,
)
from neuralviz.embedders import EmbedderSpec
from neuralviz.errors import NeuralvizError
from neuralviz.maps.exporting import corpus_pieces
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.settings import is_large
from neuralviz.reading.source import Source
from neuralviz.reading.vectors import read_vectors
from neuralviz.store.importing import import_vectors, imported_label
from neuralviz.store.writing import check_destination, write_pieces
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.cli.ray_work import RayEmbedding
    from neuralviz.embedders import Embedder
    from neuralviz.reading.texts import Mode
    from neuralviz.store.corpora import Corpus, CorpusStore

commands = typer.Typer(
    cls=Commands,
    help="Save corpora with their embeddings and maps.",
    no_args_is_help=True,
    add_completion=False,
)

MethodsOption = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "Embedding method, or several concatenated, such as neural+mean. Repeatable. "
            f"{OWN_SETTINGS_HELP} `neuralviz methods` lists all methods. Default: mean."
        )
    ),
]


PathsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH…",
        help=(
            "File with one text per line, a table (.csv, .tsv, .jsonl, .json, .parquet, .xlsx), "
            "or a folder of such files. With --ray: several files, folders, patterns or URLs; "
            ".parquet, .jsonl, .ndjson, .csv and .tsv."
        ),
    ),
]


@commands.command(cls=RayCommand)
def add(
    path: PathsArgument,
    name: Annotated[
        str | None, typer.Option(help=("Name of the corpus. Default: the file name."))
    ] = None,
    column: ColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="Column with the IDs.")] = None,
    paragraphs: Annotated[
        bool,
        typer.Option(
            "--paragraphs", help=("Split plain text at blank lines: one text per paragraph.")
        ),
    ] = False,
    header: HeaderOption = None,
    no_header: NoHeaderOption = False,
    limit: LimitOption = None,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
    ray: RayOption = None,
) -> None:
    """Save the texts of a file or folder, or of several with --ray, as a corpus, and embed them.

    Run the same command again to resume.
    """

    specs = corpus_specs(method, option, model)
    line = header_line(header, no_header=no_header)
    store = open_store()
    if ray is not None:
        if paragraphs:
            raise NeuralvizError("--paragraphs does not work with --ray, which reads tables only.")
        requested_name = name or _name_from_paths(path)
        work = ray_work()
        parts, layout = work.inspect_files(path, column, id_column, line)
        embedders = load_embedders(specs)
        saved = work.find_saved_corpus(store, requested_name, parts, layout, limit)
        if saved and not is_large(saved.n_texts) and is_embedded(store, saved, embedders):
            _print_saved(saved, requested_name, is_new=False)
            _embed(store, saved, specs, embedders)
            return
        with work.open_cluster(ray) as cluster:
            corpus, is_new = work.add_with_ray(store, requested_name, parts, layout, limit)
            _print_saved(corpus, requested_name, is_new=is_new)
            _embed(store, corpus, specs, embedders, work.RayEmbedding(cluster))
        return
    if len(path) > 1 or "://" in path[0]:
        raise NeuralvizError("Several files at once, and URLs, need --ray.")
    file = Path(path[0])
    if paragraphs and Source.from_path(file).is_table and not file.is_dir():
        raise NeuralvizError(f"{file.name} is a table. Use --paragraphs only with plain text.")
    if id_column is not None and file.is_dir():
        raise NeuralvizError(
            "--id-column works with a single table only. Tables in a folder use their own "
            "ID columns."
        )
    mode: Mode | None = "blank line" if paragraphs else None
    read = read_file(file, column, limit, header=line, id_column=id_column, mode=mode)
    requested_name = file.resolve().name if name is None else name
    existing = store.find(requested_name, read)
    embedders = load_embedders(specs)  # first: the model may not exist
    corpus = existing or store.add(requested_name, read)
    _print_saved(corpus, requested_name, is_new=existing is None)
    _embed(store, corpus, specs, embedders)


@commands.command(cls=RayCommand)
def embed(
    corpus: CorpusArgument,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
    ray: RayOption = None,
) -> None:
    """Embed a saved corpus. Existing embeddings are reused."""

    specs = corpus_specs(method, option, model)
    store = open_store()
    saved_corpus = find_corpus(store, corpus)
    if ray is None:
        _embed(store, saved_corpus, specs, load_embedders(specs))
    else:
        work = ray_work()
        with work.open_cluster(ray) as cluster:
            _embed(store, saved_corpus, specs, load_embedders(specs), work.RayEmbedding(cluster))


@commands.command("import")
def import_embeddings(
    corpus: CorpusArgument,
    file: Annotated[
        Path,
        typer.Argument(
            help=(
                "Vectors computed elsewhere: a Parquet file with the vectors in a column and the "
                "texts or IDs of the corpus in another, in any order, or a .npy array with one row "
                "per text, in the order of the corpus."
            )
        ),
    ],
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order",
            help=(
                "The rows of a file without texts and IDs are in the order of the corpus. "
                "A .npy array needs no --in-order."
            ),
        ),
    ] = False,
) -> None:
    """Import embeddings of a saved corpus. They are a method of their own, `file: NAME`."""

    store = open_store()
    saved_corpus = find_corpus(store, corpus)
    imported = import_vectors(
        store, saved_corpus, read_vectors(Source.from_path(file)), in_order=in_order
    )
    label = imported_label(store, saved_corpus, imported.kept)
    print_message(
        f"Imported {many(saved_corpus.n_texts, 'embedding')} of {imported.kept.dim:,} values as "
        f'“{label}”. {imported.matched} Use it with --method "{label}".'
    )


@commands.command("list")
def list_corpora(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the saved corpora with their embedding methods and maps."""

    store = open_store()
    labels = embedder_labels(store.vectors.embedders())
    entries = [_describe_corpus(store, corpus, labels) for corpus in store.corpora()]
    if as_json:
        typer.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    if not entries:
        print_message("No corpora yet. Add one with `neuralviz corpus add FILE`.")
        return
    table = Table(box=None, pad_edge=False)
    for head in ("corpus", "texts", "labels", "embedded by", "maps"):
        table.add_column(head, justify="right" if head in ("texts", "maps") else "left")
    for entry in entries:
        methods = [
            embedding["method"]
            + f" ({embedding['embedded']:,})" * (embedding["embedded"] < entry["texts"])
            for embedding in entry["embedders"]
        ]
        cells = (entry["name"], f"{entry['texts']:,}", ", ".join(entry["columns"]),
                 "; ".join(methods), str(len(entry["maps"])))  # fmt: skip
        table.add_row(*(Text(printable(cell)) for cell in cells))
    Console(highlight=False).print(table)


@commands.command()
def export(
    corpus: CorpusArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file (.parquet, .csv or .jsonl).")
    ],
    method: Annotated[
        str | None, typer.Option(help="Include the embeddings of this method.")
    ] = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
) -> None:
    """Export a saved corpus: IDs, texts, labels and, with --method, embeddings."""

    check_destination(output)
    if method is None and (option or model):
        raise NeuralvizError("--option and --model need --method.")
    store = open_store()
    saved_corpus = store.recount(find_corpus(store, corpus))
    kept, method_note = None, ""
    if method is not None:
        spec = corpus_spec(store, saved_corpus, method, option, model)
        kept, method_note = (
            find_embedder(store, saved_corpus, spec),
            (f", with embeddings by {unique_label(store, spec)}"),
        )
    pieces = corpus_pieces(store, saved_corpus, kept)
    first = next(pieces)
    write_pieces(output, chain([first], pieces))
    size = f"{many(saved_corpus.n_texts, 'row')} with {many(first.num_columns, 'column')}"
    print_message(f"Wrote {size} to {output}{method_note}.")


@commands.command()
def rename(corpus: CorpusArgument, name: Annotated[str, typer.Argument(help="New name.")]) -> None:
    """Rename a saved corpus."""

    store = open_store()
    renamed = store.rename(find_corpus(store, corpus), name)
    print_message(f"Renamed to “{renamed.name}”.")


@commands.command()
def delete(
    corpus: CorpusArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a saved corpus with its embeddings and maps."""

    store = open_store()
    saved_corpus = find_corpus(store, corpus)
    question = f"Delete “{saved_corpus.name}” ({many(saved_corpus.n_texts, 'text')})? [y/N] "
    if not yes and not ask_confirmation(question):
        print_message("Nothing deleted.")
        return
    store.delete(saved_corpus)
    print_message(f"Deleted “{saved_corpus.name}”.")


def _name_from_paths(paths: Sequence[str]) -> str:
    """The default name of a corpus of some files."""
    if "://" not in paths[0]:
        paths = [str(Path(paths[0]).absolute()), *paths[1:]]
    steps = [step for step in paths[0].split("/") if step and not set(step) & set("*?[")]
    first = steps[-1] if steps else paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"


def _print_saved(corpus: Corpus, requested_name: str, *, is_new: bool) -> None:
    if is_new:
        equal = f", {corpus.n_distinct:,} of them different," * (corpus.n_distinct < corpus.n_texts)
        print_message(f"Saved {many(corpus.n_texts, 'text')}{equal} as “{corpus.name}”.")
        if corpus.name != requested_name:
            print_message(f"“{requested_name}” was there before, with other texts; it is kept.")
    else:
        print_message(f"These texts are already saved as “{corpus.name}”.")


def _embed(
    store: CorpusStore,
    corpus: Corpus,
    specs: Sequence[EmbedderSpec],
    embedders: Sequence[Embedder],
    ray_embedding: RayEmbedding | None = None,
) -> None:
    if ray_embedding is None:
        warn_of_missing(store, corpus, embedders)
    for spec, embedder in zip(specs, embedders, strict=True):
        label = unique_label(store, spec, specs)
        corpus, last, n_missing = embed_whole_corpus(store, corpus, label, embedder, ray_embedding)
        if ray_embedding is not None:
            ray_work().index_corpus(store, corpus, last.embedder)
        outcome = "Already embedded" if last.found == last.total else "Embedded"
        print_message(
            f"{outcome} by {label}: {many(corpus.n_texts - n_missing, 'embedding')} of "
            f"{last.embedder.dim:,} values."
        )


def _describe_corpus(
    store: CorpusStore, corpus: Corpus, labels: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "name": corpus.name,
        "id": corpus.id,
        "texts": corpus.n_texts,
        "different_texts": corpus.n_distinct,
        "created": corpus.created,
        "columns": [column.name for column in corpus.columns],
        "embedders": list_embeddings(store, corpus, labels),
        "maps": [
            {"method": labels.get(kept.embedder, kept.embedder)} | kept.settings.relevant()
            for kept in KeptMaps(store).list_maps(corpus)
        ],
    }
