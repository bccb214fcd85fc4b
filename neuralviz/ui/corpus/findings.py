"""What the corpus map finds in the texts: near-duplicates, and groups that one method holds."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import streamlit as st

from neuralviz.embedders import EmbedderSpec
from neuralviz.embedders.specs import labels_by_spec
from neuralviz.errors import Stopped
from neuralviz.headlines import COSINE_IN_SHORT, explain_methods, explain_prediction
from neuralviz.headlines import corpus as headlines
from neuralviz.jobs.mapping import FindHeldGroups, FindPairs
from neuralviz.maps.clusters import UNNAMED
from neuralviz.maps.duplicates import (
    MOST_TEXTS,
    RULES,
    KeptTexts,
    SimilarPairs,
    group_duplicates,
    name_difference,
    removed_table,
)
from neuralviz.maps.groups import HeldGroup
from neuralviz.maps.kept import KeptMaps, corpus_table
from neuralviz.maps.opened import OpenCorpus, Selection
from neuralviz.plots import corpus_map as plots
from neuralviz.plots.corpus_map import CLUSTERS, MAX_CATEGORIES, STAGE_CATEGORIES
from neuralviz.plots.report import About
from neuralviz.plots.theme import shorten
from neuralviz.store.vectors import KeptEmbedder
from neuralviz.ui.address import read_numbers, remember_number, run_page_again, write
from neuralviz.ui.choices import choose_one
from neuralviz.ui.corpus.search import (
    LIST,
    SENTENCE,
    MapView,
    name_methods,
    select,
    shorten_labels,
    show_work,
)
from neuralviz.ui.downloads import offer_table
from neuralviz.ui.figures import show_choosable_table, show_figure, show_first_rows
from neuralviz.ui.page import (
    hide_on_stage,
    plain,
    point_to,
    show_headline,
    show_only_on_stage,
    slide,
)
from neuralviz.ui.runs import SessionRuns
from neuralviz.words import many, number

DUPLICATES = "Near-duplicates"
METHOD = "duplicates-method"  # in the address: the label of the method
_GROUP = "duplicates-group"  # session state and address: a row of the listed group
_SLOW = "duplicates-slow"  # session state: a choice whose groups took too long
_LINKED = "duplicates-linked"  # session state: whether the sentence was clicked just now
LISTED = 1000  # groups
PHRASE = 40  # characters of a phrase in a sentence
METHOD_WIDTH, THRESHOLD_WIDTH = 220, 300  # px
PAIRED_WIDTH, GROUPED_WIDTH = 395, 490  # px of a text
PATIENCE = 5.0  # seconds for grouping texts


# --- sentences -----------------------------------------------------------------------------------


def show_findings(view: MapView, headline: str, predicted: str) -> None:
    """Write the headline and what was found beside it, with links to the texts concerned.

    A held group that is selected is what the maps show: then the headline is its sentence.
    ``predicted`` is the label, markdown, whose wrong predictions have crosses.
    """
    held = list(_peek_held(view) or ())
    if not st.session_state.get(SENTENCE):
        selected_groups = [group for group in held if _is_selected(view, group)]
        headline = "\n\n".join(_claim_held(view, group) for group in selected_groups) or headline
        held = [group for group in held if group not in selected_groups]
    show_headline(headline, key="maps")
    with show_only_on_stage("maps"):
        _explain(view, _explain_marks(view, predicted), headline)
    pairs = _peek_pairs(view.corpus, view.maps[0].embedder)
    n_similar = int(pairs.findings.sum()) if pairs else 0
    if not held and not n_similar:
        return
    with hide_on_stage("findings"), st.container(horizontal=True):
        for group in held:
            st.markdown(_describe_held(view, group))
            _link_held(view, group)
        if n_similar:
            sentence = headlines.describe_duplicates(
                n_similar, view.corpus.n_texts, view.first_method
            )
            icon, key = ":material/content_copy:", "corpus-duplicates"
            open_list = partial(st.session_state.update, {LIST: DUPLICATES, _LINKED: True})
            st.button(sentence, type="tertiary", icon=icon, key=key, on_click=open_list)


def show_held(view: MapView) -> None:
    """On the stage, maps of each group that one method holds together and that is not selected."""
    rows, labels = plots.drawn_rows(view.corpus.n_texts), shorten_labels(view.maps)
    for group in [held for held in _peek_held(view) or () if not _is_selected(view, held)]:
        claim, key = _claim_held(view, group), f"held-{group.place}"
        codes = np.full(view.corpus.n_texts, -1)
        codes[_list_held(view, group)] = 0
        colour = plots.PointColour("", ("these texts",), codes[rows], missing="all other texts")
        with slide(key), show_only_on_stage(key):
            show_headline(claim, key=key)
            _explain(view, "", claim)
            figures = [
                plots.map_figure(open_map.coordinates[rows], rows, colour, title=label)
                for open_map, label in zip(view.maps, labels, strict=True)
            ]
            plots.even_out(figures)
            for place, (column, open_map) in enumerate(view.columns()):
                figure = figures[place]
                about = plots.describe_maps([open_map], len(rows))
                with column:
                    show_figure(figure, f"{key} {labels[place]}", None, about, key=f"{key}-{place}")


def _explain(view: MapView, marks: str, headline: str) -> None:
    st.markdown(headlines.explain_maps(marks + view.terms, headline))


def _explain_marks(view: MapView, predicted: str) -> str:
    """What words, pale and grey points, and lines on the maps are."""
    is_shown, selection = slice(None) if view.within is None else view.within, view.selection
    names = {name for open_map in view.maps for name in open_map.kept.cluster_names} - {UNNAMED}
    coloured = [m for m, colour in zip(view.maps, view.colours, strict=True) if colour == CLUSTERS]
    has_grey = any((open_map.clusters.labels[is_shown] < 0).any() for open_map in coloured)
    is_beyond = any(open_map.clusters.n > MAX_CATEGORIES for open_map in coloured)
    has_pale = selection is not None and 0 < len(selection) < view.n_shown
    kind, _, column = view.colours[0].partition(":")
    n_grey = len(view.corpus.sizes(column)) - STAGE_CATEGORIES if kind == "label" else 0
    has_names = view.has_names and bool(names) and not (predicted and n_grey <= 0)
    notes = "Words name dense groups, called clusters. " * has_names
    notes += f"Grey: the {n_grey:,} rarest values of {plain(column)}. " * (n_grey > 0)
    if predicted:
        notes += f"{explain_prediction(predicted)} A cross marks a wrong prediction. "
    limit = f" or in one that is smaller than the {MAX_CATEGORIES} largest" * is_beyond
    notes += f"Grey points are in no cluster{limit}. " * (has_grey or is_beyond)
    notes += "Pale points are all other texts. " * has_pale
    return notes + "Lines lead from the sentence (star) to its nearest texts (rings). " * bool(
        view.placed
    )


def _describe_held(view: MapView, group: HeldGroup) -> str:
    traits = group.traits
    return headlines.describe_held_group(
        _name_methods(view, group),
        len(_list_held(view, group)),
        group.within,
        plain(textwrap.shorten(traits.phrase, PHRASE, placeholder=" …")),
        list(map(plain, traits.words)),
        traits.lengths,
    )


def _claim_held(view: MapView, group: HeldGroup) -> str:
    """The first paragraph; the second has its numbers."""
    return _describe_held(view, group).partition("\n\n")[0]


def _name_methods(view: MapView, group: HeldGroup) -> list[str]:
    """The method that holds a group together, and the other."""
    return name_methods(view.maps)[:: 1 - 2 * group.place]


def _list_held(view: MapView, group: HeldGroup) -> np.ndarray:
    return view.maps[group.place].cluster_rows(group.cluster)


def _is_selected(view: MapView, group: HeldGroup) -> bool:
    rows, selection = view.filter_rows(_list_held(view, group)), view.selection
    return selection is not None and len(rows) > 0 and np.array_equal(rows, selection.rows())


def _link_held(view: MapView, group: HeldGroup) -> None:
    """A link that selects the texts of a group on the maps."""
    rows, method = _list_held(view, group), _name_methods(view, group)[0]
    st.button(
        f"Select the {many(len(rows), 'text')} that {method} holds together",
        type="tertiary",
        icon=":material/select_all:",
        key=f"corpus-held-{group.place}",
        on_click=select,
        args=(
            Selection.from_rows(rows, view.corpus.n_texts),
            f"that {view.maps[group.place].label} holds together",
        ),
    )


def has_duplicates(view: MapView) -> bool:
    """Whether there are near-duplicates to list, or a button or a link to look for them."""
    corpus, embedder = view.corpus, view.maps[0].embedder
    if (st.session_state.get(LIST) or st.query_params.get(LIST)) == DUPLICATES:
        return True
    pairs = _peek_pairs(corpus, embedder)
    if pairs is None:
        return not corpus.is_large and not _task(corpus, embedder).is_quick
    return bool(pairs.findings.any())


# --- looking for them ----------------------------------------------------------------------------


def search_findings(view: MapView) -> None:
    """Look for near-duplicates and held groups, where that is quick; then run the page again."""
    embedder, is_new = view.maps[0].embedder, False
    task = _task(view.corpus, embedder)
    is_known = _peek_pairs(view.corpus, embedder) is not None
    if not is_known and task.is_quick and not view.corpus.is_large:
        is_new = _find_pairs(view.corpus, task) is not None
    if _peek_held(view) is None:
        is_new |= _find_held(view) is not None
    if is_new:
        run_page_again()


def _task(corpus: OpenCorpus, embedder: KeptEmbedder) -> FindPairs:
    return FindPairs(corpus.corpus.id, embedder, corpus.corpus.n_distinct)


def _peek_pairs(corpus: OpenCorpus, embedder: KeptEmbedder) -> SimilarPairs | None:
    return corpus.parts.peek(("pairs", embedder.id))


def _find_pairs(corpus: OpenCorpus, task: FindPairs) -> SimilarPairs | None:
    runs = SessionRuns(f"corpus-pairs-{task.embedder.id[:8]}")
    result = show_work(runs, runs.start(task), "Reading the embeddings …")
    if not isinstance(result, SimilarPairs):
        return None
    return corpus.parts.get(("pairs", task.embedder.id), lambda: result)


def _peek_held(view: MapView) -> tuple[HeldGroup, ...] | None:
    """The held groups of two methods; None until they are known."""
    if len(view.methods) < 2:
        return ()
    first, second = view.maps
    return first.parts.peek(("held", second.kept.id))


def _find_held(view: MapView) -> tuple[HeldGroup, ...] | None:
    first, second = view.maps
    runs = SessionRuns("corpus-held")
    task = FindHeldGroups(view.corpus.corpus.id, (first.kept.id, second.kept.id))
    groups = show_work(runs, runs.start(task), "Comparing the clusters of both methods …")
    if groups is None:
        return None
    return first.parts.get(("held", second.kept.id), lambda: groups)


# --- the list of near-duplicates -----------------------------------------------------------------


def show_duplicates(view: MapView) -> None:
    """Choose a method and a threshold, judge pairs at it, and choose which texts are kept."""
    if st.session_state.pop(_LINKED, False):
        point_to(".st-key-duplicates")
    row = st.container(horizontal=True, vertical_alignment="bottom", key="duplicates")
    label, embedder = _choose_embedder(view, row)
    is_first = embedder == view.maps[0].embedder
    pairs = _ask_pairs(view.corpus, embedder, label, is_first=is_first)
    if pairs is not None:
        with row:
            threshold = _choose_threshold(view.corpus, embedder, pairs)
            rule = choose_one(st.segmented_control, "Keep", RULES, key="duplicates-keep")
        _show_groups(view, embedder, label, pairs, threshold, rule)


def _choose_embedder(
    view: MapView, row: st.delta_generator.DeltaGenerator
) -> tuple[str, KeptEmbedder]:
    first = view.maps[0].embedder
    embedders = _list_embedders(view.corpus, first)
    labels = [label for label, embedder in embedders.items() if embedder == first]
    chosen = row.selectbox(
        "Method",
        list(embedders),
        index=list(embedders).index(labels[0]),
        key=METHOD,
        bind="query-params",
        width=METHOD_WIDTH,
    )
    label = chosen if chosen in embedders else labels[0]
    return label, embedders[label]


def _list_embedders(corpus: OpenCorpus, first: KeptEmbedder) -> Mapping[str, KeptEmbedder]:
    """By label, the embedders of all texts of a corpus; of two with equal settings, the first."""
    store = corpus.store
    embedders = [embedder for embedder in store.vectors.embedders() if embedder.spec]
    n_maps = len(KeptMaps(store).list_maps(corpus.corpus))  # more where texts were embedded

    def find_complete() -> tuple[KeptEmbedder, ...]:
        keys = store.keys(corpus.corpus)
        return tuple(e for e in embedders if store.vectors.has_vectors(e, keys).all())

    complete = *corpus.columns.get(("embedders", len(embedders), n_maps), find_complete), first
    specs = [EmbedderSpec.from_json(embedder.spec) for embedder in complete]
    labels = labels_by_spec(specs)
    return {labels[spec]: embedder for spec, embedder in zip(specs, complete, strict=True)}


def _ask_pairs(
    corpus: OpenCorpus, embedder: KeptEmbedder, label: str, *, is_first: bool
) -> SimilarPairs | None:
    """The pairs by a method; of many texts, a button starts the search."""
    pairs, task = _peek_pairs(corpus, embedder), _task(corpus, embedder)
    if pairs is not None:
        return pairs
    if corpus.is_large:
        st.caption(f"Near-duplicates are found among up to {MOST_TEXTS:,} texts.")
        return None
    if is_first and task.is_quick:  # `search_findings` is at it
        st.caption("Looking for near-duplicates …")
        return None
    runs = SessionRuns(f"corpus-pairs-{embedder.id[:8]}")
    if not task.is_quick and runs.find(task) is None:
        n_pairs = task.n_texts * (task.n_texts - 1) // 2
        st.caption(plain(f"By {label}, {many(n_pairs, 'pair')} have to be compared."))
        if not st.button("Find near-duplicates", key=f"corpus-look-{embedder.id[:8]}"):
            return None
    return _find_pairs(corpus, task)


def _choose_threshold(corpus: OpenCorpus, embedder: KeptEmbedder, pairs: SimilarPairs) -> float:
    """Ask for a threshold, which is one corpus's and one method's, also in the address."""
    first = max(pairs.first_threshold, 0.0)
    digits = 3 if first == round(first, 3) else 4
    return st.slider(
        "Threshold: cosine similarity",
        0.0,
        1.0,
        first,
        10**-digits,
        f"%.{digits}f",
        key=f"duplicates-{corpus.corpus.id[:4]}{embedder.id[:4]}",
        bind="query-params",
        width=THRESHOLD_WIDTH,
        help="At first, the one that best separates nearly equal wordings from others.",
    )


def _show_groups(
    view: MapView,
    embedder: KeptEmbedder,
    label: str,
    pairs: SimilarPairs,
    threshold: float,
    rule: str,
) -> None:
    corpus = view.corpus
    kept = _group(corpus, embedder, pairs, threshold, rule)
    if kept is None:
        st.info(
            "So many texts reach this threshold that grouping them takes too long. Raise it, or "
            "use `neuralviz corpus duplicates`."
        )
        st.button("Try again", on_click=lambda: st.session_state.pop(_SLOW, None))
        return
    sizes, n_similar = list(map(len, kept.groups)), int(pairs.has_duplicate(threshold).sum())
    sentence = headlines.describe_groups(
        plain(label), threshold, n_similar, sizes, pairs.n_texts, rule
    )
    with slide("duplicates", sentence):
        parts = EmbedderSpec.from_json(embedder.spec).singles
        terms = f"{explain_methods(part.method for part in parts)} {COSINE_IN_SHORT}"
        with hide_on_stage("pairs"):
            st.markdown("**Pairs at the threshold**")
            _list_pairs(corpus, pairs, threshold)
        _list_groups(corpus, kept, terms)
    _list_group(corpus, kept)
    settings = {"method": label, "threshold": number(threshold), "kept": f"the {rule}"}
    provenance = About(f"Near-duplicates in {corpus.corpus.name}", settings)
    take = partial(offer_table, place="slide-duplicates", provenance=provenance)
    name = corpus.corpus.name
    take(
        "Kept texts",
        lambda: corpus_table(corpus.store, corpus.corpus, rows=kept.remaining).to_pandas(),
        f"{name} kept",
    )
    take(
        "Removed texts",
        lambda: removed_table(corpus.store, corpus.corpus, kept).to_pandas(),
        f"{name} removed",
    )


def _group(
    corpus: OpenCorpus, embedder: KeptEmbedder, pairs: SimilarPairs, threshold: float, rule: str
) -> KeptTexts | None:
    """The texts that are kept; None where choosing them takes long."""
    chosen = read_chosen(corpus)
    choice = embedder.id, threshold, rule, chosen
    groups: KeptTexts | None = corpus.groups.peek(choice)
    if groups is not None or st.session_state.get(_SLOW) == choice:  # not at every click
        return groups

    def group() -> KeptTexts:
        end, kept = time.monotonic() + PATIENCE, (corpus.store, corpus.corpus, embedder)
        return group_duplicates(
            *kept, pairs, threshold, rule, chosen, should_stop=lambda: time.monotonic() > end
        )

    try:
        return corpus.groups.get(choice, group)
    except Stopped:
        st.session_state[_SLOW] = choice
        return None


def _list_pairs(corpus: OpenCorpus, pairs: SimilarPairs, threshold: float) -> None:
    """The pairs with cosines just above and just below the threshold."""
    n_above = pairs.count(threshold)
    places = pairs.places_around(threshold)
    if not len(places):
        st.caption("No two texts are similar enough.")
        return
    ends = np.stack([pairs.first[places], pairs.second[places]], axis=1)
    texts = [corpus.texts_at(rows) for rows in ends.T]
    differences = [name_difference(a, b) or "–" for a, b in zip(*texts, strict=True)]
    table = {
        "reaches it": np.where(places < n_above, "yes", "no"),
        "cosine": pairs.cosines[places],
        "difference": [shorten(difference, 120) for difference in differences],
        "text A": [shorten(text, 240) for text in texts[0]],
        "text B": [shorten(text, 240) for text in texts[1]],
    }

    def choose(place: int) -> None:
        select(Selection.from_rows(ends[place], corpus.n_texts), "in a pair", show=False)

    columns = {
        "reaches it": st.column_config.TextColumn(width=80),
        "cosine": st.column_config.NumberColumn(format="%.3f", width=70),
        "difference": st.column_config.TextColumn(width=190),
        "text A": st.column_config.TextColumn(width=PAIRED_WIDTH),
        "text B": st.column_config.TextColumn(width=PAIRED_WIDTH),
    }
    show_choosable_table(
        table, f"duplicates-pairs-{n_above}", choose, columns, name="duplicates-pairs"
    )


def _list_groups(corpus: OpenCorpus, kept: KeptTexts, terms: str) -> None:
    """The groups, the largest first; a click on one selects its texts and lists them."""
    groups = kept.groups[:LISTED]
    if not groups:
        st.caption("No group at this threshold.")
        return
    heads = np.array([rows[0] for rows in groups])
    furthest = np.array([rows[kept.cosines[rows].argmin()] for rows in groups])
    table = {
        "texts": list(map(len, groups)),
        "kept": [shorten(text, 240) for text in corpus.texts_at(heads)],
        "removed: least similar": [shorten(text, 240) for text in corpus.texts_at(furthest)],
        "cosine": [f"{cosine:.3f}" for cosine in kept.cosines[furthest]],
    }

    def choose(place: int) -> None:
        st.session_state[_GROUP] = int(heads[place])
        select(Selection.from_rows(groups[place], corpus.n_texts), "in a group", show=False)

    columns = {
        "texts": st.column_config.NumberColumn(width=60),
        "kept": st.column_config.TextColumn(width=GROUPED_WIDTH),
        "removed: least similar": st.column_config.TextColumn(width=GROUPED_WIDTH),
        "cosine": st.column_config.TextColumn(width=85),
    }
    show_first_rows(terms, table, "duplicates")
    digest = Selection.from_rows(kept.removed, corpus.n_texts).digest[:8]
    with hide_on_stage("groups"):
        show_choosable_table(
            table, f"duplicates-groups-{digest}", choose, columns, name="duplicates-groups"
        )
    if len(kept.groups) > LISTED:
        st.caption(f"The largest {LISTED:,} of {len(kept.groups):,} groups. Downloads hold all.")


def _list_group(corpus: OpenCorpus, kept: KeptTexts) -> None:
    """The texts of the chosen group, at first the largest; a click on one keeps it."""
    if not kept.groups:
        return
    heads = [rows[0] for rows in kept.groups[:LISTED]]
    chosen = remember_number(_GROUP, range(-1, corpus.n_texts), -1, corpus.corpus.id)
    # none at another threshold, or where nobody has chosen
    listed = np.flatnonzero(np.array(heads) == kept.kept[chosen]) if chosen >= 0 else np.zeros(0)
    rows = kept.groups[listed[0] if len(listed) else 0]
    st.caption("Texts of this group. Select the one to keep.")
    table = {
        "kept": np.where(rows == rows[0], "yes", "no"),
        "cosine": kept.cosines[rows],
        "text": [shorten(text, 240) for text in corpus.texts_at(rows)],
    }
    columns = {
        "kept": st.column_config.TextColumn(width=60),
        "cosine": st.column_config.NumberColumn(format="%.3f", width=70),
        "text": st.column_config.TextColumn(width="large"),
    }
    show_choosable_table(
        table,
        f"duplicates-group-{rows[0]}-{len(rows)}",
        lambda place: _keep_instead(corpus, rows, int(rows[place])),
        columns,
        name="duplicates-texts",
    )


# --- which texts a person chose to keep ----------------------------------------------------------


def _chosen_key(corpus: OpenCorpus) -> str:
    """In the address: the numbers of texts, from 1, that are kept whatever the rule."""
    return f"kept-{corpus.corpus.id[:4]}"


def read_chosen(corpus: OpenCorpus) -> tuple[int, ...]:
    """The rows of the texts that a person chose to keep."""
    numbers = read_numbers(st.query_params.get(_chosen_key(corpus), ""))
    return tuple(dict.fromkeys(number - 1 for number in numbers if number <= corpus.n_texts))


def _keep_instead(corpus: OpenCorpus, group: Sequence[int] | np.ndarray, row: int) -> None:
    chosen = [r for r in read_chosen(corpus) if r not in group]
    write({_chosen_key(corpus): ",".join(str(r + 1) for r in (*chosen, row))})
    st.session_state[_GROUP] = row
