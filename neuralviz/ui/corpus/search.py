"""What a visitor searches for, filters, clicks and selects; the address restores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.embedders.specs import list_models, method_labels, short_labels
from neuralviz.headlines import explain_methods
from neuralviz.jobs import Run
from neuralviz.jobs.mapping import FindNeighbours, PlacedSentence, PlaceSentence
from neuralviz.maps.mapping import SAMPLED, SampledNeighbours
from neuralviz.maps.neighbours import K, Neighbours
from neuralviz.maps.opened import OpenCorpus, OpenMap, Selection, TextFilter
from neuralviz.plots.theme import shorten
from neuralviz.reading.dates import find_day
from neuralviz.ui.address import is_lost, mark_lost, read_new, read_numbers, run_page_again, write
from neuralviz.ui.choices import REMEMBERED, choose_one, needs_asking
from neuralviz.ui.inputs import NO_VIEW, View, load_view, save_view
from neuralviz.ui.page import plain
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import joined, many, search_terms

R = TypeVar("R")

CORPUS = "corpus"  # session state and address: the id of the chosen corpus
# keys of the session state
ROW, HOVERED = "corpus-row", "corpus-hovered"  # the clicked text; the one under the pointer
SELECTED, SELECTED_BY = "corpus-selected", "corpus-selected-by"
SEARCH, LAST_SEARCH = "corpus-search", "corpus-asked"  # the box; the search that was made last
SENTENCE = "corpus-sentence"  # the one placed on the maps
LIST = "corpus-list"  # the list below the maps

TEXT = "text"  # in the address: the number of the chosen text, from 1
_KEPT = "corpus-selected-kept"  # session state: the last selection, and the id it is kept under
_LINKED = "corpus-linked"  # session state: the corpus of the address that was opened last
_CONTAINING = "containing"  # begins the reason of a selection by words
CHOSEN_TEXT, SELECTION, NEAREST = "Text", "Selection", "Neighbours of your sentence"
DIFFERENT, CLUSTERS = "Where the maps disagree", "Clusters"
WORDS, MEANING = "By words", "By meaning"
KEPT_PLACEMENTS = 50  # placed sentences that the session keeps
MOST_SEARCHED = 500  # characters
PATIENCE = 0.3  # seconds: enough for most maps
LONGEST_NAME = 60  # characters, in a filter
MOST_VALUES = 1000  # of a column, in a filter


@dataclass(frozen=True, eq=False)
class MapView:
    """The maps of a corpus as the page shows them: colours, filter and placed sentence."""

    maps: Sequence[OpenMap]  # one or two
    colours: Sequence[str]  # of each map; see `list_colours`
    has_names: bool = True  # of the clusters, on the maps
    within: np.ndarray | None = None  # [text] whether the filter shows it; None without a filter
    shown: str = ""  # what the filter shows, in words
    # where the searched sentence lands, by map id
    placed: Mapping[str, PlacedSentence] = field(default_factory=dict)

    @property
    def corpus(self) -> OpenCorpus:
        return self.maps[0].corpus

    @property
    def methods(self) -> list[OpenMap]:
        """One map per method: two maps of the same vectors have the same neighbours."""
        return list({open_map.kept.embedder: open_map for open_map in self.maps}.values())

    @property
    def terms(self) -> str:
        """What the methods are, in a few words each."""
        parts = (part for open_map in self.methods for part in open_map.spec.singles)
        return explain_methods(part.method for part in parts)

    @property
    def first_method(self) -> str:
        """The first map's method, markdown; empty where it is the only one."""
        return name_methods(self.maps)[0] if len(self.methods) > 1 else ""

    def columns(self) -> Iterator[tuple[DeltaGenerator, OpenMap]]:
        """The maps side by side, each with its column of the page."""
        return zip(st.columns(len(self.maps), gap="xsmall"), self.maps, strict=True)

    @property
    def n_shown(self) -> int:
        """The number of texts that the filter shows."""
        return self.corpus.n_texts if self.within is None else int(self.within.sum())

    def filter_rows(self, rows: np.ndarray) -> np.ndarray:
        """The rows that the filter shows, in their order."""
        return rows if self.within is None else rows[self.within[rows]]

    @property
    def chosen_row(self) -> int | None:
        """The row of the chosen text, if the corpus has it."""
        return self._row_under(ROW)

    @property
    def row_to_read(self) -> int | None:
        """The row of the text under the pointer, else of the chosen one."""
        hovered = self._row_under(HOVERED)
        return self.chosen_row if hovered is None else hovered

    def _row_under(self, key: str) -> int | None:
        row: int | None = st.session_state.get(key)
        return row if row is not None and row < self.corpus.n_texts else None

    @property
    def selection(self) -> Selection | None:
        """The selected texts that the filter shows; None where nothing is selected."""
        selection: Selection | None = st.session_state.get(SELECTED)
        if not selection or len(selection.mask) != self.corpus.n_texts:
            return None
        return selection if self.within is None else Selection(selection.mask & self.within)


