"""Which layer is best, and whether the pairs decide that: exact sentences, known differences."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.evaluation.best_layer import (
    BestLayer,
    MeasuredPooling,
    best_layer,
    best_layer_in_words,
    interval_of_difference,
    parts_in_words,
    reversed_median,
    settings_in_words,
)
from neuralviz.evaluation.correlation import REVERSE, correlate

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


def test_the_intervals_are_of_the_coefficient_that_is_named() -> None:
    one, other = measured(SCORES**9, SCORES), measured(SCORES, SCORES)
    assert interval_of_difference(one, other, "spearman") == pytest.approx((0, 0))
    pearson = interval_of_difference(one, other, "pearson")
    assert pearson is not None and pearson[1] < -0.05


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


def test_what_is_said_of_the_best() -> None:
    best = BestLayer("cls", 4, 0.391, 6, 0.352, is_last=False)
    assert best_layer_in_words(best, "Spearman", 300, (0.012, 0.07)) == (
        "Layer 4 agrees best with the human scores: Spearman 0.39, against 0.35 for the last "
        "layer. These 300 pairs decide it.\n\nThe pooling is [CLS]. The 95% interval of the "
        "difference is +0.01 to +0.07."
    )
    assert best_layer_in_words(best, "Spearman", 300, (-0.012, 0.07)) == (
        "Layer 4 agrees best with the human scores: Spearman 0.39, against 0.35 for the last "
        "layer. But 300 pairs do not decide between the two.\n\nThe pooling is [CLS]. The 95% "
        "interval of the difference is −0.01 to +0.07."
    )
    last = BestLayer("mean", 6, 0.4, 5, -0.001, is_last=True)
    assert best_layer_in_words(last, "Kendall tau-b", 20, None) == (
        "The last layer, 6, agrees best with the human scores: Kendall tau-b 0.40, against 0.00 "
        "for layer 5.\n\nThe pooling is mean of all tokens."
    )
    alone = BestLayer("mean", 1, 0.4, None, float("nan"), is_last=True)
    assert best_layer_in_words(alone, "Pearson", 20, None) == (
        "The last layer, 1, agrees best with the human scores: Pearson 0.40.\n\nThe pooling is "
        "mean of all tokens."
    )
    assert "below 0" not in best_layer_in_words(last, "Pearson", 20, None)
    below = BestLayer("mean", 1, -0.31, 6, -0.42, is_last=False)
    no_layer = "No layer agrees with the human scores: the highest Pearson is −0.31, at layer 1"
    assert best_layer_in_words(below, "Pearson", 20, None) == (
        f"{no_layer}.\n\nThe pooling is mean of all tokens."
    )
    assert best_layer_in_words(below, "Pearson", 20, (0.1, 0.2), -0.5) == (
        f"{no_layer}; the median, −0.50, is clearly below 0. {REVERSE}"
    )
    assert best_layer_in_words(None, "Pearson", 1, None) == (
        "Pearson is undefined for every layer on 1 pair."
    )


def test_what_is_said_of_sbert_wk() -> None:
    assert parts_in_words(0.31, 0.38, "Spearman", (-0.11, -0.02)) == (
        "SBERT-WK agrees with the human scores less well than the plain mean of the last layer: "
        "Spearman 0.31 against 0.38.\n\nThe 95% interval of the difference is −0.11 to −0.02."
    )
    assert parts_in_words(0.4, 0.38, "Spearman", (0.01, 0.02)).startswith(
        "SBERT-WK agrees with the human scores better than the plain mean of the last layer:"
    )
    assert parts_in_words(0.4, 0.38, "Spearman", (-0.01, 0.02)) == (
        "These pairs do not decide whether SBERT-WK is better than the plain mean of the last "
        "layer: Spearman 0.40 against 0.38.\n\nThe 95% interval of the difference is −0.01 to "
        "+0.02."
    )
    assert parts_in_words(float("nan"), 0.38, "Spearman", None) == ""
    assert settings_in_words([0.31, 0.3], [0.2, 0.38], "Pearson") == (
        "The first layer matters more than the layer window.\n\nSBERT-WK's Pearson is 0.20 to 0.38 "
        "with other first layers, 0.30 to 0.31 with other layer windows."
    )
    assert settings_in_words([0.31, 0.1], [0.2, 0.22], "Pearson").startswith(
        "The layer window matters more than the first layer.\n"
    )
    assert settings_in_words([0.31, 0.3], [0.22, 0.232], "Pearson").startswith(
        "The first layer and the layer window matter about equally.\n"
    )
    assert settings_in_words([0.31, 0.31], [0.31, 0.312], "Pearson").startswith(
        "Neither the first layer nor the layer window matters here.\n"
    )
    level = settings_in_words([0.3, 0.4], [0.2, 0.3], "Pearson")
    assert level.startswith("The first layer and the layer window matter about equally.\n")
    assert settings_in_words([float("nan")], [0.2], "Pearson") == ""
