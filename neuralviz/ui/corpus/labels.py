"""What the maps show of a corpus's labels: the sentence of the page, and its figure."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.specs import method_labels, short_labels
from neuralviz.headlines.corpus import describe_agreement, describe_clusters, describe_labels
from neuralviz.maps.neighbourhoods import KnnAccuracy, common_neighbours, sampled_right, suggest_k
from neuralviz.maps.shares import wilson_interval
from neuralviz.plots.evaluation import label_accuracy_figure
from neuralviz.plots.standalone import About
from neuralviz.ui.corpus.colours import K, common_share
from neuralviz.ui.corpus.kept import other_maps
from neuralviz.ui.corpus.samples import known_samples
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain
from neuralviz.ui.stage import show_only_on_stage, slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.mapping import SampledNeighbours
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

MOST_LABELS = 4  # columns of labels in one figure
IN_SENTENCE = 2  # columns of labels in the headline
FEWEST_LABELLED = 2  # texts of a sample
HEIGHT = 340  # px


def describe_maps(corpus: OpenCorpus, maps: Sequence[OpenMap], *, is_filtered: bool = False) -> str:
    """What the maps show, in one or two sentences of markdown.

    With labels: how often neighbours guess them. Without: how far two maps agree, or the themes of
    one map. All texts count, whatever the filter.
    """
    methods = _distinct_methods(maps)
    names = spoken_labels(methods)
    everything = f"all {many(corpus.corpus.n_texts, 'text')}"
    labels = list(corpus.categories)[:IN_SENTENCE]
    if labels:
        k, hits, baselines = _score_labels(corpus, methods, labels)
        if not all((corpus.categories[name] != "").all() for name in labels):
            everything = "all texts with a label"  # the others do not count
        texts = everything if is_filtered else ""
        return describe_labels(names, hits, baselines, k, texts)
    if len(methods) > 1:
        k = min(K, *(open_map.neighbours.k for open_map in methods))
        texts = everything if is_filtered else "these texts"
        return describe_agreement(names, float(common_share(maps).mean()), k, texts)
    return describe_themes(maps[0])


def describe_sample(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> str:
    """What the maps of a large corpus show, measured on a sample of its texts.

    Describes the themes until the neighbours of the sample are known, and where they say nothing.
    """
    methods = _distinct_methods(maps)
    samples = known_samples(methods)
    if samples is None:
        return describe_themes(maps[0])
    labels = _sample_labels(corpus, samples, IN_SENTENCE)
    if labels:
        k, hits, baselines = _score_sample_labels(corpus, samples, labels)
        methods_spoken = spoken_labels(methods)
        return describe_labels(methods_spoken, hits, baselines, k, origin=" drawn at random")
    if len(methods) > 1:
        texts = f"{many(len(samples[0].rows), 'text')} drawn at random"
        first, second = (sample.near for sample in samples)
        share = float(common_neighbours(first, second, K).mean())
        return describe_agreement(spoken_labels(methods), share, min(K, first.k, second.k), texts)
    return describe_themes(maps[0])


def _sample_labels(
    corpus: OpenCorpus, samples: Sequence[SampledNeighbours], limit: int
) -> list[str]:
    """The first ``limit`` columns of labels that at least two texts of the sample have."""
    rows = samples[0].rows
    return [
        name
        for name in corpus.category_names[:limit]
        if (corpus.codes(name)[0][rows] >= 0).sum() >= FEWEST_LABELLED
    ]


def _score_sample_labels(
    corpus: OpenCorpus, samples: Sequence[SampledNeighbours], labels: Sequence[str]
) -> tuple[int, dict[str, list[np.ndarray]], dict[str, float]]:
    """`_score_labels` for a sample of the texts; the baselines are those of all texts."""
    sizes = {name: np.array(list(corpus.sizes(name).values())) for name in labels}
    k = min(suggest_k(sizes.values()), *(sample.near.k for sample in samples))
    hits = {
        plain(name): [
            sampled_right(sample.near, corpus.codes(name)[0], sample.rows, k) for sample in samples
        ]
        for name in labels
    }
    baselines = {plain(name): float(n.max() / n.sum()) for name, n in sizes.items()}
    return k, hits, baselines


def spoken_labels(maps: Sequence[OpenMap]) -> list[str]:
    """The names of the maps' methods as a sentence uses them, as markdown."""
    return [
        plain(label) for label in short_labels(method_labels([open_map.spec for open_map in maps]))
    ]


