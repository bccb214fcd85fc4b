"""The page of the corpus map below its title."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.specs import labels_by_spec
from neuralviz.errors import NeuralvizError
from neuralviz.maps import projecting
from neuralviz.maps.example import NAME, add_example, add_example_once
from neuralviz.maps.mapping import check_enough_texts
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.example import NAME as TEXTBOOKS
from neuralviz.ui.corpora import corpus_store
from neuralviz.ui.corpus.address import read_linked_row
from neuralviz.ui.corpus.choose import CORPUS, choose_corpus
from neuralviz.ui.corpus.colours import colour_options
from neuralviz.ui.corpus.following import finish_following
from neuralviz.ui.corpus.importing import ADDED, imported_methods, tell_imported
from neuralviz.ui.corpus.kept import open_corpus, open_maps
from neuralviz.ui.corpus.labels import describe_maps, describe_sample, show_accuracy
from neuralviz.ui.corpus.lists import show_lists
from neuralviz.ui.corpus.maps import show_maps
from neuralviz.ui.corpus.samples import find_samples
from neuralviz.ui.corpus.saved_maps import count_embedded, find_saved
from neuralviz.ui.corpus.searching import (
    forget_linked_search,
    say_nearest,
    show_placing,
    show_search,
)
from neuralviz.ui.corpus.selecting import choose_row, forget_selection
from neuralviz.ui.corpus.settings import choose_colour, choose_maps
from neuralviz.ui.corpus.work import (
    current_run,
    describe_lost_run,
    find_makeable,
    is_of_interest,
    show_run,
    start_maps,
)
from neuralviz.ui.headline import show_headline
from neuralviz.ui.pace import WARMING
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.session import is_served
from neuralviz.ui.stage import show_on_stage, slide
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.jobs.mapping import MapChoice
    from neuralviz.store.corpora import Corpus
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus
    from neuralviz.ui.corpus.saved_maps import Saved

_EXAMPLES = (NAME, TEXTBOOKS)  # listed after the user's corpora; the example with maps comes first
_LAST_CORPUS = "corpus-shown"  # session state: the id of the last corpus shown


def show() -> None:
    """Draw the page: a corpus, its maps, search and lists."""
    _show()
    if is_served():
        WARMING.call_soon(projecting.warm_up, first=True)  # after what the page itself reads


def _show() -> None:
    try:
        store = CorpusStore()
        add_example_once(store)
        stored = corpus_store().corpora()
        ranks = {name: rank for rank, name in enumerate(_EXAMPLES)}
        corpora = sorted(stored, key=lambda corpus: ranks.get(corpus.name, -1))
    except NeuralvizError as error:
        show_error(error)
        return
    added = st.session_state.pop(ADDED, None)
    if added is not None:
        st.session_state[CORPUS] = added
    corpus = choose_corpus(corpora)
    if corpus is None:
        _offer_example(store)
        return
    if st.session_state.get(_LAST_CORPUS) != corpus.id:
        if _LAST_CORPUS in st.session_state:
            forget_selection()
        st.session_state[_LAST_CORPUS] = corpus.id
    tell_imported()
    try:
        places = choose_maps(imported_methods(corpus))
        if places is None:
            return
        saved = {place.choice: find_saved(corpus, place.choice) for place in places}
        opened = open_corpus(corpus)
        placed_maps = [
            (place, kept) for place in places if (kept := saved[place.choice].map) is not None
        ]
        maps = open_maps(corpus, [kept for _, kept in placed_maps])
        options = colour_options(opened, maps)
        colours = [choose_colour(place, options) for place, _ in placed_maps]
    except NeuralvizError as error:
        show_error(error)
        return
    _make_missing(corpus, saved, is_new=added is not None)
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
        _explore(opened, maps, colours)


def _offer_example(store: CorpusStore) -> None:
    st.info("No corpora yet. Add one, or open the example.")
    if st.button("Open the example", type="primary"):
        try:
            add_example(store)
        except NeuralvizError as error:
            show_error(error)
        else:
            st.rerun()


def _make_missing(corpus: Corpus, saved: Mapping[MapChoice, Saved], *, is_new: bool) -> None:
    """Offer to make the missing maps, or show their progress.

    The first map of a new corpus is made without a press of the button.
    """
    missing = [choice for choice, state in saved.items() if state.map is None]
    run = current_run(corpus)
    makeable = find_makeable(run, missing)
    too_few = ""
    try:
        check_enough_texts(corpus)
    except NeuralvizError as error:
        too_few = str(error)
    if missing and too_few:
        st.info(plain(too_few))
    elif makeable:
        row = st.container(horizontal=True, vertical_alignment="center")
        pressed = row.button(
            _button_label(list(saved), makeable), type="primary", icon=":material/map:"
        )
        names = labels_by_spec(choice.spec for choice in saved)
        work = [
            _describe_work(corpus, choice, names[choice.spec], saved[choice]) for choice in makeable
        ]
        row.caption(plain(" · ".join(work)))
        if pressed or is_new:
            start_maps(corpus, makeable if pressed else makeable[:1])
            st.rerun()
    lost = describe_lost_run(corpus) if missing and run is None else ""
    if lost:
        st.info(lost)
    if run is not None and is_of_interest(run, missing):
        show_run(run)
    if run is not None and run.is_over and run.result.unread:
        st.warning(plain(run.result.unread))


def _button_label(choices: Sequence[MapChoice], missing: Sequence[MapChoice]) -> str:
    """The label of the button that makes the missing maps."""
    if len(choices) == 1:
        return "Make the map"
    if len(missing) > 1:
        return "Make the maps"
    return f"Make the {'first' if missing[0] == choices[0] else 'second'} map"


def _describe_work(corpus: Corpus, choice: MapChoice, method: str, saved: Saved) -> str:
    """A phrase on what is left to do for a map: texts to embed, and time."""
    n = corpus.n_distinct
    n_done = count_embedded(corpus, saved.embedders)
    if saved.is_outdated:
        method += " (the model has changed since the saved map was made)"
    counts = f"{method}: {many(n, 'different text')}"
    if n_done == n:
        return f"{counts}, all embedded"
    if n_done:
        counts = f"{method}: {n_done:,} of {n:,} different texts embedded"
    if not choice.spec.learns:
        return counts
    return f"{counts}; the time left is shown once the first texts are embedded"


@st.fragment
def _explore(corpus: OpenCorpus, maps: Sequence[OpenMap], colours: Sequence[str]) -> None:
    try:
        row = read_linked_row(corpus.corpus.n_texts)
        if row is not None:
            choose_row(row)
        with slide("maps"):
            headline, map_area = st.container(), st.container()
        with show_on_stage("search"):
            within, named = show_search(corpus)
            nearest_area = st.container()
        with headline:
            if corpus.is_large:
                sentence = describe_sample(corpus, maps)
            else:
                sentence = describe_maps(corpus, maps, is_filtered=within is not None)
            show_headline(sentence, key="maps")
        with map_area:
            placed = show_placing(maps)
        with nearest_area:
            say_nearest(corpus, maps, placed, within)
        accuracy_area = st.container()
        # before the maps: a text can be read while they are drawn
        show_lists(corpus, maps, placed, within)
        with map_area:
            show_maps(corpus, maps, colours, placed, within, named=named)
        with accuracy_area:
            if corpus.is_large:
                find_samples(maps)
            show_accuracy(corpus, maps)
        finish_following()
        forget_linked_search()
    except NeuralvizError as error:  # for example, deleted in another window
        forget_linked_search()
        show_error(error)
