"""Shared by the commands for saved corpora: find a corpus, its embedders and missing vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from neuralviz.cli.common import INTERRUPTED, check_interrupted, print_message
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.vectors import options_option, progress_bars, warn_of_time
from neuralviz.embedders import FOR_CORPORA, EmbedderSpec, embedder_specs, split_options
from neuralviz.embedders.specs import labels_by_spec, method_labels
from neuralviz.errors import LossWarning, NeuralvizError, SettingsError, StoreError
from neuralviz.maps import example as topics
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.database import tidy_soon
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.importing import FILE, find_imported, imported_by_label
from neuralviz.training import example as textbooks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.cli.ray_work import RayEmbedding
    from neuralviz.embedders import Embedder
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.embedding import EmbeddingEvent
    from neuralviz.store.vectors import KeptEmbedder

_EXAMPLES = {
    topics.NAME: topics.add_example,
    textbooks.NAME: textbooks.add_textbooks,
}
EmbedCorpus = Callable[
    ["CorpusStore", "Corpus", "Embedder"], Generator["EmbeddingEvent", None, object]
]
CorpusArgument = Annotated[str, typer.Argument(help="Name or ID of a saved corpus.")]
OptionsOption = Annotated[
    list[str] | None,
    options_option(FOR_CORPORA),
]


def open_store() -> CorpusStore:
    """Open the store of this user's corpora; old files in it are deleted in the background.

    Raises:
        StoreError: as of `CorpusStore`.
    """
    store = CorpusStore()
    tidy_soon(store.folder)
    return store


def find_corpus(store: CorpusStore, name_or_id: str) -> Corpus:
    """Find a corpus by its name or id; an example of the pages is added if it is missing.

    Raises:
        StoreError: no corpus has the name; if a file has it, the message says how to add it.
    """
    try:
        return store.corpus(name_or_id)
    except StoreError as error:
        if name_or_id in _EXAMPLES:
            return _EXAMPLES[name_or_id](store)
        if not os.path.exists(name_or_id):  # noqa: PTH110  Path.exists raises on long names
            raise
        raise StoreError(
            f"{error} {name_or_id} is a file or folder; add it first with `neuralviz corpus add`."
        ) from error


def find_embedder(store: CorpusStore, corpus: Corpus, spec: EmbedderSpec) -> KeptEmbedder:
    """The stored embedder of a spec that has a vector of every text of a corpus.

    Raises:
        NeuralvizError: a text has no vector.
    """

    if spec.is_imported:
        return find_imported([store.vectors], spec, store.keys(corpus))[1]
    (embedder,) = load_embedders([spec])
    kept = store.vectors.find_embedder(embedder)
    if kept is None or not store.vectors.has_vectors(kept, store.keys(corpus)).all():
        labels = embedder_labels(store.vectors.embedders())
        complete = [
            entry["method"]
            for entry in list_embeddings(store, corpus, labels)
            if entry["embedded"] == corpus.n_texts
        ]
        raise NeuralvizError(
            (
                f"“{corpus.name}” has no embeddings by “{unique_label(store, spec)}” with these "
                "options. Compute them with `neuralviz corpus embed`."
            )
            + f" Available: {'; '.join(complete)}. Choose one with --method and --option."
            * bool(complete)
        )
    return kept


def warn_of_missing(store: CorpusStore, corpus: Corpus, embedders: Sequence[Embedder]) -> None:
    """Warn if micro-tuning on the texts without a vector will take minutes."""

    keys = store.keys(corpus)
    lacking, missing = _find_missing(store, keys, embedders)
    if lacking:
        warn_of_time(lacking, store.texts(corpus, np.flatnonzero(missing)))


def is_embedded(store: CorpusStore, corpus: Corpus, embedders: Sequence[Embedder]) -> bool:
    """Whether every text has a vector of every embedder."""
    return not _find_missing(store, store.keys(corpus), embedders)[0]


def _find_missing(
    store: CorpusStore, keys: np.ndarray, embedders: Sequence[Embedder]
) -> tuple[list[Embedder], np.ndarray]:
    """The embedders that lack vectors, and [text] whether any of them lacks the text's."""
    lacking, missing = [], np.zeros(len(keys), dtype=bool)
    for embedder in embedders:
        for part in embedder.parts:
            kept = store.vectors.find_embedder(part)
            has_vector = (
                np.zeros_like(missing) if kept is None else store.vectors.has_vectors(kept, keys)
            )
            if not has_vector.all():
                lacking.append(part)
                missing |= ~has_vector
    return lacking, missing


