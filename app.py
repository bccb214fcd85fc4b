"""neuralviz as a server. Start with `streamlit run app.py`."""

import streamlit as st

from neuralviz import ui
from neuralviz.ui import server

server.check_settings()
app = st.App(
    ui.NAVIGATION,
    routes=server.routes(),
    middleware=server.middleware(),
    lifespan=server.lifespan,
)
