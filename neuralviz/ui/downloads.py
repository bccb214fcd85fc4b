"""What the page shows, so that it can be taken away: one menu a page, and the page as one file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st
import streamlit.components.v2
from streamlit.delta_generator import DeltaGenerator

from neuralviz.plots.report import NOTHING, About, file_name, note_html, page_html, sentence_html
from neuralviz.store.writing import frame_csv, frame_parquet

_REGISTRY, _MENU = "downloads", "download"  # session state: what the page shows, whether it is open
_NOT_IN_CLASSES = re.compile(r"[^a-zA-Z0-9_-]")
_browser_part = streamlit.components.v2.component(
    "neuralviz_downloads",
    html="<div class='neuralviz-downloads'></div>",
    js=Path(__file__).with_name("assets").joinpath("downloads.js").read_text("utf-8"),
    isolate_styles=False,
)

Files = Mapping[str, tuple[str, Callable[[], str | bytes]]]


@dataclass(frozen=True, eq=False)
class Entry:
    """A part of the page. Its files and HTML are made when somebody asks for them."""

    title: str = ""  # of its line in the menu; plain text
    files: Files = field(default_factory=dict)  # name and content by the label of the button
    html: Callable[[], str] | None = None  # on the page as a file
    has_pictures: bool = False  # whether the browser draws it
    about: About = NOTHING
    place: str = ""  # key of the element on the page; the entry's own if empty


@dataclass
class _Registry:
    """The entries of a page by key, with the number of the run that showed each last."""

    n_runs: int = 0
    shown: dict[str, tuple[int, Entry]] = field(default_factory=dict)

    def begin_run(self) -> None:
        self.shown = {key: (n, e) for key, (n, e) in self.shown.items() if n == self.n_runs}
        self.n_runs += 1

    def list_entries(self, seen: Sequence[str] | None) -> dict[str, Entry]:
        """Those on the page, in its order; until a browser says which, all that are known."""
        if seen is None:
            return {key: entry for key, (_, entry) in self.shown.items()}
        order = {name: position for position, name in reversed(list(enumerate(seen)))}
        places = {key: class_name(entry.place or key) for key, (_, entry) in self.shown.items()}
        keys = sorted(places, key=lambda key: order.get(places[key], -1))
        return {key: self.shown[key][1] for key in keys if places[key] in order}


def class_name(key: str) -> str:
    """How Streamlit writes a key in the class of its element."""
    return _NOT_IN_CLASSES.sub("-", key.strip())


def offer(key: str, entry: Entry) -> None:
    """Make a part of the page part of its downloads; ``key`` is that of its element."""
    registry: _Registry = st.session_state.setdefault(_REGISTRY, _Registry())
    registry.shown[key] = (registry.n_runs, entry)


def offer_table(
    title: str,
    table: pd.DataFrame | Callable[[], pd.DataFrame],
    name: str,  # of the files; see `file_name`
    *,
    place: str,  # key of the element that stands for it
    provenance: About = NOTHING,
) -> None:
    """Offer a table that the page does not show as it is."""
    files = table_files(table, name, provenance)
    offer(f"{place}-{title}", Entry(title, files, about=provenance, place=place))


def table_files(
    table: pd.DataFrame | Callable[[], pd.DataFrame], name: str, provenance: About = NOTHING
) -> Files:
    """A table as CSV, and as parquet with ``provenance`` in its metadata."""
    make = table if callable(table) else lambda: table
    named = file_name(name, provenance)
    metadata = {"title": provenance.title, **provenance.settings} if provenance != NOTHING else {}
    return {
        "CSV": (f"{named}.csv", lambda: frame_csv(make())),
        "Parquet": (f"{named}.parquet", lambda: frame_parquet(make(), metadata)),
    }


def offer_sentence(key: str, sentence: str) -> None:
    """Put a sentence in markdown on the page as a file."""
    offer(key, Entry(html=lambda: sentence_html(sentence)))


# --- the menu ------------------------------------------------------------------------------------


def show_download_menu(page: str) -> None:
    """The menu of a page with this title; it lists what the page shows when it is opened."""
    registry: _Registry = st.session_state.setdefault(_REGISTRY, _Registry())
    registry.begin_run()
    _show_menu(page, registry)


@st.fragment
def _show_menu(page: str, registry: _Registry) -> None:
    menu = st.popover(
        "Download", icon=":material/download:", type="tertiary", key=_MENU, on_change="rerun"
    )
    if menu.open:
        with menu, st.container(gap="xsmall"):
            _list_downloads(page, registry)


def _list_downloads(page: str, registry: _Registry) -> None:
    with _row("page"):
        seen = _browser_part(key="download-seen", data={}, on_seen_change=lambda: None).seen
        entries = registry.list_entries(seen)
        make_page = partial(_write_page, page, list(entries.values()))
        _offer_file("This page (HTML)", make_page, f"{file_name(page)}.html", key="page")
    for key, entry in entries.items():
        if not (entry.files or entry.has_pictures):
            continue
        with _row(key):
            if entry.has_pictures:
                data = {"figure": class_name(key), "label": entry.title}
                _browser_part(key=f"download-pictures-{key}", data=data)
            else:
                st.text(entry.title, width="stretch")
            for label, (name, make) in entry.files.items():
                _offer_file(label, make, name, key=key)


def _row(key: str) -> DeltaGenerator:
    return st.container(
        key=f"download-row-{key}", horizontal=True, vertical_alignment="center", gap="small"
    )


def _offer_file(label: str, make: Callable[[], str | bytes], name: str, *, key: str) -> None:
    st.download_button(
        label,
        make,
        file_name(name),
        key=f"download-{key}-{label}",
        on_click="ignore",
        type="tertiary",
    )


def _write_page(page: str, entries: Sequence[Entry]) -> str:
    """A standalone page of the entries, with the settings that all figures share at its head."""
    parts = [entry for entry in entries if entry.html is not None]
    settings = [entry.about.settings for entry in parts if entry.about.settings]
    common = {
        name: value
        for name, value in (settings[0] if settings else {}).items()
        if all(values.get(name) == value for values in settings)
    }
    body = []
    for entry in parts:
        specific = {n: value for n, value in entry.about.settings.items() if n not in common}
        body += [entry.html() if entry.html else "", note_html(About(settings=specific).line)]
    return page_html(About(page, common), "".join(body))
