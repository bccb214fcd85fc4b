"""What the maps show of a corpus's labels, and how far they agree: headlines and a figure."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.specs import method_labels, short_labels
from neuralviz.headlines.corpus import describe_agreement, describe_clusters, describe_labels
from neuralviz.jobs.mapping import FindNeighbours
from neuralviz.maps.neighbourhoods import K, common_neighbours, suggest_k
from neuralviz.maps.searching import SAMPLED
from neuralviz.maps.shares import wilson_interval
from neuralviz.plots.evaluation import label_accuracy_figure
from neuralviz.plots.standalone import About
from neuralviz.ui.corpus.opened import open_other_maps
from neuralviz.ui.corpus.search import show_background_run
from neuralviz.ui.figures import show_figure
from neuralviz.ui.page import plain
from neuralviz.ui.runs import SessionRuns
from neuralviz.ui.stage import show_headline, show_only_on_stage, slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.mapping import SampledNeighbours
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.ui.corpus.opened import OpenCorpus, OpenMap


MOST_LABELS = 4  # columns of labels in one figure
IN_SENTENCE = 2  # columns of labels in the headline
FEWEST_LABELLED = 2  # texts that are measured
HEIGHT = 340  # px
PATIENCE = 0.05  # seconds


# --- what maps are measured by -------------------------------------------------------------------


def _find_sample(open_map: OpenMap) -> SampledNeighbours | None:
    """The texts that a map is measured by; None while those of a large corpus are not known."""
    sample = open_map.sample()
    if sample is not None:
        return sample
    runs, task = _sample_run(open_map)
    run = runs.find(task)
    return open_map.sample(run.result.neighbours if run is not None and run.result else None)


def find_samples(maps: Sequence[OpenMap]) -> list[SampledNeighbours] | None:
    """The same texts and their neighbours by each map; None until all are known."""
    samples = [sample for open_map in maps if (sample := _find_sample(open_map)) is not None]
    return samples if len(samples) == len(maps) else None


def search_samples(maps: Sequence[OpenMap]) -> None:
    """Start finding the neighbours of a sample of a large corpus, and show the progress.

    When they are found, the page runs again: figures above this place use them.
    """
    missing = [open_map for open_map in maps if _find_sample(open_map) is None]
    for open_map in missing:
        runs, task = _sample_run(open_map)
        sentence = f"Finding the neighbours of {many(SAMPLED, 'text')} by {open_map.label} …"
        show_background_run(runs, runs.start(task), sentence, PATIENCE)
    if any(_find_sample(open_map) is not None for open_map in missing):
        st.rerun()


def _sample_run(open_map: OpenMap) -> tuple[SessionRuns, FindNeighbours]:
    task = FindNeighbours(open_map.corpus.id, open_map.kept.id, K)
    return SessionRuns(f"corpus-sampling-{open_map.kept.id}"), task


@dataclass(frozen=True, eq=False)
class Shared:
    """How many neighbours of a text two maps have in common.

    Attributes:
        rows: [text] row numbers.
        first, second: the neighbours of these texts on each map.
        k: neighbours that are compared.
        shares: [text] that are shared, 0 … 1.
    """

    rows: np.ndarray
    first: Neighbours
    second: Neighbours
    k: int
    shares: np.ndarray


def share_neighbours(maps: Sequence[OpenMap]) -> Shared | None:
    """Compare two maps: by the vectors, or on the maps where the vectors are the same.

    None for maps of a large corpus until their neighbours are known, or by the same vectors.
    """
    first_map, second_map = maps
    samples = find_samples(maps)
    is_same = first_map.kept.embedder == second_map.kept.embedder
    if samples is None or (is_same and first_map.is_large):
        return None
    first, second = (sample.near for sample in samples)
    if is_same:
        first, second = first_map.neighbours_on_map, second_map.neighbours_on_map
    shares = common_neighbours(first, second, K)
    return Shared(samples[0].rows, first, second, min(K, first.k, second.k), shares)


# --- headlines -----------------------------------------------------------------------------------


def spoken_labels(maps: Sequence[OpenMap]) -> list[str]:
    """The names of the maps' methods as a sentence uses them, as markdown."""
    labels = method_labels([open_map.spec for open_map in maps])
    return list(map(plain, short_labels(labels)))


def describe_themes(open_map: OpenMap) -> str:
    """The themes of a corpus by one map, as a sentence of markdown."""
    names = [plain(name) for name, _ in open_map.named_clusters]
    (method,) = spoken_labels([open_map])
    sizes = open_map.cluster_sizes.tolist()
    return describe_clusters(method, names, sizes, open_map.corpus.n_texts)


