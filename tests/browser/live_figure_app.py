"""An app with a line that moves, a heatmap that can be clicked and a figure to take away."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from neuralviz.ui.figures import show_figure
from neuralviz.ui.live_figure import live_figure


@st.fragment(run_every=0.3)
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
    live_figure(figure, key="line", alt="Waves on a line")


moving()
heatmap = go.Figure(
    go.Heatmap(
        z=np.arange(12).reshape(3, 4) - 6,
        x=["a", "b", "c", "d"],
        y=["p", "q", "r"],
        customdata=[[f"{row}-{column}" for column in range(4)] for row in range(3)],
    )
)
clicked = live_figure(heatmap, key="heat", on_click="rerun")
st.text(f"clicked {clicked}")
show_figure(
    go.Figure(go.Bar(x=["one", "two"], y=[1, 2])),
    key="bars",
    numbers=pd.DataFrame({"word": ["one", "two"], "n": [1, 2]}),
    name="two bars",
    height=300,
)
