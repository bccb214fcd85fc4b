"""Figures that stay the same element while their data change, and tables; see `downloads`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly
import plotly.graph_objects as go
import streamlit as st
import streamlit.components.v1
import streamlit.components.v2
from pandas.api.types import is_numeric_dtype
from streamlit.delta_generator import DeltaGenerator

from neuralviz.plots.report import (
    NAMES_SCRIPT,
    NOTHING,
    About,
    figure_html,
    file_name,
    frame_html,
    plain_text,
)
from neuralviz.plots.theme import shorten, shorten_text, templates_json, unstyled_json
from neuralviz.ui.address import digest_of, remember_number
from neuralviz.ui.downloads import Entry, Files, offer, table_files
from neuralviz.ui.page import hide_on_stage, plain, show_only_on_stage
from neuralviz.words import number

VISIBLE_CASES = 3  # the others are in the expander
QUOTE_LENGTH = 90  # characters of a text in a sentence
CELL_LENGTH = 300  # characters of a text in the table
STAGE_ROWS, STAGE_LENGTH = 5, 110  # rows on the stage, and characters of a text there
LABEL_LENGTH = 30  # characters of a label in the table
FOOTER_LENGTH = 400
_ASSETS = Path(__file__).with_name("assets")
_PLOTLY = Path(plotly.__file__).with_name("package_data")

_VERSION = version("plotly")
_plotlyjs = streamlit.components.v1.declare_component("plotlyjs", path=str(_PLOTLY))
_component = streamlit.components.v2.component(
    "neuralviz_live_figure",
    html="<div class='neuralviz-figure' role='figure'></div>",
    css=".neuralviz-figure { width: 100%; overflow: hidden; }",
    js="\n".join(
        [
            f"const TEMPLATES = {templates_json()}",
            NAMES_SCRIPT,
            *((_ASSETS / name).read_text("utf-8") for name in ("picture.js", "live_figure.js")),
        ]
    ),
    isolate_styles=False,
)
MOST_AREAS = 100  # in one selection
_RUN_ID = re.compile(r"-?[0-9a-f]{24}")  # differs from visit to visit
NOT_SORTED = -1  # by no column
# at the beginning of a cell, as in sort_tables.js: no date, no place in a list
_NUMBER = r"^([-+]?(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?)(?![\d./:-])"
ROW_HEIGHT, LIST_HEIGHT = 37, 390  # px: of a row of a table, of a table at most


# --- the live figure -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Handlers:
    """Callbacks for clicks, selections and hovering, called before the page or fragment reruns."""

    # gets {"x", "y", "z", "curve", "point", "customdata"}; a heatmap's ``point`` is [row, column]
    click: Callable[[dict[str, Any]], None] | None = None
    # gets ``customdata``, whole numbers, of all points in a lasso or box; none after a double click
    select: Callable[[list[int]], None] | None = None
    # gets ``customdata``, a whole number, of the point under the pointer
    hover: Callable[[int], None] | None = None
    # in place of ``select``: gets lassos and boxes, [corner, 2] each, in units of the axes
    areas: Callable[[list[np.ndarray]], None] | None = None
    # gets what is seen after zooming: (left, right, bottom, top), None for the whole figure
    window: Callable[[tuple[float, ...] | None], None] | None = None


NO_HANDLERS = Handlers()


def show_figure(
    figure: go.Figure,
    name: str,  # of all downloads, without ending; see `file_name`
    numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None = None,  # a row per mark
    provenance: About = NOTHING,  # title and settings, for downloads
    *,
    key: str = "",  # without two underscores in a row; ``name`` if empty
    height: int = 0,  # px, kept from the first moment; by default that of the figure, else 420
    handlers: Handlers = NO_HANDLERS,
    alt: str = "",  # for screen readers; the figure's title if empty
    window: tuple[float, ...] | None = None,  # seen at first; all if None; see `Handlers`
    html: Callable[[], str] | None = None,  # on the page as a file; by default the figure
    files: Files | None = None,  # further downloads
) -> None:
    """Draw a figure, or update the one drawn under ``key``, and put it into the downloads.

    Zoom and hidden legend entries stay until ``layout.uirevision`` changes.
    """
    key, height = key or name, height or figure.layout.height or 420
    title = plain_text(figure.layout.title.text or "") or provenance.title
    others = {} if provenance.title in ("", title) else {"": provenance.title}
    settings = About(settings={**others, **provenance.settings}).line
    look = {
        "window": window,
        "alt": alt or figure.layout.title.text or key,
        "name": file_name(name, provenance),
        "title": title,
        "footer": shorten(settings, FOOTER_LENGTH),
    }
    _draw(figure, key, height, handlers, look)
    of_numbers = {} if numbers is None else table_files(numbers, name, provenance)
    entry = Entry(
        title or alt or name,
        {**of_numbers, **(files or {})},
        html or (lambda: figure_html(figure, height)),
        has_pictures=True,
        about=provenance,
    )
    offer(key, entry)


def _draw(
    figure: go.Figure, key: str, height: int, handlers: Handlers, look: Mapping[str, Any]
) -> None:
    content = unstyled_json(figure).encode()  # megabytes for many points
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    layout = {"autosize": True, "height": height, "uirevision": figure.layout.uirevision or key}
    spec = {
        **look,
        "layout": layout,
        "digest": f"{digest} {height}",
        "plotly": f"component/{_plotlyjs.name}/plotly.min.js?v={_VERSION}",
        "clicks": handlers.click is not None,
        "selects": "areas" if handlers.areas else "points" if handlers.select else "",
        "hovers": handlers.hover is not None,
        "windows": handlers.window is not None,
        "place": _RUN_ID.sub("", key),  # the address has its zoom under this name
        # that of another figure does not count
        "drawn": digest_of(_RUN_ID.sub("", look["name"]) + look["footer"]),
    }

    def hand_over(event: str, handle: Callable[[Any], None] | None) -> Callable[[], None]:
        return lambda: handle(st.session_state[key][event]) if handle is not None else None

    def hand_over_areas(sent: list[dict[str, list[float]]]) -> None:
        if handlers.areas is not None:
            handlers.areas(_areas(sent))

    def hand_over_window(event: dict[str, Any]) -> None:
        if handlers.window is not None and event["of"] == layout["uirevision"]:
            handlers.window(event["sides"] and tuple(map(float, event["sides"])))

    _component(
        key=key,
        data=json.dumps(spec).encode() + b"\n" + content,
        height=height,
        on_click_change=hand_over("click", handlers.click),
        on_select_change=hand_over("select", handlers.select),
        on_hover_change=hand_over("hover", handlers.hover),
        on_areas_change=hand_over("areas", hand_over_areas),
        on_window_change=hand_over("window", hand_over_window),
    )


def _areas(sent: list[dict[str, list[float]]]) -> list[np.ndarray]:
    """The browser's lassos and boxes as arrays, without invalid ones."""
    areas = [np.array([area["x"], area["y"]], dtype=float).T for area in sent[:MOST_AREAS]]
    return [area for area in areas if len(area) > 2 and np.isfinite(area).all()]