def describe_maps(corpus: OpenCorpus, maps: Sequence[OpenMap], *, is_filtered: bool) -> str:
    """What the maps show, in one or two sentences of markdown.

    With labels: how often neighbours guess them. Without: how far two maps agree, or the themes of
    one map. All texts count, whatever the filter; of a large corpus, a sample.
    """
    methods = _distinct_methods(maps)
    samples = find_samples(methods)
    if samples is None:
        return describe_themes(maps[0])
    names = _list_labels(corpus, samples[0], IN_SENTENCE)
    everything = f"all {many(corpus.corpus.n_texts, 'text')}" if is_filtered else ""
    if names:
        scores = _score_labels(corpus, methods, names)
        all_labelled = all((corpus.codes(name)[0] >= 0).all() for name in names)
        if everything and not all_labelled:
            everything = "all texts with a label"  # the others do not count
        origin = " drawn at random" if corpus.is_large else ""
        texts = "" if corpus.is_large else everything
        return scores.describe(methods, names, texts, origin)
    shared = share_neighbours(methods) if len(methods) > 1 else None
    if shared is None:
        return describe_themes(maps[0])
    texts = everything or "these texts"
    if corpus.is_large:
        texts = f"{many(len(shared.rows), 'text')} drawn at random"
    return describe_agreement(spoken_labels(methods), float(shared.shares.mean()), shared.k, texts)


def _distinct_methods(maps: Sequence[OpenMap]) -> list[OpenMap]:
    """One map of each method: two maps of the same vectors have the same neighbours."""
    return list({open_map.kept.embedder: open_map for open_map in maps}.values())


def _list_labels(corpus: OpenCorpus, sample: SampledNeighbours, limit: int) -> list[str]:
    """The first columns of labels that at least two of the texts that are measured have."""
    return [
        name
        for name in corpus.label_names[:limit]
        if (corpus.codes(name)[0][sample.rows] >= 0).sum() >= FEWEST_LABELLED
    ]


@dataclass(frozen=True, eq=False)
class _Scores:
    """How often neighbours vote for a text's own label.

    Attributes:
        k: neighbours that vote.
        hits: by column of labels and by method: [labelled text] whether they do.
        baselines: by column, the share of all texts with the most frequent label.
    """

    k: int
    hits: dict[str, list[np.ndarray]]
    baselines: dict[str, float]

    def describe(
        self, methods: Sequence[OpenMap], names: Sequence[str], texts: str = "", origin: str = ""
    ) -> str:
        """The headline on some of the columns, as of `describe_labels`."""
        hits = {plain(name): self.hits[name] for name in names}
        baselines = {plain(name): self.baselines[name] for name in names}
        return describe_labels(spoken_labels(methods), hits, baselines, self.k, texts, origin)


def _score_labels(corpus: OpenCorpus, methods: Sequence[OpenMap], names: Sequence[str]) -> _Scores:
    sizes = {name: np.array(list(corpus.sizes(name).values())) for name in names}
    samples = find_samples(methods) or ()
    k = min(suggest_k(sizes.values()), *(sample.near.k for sample in samples))
    hits = {
        name: [open_map.hits(name, corpus.codes(name)[0], k) for open_map in methods]
        for name in names
    }
    return _Scores(k, hits, {name: float(n.max() / n.sum()) for name, n in sizes.items()})


# --- the figure ----------------------------------------------------------------------------------


def show_accuracy(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> None:
    """How often neighbours share labels: all methods on one scale, those of the maps first."""
    map_methods = _distinct_methods(maps)
    samples = find_samples(map_methods)
    names = [] if samples is None else _list_labels(corpus, samples[0], MOST_LABELS)
    if samples is None or not names:
        return
    methods = map_methods
    counted = "All methods with a map of this corpus are shown, those of the maps above first."
    if corpus.is_large:
        counted = (
            f"Measured on {many(len(samples[0].rows), 'text')} drawn at random, with approximate "
            "neighbours among all texts. The methods of the maps above are shown."
        )
    else:
        methods = map_methods + open_other_maps(corpus.corpus, map_methods)
    scores = _score_labels(corpus, methods, names)
    labels = method_labels([open_map.spec for open_map in methods])
    if not any(right.any() for by_method in scores.hits.values() for right in by_method):
        st.caption("A text's nearest texts never vote for its own label: every accuracy is 0%.")
        return
    table = pd.DataFrame(
        {
            "label": name,
            "method": method,
            "accuracy": right.mean(),
            "low": interval[0],
            "high": interval[1],
            "k": scores.k,
            "texts": len(right),
            "majority baseline": scores.baselines[name],
        }
        for name in names
        for method, right in zip(labels, scores.hits[name], strict=True)
        for interval in [wilson_interval(int(right.sum()), len(right))]
    )
    bars = {
        name: rows[["accuracy", "low", "high"]].to_numpy() for name, rows in table.groupby("label")
    }
    title = f"{scores.k}-NN accuracy"
    provenance = {
        "corpus": f"{corpus.corpus.name}, {corpus.corpus.n_texts:,} texts",
        "methods": "; ".join(labels),
    }
    with slide("accuracy"):
        is_above_maps = len(methods) == len(map_methods)
        with show_only_on_stage("accuracy-headline") if is_above_maps else nullcontext():
            show_headline(scores.describe(methods, names[:IN_SENTENCE]), key="accuracy")
        show_figure(
            label_accuracy_figure(
                labels, {name: bars[name] for name in names}, scores.baselines, title=title
            ),
            key="corpus-accuracy",
            numbers=table,
            name=f"{corpus.corpus.name} knn-accuracy",
            height=HEIGHT,
            provenance=About(title, provenance),
        )
        st.caption(
            "Share of texts whose label is the most frequent one among their "
            f"{many(scores.k, 'neighbour')} (the text itself does not vote), with 95% intervals; "
            f"higher is better. {counted}"
        )
