"""The script that every visit runs: the pages, the sidebar, the stage."""

from pathlib import Path

import streamlit as st

from neuralviz import ui
from neuralviz.paths import app_folder
from neuralviz.ui import figures  # noqa: F401  registers its files before other threads start
from neuralviz.ui.address import begin_visit
from neuralviz.ui.choices import show_model_sidebar
from neuralviz.ui.limits import is_served
from neuralviz.ui.pace import WARMING, import_pages_soon, open_large_map, slot
from neuralviz.ui.page import send_before_leaving, show_stage_switch

ASSETS = Path(ui.__file__).with_name("assets")
PAGES, FIRST = app_folder() / "pages", "micro_tuning"
# pages that ask for models themselves
OWN_MODELS = ("Training", "Frozen features", "Evaluation", "Layer dynamics")
SIDEBAR = 240  # px: leaves two maps side by side 570 each on a laptop

st.set_page_config(
    page_title="neuralviz",
    page_icon=str(ASSETS / "icon.svg"),
    layout="wide",
    initial_sidebar_state=SIDEBAR,
    menu_items={"About": "**neuralviz** shows what a language model learns from a text."},
)
st.html(ASSETS / "app.css")
page = st.navigation(
    [
        st.Page(PAGES / f"{file}.py", title=title, icon=f":material/{icon}:", default=file == FIRST)
        for file, title, icon in (
            (FIRST, "Micro-tuning", "trending_down"),
            ("compare", "Compare", "compare_arrows"),
            ("corpus_map", "Corpus map", "scatter_plot"),
            ("training", "Training", "fitness_center"),
            ("frozen_features", "Frozen features", "ac_unit"),
            ("evaluation", "Evaluation", "fact_check"),
            ("layers", "Layer dynamics", "layers"),
            ("blueprints", "Masking blueprints", "grid_view"),
            ("how_it_works", "How it works", "school"),
        )
    ]
)
begin_visit(page)
show_stage_switch()
if getattr(page, "title", "") not in OWN_MODELS:  # without a server, a page has no title
    show_model_sidebar()
send_before_leaving()
if is_served():
    import_pages_soon()
    WARMING.call_soon(open_large_map)
with slot():
    page.run()
