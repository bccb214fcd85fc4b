"""The figures that set methods beside each other."""

from __future__ import annotations

import numpy as np

from neuralviz.evaluation.similarity import Similarity
from neuralviz.plots.compare import difference_heatmap, text_names


def of_pairs(method: str, *pairs: float) -> Similarity:
    """Three texts, by the products of the first two, the first and the last, the last two."""
    products = np.eye(3)
    products[np.triu_indices(3, 1)] = pairs
    return Similarity(method, ("a", "b", "c"), np.maximum(products, products.T), np.zeros(3))


def test_a_difference_is_one_of_ranks_so_that_no_range_of_similarities_wins() -> None:
    low, high = of_pairs("neural", 0.04, 0.02, 0.03), of_pairs("sbert-wk", 0.60, 0.70, 0.65)
    figure = difference_heatmap(low, high, text_names(low.texts), np.arange(3))
    (cells,) = figure.data
    assert cells.text == (["", "+2", "−2"], ["+2", "", "0"], ["−2", "0", ""])
    assert (cells.zmin, cells.zmax) == (-2, 2)
    assert figure.layout.title.text == "Ranks: neural against sbert-wk"
    assert cells.colorbar.title.text == "orange: higher by neural"
