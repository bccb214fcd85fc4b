"""What is said of an evaluation: exact sentences for winners, ties, doubt, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from neuralviz.evaluation.asides import least_shared, separated
from neuralviz.evaluation.broken import BrokenCount, Overlap
from neuralviz.evaluation.correlation import Correlation
from neuralviz.evaluation.data import DataSet, grouped_data, labelled_data, scored_data
from neuralviz.evaluation.events import Cell, Compared
from neuralviz.evaluation.experiments import method_rows
from neuralviz.evaluation.measured import Measured
from neuralviz.evaluation.measures import measure
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.verdict import Lead, leads, other_winner, verdict, written_lead
from neuralviz.evaluation.yardsticks import yardsticks_of
from neuralviz.maps.neighbourhoods import KnnAccuracy

SPREAD = np.linspace(-1, 1, 1001)  # of which 95% lie within ±0.95
METHODS = ("mean", "sbert-wk", "cls", "last")


def pairs(n: int = 40) -> DataSet:
    sides = ([f"{side} {i}" for i in range(n)] for side in ("one", "other"))
    return scored_data("pairs.csv", *sides, np.linspace(0, 5, n))


def groups(n: int = 12) -> DataSet:
    texts = [f"text {i}" for i in range(2 * n)]
    return grouped_data("groups.csv", texts, [str(i // 2) for i in range(2 * n)])


def labels() -> DataSet:
    return labelled_data("labels.csv", [f"text {i}" for i in range(60)], ["a", "b", "c"] * 20)


def spearman(value: float, around: float = 0.0) -> Measured:
    correlations = Correlation(value, value, value, value, 40)
    return Measured(correlations=correlations, resampled={"spearman": value + around * SPREAD})


def counted(name: str, wrong: int, total: int, around: float = 0.0, **more) -> Measured:
    count = BrokenCount(wrong, wrong, total, 0.8, 0.2)
    resampled = {name: wrong / total + around * SPREAD}
    return Measured(**{name: count}, resampled=resampled, **more)


def accuracy(value: float, around: float = 0.0, k: int = 10, first: int = 0) -> Measured:
    """Of 60 texts, of which so many are right from the ``first`` one on."""
    hits = np.roll(np.arange(60) < round(60 * value), first)
    bounds = (value - around, value + around)
    return Measured(neighbours=KnnAccuracy(value, k, 60, 1 / 3, bounds), hits=hits)


def results(data: DataSet, *measured: Measured | None, resamples: int = 1000) -> Results:
    rows = method_rows(METHODS[: len(measured)], {})
    found = Results(EvaluationPlan((data,), rows, MeasureSettings(resamples=resamples)))
    for at, one in enumerate(measured):
        found = found.having(Cell(0, at, one, error="" if one else "It broke."))
    return found


def test_one_method_beats_another() -> None:
    said = verdict(results(pairs(), spearman(0.75, 0.03 / 0.95), spearman(0.82)), 0)
    assert said == (
        "sbert-wk beats mean by 0.07 (95% interval: 0.04 to 0.10) in Spearman correlation on "
        "these 40 pairs."
    )


def test_the_best_of_several_is_compared_with_the_runner_up() -> None:
    found = results(pairs(), spearman(0.82), spearman(0.5), spearman(0.75, 0.03 / 0.95))
    assert verdict(found, 0) == (
        "mean is the best of 3 methods in Spearman correlation on these 40 pairs. It beats the "
        "runner-up, cls, by 0.07 (95% interval: 0.04 to 0.10)."
    )


def test_data_that_do_not_decide_are_said_to() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.08 / 0.95))
    assert verdict(found, 0) == (
        "These 40 pairs do not decide between mean and sbert-wk: mean is ahead by 0.03 in Spearman "
        "correlation, but the 95% interval of the difference, −0.05 to 0.11, includes 0."
    )


def test_who_is_beaten_is_said_where_the_runner_up_is_not() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.08 / 0.95), spearman(0.2))
    assert verdict(found, 0).endswith(
        "−0.05 to 0.11, includes 0. It beats cls by 0.41 (95% interval: 0.41 to 0.41)."
    )
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.08), spearman(0.2), spearman(0.1))
    assert verdict(found, 0).endswith("includes 0. It beats the other 2 methods.")


def test_several_that_are_not_decided_between() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.1), spearman(0.57, 0.1))
    assert verdict(found, 0) == (
        "mean is ahead in Spearman correlation, but these 40 pairs do not decide between it and "
        "sbert-wk and cls: the 95% intervals of the differences include 0."
    )


def test_equal_methods_are_level() -> None:
    found = results(pairs(), spearman(0.6, 0.1), spearman(0.6), spearman(0.3))
    assert verdict(found, 0) == (
        "mean and sbert-wk are level in Spearman correlation on these 40 pairs. They beat cls by "
        "0.30 (95% interval: 0.21 to 0.39)."
    )


def test_one_method_has_its_value_and_interval() -> None:
    assert verdict(results(pairs(), spearman(0.6, 0.1)), 0) == (
        "mean has a Spearman correlation of 0.60 (95% interval: 0.51 to 0.69) on these 40 pairs."
    )
    assert verdict(results(pairs(), spearman(0.05, 0.1)), 0).endswith(
        "(95% interval: −0.04 to 0.15) on these 40 pairs. It is not clearly better than chance (0)."
    )
    assert verdict(results(groups(), counted("triplets", 6, 528, 0.01)), 0) == (
        "mean breaks 1.1% of these 528 triplets (95% interval: 0.2% to 2.1%); chance would break "
        "half of them."
    )
    assert verdict(results(labels(), accuracy(0.8, 0.1)), 0) == (
        "With mean, the 10 nearest neighbours vote for the right label of 80.0% of these 60 texts "
        "(95% interval: 70.0% to 90.0%); always guessing the most frequent label is right for "
        "33.3%."
    )
    assert verdict(results(labels(), accuracy(0.8, 0.1, k=1)), 0).startswith(
        "With mean, the nearest neighbour votes for the right label of 80.0%"
    )


def test_fewer_errors_are_better() -> None:
    found = results(
        groups(), counted("triplets", 33, 528), counted("triplets", 11, 528, 0.01 / 0.95)
    )
    assert verdict(found, 0) == (
        "sbert-wk beats mean by 4.2 percentage points (95% interval: 3.2 to 5.2) in triplet error "
        "on these 528 triplets."
    )


def test_accuracies_are_compared_with_guessing() -> None:
    found = results(labels(), accuracy(0.4, 0.1), accuracy(0.35))
    assert verdict(found, 0) == (
        "These 60 texts do not decide between mean and sbert-wk: mean is ahead by 5.0 percentage "
        "points in 10-NN accuracy, but the 95% interval of the difference, −2.1 to 5.0, includes "
        "0. Not even the best method is clearly better than always guessing the most frequent "
        "label (33.3%)."
    )


def test_another_measure_may_have_another_winner() -> None:
    one = counted("triplets", 100, 1000, correlations=spearman(0.8).correlations)
    other = counted("triplets", 40, 1000, 0.01, correlations=spearman(0.6).correlations)
    one.resampled["spearman"] = np.full(1001, 0.8)
    other.resampled["spearman"] = np.full(1001, 0.6)
    assert verdict(results(pairs(), one, other), 0).endswith(
        "In triplet error, sbert-wk beats mean by 6.0 percentage points (95% interval: 5.1 to 7.0)."
    )


def test_a_yardstick_can_be_chosen() -> None:
    found = results(pairs(), spearman(0.6, 0.1))
    tau = next(one for one in yardsticks_of(found, 0) if one.name == "kendall_c")
    assert verdict(found, 0, tau) == (
        "mean has a Kendall tau-c correlation of 0.60 on these 40 pairs."
    )


@pytest.mark.parametrize(
    ("data", "resamples", "why"),
    [
        (groups(3), 1000, "3 groups are too few to say how sure that is"),
        (groups(12), 0, "no intervals were asked for, so nothing says how sure that is"),
    ],
)
def test_no_interval_is_no_verdict(data: DataSet, resamples: int, why: str) -> None:
    settings = MeasureSettings(resamples=resamples)
    draw = np.random.default_rng(1)
    measured = [measure(data, draw.normal(size=(len(data.texts), 4)), settings) for _ in range(2)]
    said = verdict(results(data, *measured, resamples=resamples), 0)
    assert " is ahead of " in said
    assert said.endswith(f", but {why}.")
    assert "beats" not in said


def test_what_failed_and_what_is_missing_are_named() -> None:
    found = results(pairs(), spearman(0.75, 0.01), spearman(0.82), None)
    assert verdict(found, 0).endswith("on these 40 pairs. cls could not be measured.")
    half = Results(found.plan, {place: cell for place, cell in found.cells.items() if place[1] < 1})
    assert verdict(half, 0).endswith("sbert-wk and cls are not finished.")
    assert verdict(results(pairs(), None, None), 0) == "No method could be measured on these data."
    assert verdict(Results(found.plan), 0) == ""


def test_an_undefined_correlation_is_no_value() -> None:
    nothing = Measured(correlations=Correlation(np.nan, np.nan, np.nan, np.nan, 40))
    assert verdict(results(pairs(), nothing, spearman(0.6)), 0) == (
        "sbert-wk has a Spearman correlation of 0.60 (95% interval: 0.60 to 0.60) on these 40 "
        "pairs. mean could not be measured."
    )


def test_names_are_marked_wherever_they_stand() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.1), spearman(0.2), None)
    said = verdict(found, 0, name=lambda label: f"<{label}>")
    for label in METHODS:
        assert said.count(label) == said.count(f"<{label}>") > 0


@pytest.mark.parametrize(
    ("value", "interval", "written"),
    [
        (0.07, (0.04, 0.1), ("0.07", "0.04 to 0.10")),
        (0.0123, (0.0021, 0.02), ("0.012", "0.002 to 0.020")),
        (0.004, (-0.001, 0.009), ("0.004", "−0.001 to 0.009")),
        (0.2, (-0.00001, 0.4), ("0.20", "0.00 to 0.40")),
        (0.2, None, ("0.20", "")),
    ],
)
def test_leads_have_the_digits_they_need(value, interval, written) -> None:
    (by, *_) = yardsticks_of(results(pairs(), spearman(0.5)), 0)
    assert written_lead(by, Lead("a", "b", value, interval)) == written


def test_one_percentage_point_is_one() -> None:
    (by,) = yardsticks_of(results(labels(), accuracy(0.5)), 0)
    assert written_lead(by, Lead("a", "b", 0.01, None))[0] == "1.0 percentage point"
    assert written_lead(by, Lead("a", "b", 0.0004, None))[0] == "0.04 percentage points"


def test_every_two_methods_are_compared_the_better_one_first() -> None:
    found = results(groups(), *(counted("triplets", n, 528) for n in (30, 10, 20)))
    (by,) = yardsticks_of(found, 0)
    assert [(one.first, one.second) for one in leads(found, 0, by)] == [
        ("sbert-wk", "cls"), ("sbert-wk", "mean"), ("cls", "mean")
    ]  # fmt: skip
    assert all(one.value > 0 for one in leads(found, 0, by))


def test_the_interval_is_of_the_same_resamples() -> None:
    data, settings = pairs(60), MeasureSettings(resamples=300)
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(len(data.texts), 8))
    near = vectors + draw.normal(scale=0.001, size=vectors.shape)
    one, other = (measure(data, each, settings) for each in (vectors, near))
    found = results(data, one, other)
    for by in yardsticks_of(found, 0):
        (lead,) = leads(found, 0, by)
        low, high = by.interval(one)
        assert lead.interval[1] - lead.interval[0] < (high - low) / 5
        alone: Mapping[str, np.ndarray] = one.resampled
        assert len(alone[by.name]) == 300


def test_the_same_texts_asked_for_something_else() -> None:
    here = results(labels(), accuracy(0.9), accuracy(0.5))
    there = results(
        labelled_data("labels.csv", [f"text {i}" for i in range(60)], ["x", "y"] * 30),
        accuracy(0.5), accuracy(0.8),
    )  # fmt: skip
    said = other_winner(here, {"topics": here, "forms": there}, name=lambda label: f"<{label}>")
    assert said == "Ask the same texts for their forms, and <sbert-wk> is the best."
    close_third = results(there.data[0], accuracy(0.5), accuracy(0.8), accuracy(0.75))
    assert other_winner(here, {"forms": close_third}) == (
        "Ask the same texts for their forms, and sbert-wk beats mean."
    )
    undecided = results(there.data[0], accuracy(0.5), accuracy(0.55, first=3))
    same_winner = results(there.data[0], accuracy(0.9), accuracy(0.8))
    for other in (undecided, same_winner, results(groups(), accuracy(0.1), accuracy(0.9))):
        assert other_winner(here, {"forms": other}) == ""


def test_the_most_different_errors_are_named() -> None:
    found = results(groups(), *(counted("triplets", n, 528) for n in (30, 10, 20)))
    shared = np.array([[30, 9, 6], [9, 10, 8], [6, 8, 20]])
    found = found.having(Compared(0, (0, 1, 2), {"triplets": Overlap(shared, 528)}))
    assert least_shared(found, 0) == (
        "cls and mean make the most different errors. mean also breaks 30% of the 20 triplets that "
        "cls breaks."
    )
    two = found.having(Compared(0, (0, 1), {"pairs": Overlap(np.array([[1, 1], [1, 4]]), 9)}))
    assert least_shared(two, 0, name=lambda label: f"<{label}>") == (
        "<sbert-wk> also breaks 100% of the 1 comparison that <mean> breaks."
    )
    nothing = found.having(Compared(0, (0, 1), {"pairs": Overlap(np.zeros((2, 2), int), 9)}))
    assert least_shared(nothing, 0) == ""
    assert least_shared(results(groups(), counted("triplets", 3, 528)), 0) == ""


def test_how_far_similar_is_kept_from_dissimilar() -> None:
    cosines = {"same": np.full(3, 0.7), "diff": np.full(2, -0.001)}
    found = results(groups(), counted("triplets", 30, 528), counted("triplets", 3, 528, **cosines))
    assert separated(found, 0) == (
        "With sbert-wk, similar texts have a mean cosine similarity of 0.70, dissimilar texts 0.00."
    )
    assert separated(results(groups(), counted("triplets", 3, 528)), 0) == ""
    undefined = replace(counted("triplets", 3, 528, **cosines), triplets=None)
    found = results(groups(), undefined, counted("triplets", 30, 528, **cosines))
    assert separated(found, 0).startswith("With sbert-wk, ")
