"""Widgets that pages share: one of a few options, a row of a table, a precision, a name."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.errors import NeuralvizError
from neuralviz.micro_tuning.settings import PRECISION_LINES, PRECISIONS, Precision
from neuralviz.reading.source import WITHOUT_NAMES, Source
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.database import tidy_soon
from neuralviz.ui.limits import effective_settings, has_visitors
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error

T = TypeVar("T")
# settings of a widget whose value a link restores and other pages leave as it is
REMEMBERED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
# how caches tell files apart
BY_DIGEST: dict[str | type[Any], Callable[[Any], Any]] = {Source: lambda source: source.digest}
DETECTED = "detect automatically"
ROW_HEIGHT, LIST_HEIGHT = 37, 390  # px: of a row of a table, of a table at most
_LINES = 20
_CHOICES: dict[str, int | None] = {
    DETECTED: None,
    "none": 0,
    **{f"line {number}": number for number in range(1, _LINES + 1)},
}


def choose_one(
    widget: Callable[..., T | None],  # ``segmented_control`` or ``pills`` of a container
    label: str,
    options: Sequence[T],
    *,
    key: str,
    **settings: Any,
) -> T:
    """A segmented control or pills in the address, one option of which is always chosen.

    ``settings`` are the widget's; without a ``default``, the first option is chosen at the start.
    """
    if st.query_params.get(key) == "":
        del st.query_params[key]
        st.rerun()  # widgets read the address as it was when the script run began
    chosen = widget(label, options, key=key, required=True, bind="query-params", **settings)
    if chosen is None:  # *Back* to an address without the key empties the session's value
        return settings.get("default", options[0])
    return chosen


def show_choosable_table(
    table: Mapping[str, Any],
    key: str,
    choose: Callable[[int], None],
    columns: Mapping[str, Any],  # how they are shown; see ``st.dataframe``
    order: Sequence[str] | None = None,  # the columns to show; all if None
) -> None:
    """A table that scrolls when it is long; ticking a row calls ``choose`` with its place."""

    def choose_ticked() -> None:
        for place in st.session_state[key]["selection"]["rows"]:
            choose(place)

    frame = pd.DataFrame(table)
    st.dataframe(
        frame,
        hide_index=True,
        height=min(LIST_HEIGHT, ROW_HEIGHT * (len(frame) + 1) + 3),
        key=key,
        on_select=choose_ticked,
        selection_mode="single-row",
        column_config=columns,
        column_order=order,
    )


def choose_precision(key: str, first: str) -> Precision:
    """Ask for a precision that the machine need not emulate, at the start ``first``."""
    offered = [name for name in PRECISIONS if "bf16" not in name or _computes_in_bf16(key)]
    requested = st.query_params.get(key, first)
    if requested not in offered:
        st.toast(
            plain(
                f"The precision “{requested[:40]}” in this link is not available here. Using "
                f"{first} instead."
            ),
            icon=":material/warning:",
            duration="long",
        )
    return st.selectbox(
        "Precision",
        offered,
        index=[str(name) for name in offered].index(first),
        key=key,
        bind="query-params",
        help="\n".join(f"- **{name}**: {PRECISION_LINES[name]}" for name in offered),
    )


def _computes_in_bf16(key: str) -> bool:
    """Whether the machine computes in bfloat16; torch is imported only if a link asks for it."""
    if "torch" not in sys.modules and "bf16" not in st.query_params.get(key, ""):
        return False
    import torch

    from neuralviz.micro_tuning.products import has_native_bf16

    return has_native_bf16("cuda" if torch.cuda.is_available() else "cpu")


def upload_file(key: str, **settings: Any) -> Source | None:
    """Ask for a file, which the session keeps under ``KEY-kept``."""
    file = st.file_uploader(key=f"{key}-file", **settings)
    if file is not None:
        st.session_state[f"{key}-kept"] = Source(file.name, file.getvalue())
    return st.session_state.get(f"{key}-kept")


def choose_header(source: Source, key: str, place: DeltaGenerator | None = None) -> Source:
    """Ask for the header's line, where the file's format does not tell; return the file with it."""
    if source.ending not in WITHOUT_NAMES:
        return source
    chosen = (place or st).selectbox(
        "Header",
        list(_CHOICES),
        key=key,
        help="The line with the names of the columns; in a workbook, the row.",
    )
    return replace(source, header=_CHOICES.get(chosen))


def save_by_name(
    key: str,
    placeholder: str,
    identity: Hashable,  # tells what is saved from anything else
    save: Callable[[str], Path],  # may raise a `NeuralvizError`
    is_there: Callable[[str], bool],  # whether something of this name is still saved
) -> str:
    """Ask for a name, save under it at *Save*, and return it; empty until it is saved."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name", placeholder=placeholder, key=f"{key}-name").strip()
        pressed = st.button("Save", icon=":material/save:", key=f"{key}-save-it")
    *saved_as, place = st.session_state.get(f"{key}-saved", ("", None, ""))
    if saved_as == [name, identity] and is_there(name):
        folder_note = "" if has_visitors() else f" in {place}"
        st.success(plain(f"Saved as “{name}”{folder_note}."))
        return name
    if pressed:
        try:
            with let_others_draw(), st.spinner("Saving …"):
                st.session_state[f"{key}-saved"] = (name, identity, save(name))
        except NeuralvizError as error:
            show_error(error)
        else:
            st.rerun()  # so that the page knows it
    return ""


BROWSER = "neuralviz_browser"  # the cookie that tells browsers apart
_SESSION = "browser"  # session state: identity of a browser without cookies, while its page is open


def corpus_store() -> CorpusStore:
    """The saved corpora that this browser sees; old files of the store are deleted on the way."""
    store = CorpusStore(owner=_browser() if effective_settings().private else None)
    tidy_soon(store.folder)
    return store


def may_change(corpus: Corpus) -> bool:
    """Whether this browser may rename, extend or delete a corpus."""
    if effective_settings().demo:
        return False
    return not effective_settings().private or corpus.owner == _browser()


def describe_corpus_visibility() -> str:
    """Who sees an added corpus, as a sentence; empty where the machine has one user."""
    if effective_settings().private:
        return "Only this browser sees the corpora that you add here."
    if effective_settings().open:
        return "Everybody who uses this server sees saved corpora, and can delete them."
    return ""


def _browser() -> str:
    """A digest that identifies the browser and does not reveal its cookie."""
    cookie = st.context.cookies.get(BROWSER)
    if not cookie:
        cookie = st.session_state.setdefault(_SESSION, secrets.token_urlsafe(16))
    return blake2b(cookie.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
