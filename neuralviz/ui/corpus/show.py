"""The maps of a corpus, and what the page says and lists about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.headlines import corpus as headlines
from neuralviz.maps.clusters import UNNAMED
from neuralviz.maps.kept import LONGEST_NAME, corpus_table
from neuralviz.maps.neighbours import K, Neighbours, common_neighbours, suggest_k
from neuralviz.maps.opened import OpenCorpus, OpenMap, Selection, Window
from neuralviz.maps.projection import MOST_WHOLE
from neuralviz.maps.shares import wilson_interval
from neuralviz.plots import corpus_map as plots
from neuralviz.plots.corpus_map import MOST_DRAWN, Density, PointColour, Standout
from neuralviz.plots.theme import shorten
from neuralviz.store.writing import BYTE_ORDER_MARK, table_bytes
from neuralviz.ui.address import run_page_again
from neuralviz.ui.choices import choose_one, may_change
from neuralviz.ui.compare import offer_reasons
from neuralviz.ui.corpus.asking import ask_selection
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
    hover_row,
    name_methods,
    select,
    shorten_labels,
)
from neuralviz.ui.downloads import offer_table
from neuralviz.ui.figures import Handlers, show_choosable_table, show_figure
from neuralviz.ui.page import hide_on_stage, plain, show_error, show_headline
from neuralviz.words import many, percent

MOST_SENT = 5_000  # texts of a corpus; the points of a larger one reach the browser without texts
HEIGHTS = {1: 560, 2: 500}  # px, by how many maps there are
# session state: the map and the cluster that may be renamed; the place whose name was clicked
NAMED, RENAMED = "corpus-named", "corpus-renamed"
WINDOWS = "corpus-windows"  # session state: the visible part, by the id of the map
MOST_BESIDE = 2000  # selected texts; a larger selection is drawn only within the sample
AROUND = 0.5  # of a window, beyond each side: density that is drawn before the window moves

COMMON = "common"
LOSSES = {"first-loss": "Loss before micro-tuning", "last-loss": "Loss after micro-tuning"}


# --- colours -------------------------------------------------------------------------------------


def list_colours(maps: Sequence[OpenMap]) -> dict[str, str]:
    """Names of ways to colour points, by key; fewer for a large corpus."""
    corpus = maps[0].corpus
    options = plots.list_page_colours(corpus)
    if corpus.is_large:
        return options
    k = min([K, *(open_map.neighbours.k for open_map in maps)])
    if any(open_map.spec.learns and np.isfinite(open_map.losses).any() for open_map in maps):
        options |= LOSSES
    if len(maps) > 1:
        options[COMMON] = f"Neighbours shared by both maps (of {k})"
    return options


def find_colour(view: MapView, option: str, open_map: OpenMap) -> PointColour:
    key = (option, *(drawn_map.kept.id for drawn_map in view.maps if option == COMMON))
    if option == plots.CLUSTERS:
        key += open_map.kept.cluster_names
    return open_map.recent.get(key, lambda: _make_colour(view, option, open_map))


def _make_colour(view: MapView, option: str, open_map: OpenMap) -> PointColour:
    if option in LOSSES:
        return plots.colour_by_number("loss, nats", open_map.losses[:, list(LOSSES).index(option)])
    if option == COMMON and (shared := share_neighbours(view)) is not None:
        return plots.colour_by_number("shared neighbours", shared.shares)
    return plots.colour_points(open_map, option)


# --- figures -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """What is drawn of a large map."""

    rows: np.ndarray
    n: int  # texts in the window that the filter shows
    window: Window | None  # None for the whole map
    density: Density


@dataclass(frozen=True, eq=False)
class _Drawing:
    figure: go.Figure
    rows: np.ndarray  # of its points that the filter shows
    part: _Part | None  # of a large map


class Accuracy(NamedTuple):
    """How well nearest texts predict a label."""

    label: str = ""  # markdown, where wrong predictions are marked
    notes: Mapping[str, str] = {}  # for the titles of maps, by the embedder's id
    wrong: Mapping[str, np.ndarray] = {}  # the rows of texts that are predicted wrongly


def show_maps(view: MapView, accuracy: Accuracy) -> None:
    """Show the maps side by side with one selection on all."""
    n = view.corpus.n_texts
    drawn = plots.drawn_rows(n)
    if view.corpus.is_large:
        st.caption(plain(" ".join(map(_describe_recall, view.maps))))
    elif len(drawn) < n:
        st.caption(
            f"The map shows a random sample of {len(drawn):,} of the {n:,} texts. Lists and "
            "searches cover all of them."
        )
        help_ = "Drawing all points takes longer."
        if st.toggle(f"Draw all {n:,} points", key="corpus-all", bind="query-params", help=help_):
            drawn = np.arange(n)
    drawings = []
    for open_map, option in zip(view.maps, view.colours, strict=True):
        drawings.append(_draw(view, open_map, find_colour(view, option, open_map), drawn, accuracy))
    plots.even_out([drawing.figure for drawing in drawings])
    for place, (column, open_map) in enumerate(view.columns()):
        with column:
            _show_map(view, open_map, drawings[place], place)


def _find_standout(view: MapView, open_map: OpenMap) -> Standout:
    """What stands out on a map: the selection, the chosen text, a placed sentence, names."""
    points, row, chosen = open_map.coordinates, view.chosen_row, view.selection
    placement, placed = view.placed.get(open_map.kept.id), None
    # one set of lines at a time: those of two points look the same
    near = None if row is None else open_map.near(row)
    if placement is not None and placement.position is not None:
        placed = st.session_state.get(SENTENCE, ""), placement.position[0]
        near = placement.near.first(K)
    return Standout(
        None if chosen is None else chosen.mask,
        row,
        placed,
        None if near is None else points[near.indices[0]],
        open_map.named_clusters if view.has_names else (),
    )


def _draw(
    view: MapView, open_map: OpenMap, colour: PointColour, rows: np.ndarray, accuracy: Accuracy
) -> _Drawing:
    embedder, projections = open_map.embedder.id, [m.title.removeprefix(m.label) for m in view.maps]
    title = shorten_labels(view.maps)[view.maps.index(open_map)] + accuracy.notes.get(embedder, "")
    if len(set(projections)) > 1:
        title += projections[view.maps.index(open_map)]
    n, within, standout = view.corpus.n_texts, view.within, _find_standout(view, open_map)
    if accuracy.label:
        wrong = np.intersect1d(view.filter_rows(rows), accuracy.wrong[embedder])
        standout = replace(standout, wrong=open_map.coordinates[wrong])
    part = _sample_part(view, open_map) if open_map.is_drawn_by_parts else None
    if part is not None:
        rows, within = part.rows, None
    figure = plots.map_figure(
        open_map.coordinates[rows],
        rows,
        colour.select(rows) if len(rows) < n else colour,
        title=title,
        standout=standout,
        texts=view.corpus.texts_at(rows) if n <= MOST_SENT else None,
        within=None if within is None else within[rows],
        axes=open_map.axes,
        uirevision=open_map.kept.id,
        density=None if part is None else part.density,
        home=open_map.home,
        window=_find_window(open_map),
    )
    return _Drawing(figure, view.filter_rows(rows), part)


def _sample_part(view: MapView, open_map: OpenMap) -> _Part:
    """The visible part of a large map, with what is marked on it."""
    plane = open_map.plane
    window = _find_window(open_map)

    def make() -> _Part:
        cut = None if window is None or window.holds(plane.bounds) else window
        rows, n = plane.sample(cut, MOST_DRAWN, view.within)
        counts, covered = plane.counts(cut and cut.grown(AROUND), plots.DENSITY_BINS)
        return _Part(rows, n, window, Density(counts, astuple(covered), astuple(plane.bounds)))

    passed = None if view.within is None else Selection(view.within).digest
    part: _Part = open_map.recent.get(("part", window, passed), make)
    row, chosen = view.chosen_row, view.selection
    marked = [] if row is None else [np.array([row])]
    if chosen is not None and len(chosen) <= MOST_BESIDE:
        marked.append(chosen.rows())
    return replace(part, rows=np.unique(np.concatenate([part.rows, *marked])))


def _find_window(open_map: OpenMap) -> Window | None:
    """What is seen of a map; None for the whole map."""
    window: Window | None = st.session_state.get(WINDOWS, {}).get(open_map.kept.id, open_map.home)
    return window


def _look_at(open_map: OpenMap, sides: tuple[float, ...] | None) -> None:
    """Show a part of a map; the whole map if ``sides`` is None or bounds no part."""
    windows: dict[str, Window | None] = st.session_state.setdefault(WINDOWS, {})
    windows[open_map.kept.id] = None
    if sides is not None and len(sides) == 4:
        with suppress(ValueError):
            windows[open_map.kept.id] = Window(*sides)


# --- a map on the page ---------------------------------------------------------------------------


def _show_map(view: MapView, open_map: OpenMap, drawing: _Drawing, place: int) -> None:
    corpus = view.corpus
    store, kept, n = corpus.store, corpus.corpus, corpus.n_texts

    def choose(click: dict[str, Any]) -> None:
        if "name" in click:
            choose_cluster(open_map, int(click["name"]))
            st.session_state[RENAMED] = place
        elif click["customdata"] is not None:
            choose_row(click["customdata"])

    def select_rows(rows: list[int]) -> None:
        select(Selection.from_rows(np.array(rows, np.int64), n), "selected")

    def select_areas(areas: list[np.ndarray]) -> None:
        select(Selection(open_map.plane.inside(areas)), "selected")

    def export_points(ending: str) -> bytes:
        table = corpus_table(store, kept, open_map.embedder, open_map.kept)
        mark = BYTE_ORDER_MARK.encode() if ending == ".csv" else b""  # for spreadsheets
        return mark + table_bytes(ending, table)

    def export_numbers() -> pd.DataFrame:
        rows = drawing.rows if corpus.is_large else None
        return corpus_table(store, kept, None, open_map.kept, rows).to_pandas()

    name = f"{kept.name} {open_map.label}"
    files = {
        f"Embeddings ({kind})": (f"{name} embeddings{ending}", partial(export_points, ending))
        for ending, kind in ((".parquet", "Parquet"), (".csv", "CSV"))
    }
    window = None if open_map.home is None else partial(_look_at, open_map)
    if st.session_state.get(RENAMED) == place:
        del st.session_state[RENAMED]
        if may_change(kept):
            st.dialog("Rename the cluster")(_rename_cluster)(open_map, is_asked=True)
    handlers = Handlers(choose, select_rows, hover_row if n > MOST_SENT else None, window=window)
    if open_map.is_drawn_by_parts:
        handlers = replace(handlers, hover=hover_row, select=None, areas=select_areas)
    show_figure(
        drawing.figure,
        name,
        export_numbers,
        plots.describe_maps([open_map], len(drawing.rows), view.shown, view.n_shown),
        key=f"corpus-map-{place}",
        height=HEIGHTS[len(view.maps)],
        alt=f"Map by {open_map.label}",
        handlers=handlers,
        html=lambda: "" if place else _draw_searchable(view, drawing.rows),  # all maps share it
        files=None if corpus.is_large else files,
        window=astuple(seen)
        if (seen := _find_window(open_map)) != open_map.home and seen
        else None,
    )
    if corpus.is_large:
        st.caption(_describe_points(n, drawing))
    elif open_map.n_outside:
        verb = "lies" if open_map.n_outside == 1 else "lie"
        outside = f"{many(open_map.n_outside, 'text')} {verb} outside"
        st.caption(f"{outside}; *Autoscale*, above the map, shows all.")
    for note in open_map.kept.notes:
        st.caption(plain(note))


def _draw_searchable(view: MapView, drawn: np.ndarray) -> str:
    """All shown maps for the page as a file, at first with their chosen colours."""
    options, portable = list_colours(view.maps), plots.list_page_colours(view.corpus)
    colours = [
        {
            options[key]: find_colour(view, key, open_map)
            for key in dict.fromkeys([first, *portable])
        }
        for first, open_map in zip(view.colours, view.maps, strict=True)
    ]
    return plots.maps_html(view.maps, colours, drawn)


def _describe_recall(open_map: OpenMap) -> str:
    """The recall of a large map's neighbours."""
    recall = open_map.kept.recall
    note = f"neighbours are approximate ({percent(recall or 0)} of the 10 nearest found)"
    return f"Map by {open_map.label}: {note}." if recall is not None else ""


