"""An app of figures: a line that moves, a heatmap to click, bars; or maps; or pictures.

``?maps=2`` shows maps in two dimensions, ``?maps=3`` one in three; ``?pictures`` what is hard to
draw.
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from neuralviz.plots.corpus_map import Standout, colour_by_code, colour_by_number, map_figure
from neuralviz.plots.report import About
from neuralviz.ui.figures import Handlers, show_figure, show_table
from neuralviz.ui.page import show_headline, show_page_header


@st.fragment(run_every=0.5)
def moving() -> None:
    tick = st.session_state["tick"] = st.session_state.get("tick", 0) + 1
    x = np.arange(30)
    figure = go.Figure(
        [
            go.Scatter(x=x, y=x + np.sin(x + tick), name="waves"),
            go.Scatter(x=x, y=x * 1.5, name="straight"),
        ]
    )
    figure.update_layout(title="Waves", xaxis_title="step", meta={"tick": tick})
    show_figure(figure, "line", alt="Waves on a line", height=360)


def note(event: str):
    def keep(value) -> None:
        st.session_state[event] = value

    return keep


def maps(flat: bool) -> None:
    """Two maps of a grid of points with a shared selection, or one point in three dimensions."""
    side = 20 if flat else 1
    across, up = np.meshgrid(np.arange(side), np.arange(side))
    points = np.stack([across.ravel(), up.ravel(), *([] if flat else [[0]])], axis=1)
    rows = 1000 + np.arange(len(points))
    colour = colour_by_code("parity", rows % 2, ["even", "odd"])
    selected = st.session_state.get("selected")
    chosen = None if selected is None else np.isin(np.arange(2000), selected)
    for column, name in zip(st.columns(2 if flat else 1), ("one", "other"), strict=False):
        figure = map_figure(points, rows, colour, title=name, standout=Standout(selected=chosen))
        with column:
            show_figure(
                figure,
                f"map-{name}",
                height=420,
                alt=f"map {name}",
                handlers=Handlers(note("clicked"), note("selected"), note("hovered")),
            )


LONG = "a label of two hundred characters " * 6
SETTINGS = {f"setting {i}": "a value that says how it was made" for i in range(9)}


def pictures() -> None:
    """Maps of 28 clusters with long labels and names, a colour bar, a heatmap with long names."""
    places = np.random.default_rng(0)
    centres = places.normal(size=(28, 2))
    points = np.repeat(centres, 10, axis=0) + places.normal(size=(280, 2)) / 20
    rows = np.arange(280)
    labels = colour_by_code("label", rows // 10, [f"{i} {LONG}" for i in range(28)])
    standout = Standout(names=[(f"words, of {i}", place) for i, place in enumerate(centres)])
    about = About("Twenty-eight clusters", SETTINGS)
    for name, colour in (("labels", labels), ("numbers", colour_by_number("a number", rows))):
        figure = map_figure(points, rows, colour, title=LONG, standout=standout)
        show_figure(figure, f"map by {name}", None, about, handlers=Handlers(select=note("chosen")))
    lines = [go.Scatter(y=rows[:9] * i, name=f"{i} {LONG}") for i in range(28)]
    show_figure(go.Figure(lines, {"title": LONG, "xaxis_title": "step"}), "lines", None, about)
    names = [f"{i} {LONG[:60]}" for i in range(12)]
    cells = go.Heatmap(z=np.eye(12), x=names, y=names, text=np.eye(12), texttemplate="%{text:.2f}")
    show_figure(go.Figure(cells, {"title": "Cells"}), "cells", None, about)
    bars = go.Bar(y=[f"{i} {LONG[:40]}" for i in range(40)], x=rows[:40], orientation="h")
    show_figure(go.Figure(bars, {"title": "Many bars"}), "many bars", None, about, height=1200)


if "pictures" in st.query_params:
    st.set_page_config(layout="wide")
    show_page_header("Pictures", "What is hard to draw.", "", "", "")
    pictures()
    st.stop()

if places := st.query_params.get("maps"):
    st.set_page_config(layout="wide")
    if not st.checkbox("Away"):
        maps(places == "2")
    selected = st.session_state.get("selected")
    st.text(f"selected {None if selected is None else sorted(selected)}")
    st.text(f"hovered {st.session_state.get('hovered')}")
    st.text(f"clicked {(st.session_state.get('clicked') or {}).get('customdata')}")
    st.stop()

show_page_header("Figures", "A line, a heatmap and bars.", "", "", "")
moving()
heatmap = go.Figure(
    go.Heatmap(
        z=np.arange(12).reshape(3, 4) - 6,
        x=["a", "b", "c", "d"],
        y=["p", "q", "r"],
        customdata=[[f"{row}-{column}" for column in range(4)] for row in range(3)],
    )
)
show_figure(heatmap, "heat", height=360, handlers=Handlers(note("cell")))
show_headline("**Two** is more than one \\& \\<b\\>.", key="words")
words = pd.DataFrame({"word": ["ten", "two", "<b>"], "n": [10.0, 2.0, -3.5]})
show_table(words, "table")
st.text(f"clicked {st.session_state.get('cell')}")
show_figure(
    go.Figure(go.Bar(x=["one", "two"], y=[1, 2])),
    key="bars",
    numbers=pd.DataFrame({"word": ["one", "two"], "n": [1, 2]}),
    name="two bars",
    provenance=About("Two words & more", {"counted": "by hand"}),
    height=300,
)
