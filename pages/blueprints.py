"""Masking blueprints: which tokens of a text each of its inputs hides."""

from __future__ import annotations

from neuralviz.ui.blueprints.main import show
from neuralviz.ui.page import page_header

page_header(
    "Masking blueprints",
    "The model learns a text by guessing words of it that are hidden. A blueprint "
    "**(keep, mask)** says which: keep so many tokens, hide the next so many, and so on to the "
    "end. Each shift of the pattern is one input.",
    r"A blueprint $(k, m)$ has the period $P = k + m$. For every shift "
    r"$s = 0 \dots \min(P, N) - 1$ of a text of $N$ tokens, token $j$ is masked when"
    r"$$(j - s) \bmod P \;\ge\; k.$$",
    "Every row is one input of the model, every column a token. The strip counts in how many "
    "inputs a token is hidden: a mix of blueprints hides each one several times, with more or "
    "less of its surroundings. An input that would hide nothing is left out.",
    "Neural embeddings, section 2 and Appendix A (Figures 9 and 10)",
)

show()
