"""Corpus map: many texts as points, by one method or by two side by side."""

from neuralviz.ui.corpus.main import show
from neuralviz.ui.page import show_page_header

show_page_header(
    "Corpus map",
    "Which texts belong together?",
    (
        "$$\\min_Y \\sum_{i \\ne j} v_{ij} \\log\\frac{v_{ij}}{w_{ij}} + (1 - v_{ij})\\log\\frac"
        "{1 - v_{ij}}{1 - w_{ij}},\\qquad w_{ij} = \\frac{1}"
        "{1 + a \\lVert y_i - y_j \\rVert^{2b}}$$\n\nUMAP: $v_{ij}$ is how likely two texts are "
        "to be neighbours by their embeddings, $w_{ij}$ how close their points $y$ are. The points "
        "move until the two match."
    ),
    (
        "Texts with similar embeddings are close. "
        "Each **point** is a text. With UMAP and t-SNE, **only closeness is meaningful**; "
        "directions, empty space and the size of a cluster are not. **Colours** show a label, a "
        "number, a date or the clusters. Hover over a point to read its text, click it to draw "
        "lines to its neighbours, or use the **lasso** to select several. The **names** on a map "
        "are the words that set its clusters apart; click one to rename its cluster, zoom in for "
        "more."
    ),
    (
        "UMAP: McInnes, Healy and Melville 2018, section 3; k-NN accuracy as in "
        "González-Márquez et al.; cluster words by class TF-IDF: Grootendorst 2022"
    ),
)

show()
