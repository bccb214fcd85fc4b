"""How far methods are ahead of each other, and what is said of the worst case."""

from __future__ import annotations

import numpy as np

from neuralviz.evaluation.broken import BrokenCount
from neuralviz.evaluation.data import DataSet, ScoredData, grouped_data, labelled_data, scored_data
from neuralviz.evaluation.measures import measure
from neuralviz.evaluation.results import Measured, MeasureSettings
from neuralviz.evaluation.triplets import WorstTriplets
from neuralviz.evaluation.yardsticks import compute_leads, worst_cases, yardsticks_of
from neuralviz.headlines.evaluation import describe_worst
from neuralviz.maps.neighbours import Outvoted
from tests.unit.test_sentences import error, groups, pairs, results


def scored(scores: list[float]) -> ScoredData:
    sides = ([f"{side} {i}" for i in range(len(scores))] for side in ("one", "other"))
    return scored_data("pairs.csv", *sides, np.array(scores))


def said(data: DataSet, measured: Measured) -> str:
    return describe_worst(data, measured, "<mean>", lambda text: f"“{text}”")


def test_a_pair_that_is_right_is_not_the_worst() -> None:
    """Half of the pairs have the score 0, so all ranks of the lower half are right for them."""
    data = scored([0, 0, 0, 0, 0, 0, 3, 4, 4.5, 5])
    right = Measured(products=np.array([-0.02, 0.01, 0.02, 0.03, 0.04, 0.1, 0.2, 0.3, 0.4, 0.5]))
    assert said(data, right) == "With <mean>, every pair ranks about where people rank it."
    assert worst_cases(data, right) == {}
    one_off = Measured(products=np.array([-0.02, 0.01, 0.02, 0.03, 0.04, 0.1, 0.3, 0.2, 0.4, 0.5]))
    assert said(data, one_off) == "With <mean>, every pair ranks about where people rank it."
    (cases,) = worst_cases(data, one_off).values()
    assert cases["text 1"].tolist() == ["one 6", "one 7"]


def test_the_worst_pair_is_told_by_its_place() -> None:
    data = scored([0, 0, 0, 1, 2, 3, 4, 4.5, 5])
    low = Measured(products=np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.15]))
    assert said(data, low) == (
        "People and <mean> disagree most on “one 8” and “other 8”: people's score is 5, the cosine "
        "similarity 0.15, below 88% of the other pairs."
    )
    high = Measured(products=np.array([0.1, 0.9, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85]))
    assert said(data, high) == (
        "People and <mean> disagree most on “one 1” and “other 1”: people's score is 0, the cosine "
        "similarity 0.90, above 100% of the other pairs."
    )


def test_the_worst_triplet_and_the_worst_text_are_told() -> None:
    data = grouped_data("g.csv", ["a", "b", "c", "d"], list("xyxy"))
    worst = WorstTriplets(*(np.array([at]) for at in (0, 2, 1)), np.array([0.5]), np.array([0.6]))
    measured = Measured(triplets=BrokenCount(1, 0, 4, 0.5, 0.5), worst_triplets=worst)
    assert said(data, measured) == (
        "With <mean>, “a” is no nearer to “c”, which is in its group, than to “b”, which is not."
    )
    cases = worst_cases(data, measured)["Worst broken triplet of each text"]
    assert [*cases.loc[0]] == ["a", "c", 0.5, "b", 0.6]
    assert said(data, Measured(triplets=BrokenCount(0, 0, 4, 0.5, 0.5))) == ""
    labels = labelled_data("l.csv", ["a", "b", "c", "d"], list("xyxy"))
    missed = Measured(outvoted=(Outvoted(1, "y", "x", 0.0),))
    assert (
        said(labels, missed)
        == "With <mean>, the nearest texts predict “x” for “b”; it is labelled “y”."
    )


# --- leads --------------------------------------------------------------------------------------


def test_every_two_methods_are_compared_the_better_one_first() -> None:
    found = results(groups(), *(error("triplets", share) for share in (0.3, 0.1, 0.2)))
    (by,) = yardsticks_of(found, 0)
    assert [(one.first, one.second) for one in compute_leads(found, 0, by)] == [
        ("sbert-wk", "cls"), ("sbert-wk", "mean"), ("cls", "mean")
    ]  # fmt: skip
    assert all(one.value > 0 for one in compute_leads(found, 0, by))


def test_the_interval_is_of_the_same_resamples() -> None:
    data, settings = pairs(60), MeasureSettings(resamples=300)
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(len(data.texts), 8))
    near = vectors + draw.normal(scale=0.001, size=vectors.shape)
    one, other = (measure(data, each, settings) for each in (vectors, near))
    found = results(data, one, other)
    for by in yardsticks_of(found, 0):
        (lead,) = compute_leads(found, 0, by)
        low, high = one.interval(by.name)
        assert lead.interval[1] - lead.interval[0] < (high - low) / 5
        assert len(one.resampled[by.name]) == 300
