"""The search above the maps: texts with some words are selected, a sentence is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.labels import method_labels, spoken
from neuralviz.embedders.specs import models_now
from neuralviz.jobs.mapping import PlaceSentence
from neuralviz.maps.selection import Selection
from neuralviz.plots.theme import shorten
from neuralviz.ui.compare.settings import needs_asking
from neuralviz.ui.corpus import address
from neuralviz.ui.corpus.filters import choose_filter
from neuralviz.ui.corpus.following import NEAREST, THIS
from neuralviz.ui.corpus.selecting import (
    ASKED,
    FOUND,
    LINKED,
    SEARCH,
    SELECTED,
    SENTENCE,
    deselect,
    select,
    selected,
)
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import Words, run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import joined, many, search_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from neuralviz.jobs.mapping import PlacedSentence
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

HOW = "corpus-how"
WORDS, MEANING = "By words", "By meaning"
_BY_MEANING = "meaning"  # in the address
REMEMBERED = 50  # sentences, with where they landed
MOST_SEARCHED = 500  # characters
WAIT = 60.0  # seconds for another map to be done
SAID = 4  # words of a search that are named
PATIENCE = 0.3  # seconds: a sentence is placed by then on most maps


def search_bar(corpus: OpenCorpus) -> tuple[np.ndarray | None, bool]:
    """A search, a filter, and whether clusters are named. The search is in the address.

    Returns:
        [text] whether a text is shown, None where all are; and whether the clusters' names stand on
        the maps.
    """
    how, query = st.session_state.get(ASKED, (WORDS, ""))
    if linked := address.opened(address.SEARCHED):
        by_meaning = st.query_params.get(address.BY) == _BY_MEANING
        st.session_state[LINKED] = MEANING if by_meaning else WORDS, " ".join(linked.split())
    if LINKED in st.session_state:
        how, query = st.session_state[LINKED]
        if linked or not st.session_state.get(SEARCH):  # else another search was asked for
            st.session_state[HOW], st.session_state[SEARCH] = how, query
    st.session_state.setdefault(HOW, how)
    st.session_state.setdefault(SEARCH, query)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    box = row.container(width="stretch", key=f"{SEARCH}-box")
    st.html(f"<style>:has(> .st-key-{SEARCH}-box) {{ min-width: min(100%, 24rem) }}</style>")
    how = (
        row.segmented_control(
            "Search mode", [WORDS, MEANING], required=True, key=HOW, label_visibility="collapsed"
        )
        or WORDS
    )
    query = box.text_input(
        "Search",
        key=SEARCH,
        max_chars=MOST_SEARCHED,
        placeholder="Find words in the texts" if how == WORDS else
        "Enter a sentence to see where it lands",
    ).strip()  # fmt: skip
    if (how, query) != st.session_state.get(ASKED, (WORDS, "")):
        _search(corpus, how, query)
        st.session_state[ASKED] = how, query  # a search that was cut off is made again
    address.put(address.SEARCHED, query)
    is_linked = address.SEARCHED in st.query_params  # not where it is too long
    address.put(address.BY, _BY_MEANING if is_linked and how == MEANING else "")
    with row:
        within, said = choose_filter(corpus)
        named = st.toggle("Cluster names", value=True, key="names", bind="query-params")
    if said:
        st.markdown(plain(said))
    if query and how == WORDS and (found := _found_in_words(corpus, query, within)):
        st.caption(plain(found))
    return within, named


def search_shown() -> None:
    """The page was drawn to its end: the browser has the search of a link in its box.

    What comes sooner runs the page again, and the browser may still have an empty box then.
    """
    st.session_state.pop(LINKED, None)


def _search(corpus: OpenCorpus, how: str, query: str) -> None:
    """Select the texts with some words, or have a sentence placed; nothing where there is none.

    What was selected by other means stays, unless a text has the words.
    """
    st.session_state.pop(SENTENCE, None)
    before = st.session_state.pop(FOUND, None)
    if query and how == WORDS:
        found = Selection.from_rows(corpus.find(query), corpus.corpus.n_texts)
        st.session_state[FOUND] = found
        if len(found):
            select(found, _containing(query))
            return
    elif query:
        st.session_state[SENTENCE] = query
    if before is not None and st.session_state.get(SELECTED) is before:
        deselect()


def _containing(query: str) -> str:
    """What was searched for, each of the words in quotation marks."""
    terms = list(dict.fromkeys(search_terms(query))) or [query]
    said = [f"“{shorten(term, 40)}”" for term in terms[:SAID]]
    if len(terms) > SAID:
        said.append(many(len(terms) - SAID, "more word"))
    return f"containing {joined(said)}"


def _found_in_words(corpus: OpenCorpus, query: str, within: np.ndarray | None) -> str:
    """What a search by words has found; empty once something else is selected."""
    found: Selection | None = st.session_state.get(FOUND)
    if found is None:
        return ""
    if not len(found):
        return f"Found no text {_containing(query)}."
    if st.session_state.get(SELECTED) is not found:
        return ""
    chosen = selected(corpus.corpus.n_texts, within)
    if not chosen:
        return f"The filter shows no text {_containing(query)}."
    n = many(len(chosen), "text")
    return f"Found {n} {_containing(query)}; see “{THIS}” below the map."


def show_placing(maps: Sequence[OpenMap]) -> dict[str, PlacedSentence]:
    """Where the sentence that is searched for lands, by map; panels for what is under way."""
    sentence: str = st.session_state.get(SENTENCE, "")
    found: dict[str, PlacedSentence] = {}
    for shown in maps if sentence else ():
        if shown.spec.is_imported:
            st.info(
                plain(
                    f"A new sentence cannot be placed on the map by “{shown.label}”: its "
                    "vectors were imported, so there is no model to embed the sentence with."
                )
            )
            continue
        runs = SessionRuns(f"corpus-placing-{shown.kept.id}", kept=REMEMBERED)
        task = PlaceSentence(
            shown.corpus.id, shown.kept.id, shown.spec, sentence, models_now((shown.spec,)), WAIT
        )
        if runs.of(task) is None and needs_asking((shown.spec,)):
            st.info(plain(f"The model of “{shown.label}” is not loaded."))
            if not st.button("Load the model", key=f"corpus-load-{shown.kept.id}"):
                continue
        run = runs.start(task)
        run_panel(
            runs,
            run,
            lambda _result, _live: None,
            words=Words(f"Placing the sentence on the map by {shown.label} …", done=lambda _: ""),
            patience=PATIENCE,
        )
        if run.result is not None:
            found[shown.kept.id] = run.result
    return found


def say_nearest(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    placed: Mapping[str, PlacedSentence],
    within: np.ndarray | None,
) -> None:
    """The text that is nearest to the sentence by each map's method, of those that are shown."""
    names = _names(maps)
    methods: dict[str, list[str]] = {}
    for shown, name in zip(maps, names, strict=True):
        if shown.kept.id in placed:
            near = placed[shown.kept.id].near.indices[0]
            near = (near if within is None else near[within[near]])[:1]
            for text in corpus.texts_at(near):
                by = methods.setdefault(text, [])
                if name not in by:
                    by.append(name)
    nearest = [
        f"“{shorten(text, 120)}”" + (f" by {joined(by)}" if len(set(names)) > 1 else "")
        for text, by in methods.items()
    ]
    if nearest:
        st.caption(plain(f"The nearest text is {joined(nearest)}. See “{NEAREST}” below the map."))


def _names(maps: Sequence[OpenMap]) -> list[str]:
    """What tells apart by which map a text is the nearest: the method, or else the distance."""
    specs = list(dict.fromkeys(one.spec for one in maps))
    metrics = [one.kept.settings.metric for one in maps]
    if len(specs) == 1 and len(set(metrics)) > 1:
        return [f"{metric} distance" for metric in metrics]
    names = dict(zip(specs, spoken(method_labels(specs)), strict=True))
    return [names[one.spec] for one in maps]
