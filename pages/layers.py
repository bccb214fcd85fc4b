"""Layer dynamics: how words change on their way through the layers, and where a text marks them."""

from __future__ import annotations

from neuralviz.ui.layers.main import show
from neuralviz.ui.page import page_header

page_header(
    "Layer dynamics",
    "A model rewrites the vector of every token layer by layer. Some words keep theirs, others "
    "turn: here is which, where, and what can be made of it.",
    r"SBERT-WK weighs the layers of each token $w$ and the tokens of a sentence:"
    r"$$\hat v_w = \sum_i \bigl(\omega\,\alpha_a + (1 - \omega)\,\alpha_n\bigr)_i\, v_w^i, "
    r"\qquad v_s = \sum_w \frac{\sigma^2_w}{\sum_u \sigma^2_u}\, \hat v_w$$"
    r"$v_w^i$ is the token's vector after layer $i$, $\alpha_a$ the inverse alignment with the "
    r"neighbouring layers, $\alpha_n$ the novelty, $\sigma^2_w$ the variance of the cosines of "
    r"consecutive layers.",
    "Layer 0 is the embedding before the first block; the last layer is what the model gives. "
    "A cosine of 1 between two layers means that the token's vector did not turn between them. "
    "*A text* follows its tokens, *A corpus* ranks words by how much they turn, *Scored pairs* "
    "measures what layers and settings are worth against human scores, and *Micro-tuning* "
    "shows which blocks a text changes when the model learns it.",
    "SBERT-WK, sections III and IV (Figures 1 to 3, Tables I and VII); frozen features, "
    "Figure 1; neural embeddings, section 2",
)

show()
