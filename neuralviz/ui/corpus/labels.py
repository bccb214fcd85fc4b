"""What the maps say of the labels of a corpus: the point of the page, and the figure behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.labels import method_labels, spoken
from neuralviz.evaluation.maps_in_words import (
    accuracy_point,
    agreement_point,
    clusters_point,
    neighbours_point,
)
from neuralviz.maps.neighbourhoods import KnnAccuracy, common_neighbours, sampled_right, suggest_k
from neuralviz.maps.shares import wilson_interval
from neuralviz.plots.label_accuracy import accuracy_figure
from neuralviz.plots.standalone import About
from neuralviz.ui.corpus.colours import K, common_share
from neuralviz.ui.corpus.kept import other_maps
from neuralviz.ui.corpus.sampled import samples_of
from neuralviz.ui.figures import show_figure
from neuralviz.ui.page import plain
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.near import SampledNeighbours
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

MOST_LABELS = 4  # columns of labels in one figure
IN_SENTENCE = 2  # columns of labels in the point
FEWEST_LABELLED = 2  # texts of a sample
HEIGHT = 340  # px


def point_of(corpus: OpenCorpus, maps: Sequence[OpenMap], *, is_filtered: bool = False) -> str:
    """What the maps show, in one or two sentences of markdown.

    Of a corpus with labels, how often they can be guessed from neighbours; of one without, how far
    two maps agree, or the themes of one. A filter does not change that: it is of all texts.
    """
    methods = _different(maps)
    names = spoken_labels(methods)
    everything = f"all {many(corpus.corpus.n_texts, 'text')}"
    labels = list(corpus.categories)[:IN_SENTENCE]
    if labels:
        k, hits, baselines = _guessed(corpus, methods, labels)
        if not all((corpus.categories[name] != "").all() for name in labels):
            everything = "all texts with a label"  # the others do not count
        texts = everything if is_filtered else "texts"
        return neighbours_point(names, hits, baselines, k, texts)
    if len(methods) > 1:
        k = min(K, *(one.neighbours.k for one in methods))
        texts = everything if is_filtered else "these texts"
        return agreement_point(names, float(common_share(maps).mean()), k, texts)
    return themes_of(maps[0])


def point_of_sample(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> str:
    """As of `point_of`, of a large corpus: by some of its texts, where their neighbours are known.

    Until then, and where they say nothing, the themes.
    """
    methods = _different(maps)
    found = samples_of(methods)
    if found is None:
        return themes_of(maps[0])
    texts = f"{many(len(found[0].rows), 'text')} drawn at random"
    labels = _labels_of_sample(corpus, found, IN_SENTENCE)
    if labels:
        k, hits, baselines = _guessed_of_sample(corpus, found, labels)
        return neighbours_point(spoken_labels(methods), hits, baselines, k, texts)
    if len(methods) > 1:
        first, second = (one.near for one in found)
        share = float(common_neighbours(first, second, K).mean())
        return agreement_point(spoken_labels(methods), share, min(K, first.k, second.k), texts)
    return themes_of(maps[0])


def _labels_of_sample(
    corpus: OpenCorpus, found: Sequence[SampledNeighbours], most: int
) -> list[str]:
    """The first columns of labels that some of the sample's texts have, up to ``most``."""
    rows = found[0].rows
    return [
        name
        for name in corpus.category_names[:most]
        if (corpus.codes(name)[0][rows] >= 0).sum() >= FEWEST_LABELLED
    ]


def _guessed_of_sample(
    corpus: OpenCorpus, found: Sequence[SampledNeighbours], labels: Sequence[str]
) -> tuple[int, dict[str, list[np.ndarray]], dict[str, float]]:
    """As of `_guessed`, of the texts whose neighbours were found; the baselines are of all."""
    sizes = {name: np.array(list(corpus.sizes(name).values())) for name in labels}
    k = min(suggest_k(sizes.values()), *(one.near.k for one in found))
    hits = {
        plain(name): [sampled_right(one.near, corpus.codes(name)[0], one.rows, k) for one in found]
        for name in labels
    }
    return k, hits, {plain(name): float(of.max() / of.sum()) for name, of in sizes.items()}


