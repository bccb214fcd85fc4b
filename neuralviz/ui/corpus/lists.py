"""What the page says about its maps: the headline, lists of texts and clusters, k-NN accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders.specs import method_labels
from neuralviz.headlines.corpus import (
    describe_agreement,
    describe_clusters,
    describe_labels,
    describe_landing,
)
from neuralviz.maps.kept import corpus_table
from neuralviz.maps.map_points import Selection
from neuralviz.maps.neighbours import K, Neighbours, common_neighbours, suggest_k
from neuralviz.maps.opened import OpenCorpus, OpenMap
from neuralviz.maps.projection import MOST_WHOLE
from neuralviz.maps.searching import SampledNeighbours
from neuralviz.maps.shares import wilson_interval
from neuralviz.plots.corpus_map import describe_maps
from neuralviz.plots.evaluation import label_accuracy_figure
from neuralviz.plots.report import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import choose_one, show_choosable_table
from neuralviz.ui.corpus.opened import open_other_maps
from neuralviz.ui.corpus.search import (
    CHOSEN_TEXT,
    CLUSTERS,
    DIFFERENT,
    LIST,
    NEAREST,
    SELECTED_BY,
    SELECTION,
    SENTENCE,
    MapView,
    choose_row,
    clear_selection,
    find_neighbours,
    find_samples,
    name_methods,
    select,
)
from neuralviz.ui.figures import download_table, show_figure
from neuralviz.ui.page import plain
from neuralviz.ui.stage import show_headline, slide
from neuralviz.words import many, percent

MOST_LABELS = 4  # columns of labels in the figure of accuracies
IN_SENTENCE = 2  # columns of labels in the headline
FEWEST_LABELLED = 2  # texts that are measured
ACCURACY_HEIGHT = 340  # px
LISTED = 1000  # rows of a table at most: more make browsers slow
MOST_TAKEN = MOST_WHOLE  # selected texts that are downloaded
LISTED_LABELS = 4  # columns of labels in a table
SHOWN_NEIGHBOURS = 8
NOTHING = 0.0005  # shown as 0.000
CARD_HEIGHT = 260  # px


# --- headline and accuracy -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shared:
    """How many neighbours of each text two maps share."""

    rows: np.ndarray  # [text]
    k: int  # neighbours of each text that are compared
    shares: np.ndarray  # [text] share of these that the maps have in common, 0 … 1


def share_neighbours(view: MapView) -> Shared | None:
    """Compare two maps by their vectors, or by their points where the vectors are the same."""
    samples, is_same = find_samples(view.maps), len(view.methods) == 1
    if samples is None or (is_same and view.corpus.is_large):
        return None
    first, second = (sample.near for sample in samples)
    if is_same:
        first, second = (open_map.neighbours_on_map for open_map in view.maps)
    return Shared(samples[0].rows, min(K, first.k, second.k), common_neighbours(first, second, K))


def _describe_themes(open_map: OpenMap) -> str:
    names = [plain(name) for name, _ in open_map.named_clusters]
    (method,) = name_methods([open_map])
    sizes = open_map.cluster_sizes.tolist()
    return describe_clusters(method, names, sizes, open_map.corpus.n_texts)


def describe_neighbourhoods(view: MapView) -> str:
    """The headline: how often neighbours guess labels, else how far maps agree, else themes."""
    corpus, methods = view.corpus, view.methods
    samples = find_samples(methods)
    if samples is None:
        return _describe_themes(view.maps[0])
    names = _list_labels(corpus, samples[0], IN_SENTENCE)
    if names:
        scores = _score_labels(methods, names)
        hits = {plain(name): right for name, right in scores.hits.items()}
        baselines = {plain(name): share for name, share in scores.baselines.items()}
        origin = _describe_origin(corpus)
        return describe_labels(name_methods(methods), hits, baselines, scores.k, origin)
    shared = share_neighbours(view) if len(methods) > 1 else None
    if shared is None:
        return _describe_themes(view.maps[0])
    texts = many(len(shared.rows), "text") + _describe_origin(corpus)
    return describe_agreement(name_methods(methods), float(shared.shares.mean()), shared.k, texts)


def _describe_origin(corpus: OpenCorpus) -> str:
    """What follows the number of texts that were measured."""
    return " drawn at random" if corpus.is_large else ""


def _list_labels(corpus: OpenCorpus, sample: SampledNeighbours, limit: int) -> list[str]:
    """The first columns in which at least two of the measured texts have a label."""
    return [
        name
        for name in corpus.label_names[:limit]
        if (corpus.codes(name)[0][sample.rows] >= 0).sum() >= FEWEST_LABELLED
    ]


class _Scores(NamedTuple):
    """How often a text's neighbours vote for its own label."""

    k: int  # neighbours that vote
    # by column of labels and by method: [labelled text] whether the vote is right
    hits: dict[str, list[np.ndarray]]
    baselines: dict[str, float]  # by column, the share of all texts with the most frequent label