def _describe_points(n_texts: int, drawing: _Drawing) -> str:
    """What the points and the shades of a large map are."""
    part = drawing.part
    if part is None:
        drawn, advice = f"{len(drawing.rows):,} of the {n_texts:,} texts", ""
    else:
        seen = f"{part.n:,} texts{' in this part' * (part.window is not None)}"
        drawn = f"{min(len(drawing.rows), part.n):,} of the {seen}"
        advice = " Zoom in to see more. Grey shades: how many of all texts lie there (log scale)."
    return f"Points: {drawn}, at random. Lists and searches cover all of them.{advice}"


MOST_LABELS = 4  # columns of labels that may colour the first map
FEWEST_LABELLED = 2  # texts that are measured
LISTED = 1000  # rows of a table at most: more make browsers slow
MOST_TAKEN = MOST_WHOLE  # selected texts that are downloaded
LISTED_LABELS = 4  # columns of labels in a table
NARROW_TEXT, NARROW_WIDTH = 45, 330  # characters and px of a text in one of two tables
LONGEST_TEXT = 240  # characters of a text in a table
SHOWN_NEIGHBOURS = 8
NOTHING = 0.0005  # shown as 0.000
CARD_HEIGHT = 260  # px


# --- accuracy ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shared:
    """How many neighbours of each text two maps share."""

    rows: np.ndarray  # [text]
    k: int  # neighbours of each text that are compared
    shares: np.ndarray  # [text] share of these that the maps have in common, 0 … 1
    near: tuple[Neighbours, Neighbours]  # by map


