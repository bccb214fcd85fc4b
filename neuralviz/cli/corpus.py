"""The commands for saved corpora: add, embed, import, list, export, rename, delete, project."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralviz.cli import options
from neuralviz.cli.console import (
    KEPT,
    Commands,
    confirm_deleting,
    print_message,
    print_notes,
    print_table,
    run_work,
    stop,
)
from neuralviz.cluster import RESUMES
from neuralviz.embedders import (
    FOR_CORPORA,
    EmbedderSpec,
    embedder_specs,
    make_embedder,
    split_options,
)
from neuralviz.embedders.specs import labels_by_spec, method_labels
from neuralviz.errors import (
    LossWarning,
    NeuralvizError,
    SettingsError,
    StoreError,
    check_choice,
    check_stop,
)
from neuralviz.headlines import plain_headline
from neuralviz.headlines.corpus import describe_groups
from neuralviz.jobs.task import Progress
from neuralviz.jobs.training import TEXTBOOKS, add_textbooks
from neuralviz.maps import example as topics
from neuralviz.maps.duplicates import (
    RULES,
    SimilarPairs,
    check_threshold,
    find_pairs,
    group_duplicates,
    name_difference,
    removed_table,
)
from neuralviz.maps.kept import KeptMaps, corpus_pieces
from neuralviz.models.shared import LOADERS
from neuralviz.reading.source import Source
from neuralviz.reading.vectors import ReadVectors, list_vector_columns, read_vectors
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.database import tidy_soon
from neuralviz.store.embedding import EmbeddingEvent, embed_corpus
from neuralviz.store.importing import (
    FILE,
    find_imported,
    import_vectors,
    imported_label,
    imported_specs,
)
from neuralviz.store.writing import check_destination, write_pieces
from neuralviz.words import joined, many, number

if TYPE_CHECKING:
    from neuralviz.cli.ray_work import RayEmbedding
    from neuralviz.embedders import Embedder
    from neuralviz.errors import ShouldStop
    from neuralviz.store.vectors import KeptEmbedder

EXAMPLES: dict[str, Callable[[CorpusStore], Corpus]] = {
    topics.NAME: topics.add_example,
    TEXTBOOKS: add_textbooks,
}
PREVIEWED = 60  # characters of a text
MethodsOption = Annotated[list[str] | None, options.declare_methods("mean")]
OptionsOption = Annotated[list[str] | None, options.declare_options(FOR_CORPORA)]

commands = typer.Typer(
    cls=Commands,
    help="Save corpora with their embeddings and maps.",
    no_args_is_help=True,
    add_completion=False,
)


@commands.command(cls=options.RayCommand)
def add(
    context: typer.Context,
    path: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…",
            help=f"{options.TEXTS_FILE} With --ray: several files, folders, patterns or URLs; "
            ".parquet, .jsonl, .ndjson, .csv and .tsv.",
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="Name of the corpus. Default: the file name.")
    ] = None,
    column: options.ColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="Column with the IDs.")] = None,
    paragraphs: Annotated[
        bool,
        typer.Option(
            "--paragraphs", help="Split plain text at blank lines: one text per paragraph."
        ),
    ] = False,
    header: options.HeaderOption = None,
    no_header: options.NoHeaderOption = False,
    limit: options.LimitOption = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Use the vectors in this column of a Parquet file, instead of computing any "
            "unless --method asks for them.",
        ),
    ] = None,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: options.MethodsModel = None,
    ray: options.RayOption = None,
) -> None:
    """Save the texts of a file or folder, or of several with --ray, as a corpus, and embed them.

    Run the same command again to resume.
    """
    context.meta[KEPT] = "Nothing was saved."
    specs = _read_specs(method, option, model)
    line = options.header_line(header, no_header)
    store = open_store()
    file = Path(path[0])
    if vectors is not None and (ray is not None or file.suffix.lower() != ".parquet"):
        raise NeuralvizError("Use --vectors only with a single Parquet file, without --ray.")
    if paragraphs and (ray is not None or (Source.from_path(file).is_table and not file.is_dir())):
        raise NeuralvizError("Use --paragraphs only with plain text, which --ray does not read.")
    if ray is not None:
        requested_name = name or _name_from_paths(path)
        work = options.ray_work()
        parts, layout = work.inspect_files(path, column, id_column, line)
        embedders = _load_embedders(specs)
        with work.open_cluster(ray) as ray_embedding:
            corpus, is_new = work.add_with_ray(store, requested_name, parts, layout, limit)
            context.meta[KEPT] = RESUMES
            _print_saved(corpus, is_new)
            _embed_all(store, corpus, specs, embedders, ray_embedding)
        return
    if len(path) > 1 or "://" in path[0]:
        raise NeuralvizError("Several files at once, and URLs, need --ray.")
    if id_column is not None and file.is_dir():
        raise NeuralvizError(
            "--id-column works with a single table only. Tables in a folder use their own "
            "ID columns."
        )
    mode: Any = "blank line" if paragraphs else None
    read = options.read_file(file, column, limit, line, id_column=id_column, mode=mode)
    requested_name = file.resolve().name if name is None else name
    existing = store.find(requested_name, read)
    if vectors is not None and not method:
        specs = ()
    embedders = _load_embedders(specs)  # first, as the model may not exist
    read_of_file = read_vectors(Source.from_path(file), vectors) if vectors is not None else None
    corpus = existing or store.add(requested_name, read)
    if read_of_file is not None:
        try:
            message = _import_vectors(store, corpus, read_of_file)
        except NeuralvizError:
            if existing is None:
                store.delete(corpus)
            raise
    context.meta[KEPT] = RESUMES
    _print_saved(corpus, is_new=existing is None)
    if read_of_file is not None:
        print_message(message)
    elif file.is_file() and (columns := list_vector_columns(Source.from_path(file))):
        print_message(
            f"Its column “{columns[0]}” has vectors. To use them, add the corpus with "
            f'--vectors "{columns[0]}".'
        )
    _embed_all(store, corpus, specs, embedders)


@commands.command(cls=options.RayCommand)
def embed(
    corpus: options.CorpusArgument,
    method: MethodsOption = None,
    option: OptionsOption = None,
    model: options.MethodsModel = None,
    ray: options.RayOption = None,
) -> None:
    """Embed a saved corpus. Existing embeddings are reused."""
    specs = _read_specs(method, option, model)
    store, saved_corpus = open_corpus(corpus)
    with options.open_ray(ray) as ray_embedding:
        _embed_all(store, saved_corpus, specs, _load_embedders(specs), ray_embedding)


@commands.command("import")
def import_embeddings(
    corpus: options.CorpusArgument,
    file: Annotated[
        Path,
        typer.Argument(
            help="Vectors computed elsewhere: a Parquet file with the vectors in a column and the "
            "texts or IDs of the corpus in another, in any order, or a .npy array with one row "
            "per text, in the order of the corpus."
        ),
    ],
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order",
            help="The rows of a file without texts and IDs are in the order of the corpus. "
            "A .npy array needs no --in-order.",
        ),
    ] = False,
) -> None:
    """Import embeddings of a saved corpus. They are a method of their own, `file: NAME`."""
    store, saved_corpus = open_corpus(corpus)
    vectors = read_vectors(Source.from_path(file))
    print_message(_import_vectors(store, saved_corpus, vectors, in_order=in_order))


def _import_vectors(
    store: CorpusStore, corpus: Corpus, read: ReadVectors, *, in_order: bool = False
) -> str:
    """Import vectors, and say under which name they are a method."""
    imported = import_vectors(store, corpus, read, in_order=in_order)
    label = imported_label(store, corpus, imported.kept)
    return (
        f"Imported {many(corpus.n_texts, 'embedding')} of {imported.kept.dim:,} values as "
        f'“{label}”. {imported.matched} Use it with --method "{label}".'
    )


@commands.command("list")
def list_corpora(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the saved corpora with their embedding methods and maps."""
    store = open_store()
    specs = _list_saved_specs(store)
    labels = dict(zip(specs, method_labels(list(specs.values())), strict=True))
    entries = [_describe_corpus(store, corpus, labels) for corpus in store.corpora()]
    if as_json:
        typer.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    if not entries:
        print_message("No corpora yet. Add one with `neuralviz corpus add FILE`.")
        return
    rows = []
    for entry in entries:
        n_texts = entry["texts"]
        methods = [
            kept["method"] + f" ({kept['embedded']:,})" * (kept["embedded"] < n_texts)
            for kept in entry["embedders"]
        ]
        columns, n_maps = ", ".join(entry["columns"]), str(len(entry["maps"]))
        rows.append([entry["name"], f"{n_texts:,}", columns, "; ".join(methods), n_maps])
    print_table(["corpus", "texts", "labels", "embedded by", "maps"], rows, aligned_left=(0, 2, 3))