def _score_labels(methods: Sequence[OpenMap], names: Iterable[str]) -> _Scores:
    sizes = {name: np.array(list(methods[0].corpus.sizes(name).values())) for name in names}
    k = min(suggest_k(sizes.values()), *(sample.near.k for sample in find_samples(methods) or ()))
    hits = {name: [open_map.hits(name, k) for open_map in methods] for name in sizes}
    return _Scores(k, hits, {name: float(n.max() / n.sum()) for name, n in sizes.items()})


def show_accuracy(view: MapView) -> None:
    """Draw how often neighbours share labels, for all methods on one scale."""
    corpus, methods = view.corpus, view.methods
    samples = find_samples(methods)
    names = [] if samples is None else _list_labels(corpus, samples[0], MOST_LABELS)
    if samples is None or not names:
        return
    if not corpus.is_large:
        methods = methods + open_other_maps(corpus.corpus, methods)
    scores = _score_labels(methods, names)
    labels = method_labels([open_map.spec for open_map in methods])
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
        name: table.loc[table["label"] == name, ["accuracy", "low", "high"]].to_numpy()
        for name in names
    }
    title = f"{scores.k}-NN accuracy"
    settings = {
        "corpus": f"{corpus.corpus.name}, {corpus.n_texts:,} texts",
        "methods": "; ".join(labels),
    }
    with slide("accuracy"):
        show_figure(
            label_accuracy_figure(labels, bars, scores.baselines, title=title),
            f"{corpus.corpus.name} knn-accuracy",
            table,
            About(title, settings),
            key="corpus-accuracy",
            height=ACCURACY_HEIGHT,
        )
        sample = f"Measured on {many(len(samples[0].rows), 'text')} drawn at random."
        st.caption(
            "Share of texts whose label is the most frequent one among their "
            f"{many(scores.k, 'neighbour')} (the text itself does not vote), with 95% intervals; "
            f"higher is better. {sample * corpus.is_large}"
        )


# --- lists ---------------------------------------------------------------------------------------


def show_lists(view: MapView) -> None:
    """Show one list at a time, first the one that the user's last action asks for."""
    lists: dict[str, Callable[[MapView], None]] = {}
    if len(view.maps) > 1:
        lists[DIFFERENT] = _show_disagreement
    lists |= {CLUSTERS: _show_clusters, CHOSEN_TEXT: _show_text, SELECTION: _show_selected}
    if st.session_state.get(SENTENCE):
        lists[NEAREST] = _show_nearest
    if st.session_state.get(LIST, CLUSTERS) not in lists:
        del st.session_state[LIST]
    chosen = choose_one(
        st.segmented_control,
        "List",
        list(lists),
        key=LIST,
        label_visibility="collapsed",
        persist_state="session",
    )
    lists[chosen](view)


def _show_text(view: MapView) -> None:
    """The text under the pointer, or the chosen one, with its neighbours on each map."""
    corpus, row = view.corpus, view.row_to_read
    if row is None:
        st.caption("Click a point to read its text and see its neighbours.")
        return
    (text,) = corpus.texts_at([row])
    with st.container(height=CARD_HEIGHT if len(text) > 700 else "content"):
        st.text(text)
        details = [f"ID {corpus.store.ids(corpus.corpus, [row])[0]}"]
        for column in corpus.corpus.columns:
            value = corpus.store.labels(corpus.corpus, column.name, [row])[0]
            value = f"{value:g}" if isinstance(value, float) else str(value)
            if value and value != "nan":
                details.append(f"{column.name}: {shorten(value, 60)}")
        st.caption(plain(" · ".join(details)))
    for place, open_map in view.columns():
        with place:
            st.caption(plain(f"Neighbours by {open_map.label}"))
            near = find_neighbours(open_map, row)
            if near is not None:
                _show_near(view, open_map, near.first(SHOWN_NEIGHBOURS), "row")


def _show_near(view: MapView, open_map: OpenMap, near: Neighbours, kind: str) -> None:
    rows, values = near.indices[0], near.distances[0]
    if view.within is not None:
        is_shown = view.within[rows]
        rows, values = rows[is_shown], values[is_shown]
    name = open_map.kept.settings.metric
    if name == "cosine":
        values = 1 - values
    values = np.where(np.abs(values) < NOTHING, 0, values)  # no -0.000
    config = {name: st.column_config.NumberColumn(format="%.3f", width=80)}
    _show_table(view.corpus, rows, f"corpus-near-{kind}-{open_map.kept.id}", {name: values}, config)


def _show_nearest(view: MapView) -> None:
    """The texts nearest to the searched sentence."""
    corpus, sentence = view.corpus, st.session_state[SENTENCE]
    maps = [open_map for open_map in view.maps if open_map.kept.id in view.placed]
    near = [view.placed[open_map.kept.id].near for open_map in maps]
    with slide("sentence"):
        for name in corpus.label_names[:1]:
            k = suggest_k([list(corpus.sizes(name).values())])
            labels = [
                list(map(plain, corpus.labels_at(name, texts.indices[0][:k]))) for texts in near
            ]
            quoted = plain(shorten(sentence, 60))
            headline = describe_landing(quoted, name_methods(maps), labels, plain(name))
            show_headline(headline, key="sentence")
        for column, open_map, texts in zip(st.columns(len(maps) or 1), maps, near, strict=False):
            with column:
                st.caption(plain(f"Nearest by {open_map.label}"))
                _show_near(view, open_map, texts, "sentence")


