"""Evaluation: how good an embedding is, on labelled data, and where it goes wrong."""

from neuralviz.ui.evaluation import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Evaluation",
    "How good is an embedding, by people's **scores, groups or labels**?",
    (
        "$$\\text{broken:}\\quad E_A\\cdot E_B\\le E_A\\cdot E_C\\qquad\\text{shared "
        "errors:}\\quad I=\\frac{|T_1\\cap T_2|}{\\min(|T_1|,|T_2|)}$$\n\nA is the anchor, B the "
        "positive (similar) and C the negative (dissimilar). $T_1$ and $T_2$ are the triplets that "
        "two methods break."
    ),
    (
        "The sentence above the figures compares the best method with the others. Each **lead** is "
        "a paired difference over the same 1,000 resamples of the data; where its 95% interval "
        "includes 0, the difference is not significant.\n\n**Correlations** measure whether cosine "
        "similarity rises with the human score. A **triplet** is broken when its anchor is not "
        "more similar to the positive, from its group, than to the negative, from another. A "
        "**comparison** is broken when a similar pair's cosine similarity is not higher than a "
        "dissimilar pair's. **Published** results name their model; the bundled model is far "
        "smaller than BERT.\n\n*same* and *diff* are the mean cosine similarities of similar and "
        "of dissimilar texts. *Alignment* is the mean squared distance of similar texts, "
        "*uniformity* how evenly all embeddings are distributed; lower is better for both. *10-NN* "
        "is the share of texts whose ten neighbours vote for their label. A **probe** is a small "
        "network that learns to tell something from embeddings; its accuracy is that on texts it "
        "has not seen.\n\n*Similar and dissimilar*: the less the two distributions overlap, the "
        "better a method tells similar from dissimilar texts. *Confused labels*: a row shows which "
        "labels the texts of one label get. *Shared errors*: the triplets or comparisons that two "
        "methods break, divided by the number that the better one breaks; where it is low, "
        "combining them may help. *Controlled paraphrases*: one quality varies, the others are "
        "fixed."
    ),
    (
        "Neural Embeddings for Text, section 3 and Appendices C, G and H; SBERT-WK, Tables V to "
        "VII and Figure 3; alignment and uniformity: Wang and Isola 2020"
    ),
)

show()
