"""Training: an encoder learns from a corpus, and one sees how well it knows it, step by step."""

from neuralviz.ui.page import show_page_header
from neuralviz.ui.training import show

show_page_header(
    "Training",
    "Can an encoder learn **your** texts without labels?",
    (
        "$$\\ell_i=-\\log\\frac{e^{\\cos(a_i,p_i)/\\tau}}{\\sum_j e^{\\cos(a_i,p_j)/\\tau}}$$\n\n"
        "Of a batch of texts, each anchor $a_i$ has to find its own positive $p_i$ among those of "
        "all others (InfoNCE, $\\tau=0.05$)."
    ),
    (
        "**Crops**: anchor and positive are two different parts of a text. **Dropout**: the same "
        "part, read twice with different dropout. **Masking**: as crops, with tokens of both "
        "masked. The **loss** says how hard it is to find the other half; guessing among 64 has a "
        "loss of 4.16. **10-NN accuracy**: the share of texts whose ten nearest texts vote for "
        "their label; the labels are never trained on. At most 1,000 texts are measured."
    ),
    "Cropping outperforms dropout, sections 3 and 4, Appendix A.1",
)

show()
