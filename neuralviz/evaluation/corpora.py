"""Kept corpora as labelled data: their labels say what is alike, their vectors are used again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from neuralviz.embedders.specs import EmbedderSpec
from neuralviz.errors import SettingsError
from neuralviz.evaluation.data import grouped_data, labelled_data
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.evaluation.data import DataSet
    from neuralviz.store.corpora import Corpus, CorpusStore

CorpusKind = Literal["labels", "groups"]


def corpus_data(
    store: CorpusStore, corpus: Corpus, column: str, kind: CorpusKind, *, max_rows: int
) -> DataSet:
    """The texts of a corpus with a column of labels.

    Args:
        store: that keeps it.
        corpus: any.
        column: of labels; texts without one are left out, with a note.
        kind: ``labels`` for k-NN accuracy, ``groups`` for triplets.
        max_rows: texts behind are left out, with a note.

    Raises:
        StoreError: there is no such column, or the corpus is gone.
        TextError: too few texts have a label.
    """
    values = store.labels(corpus, column)
    if values.dtype == float:
        labels = [f"{value:g}" if np.isfinite(value) else "" for value in values]
    else:
        labels = [str(value).strip() for value in values]
    texts = store.texts(corpus)
    used = [row for row, label in enumerate(labels) if label]
    notes: tuple[str, ...] = ()
    if len(used) < len(labels):
        notes += (f"Skipped {many(len(labels) - len(used), 'text')} without a label.",)
    if len(used) > max_rows:
        notes += (f"Using the first {max_rows:,} of {many(len(used), 'text')}.",)
        used = used[:max_rows]
    make = labelled_data if kind == "labels" else grouped_data
    name = f"{corpus.name}, {column}"
    data = make(name, [texts[row] for row in used], [labels[row] for row in used], notes=notes)
    return replace(data, columns={"label" if kind == "labels" else "group": column})


def kept_specs(store: CorpusStore, corpus: Corpus) -> tuple[EmbedderSpec, ...]:
    """The ways to embed of which every text of a corpus has a vector, each once, the oldest first.

    Raises:
        StoreError: the corpus is gone.
    """
    keys = np.unique(store.keys(corpus))
    specs: dict[EmbedderSpec, None] = {}
    for kept in store.vectors.embedders():
        if kept.spec and store.vectors.has_vectors(kept, keys).all():
            try:
                specs[EmbedderSpec.from_json(kept.spec)] = None
            except SettingsError:  # of a version that had other methods
                continue
    return tuple(specs)
