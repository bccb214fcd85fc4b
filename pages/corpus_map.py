"""Corpus map: many texts as points, by one method or by two side by side."""

from __future__ import annotations

import streamlit as st

from neuralviz.embedders.labels import method_label
from neuralviz.errors import NeuralvizError
from neuralviz.maps.example import NAME, add_example, add_example_once
from neuralviz.maps.mapping import check_enough_texts
from neuralviz.store.corpora import CorpusStore
from neuralviz.ui.corpus.choose import ADDED, CORPUS, choose_corpus
from neuralviz.ui.corpus.kept import MapChoice, find_map, n_embedded, open_corpus, open_map
from neuralviz.ui.corpus.lists import show_lists
from neuralviz.ui.corpus.maps import forget_selection, search_bar, show_maps
from neuralviz.ui.corpus.settings import choose_maps
from neuralviz.ui.corpus.work import current_work, show_work, submit, warm_up
from neuralviz.ui.page import page_header, plain, show_error

LIVE_SECONDS = 1.0

page_header(
    "Corpus map",
    "Many texts as points, texts of like vectors side by side. **Two methods make two maps**; see "
    "which texts they put in other company.",
    r"$$\min_Y \sum_{i \ne j} v_{ij} \log\frac{v_{ij}}{w_{ij}} + (1 - v_{ij})"
    r"\log\frac{1 - v_{ij}}{1 - w_{ij}},\qquad w_{ij} = \frac{1}{1 + a \lVert y_i - y_j "
    r"\rVert^{2b}}$$"
    "\n\nUMAP: $v_{ij}$ says how surely two texts are neighbours by their vectors, $w_{ij}$ how "
    "close their points $y$ lie; the points move until both agree.",
    "Each **point** is a text. On a map by UMAP or t-SNE **only nearness means something**: "
    "directions, empty space and the size of a group do not. **Colours** show a label, a number or "
    "the clusters found on the map. Point at a text to read it, click it for its nearest texts, "
    "draw around several with the **lasso**: all maps share the selection. A search **by meaning** "
    "puts a sentence of yours on the map, where its vector belongs.",
    "UMAP: McInnes, Healy and Melville 2018, section 3; k-nearest-neighbour accuracy as in "
    "González-Márquez et al.; cluster words by class TF-IDF, Grootendorst 2022.",
)
warm_up()


@st.fragment(run_every=LIVE_SECONDS)
def _live_work() -> None:
    work = current_work(corpus)
    if work is not None:
        show_work(work)


def _told(choice: MapChoice) -> str:
    """What there is to do for a map."""
    n, method = corpus.n_distinct, method_label(choice.spec)
    done = n_embedded(corpus, choice)
    said = f"{method}: {n:,} different texts"
    if done == n:
        return f"{said}, all of them embedded"
    if done:
        said = f"{method}: {done:,} of {n:,} different texts are embedded"
    return said + ", each of which is learnt: this takes a while" * choice.spec.learns


@st.fragment
def _explore() -> None:
    try:
        colour = search_bar(opened, maps)
        above = st.container()
        show_lists(opened, maps)  # first: a text can be read while its map is being drawn
        with above:
            show_maps(opened, maps, colour)
    except NeuralvizError as error:  # deleted in another window, say
        show_error(error)


try:
    store = CorpusStore()
    add_example_once(store)
    corpora = sorted(store.corpora(), key=lambda one: one.name == NAME)  # one's own come first
except NeuralvizError as error:
    show_error(error)
    st.stop()
added = st.session_state.pop(ADDED, None)
if added is not None:
    st.session_state[CORPUS] = added
corpus = choose_corpus(corpora)
if corpus is None:
    st.info("No corpus is kept. Add one of yours, or open the example.")
    if st.button("Open the example", type="primary"):
        try:
            add_example(store)
        except NeuralvizError as error:
            show_error(error)
        else:
            st.rerun()
    st.stop()
if st.session_state.get("corpus-shown") != corpus.id:
    if "corpus-shown" in st.session_state:
        forget_selection()
    st.session_state["corpus-shown"] = corpus.id

choices = choose_maps()
if choices is None:
    st.stop()
try:
    found = [find_map(corpus, choice) for choice in choices]
    missing = [choice for choice, kept in zip(choices, found, strict=True) if kept is None]
    opened = open_corpus(corpus)
    maps = [open_map(corpus, kept) for kept in found if kept is not None]
except NeuralvizError as error:
    show_error(error)
    st.stop()
work = current_work(corpus)
is_working = work is not None and not work.job.is_over
too_few = ""
try:
    check_enough_texts(corpus)
except NeuralvizError as error:
    too_few = str(error)
if missing and too_few:
    st.info(plain(too_few))
elif missing and not is_working:
    row = st.container(horizontal=True, vertical_alignment="center")
    label = "Make the map" if len(missing) == 1 else "Make the maps"
    pressed = row.button(label, type="primary", icon=":material/map:")
    row.caption(plain(" · ".join(_told(choice) for choice in missing)))
    if pressed or added is not None:
        submit(corpus, missing if pressed else missing[:1])
        st.rerun()
if work is not None and (is_working or (missing and work.job.status != "done")):
    if is_working:
        _live_work()
    else:
        show_work(work)
if maps:
    _explore()
