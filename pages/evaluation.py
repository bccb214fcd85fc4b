"""Evaluation: how good an embedding is, on labelled data, and where it goes wrong."""

from __future__ import annotations

from neuralviz.ui.evaluation.main import show
from neuralviz.ui.page import page_header

page_header(
    "Evaluation",
    "Is an embedding any good? **Products of embeddings against what people said**: scores, groups "
    "and labels, and where each method goes wrong.",
    r"$$\text{broken:}\quad E_A\cdot E_B\le E_A\cdot E_C\qquad"
    r"\text{in common:}\quad I=\frac{|T_1\cap T_2|}{\min(|T_1|,|T_2|)}$$"
    "\n\nA and B are alike, C is not. $T_1$ and $T_2$ are the triplets that two methods break.",
    "**Correlations** say whether products rise with people's scores; lines are intervals that "
    "hold 95 % of bootstrap samples, so two methods whose lines overlap much may be equally good. "
    "**Triplets** take an anchor, a text of its group and one of another group: broken when the "
    "other one is nearer. **Pairs** take a similar and a dissimilar pair. Among what was "
    "**published** the model is named: the bundled model is far smaller than BERT.\n\n"
    "*same* and *diff* are mean products of what is alike and what is not: far apart is good. "
    "*Alignment* is the mean squared distance of what is alike, *uniformity* says how evenly all "
    "vectors are spread: lower is better. *10-NN* is the share of texts whose ten nearest others "
    "vote for their label: higher is better.",
    "Neural embeddings, section 3 and Appendices C, G and H; SBERT-WK, Table VII and Figure 3; "
    "alignment and uniformity: Wang & Isola 2020.",
)

show()
