"""Layer dynamics: how words change from layer to layer, and which blocks a text changes."""

from neuralviz.ui.layers import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Layer dynamics",
    "What happens to a **word** between the layers of a model?",
    (
        "SBERT-WK weights the layers of each token $w$ and the tokens of a sentence:\n\n"
        "$$\\hat v_w "
        "= \\sum_i \\bigl(\\omega\\,\\alpha_a + (1 - \\omega)\\,\\alpha_n\\bigr)_i\\, v_w^i, "
        "\\qquad v_s = \\sum_w \\frac{\\sigma^2_w}{\\sum_u \\sigma^2_u}\\, \\hat v_w$$\n\n"
        "$v_w^i$ is the token's vector at layer $i$, $\\alpha_a$ the inverse alignment with the "
        "neighbouring layers, $\\alpha_n$ the novelty, and $\\sigma^2_w$ the variance of the "
        "cosine similarities of consecutive layers."
    ),
    (
        "Each layer updates every token's vector; SBERT-WK turns these changes into an embedding. "
        "Layer 0 is the embedding output before the first block; the last layer is the model's "
        "output. A cosine similarity of 1 between two layers means that the token's vector has "
        "not changed direction."
    ),
    "SBERT-WK, sections III and IV (Figures 1 to 3, Tables I and VII); FREEZE: Pretrained "
    "Language Models as Frozen Feature Extractors, Figure 1; Neural Embeddings for Text, section 2",
)

show()
