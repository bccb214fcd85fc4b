"""The script that every visit runs: the pages, the sidebar, the stage."""

from pathlib import Path

import streamlit as st

from neuralviz import ui
from neuralviz.paths import app_folder
from neuralviz.ui import live_figure  # noqa: F401  registers its files before other threads start
from neuralviz.ui.limits import is_served
from neuralviz.ui.model_choice import load_bundled, show_model_sidebar
from neuralviz.ui.pace import WARMING, import_pages_soon, open_large_map, slot
from neuralviz.ui.stage import send_before_leaving, show_stage_switch

ASSETS = Path(ui.__file__).with_name("assets")
PAGES = app_folder() / "pages"

st.set_page_config(
    page_title="neuralviz",
    page_icon=str(ASSETS / "icon.svg"),
    layout="wide",
    menu_items={"About": "**neuralviz** shows what a language model learns from a text."},
)
st.html(ASSETS / "app.css")
page = st.navigation(
    [
        st.Page(
            PAGES / "micro_tuning.py",
            title="Micro-tuning",
            icon=":material/trending_down:",
            default=True,
        ),
        st.Page(PAGES / "compare.py", title="Compare", icon=":material/compare_arrows:"),
        st.Page(PAGES / "corpus_map.py", title="Corpus map", icon=":material/scatter_plot:"),
        st.Page(PAGES / "training.py", title="Training", icon=":material/fitness_center:"),
        st.Page(PAGES / "frozen_features.py", title="Frozen features", icon=":material/ac_unit:"),
        st.Page(PAGES / "evaluation.py", title="Evaluation", icon=":material/fact_check:"),
        st.Page(PAGES / "layers.py", title="Layer dynamics", icon=":material/layers:"),
        st.Page(PAGES / "blueprints.py", title="Masking blueprints", icon=":material/grid_view:"),
        st.Page(PAGES / "how_it_works.py", title="How it works", icon=":material/school:"),
    ]
)
show_stage_switch()
show_model_sidebar()
send_before_leaving()
if is_served():
    import_pages_soon()
    WARMING.call_soon(open_large_map)
    WARMING.call_soon(load_bundled)
with slot():
    page.run()
