"""Evaluation: how good an embedding is, on labelled data, and where it goes wrong."""

from __future__ import annotations

from neuralviz.ui.evaluation import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Evaluation",
    (
        "How good is an embedding? **Compare cosine similarities with human scores, groups and "
        "labels**, and see where each method fails."
    ),
    (
        "$$\\text{broken:}\\quad E_A\\cdot E_B\\le E_A\\cdot E_C\\qquad\\text{shared errors:}"
        "\\quad I=\\frac{|T_1\\cap T_2|}{\\min(|T_1|,|T_2|)}$$\n\nA is the anchor, B the "
        "positive (similar) and C the negative (dissimilar). $T_1$ and $T_2$ are the triplets "
        "that two methods break."
    ),
    (
        "The sentence above the figures compares the best method with the others. Each **lead** "
        "is a paired difference: both methods are measured in the same 1,000 resamples of the "
        "data. Where its 95% interval includes 0, the data do not decide. (The intervals of two "
        "methods may overlap although their difference is clear.)\n\n"
        "**Correlations** measure whether cosine similarity rises with the human score; higher "
        "is better. A **triplet** has an anchor, a positive from its group and a "
        "negative from another group; it is broken when the anchor is not more similar to the "
        "positive than to the negative. A **comparison** takes a similar and a dissimilar pair; "
        "it is broken when the similar pair's cosine similarity is not higher. For errors, lower "
        "is better. **Published** results name their model; the bundled model is far smaller "
        "than BERT.\n\n*same* and *diff* are the mean cosine similarities of similar and of "
        "dissimilar texts; a large difference is good. *Alignment* is the mean squared distance "
        "of similar texts, *uniformity* how evenly all embeddings are distributed; lower is "
        "better for both. *10-NN* is the share of texts whose ten neighbours vote for their "
        "label; higher is better. A **probe** is a small network that learns to tell something "
        "from embeddings, such as how long a text is; its accuracy is that on texts it has not "
        "seen. It says what can be read off an embedding, not what cosine similarity reflects."
    ),
    "Neural Embeddings for Text, section 3 and Appendices C, G and H; SBERT-WK, Tables V to VII "
    "and Figure 3; alignment and uniformity: Wang and Isola 2020",
)

show()
