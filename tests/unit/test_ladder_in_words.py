"""What is said of a ladder, and its lines, from values that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuralviz.evaluation.bootstrap import bootstrap, bootstrap_spearman
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.evaluation.ladder_events import (
    FLOOR,
    LINEAR,
    SENTENCE,
    Baseline,
    Ladder,
    LayerCosines,
    RungResult,
    TestPairs,
)
from neuralviz.evaluation.ladder_in_words import (
    PAPERS_PAIR,
    identical_point,
    ladder_point,
    layer_shares_point,
    layers_point,
    rebuilt_point,
    residuals_point,
    rung_warnings,
    worst_point,
)
from neuralviz.evaluation.ladder_table import (
    best_baseline,
    best_line,
    best_rung,
    ladder_lines,
    lead_interval,
    worst_predictions,
)
from neuralviz.evaluation.normal_plot import expected, least_straight, normal_plot
from neuralviz.reading.scales import Scale
from neuralviz.training.similarity.events import SimilarityEnded
from neuralviz.training.similarity.names import RUNG_NAMES
from neuralviz.training.similarity.settings import Rung, SimilaritySettings

N = 40
SCORES = np.arange(N) / (N - 1) * 5
SWAPPED = SCORES.reshape(-1, 2)[:, ::-1].ravel()  # neighbours change places
NOISE = np.random.default_rng(0).permutation(SCORES)
TEST = TestPairs(
    tuple(f"first {n}" for n in range(N)), tuple(f"second {n}" for n in range(N)), SCORES,
    Scale(0.0, 5.0), 120, 40, (), "abc",
)  # fmt: skip


def spearman(predicted: np.ndarray) -> float:
    """Of values without ties."""
    ranks = np.argsort(np.argsort(predicted))
    return float(1 - 6 * ((ranks - np.arange(N)) ** 2).sum() / (N * (N**2 - 1)))


def result(rung: Rung, predicted: np.ndarray, dev: float, seed: int = 42) -> RungResult:
    ended = SimilarityEnded(
        SimilaritySettings(rung=rung, seed=seed), 2, 4, b"", None, 3, 5, dev, np.array([0.5, 0.5])
    )
    return RungResult(rung, seed, ended, predicted, spearman(predicted), 0.5, 1.0)


def baseline(name: str, predicted: np.ndarray) -> Baseline:
    return Baseline(name, 0.3, predicted, spearman(predicted), 0.4)


def ladder(*results: RungResult, floor: np.ndarray = NOISE) -> Ladder:
    first = Ladder(test=TEST, baselines={FLOOR: baseline(FLOOR, floor)})
    return first.having(results)


GOOD, SAME = result("siamese", SWAPPED, 0.8), result("cosines", SCORES, 0.6)


def test_spearman_alone_is_resampled_as_with_the_others() -> None:
    products, scores = NOISE[:20].round(), SCORES[:20].round()
    all_four = bootstrap(products, scores, resamples=300)["spearman"]
    np.testing.assert_allclose(bootstrap_spearman(products, scores, resamples=300), all_four)
    assert not len(bootstrap_spearman(np.ones(9), np.arange(9)))
    assert not len(bootstrap_spearman([1.0], [1.0]))


def test_lines_are_baselines_then_rungs_with_intervals_and_what_was_published() -> None:
    first, second = ladder_lines(ladder(GOOD))
    assert (first.name, first.rung, first.published, first.seeds) == (FLOOR, None, None, ())
    assert (second.name, second.rung, second.published) == ("Siamese encoders", "siamese", None)
    assert second.spearman == pytest.approx(1 - 6 * N / (N * (N**2 - 1)))
    assert (second.dev, second.pearson, second.spread) == (0.8, 0.5, None)
    for line in (first, second):
        assert line.interval is not None
        low, high = line.interval
        assert low < line.spearman < high
    assert ladder_lines(Ladder()) == []


def test_of_several_seeds_a_line_has_the_mean_and_the_range() -> None:
    (_, line) = ladder_lines(ladder(GOOD, result("siamese", SCORES, 0.6, seed=43)))
    assert line.dev == pytest.approx(0.7)
    assert line.spearman == pytest.approx((GOOD.spearman + 1) / 2)
    assert line.spread == (GOOD.spearman, 1.0)


def test_too_few_test_pairs_have_no_interval() -> None:
    few = replace(
        TEST, sentences1=TEST.sentences1[:5], sentences2=TEST.sentences2[:5], scores=SCORES[:5]
    )
    one = Baseline(FLOOR, 0.3, SCORES[:5], 1.0, 1.0)
    (line,) = ladder_lines(Ladder(test=few, baselines={FLOOR: one}))
    assert line.interval is None


def test_the_dev_pairs_choose_the_rung_whatever_the_test_pairs_say() -> None:
    assert SAME.spearman > GOOD.spearman
    assert best_rung(ladder(SAME, GOOD)) == "siamese"
    undefined = result("cosines", SCORES, float("nan"))
    assert best_rung(ladder(undefined, GOOD)) == "siamese"
    assert best_rung(ladder(undefined)) is None
    assert best_rung(ladder()) is None


def test_a_clear_lead_is_decided_and_has_its_interval() -> None:
    found = ladder(GOOD)
    bounds = lead_interval(found, "siamese", FLOOR)
    assert bounds is not None
    assert bounds[0] > 0
    floor = found.baselines[FLOOR].spearman
    low, high = (f"{one:+.2f}" for one in bounds)
    assert ladder_point(found) == (
        "**Siamese encoders** is the best rung on the dev pairs. On 40 test pairs its Spearman is "
        f"**1.00**, {GOOD.spearman - floor:.2f} above mean pooling, and these 40 pairs decide it."
        f"\n\nThe 95% interval of the difference is {low} to {high}."
    )


def test_what_is_alike_is_not_decided() -> None:
    said = ladder_point(ladder(GOOD, floor=SWAPPED))
    assert said == (
        "**Siamese encoders** is the best rung on the dev pairs. On 40 test pairs its Spearman is "
        "**1.00**, as that of mean pooling. But these 40 pairs do not decide it.\n\nThe 95% "
        "interval of the difference is 0.00 to 0.00."
    )


def test_the_lead_is_that_of_the_values_as_they_are_written() -> None:
    found = ladder(replace(GOOD, spearman=0.6449), floor=NOISE)
    floor = replace(found.baselines[FLOOR], spearman=0.5651)  # 0.08 lower, 0.07 as written
    said = ladder_point(replace(found, baselines={FLOOR: floor}))
    assert "**0.64**, 0.07 above mean pooling" in said


def test_a_rung_that_is_higher_on_the_test_pairs_is_named() -> None:
    worse = replace(GOOD, spearman=0.9)
    said = ladder_point(ladder(worse, SAME))
    assert said.startswith("**Siamese encoders** is the best rung on the dev pairs.")
    assert said.endswith(
        f" On these pairs **{RUNG_NAMES['cosines']}** is higher, 1.00; but the test pairs have no "
        "say in the choice."
    )
    alike = replace(GOOD, spearman=0.8351), replace(SAME, spearman=0.8449)
    assert "is higher" not in ladder_point(ladder(*alike))  # both 0.84


def test_the_best_baseline_is_what_the_best_rung_is_compared_with() -> None:
    found = ladder(replace(GOOD, spearman=0.447))
    linear = replace(baseline(LINEAR, SCORES), dev=0.5, spearman=0.504)
    found = replace(found, baselines={**found.baselines, LINEAR: linear})
    assert best_baseline(found) == LINEAR
    said = ladder_point(found)
    assert said.startswith(
        "**Siamese encoders** is the best rung on the dev pairs. On 40 test pairs its Spearman is "
        "**0.45**, 0.05 below a linear regression on the cosines"
    )
    assert said.endswith(f" For comparison: mean pooling {spearman(NOISE):.2f}.".replace("-", "−"))
    (*_, line) = lines = ladder_lines(found)
    assert best_line(lines) is line  # 0.8 on the dev pairs
    baselines = {**found.baselines, LINEAR: replace(linear, dev=0.9)}
    better = replace(found, baselines=baselines)
    best = best_line(ladder_lines(better))
    assert best is not None
    assert best.name == LINEAR
    assert ladder_point(better).startswith(
        "**Siamese encoders** is the best rung on the dev pairs, but no better there than a linear "
        "regression on the cosines. On 40 test pairs"
    )
    assert best_line(ladder_lines(ladder())) is not None
    assert best_line([]) is None


def test_a_baseline_that_is_higher_on_the_test_pairs_is_named() -> None:
    worse = replace(GOOD, spearman=0.9)
    found = ladder(worse)
    found = replace(found, baselines={**found.baselines, SENTENCE: baseline(SENTENCE, SCORES)})
    assert f" On these pairs **{SENTENCE}** is higher, 1.00; but" in ladder_point(found)


def test_a_rung_that_may_be_of_no_use_is_warned_of() -> None:
    assert rung_warnings(ladder(GOOD), "siamese") == []

    useless = result("cosines", NOISE, 0.8)
    said, *others = rung_warnings(ladder(useless, floor=SCORES), "cosines")
    assert said.startswith("On 40 test pairs, “MLP over cosines” is not clearly better than chance")
    assert f"{spearman(NOISE):.3f}".lstrip("-") in said
    assert others == [
        "On 40 test pairs, “MLP over cosines” is worse than mean pooling: "
        f"{spearman(NOISE):.3f} against 1.000.".replace("-", "−")
    ]

    backwards = rung_warnings(ladder(result("cosines", -SWAPPED, 0.8)), "cosines")
    assert "is worse than chance: its Spearman is −" in backwards[0]

    close = ladder(GOOD, floor=SWAPPED)
    assert rung_warnings(close, "siamese") == [
        "On 40 test pairs, “Siamese encoders” is no better than mean pooling: "
        f"{GOOD.spearman:.3f} against {GOOD.spearman:.3f}."
    ]

    few = replace(
        TEST, sentences1=TEST.sentences1[:5], sentences2=TEST.sentences2[:5], scores=SCORES[:5]
    )
    one = Baseline(FLOOR, 0.3, NOISE[:5], 0.1, 1.0)
    perfect = replace(result("cosines", SCORES, 0.8), predicted=SCORES[:5], spearman=1.0)
    short = Ladder(test=few, baselines={FLOOR: one}).having([perfect])
    assert rung_warnings(short, "cosines") == [
        "5 test pairs are too few to say whether “MLP over cosines” is better than chance."
    ]


def test_what_is_not_whole_and_what_else_there_is_to_compare() -> None:
    found = ladder(GOOD)
    more = {LINEAR: baseline(LINEAR, SCORES), SENTENCE: baseline(SENTENCE, SCORES)}
    said = ladder_point(replace(found, baselines={**found.baselines, **more}), is_whole=False)
    assert said.startswith("So far, **Siamese encoders** is")
    assert said.endswith(
        " For comparison: a linear regression on the cosines 1.00 and the model's own sentence "
        "embedding 1.00."
    )


def test_before_the_first_rung_mean_pooling_is_what_is_to_be_beaten() -> None:
    assert ladder_point(Ladder()) == ""
    assert ladder_point(ladder(floor=SCORES)) == (
        "Mean pooling reaches a Spearman of **1.00** on 40 test pairs. The rungs have to beat that."
    )
    flat = replace(TEST, scores=np.ones(N))
    assert ladder_point(replace(ladder(GOOD), test=flat)) == (
        "All 40 test pairs have the same score, so the correlation is undefined."
    )


def of_layers(*columns: np.ndarray) -> LayerCosines:
    values = np.array([spearman(column) for column in columns])
    return LayerCosines("mean", np.stack(columns, axis=1), SCORES, np.arange(N), values, values)


def test_the_best_layer_is_told_against_the_last_one() -> None:
    said, best = layers_point({"mean": of_layers(NOISE, SCORES, NOISE[::-1])})
    assert best is not None
    assert (best.pooling, best.layer) == ("mean", 1)
    last = f"{spearman(NOISE[::-1]):.2f}".replace("-", "−")
    assert said.startswith(
        f"Layer 1 agrees best with the human scores: Spearman 1.00, against {last} for the last "
        "layer. These 40 pairs decide it."
    )
    assert "decide" not in layers_point({"mean": of_layers(NOISE, SCORES)}, is_whole=False)[0]
    assert layers_point({}) == ("", None)


def test_scores_that_seem_reversed_are_said_to_be_that() -> None:
    said, _ = layers_point({"mean": of_layers(-SCORES, -SWAPPED)})
    assert said.startswith("No layer agrees with the human scores: the highest Spearman is −")
    assert said.endswith(f"clearly below 0. {REVERSE}")
    learnt = ladder(GOOD, floor=-SCORES)  # which learns any direction
    assert ladder_point(learnt).endswith(f"clearly below chance (0). {REVERSE}")
    assert REVERSE not in ladder_point(ladder(GOOD, floor=NOISE))
    mixed = learnt.having([baseline(SENTENCE, SWAPPED)])
    assert REVERSE not in ladder_point(mixed)


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ([0.1, 0.7, 0.2], "listens to **layer 1** most: 70% of its score's changes."),
        (
            [0.45, 0.1, 0.45],
            "listens to **layers 0 and 2** most: together 90% of its score's changes.",
        ),
        ([0.34, 0.33, 0.33], "listens to all 3 layers about alike."),
    ],
)
def test_the_layers_that_are_heard_make_up_half(heard: list[float], said: str) -> None:
    assert layer_shares_point("cosines", np.array(heard)) == f"**MLP over cosines** {said}"


def test_what_the_autoencoders_lose() -> None:
    said = (
        "The autoencoders lose most of **layer 1**, 50% of its variance, and least of layer 0, 20%."
    )
    assert rebuilt_point(np.array([0.2, 0.5, 0.3])) == said
    assert rebuilt_point(np.array([0.2, 1.5])).endswith(
        "150% of its variance, and least of layer 0, 20%. Above 100%, the mean of all vectors "
        "would be closer."
    )


def test_errors_are_told_by_their_middle_their_mean_and_their_shape() -> None:
    said = residuals_point("siamese", SCORES + expected(N) + 1, SCORES)
    assert said.startswith("Half of the predictions of **Siamese encoders** are within **1.0")
    assert "they are on average 1.00 too high." in said
    assert "The errors could be normal: the correlation of the Q–Q plot is 1.000" in said
    one_far = np.where(np.arange(N) == 3, 9.0, 0.01 * np.arange(N))
    assert "The errors are not normal" in residuals_point("siamese", SCORES + one_far, SCORES)
    assert residuals_point("siamese", SCORES, SCORES) == (
        "Half of the predictions of **Siamese encoders** are within **0.00** of people's score; "
        "they are neither too high nor too low on average."
    )


def test_five_of_a_hundred_normal_samples_are_called_something_else() -> None:
    draw = np.random.default_rng(5)
    for n in (20, 300):
        is_bent = [
            normal_plot(draw.normal(3, 2, size=n)).straight < least_straight(n) for _ in range(400)
        ]
        assert 0.02 < np.mean(is_bent) < 0.09
    assert np.isnan(normal_plot(np.ones(9)).straight)
    assert expected(9)[4] == 0


def test_the_worst_predictions_come_first_and_are_quoted() -> None:
    predicted = SCORES.copy()
    predicted[7], predicted[30] = 5.0, 0.5
    first, second = worst_predictions(TEST, predicted, 2)
    assert first.sentences == ("first 7", "second 7")
    assert first.error == pytest.approx(5 - SCORES[7])
    assert second.error == pytest.approx(0.5 - SCORES[30])
    assert worst_point("cosines", first, lambda text: f"‹{text}›") == (
        "**MLP over cosines** is furthest off on ‹first 7› and ‹second 7›: people give "
        "**0.897**, it says **5.00**."
    )


def test_identical_texts_get_the_highest_score() -> None:
    pair: dict[Rung, float] = {"cosines": 4.5, "siamese": 4.8}
    equal: dict[Rung, float] = {"cosines": 4.7, "siamese": 4.9}
    papers = identical_point(PAPERS_PAIR, pair, equal, str)
    assert papers.startswith(
        "A sentence and itself without the full stop get **4.50 to 4.80**; two identical texts "
        "get 4.70 to 4.90, and no pair scores higher.\n\nThe paper's model gives this pair 0.47 of"
    )
    assert identical_point(("a", "a"), equal, equal, str) == (
        "Identical texts get **4.70 to 4.90**, the highest score that there is: all their cosines "
        "are 1."
    )
    assert identical_point(("a", "b"), {"cosines": 1.0}, {"cosines": 4.0}, repr) == (
        "'a' and 'b' get **1.00**. Two identical texts get 4.00, and no pair scores higher."
    )
    assert identical_point(("a", "b"), {}, {}, str) == ""