@commands.command()
def export(
    corpus: options.CorpusArgument,
    output: options.TableOutput,
    method: Annotated[
        str | None, typer.Option(help="Include the embeddings of this method.")
    ] = None,
    option: OptionsOption = None,
    model: options.MethodsModel = None,
) -> None:
    """Export a saved corpus: IDs, texts, labels and, with --method, embeddings."""
    check_destination(output)
    if method is None and (option or model):
        raise NeuralvizError("--option and --model need --method.")
    store, saved_corpus = open_corpus(corpus)
    saved_corpus = store.recount(saved_corpus)
    kept, method_note = None, ""
    if method is not None:
        spec = find_spec(store, saved_corpus, method, option, model)
        kept = find_embedder(store, saved_corpus, spec)
        method_note = f", with embeddings by {unique_label(store, spec)}"
    write_pieces(output, corpus_pieces(store, saved_corpus, kept))
    print_message(f"Wrote {many(saved_corpus.n_texts, 'text')} to {output}{method_note}.")


@commands.command()
def duplicates(
    corpus: options.CorpusArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the kept texts to a file (.parquet, .csv or .jsonl)."
        ),
    ] = None,
    removed: Annotated[
        Path | None,
        typer.Option(help="Write the removed texts, each with the ID of the text kept for it."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Cosine similarity from which texts are near-duplicates. Default: that which "
            "best separates pairs with nearly the same wording from others."
        ),
    ] = None,
    keep: Annotated[
        str, typer.Option(help=f"Text of a group to keep: {joined(RULES, 'or')}.")
    ] = RULES[0],
    keep_id: Annotated[
        list[str] | None, typer.Option(help="ID of a text to keep, whatever the rule. Repeatable.")
    ] = None,
    method: options.MethodOption = "mean",
    option: OptionsOption = None,
    model: options.MethodsModel = None,
) -> None:
    """Find near-duplicates in a saved corpus by its embeddings, and export it without them."""
    for path in filter(None, (output, removed)):
        check_destination(path)
    check_choice("rule", keep, RULES)
    if threshold is not None:
        check_threshold(threshold)
    if removed is not None and removed == output:
        raise SettingsError("Kept and removed texts need a file each.")
    store, saved_corpus = open_corpus(corpus)
    spec = find_spec(store, saved_corpus, method, option, model)
    embedder = find_embedder(store, saved_corpus, spec)
    chosen = _find_rows(store, saved_corpus, keep_id or ())

    def find(on_progress: Callable[[float], None], should_stop: ShouldStop) -> SimilarPairs:
        stopping = {"should_stop": should_stop}
        return find_pairs(store, saved_corpus, embedder, on_progress=on_progress, **stopping)

    pairs = run_work(find, _describe_comparing)
    if pairs is None:
        raise stop("Stopped. Nothing was written.")
    limit = pairs.first_threshold if threshold is None else threshold
    kept = group_duplicates(store, saved_corpus, embedder, pairs, limit, keep, chosen)
    _print_pairs(store, saved_corpus, pairs, limit)
    sizes, n_similar = list(map(len, kept.groups)), int(pairs.has_duplicate(limit).sum())
    label = unique_label(store, spec)
    sentence = describe_groups(label, limit, n_similar, sizes, pairs.n_texts, keep)
    print_message(plain_headline(sentence))
    if output is not None:
        write_pieces(output, corpus_pieces(store, saved_corpus, rows=kept.remaining))
        print_message(f"Wrote {many(len(kept.remaining), 'kept text')} to {output}.")
    if removed is not None:
        write_pieces(removed, [removed_table(store, saved_corpus, kept)])
        print_message(f"Wrote {many(len(kept.removed), 'removed text')} to {removed}.")