def name_methods(maps: Sequence[OpenMap]) -> list[str]:
    """Short names of the maps' methods for a sentence of markdown."""
    return list(map(plain, shorten_labels(maps)))


def shorten_labels(maps: Sequence[OpenMap]) -> tuple[str, ...]:
    return short_labels(method_labels([open_map.spec for open_map in maps]))


def choose_row(row: int, *, show: bool = True) -> None:
    """Choose a text to read; with ``show``, open its list below the maps."""
    st.session_state[ROW] = int(row)
    st.session_state.pop(HOVERED, None)
    if show:
        st.session_state[LIST] = CHOSEN_TEXT


def hover_row(row: int) -> None:
    """Show the text under the pointer, unless it is the chosen one or a selection is listed."""
    if row != st.session_state.get(ROW) and st.session_state.get(LIST) != SELECTION:
        st.session_state[HOVERED] = int(row)
        st.session_state[LIST] = CHOSEN_TEXT


def select(chosen: Selection, reason: str, *, show: bool = True) -> None:
    """Select texts on all maps; ``reason`` is shown, such as ``in cluster ice, snow``."""
    st.session_state[SELECTED], st.session_state[SELECTED_BY] = chosen, reason
    if show and len(chosen):
        st.session_state[LIST] = SELECTION


def forget_selection() -> None:
    """Forget the selection and the chosen text, and repeat the search."""
    for key in (ROW, HOVERED, SELECTED, SELECTED_BY, SENTENCE, LAST_SEARCH):
        st.session_state.pop(key, None)


def read_selection() -> str | None:
    """The id of the selection of an address that was just opened, whose search is repeated."""
    linked = read_new(SELECTED)
    if linked is not None:
        for name in (SELECTED, SELECTED_BY, LAST_SEARCH):
            st.session_state.pop(name, None)
    return linked


def note_linked_corpus() -> None:
    """Note the corpus of an address that was just opened: its texts are those of no other one."""
    linked = read_new(CORPUS, _LINKED)
    if linked is not None:
        st.session_state[_LINKED] = linked


def _is_linked(corpus: OpenCorpus) -> bool:
    return st.session_state.get(_LINKED, "") in ("", corpus.corpus.id)


def remember_selection(corpus: OpenCorpus, linked: str | None) -> None:
    """Bring back the selection of an address that was just opened, and keep the shown one."""
    if linked is not None and _is_linked(corpus):
        view = load_view(linked) if linked else NO_VIEW
        if view is None:
            mark_lost(SELECTED)
        elif view.choices:
            rows = Selection.unpack(dict(view.choices)["rows"], corpus.n_texts)
            select(rows, view.texts[0], show=False)
    if is_lost(SELECTED):
        st.warning("The selection of this link is not saved here any more.")
    chosen, reason = st.session_state.get(SELECTED), st.session_state.get(SELECTED_BY, "")
    kept, view_id = st.session_state.get(_KEPT, (None, ""))
    if chosen is not kept:
        view_id = ""
        # a search is in the address as it is
        if chosen is not None and not reason.startswith(_CONTAINING):
            with suppress(OSError):  # no link without a folder to keep it in
                view_id = save_view(View((reason,), choices=(("rows", chosen.pack()),)))
        st.session_state[_KEPT] = chosen, view_id
    write({SELECTED: view_id})


def clear_selection() -> None:
    forget_selection()
    st.session_state[SEARCH] = ""


def read_chosen_text(corpus: OpenCorpus) -> None:
    """Choose the text of an address that was just opened."""
    linked = read_new(TEXT)
    if linked is not None:
        st.session_state.pop(ROW, None)
        for number in read_numbers(linked)[:1]:
            if _is_linked(corpus) and number <= corpus.n_texts:
                choose_row(number - 1, show=False)


def write_chosen_text(view: MapView) -> None:
    """Name the chosen text in the address."""
    write({TEXT: "" if view.chosen_row is None else str(view.chosen_row + 1)})


