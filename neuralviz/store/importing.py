"""Vectors that were computed elsewhere, kept as those of a method that is called like their file.

They are kept by text like all others, under an id of their own: the file's name and the hash of
what was read.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.specs import EmbedderSpec, imported_spec
from neuralviz.errors import SettingsError, StoreError, TextError
from neuralviz.store.old_ids import ID_LENGTH
from neuralviz.store.vectors import text_keys
from neuralviz.words import free_name, many

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neuralviz.reading.vectors import ReadVectors
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder, KeptVectors

FILE = "file:"  # how the label of imported vectors begins
VERSION = "neuralviz-imported/1"


def import_vectors(store: CorpusStore, corpus: Corpus, read: ReadVectors) -> KeptEmbedder:
    """Keep the vectors of a file for the texts of a corpus.

    Vectors with texts beside them go by these, in any order; others by their rows. Of equal texts
    the first vector counts.

    Args:
        store: that keeps the corpus.
        corpus: every text of which must have a vector.
        read: the file.

    Raises:
        TextError: a text has no vector, or there is not one row a text.
        StoreError: they cannot be kept.
    """
    keys = store.keys(corpus)
    if read.texts is None:
        if len(read.vectors) != corpus.n_texts:
            raise TextError(
                f"{read.name} has {many(len(read.vectors), 'row')}, but “{corpus.name}” has "
                f"{many(corpus.n_texts, 'text')}. It needs one row per text, in the same order."
            )
        of_rows = keys
    else:
        of_rows = text_keys(read.texts)
    different, first = np.unique(of_rows, return_index=True)
    wanted = np.isin(different, keys)
    n_missing = len(np.unique(keys)) - int(wanted.sum())
    if n_missing:
        raise TextError(
            f"{read.name} has no vector for {n_missing:,} of the {corpus.n_distinct:,} different "
            f"texts of “{corpus.name}”. Its texts must be those of the corpus."
        )
    return _keep(store.vectors, read.name, different[wanted], read.vectors[first[wanted]])


def import_by_text(vectors: KeptVectors, read: ReadVectors) -> EmbedderSpec:
    """Keep the vectors of a file by the texts beside them. Of equal texts the first one counts.

    Args:
        vectors: where they are kept.
        read: the file.

    Raises:
        TextError: there are no texts beside the vectors.
        StoreError: they cannot be kept.
    """
    if read.texts is None:
        raise TextError(
            f"{read.name} has vectors without texts, so nobody knows which is whose. Use a Parquet "
            "file with the columns “text” and “vector”."
        )
    different, first = np.unique(text_keys(read.texts), return_index=True)
    kept = _keep(vectors, read.name, different, read.vectors[first])
    return EmbedderSpec.from_json(kept.spec)


def _keep(
    vectors: KeptVectors, name: str, different: np.ndarray, values: np.ndarray
) -> KeptEmbedder:
    """Keep [text, dim] values under the keys of different texts, as those of a file."""
    digest = hashlib.sha256(different.tobytes() + values.tobytes()).hexdigest()[:ID_LENGTH]
    spec = imported_spec(name, digest)
    kept_id = hashlib.sha256(f"{VERSION}:{spec.to_json()}".encode()).hexdigest()[:ID_LENGTH]
    kept = vectors.restore(kept_id, spec.to_json(), values.shape[1])
    vectors.put(kept, different, values, np.full((len(different), 2), np.nan))
    return kept


def imported_by_label(store: CorpusStore, corpus: Corpus) -> dict[str, EmbedderSpec]:
    """`imported_specs` of a whole corpus.

    Raises:
        StoreError: the store cannot be read.
    """
    return imported_specs(store.vectors, store.keys(corpus))


def imported_specs(vectors: KeptVectors, keys: np.ndarray) -> dict[str, EmbedderSpec]:
    """The imported vectors that all of some texts have, by label, the oldest first.

    Files of one name have a number behind it, from the second on: ``file: rows.npy (2)``.

    Args:
        vectors: where they are kept.
        keys: [text] of `text_keys`.

    Raises:
        StoreError: the store cannot be read.
    """
    found: dict[str, EmbedderSpec] = {}
    for kept in vectors.embedders():
        try:
            spec = EmbedderSpec.from_json(kept.spec)
        except SettingsError:  # of another version, or made by hand
            continue
        if spec.is_imported and vectors.has(kept, keys).all():
            found[free_name(spec.label, found)] = spec
    return found


def imported_for(
    stores: Iterable[KeptVectors], spec: EmbedderSpec, keys: np.ndarray
) -> tuple[KeptVectors, KeptEmbedder]:
    """The first store that has the imported vectors of some texts, and its place for them.

    Args:
        stores: where they may be kept.
        spec: of a file.
        keys: [text] of `text_keys`, no two alike.

    Raises:
        TextError: a text has no vector in any of them.
        StoreError: the vectors were deleted, or a store cannot be read.
    """
    wanted, fewest = spec.to_json(), len(keys) + 1
    for store in stores:
        for kept in store.embedders():
            if kept.spec == wanted:
                fewest = min(fewest, int((~store.has(kept, keys)).sum()))
                if not fewest:
                    return store, kept
    if fewest > len(keys):
        raise StoreError(f"The vectors of “{spec.label}” were deleted. Import the file again.")
    raise TextError(
        f"“{spec.label}” has no vector for {fewest:,} of the {many(len(keys), 'different text')}. "
        "Its texts must be those of the data."
    )


def imported_label(store: CorpusStore, corpus: Corpus, kept: KeptEmbedder) -> str:
    """What imported vectors are called among those of a corpus.

    Raises:
        StoreError: the store cannot be read.
    """
    spec = EmbedderSpec.from_json(kept.spec)
    labels = {one: label for label, one in imported_by_label(store, corpus).items()}
    return labels.get(spec, spec.label)


def imported_embedder(store: CorpusStore, spec: EmbedderSpec) -> KeptEmbedder:
    """Where the vectors of an imported file are kept.

    Raises:
        StoreError: they are not.
    """
    wanted = spec.to_json()
    kept = next((one for one in store.vectors.embedders() if one.spec == wanted), None)
    if kept is None:
        raise StoreError(f"The vectors of “{spec.label}” were deleted. Import the file again.")
    return kept
