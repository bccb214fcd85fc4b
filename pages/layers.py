"""Layer dynamics: what every layer would predict, and how words change between layers."""

from neuralviz.ui.layers import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Layer dynamics",
    "What happens to a **word** between the layers of a model?",
    (
        "*Lens*: the model's head maps the last layer's vector of a masked token to probabilities "
        "of all tokens; here it does so with the vectors $h_l$ of every layer $l$, translated "
        "first by $A_l h_l + b_l$, a least-squares fit to the last layer, if you wish. What "
        "follows a model's last block, such as a norm, follows every layer. Without a head: the "
        "rows of the embedding table with the highest cosine similarity to a visible token's "
        "vectors.\n\n"
        "*A text*: SBERT-WK weights the layers of each token $w$ and the tokens of a sentence:\n\n"
        "$$\\hat v_w "
        "= \\sum_i \\bigl(\\omega\\,\\alpha_a + (1 - \\omega)\\,\\alpha_n\\bigr)_i\\, v_w^i, "
        "\\qquad v_s = \\sum_w \\frac{\\sigma^2_w}{\\sum_u \\sigma^2_u}\\, \\hat v_w$$\n\n"
        "$v_w^i$ is the token's vector at layer $i$, $\\alpha_a$ the inverse alignment with the "
        "neighbouring layers, $\\alpha_n$ the novelty, and $\\sigma^2_w$ the variance of the "
        "cosine similarities of consecutive layers."
    ),
    (
        "Each layer updates every token's vector. *Lens* shows from which layer on the model would "
        "guess a masked token right, before and after micro-tuning on the text; click a column to "
        "follow its token. SBERT-WK turns the changes of vectors into an embedding. "
        "Layer 0 is the embedding output before the first block; the last layer is the model's "
        "output. A cosine similarity of 1 between two layers means that the token's vector has "
        "not changed direction."
    ),
    "SBERT-WK, sections III and IV (Figures 1 and 2); Neural Embeddings for Text, section 2",
)

show()
