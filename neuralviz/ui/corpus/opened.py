"""Saved corpora and maps in the server's memory, shared by all sessions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import streamlit as st

from neuralviz.embedders.specs import labels_by_spec
from neuralviz.errors import NeuralvizError
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.opened import OpenCorpus, OpenMap
from neuralviz.maps.projection import is_large
from neuralviz.store.corpora import Corpus, CorpusStore


@st.cache_resource(max_entries=4, show_spinner=False)
def _open_corpus(folder: Path, corpus_id: str) -> OpenCorpus:
    store = CorpusStore(folder)
    return OpenCorpus(store, store.corpus(corpus_id))


@st.cache_resource(max_entries=8, show_spinner=False)
def _open_map(folder: Path, corpus_id: str, map_id: str) -> OpenMap:
    corpus = _open_corpus(folder, corpus_id)
    without_texts = OpenCorpus(corpus.store, corpus.corpus)  # `open_maps` puts the corpus in
    opened = OpenMap(without_texts, KeptMaps(corpus.store).by_id(corpus.corpus, map_id))
    _ = opened.points  # read now, before anything deletes the map
    return opened


def open_corpus(corpus: Corpus) -> OpenCorpus:
    opened = _open_corpus(CorpusStore().folder, corpus.id)
    return replace(opened, corpus=corpus)  # it may have another name now


def open_maps(corpus: Corpus, kept: Sequence[KeptMap]) -> list[OpenMap]:
    """Open saved maps and give each method its own name; raises StoreError where one is gone."""
    opened = open_corpus(corpus)
    maps = [_open_map(opened.store.folder, corpus.id, kept_map.id) for kept_map in kept]
    labels = labels_by_spec(saved.spec for saved in maps)
    return [  # with the names that clusters have now
        replace(saved, corpus=opened, kept=kept_map, label=labels[saved.spec])
        for saved, kept_map in zip(maps, kept, strict=True)
    ]


def open_ahead() -> None:
    """Read the newest map of the newest large corpus, so that its first visitor need not wait."""
    with suppress(NeuralvizError):  # the page shows the error
        for corpus in CorpusStore().corpora():
            kept = KeptMaps(CorpusStore()).list_maps(corpus) if is_large(corpus.n_texts) else ()
            if kept:
                (newest,) = open_maps(corpus, [max(kept, key=lambda saved: saved.created)])
                for name in newest.corpus.label_names[:1]:  # which colour it at first
                    newest.corpus.codes(name)
                if newest.coordinates.shape[1] == 2:
                    _ = newest.plane
                return
