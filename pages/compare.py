"""Compare: the same texts embedded by several methods, side by side."""

from neuralviz.ui.compare import METHODS_IN_SHORT, show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Compare",
    "How similar are these texts, and where do the methods **disagree**?",
    (
        "$$P(A,B)=E_A\\cdot E_B,\\qquad |E|=1$$\n\nThe cosine similarity of two texts is the dot "
        "product of their embeddings, which have length 1."
    ),
    (
        "Each cell of a **heatmap** is a pair of texts; bright cells are similar pairs, and a text "
        "with itself is grey; columns are in the order of the rows. Each heatmap uses all colours, "
        "from its least to its most similar pair. Methods use different ranges, so a pair's "
        "**rank** among all pairs says more than its cosine similarity. The **table** lists the "
        "pairs whose ranks differ most, as a share of all ranks; select a row to see its texts. "
        + METHODS_IN_SHORT
        + " In the examples, a text's **form** is its kind, such as a headline or a question."
    ),
    "Neural Embeddings for Text, sections 2 and 3, Appendices G and H; SBERT-WK, section IV",
)

show()
