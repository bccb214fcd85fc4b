"""How it works: what a neural embedding is, in four moments or step by step."""

from neuralviz.ui.how_it_works import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "How it works",
    "What is a neural embedding?",
    (
        "$$E = \\frac{E_c}{|E_c|}, \\qquad "
        "E_c = \\mathrm{concat}_j \\frac{W'_j - W_j}{|W'_j - W_j|}$$\n\n"
        "$W_j$ are the weights of layer $j$ before micro-tuning on the text, $W'_j$ after it."
    ),
    (
        "Use *Next* and *Back*, the arrow keys or the step numbers. *Stage* (or S) fills "
        "the screen with the figure, in large type. *Step by step* has the formulas."
    ),
    "Neural Embeddings for Text, section 2 (Equation 1)",
)

show()