def embed_with_progress(
    store: CorpusStore,
    corpus: Corpus,
    label: str,
    embedder: Embedder,
    embed: EmbedCorpus = embed_corpus,
) -> EmbeddingEvent:
    """Embed the texts without a vector, with a progress bar; returns the last event.

    Args:
        store, corpus, embedder: what is embedded, and how.
        label: of the embedder.
        embed: embeds, as `embed_corpus` does.

    Raises:
        typer.Exit: Ctrl-C was pressed; what was finished is kept.
    """

    progress = None
    try:
        with progress_bars() as bars, closing(embed(store, corpus, embedder)) as run:
            task = None
            for progress in run:
                check_interrupted()
                if task is None:
                    task = bars.add_task(f"{label} (starting)", total=progress.total)
                    if 0 < progress.found < progress.total:
                        n_found = f"{progress.found:,} of {progress.total:,} texts"
                        print_message(f"{n_found} are already embedded by {label}.")
                elif progress.done > progress.found:
                    bars.update(task, description=label)
                bars.update(task, completed=progress.done, total=progress.total)
            check_interrupted()
    except KeyboardInterrupt as stop:
        print_message("Stopped. Finished work is saved; run the same command again to resume.")
        raise typer.Exit(INTERRUPTED) from stop
    assert progress is not None
    if progress.unread:
        print_message(f"{label}: {progress.unread}")
    if progress.n_rose:
        print_message(f"{label}: {LossWarning(progress.n_rose, progress.total)}")
    return progress


def embed_whole_corpus(
    store: CorpusStore,
    corpus: Corpus,
    label: str,
    embedder: Embedder,
    ray_embedding: RayEmbedding | None = None,
) -> tuple[Corpus, EmbeddingEvent, int]:
    """`embed_with_progress`; on a cluster, texts that cannot be embedded are skipped.

    Returns:
        The corpus as it is now, the last event, and how many texts have no embedding.

    Raises:
        As of `embed_with_progress`.
    """
    last = embed_with_progress(store, corpus, label, embedder, ray_embedding or embed_corpus)
    n_missing = 0
    if ray_embedding is not None:
        corpus, n_missing = ray_embedding.leave_out(store, corpus, label)
    return corpus, last, n_missing


def corpus_spec(
    store: CorpusStore,
    corpus: Corpus,
    method: str,
    option: Sequence[str] | None,
    model: str | None,
) -> EmbedderSpec:
    """The spec of a method, with the defaults of `FOR_CORPORA`, or of imported vectors.

    Raises:
        NeuralvizError: no vectors of this name were imported for the corpus.
        SettingsError: the method or one of its options is not valid.
    """
    if method.startswith(FILE):
        imported = imported_by_label(store, corpus)
        if method not in imported:
            imported_labels = "; ".join(imported) or "none yet"
            raise NeuralvizError(
                f"No embeddings “{method[:80]}” were imported for “{corpus.name}”. Imported: "
                f"{imported_labels}. Import a file with `neuralviz corpus import`."
            )
        if option or model:
            raise NeuralvizError("--option and --model do not apply to imported embeddings.")
        return imported[method]
    (spec,) = corpus_specs([method], option, model)
    return spec


def corpus_specs(
    methods: Sequence[str] | None, option: Sequence[str] | None, model: str | None
) -> tuple[EmbedderSpec, ...]:
    typed = split_options(option or [])
    return embedder_specs(methods or ["mean"], typed, model_id=model, defaults=FOR_CORPORA)


def unique_label(
    store: CorpusStore, spec: EmbedderSpec, other_specs: Sequence[EmbedderSpec] = ()
) -> str:
    """The label of a spec, different from the labels of all embedders in the store.

    Args:
        store: its embedders are compared with.
        spec: gets the label.
        other_specs: further specs whose labels must differ.
    """
    saved_specs = _specs_by_id(store.vectors.embedders()).values()
    return labels_by_spec([*saved_specs, *other_specs, spec])[spec]


def embedder_labels(embedders: Sequence[KeptEmbedder]) -> dict[str, str]:
    """By id, a distinct label of each embedder; its id where this version cannot make it."""

    specs = _specs_by_id(embedders)
    names = dict(zip(specs, method_labels(list(specs.values())), strict=True))
    return {kept.id: names.get(kept.id, kept.id) for kept in embedders}


def _specs_by_id(embedders: Sequence[KeptEmbedder]) -> dict[str, EmbedderSpec]:
    """By id, the spec of each embedder that this version can make."""
    specs: dict[str, EmbedderSpec] = {}
    for kept in embedders:
        with suppress(SettingsError):
            specs[kept.id] = EmbedderSpec.from_json(kept.spec)
    return specs


def list_embeddings(
    store: CorpusStore, corpus: Corpus, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The embeddings of a corpus: method, number of texts, length of the vectors."""
    keys = store.keys(corpus)
    entries = []
    for kept in store.vectors.embedders():
        embedded = int(store.vectors.has_vectors(kept, keys).sum())
        if embedded:
            label = labels.get(kept.id, kept.id)
            entries.append({"method": label, "embedded": embedded, "dim": kept.dim})
    return entries
