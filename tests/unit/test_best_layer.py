"""Which layer is best, and how sure that is: known differences."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.evaluation.best_layer import (
    MeasuredPooling,
    best_layer,
    interval_of_difference,
    reversed_median,
)
from neuralviz.evaluation.correlation import correlate

RNG = np.random.default_rng(0)
SCORES = RNG.random(60)


def measured(cosines: np.ndarray, scores: np.ndarray) -> MeasuredPooling:
    return MeasuredPooling(cosines, scores, np.arange(len(scores)))


def layer(noise: float) -> MeasuredPooling:
    """Cosines that follow the scores the less, the more noise there is."""
    return measured(SCORES + noise * RNG.standard_normal(60), SCORES)


EQUAL = measured(np.ones(60), SCORES)  # [CLS] at layer 0


def test_the_best_layer_is_compared_with_the_last() -> None:
    best = best_layer({"mean": (layer(0.5), layer(0.01), layer(0.5))}, "spearman")
    assert best is not None
    assert (best.pooling, best.layer, best.rival, best.is_last) == ("mean", 1, 2, False)


def test_the_last_layer_is_compared_with_the_second_best() -> None:
    layers = (EQUAL, layer(0.2), layer(0.6), layer(0.01))
    best = best_layer({"mean": (layer(0.9), layer(0.9)), "cls": layers}, "kendall_b")
    assert best is not None
    assert (best.pooling, best.layer, best.rival, best.is_last) == ("cls", 3, 1, True)


def test_layers_that_cannot_be_measured() -> None:
    assert best_layer({"mean": (EQUAL, EQUAL)}, "spearman") is None
    alone = best_layer({"mean": (EQUAL, layer(0.1))}, "spearman")
    assert alone is not None and alone.rival is None
    assert interval_of_difference(EQUAL, layer(0.1), "spearman") is None
    few = measured(np.arange(4.0), np.arange(4.0))
    assert interval_of_difference(few, few, "spearman") is None


def test_the_difference_is_paired() -> None:
    """Two layers that err alike differ for sure, however little; on their own, both vary widely."""
    noise = 0.8 * RNG.standard_normal(60)
    one = measured(SCORES + noise, SCORES)
    other = measured(SCORES + 1.2 * noise, SCORES)
    interval = interval_of_difference(one, other, "pearson")
    assert interval is not None
    low, high = interval
    difference = correlate(one.cosines, SCORES).pearson - correlate(other.cosines, SCORES).pearson
    assert 0 < low < difference < high < 0.2
    same = interval_of_difference(one, one, "kendall_b")
    assert same == pytest.approx((0, 0))


@pytest.mark.parametrize("coefficient", ["spearman", "kendall_b"])
def test_scores_seem_reversed_where_no_layer_is_clearly_above_0(coefficient: str) -> None:
    against, none = measured(-(SCORES**2), SCORES), measured(RNG.random(60), SCORES)
    assert reversed_median({"mean": (none, against, against)}, coefficient) == pytest.approx(-1)
    assert reversed_median({"mean": (against,), "cls": (layer(0.1),)}, coefficient) is None
    assert reversed_median({"mean": (none, none, against)}, coefficient) is None
    few = measured(-np.arange(4.0), np.arange(4.0))
    assert reversed_median({"mean": (few,)}, coefficient) is None
    weak = {"mean": (against, against, layer(0.3))}  # a layer without context
    assert reversed_median(weak, coefficient) == pytest.approx(-1)
