"""Links: the address holds settings and the id of a view saved on this machine, never its texts."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import streamlit as st

from neuralviz.paths import home
from neuralviz.reading.source import Source
from neuralviz.store.files import COMMON_VIEW, prune, write_bytes_beside

RUN = "run"  # query parameter: the id of a run
USER_SOURCES = ("Paste", "Upload")  # sources that hold a user's own texts
LATE_SECONDS = 2.0  # a click sent before the address changed still carries the old one
KEPT_VIEWS = 5000
KEPT_BYTES = 1 << 30  # of all views; those opened longest ago are deleted first
KEPT_DAYS = 365  # since a view was last opened
LARGEST_FILE = 1 << 26  # bytes; of a larger file only the texts are saved
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]{12}")
_making_key = threading.Lock()  # two sessions may need the first key together
_drawing = threading.local()  # by thread: values that wait for the end of `one_history_entry`

# --- views ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """Texts, and the file they were read from."""

    texts: tuple[str, ...] = ()  # as they are used
    file: Source | None = None
    choices: tuple[tuple[str, str], ...] = ()  # how the file was read, such as the texts' column


def save_view(view: View) -> str:
    """Save a view and return its id, which nobody can guess; old views are deleted."""
    identity = [view.texts, view.file and [view.file.name, view.file.digest], view.choices]
    digest = hashlib.blake2b(json.dumps(identity).encode(), key=_secret(), digest_size=9)
    view_id = urlsafe_b64encode(digest.digest()).decode()
    folder = home() / "views"
    record: dict[str, Any] = {"texts": view.texts, "choices": view.choices}
    file = view.file
    if file is not None and isinstance(file.content, bytes) and len(file.content) <= LARGEST_FILE:
        record["file"] = file.name
        write_bytes_beside(folder / f"{view_id}.file", file.content)
    write_bytes_beside(folder / f"{view_id}.json", json.dumps(record).encode())
    prune(folder, n_bytes=KEPT_BYTES, days=KEPT_DAYS, max_units=KEPT_VIEWS, unit=attrgetter("stem"))
    return view_id


def _secret() -> bytes:
    """32 bytes that only this machine knows."""
    path = home() / "views.key"
    with _making_key:
        if not path.exists():
            write_bytes_beside(path, secrets.token_bytes(32))
            path.chmod(0o600)
    return path.read_bytes()


def load_view(view_id: str) -> View | None:
    """The view saved under ``view_id``; None when there is none or the id is not valid."""
    if not _VIEW_ID.fullmatch(view_id):
        return None
    path = home() / "views" / f"{view_id}.json"
    try:
        record = json.loads(path.read_text("utf-8"))
        texts = tuple(record["texts"])
        choices = tuple((str(name), str(value)) for name, value in record["choices"])
        file = None
        if "file" in record:
            content = path.with_suffix(".file")
            file = Source(str(record["file"]), content.read_bytes())
            content.touch()
        path.touch()
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return View(texts, file, choices) if all(isinstance(text, str) for text in texts) else None


# --- the address ---------------------------------------------------------------------------------


@contextmanager
def one_history_entry() -> Iterator[None]:
    """Make all changes of the address one entry of the browser's history."""
    # *Back* then leads to the run before, never to a view with another view's run
    held: dict[str, str] = {}
    _drawing.held = held
    try:
        yield
    finally:
        _drawing.held = None
        if held:
            st.query_params.update(held)


def set_query_params(values: Mapping[str, str]) -> None:
    held = getattr(_drawing, "held", None)
    if held is None:
        st.query_params.update(values)
    else:
        held.update(values)


def put_in_address(key: str, view: View) -> None:
    """Save a page's inputs and name them in the address."""
    kept, view_id = st.session_state.get(f"{key}-own-view", (None, None))
    if kept != view:
        try:
            view_id = save_view(view)
        except OSError:
            st.toast("The texts could not be saved, so the link does not include them.")
            return
    st.session_state[f"{key}-own-view"] = (view, view_id)
    st.session_state[f"{key}-view"] = view_id
    before = st.query_params.get("view")
    if before != view_id:
        st.session_state[f"{key}-replaced"] = (before, time.monotonic())
        set_query_params({"view": view_id, **({RUN: ""} if RUN in st.query_params else {})})


def open_view(key: str) -> View | None:
    """The view that the address names, if the page does not show it yet."""
    # an address without a view gets the one last shown, unless the page shows an example
    view_id, shown_id = st.query_params.get("view"), st.session_state.get(f"{key}-view")
    if view_id in (None, "", shown_id):
        if st.session_state.get(f"{key}-source", USER_SOURCES[0]) not in USER_SOURCES:
            st.query_params.pop("view", None)
        elif shown_id:
            st.query_params["view"] = shown_id
        return None
    replaced, replaced_time = st.session_state.get(f"{key}-replaced", (None, 0.0))
    if shown_id and view_id == replaced and time.monotonic() - replaced_time < LATE_SECONDS:
        st.query_params["view"] = shown_id  # else a double click would restore the former texts
        return None
    st.session_state[f"{key}-view"] = view_id
    view = load_view(view_id)
    if view is None:
        st.toast("The texts in this link are not saved here. Showing an example instead.")
    return view


def result_view_id(key: str) -> str:
    """The id under which results are saved: a user's texts have their own, the rest one for all."""
    if st.session_state.get(f"{key}-source") in USER_SOURCES:
        return st.session_state.get(f"{key}-view") or ""
    return COMMON_VIEW
