"""Corpus map: many texts as points, by one method or by two side by side."""

from __future__ import annotations

from neuralviz.ui.corpus.main import show
from neuralviz.ui.page import page_header

page_header(
    "Corpus map",
    "Many texts as points, texts of like vectors side by side. **Two methods make two maps**; see "
    "which texts they put in other company.",
    r"$$\min_Y \sum_{i \ne j} v_{ij} \log\frac{v_{ij}}{w_{ij}} + (1 - v_{ij})"
    r"\log\frac{1 - v_{ij}}{1 - w_{ij}},\qquad w_{ij} = \frac{1}{1 + a \lVert y_i - y_j "
    r"\rVert^{2b}}$$"
    "\n\nUMAP: $v_{ij}$ says how surely two texts are neighbours by their vectors, $w_{ij}$ how "
    "close their points $y$ lie; the points move until both agree.",
    "Each **point** is a text. On a map by UMAP or t-SNE **only nearness means something**: "
    "directions, empty space and the size of a group do not. **Colours** show a label, a number or "
    "the clusters found on the map. Point at a text to read it, click it for its nearest texts, "
    "draw around several with the **lasso**: all maps share the selection. A search **by meaning** "
    "puts a sentence of yours on the map, where its vector belongs.",
    "UMAP: McInnes, Healy and Melville 2018, section 3; k-nearest-neighbour accuracy as in "
    "González-Márquez et al.; cluster words by class TF-IDF, Grootendorst 2022.",
)

show()