# --- searching -----------------------------------------------------------------------------------


def show_search(view: MapView) -> MapView:
    """Widgets for search, filter and names of clusters; returns the view with the last two."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    box = row.container(width="stretch", key=f"{SEARCH}-box")
    mode = choose_one(
        row.segmented_control,
        "Search mode",
        [WORDS, MEANING],
        key="corpus-how",
        label_visibility="collapsed",
        persist_state="session",
    )
    hint = "Find words in the texts"
    query = box.text_input(
        "Search",
        key=SEARCH,
        max_chars=MOST_SEARCHED,
        placeholder=hint if mode == WORDS else "Enter a sentence to see where it lands",
        **REMEMBERED,
    )
    query = (query or "").strip()
    _search(view.corpus, mode, query)
    with row:
        text_filter = _choose_filter(view.corpus)
        view = replace(
            view, has_names=st.toggle("Cluster names", value=True, key="names", bind="query-params")
        )
    if text_filter:
        corpus, n = view.corpus, view.corpus.n_texts
        within = text_filter.within(corpus.codes, corpus.numbers, n)
        shown = text_filter.describe(int(within.sum()), n)
        view = replace(view, within=within, shown=shown)
        st.markdown(plain(f"Showing {shown}."))
    return view


def find_query() -> str:
    """The searched words that the selected texts contain, in quotation marks; may be empty."""
    mode, query = st.session_state.get(LAST_SEARCH, (WORDS, ""))
    is_answered = mode == WORDS and st.session_state.get(SELECTED_BY) == _describe_query(query)
    return _quote_query(query) if query and is_answered else ""


def _search(corpus: OpenCorpus, mode: str, query: str) -> None:
    """Select the texts with the words, or have the sentence placed; once per search."""
    before = st.session_state.get(LAST_SEARCH)
    if (mode, query) == before:
        return
    is_typed = before is not None  # else it is of the address, which has the list, too
    st.session_state.pop(SENTENCE, None)
    if before and st.session_state.get(SELECTED_BY) == _describe_query(before[1]):
        for name in (SELECTED, SELECTED_BY):
            st.session_state.pop(name, None)
    if query and mode == MEANING:
        st.session_state[SENTENCE] = query
        if is_typed:
            st.session_state[LIST] = NEAREST
    elif query:
        rows = corpus.store.rows_with_words(corpus.corpus, query)
        select(Selection.from_rows(rows, corpus.n_texts), _describe_query(query), show=is_typed)
    st.session_state[LAST_SEARCH] = mode, query  # last: a search that was cut off is repeated


def _quote_query(query: str) -> str:
    """The words in quotation marks, such as ``“ice” and “snow”``."""
    terms = dict.fromkeys(search_terms(query) or [query])
    return joined([f"“{shorten(term, 40)}”" for term in terms])


def _describe_query(query: str) -> str:
    return f"{_CONTAINING} {_quote_query(query)}"


# --- filters -------------------------------------------------------------------------------------


def _choose_filter(corpus: OpenCorpus) -> TextFilter | None:
    """Ask for a filter; a large corpus's options, slow to find, wait until it is opened."""
    names = [column.name for column in corpus.corpus.columns]
    keys = {name: f"only-{place}-{corpus.corpus.id}" for place, name in enumerate(names)}
    labels, numbers = corpus.filters
    if not labels and not numbers:
        return None
    popover = st.popover(
        "Filter",
        icon=":material/filter_alt:",
        key="corpus-filter",
        on_change="rerun" if corpus.is_large else "ignore",
    )
    is_used = any(keys[name] in {*st.session_state, *st.query_params} for name in labels + numbers)
    if corpus.is_large and not popover.open and not is_used:
        return None
    with popover:
        values = {name: _choose_values(corpus, name, keys[name]) for name in labels}
        ranges = {name: _choose_range(corpus, name, keys[name]) for name in numbers}
        st.caption("Filters combine: a text must meet all of them. Nothing chosen shows all texts.")
    return TextFilter(
        {name: allowed for name, allowed in values.items() if allowed},
        {name: ends for name, ends in ranges.items() if ends is not None},
    )


def _choose_values(corpus: OpenCorpus, name: str, key: str) -> tuple[str, ...]:
    """Ask for values of a column, the most frequent first; ``""`` is none."""
    sizes = corpus.sizes(name)
    values = sorted(sizes, key=sizes.__getitem__, reverse=True)[:MOST_VALUES]
    if sum(sizes.values()) < corpus.n_texts:
        values.append("")
    chosen = st.multiselect(
        shorten(name, LONGEST_NAME),
        values,
        format_func=lambda value: shorten(value, LONGEST_NAME) or "no value",
        placeholder="All",
        key=key,
        bind="query-params",
    )
    return tuple(chosen)