def share_neighbours(view: MapView) -> Shared | None:
    """Compare two maps by their vectors, or by their points where the vectors are the same."""
    samples, is_same = find_samples(view.maps), len(view.methods) == 1
    if samples is None or (is_same and view.corpus.is_large):
        return None
    first, second = (sample.near for sample in samples)
    if is_same:
        first, second = (open_map.neighbours_on_map for open_map in view.maps)
    k, shares = min(K, first.k, second.k), common_neighbours(first, second, K)
    return Shared(samples[0].rows, k, shares, (first, second))


def describe_themes(open_map: OpenMap) -> str:
    names = ["" if name == UNNAMED else plain(name) for name in open_map.kept.cluster_names]
    (method,) = name_methods([open_map])
    sizes = open_map.cluster_sizes.tolist()
    return headlines.describe_clusters(method, names, sizes, open_map.corpus.n_texts)


def describe_origin(corpus: OpenCorpus) -> str:
    """What follows the number of texts that were measured."""
    return " drawn at random" if corpus.is_large else ""


def find_first_colour(open_map: OpenMap) -> str:
    """The first label that nearest texts predict, else the clusters; see `list_colours`.

    The level of the tests, 5%, is divided by their number.
    """
    corpus = open_map.corpus
    names = corpus.label_names[:MOST_LABELS]
    if names and (corpus.is_large or not open_map.clusters.n):
        return f"label:{names[0]}"
    for name in names:
        if (scores := score_label([open_map], name)) is None:
            continue
        (right,) = scores.hits
        if wilson_interval(right.sum(), len(right), len(names))[0] > scores.baseline:
            return f"label:{name}"
    return plots.CLUSTERS


