"""An app of figures: a line that moves, a heatmap to click, bars to take away; or maps, on demand.

``?maps=2`` shows maps in two dimensions, ``?maps=3`` one in three.
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from neuralviz.plots.corpus_map import Standout, colour_by_code, map_figure
from neuralviz.plots.report import About
from neuralviz.ui.figures import Handlers, draw_live_figure, show_figure


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
    draw_live_figure(figure, key="line", alt="Waves on a line")


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
            draw_live_figure(
                figure,
                key=f"map-{name}",
                height=420,
                alt=f"map {name}",
                handlers=Handlers(note("clicked"), note("selected"), note("hovered")),
            )


if places := st.query_params.get("maps"):
    st.set_page_config(layout="wide")
    if not st.checkbox("Away"):
        maps(places == "2")
    selected = st.session_state.get("selected")
    st.text(f"selected {None if selected is None else sorted(selected)}")
    st.text(f"hovered {st.session_state.get('hovered')}")
    st.text(f"clicked {(st.session_state.get('clicked') or {}).get('customdata')}")
    st.stop()

moving()
heatmap = go.Figure(
    go.Heatmap(
        z=np.arange(12).reshape(3, 4) - 6,
        x=["a", "b", "c", "d"],
        y=["p", "q", "r"],
        customdata=[[f"{row}-{column}" for column in range(4)] for row in range(3)],
    )
)
draw_live_figure(heatmap, key="heat", handlers=Handlers(note("cell")))
st.text(f"clicked {st.session_state.get('cell')}")
show_figure(
    go.Figure(go.Bar(x=["one", "two"], y=[1, 2])),
    key="bars",
    numbers=pd.DataFrame({"word": ["one", "two"], "n": [1, 2]}),
    name="two bars",
    provenance=About("Two words & more", {"counted": "by hand"}),
    height=300,
)
