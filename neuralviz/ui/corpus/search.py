"""What a visitor searches for, filters, clicks and selects; the address brings it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from neuralviz.embedders.specs import list_models, method_labels, short_labels
from neuralviz.jobs.mapping import PlaceSentence
from neuralviz.maps.filtering import Selection, TextFilter
from neuralviz.plots.theme import shorten
from neuralviz.ui.choices import choose_one
from neuralviz.ui.method_choice import needs_asking
from neuralviz.ui.page import plain
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import joined, many, search_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from neuralviz.jobs import Run, Task
    from neuralviz.jobs.mapping import PlacedSentence
    from neuralviz.ui.corpus.opened import OpenCorpus, OpenMap

# keys of the session state
ROW, HOVERED = "corpus-row", "corpus-hovered"  # the clicked text; the one under the pointer
SELECTED, SELECTED_BY = "corpus-selected", "corpus-selected-by"
SEARCH, LAST_SEARCH = "corpus-search", "corpus-asked"  # the box; the search that was made last
SENTENCE = "corpus-sentence"  # that is placed on the maps
LIST = "corpus-list"  # the list below the maps
_WRITTEN = "corpus-written"

CHOSEN_TEXT, SELECTION, NEAREST = "Text", "Selection", "Neighbours of your sentence"
DIFFERENT, CLUSTERS = "Where the maps disagree", "Clusters"
MODE = "corpus-how"
WORDS, MEANING = "By words", "By meaning"
REMEMBERED = 50  # placed sentences that the session keeps
MOST_SEARCHED = 500  # characters
WAIT = 60.0  # seconds for another map to be done
MOST_TERMS = 4  # words of a search that a sentence quotes
PATIENCE = 0.3  # seconds: enough for most maps
LONGEST_NAME = 60  # characters, in a filter
MOST_VALUES = 1000  # of a column, in a filter


def choose_row(row: int, *, show: bool = True) -> None:
    """Choose a text to read, and show it below the maps."""
    st.session_state[ROW] = int(row)
    st.session_state.pop(HOVERED, None)
    if show:
        st.session_state[LIST] = CHOSEN_TEXT


def hover_row(row: int) -> None:
    """Show the text under the pointer, unless that rests on the chosen one."""
    if row != st.session_state.get(ROW):
        st.session_state[HOVERED] = int(row)
        st.session_state[LIST] = CHOSEN_TEXT


def chosen_row(n_texts: int) -> int | None:
    """The row of the chosen text, if the corpus has it."""
    row = st.session_state.get(ROW)
    return row if row is not None and row < n_texts else None


def row_to_read(n_texts: int) -> int | None:
    """The row of the text under the pointer, else of the chosen one."""
    row = st.session_state.get(HOVERED)
    return row if row is not None and row < n_texts else chosen_row(n_texts)


def select(chosen: Selection, reason: str, *, show: bool = True) -> None:
    """Select texts on all maps, with ``reason`` to show, such as ``in cluster ice, snow``."""
    st.session_state[SELECTED], st.session_state[SELECTED_BY] = chosen, reason
    if show and len(chosen):
        st.session_state[LIST] = SELECTION


def current_selection(n_texts: int, within: np.ndarray | None = None) -> Selection | None:
    """The selected texts that the filter shows; None where nothing is selected."""
    selection: Selection | None = st.session_state.get(SELECTED)
    if not selection or selection.n_texts != n_texts:
        return None
    return selection if within is None else Selection.from_mask(selection.mask() & within)


def forget_selection() -> None:
    """Forget the selection and the chosen text; the search is made anew."""
    for key in (ROW, HOVERED, SELECTED, SELECTED_BY, SENTENCE, LAST_SEARCH):
        st.session_state.pop(key, None)


def clear_selection() -> None:
    """Forget the selection, the chosen text and the search."""
    forget_selection()
    st.session_state[SEARCH] = ""


def read_new_value(name: str) -> str:
    """The value of a name in an address that was just opened; empty where it is not new.

    The last two values that the page wrote are not new: a click that was on its way when the
    address changed comes with the old one.
    """
    value = st.query_params.get(name, "")
    return "" if value in st.session_state.get(_WRITTEN, {}).get(name, ()) else value


def write_value(name: str, value: str) -> None:
    """Put a value into the address; an empty one takes the name out of it."""
    written = st.session_state.setdefault(_WRITTEN, {})
    last = written.get(name, ("",))[0]
    if value != last:
        written[name] = value, last
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)


# --- searching -----------------------------------------------------------------------------------


def show_search(corpus: OpenCorpus) -> tuple[np.ndarray | None, bool]:
    """Widgets for a search, a filter and the clusters' names, all in the address.

    Returns:
        [text] whether a text is shown, None where all are; and whether the clusters' names stand on
        the maps.
    """
    row = st.container(horizontal=True, vertical_alignment="bottom")
    box = row.container(width="stretch", key=f"{SEARCH}-box")
    st.html(f"<style>:has(> .st-key-{SEARCH}-box) {{ min-width: min(100%, 24rem) }}</style>")
    mode = choose_one(
        row.segmented_control,
        "Search mode",
        [WORDS, MEANING],
        key=MODE,
        label_visibility="collapsed",
        persist_state="session",
    )
    hint = "Find words in the texts"
    query = box.text_input(
        "Search",
        key=SEARCH,
        max_chars=MOST_SEARCHED,
        bind="query-params",
        persist_state="session",
        placeholder=hint if mode == WORDS else "Enter a sentence to see where it lands",
    )
    query = (query or "").strip()
    _search(corpus, mode, query)
    with row:
        within = _choose_filter(corpus)
        named = st.toggle("Cluster names", value=True, key="names", bind="query-params")
    if within is not None:
        st.markdown(plain(within[1]))
    mask = None if within is None else within[0]
    if query and mode == WORDS:
        st.caption(plain(_describe_search(corpus, query, mask)))
    return mask, named


def _search(corpus: OpenCorpus, mode: str, query: str) -> None:
    """Select the texts that contain the words, or have the sentence placed; once a search."""
    before = st.session_state.get(LAST_SEARCH, (WORDS, ""))
    if (mode, query) == before:
        return
    st.session_state.pop(SENTENCE, None)
    if query and mode == MEANING:
        st.session_state[SENTENCE] = query
        st.session_state[LIST] = NEAREST
    elif query:
        rows = corpus.store.rows_with_words(corpus.corpus, query)
        select(Selection.from_rows(rows, corpus.corpus.n_texts), _quote_query(query))
    elif st.session_state.get(SELECTED_BY) == _quote_query(before[1]):
        for name in (SELECTED, SELECTED_BY):
            st.session_state.pop(name, None)
    st.session_state[LAST_SEARCH] = mode, query  # last: a search that was cut off is repeated


def _quote_query(query: str) -> str:
    """The words of a search in quotation marks, such as ``containing “ice” and “snow”``."""
    terms = list(dict.fromkeys(search_terms(query))) or [query]
    quoted = [f"“{shorten(term, 40)}”" for term in terms[:MOST_TERMS]]
    if len(terms) > MOST_TERMS:
        quoted.append(many(len(terms) - MOST_TERMS, "more word"))
    return f"containing {joined(quoted)}"


def _describe_search(corpus: OpenCorpus, query: str, within: np.ndarray | None) -> str:
    """What a search by words found; empty once something else is selected."""
    quoted = _quote_query(query)
    if st.session_state.get(SELECTED_BY) != quoted:
        return ""
    chosen = current_selection(corpus.corpus.n_texts, within)
    if chosen is None:
        return f"Found no text {quoted}."
    if not chosen:
        return f"The filter shows no text {quoted}."
    return f"Found {many(len(chosen), 'text')} {quoted}; see “{SELECTION}” below the map."


# --- filters -------------------------------------------------------------------------------------


def _choose_filter(corpus: OpenCorpus) -> tuple[np.ndarray, str] | None:
    """[text] whether a text is shown, and a sentence on it; None where all are shown.

    What a large corpus has to offer takes seconds to find: only once the filter is opened.
    """
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
    chosen = TextFilter(
        {name: allowed for name, allowed in values.items() if allowed},
        {name: ends for name, ends in ranges.items() if ends is not None},
    )
    if not chosen:
        return None
    n = corpus.corpus.n_texts
    within = chosen.within(corpus.codes, corpus.numbers, n)
    return within, chosen.describe(int(within.sum()), n)


def _choose_values(corpus: OpenCorpus, name: str, key: str) -> tuple[str, ...]:
    """The chosen values of a column, of which the most frequent come first; ``""`` is none."""
    sizes = corpus.sizes(name)
    values = sorted(sizes, key=sizes.__getitem__, reverse=True)[:MOST_VALUES]
    if sum(sizes.values()) < corpus.corpus.n_texts:
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


def _choose_range(corpus: OpenCorpus, name: str, key: str) -> tuple[float, float] | None:
    """The chosen range of a column of numbers; None for all of them."""
    span = corpus.span(name)
    if span is None or span.low == span.high:
        return None
    kind = int if span.is_whole else float
    ends = kind(span.low), kind(span.high)
    chosen = st.slider(shorten(name, LONGEST_NAME), *ends, ends, key=key, bind="query-params")
    return None if chosen == ends else chosen


# --- sentences on the maps -----------------------------------------------------------------------


def show_background_run(
    runs: SessionRuns, run: Run[Any], sentence: str, patience: float = PATIENCE, stopped: str = ""
) -> None:
    """The panel of a run whose result is shown elsewhere on the page."""
    sentences = RunSentences(
        sentence,
        describe_stopped=(lambda _: stopped) if stopped else None,
        describe_done=lambda _: "",
    )
    show_run_panel(runs, run, lambda _result, _live: None, sentences=sentences, patience=patience)


def place_sentence(maps: Sequence[OpenMap]) -> dict[str, PlacedSentence]:
    """Where the sentence lands, by the id of a map; panels for maps still at work."""
    sentence: str = st.session_state.get(SENTENCE, "")
    placements: dict[str, PlacedSentence] = {}
    for open_map in maps if sentence else ():
        spec, map_id = open_map.spec, open_map.kept.id
        if spec.is_imported:
            st.info(
                plain(
                    f"A new sentence cannot be placed on the map by “{open_map.label}”: its "
                    "vectors were imported, so there is no model to embed the sentence with."
                )
            )
            continue
        runs = SessionRuns(f"corpus-placing-{map_id}", kept=REMEMBERED)
        task: Task[Any, PlacedSentence | None] = PlaceSentence(
            open_map.corpus.id, map_id, spec, sentence, list_models((spec,)), WAIT
        )
        if runs.find(task) is None and needs_asking((spec,)):
            st.info(plain(f"The model of “{open_map.label}” is not loaded."))
            if not st.button("Load the model", key=f"corpus-load-{map_id}"):
                continue
        run = runs.start(task)
        show_background_run(runs, run, f"Placing the sentence on the map by {open_map.label} …")
        if run.result is not None:
            placements[map_id] = run.result
    return placements


def name_nearest(
    corpus: OpenCorpus,
    maps: Sequence[OpenMap],
    placed: dict[str, PlacedSentence],
    within: np.ndarray | None,
) -> None:
    """Name the shown text that is nearest to the sentence by each map's method."""
    specs = list(dict.fromkeys(open_map.spec for open_map in maps))
    names = dict(zip(specs, short_labels(method_labels(specs)), strict=True))
    methods: dict[str, list[str]] = {}
    for open_map in maps:
        if open_map.kept.id in placed:
            near = placed[open_map.kept.id].near.indices[0]
            visible = (near if within is None else near[within[near]])[:1]
            for text in corpus.texts_at(visible):
                methods.setdefault(text, []).append(names[open_map.spec])
    nearest = [
        f"“{shorten(text, 120)}”"
        + (f" by {joined(list(dict.fromkeys(text_methods)))}" * (len(specs) > 1))
        for text, text_methods in methods.items()
    ]
    if nearest:
        st.caption(plain(f"The nearest text is {joined(nearest)}. See “{NEAREST}” below the map."))