@commands.command()
def rename(
    corpus: options.CorpusArgument, name: Annotated[str, typer.Argument(help="New name.")]
) -> None:
    """Rename a saved corpus."""
    store, saved_corpus = open_corpus(corpus)
    renamed = store.rename(saved_corpus, name)
    print_message(f"Renamed to “{renamed.name}”.")


@commands.command()
def delete(corpus: options.CorpusArgument, yes: options.YesOption = False) -> None:
    """Delete a saved corpus with its embeddings and maps."""
    store, saved_corpus = open_corpus(corpus)
    if not yes:
        confirm_deleting(f"Delete “{saved_corpus.name}” ({many(saved_corpus.n_texts, 'text')})?")
    store.delete(saved_corpus)
    print_message(f"Deleted “{saved_corpus.name}”.")


def _name_from_paths(paths: Sequence[str]) -> str:
    if "://" not in paths[0]:
        paths = [str(Path(paths[0]).absolute()), *paths[1:]]
    steps = [step for step in paths[0].split("/") if step and not set(step) & set("*?[")]
    first = steps[-1] if steps else paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"


def _print_saved(corpus: Corpus, is_new: bool) -> None:
    if not is_new:
        print_message(f"These texts are already saved as “{corpus.name}”.")
        return
    equal = f", {corpus.n_distinct:,} of them different," * (corpus.n_distinct < corpus.n_texts)
    print_message(f"Saved {many(corpus.n_texts, 'text')}{equal} as “{corpus.name}”.")


