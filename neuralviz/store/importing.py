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
    from neuralviz.reading.vectors import ReadVectors
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

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
    different, vectors = different[wanted], read.vectors[first[wanted]]
    digest = hashlib.sha256(different.tobytes() + vectors.tobytes()).hexdigest()[:ID_LENGTH]
    spec = imported_spec(read.name, digest)
    kept_id = hashlib.sha256(f"{VERSION}:{spec.to_json()}".encode()).hexdigest()[:ID_LENGTH]
    kept = store.vectors.restore(kept_id, spec.to_json(), vectors.shape[1])
    store.vectors.put(kept, different, vectors, np.full((len(different), 2), np.nan))
    return kept


def imported_by_label(store: CorpusStore, corpus: Corpus) -> dict[str, EmbedderSpec]:
    """The imported vectors that a whole corpus has, by label, the oldest first.

    Files of one name have a number behind it, from the second on: ``file: rows.npy (2)``.

    Raises:
        StoreError: the store cannot be read.
    """
    found: dict[str, EmbedderSpec] = {}
    for kept in store.vectors.embedders():
        try:
            spec = EmbedderSpec.from_json(kept.spec)
        except SettingsError:  # of another version, or made by hand
            continue
        if spec.is_imported and store.vectors.has(kept, store.keys(corpus)).all():
            found[free_name(spec.label, found)] = spec
    return found


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
