"""Masking blueprints: which tokens of a text each of its inputs masks."""

from neuralviz.ui.blueprints import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Masking blueprints",
    "Which tokens does the model have to predict?",
    (
        "A blueprint $(k, m)$ has the period $P = k + m$. For every shift "
        "$s = 0 \\dots \\min(P, N) - 1$ of a text of $N$ tokens, token $j$ is masked when\n\n"
        "$$(j - s) \\bmod P \\;\\ge\\; k.$$\n\n"
        "A text of one token would never be masked, so it has all shifts, $0 \\dots P - 1$."
    ),
    (
        "A blueprint **(keep, mask)** keeps a number of tokens, masks the next ones, and repeats "
        "this to the end of the text. Each shift of the pattern gives one masked input. "
        "Each row is one masked input, each column a token. A mix of blueprints masks every token "
        "several times, with varying amounts of context. Inputs that mask nothing are skipped."
    ),
    "Neural Embeddings for Text, section 2 and Appendix A (Figures 9 and 10)",
)

show()
