"""The scored pairs of the page: the example's, or a file's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.jobs.example_ladder import EXAMPLE, example_pairs
from neuralviz.jobs.ladder import pair_rows
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.ui.allowed import most_rows, where_it_goes
from neuralviz.ui.choices import choose_one
from neuralviz.ui.links import open_view, put_in_address
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.views import LARGEST_FILE, View
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.jobs.ladder import PairRows
    from neuralviz.reading.pairs import ScoredPairs

KEY = "frozen"
MAX_PAIRS = 20_000
_SOURCE, _KEPT = f"{KEY}-source", f"{KEY}-kept"
_read = st.cache_data(
    max_entries=4, show_spinner=False, hash_funcs={Source: lambda source: source.digest}
)(read_pairs)
_example = st.cache_data(max_entries=1, show_spinner=False)(example_pairs)


@dataclass(frozen=True)
class Given:
    """Pairs, and what they are called.

    Attributes:
        name: of the file.
        rows: the pairs.
    """

    name: str
    rows: PairRows


def choose_pairs() -> Given | None:
    """The example's pairs, or those of a file; None without any, which the page has explained."""
    view = open_view(KEY)
    if view is not None and view.file is not None:
        st.session_state[_SOURCE] = "Upload"
        st.session_state[_KEPT] = view.file
    source = choose_one(
        st.segmented_control,
        "Pairs",
        ["Example", "Upload"],
        default="Example",
        key=_SOURCE,
        persist_state="session",
    )
    try:
        name, pairs = (EXAMPLE, _example()) if source == "Example" else _uploaded()
    except NeuralvizError as error:
        show_error(error)
        return None
    if pairs is None:
        return None
    if source == "Example":
        st.caption(f"{many(len(pairs), 'pair')} written for neuralviz, scored from 0 to 5.")
    else:
        said = [f"{many(len(pairs), 'pair')} from {name}.", *pairs.notes]
        st.caption(plain(" ".join(said)))
    return Given(name, pair_rows(pairs))


def put_pairs_in_address() -> None:
    """Let the address bring an uploaded table back."""
    if st.session_state.get(_SOURCE) != "Upload" or _KEPT not in st.session_state:
        return
    file: Source = st.session_state[_KEPT]
    put_in_address(KEY, View((), file))
    if isinstance(file.content, bytes) and len(file.content) > LARGEST_FILE:
        st.toast("This table is too large to be saved, so the link does not include it.")


def _uploaded() -> tuple[str, ScoredPairs | None]:
    """A file's name and its pairs; none where there is no file yet, which is said."""
    file = st.file_uploader(
        "File with scored pairs",
        key=f"{KEY}-file",
        label_visibility="collapsed",
    )  # of any type: reading says what it is not
    if file is not None:
        st.session_state[_KEPT] = Source(file.name, file.getvalue())
    if _KEPT not in st.session_state:
        st.caption(
            "Upload a table (CSV, TSV, JSONL, JSON, Parquet or XLSX) with the columns sentence1, "
            f"sentence2 and score. {where_it_goes()}"
        )
        return "", None
    source: Source = st.session_state[_KEPT]
    return source.name, _read(source, max_rows=most_rows(MAX_PAIRS, texts_in_row=2))
