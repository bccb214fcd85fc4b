"""How it works: the whole way from a text to the product with another, in ten steps."""

from __future__ import annotations

from neuralviz.ui.how_it_works.main import show
from neuralviz.ui.page import page_header


def header() -> None:
    page_header(
        "How it works",
        "A language model learns one text for a few seconds. What changes in it *is* the text's "
        "embedding. Here is the whole way, with the real numbers of the chosen model.",
        r"$$E = \frac{E_c}{|E_c|}, \qquad E_c = \mathrm{concat}_j \frac{W'_j - W_j}{|W'_j - W_j|}$$"
        r" $W_j$ are a layer's weights before, $W'_j$ after micro-tuning on the text.",
        "Go through the steps with *Next* and *Back*, with the arrow keys, or by number. *Stage* "
        "leaves only the figure, with large letters. Below each figure: its formula.",
        "Neural embeddings, section 2 (Equation 1)",
    )


show(header)
