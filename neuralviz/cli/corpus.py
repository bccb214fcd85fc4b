"""The commands for corpora that are kept: add, list, embed, export, rename, delete."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuralviz.cli.common import INTERRUPTED, Commands, say
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.terminal import printable
from neuralviz.cli.vectors import (
    ColumnOption,
    FileArgument,
    LimitOption,
    MethodsModel,
    progress_bars,
    read_file,
    warn_of_time,
)
from neuralviz.embedders import FOR_CORPORA, EmbedderSpec, embedder_specs, split_options
from neuralviz.embedders.labels import method_label, method_labels
from neuralviz.errors import LossWarning, NeuralvizError, SettingsError, StoreError
from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.kept import KeptMaps
from neuralviz.reading.source import Source
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.writing import check_destination, write_table
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.embedders import Embedder
    from neuralviz.reading.texts import Mode
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.embedding import EmbeddingEvent
    from neuralviz.store.vectors import KeptEmbedder

commands = typer.Typer(
    cls=Commands,
    help="Save corpora with their embeddings and maps.",
    no_args_is_help=True,
    add_completion=False,
)

CorpusArgument = Annotated[str, typer.Argument(help="Name or ID of a saved corpus.")]
MethodsOption = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "Embedding method, or several concatenated, such as neural+mean. Repeatable. "
            "`neuralviz methods` lists all methods. Default: mean."
        )
    ),
]
OptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help=(
            "Set an option for every method that has it, or for one method with "
            "METHOD.NAME=VALUE. Repeatable. Neural methods use precision=fast here unless "
            "you set another."
        ),
    ),
]


@commands.command()
def add(
    path: FileArgument,
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
    limit: LimitOption = None,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
) -> None:
    """Save the texts of a file or folder as a corpus, and embed them.

    Run the same command again to resume.
    """

    specs = _specs(method, option, model)
    store = CorpusStore()
    if paragraphs and Source.at(path).is_table and not path.is_dir():
        raise NeuralvizError(f"{path.name} is a table. Use --paragraphs only with plain text.")
    if id_column is not None and path.is_dir():
        raise NeuralvizError(
            "--id-column works with a single table only. Tables in a folder use their own "
            "ID columns."
        )
    mode: Mode | None = "blank line" if paragraphs else None
    read = read_file(path, column, limit, id_column=id_column, mode=mode)
    wanted = path.resolve().name if name is None else name
    corpus = store.find(wanted, read)
    embedders = load_embedders(specs)  # before anything is kept: there may be no such model
    if corpus is None:
        corpus = store.add(wanted, read)
        say(f"Saved {many(corpus.n_texts, 'text')} as “{corpus.name}”.")
    else:
        say(f"These texts are already saved as “{corpus.name}”.")
    _embed(store, corpus, specs, embedders)


@commands.command()
def embed(
    corpus: CorpusArgument,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
) -> None:
    """Embed a saved corpus. Existing embeddings are reused."""

    specs = _specs(method, option, model)
    store = CorpusStore()
    found = find_corpus(store, corpus)
    _embed(store, found, specs, load_embedders(specs))


@commands.command("list")
def list_corpora(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the saved corpora with their embedding methods and maps."""

    store = CorpusStore()
    labels = _labels(store.vectors.embedders())
    entries = [_entry(store, corpus, labels) for corpus in store.corpora()]
    if as_json:
        typer.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    if not entries:
        say("No corpora yet. Add one with `neuralviz corpus add FILE`.")
        return
    table = Table(box=None, pad_edge=False)
    for head in ("corpus", "texts", "labels", "embedded by", "maps"):
        table.add_column(head, justify="right" if head in ("texts", "maps") else "left")
    for entry in entries:
        methods = [
            one["method"] + f" ({one['embedded']:,})" * (one["embedded"] < entry["texts"])
            for one in entry["embedders"]
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
    store = CorpusStore()
    found = find_corpus(store, corpus)
    kept, how = None, ""
    if method is not None:
        spec = corpus_spec(method, option, model)
        kept, how = (
            kept_embedder(store, found, spec),
            (f", with embeddings by {method_label(spec)}"),
        )
    table = corpus_table(store, found, kept)
    write_table(output, table)
    size = f"{many(table.num_rows, 'row')} with {many(table.num_columns, 'column')}"
    say(f"Wrote {size} to {output}{how}.")


@commands.command()
def rename(corpus: CorpusArgument, name: Annotated[str, typer.Argument(help="New name.")]) -> None:
    """Rename a saved corpus."""

    store = CorpusStore()
    renamed = store.rename(find_corpus(store, corpus), name)
    say(f"Renamed to “{renamed.name}”.")


@commands.command()
def delete(
    corpus: CorpusArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a saved corpus with its embeddings and maps."""

    store = CorpusStore()
    found = find_corpus(store, corpus)
    question = f"Delete “{found.name}” ({many(found.n_texts, 'text')})? [y/N] "
    if not yes and not _confirmed(question):
        say("Nothing deleted.")
        return
    store.delete(found)
    say(f"Deleted “{found.name}”.")


def find_corpus(store: CorpusStore, name_or_id: str) -> Corpus:
    """A corpus by its name or id.

    Raises:
        StoreError: there is none; when a file is called so, the message says how to keep it.
    """
    try:
        return store.corpus(name_or_id)
    except StoreError as error:
        if not os.path.exists(name_or_id):  # noqa: PTH110  Path.exists raises on long names
            raise
        raise StoreError(
            f"{error} {name_or_id} is a file or folder; add it first with `neuralviz corpus add`."
        ) from error


def kept_embedder(store: CorpusStore, corpus: Corpus, spec: EmbedderSpec) -> KeptEmbedder:
    """The kept embedder of a spec, of which every text of a corpus has a vector.

    Raises:
        NeuralvizError: a text has none.
    """

    (embedder,) = load_embedders([spec])
    kept = store.vectors.of(embedder)
    if kept is None or not store.vectors.has(kept, store.keys(corpus)).all():
        labels = _labels(store.vectors.embedders())
        complete = [
            entry["method"]
            for entry in _embedded_by(store, corpus, labels)
            if entry["embedded"] == corpus.n_texts
        ]
        raise NeuralvizError(
            (
                f"“{corpus.name}” has no embeddings by “{method_label(spec)}” with these "
                "options. Compute them with `neuralviz corpus embed`."
            )
            + f" Available: {'; '.join(complete)}. Choose one with --method and --option."
            * bool(complete)
        )
    return kept


def warn_of_missing(store: CorpusStore, corpus: Corpus, embedders: Sequence[Embedder]) -> None:
    """Say so when learning the texts that have no vector yet will take minutes."""

    keys = store.keys(corpus)
    lacking, missing = [], np.zeros(len(keys), dtype=bool)
    for embedder in embedders:
        for part in embedder.parts:
            kept = store.vectors.of(part)
            has = np.zeros_like(missing) if kept is None else store.vectors.has(kept, keys)
            if not has.all():
                lacking.append(part)
                missing |= ~has
    if lacking:
        warn_of_time(lacking, store.texts(corpus, np.flatnonzero(missing)))


def embed_kept(
    store: CorpusStore, corpus: Corpus, spec: EmbedderSpec, embedder: Embedder
) -> EmbeddingEvent:
    """Embed what has no vector yet, with a bar; the last event, which is complete.

    Raises:
        typer.Exit: Ctrl-C was pressed; what was finished is kept.
    """

    label = method_label(spec)
    progress = None
    try:
        with progress_bars() as bars, closing(embed_corpus(store, corpus, embedder)) as run:
            task = None
            for progress in run:
                if task is None:
                    task = bars.add_task(label, total=progress.total)
                bars.update(task, completed=progress.done, total=progress.total)
    except KeyboardInterrupt as interrupt:
        say("Stopped. Finished work is saved; run the same command again to resume.")
        raise typer.Exit(INTERRUPTED) from interrupt
    assert progress is not None
    if progress.n_rose:
        say(f"{label}: {LossWarning(progress.n_rose, progress.total)}")
    return progress


def _confirmed(question: str) -> bool:
    """Whether the answer is yes.

    Raises:
        NeuralvizError: there is nobody to answer.
    """
    typer.echo(printable(question), nl=False, err=True)
    answer = "" if sys.stdin is None or sys.stdin.closed else sys.stdin.readline()
    if not answer:
        typer.echo(err=True)
        raise NeuralvizError("Nothing deleted: no answer. Use --yes to delete without asking.")
    return answer.strip().lower() in ("y", "yes")


def corpus_spec(method: str, option: Sequence[str] | None, model: str | None) -> EmbedderSpec:
    """How a kept corpus is embedded: fast, unless a precision is given."""
    (spec,) = _specs([method], option, model)
    return spec


def _specs(
    methods: Sequence[str] | None, option: Sequence[str] | None, model: str | None
) -> tuple[EmbedderSpec, ...]:
    typed = split_options(option or [])
    return embedder_specs(methods or ["mean"], typed, model_id=model, defaults=FOR_CORPORA)


def _embed(
    store: CorpusStore,
    corpus: Corpus,
    specs: Sequence[EmbedderSpec],
    embedders: Sequence[Embedder],
) -> None:
    warn_of_missing(store, corpus, embedders)
    for spec, embedder in zip(specs, embedders, strict=True):
        last = embed_kept(store, corpus, spec, embedder)
        done = "Already embedded" if last.found == last.total else "Embedded"
        say(
            f"{done} by {method_label(spec)}: {many(corpus.n_texts, 'embedding')} of "
            f"{last.embedder.dim:,} values."
        )


def _labels(embedders: Sequence[KeptEmbedder]) -> dict[str, str]:
    """By id, a name for each embedder, no two alike; the id of one that is not known here."""

    specs: dict[str, EmbedderSpec] = {}
    for kept in embedders:
        with suppress(SettingsError):
            specs[kept.id] = EmbedderSpec.from_json(kept.spec)
    names = dict(zip(specs, method_labels(list(specs.values())), strict=True))
    return {kept.id: names.get(kept.id, kept.id) for kept in embedders}


def _embedded_by(
    store: CorpusStore, corpus: Corpus, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What a corpus has vectors of: method, number of texts, length of the vectors."""
    keys = store.keys(corpus)
    found = []
    for kept in store.vectors.embedders():
        embedded = int(store.vectors.has(kept, keys).sum())
        if embedded:
            label = labels.get(kept.id, kept.id)
            found.append({"method": label, "embedded": embedded, "dim": kept.dim})
    return found


def _entry(store: CorpusStore, corpus: Corpus, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": corpus.name,
        "id": corpus.id,
        "texts": corpus.n_texts,
        "different_texts": corpus.n_distinct,
        "created": corpus.created,
        "columns": [column.name for column in corpus.columns],
        "embedders": _embedded_by(store, corpus, labels),
        "maps": [
            {"method": labels.get(kept.embedder, kept.embedder)} | kept.settings.relevant()
            for kept in KeptMaps(store).of(corpus)
        ],
    }