def _describe_corpus(
    store: CorpusStore, corpus: Corpus, labels: Mapping[str, str]
) -> dict[str, Any]:
    keys = store.keys(corpus)
    counts = [(e, int(store.vectors.has_vectors(e, keys).sum())) for e in store.vectors.embedders()]
    return {
        "name": corpus.name,
        "id": corpus.id,
        "texts": corpus.n_texts,
        "different_texts": corpus.n_distinct,
        "created": corpus.created,
        "columns": [column.name for column in corpus.columns],
        "embedders": [
            {"method": labels.get(kept.id, kept.id), "embedded": n, "dim": kept.dim}
            for kept, n in counts
            if n
        ],
        "maps": [
            {"method": labels.get(kept.embedder, kept.embedder)} | kept.settings.relevant()
            for kept in KeptMaps(store).list_maps(corpus)
        ],
    }


def _describe_comparing(share: float) -> Progress:
    return Progress(share, 1.0, doing="Comparing all texts")


def _find_rows(store: CorpusStore, corpus: Corpus, ids: Sequence[str]) -> list[int]:
    places = {text_id: row for row, text_id in enumerate(store.ids(corpus))} if ids else {}
    for text_id in ids:
        if text_id not in places:
            raise NeuralvizError(f"“{corpus.name}” has no text with the ID “{text_id[:80]}”.")
    return [places[text_id] for text_id in ids]


def _print_pairs(store: CorpusStore, corpus: Corpus, pairs: SimilarPairs, threshold: float) -> None:
    """The pairs just above and just below the threshold."""
    n_above, places = pairs.count(threshold), pairs.places_around(threshold)
    texts = [store.texts(corpus, rows[places]) for rows in (pairs.first, pairs.second)]
    rows = [
        [
            "yes" if place < n_above else "no",
            number(float(pairs.cosines[place]), ".3f"),
            name_difference(text, other_text)[:PREVIEWED],
            text[:PREVIEWED],
        ]
        for place, text, other_text in zip(places.tolist(), *texts, strict=True)
    ]
    print_table(["near-duplicates", "cosine", "difference", "text"], rows, aligned_left=(0, 2, 3))


# --- corpora and methods as typed ----------------------------------------------------------------


def open_store() -> CorpusStore:
    """Open this user's store, and delete its old files in the background."""
    store = CorpusStore()
    tidy_soon(store.folder)
    return store


def open_corpus(name_or_id: str) -> tuple[CorpusStore, Corpus]:
    """This user's store, and a corpus of it by name or id; a missing example is added."""
    store = open_store()
    try:
        return store, store.corpus(name_or_id)
    except StoreError as error:
        if name_or_id in EXAMPLES:
            return store, EXAMPLES[name_or_id](store)
        raise StoreError(f"{error} Add a file with `neuralviz corpus add FILE`.") from error


def find_spec(
    store: CorpusStore, corpus: Corpus, method: str, option: Sequence[str] | None, model: str | None
) -> EmbedderSpec:
    """The spec of a method, with the defaults of `FOR_CORPORA`, or of imported vectors."""
    if not method.startswith(FILE):
        return _read_specs([method], option, model)[0]
    imported = imported_specs(store.vectors, lambda: store.keys(corpus))
    if method not in imported:
        raise NeuralvizError(
            f"No embeddings “{method[:80]}” were imported for “{corpus.name}”. Imported: "
            f"{'; '.join(imported) or 'none yet'}. Import a file with `neuralviz corpus import`."
        )
    if option or model:
        raise NeuralvizError("--option and --model do not apply to imported embeddings.")
    return imported[method]


