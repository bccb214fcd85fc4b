"""What the commands for kept corpora share: finding one, its embedders, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from neuralviz.cli.common import INTERRUPTED, check_interrupted, say
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.vectors import options_option, progress_bars, warn_of_time
from neuralviz.embedders import FOR_CORPORA, EmbedderSpec, embedder_specs, split_options
from neuralviz.embedders.labels import labels_by_spec, method_labels
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
    """The store of this user's corpora; old files in it are deleted meanwhile.

    Raises:
        StoreError: as of `CorpusStore`.
    """
    store = CorpusStore()
    tidy_soon(store.folder)
    return store


def find_corpus(store: CorpusStore, name_or_id: str) -> Corpus:
    """A corpus by its name or id; the examples of the pages are there, also before the first visit.

    Raises:
        StoreError: there is none; when a file is called so, the message says how to keep it.
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


def kept_embedder(store: CorpusStore, corpus: Corpus, spec: EmbedderSpec) -> KeptEmbedder:
    """The kept embedder of a spec, of which every text of a corpus has a vector.

    Raises:
        NeuralvizError: a text has none.
    """

    if spec.is_imported:
        return find_imported([store.vectors], spec, store.keys(corpus))[1]
    (embedder,) = load_embedders([spec])
    kept = store.vectors.find_embedder(embedder)
    if kept is None or not store.vectors.has_vectors(kept, store.keys(corpus)).all():
        labels = embedder_labels(store.vectors.embedders())
        complete = [
            entry["method"]
            for entry in embedded_by(store, corpus, labels)
            if entry["embedded"] == corpus.n_texts
        ]
        raise NeuralvizError(
            (
                f"“{corpus.name}” has no embeddings by “{label_in(store, spec)}” with these "
                "options. Compute them with `neuralviz corpus embed`."
            )
            + f" Available: {'; '.join(complete)}. Choose one with --method and --option."
            * bool(complete)
        )
    return kept


def warn_of_missing(store: CorpusStore, corpus: Corpus, embedders: Sequence[Embedder]) -> None:
    """Say so when learning the texts that have no vector yet will take minutes."""

    keys = store.keys(corpus)
    lacking, missing = _lacking(store, keys, embedders)
    if lacking:
        warn_of_time(lacking, store.texts(corpus, np.flatnonzero(missing)))


def is_embedded(store: CorpusStore, corpus: Corpus, embedders: Sequence[Embedder]) -> bool:
    """Whether every text has a vector of every embedder."""
    return not _lacking(store, store.keys(corpus), embedders)[0]


def _lacking(
    store: CorpusStore, keys: np.ndarray, embedders: Sequence[Embedder]
) -> tuple[list[Embedder], np.ndarray]:
    """The embedders that have no vectors of some texts, and [text] whether one of them has none."""
    lacking, missing = [], np.zeros(len(keys), dtype=bool)
    for embedder in embedders:
        for part in embedder.parts:
            kept = store.vectors.find_embedder(part)
            has = np.zeros_like(missing) if kept is None else store.vectors.has_vectors(kept, keys)
            if not has.all():
                lacking.append(part)
                missing |= ~has
    return lacking, missing


def embed_kept(
    store: CorpusStore,
    corpus: Corpus,
    label: str,
    embedder: Embedder,
    embed: EmbedCorpus = embed_corpus,
) -> EmbeddingEvent:
    """Embed what has no vector yet, with a bar; the last event, which is complete.

    Args:
        store, corpus, embedder: what is embedded, and how.
        label: of the embedder.
        embed: does it, as `embed_corpus`.

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
                        say(f"{n_found} are already embedded by {label}.")
                elif progress.done > progress.found:
                    bars.update(task, description=label)
                bars.update(task, completed=progress.done, total=progress.total)
            check_interrupted()
    except KeyboardInterrupt as stop:
        say("Stopped. Finished work is saved; run the same command again to resume.")
        raise typer.Exit(INTERRUPTED) from stop
    assert progress is not None
    if progress.unread:
        say(f"{label}: {progress.unread}")
    if progress.n_rose:
        say(f"{label}: {LossWarning(progress.n_rose, progress.total)}")
    return progress


def embed_wholly(
    store: CorpusStore,
    corpus: Corpus,
    label: str,
    embedder: Embedder,
    on_ray: RayEmbedding | None = None,
) -> tuple[Corpus, EmbeddingEvent, int]:
    """`embed_kept`; on a cluster, texts that cannot be embedded are skipped.

    Returns:
        The corpus as it is now, the last event, and how many texts have no embedding.

    Raises:
        As of `embed_kept`.
    """
    last = embed_kept(store, corpus, label, embedder, on_ray or embed_corpus)
    without = 0
    if on_ray is not None:
        corpus, without = on_ray.leave_out(store, corpus, label)
    return corpus, last, without


def corpus_spec(
    store: CorpusStore,
    corpus: Corpus,
    method: str,
    option: Sequence[str] | None,
    model: str | None,
) -> EmbedderSpec:
    """How a kept corpus is embedded, as `FOR_CORPORA` has it; or vectors of a file.

    Raises:
        NeuralvizError: nothing of this name was imported for the corpus.
        SettingsError: the method or an option of it makes no sense.
    """
    if method.startswith(FILE):
        imported = imported_by_label(store, corpus)
        if method not in imported:
            known = "; ".join(imported) or "none yet"
            raise NeuralvizError(
                f"No embeddings “{method[:80]}” were imported for “{corpus.name}”. Imported: "
                f"{known}. Import a file with `neuralviz corpus import`."
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


def label_in(store: CorpusStore, spec: EmbedderSpec, beside: Sequence[EmbedderSpec] = ()) -> str:
    """The label of a way to embed, told apart from all that the store has vectors of.

    Args:
        store: any.
        spec: any.
        beside: other ways that it is told apart from.
    """
    known = _kept_specs(store.vectors.embedders()).values()
    return labels_by_spec([*known, *beside, spec])[spec]


def embedder_labels(embedders: Sequence[KeptEmbedder]) -> dict[str, str]:
    """By id, a name for each embedder, no two alike; the id of one that is not known here."""

    specs = _kept_specs(embedders)
    names = dict(zip(specs, method_labels(list(specs.values())), strict=True))
    return {kept.id: names.get(kept.id, kept.id) for kept in embedders}


def _kept_specs(embedders: Sequence[KeptEmbedder]) -> dict[str, EmbedderSpec]:
    """By id, how to make each embedder again; those that are not known here are left out."""
    specs: dict[str, EmbedderSpec] = {}
    for kept in embedders:
        with suppress(SettingsError):
            specs[kept.id] = EmbedderSpec.from_json(kept.spec)
    return specs


def embedded_by(
    store: CorpusStore, corpus: Corpus, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What a corpus has vectors of: method, number of texts, length of the vectors."""
    keys = store.keys(corpus)
    found = []
    for kept in store.vectors.embedders():
        embedded = int(store.vectors.has_vectors(kept, keys).sum())
        if embedded:
            label = labels.get(kept.id, kept.id)
            found.append({"method": label, "embedded": embedded, "dim": kept.dim})
    return found
