"""Micro-tuning: watch a masked language model learn a text."""

from __future__ import annotations

from neuralviz.ui.micro_tuning.main import show
from neuralviz.ui.page import page_header

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

show()
