"""Compare: the same texts embedded by several methods, side by side."""

from __future__ import annotations

from neuralviz.ui.compare.main import show
from neuralviz.ui.page import page_header

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

show()
