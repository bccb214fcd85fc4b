"""The headline of the corpus map: what was found, or what the colours of the first map mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from neuralviz.headlines import corpus as headlines
from neuralviz.headlines import write_values
from neuralviz.maps.clusters import SMALLEST_CLUSTER, UNNAMED
from neuralviz.maps.neighbours import suggest_k
from neuralviz.maps.opened import OpenCorpus, OpenMap
from neuralviz.maps.trends import mean_by_cluster
from neuralviz.plots.corpus_map import CLUSTERS
from neuralviz.plots.theme import shorten
from neuralviz.reading.dates import write_day
from neuralviz.ui.corpus.search import SENTENCE, MapView, find_query, find_samples, name_methods
from neuralviz.ui.corpus.show import (
    COMMON,
    LOSSES,
    Accuracy,
    describe_origin,
    describe_themes,
    find_colour,
    score_label,
    share_neighbours,
)
from neuralviz.ui.page import plain
from neuralviz.words import many, number

QUOTED = 60  # characters of a user's words in the headline
LABEL_LENGTH = 20  # characters of a label's name in the title of a map


def describe_view(view: MapView) -> str:
    """The headline: the answer to a search, else what the colours of the first map mean."""
    maps = zip(view.maps, view.colours, strict=True)
    return _describe_search(view) or headlines.join_methods(
        _describe_colour(view, *pair) for pair in maps
    )


def _describe_colour(view: MapView, open_map: OpenMap, option: str) -> str:
    kind, _, name = option.partition(":")
    if kind == CLUSTERS or find_samples(view.methods) is None:
        return describe_themes(open_map)
    sentence = ""
    if kind == "label" and _is_scale(view.corpus, name):
        sentence = _describe_numbers(view, open_map, option)
    if kind == "label":
        sentence = sentence or _describe_label(view, name)
    elif kind != COMMON:
        sentence = _describe_numbers(view, open_map, option)
    return sentence or _describe_agreement(view) or describe_themes(open_map)


def _is_scale(corpus: OpenCorpus, name: str) -> bool:
    """Whether labels are numbers that have an order, such as ratings from 1 to 5."""
    return name in corpus.number_names and len(corpus.sizes(name)) > 2


# --- after a search ------------------------------------------------------------------------------


def _describe_search(view: MapView) -> str:
    if st.session_state.get(SENTENCE):
        return _describe_sentence(view, st.session_state[SENTENCE])
    query = find_query()
    return _describe_words(view, query) if query else ""


def _describe_sentence(view: MapView, sentence: str) -> str:
    """Near what the searched sentence lands, by each method that has placed it."""
    corpus, placed = view.corpus, view.placed
    maps = [open_map for open_map in view.maps if open_map.kept.id in placed]
    rows = [placed[open_map.kept.id].near.indices[0] for open_map in maps]
    parts = (colour.partition(":") for colour in view.colours)
    coloured = [name for kind, _, name in parts if kind == "label"]
    name = next(iter([*coloured, *corpus.label_names]), "")
    labels: list[Sequence[str]] = [()] * len(rows)
    sizes = corpus.sizes(name) if name else {}
    if name:
        k = suggest_k(list(sizes.values()))
        labels = [corpus.labels_at(name, near[:k]).tolist() for near in rows]
    texts = [_quote(corpus.texts_at(near[:1])[0]) for near in rows]
    return headlines.describe_landing(
        _quote(sentence), name_methods(maps), labels, _quote(name), texts, sizes, _quote
    )


def _describe_words(view: MapView, query: str) -> str:
    """How many texts contain the words, and in which cluster of the first map most of them are."""
    first, within = view.maps[0], view.within
    chosen = np.zeros(view.corpus.n_texts, bool) if view.selection is None else view.selection.mask
    searched = np.ones_like(chosen) if within is None else within
    labels, n = first.clusters.labels, first.clusters.n + 1  # the last for those in none
    hits, sizes = (np.bincount(labels[mask] % n, minlength=n) for mask in (chosen, searched))
    clusters = [
        (_quote(name), n_found, size)
        for name, n_found, size in zip(
            first.kept.cluster_names, hits.tolist(), sizes.tolist(), strict=False
        )
        if name != UNNAMED
    ]
    n_found, n_searched = int(chosen.sum()), int(searched.sum())
    return headlines.describe_matches(
        plain(query), n_found, n_searched, clusters, view.first_method
    )


# --- what colours mean ---------------------------------------------------------------------------


def _describe_label(view: MapView, name: str) -> str:
    """How often the nearest texts predict a label; empty for too few labels."""
    if (scores := score_label(view.methods, name)) is None:
        return ""
    methods, origin = name_methods(view.methods), describe_origin(view.corpus)
    return headlines.describe_label(
        methods, _quote(name), scores.hits, scores.baseline, scores.k, origin
    )


def note_accuracy(view: MapView) -> Accuracy:
    """What the maps show of a headline on a label."""
    kind, _, name = view.colours[0].partition(":")
    is_other = kind != "label" or _is_scale(view.corpus, name) or len(set(view.colours)) > 1
    is_other = is_other or view.selection is not None or bool(_describe_search(view))
    if is_other or (scores := score_label(view.methods, name)) is None:
        return Accuracy()
    shares = write_values([float(right.mean()) for right in scores.hits], is_share=True)
    notes = [f": {shorten(name, LABEL_LENGTH)} right for {share}" for share in shares]
    labelled = np.flatnonzero(view.corpus.codes(name)[0] >= 0)
    is_whole = len(labelled) == len(scores.hits[0])  # a sample of a large corpus has no crosses
    wrong = [labelled[~right] if is_whole else labelled[:0] for right in scores.hits]
    ids = [open_map.embedder.id for open_map in view.methods]
    label = _quote(name) if is_whole else ""
    return Accuracy(label, dict(zip(ids, notes, strict=True)), dict(zip(ids, wrong, strict=True)))


def _describe_numbers(view: MapView, coloured: OpenMap, option: str) -> str:
    """Whether near texts have similar numbers, those of a map's colours; empty for too few."""
    colour, methods = find_colour(view, option, coloured), [coloured]
    kind, _, name = option.partition(":")
    if kind not in LOSSES:  # the same for all maps
        coloured = view.maps[view.colours.index(option)]
        methods = sorted(view.methods, key=lambda open_map: open_map.embedder != coloured.embedder)
    numbers = view.corpus.numbers(name) if kind in ("number", "label") else colour.values
    assert numbers is not None
    trends = [open_map.trend(option, numbers) for open_map in methods]
    decided = [
        (method, trend.correlation)
        for method, trend in zip(name_methods(methods), trends, strict=True)
        if trend is not None and trend.is_decided
    ]
    is_date = name in view.corpus.date_names
    is_decided = trends[0] is not None and trends[0].is_decided
    ends = _find_ends(coloured, numbers, is_date=is_date) if is_decided else []
    n_texts = max((trend.n_texts for trend in trends if trend is not None), default=0)
    extremes = ("latest", "earliest") if is_date else ("highest", "lowest")
    return headlines.describe_trend(_quote(colour.name), decided, ends, n_texts, extremes)


def _find_ends(open_map: OpenMap, numbers: np.ndarray, *, is_date: bool) -> list[tuple[str, str]]:
    """The clusters with the highest and the lowest mean, if they have names, and these means."""
    means = mean_by_cluster(numbers, open_map.clusters.labels, SMALLEST_CLUSTER)
    names = open_map.kept.cluster_names
    ordered = sorted(means, key=means.__getitem__)
    if len(ordered) < 2 or UNNAMED in (names[ordered[0]], names[ordered[-1]]):
        return []
    return [
        (_quote(names[c]), write_day(means[c]) if is_date else number(means[c], ".3g"))
        for c in (ordered[-1], ordered[0])
    ]


def _describe_agreement(view: MapView) -> str:
    shared = share_neighbours(view) if len(view.methods) > 1 else None
    if shared is None:
        return ""
    texts = many(len(shared.rows), "text") + describe_origin(view.corpus)
    return headlines.describe_agreement(
        name_methods(view.methods),
        float(shared.shares.mean()),
        shared.k,
        texts,
        view.corpus.n_texts - 1,
    )


def _quote(text: str) -> str:
    return plain(shorten(text, QUOTED))