class Scores(NamedTuple):
    """How often a text's neighbours vote for its own label."""

    k: int  # neighbours that vote
    hits: list[np.ndarray]  # by method: [labelled text] whether the vote is right
    baseline: float  # share of all texts with the most frequent label


def score_label(methods: Sequence[OpenMap], name: str) -> Scores | None:
    """The scores of a column; None where fewer than two of the measured texts have a label."""
    corpus, samples = methods[0].corpus, find_samples(methods)
    if not samples or (corpus.codes(name)[0][samples[0].rows] >= 0).sum() < FEWEST_LABELLED:
        return None
    sizes = list(corpus.sizes(name).values())
    k = min(suggest_k(sizes), *(sample.near.k for sample in samples))
    return Scores(k, [open_map.hits(name, k) for open_map in methods], max(sizes) / sum(sizes))


# --- lists ---------------------------------------------------------------------------------------


def show_lists(view: MapView, findings: Mapping[str, Callable[[MapView], None]]) -> None:
    """Show one list at a time, first the one that the user's last action asks for."""
    lists: dict[str, Callable[[MapView], None]] = {}
    if len(view.maps) > 1:
        lists[DIFFERENT] = _show_disagreement
    lists |= {CLUSTERS: _show_clusters, CHOSEN_TEXT: _show_text, SELECTION: _show_selected}
    has_model = not all(open_map.spec.is_imported for open_map in view.maps)
    if st.session_state.get(SENTENCE) and has_model:
        lists[NEAREST] = _show_nearest
    lists |= findings
    if st.session_state.get(LIST, next(iter(lists))) not in lists:
        st.session_state[LIST] = next(iter(lists))
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
                pair = [text, *corpus.texts_at(near.indices[0, :1])]
                offer_reasons(pair, [open_map.spec], f"corpus-{open_map.kept.id}")


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
    key, by = f"corpus-near-{kind}-{open_map.kept.id}", f"near-{kind}-{open_map.kept.id[:4]}"
    is_narrow = len(view.maps) > 1
    _show_table(view.corpus, rows, key, by, {name: values}, config, is_narrow=is_narrow)


