"""The page of the corpus map below its title."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.specs import labels_by_spec
from neuralviz.errors import NeuralvizError
from neuralviz.maps import projecting
from neuralviz.maps.example import NAME, add_example, add_example_once
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import imported_by_label
from neuralviz.training.example import NAME as TEXTBOOKS
from neuralviz.ui.corpora import corpus_store
from neuralviz.ui.corpus.choose import ADDED, choose_corpus
from neuralviz.ui.corpus.labels import describe_maps, search_samples, show_accuracy
from neuralviz.ui.corpus.lists import show_lists
from neuralviz.ui.corpus.making import choose_colour, choose_maps, find_saved, make_missing
from neuralviz.ui.corpus.opened import open_corpus, open_maps
from neuralviz.ui.corpus.search import name_nearest, place_sentence, show_search
from neuralviz.ui.corpus.selection import (
    choose_row,
    chosen_row,
    forget_selection,
    read_new_value,
    write_value,
)
from neuralviz.ui.corpus.show import Maps, list_colours, show_maps
from neuralviz.ui.limits import is_served
from neuralviz.ui.pace import WARMING
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.stage import show_headline, show_on_stage, slide

if TYPE_CHECKING:
    from neuralviz.store.corpora import Corpus

TEXT = "text"  # in the address: the number of the chosen text, from 1
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_EXAMPLES = (NAME, TEXTBOOKS)  # listed after the user's corpora; the example with maps comes first
_LAST_CORPUS = "corpus-shown"  # session state: the id of the last corpus shown


def show() -> None:
    """Draw the page: a corpus, its maps, search and lists."""
    try:
        add_example_once(CorpusStore())
        ranks = {name: rank for rank, name in enumerate(_EXAMPLES)}
        corpora = sorted(corpus_store().corpora(), key=lambda saved: ranks.get(saved.name, -1))
        corpus = choose_corpus(corpora)
        if corpus is None:
            _offer_example()
        else:
            _show_corpus(corpus)
    except NeuralvizError as error:
        show_error(error)
    if is_served():
        WARMING.call_soon(projecting.warm_up, first=True)  # after what the page itself reads


def _offer_example() -> None:
    st.info("No corpora yet. Add one, or open the example.")
    if st.button("Open the example", type="primary"):
        add_example(CorpusStore())
        st.rerun()


def _show_corpus(corpus: Corpus) -> None:
    """The widgets for the maps of a corpus, those that are missing, and those that are there."""
    if st.session_state.get(_LAST_CORPUS, corpus.id) != corpus.id:
        forget_selection()
    st.session_state[_LAST_CORPUS] = corpus.id
    is_new = st.session_state.pop(ADDED, None) == corpus.id
    places = choose_maps(imported_by_label(CorpusStore(), corpus))
    if places is None:
        return
    saved = {place.choice: find_saved(corpus, place.choice) for place in places}
    kept = {place: found for place in places if (found := saved[place.choice].map) is not None}
    opened, maps = open_corpus(corpus), open_maps(corpus, list(kept.values()))
    options = list_colours(opened, maps)
    page_maps = Maps(opened, maps, [choose_colour(place, options) for place in kept])
    make_missing(corpus, saved, is_new=is_new)
    names = labels_by_spec(choice.spec for choice in saved)
    for choice, state in saved.items():
        if state.may_be_outdated:
            st.caption(
                plain(
                    f"{names[choice.spec]}: the model is not loaded. If its files have "
                    "changed since this map was made, the map is outdated."
                )
            )
    if maps:
        _explore(page_maps)


@st.fragment
def _explore(page_maps: Maps) -> None:
    try:
        corpus, maps, n_texts = page_maps.corpus, page_maps.maps, page_maps.corpus.corpus.n_texts
        linked = read_new_value(TEXT)
        if _NUMBER.fullmatch(linked) and int(linked) <= n_texts:
            choose_row(int(linked) - 1, show=False)
        with slide("maps"):
            headline_area, map_area = st.container(), st.container()
        with show_on_stage("search"):
            within, named = show_search(corpus)
            nearest_area = st.container()
        with headline_area:
            show_headline(describe_maps(corpus, maps, is_filtered=within is not None), key="maps")
        with map_area:
            placed = place_sentence(maps)
        with nearest_area:
            name_nearest(corpus, maps, placed, within)
        accuracy_area = st.container()
        # before the maps: a text can be read while they are drawn
        show_lists(page_maps, placed, within)
        with map_area:
            show_maps(page_maps, placed, within, named=named)
        with accuracy_area:
            search_samples(maps)
            show_accuracy(corpus, maps)
        row = chosen_row(n_texts)
        write_value(TEXT, "" if row is None else str(row + 1))
    except NeuralvizError as error:  # for example, deleted in another window
        show_error(error)