# --- tables and their like ------------------------------------------------------------------------


def list_cells(axes: Mapping[str, Iterable[Any]], **values: np.ndarray) -> pd.DataFrame:
    """A row for every cell of arrays: its place on each axis, by name, and the ``values`` there."""
    index = pd.MultiIndex.from_product([list(axis) for axis in axes.values()], names=list(axes))
    return pd.DataFrame(
        {name: cells.ravel() for name, cells in values.items()}, index
    ).reset_index()


def show_table(
    table: pd.DataFrame,
    key: str,
    *,
    name: str = "",  # of its order in the address; ``key`` if empty
    limit: int | None = None,  # rows that are shown
    choose: Callable[[int], None] | None = None,  # gets the place of a row that is clicked
    cells: Mapping[str, Callable[[pd.Series], list[str]]] = {},  # written for the shown rows
    column_config: Mapping[str, Any] = {},
    title: str = "",
    files: Files | None = None,
    **look: Any,
) -> None:
    """Show a table that scrolls; ``look`` is that of ``st.dataframe``.

    A click on the head of a column sorts all rows by it, a second one the other way round, and a
    third one brings the first order back. Links keep the order.
    """
    columns, sort_key = list(look.get("column_order") or table.columns), f"sort-{name or key}"
    place = f"table-{key}"
    order: int = remember_number(sort_key, range(NOT_SORTED, 2 * len(columns)), NOT_SORTED, columns)
    rows, configs = table.reset_index(drop=True), dict(column_config)
    if order != NOT_SORTED:
        head, descends = columns[order // 2], order % 2 == 1
        rows = rows.sort_values(head, ascending=not descends, kind="stable", key=_fold)
        configs[head] = {**configs.get(head, {}), "label": f"{head} {'▼' if descends else '▲'}"}
        key = f"{key}-{order}"  # the head is not selected any more
    widget = _name_widget(key)
    rows = rows[:limit]
    rows = rows.assign(**{head: write_cells(rows[head]) for head, write_cells in cells.items()})

    def answer_click() -> None:
        selection = st.session_state[widget]["selection"]
        for first in (2 * columns.index(head) for head in selection["columns"]):
            st.session_state[sort_key] = {first: first + 1, first + 1: NOT_SORTED}.get(order, first)
        for row, _ in selection["cells"]:
            if choose is not None:
                choose(int(rows.index[row]))
                st.session_state[f"{key}-clicked"] = True

    with st.container(key=place):
        st.dataframe(
            rows,
            hide_index=True,
            key=widget,
            on_select=answer_click,
            selection_mode="single-column" if choose is None else ("single-column", "single-cell"),
            column_config=configs,
            **look,
        )
    formats = {
        head: config["type_config"]["format"]
        for head, config in column_config.items()
        if str(config["type_config"].get("format", "")).startswith("%")
    }
    html = partial(frame_html, rows[columns], title, formats)
    offer(key, Entry(title, files or {}, html, place=place))


def _name_widget(key: str) -> str:
    """The key of a table's widget, a new one once something else than its cell was chosen.

    A browser sends no click on a cell that is selected already.
    """
    n: int = st.session_state.setdefault(f"{key}-renewed", 0)
    is_clicked, state = st.session_state.pop(f"{key}-clicked", False), f"{key}-{n}"
    if not is_clicked and st.session_state.get(state, {}).get("selection", {}).get("cells"):
        st.session_state[f"{key}-renewed"] = n = n + 1
    return f"{key}-{n}"


def _fold(values: pd.Series) -> pd.Series:
    """Numbers by value, others as words without regard to case (2. before 10.), blank ones last."""
    if is_numeric_dtype(values):
        return values
    words = values.astype(str).str.strip().str.lower().str.replace("−", "-")
    words = words.where(values.notna() & words.str.contains(r"[^\W_]"))
    digits = words.str.extract(_NUMBER)[0]
    if digits.notna().equals(words.notna()):
        return digits.str.replace(",", "").astype(float)
    return words.str.replace(r"\d+", lambda found: found[0].zfill(20), regex=True)


def show_choosable_table(
    table: Mapping[str, Any],
    key: str,
    choose: Callable[[int], None],
    columns: Mapping[str, Any],  # how they are shown; see ``st.dataframe``
    order: Sequence[str] | None = None,  # the columns to show; all if None
    **look: Any,  # see `show_table`
) -> None:
    """A table that is as high as it is long; a click on a row calls ``choose`` with its place."""
    frame = pd.DataFrame(table)
    height = min(LIST_HEIGHT, ROW_HEIGHT * (len(frame) + 1) + 3)
    look |= {"choose": choose, "column_config": columns, "column_order": order, "height": height}
    show_table(frame, key, **look)


def show_html(body: str, key: str, *, title: str = "", files: Files | None = None) -> None:
    """Show HTML in which the user's texts are escaped."""
    with st.container(key=key):
        st.html(body)
    offer(key, Entry(title, files or {}, lambda: body))


def allow_swiping(key: str, min_width: int) -> DeltaGenerator:
    """Keep a figure ``min_width`` px wide on a narrow screen, where it can be swiped."""
    place, container = f".st-key-{key}", st.container(key=key)
    container.html(
        f"<style>{place} {{overflow-x: auto}} {place} "
        f".stElementContainer:has(.neuralviz-figure) {{min-width: {min_width}px}}</style>"
    )
    return container


def list_worst(frame: pd.DataFrame, key: str, title: str = "", files: Files | None = None) -> None:
    """Show a table of texts and numbers, the worst row first."""
    written = frame.copy()
    for name in frame.columns:
        if is_numeric_dtype(frame[name]):
            digits = ".3g" if name == "human score" else ".3f"
            written[name] = [number(value, digits) for value in frame[name]]
        else:
            length = LABEL_LENGTH if str(name).endswith("label") else CELL_LENGTH
            written[name] = [shorten_text(text, length) for text in frame[name]]
    has_room = sum(str(name).startswith("text") for name in frame) == 1
    show_first_rows("", written, f"{key}-first", STAGE_ROWS + 3 * has_room)
    with hide_on_stage(f"{key}-few"), st.container(key=f"{key}-listed"):
        st.table(written[:VISIBLE_CASES].map(plain), hide_index=True)
    offer(f"{key}-listed", Entry(title, files or {}, lambda: frame_html(written, title)))
    if len(frame) > VISIBLE_CASES:
        with hide_on_stage(key), st.expander(f"The worst {len(frame)}"):
            st.dataframe(written, hide_index=True, key=key)


def show_first_rows(
    terms: str, table: Mapping[str, Any] | pd.DataFrame, key: str, n_rows: int = STAGE_ROWS
) -> None:
    """On the stage, ``terms`` and the first rows of a table, with texts in lines and not cut."""
    with show_only_on_stage(key):
        st.markdown(terms)
        cells = pd.DataFrame(table)[:n_rows].map(lambda cell: shorten_text(str(cell), STAGE_LENGTH))
        st.table(cells.map(plain).rename(columns=plain), hide_index=True)


def quote(text: str) -> str:
    """A user's text as a quotation in a sentence of markdown."""
    return f"“{plain(shorten_text(text, QUOTE_LENGTH))}”"