def _choose_range(corpus: OpenCorpus, name: str, key: str) -> tuple[Any, Any] | None:
    """Ask for a range of a column of numbers or dates; None for all of them."""
    ends: tuple[Any, Any] | None = corpus.span(name)
    if ends is not None and name in corpus.date_names:
        ends = find_day(ends[0]), find_day(ends[1])
    if ends is None or ends[0] == ends[1]:
        return None
    chosen = st.slider(shorten(name, LONGEST_NAME), *ends, ends, key=key, bind="query-params")
    return None if chosen == ends else chosen


# --- work in the background: a sentence's place, neighbours --------------------------------------


def show_work(runs: SessionRuns, run: Run[R], doing: str, patience: float = PATIENCE) -> R | None:
    """The panel of a run whose result, which is returned, is shown elsewhere on the page."""
    sentences = RunSentences(doing, stopped="", done="")
    show_run_panel(runs, run, lambda _result, _live: None, sentences=sentences, patience=patience)
    return run.result


def place_sentence(maps: Sequence[OpenMap]) -> dict[str, PlacedSentence]:
    """Where the sentence lands, by map id; panels for maps still at work."""
    sentence: str = st.session_state.get(SENTENCE, "")
    placements: dict[str, PlacedSentence] = {}
    for open_map in maps if sentence else ():
        spec, map_id = open_map.spec, open_map.kept.id
        if spec.is_imported:
            st.info(
                plain(
                    f"A new sentence cannot be placed on the map by “{open_map.label}”: its "
                    "vectors were imported, so there is no model to embed the sentence with. "
                    "Search by words, or choose another method, such as mean."
                )
            )
            continue
        runs = SessionRuns(f"corpus-placing-{map_id}", kept=KEPT_PLACEMENTS)
        models = list_models((spec,))
        task = PlaceSentence(open_map.corpus.corpus.id, map_id, spec, sentence, models)
        if runs.find(task) is None and needs_asking((spec,)):
            st.info(plain(f"The model of “{open_map.label}” is not loaded."))
            if not st.button("Load the model", key=f"corpus-load-{map_id}"):
                continue
        doing = f"Placing the sentence on the map by {open_map.label} …"
        if (placed := show_work(runs, runs.start(task), doing)) is not None:
            placements[map_id] = placed
    return placements


def find_samples(maps: Sequence[OpenMap]) -> list[SampledNeighbours] | None:
    """The texts that maps are measured by, with their neighbours; None until all are known."""
    samples = [sample for open_map in maps if (sample := open_map.sample()) is not None]
    return samples if len(samples) == len(maps) else None


def search_samples(maps: Sequence[OpenMap]) -> None:
    """Find the neighbours of a sample of a large corpus, then run the page again."""
    missing = [open_map for open_map in maps if open_map.sample() is None]
    for open_map in missing:
        runs = SessionRuns(f"corpus-sampling-{open_map.kept.id}")
        task = FindNeighbours(open_map.corpus.corpus.id, open_map.kept.id, K)
        doing = f"Finding the neighbours of {many(SAMPLED, 'text')} by {open_map.label} …"
        sample = show_work(runs, runs.start(task), doing, patience=0.05)
        if sample is not None:
            open_map.sample(sample)
    if any(open_map.sample() is not None for open_map in missing):
        run_page_again()


def find_neighbours(open_map: OpenMap, row: int) -> Neighbours | None:
    """A text's neighbours by a map; None until a run, started by a button, finds them."""
    near = open_map.near(row)
    if near is not None:
        return near
    corpus, map_id = open_map.corpus.corpus, open_map.kept.id
    runs, task = SessionRuns(f"corpus-near-{map_id}"), FindNeighbours(corpus.id, map_id, K, row)
    run = runs.find(task)
    if run is None:
        work = f"finding neighbours compares all {many(corpus.n_distinct, 'different text')}"
        st.caption(f"No index finds them: {work}.")
        if not st.button("Find neighbours", key=f"corpus-find-{map_id}"):
            return None
        run = runs.start(task)
    doing = f"Finding the neighbours by {open_map.label} …"
    result = show_work(runs, run, doing)
    return None if result is None else open_map.near(row, result.near)
