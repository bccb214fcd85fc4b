"""Finds saved maps and embeddings for chosen settings, without loading a model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from neuralviz.embedders.making import make_embedder
from neuralviz.embedders.specs import list_models
from neuralviz.errors import NeuralvizError
from neuralviz.maps.kept import KeptMaps
from neuralviz.models.shared import LOADERS, held_model
from neuralviz.models.trained import is_at_hand, trained_encoder
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.vectors import embedder_id

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from neuralviz.jobs.mapping import MapChoice
    from neuralviz.maps.kept import KeptMap
    from neuralviz.models.shared import Loaders
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

HELD: Loaders = {kind: partial(held_model, kind) for kind in LOADERS}


@dataclass(frozen=True)
class Saved:
    """The saved map and embedders for chosen settings.

    Attributes:
        map: the map, if there is one; where no model is in memory to compare with, the last one.
        is_outdated: whether there is only a map by a model that has changed since.
        may_be_outdated: whether the map is by a model of a folder or the Hub, which may have
            changed since: that is not known before it is loaded. Of an encoder that was trained
            here it is known.
        embedders: those whose vectors a map is made of, the oldest first.
    """

    map: KeptMap | None
    is_outdated: bool
    may_be_outdated: bool
    embedders: tuple[KeptEmbedder, ...]


def _is_older(kept: KeptMap | None, since: float) -> bool:
    """Whether a map was made before a time, in seconds since 1970."""
    return kept is not None and datetime.fromisoformat(kept.created).timestamp() < since


def find_saved(corpus: Corpus, choice: MapChoice) -> Saved:
    """The saved map and embedders for a choice of settings."""
    store, spec_json = CorpusStore(), choice.spec.to_json()
    by_name = [embedder for embedder in store.vectors.embedders() if embedder.spec == spec_json]
    kept_maps = KeptMaps(store)
    maps = {embedder: kept_maps.find(corpus, embedder, choice.settings) for embedder in by_name}
    try:
        ids = {embedder_id(make_embedder(choice.spec, HELD))}
    except NeuralvizError:  # the model is not loaded, or the method does not fit it
        models = list_models([choice.spec])
        encoders = [trained_encoder(model.id) for model in models]
        trained = [encoder for encoder in encoders if encoder is not None]
        since = max((encoder.find_last_change() for encoder in trained), default=0.0)
        ids = {embedder.id for embedder in by_name if not _is_older(maps[embedder], since)}
        may_change = not all(is_at_hand(model.id) for model in models)
    else:
        may_change = False
    embedders = tuple(embedder for embedder in by_name if embedder.id in ids)
    newest = next((kept for embedder in reversed(embedders) if (kept := maps[embedder])), None)
    return Saved(
        newest,
        is_outdated=newest is None and any(maps.values()),
        may_be_outdated=newest is not None and may_change,
        embedders=embedders,
    )


def count_embedded(corpus: Corpus, embedders: Sequence[KeptEmbedder]) -> int:
    """How many different texts of a corpus one of these embedders has embedded: the most."""
    store = CorpusStore()
    version = store.vectors.version
    counts = (_count_vectors(store.folder, corpus.id, kept, version(kept)) for kept in embedders)
    return max(counts, default=0)


@st.cache_data(max_entries=64, show_spinner=False)
def _count_vectors(folder: Path, corpus_id: str, embedder: KeptEmbedder, version: int) -> int:
    """How many different texts have a vector; a new ``version`` of the vectors recounts."""
    store = CorpusStore(folder)
    keys = np.unique(store.keys(store.corpus(corpus_id)))
    return int(store.vectors.has_vectors(embedder, keys).sum())