def _show_nearest(view: MapView) -> None:
    """The texts nearest to the searched sentence."""
    maps = [open_map for open_map in view.maps if open_map.kept.id in view.placed]
    if not maps:
        st.caption("The nearest texts appear once the sentence is placed.")
        return
    with hide_on_stage("nearest"):
        for column, open_map in zip(st.columns(len(maps)), maps, strict=True):
            with column:
                st.markdown(plain(f"By {open_map.label}"))
                _show_near(view, open_map, view.placed[open_map.kept.id].near, "sentence")


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
    offer_table(
        "Selected texts",
        lambda: corpus_table(view.corpus.store, corpus, rows=rows).to_pandas(),
        f"{corpus.name} selected",
        place="corpus-clear",
        provenance=plots.describe_maps(view.maps, corpus.n_texts),
    )
    ask_selection(view, chosen)
    _show_table(view.corpus, rows, f"corpus-selected-{len(view.maps)}-{chosen.digest}", "selected")


def _show_clusters(view: MapView) -> None:
    if not any(open_map.clusters.n for open_map in view.maps):
        st.caption("These texts form no clusters: no group of points is dense enough.")
        return
    with hide_on_stage("clusters"):
        if plots.CLUSTERS not in view.colours:  # else they are above the maps
            themes = headlines.join_methods(map(describe_themes, view.maps))
            show_headline(themes, key="clusters")
        st.caption(
            "Dense groups of points on the map, with the words that distinguish their texts. "
            "Select a row to select its texts; **Selection** lists them and asks the model about "
            "them."
        )
        for place, (column, open_map) in enumerate(view.columns()):
            if open_map.clusters.n:
                with column:
                    _list_clusters(open_map, f"corpus-clusters-{place}-{open_map.kept.id}")


def _list_clusters(open_map: OpenMap, key: str) -> None:
    """A table of a map's clusters; a click on a row selects the texts."""
    sizes = open_map.cluster_sizes
    st.caption(plain(open_map.label))

    names = list(open_map.kept.cluster_names)
    words = [", ".join(words) for words in open_map.kept.cluster_words]
    show_choosable_table(
        {"cluster": np.arange(1, len(sizes) + 1), "name": names, "texts": sizes, "words": words},
        key,
        partial(choose_cluster, open_map),
        {"words": st.column_config.TextColumn(width="large")},
        name=f"clusters-{open_map.kept.id[:4]}",
    )
    if may_change(open_map.corpus.corpus):
        _rename_cluster(open_map)


def choose_cluster(open_map: OpenMap, cluster: int) -> None:
    """Select the texts of a cluster, and offer to rename it."""
    st.session_state[NAMED] = open_map.kept.id, cluster
    chosen = Selection.from_rows(open_map.cluster_rows(cluster), open_map.corpus.n_texts)
    select(chosen, f"in cluster {open_map.kept.cluster_names[cluster]}", show=False)


