"""Micro-tuning: watch what a masked language model learns from a text."""

from neuralviz.ui.micro_tuning import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Micro-tuning",
    (
        "What does a language model learn from **your text**? The change in its weights is the "
        "text's **neural embedding**."
    ),
    (
        "$$E=\\frac{E_c}{|E_c|},\\qquad E_c=\\mathrm{concat}_j\\frac{W'_j-W_j}{|W'_j-W_j|}"
        "$$\n\n$W_j$ are the weights of layer $j$ before micro-tuning, $W'_j$ after it. Each "
        "layer's delta is normalised, then all deltas are concatenated."
    ),
    (
        "Tokens of the text are masked in turn, and the model predicts them. The **loss** "
        "measures how wrong its predictions are; it falls as the model learns. **What does "
        "it know now?** adds the delta to the model's weights and lets it fill the blanks of any "
        "sentence. The **shares** show which words shaped the delta: each step adds up "
        "contributions of the masked positions, so it can be split by word. **More figures**: the "
        "**norm of the delta** is how far a layer has changed. In the **heatmap**, each column "
        "is a neuron, sorted by its delta, and each row an epoch, the first at the bottom: orange "
        "values increased, purple ones decreased."
    ),
    "Neural Embeddings for Text, section 2 (Equation 1) and Appendix A",
)

show()
