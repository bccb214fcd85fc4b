"""Maps of a corpus as a standalone page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from neuralviz.plots.corpus_map import FADED, Standout, map_figure, marker_look
from neuralviz.plots.point_colours import PointColour, PointGroup, point_groups
from neuralviz.plots.standalone import About, page_html
from neuralviz.plots.theme import style

MOST_CHARACTERS = 8_000_000  # of all texts on a page
LONGEST_TEXT = 2_000  # characters of a text on a page
FEWEST_CHARACTERS = 120  # of a text on a page, shown on hover
_HEIGHT = 560  # px of a map
_LEGEND_HEIGHT = 110  # px for its legend or colour bar
_SCRIPT = Path(__file__).with_name("map_page.js")
_STYLE = f"""
h2 {{ font-size: 1.15rem; margin: 0 }} .note {{ color: #5A6169 }}
label {{ margin-right: .5rem }} input, select {{ font: inherit; padding: .25rem .5rem }}
main {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr));
  gap: 1.5rem; margin-top: 1rem }}
section {{ min-width: 0 }} .map {{ height: {_HEIGHT}px }}
"""


@dataclass(frozen=True, eq=False)
class PageMap:
    title: str  # plain text
    coordinates: np.ndarray
    colours: Mapping[str, PointColour]  # by name; the first is the default
    names: Sequence[tuple[str, np.ndarray]] = ()  # cluster names and their [2 or 3] coordinates
    axes: Sequence[str] | None = None


def map_page(maps: Sequence[PageMap], texts: Sequence[str], provenance: About) -> str:
    """A page of maps with search; works offline, as it contains plotly.js (5 MB)."""
    max_characters = min(
        LONGEST_TEXT, max(FEWEST_CHARACTERS, MOST_CHARACTERS // max(1, len(texts)))
    )
    data = {  # plotly escapes text that could end the script
        "texts": [text[:max_characters] for text in texts],
        "faded": FADED,
        "maps": [_map(page_map) for page_map in maps],
    }
    cut = any(len(text) > max_characters for text in texts)
    note = f" Search covers the first {max_characters:,} characters of each text." if cut else ""
    sections = "".join(_section(place, page_map) for place, page_map in enumerate(maps))
    body = f"""<label for="search">Search</label>
<input id="search" type="search" size="30" autocomplete="off" placeholder="Find words in the texts">
<span id="found" aria-live="polite"></span>
<p class="note">Each point is a text. Point at it to read it.{note}</p>
<main>{sections}</main>
<script>{get_plotlyjs()}</script>
<script id="data" type="application/json">{to_json_plotly(data)}</script>
<script>{_SCRIPT.read_text("utf-8")}</script>
"""
    return page_html(provenance, body, style=_STYLE)


def _section(place: int, page_map: PageMap) -> str:
    options = "".join(
        f'<option value="{number}">{escape(name)}</option>'
        for number, name in enumerate(page_map.colours)
    )
    return (
        f'<section><h2>{escape(page_map.title)}</h2><label for="colour-{place}">Colour by</label>'
        f'<select id="colour-{place}">{options}</select>'
        f'<div class="map" id="map-{place}" role="figure" aria-label="{escape(page_map.title)}">'
        "</div></section>"
    )


def _map(page_map: PageMap) -> dict[str, Any]:
    n, dimensions = page_map.coordinates.shape
    size, opacity = marker_look(n)
    first, standout = next(iter(page_map.colours.values())), Standout(names=page_map.names)
    figure = map_figure(
        page_map.coordinates, np.arange(n), first, title="", standout=standout, axes=page_map.axes
    )
    layout = style(figure, dark=False).layout
    look = layout.to_plotly_json() | {"height": _HEIGHT, "autosize": True}
    look["margin"] = look["margin"] | {"t": 36, "b": _LEGEND_HEIGHT}  # whatever colour is chosen
    return {
        "points": [[_short(value) for value in axis] for axis in page_map.coordinates.T.tolist()],
        "size": size if dimensions == 2 else 0.6 * size,
        "opacity": opacity,
        "layout": {name: value for name, value in look.items() if name != "meta"},
        "colours": [
            [
                _group(group)
                for group in point_groups(colour, n, dimensions == 2, bool(page_map.axes))
            ]
            for colour in page_map.colours.values()
        ],
    }


def _group(group: PointGroup) -> dict[str, Any]:
    trace = dict(group.trace)
    hover = trace.pop("hovertemplate", "")
    entry = {"at": group.positions.tolist(), "trace": trace, "marker": group.marker, "says": hover}
    if group.values is not None:
        entry["values"] = [_short(value) for value in group.values.tolist()]
    return entry


def _short(value: float) -> float:
    return float(f"{value:.5g}")
