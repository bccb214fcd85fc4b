"""The search above the maps: it selects texts by words, or places a sentence on the maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.specs import list_models, method_labels, short_labels
from neuralviz.jobs.mapping import PlaceSentence
from neuralviz.maps.filtering import Selection
from neuralviz.plots.theme import shorten
from neuralviz.ui.compare.settings import needs_asking
from neuralviz.ui.corpus import address
from neuralviz.ui.corpus.filters import choose_filter
from neuralviz.ui.corpus.following import NEAREST, SELECTION
from neuralviz.ui.corpus.selecting import (
    LAST_SEARCH,
    LINKED,
    SEARCH,
    SEARCH_RESULT,
    SELECTED,
    SENTENCE,
    current_selection,
    deselect,
    select,
)
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import joined, many, search_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from neuralviz.jobs.mapping import PlacedSentence
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

MODE = "corpus-how"
WORDS, MEANING = "By words", "By meaning"
_BY_MEANING = "meaning"  # in the address
REMEMBERED = 50  # placed sentences that the session keeps
MOST_SEARCHED = 500  # characters
WAIT = 60.0  # seconds for another map to be done
MOST_TERMS = 4  # words of a search that a sentence quotes
PATIENCE = 0.3  # seconds: enough for most maps


def show_search(corpus: OpenCorpus) -> tuple[np.ndarray | None, bool]:
    """Widgets for a search, a filter and the clusters' names. The search is in the address.

    Returns:
        [text] whether a text is shown, None where all are; and whether the clusters' names stand on
        the maps.
    """
    mode, query = st.session_state.get(LAST_SEARCH, (WORDS, ""))
    if linked := address.read_link(address.QUERY):
        by_meaning = st.query_params.get(address.SEARCH_MODE) == _BY_MEANING
        st.session_state[LINKED] = MEANING if by_meaning else WORDS, " ".join(linked.split())
    if LINKED in st.session_state:
        mode, query = st.session_state[LINKED]
        if linked or not st.session_state.get(SEARCH):  # else the user has typed another search
            st.session_state[MODE], st.session_state[SEARCH] = mode, query
    st.session_state.setdefault(MODE, mode)
    st.session_state.setdefault(SEARCH, query)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    box = row.container(width="stretch", key=f"{SEARCH}-box")
    st.html(f"<style>:has(> .st-key-{SEARCH}-box) {{ min-width: min(100%, 24rem) }}</style>")
    mode = (
        row.segmented_control(
            "Search mode", [WORDS, MEANING], required=True, key=MODE, label_visibility="collapsed"
        )
        or WORDS
    )
    query = box.text_input(
        "Search",
        key=SEARCH,
        max_chars=MOST_SEARCHED,
        placeholder="Find words in the texts" if mode == WORDS else
        "Enter a sentence to see where it lands",
    ).strip()  # fmt: skip
    if (mode, query) != st.session_state.get(LAST_SEARCH, (WORDS, "")):
        _search(corpus, mode, query)
        st.session_state[LAST_SEARCH] = mode, query  # last: a search that was cut off is repeated
    address.write_link(address.QUERY, query)
    is_linked = address.QUERY in st.query_params  # not where it is too long
    address.write_link(address.SEARCH_MODE, _BY_MEANING if is_linked and mode == MEANING else "")
    with row:
        within, sentence = choose_filter(corpus)
        named = st.toggle("Cluster names", value=True, key="names", bind="query-params")
    if sentence:
        st.markdown(plain(sentence))
    if query and mode == WORDS and (message := _describe_found(corpus, query, within)):
        st.caption(plain(message))
    return within, named


def forget_linked_search() -> None:
    """Note that the page was drawn to its end, so the browser's box has the link's search.

    An earlier click runs the page again while the browser's box may still be empty.
    """
    st.session_state.pop(LINKED, None)


def _search(corpus: OpenCorpus, mode: str, query: str) -> None:
    """Select the texts that contain the words, or have the sentence placed.

    What was selected by other means stays, unless a text has the words.
    """
    st.session_state.pop(SENTENCE, None)
    before = st.session_state.pop(SEARCH_RESULT, None)
    if query and mode == WORDS:
        selection = Selection.from_rows(corpus.find(query), corpus.corpus.n_texts)
        st.session_state[SEARCH_RESULT] = selection
        if len(selection):
            select(selection, _quote_query(query))
            return
    elif query:
        st.session_state[SENTENCE] = query
    if before is not None and st.session_state.get(SELECTED) is before:
        deselect()


def _quote_query(query: str) -> str:
    """The words of a search in quotation marks, such as ``containing “ice” and “snow”``."""
    terms = list(dict.fromkeys(search_terms(query))) or [query]
    quoted = [f"“{shorten(term, 40)}”" for term in terms[:MOST_TERMS]]
    if len(terms) > MOST_TERMS:
        quoted.append(many(len(terms) - MOST_TERMS, "more word"))
    return f"containing {joined(quoted)}"


def _describe_found(corpus: OpenCorpus, query: str, within: np.ndarray | None) -> str:
    """A sentence on what a search by words found; empty once something else is selected."""
    selection: Selection | None = st.session_state.get(SEARCH_RESULT)
    if selection is None:
        return ""
    if not len(selection):
        return f"Found no text {_quote_query(query)}."
    if st.session_state.get(SELECTED) is not selection:
        return ""
    chosen = current_selection(corpus.corpus.n_texts, within)
    if not chosen:
        return f"The filter shows no text {_quote_query(query)}."
    n = many(len(chosen), "text")
    return f"Found {n} {_quote_query(query)}; see “{SELECTION}” below the map."


def show_placing(maps: Sequence[OpenMap]) -> dict[str, PlacedSentence]:
    """Where the sentence lands, by the id of a map; panels for maps still at work."""
    sentence: str = st.session_state.get(SENTENCE, "")
    placements: dict[str, PlacedSentence] = {}
    for open_map in maps if sentence else ():
        if open_map.spec.is_imported:
            st.info(
                plain(
                    f"A new sentence cannot be placed on the map by “{open_map.label}”: its "
                    "vectors were imported, so there is no model to embed the sentence with."
                )
            )
            continue
        runs = SessionRuns(f"corpus-placing-{open_map.kept.id}", kept=REMEMBERED)
        task = PlaceSentence(
            open_map.corpus.id,
            open_map.kept.id,
            open_map.spec,
            sentence,
            list_models((open_map.spec,)),
            WAIT,
        )
        if runs.find(task) is None and needs_asking((open_map.spec,)):
            st.info(plain(f"The model of “{open_map.label}” is not loaded."))
            if not st.button("Load the model", key=f"corpus-load-{open_map.kept.id}"):
                continue
        run = runs.start(task)
        show_run_panel(
            runs,
            run,
            lambda _result, _live: None,
            sentences=RunSentences(
                f"Placing the sentence on the map by {open_map.label} …", describe_done=lambda _: ""
            ),
            patience=PATIENCE,
        )
        if run.result is not None:
            placements[open_map.kept.id] = run.result
    return placements


def say_nearest(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    placed: Mapping[str, PlacedSentence],
    within: np.ndarray | None,
) -> None:
    """Name the shown text that is nearest to the sentence by each map's method."""
    names = _distinct_names(maps)
    methods: dict[str, list[str]] = {}
    for open_map, name in zip(maps, names, strict=True):
        if open_map.kept.id in placed:
            near = placed[open_map.kept.id].near.indices[0]
            near = (near if within is None else near[within[near]])[:1]
            for text in corpus.texts_at(near):
                text_methods = methods.setdefault(text, [])
                if name not in text_methods:
                    text_methods.append(name)
    nearest = [
        f"“{shorten(text, 120)}”" + (f" by {joined(text_methods)}" if len(set(names)) > 1 else "")
        for text, text_methods in methods.items()
    ]
    if nearest:
        st.caption(plain(f"The nearest text is {joined(nearest)}. See “{NEAREST}” below the map."))


def _distinct_names(maps: Sequence[OpenMap]) -> list[str]:
    """Names that distinguish the maps in a sentence: their methods, or else their distances."""
    specs = list(dict.fromkeys(open_map.spec for open_map in maps))
    metrics = [open_map.kept.settings.metric for open_map in maps]
    if len(specs) == 1 and len(set(metrics)) > 1:
        return [f"{metric} distance" for metric in metrics]
    names = dict(zip(specs, short_labels(method_labels(specs)), strict=True))
    return [names[open_map.spec] for open_map in maps]
