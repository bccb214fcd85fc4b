"""The figures that set methods beside each other."""

from __future__ import annotations

import numpy as np

from neuralviz.evaluation.similarity import Similarity
from neuralviz.plots.compare import (
    MAX_VALUES,
    colour_range,
    difference_heatmap,
    similarity_heatmap,
    text_names,
)


def of_products(method: str, product: float, n: int = 2) -> Similarity:
    products = np.full((n, n), product, dtype=np.float32)
    np.fill_diagonal(products, 1)
    return Similarity(method, tuple(f"text {i}" for i in range(n)), products, np.zeros(n))


def test_negative_values_in_cells_have_a_minus_sign() -> None:
    low, high = of_products("mean", -0.254), of_products("neural", 0.1)
    names, order = text_names(low.texts), np.arange(2)
    heatmap = similarity_heatmap(low, names, order, colour_range([low]))
    assert heatmap.data[0].text == (["", "−0.25"], ["−0.25", ""])
    assert heatmap.data[0].texttemplate == "%{text}"
    assert difference_heatmap(high, low, names, order).data[0].text[0] == ["", "+0.35"]
    assert difference_heatmap(low, high, names, order).data[0].text[0] == ["", "−0.35"]


def test_cells_of_many_texts_have_no_values_written_in_them() -> None:
    many = of_products("mean", 0.5, MAX_VALUES + 1)
    names, order = text_names(many.texts), np.arange(len(many.texts))
    assert similarity_heatmap(many, names, order, (0, 1)).data[0].texttemplate is None