def spoken_labels(maps: Sequence[OpenMap]) -> list[str]:
    """What the methods of maps are called in a sentence, as markdown."""
    return [plain(label) for label in spoken(method_labels([one.spec for one in maps]))]


def _guessed(
    corpus: OpenCorpus, methods: Sequence[OpenMap], labels: Sequence[str]
) -> tuple[int, dict[str, list[np.ndarray]], dict[str, float]]:
    """Neighbours that vote; by label, as markdown, what they have right, and its baseline."""
    columns = {name: corpus.categories[name] for name in labels}
    sizes = (list(corpus.sizes(name).values()) for name in labels)
    k = min(suggest_k(sizes), *(one.neighbours.k for one in methods))
    hits = {plain(n): [one.hits(n, of, k) for one in methods] for n, of in columns.items()}
    first = methods[0]
    return k, hits, {plain(n): first.accuracy(n, of, k).baseline for n, of in columns.items()}


def themes_of(shown: OpenMap) -> str:
    """The themes of a corpus by one map, as a sentence of markdown."""
    names = [plain(name) for name, _ in shown.clusters_named]
    sizes = shown.cluster_sizes.tolist()
    (method,) = spoken_labels([shown])
    return clusters_point(method, names, sizes, shown.corpus.n_texts)


def _different(maps: Sequence[OpenMap]) -> list[OpenMap]:
    """One map of each method: two maps of the same vectors have the same neighbours."""
    return list({one.kept.embedder: one for one in maps}.values())


def show_accuracy(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> None:
    """How often neighbours share labels: all methods on one scale, those of the maps first."""
    names = list(corpus.category_names)[:MOST_LABELS]
    if not names:
        return
    methods = _different(maps)
    if corpus.is_large:
        samples = samples_of(methods)
        names = [] if samples is None else _labels_of_sample(corpus, samples, MOST_LABELS)
        if samples is None or not names:
            return
        k, hits, baselines = _guessed_of_sample(corpus, samples, names)
        counted = (
            f"Measured on {many(len(samples[0].rows), 'text')} drawn at random, with approximate "
            "neighbours among all texts. The methods of the maps above are shown."
        )
    else:
        methods += other_maps(corpus.corpus, methods)
        k, hits, baselines = _guessed(corpus, methods, names)
        counted = "All methods with a map of this corpus are shown, those of the maps above first."
    labels = method_labels([one.spec for one in methods])
    if not any(of.any() for by_method in hits.values() for of in by_method):
        st.caption("A text's nearest texts never vote for its own label: every accuracy is 0%.")
        return
    found = {
        name: [_accuracy(right, baselines[plain(name)], k) for right in hits[plain(name)]]
        for name in names
    }
    bars = {name: np.array([(r.accuracy, *r.interval) for r in found[name]]) for name in names}
    title = f"{k}-NN accuracy"
    with slide("accuracy"):
        in_sentence = dict(list(hits.items())[:IN_SENTENCE])
        said = accuracy_point(spoken_labels(methods), in_sentence, baselines, k)
        show_point(said, key="accuracy")
        show_figure(
            accuracy_figure(labels, bars, {n: found[n][0].baseline for n in names}, title=title),
            key="corpus-accuracy",
            numbers=pd.DataFrame(
                {
                    "label": name,
                    "method": method,
                    "accuracy": one.accuracy,
                    "low": one.interval[0],
                    "high": one.interval[1],
                    "k": one.k,
                    "texts": one.n,
                    "majority baseline": one.baseline,
                }
                for name in names
                for method, one in zip(labels, found[name], strict=True)
            ),
            name=f"{corpus.corpus.name} knn-accuracy",
            height=HEIGHT,
            about=About(
                title,
                {
                    "corpus": f"{corpus.corpus.name}, {corpus.corpus.n_texts:,} texts",
                    "methods": "; ".join(labels),
                },
            ),
        )
        st.caption(
            "Share of texts whose label is the most frequent one among their "
            f"{many(k, 'neighbour')} (the text itself does not vote), with 95% intervals; "
            f"higher is better. {counted}"
        )


def _accuracy(right: np.ndarray, baseline: float, k: int) -> KnnAccuracy:
    """[text] what neighbours have right, as a share."""
    n, n_right = len(right), int(right.sum())
    return KnnAccuracy(n_right / n, k, n, baseline, wilson_interval(n_right, n))