def _rename_cluster(open_map: OpenMap, *, is_asked: bool = False) -> None:
    """Ask for another name of the chosen cluster of a map, which is saved with the map."""
    chosen_map, cluster = st.session_state.get(NAMED, ("", 0))
    if chosen_map != open_map.kept.id:
        return
    name = open_map.kept.cluster_names[cluster]
    typed = st.text_input(
        f"Name of cluster {cluster + 1}",
        name,
        max_chars=LONGEST_NAME,
        key=f"corpus-rename{is_asked * '-now'}-{open_map.kept.id}-{cluster}-{name}",
        help="Press Enter to rename the cluster on all maps and downloads. An empty name restores "
        "its words.",
    )
    if typed == name:
        return
    try:
        open_map.maps.rename_cluster(open_map.corpus.corpus, open_map.kept, cluster, typed)
    except NeuralvizError as error:
        show_error(error)
    else:
        run_page_again()


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
    labels = shorten_labels(view.maps)
    if is_same:
        labels = tuple(open_map.title for open_map in view.maps)
    order, origin = np.argsort(shared.shares, kind="stable"), describe_origin(view.corpus)
    if view.within is not None:
        order, origin = order[view.within[shared.rows[order]]], " that the filter shows"
    if not len(order):
        return
    share, texts = float(shared.shares[order].mean()), many(len(order), "text") + origin
    sentence = headlines.describe_disagreement(list(map(plain, labels)), share, shared.k, texts)
    order = order[:LISTED]
    rows, near = shared.rows[order], [near.indices[order, : shared.k] for near in shared.near]
    table = {
        "shared": [percent(share) for share in shared.shares[order]],
        "text": [shorten(text, LONGEST_TEXT) for text in view.corpus.texts_at(rows)],
    }
    for label, near_rows, other_rows in zip(labels, near, near[::-1], strict=True):
        table[f"close only with {label}"] = _list_unshared(view.corpus, near_rows, other_rows)
    show_headline(sentence, key="different")
    st.caption(f"Close only: the nearest text that is not among the other map's {shared.k}.")
    show_choosable_table(
        table,
        f"corpus-different-{first.kept.id}-{second.kept.id}",
        lambda place: choose_row(int(rows[place]), show=False),
        dict.fromkeys(table, st.column_config.TextColumn(width=NARROW_WIDTH))
        | {"shared": st.column_config.TextColumn(width=85)},
        name="different",
    )
    if view.row_to_read is not None:
        _show_text(view)


def _list_unshared(corpus: OpenCorpus, near: np.ndarray, other_near: np.ndarray) -> list[str]:
    """Of each text, the first of its [text, k] neighbours that are none of the other ones."""
    is_shared = (near[:, :, None] == other_near[:, None]).any(axis=2)
    rows = near[np.arange(len(near)), is_shared.argmin(axis=1)]
    texts = zip(corpus.texts_at(rows), is_shared.all(axis=1), strict=True)
    return ["" if all_shared else shorten(text, LONGEST_TEXT) for text, all_shared in texts]


def _show_table(
    corpus: OpenCorpus,
    rows: np.ndarray,
    key: str,
    by: str,  # name of its order in the address
    first: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    *,
    is_narrow: bool = False,  # for one of two tables side by side
) -> None:
    """A table of texts with their labels; a click on a row chooses its text."""
    listed = rows[:LISTED]
    table: dict[str, Any] = {name: values[:LISTED] for name, values in (first or {}).items()}
    width = NARROW_TEXT if is_narrow else LONGEST_TEXT
    table["text"] = [shorten(text, width) for text in corpus.texts_at(listed)]
    for name in corpus.label_names[: 1 if is_narrow else LISTED_LABELS]:
        table[name if name not in table else f"{name} (label)"] = corpus.labels_at(name, listed)
    wide = st.column_config.TextColumn(width=NARROW_WIDTH if is_narrow else "large")
    columns = {"text": wide, **(config or {})}

    def choose(place: int) -> None:
        choose_row(int(listed[place]), show=False)

    show_choosable_table(table, key, choose, columns, name=by)
