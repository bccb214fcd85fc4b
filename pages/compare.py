"""Compare: the same texts embedded by several methods, side by side."""

from __future__ import annotations

import streamlit as st

from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.compare.panels import choose_order, show_comparison
from neuralviz.ui.compare.run import Comparison, submit
from neuralviz.ui.compare.settings import choose_methods, needs_asking
from neuralviz.ui.page import page_header
from neuralviz.ui.texts import put_in_address, texts_input

MAX_TEXTS = 300
EXAMPLES = {
    "Style and content": "style_and_content.csv",
    "Word order": "word_order.csv",
    "Rare words": "common_topic_rare_words.csv",
    "Topics": "sentences.csv",
}


@st.cache_data(max_entries=1, show_spinner=False)
def examples() -> dict[str, ReadTexts]:
    """Sets from the sample data, with their labels."""
    return {
        name: read_texts(Source(file, (sample_data() / file).read_bytes()))
        for name, file in EXAMPLES.items()
    }


page_header(
    "Compare",
    "How similar are texts? **Every method has an answer of its own**; see where they part ways.",
    r"$$P(A,B)=E_A\cdot E_B,\qquad |E|=1$$"
    "\n\nThe product of two embeddings of length 1 is the cosine of the angle between them.",
    "Each cell of a **heatmap** is a pair of texts; bright is similar, and all heatmaps share one "
    "scale of colours. Methods use that scale differently, so **places** among all pairs tell "
    "more about a disagreement than the products themselves. **Neural** embeddings are the "
    "change of weights that learning a text causes, **mean** is the mean of a sentence "
    "encoder's token vectors, **SBERT-WK** weighs tokens and layers by how the vectors move "
    "through the network.",
    "Neural embeddings, sections 2 and 3, Appendices G and H; SBERT-WK, section IV.",
)

read = texts_input("compare", examples(), max_texts=MAX_TEXTS)
specs = choose_methods()
button, place, _ = st.columns([1, 2, 4], vertical_alignment="bottom")
with place:
    order = choose_order(dict(read.labels))
ready = specs is not None and len(read.texts) > 1
if not read.texts:
    st.caption("Give at least two texts above, and they can be compared.")
elif len(read.texts) == 1:
    st.info("One text has nothing to be compared with; give at least two.")
pressed = button.button(
    "Compare", type="primary", icon=":material/compare_arrows:", disabled=not ready, width="stretch"
)
shown: Comparison | None = st.session_state.get("comparison")
if ready:
    is_new = shown is None or (shown.texts, shown.specs) != (read.texts, specs)
    is_example = st.session_state.get("compare-source") == "Example"
    starts_by_itself = is_new and is_example and not needs_asking(specs)
    again = pressed and (is_new or shown.job.status in ("stopped", "failed") or shown.errors)
    if starts_by_itself or again:
        shown = Comparison(specs, read.texts, dict(read.labels))
        submit(shown)
    elif not is_new:
        shown.labels = dict(read.labels)
    elif shown is not None:
        st.caption("The texts or the settings have changed: press **Compare** to see it.")
    if pressed and not is_example:
        put_in_address("compare", read.texts)
elif shown is not None:
    st.caption("Below stands what was compared last.")
if shown is not None:
    show_comparison(shown, order)