def _score_labels(
    corpus: OpenCorpus, methods: Sequence[OpenMap], labels: Sequence[str]
) -> tuple[int, dict[str, list[np.ndarray]], dict[str, float]]:
    """How many neighbours vote; by label, in markdown: each method's hits, and the baseline."""
    columns = {name: corpus.categories[name] for name in labels}
    sizes = (list(corpus.sizes(name).values()) for name in labels)
    k = min(suggest_k(sizes), *(open_map.neighbours.k for open_map in methods))
    hits = {
        plain(n): [open_map.hits(n, values, k) for open_map in methods]
        for n, values in columns.items()
    }
    first = methods[0]
    baselines = {
        plain(name): first.accuracy(name, values, k).baseline for name, values in columns.items()
    }
    return k, hits, baselines


def describe_themes(open_map: OpenMap) -> str:
    """The themes of a corpus by one map, as a sentence of markdown."""
    names = [plain(name) for name, _ in open_map.clusters_named]
    sizes = open_map.cluster_sizes.tolist()
    (method,) = spoken_labels([open_map])
    return describe_clusters(method, names, sizes, open_map.corpus.n_texts)


def _distinct_methods(maps: Sequence[OpenMap]) -> list[OpenMap]:
    """One map of each method: two maps of the same vectors have the same neighbours."""
    return list({open_map.kept.embedder: open_map for open_map in maps}.values())


def show_accuracy(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> None:
    """How often neighbours share labels: all methods on one scale, those of the maps first."""
    names = list(corpus.category_names)[:MOST_LABELS]
    if not names:
        return
    methods = _distinct_methods(maps)
    if corpus.is_large:
        samples = known_samples(methods)
        names = [] if samples is None else _sample_labels(corpus, samples, MOST_LABELS)
        if samples is None or not names:
            return
        k, hits, baselines = _score_sample_labels(corpus, samples, names)
        counted = (
            f"Measured on {many(len(samples[0].rows), 'text')} drawn at random, with approximate "
            "neighbours among all texts. The methods of the maps above are shown."
        )
    else:
        methods += other_maps(corpus.corpus, methods)
        k, hits, baselines = _score_labels(corpus, methods, names)
        counted = "All methods with a map of this corpus are shown, those of the maps above first."
    labels = method_labels([open_map.spec for open_map in methods])
    if not any(right.any() for by_method in hits.values() for right in by_method):
        st.caption("A text's nearest texts never vote for its own label: every accuracy is 0%.")
        return
    accuracies = {
        name: [_make_accuracy(right, baselines[plain(name)], k) for right in hits[plain(name)]]
        for name in names
    }
    bars = {name: np.array([(r.accuracy, *r.interval) for r in accuracies[name]]) for name in names}
    title = f"{k}-NN accuracy"
    with slide("accuracy"):
        sentence_hits = dict(list(hits.items())[:IN_SENTENCE])
        headline = describe_labels(spoken_labels(methods), sentence_hits, baselines, k)
        is_above_maps = len(methods) == len(_distinct_methods(maps))
        with show_only_on_stage("accuracy-headline") if is_above_maps else nullcontext():
            show_headline(headline, key="accuracy")
        show_figure(
            label_accuracy_figure(
                labels, bars, {n: accuracies[n][0].baseline for n in names}, title=title
            ),
            key="corpus-accuracy",
            numbers=pd.DataFrame(
                {
                    "label": name,
                    "method": method,
                    "accuracy": accuracy.accuracy,
                    "low": accuracy.interval[0],
                    "high": accuracy.interval[1],
                    "k": accuracy.k,
                    "texts": accuracy.n,
                    "majority baseline": accuracy.baseline,
                }
                for name in names
                for method, accuracy in zip(labels, accuracies[name], strict=True)
            ),
            name=f"{corpus.corpus.name} knn-accuracy",
            height=HEIGHT,
            provenance=About(
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


def _make_accuracy(right: np.ndarray, baseline: float, k: int) -> KnnAccuracy:
    """The share of texts whose label their neighbours guess; ``right`` is [text] booleans."""
    n, n_right = len(right), int(right.sum())
    return KnnAccuracy(n_right / n, k, n, baseline, wilson_interval(n_right, n))
