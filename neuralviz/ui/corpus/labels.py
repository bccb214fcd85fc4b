"""What the maps say of the labels of a corpus: the point of the page, and the figure behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.labels import method_labels
from neuralviz.evaluation.maps_in_words import agreement_point, clusters_point, neighbours_point
from neuralviz.plots.label_accuracy import accuracy_figure
from neuralviz.plots.standalone import About
from neuralviz.ui.corpus.colours import K, common_share
from neuralviz.ui.corpus.kept import other_maps
from neuralviz.ui.figures import show_figure
from neuralviz.ui.page import plain
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from neuralviz.ui.corpus.kept import OpenCorpus, OpenMap

MOST_LABELS = 4  # columns of labels in one figure
IN_SENTENCE = 2  # columns of labels in the point
HEIGHT = 340  # px


def point_of(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> str:
    """What the maps show, in one or two sentences of markdown.

    Of a corpus with labels, how often neighbours share them; of one without, how far two maps
    agree, or the themes of one.
    """
    methods = _different(maps)
    names = [plain(one.label) for one in methods]
    labels = dict(list(corpus.categories.items())[:IN_SENTENCE])
    if labels:
        k = _voters(labels.values())
        hits = {plain(n): [one.hits(n, v, k) for one in methods] for n, v in labels.items()}
        first = methods[0]
        baselines = {plain(n): first.accuracy(n, v, k).baseline for n, v in labels.items()}
        return neighbours_point(names, hits, baselines, k)
    if len(methods) > 1:
        return agreement_point(names, float(common_share(maps).mean()), K)
    return themes_of(maps[0])


def _voters(columns: Iterable[np.ndarray]) -> int:
    """Neighbours that vote: ten, or as many as a label in the middle has other texts.

    Of four texts with a label, three can vote for it: ten neighbours would always outvote them.
    """
    sizes = [np.unique(column[column != ""], return_counts=True)[1] for column in columns]
    return max(1, min(K, *(int(np.median(of)) - 1 for of in sizes if len(of)), K))


def themes_of(shown: OpenMap) -> str:
    """The themes of a corpus by one map, as a sentence of markdown."""
    names = [plain(name) for name, _ in shown.clusters_named]
    sizes = shown.clusters.sizes.tolist()
    return clusters_point(plain(shown.label), names, sizes, shown.corpus.n_texts)


def _different(maps: Sequence[OpenMap]) -> list[OpenMap]:
    """One map of each method: two maps of the same vectors have the same neighbours."""
    return list({one.kept.embedder: one for one in maps}.values())


def show_accuracy(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> None:
    """How often neighbours share labels: all methods on one scale, those of the maps first."""
    names = list(corpus.categories)[:MOST_LABELS]
    if not names:
        return
    shown = _different(maps)
    methods = [*shown, *other_maps(corpus.corpus, shown)]
    labels = method_labels([one.spec for one in methods])
    k = _voters(corpus.categories[name] for name in names)
    found = {
        name: [one.accuracy(name, corpus.categories[name], k) for one in methods] for name in names
    }
    bars = {name: np.array([(r.accuracy, *r.interval) for r in found[name]]) for name in names}
    baselines = {name: found[name][0].baseline for name in names}
    guessed = " and ".join(f"{baselines[name]:.0%} for {plain(name)}" for name in names)
    title = f"{k}-NN accuracy"
    with slide("accuracy"):
        show_point(
            f"How often a text's {many(k, 'nearest neighbour')} point to its own label. Always "
            f"saying the most frequent label would reach {guessed}.",
            key="accuracy",
        )
        show_figure(
            accuracy_figure(labels, bars, baselines, title=title),
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
            "higher is better. All methods with a map of this corpus are shown, those of the maps "
            "above first."
        )
