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
    from neuralviz.store.vectors import KeptEmbedder

commands = typer.Typer(
    cls=Commands,
    help="Keep corpora with their vectors and maps.",
    no_args_is_help=True,
    add_completion=False,
)

CorpusArgument = Annotated[str, typer.Argument(help="Name or id of a kept corpus.")]
MethodsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="How to embed, again and again: a method that `neuralviz methods` lists, or several "
        "joined, as in neural+mean."
    ),
]
OptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of every method that has it, again and again; METHOD.NAME=VALUE is for "
        "one of them. What learns texts is fast unless precision=exact is given.",
    ),
]


@commands.command()
def add(
    path: FileArgument,
    name: Annotated[str | None, typer.Option(help="What to call it; by default the file.")] = None,
    column: ColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="The column of the ids.")] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Of a plain text: a text a paragraph.")
    ] = False,
    limit: LimitOption = None,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
) -> None:
    """Keep the texts of a file or a folder, and embed them.

    The same file again goes on where the last run ended.
    """

    specs = _specs(method, option, model)
    store = CorpusStore()
    if paragraphs and Source.at(path).is_table and not path.is_dir():
        raise NeuralvizError(f"{path.name} is a table; --paragraphs is for plain text.")
    if id_column is not None and path.is_dir():
        raise NeuralvizError(
            "--id-column is for a single table; those of a folder are read with the ids they have."
        )
    mode: Mode | None = "blank line" if paragraphs else None
    read = read_file(path, column, limit, id_column=id_column, mode=mode)
    wanted = path.resolve().name if name is None else name
    corpus = store.find(wanted, read)
    embedders = load_embedders(specs)  # before anything is kept: there may be no such model
    if corpus is None:
        corpus = store.add(wanted, read)
        say(f"{many(corpus.n_texts, 'text')} kept as “{corpus.name}”.")
    else:
        say(f"These texts are kept as “{corpus.name}” already.")
    _embed(store, corpus, specs, embedders)


@commands.command()
def embed(
    corpus: CorpusArgument,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
) -> None:
    """Embed a kept corpus; what is there already is not computed again."""

    specs = _specs(method, option, model)
    store = CorpusStore()
    found = find_corpus(store, corpus)
    _embed(store, found, specs, load_embedders(specs))


@commands.command("list")
def list_corpora(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List what is kept: corpora, the methods they are embedded by, and their maps."""

    store = CorpusStore()
    labels = _labels(store.vectors.embedders())
    entries = [_entry(store, corpus, labels) for corpus in store.corpora()]
    if as_json:
        typer.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    if not entries:
        say("No corpus is kept yet; `neuralviz corpus add FILE` keeps one.")
        return
    table = Table(box=None, pad_edge=False)
    for head in ("corpus", "texts", "columns", "embedded by", "maps"):
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
        Path, typer.Option("--output", "-o", help="A .parquet, .csv or .jsonl file to write.")
    ],
    method: Annotated[
        str | None, typer.Option(help="Write the vectors of this method, too.")
    ] = None,
    option: OptionsOption = None,
    model: MethodsModel = None,
) -> None:
    """Write a kept corpus: ids, texts, labels, and the vectors of a method."""

    check_destination(output)
    if method is None and (option or model):
        raise NeuralvizError("--option and --model say how a --method embeds; name one.")
    store = CorpusStore()
    found = find_corpus(store, corpus)
    kept, how = None, ""
    if method is not None:
        spec = corpus_spec(method, option, model)
        kept, how = kept_embedder(store, found, spec), f", vectors by {method_label(spec)}"
    table = corpus_table(store, found, kept)
    write_table(output, table)
    size = f"{many(table.num_rows, 'row')} of {many(table.num_columns, 'column')}"
    say(f"{size} in {output}{how}.")


@commands.command()
def rename(
    corpus: CorpusArgument, name: Annotated[str, typer.Argument(help="The new name.")]
) -> None:
    """Give a kept corpus another name."""

    store = CorpusStore()
    renamed = store.rename(find_corpus(store, corpus), name)
    say(f"It is called “{renamed.name}” now.")


@commands.command()
def delete(
    corpus: CorpusArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a kept corpus with its maps and vectors."""

    store = CorpusStore()
    found = find_corpus(store, corpus)
    question = f"Delete “{found.name}” ({many(found.n_texts, 'text')})? [y/N] "
    if not yes and not _confirmed(question):
        say("Nothing was deleted.")
        return
    store.delete(found)
    say(f"“{found.name}” is deleted.")


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
            f"{error} {name_or_id} is a file or folder; `neuralviz corpus add` keeps its texts."
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
            f"“{corpus.name}” is not embedded by “{method_label(spec)}” with these options; "
            "`neuralviz corpus embed` does it."
            + f" It is embedded by {'; '.join(complete)}: --method and --option name one of them."
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
) -> KeptEmbedder:
    """Embed what has no vector yet, with a bar.

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
        say("Stopped. What was finished is kept; the same command goes on where it was.")
        raise typer.Exit(INTERRUPTED) from interrupt
    assert progress is not None
    if progress.n_rose:
        say(f"{label}: {LossWarning(progress.n_rose, progress.total)}")
    return progress.embedder


def _confirmed(question: str) -> bool:
    """Whether the answer is yes.

    Raises:
        NeuralvizError: there is nobody to answer.
    """
    typer.echo(printable(question), nl=False, err=True)
    answer = "" if sys.stdin is None or sys.stdin.closed else sys.stdin.readline()
    if not answer:
        typer.echo(err=True)
        raise NeuralvizError("Nothing was deleted: nobody answered; --yes deletes without asking.")
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
        kept = embed_kept(store, corpus, spec, embedder)
        vectors = many(corpus.n_texts, "vector")
        say(f"Embedded by {method_label(spec)}: {vectors} of {kept.dim:,} values.")


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
