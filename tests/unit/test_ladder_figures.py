"""What the figures of the ladder draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuralviz.evaluation.ladder_results import FLOOR, Curve, LadderLine, Prediction
from neuralviz.plots.ladder import (
    curves_figure,
    ladder_figure,
    predictions_figure,
    qq_figure,
    residual_figure,
)
from neuralviz.plots.theme import BLUE, RUNG_COLOURS

BASE = LadderLine(FLOOR, None, 0.3, 0.5, 0.5, (), (0.4, 0.6), None)
RUNG = LadderLine("Siamese encoders", "siamese", 0.7, 0.8, 0.7, (0.75, 0.85), (0.7, 0.9), 0.697)
CURVES = {
    ("cosines", 42): Curve((0.1, 0.05), (0.2, 0.4)),
    ("log-variance", 42): Curve((-2.0,), (float("nan"),)),
    ("log-variance", 43): Curve((-3.0, -4.0), (0.5, 0.3)),
}


def test_every_rung_has_its_line_before_it_is_there() -> None:
    figure = ladder_figure([BASE, RUNG], ("siamese", "log-variance"))
    names = figure.layout.yaxis.categoryarray[::-1]
    assert names == (FLOOR, "Siamese encoders", "Log-variance loss")
    floor, siamese, missing, published, seeds = figure.data
    assert (floor.x[0], floor.marker.color, floor.marker.symbol) == (0.5, BLUE, "square")
    assert (siamese.x[0], siamese.marker.color) == (0.8, RUNG_COLOURS["siamese"])
    assert siamese.error_x.array[0] == pytest.approx(0.1)
    assert np.isnan(missing.x[0])
    assert (list(published.x), list(published.y)) == ([0.697], ["Siamese encoders"])
    assert "gpt2-medium" in published.name
    assert list(seeds.x) == [0.75, 0.85]
    low, high = figure.layout.xaxis.range
    assert low < 0.4 < 0.9 < high
    unpublished = ladder_figure([replace(RUNG, published=None)], ("siamese",))
    assert "gpt2" not in unpublished.to_json()


def test_curves_are_dev_above_losses_and_a_log_variance_is_drawn_as_a_variance() -> None:
    figure = curves_figure(CURVES)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [(one.yaxis, list(one.y)) for one in lines[:2]] == [
        ("y", [0.2, 0.4]),
        ("y2", [0.1, 0.05]),
    ]
    np.testing.assert_allclose(lines[3].y, np.exp([-2.0]))
    np.testing.assert_allclose(lines[5].y, np.exp([-3.0, -4.0]))
    assert [one.opacity for one in lines] == [1, 1, 1, 1, 0.5, 0.5]
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    assert [(one.x[0], one.y[0]) for one in marks] == [(2, 0.4), (1, 0.5)]
    assert curves_figure({}).data == ()
    assert curves_figure({("cosines", 42): Curve()}).data == ()


def test_every_error_is_in_a_bar_and_on_the_plot() -> None:
    errors = np.random.default_rng(0).normal(size=500)
    (bars,) = residual_figure("cosines", errors).data
    assert sum(bars.y) == 500
    assert len(bars.y) <= 24
    line, dots = qq_figure("cosines", errors).data
    assert list(dots.y) == sorted(errors)
    np.testing.assert_allclose(np.mean(line.y), errors.mean(), atol=1e-9)
    (one,) = residual_figure("cosines", np.zeros(4)).data
    assert sum(one.y) == 4


def test_predictions_name_their_pair_and_no_text_is_html() -> None:
    pairs = [Prediction(("<b>a</b>", "b"), 1.0, 4.0), Prediction(("c", "d"), 2.0, 2.0)]
    dots, line = predictions_figure("cosines", pairs).data
    assert (list(dots.x), list(dots.y)) == ([4.0, 2.0], [1.0, 2.0])
    assert "<b>" not in dots.customdata[0]
    assert "prediction %{x:.3f}" in dots.hovertemplate
    assert (list(line.x), list(line.y)) == ([1.0, 4.0], [1.0, 4.0])