def _read_specs(
    methods: Sequence[str] | None, option: Sequence[str] | None, model: str | None
) -> tuple[EmbedderSpec, ...]:
    typed = split_options(option or [])
    return embedder_specs(methods or ["mean"], typed, model_id=model, defaults=FOR_CORPORA)


def find_embedder(store: CorpusStore, corpus: Corpus, spec: EmbedderSpec) -> KeptEmbedder:
    """The stored embedder of a spec that has vectors of all texts of a corpus."""
    if spec.is_imported:
        return find_imported([store.vectors], spec, store.keys(corpus))[1]
    kept = store.vectors.find_embedder(_load_embedders([spec])[0])
    if kept is not None and store.vectors.has_vectors(kept, store.keys(corpus)).all():
        return kept
    raise NeuralvizError(
        f"“{corpus.name}” has no embeddings by “{unique_label(store, spec)}” with these options. "
        "Compute them with `neuralviz corpus embed`, or choose those that `neuralviz corpus list` "
        "names."
    )


def unique_label(
    store: CorpusStore, spec: EmbedderSpec, other_specs: Sequence[EmbedderSpec] = ()
) -> str:
    """The label of a spec, distinct from those in the store and of ``other_specs``."""
    return labels_by_spec([*_list_saved_specs(store).values(), *other_specs, spec])[spec]


def _list_saved_specs(store: CorpusStore) -> dict[str, EmbedderSpec]:
    """The specs, by id, of stored embedders that this version can make."""
    specs: dict[str, EmbedderSpec] = {}
    for kept in store.vectors.embedders():
        with suppress(SettingsError):
            specs[kept.id] = EmbedderSpec.from_json(kept.spec)
    return specs


# --- embedding -----------------------------------------------------------------------------------


def embed_whole_corpus(
    store: CorpusStore,
    corpus: Corpus,
    label: str,
    embedder: Embedder,
    ray_embedding: RayEmbedding | None = None,
) -> tuple[Corpus, EmbeddingEvent, int]:
    """Embed the missing texts; return the corpus, the last event, and how many lack a vector."""

    def embed_texts(
        on_progress: Callable[[EmbeddingEvent], None], should_stop: ShouldStop
    ) -> EmbeddingEvent:
        embed = ray_embedding or embed_corpus
        for event in embed(store, corpus, embedder, should_stop=should_stop):
            on_progress(event)
        check_stop(should_stop)  # asked for in the last batch
        return event

    def find_progress(event: EmbeddingEvent) -> Progress:
        return Progress(event.done, event.total, doing=f"{label}: {event.done:,} texts")

    finished = run_work(embed_texts, find_progress)
    if finished is None:
        raise stop(f"Stopped. {RESUMES}")
    if 0 < finished.found < finished.total:
        counted = f"{finished.found:,} of {finished.total:,} texts"
        print_message(f"{counted} were already embedded by {label}.")
    loss_note = str(LossWarning(finished.n_rose, finished.total)) if finished.n_rose else ""
    print_notes([f"{label}: {note}" for note in (finished.unread, loss_note) if note])
    if ray_embedding is None:
        return corpus, finished, 0
    corpus, n_missing = ray_embedding.leave_out(store, corpus, label)
    return corpus, finished, n_missing


def _embed_all(
    store: CorpusStore,
    corpus: Corpus,
    specs: Sequence[EmbedderSpec],
    embedders: Sequence[Embedder],
    ray_embedding: RayEmbedding | None = None,
) -> None:
    for spec, embedder in zip(specs, embedders, strict=True):
        label = unique_label(store, spec, specs)
        corpus, last, n_missing = embed_whole_corpus(store, corpus, label, embedder, ray_embedding)
        if ray_embedding is not None:
            options.ray_work().index_corpus(store, corpus, last.embedder)
        outcome = "Already embedded" if last.found == last.total else "Embedded"
        print_message(
            f"{outcome} by {label}: {many(corpus.n_texts - n_missing, 'embedding')} of "
            f"{last.embedder.dim:,} values."
        )


def _load_embedders(specs: Sequence[EmbedderSpec]) -> list[Embedder]:
    return [make_embedder(spec, LOADERS) for spec in specs]