def _show_selected(view: MapView) -> None:
    corpus, chosen = view.corpus.corpus, view.selection
    if chosen is None:
        st.caption(
            "Nothing is selected. Select points with the lasso, search for words, or select a "
            "cluster. All maps share the selection."
        )
        return
    n, rows = len(chosen), chosen.rows()[:MOST_TAKEN]
    listed = f", showing the first {LISTED:,}" if n > LISTED else ""
    if n > len(rows):
        listed += f"; downloads hold the first {MOST_TAKEN:,}"
    row = st.container(horizontal=True, vertical_alignment="center")
    row.markdown(plain(f"{many(n, 'text')} {st.session_state.get(SELECTED_BY, '')}{listed}."))
    row.button("Clear", icon=":material/close:", on_click=clear_selection, key="corpus-clear")
    with row:
        download_table(
            "Selected texts",
            lambda: corpus_table(view.corpus.store, corpus, rows=rows).to_pandas(),
            f"{corpus.name} selected",
            key="corpus-take-selected",
            provenance=describe_maps(view.maps, corpus.n_texts),
        )
    _show_table(view.corpus, rows, f"corpus-selected-{len(view.maps)}-{chosen.digest}")


def _show_clusters(view: MapView) -> None:
    if not any(open_map.clusters.n for open_map in view.maps):
        st.caption("There are no clusters to list.")
        return
    with slide("clusters"):
        themes = dict.fromkeys(map(_describe_themes, view.maps))
        show_headline("\n\n".join(themes), key="clusters")
        st.caption(
            "Dense groups of points on the map, with the words that distinguish their texts. "
            "Select a row to select its texts."
        )
        for place, (column, open_map) in enumerate(view.columns()):
            if open_map.clusters.n:
                with column:
                    _list_clusters(open_map, f"corpus-clusters-{place}-{open_map.kept.id}")


def _list_clusters(open_map: OpenMap, key: str) -> None:
    """A table of a map's clusters; ticking a row selects the texts."""
    sizes, n_texts = open_map.cluster_sizes, open_map.corpus.n_texts
    n_none = n_texts - int(sizes.sum())
    note = f"; {many(n_none, 'text')} in no cluster" if n_none else ""
    st.caption(plain(f"{open_map.label}: {many(len(sizes), 'cluster')}{note}."))

    def choose(cluster: int) -> None:
        chosen = Selection.from_rows(open_map.cluster_rows(cluster), n_texts)
        select(chosen, f"in cluster {open_map.named_clusters[cluster][0]}", show=False)

    words = [", ".join(words) for words in open_map.kept.cluster_words]
    show_choosable_table(
        {"cluster": np.arange(1, len(sizes) + 1), "texts": sizes, "words": words},
        key,
        choose,
        {"words": st.column_config.TextColumn(width="large")},
    )


def _show_disagreement(view: MapView) -> None:
    """The texts whose neighbours differ most between two maps."""
    first, second = view.maps
    is_same = len(view.methods) == 1
    if is_same and view.corpus.is_large:
        st.caption(
            "Both maps show the same embeddings. The neighbours on two such maps are compared "
            f"for up to {MOST_WHOLE:,} texts."
        )
        return
    shared = share_neighbours(view)
    if shared is None:
        return
    sample = f"Of a random sample of {many(len(shared.rows), 'text')}: on"
    st.markdown(
        plain(
            f"{sample if view.corpus.is_large else 'On'} average, “{first.label}” and "
            f"“{second.label}” share {percent(shared.shares.mean())} of a text's {shared.k} "
            f"neighbours ({'on the maps' if is_same else 'by embedding'}). Texts with the "
            "fewest shared neighbours come first."
        )
    )
    order = np.argsort(shared.shares, kind="stable")
    if view.within is not None:
        order = order[view.within[shared.rows[order]]]
    _show_table(
        view.corpus,
        shared.rows[order],
        f"corpus-different-{first.kept.id}-{second.kept.id}",
        {"shared": 100 * shared.shares[order]},
        {"shared": st.column_config.NumberColumn(format="%.0f%%", width=95)},
    )
    if view.row_to_read is not None:
        _show_text(view)


def _show_table(
    corpus: OpenCorpus,
    rows: np.ndarray,
    key: str,
    first: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
) -> None:
    """A table of texts with their labels; ticking a row chooses its text."""
    listed = rows[:LISTED]
    table: dict[str, Any] = {name: values[:LISTED] for name, values in (first or {}).items()}
    table["text"] = [shorten(text, 240) for text in corpus.texts_at(listed)]
    for name in corpus.label_names[:LISTED_LABELS]:
        table[name if name not in table else f"{name} (label)"] = corpus.labels_at(name, listed)
    columns = {"text": st.column_config.TextColumn(width="large"), **(config or {})}
    show_choosable_table(
        table, key, lambda place: choose_row(int(listed[place]), show=False), columns
    )
