"""Micro-tuning: watch a masked language model learn a text."""

from __future__ import annotations

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE, is_fast
from neuralviz.ui.micro_tuning import (
    layer_choice,
    layers_to_choose_from,
    recorded_run,
    run_settings,
    runs_panel,
    say_how_long,
    submit_run,
)
from neuralviz.ui.model_choice import chosen_model_id
from neuralviz.ui.page import page_header, plain, show_error
from neuralviz.ui.precision import choose_precision
from neuralviz.ui.texts import put_in_address, texts_input

EXAMPLES = {
    "Two banks": recorded_run().texts,
    "One sentence": [
        "The old lighthouse keeper climbed the stairs every evening to light the lamp."
    ],
    "Word order": ["The dog chased the cat.", "The cat chased the dog.", "The cat was chased."],
    "A short story": [
        "Mina planted a seed in a cracked pot. Nothing happened for weeks, and her brother "
        "laughed at her. Then one morning a green tip broke the soil, and nobody laughed any more."
    ],
}

page_header(
    "Micro-tuning",
    "A masked language model learns **your text** for a few epochs. The change of its weights, "
    "the delta, is the text's **neural embedding**.",
    r"$$E=\frac{E_c}{|E_c|},\qquad E_c=\Big\Vert_j\;\frac{W'_j-W_j}{|W'_j-W_j|}$$"
    "\n\n$W_j$ are the weights of layer $j$ before tuning, $W'_j$ after it; "
    "each layer's delta is normalised, and the layers are joined.",
    "Words of the text are hidden in turn and the model has to guess them. **Loss** says how wrong "
    "it is: it falls while the model learns. **Length of the delta** says how far a layer has "
    "moved. In the **heatmap** a column is a neuron and a row an epoch; purple went down, orange "
    "went up, and triangles point at the neurons that moved most. **Shares** say which words wrote "
    "the delta: every step is a sum over hidden words, so the sum can be taken apart again.",
    "Vasilyev & Bohannon, Neural Embeddings for Text, section 2, Equation 1 and Appendix A.",
)

texts = texts_input("micro-tuning", EXAMPLES, max_texts=1000).texts
model_id = chosen_model_id()
choice = layers_to_choose_from(model_id)
if choice is not None:
    button, below = st.columns([1, 7])
    folder = below.expander("Settings", icon=":material/tune:", key="settings", on_change="rerun")
    with folder:
        layers = layer_choice(*choice)
        columns = st.columns(4)
        blueprints = columns[0].text_input(
            "Blueprints (keep, mask)",
            "(2,1), (1,1), (1,2), (1,3)",
            key="blueprints",
            bind="query-params",
            help="Keep so many tokens, mask the next so many, and so on; then shifted. "
            "The page “Masking blueprints” draws them.",
        )
        epochs = columns[1].number_input(
            "Epochs", value=10, step=1, key="epochs", bind="query-params", help="1 … 1000"
        )
        learning_rate = columns[2].number_input(
            "Learning rate",
            value=0.01,
            step=0.005,
            format="%g",
            key="learning_rate",
            bind="query-params",
            help="Of AdamW; the paper uses 0.01.",
        )
        with columns[3]:
            precision = choose_precision("Precision", "precision", "exact")
        tolerance = DEFAULT_TOLERANCE
        if is_fast(precision):
            tolerance = columns[3].number_input(
                "Tolerance",
                value=DEFAULT_TOLERANCE,
                step=0.001,
                format="%g",
                key="tolerance",
                bind="query-params",
                help="How far below 1 the cosine of a fast embedding to the exact one may be.",
            )
        said_inside = st.container()
        unmasked = st.toggle(
            "Mask nothing: predict every word",
            key="unmasked",
            bind="query-params",
            help="The paper found that this still works, but less well.",
        )

    settings, why_not = None, ""
    try:
        settings = run_settings(
            layers, blueprints or "", epochs, learning_rate, unmasked, precision, tolerance
        )
        if settings.precision != "exact" and not folder.open:
            st.caption(f"Texts are learnt {settings.precision_in_words}.")
        say_how_long(texts, settings)
    except NeuralvizError as error:
        with said_inside if folder.open else st.container():
            show_error(error)
        why_not = str(error)
    ready = bool(texts) and settings is not None
    if not texts:
        why_not = "Give a text above, and it can be tuned on."
        st.caption(why_not)
    pressed = button.button(
        "Tune",
        type="primary",
        icon=":material/play_arrow:",
        disabled=not ready,
        width="stretch",
        help=plain(why_not) or None,
    )
    if pressed and ready:
        try:
            submit_run(model_id, texts, settings)
            put_in_address("micro-tuning", texts)
        except NeuralvizError as error:
            show_error(error)
runs_panel()
