"""The lines of a ladder, from values that can be worked out by hand, and its figures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, pearsonr, spearmanr

from neuralviz.evaluation.best_layer import MeasuredPooling
from neuralviz.evaluation.ladder_results import (
    FLOOR,
    Baseline,
    Curve,
    Ladder,
    LadderLine,
    RungResult,
    TestPairs,
    best_rung,
    ladder_lines,
)
from neuralviz.plots.ladder import (
    curves_figure,
    ladder_figure,
    predictions_figure,
    qq_figure,
    residual_figure,
)
from neuralviz.plots.theme import BLUE, RUNG_COLOURS
from neuralviz.reading.pairs import Scale
from neuralviz.training.similarity.settings import (
    RUNG_NAMES,
    Rung,
    SimilarityEnded,
    SimilaritySettings,
)

N = 40
SCORES = np.arange(N) / (N - 1) * 5
SWAPPED = SCORES.reshape(-1, 2)[:, ::-1].ravel()  # neighbours change places
NOISE = np.random.default_rng(0).permutation(SCORES)
TEST = TestPairs(
    tuple(f"first {n}" for n in range(N)), tuple(f"second {n}" for n in range(N)), SCORES,
    Scale(0.0, 5.0), 120, 40, (), "abc",
)  # fmt: skip


def measured(predicted: np.ndarray) -> MeasuredPooling:
    return MeasuredPooling(predicted, SCORES, np.arange(N))


def result(rung: Rung, predicted: np.ndarray, dev: float, seed: int = 42) -> RungResult:
    ended = SimilarityEnded(
        SimilaritySettings(rung=rung, seed=seed), 2, 4, b"", None, 3, 5, dev, np.array([0.5, 0.5])
    )
    return RungResult(RUNG_NAMES[rung], dev, measured(predicted), ended, 1.0)


def baseline(name: str, predicted: np.ndarray) -> Baseline:
    return Baseline(name, 0.3, measured(predicted))


def ladder(*results: RungResult, floor: np.ndarray = NOISE) -> Ladder:
    first = Ladder(test=TEST, baselines={FLOOR: baseline(FLOOR, floor)})
    return first.having(results)


GOOD, SAME = result("siamese", SWAPPED, 0.8), result("cosines", SCORES, 0.6)


def test_lines_are_baselines_then_rungs_with_intervals_and_what_was_published() -> None:
    first, second = ladder_lines(ladder(GOOD))
    assert (first.name, first.rung, first.published, first.seeds) == (FLOOR, None, None, ())
    assert (second.name, second.rung, second.published) == ("Siamese encoders", "siamese", None)
    assert second.spearman == pytest.approx(1 - 6 * N / (N * (N**2 - 1)))
    assert (second.dev, second.spread) == (0.8, None)
    assert second.pearson == pytest.approx(pearsonr(SWAPPED, SCORES).statistic)
    for line in (first, second):
        assert line.interval is not None
        low, high = line.interval
        assert low < line.spearman < high
    assert ladder_lines(Ladder()) == []


def test_of_several_seeds_a_line_has_the_mean_and_the_range() -> None:
    (_, line) = ladder_lines(ladder(GOOD, result("siamese", SCORES, 0.6, seed=43)))
    assert line.dev == pytest.approx(0.7)
    assert line.spearman == pytest.approx((spearmanr(SWAPPED, SCORES).statistic + 1) / 2)
    assert line.spread == (GOOD.measured.correlation.spearman, 1.0)


def test_the_dev_pairs_choose_the_rung_whatever_the_test_pairs_say() -> None:
    assert SAME.measured.correlation.spearman > GOOD.measured.correlation.spearman
    assert best_rung(ladder(SAME, GOOD)) == "siamese"
    undefined = result("cosines", SCORES, float("nan"))
    assert best_rung(ladder(undefined, GOOD)) == "siamese"
    assert best_rung(ladder(undefined)) is None
    assert best_rung(ladder()) is None


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
    assert list(ladder_figure([], ("siamese",)).layout.yaxis.categoryarray) == ["Siamese encoders"]
    assert (list(published.x), list(published.y)) == ([0.697], ["Siamese encoders"])
    assert "gpt2-medium" in published.name
    assert list(seeds.x) == [0.75, 0.85]
    low, high = figure.layout.xaxis.range
    assert low < 0.4 < 0.9 < high


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
    assert curves_figure({("cosines", 42): Curve()}).data == ()


def test_every_error_is_drawn_and_no_text_is_html() -> None:
    errors = np.random.default_rng(0).normal(size=500)
    figure = residual_figure("cosines", errors)
    (bars,) = figure.data
    assert sum(bars.y) == 500
    in_colour = np.array(bars.marker.color) == RUNG_COLOURS["cosines"]
    assert np.array(bars.y)[in_colour].sum() == 250
    assert sum(residual_figure("cosines", np.zeros(3)).data[0].y) == 3
    line, dots = qq_figure("cosines", errors).data
    assert list(dots.y) == sorted(errors)
    shares = (np.arange(1, 501) - 3 / 8) / (500 + 1 / 4)  # Blom
    np.testing.assert_allclose(dots.x, norm.ppf(shares), atol=1e-12)
    np.testing.assert_allclose(np.mean(line.y), errors.mean(), atol=1e-9)
    sentences, values = [("<b>a</b>", "b"), ("c", "d")], np.array([[4.0, 2.0], [1.0, 2.0]])
    dots, _, worst = predictions_figure("cosines", *values, sentences).data
    assert (list(dots.x), list(dots.y)) == ([4.0, 2.0], [1.0, 2.0])
    assert (list(worst.x), list(worst.y)) == ([4.0], [1.0])
    assert "<b>" not in dots.customdata[0]
