"""What is said of an evaluation: exact sentences for winners, ties, doubt, and what is missing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from neuralviz.evaluation.asides import (
    describe_followed_quality,
    describe_halves,
    describe_separation,
    describe_shared_errors,
)
from neuralviz.evaluation.broken import BrokenCount, Overlap
from neuralviz.evaluation.claims import format_distinct
from neuralviz.evaluation.correlation import Correlation
from neuralviz.evaluation.data import (
    DataSet,
    ParaphraseData,
    grouped_data,
    labelled_data,
    scored_data,
)
from neuralviz.evaluation.events import Cell, Compared
from neuralviz.evaluation.experiments import method_rows
from neuralviz.evaluation.leads import Lead, compute_leads, format_lead
from neuralviz.evaluation.measured import Measured
from neuralviz.evaluation.measures import measure
from neuralviz.evaluation.paraphrases import QualityMap
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.verdict import describe_other_winner, verdict
from neuralviz.evaluation.yardsticks import Yardstick, yardsticks_of
from neuralviz.maps.neighbourhoods import KnnAccuracy

SPREAD = np.linspace(-1, 1, 1001)  # of which 95% lie within ±0.95
METHODS = ("mean", "sbert-wk", "cls", "last", "sep")


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


def main(found: Results) -> Yardstick:
    return yardsticks_of(found, 0)[0]


def error(value: float, around: float = 0.0) -> Measured:
    return counted("triplets", round(1000 * value), 1000, around)


def results(data: DataSet, *measured: Measured | None, resamples: int = 1000) -> Results:
    rows = method_rows(METHODS[: len(measured)], {})
    found = Results(EvaluationPlan((data,), rows, MeasureSettings(resamples=resamples)))
    for at, one in enumerate(measured):
        found = found.having(Cell(0, at, one, error="" if one else "It broke."))
    return found


REVERSED = (
    "A higher score has to mean that the texts are more alike. If it means here that they are more "
    "different, reverse the scores."
)


def test_what_is_clearly_below_chance_is_said_to_be_that() -> None:
    below, unsure = spearman(-0.42, 0.17), spearman(-0.05, 0.17)
    said = verdict(results(pairs(), below), 0)
    assert said.endswith(f"It is clearly worse than chance (0). {REVERSED}")
    assert "not clearly" not in said
    said = verdict(results(pairs(), below, spearman(-0.6, 0.1)), 0)
    assert said == (
        "No method follows people's scores well: Spearman correlation −0.42 (mean) and −0.60 "
        f"(sbert-wk) on these 40 pairs. All methods are clearly worse than chance (0). {REVERSED}"
    )
    said = verdict(results(pairs(), below, unsure), 0)
    assert said.endswith(
        "Not even the best method is clearly better than chance (0). mean is clearly worse than "
        f"that. {REVERSED}"
    )
    assert "worse" not in verdict(results(pairs(), unsure), 0)
    assert "clearly worse" not in verdict(results(pairs(), below, spearman(0.5, 0.1)), 0)
    said = verdict(results(pairs(), counted("pairs", 80, 100, 0.1)), 0)
    assert said.endswith(f"It is clearly worse than chance (50.0%). {REVERSED}")
    said = verdict(results(groups(), error(0.8, 0.1)), 0)
    assert said.endswith("It is clearly worse than chance (50.0%).")


def test_one_method_beats_another() -> None:
    said = verdict(results(pairs(), spearman(0.75, 0.03 / 0.95), spearman(0.82)), 0)
    assert said == (
        "sbert-wk follows people's scores better than mean: Spearman correlation 0.82 on these 40 "
        "pairs; mean 0.75. Its lead is clear: 0.04 to 0.10 (95% interval)."
    )


def test_the_best_of_several_is_compared_with_the_runner_up() -> None:
    found = results(pairs(), spearman(0.82), spearman(0.5), spearman(0.75, 0.03 / 0.95))
    assert verdict(found, 0) == (
        "mean follows people's scores best: Spearman correlation 0.82 on these 40 pairs; cls 0.75, "
        "sbert-wk 0.50. Its lead over cls is clear: 0.04 to 0.10 (95% interval)."
    )


def test_data_that_do_not_decide_are_said_to() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.08 / 0.95))
    assert verdict(found, 0) == (
        "These 40 pairs do not decide whether mean or sbert-wk follows people's scores better: "
        "Spearman correlation 0.61 (mean) and 0.58 (sbert-wk). The 95% interval of mean's lead, "
        "−0.05 to 0.11, includes 0."
    )


def test_who_is_beaten_is_said_where_the_runner_up_is_not() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.08 / 0.95), spearman(0.2))
    assert verdict(found, 0) == (
        "These 40 pairs do not decide whether mean or sbert-wk follows people's scores best: "
        "Spearman correlation 0.61 (mean) and 0.58 (sbert-wk); cls 0.20. The 95% interval of "
        "mean's lead over sbert-wk, −0.05 to 0.11, includes 0. mean is clearly better than cls."
    )


def test_several_that_are_not_decided_between() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.1), spearman(0.57, 0.1))
    assert verdict(found, 0) == (
        "These 40 pairs do not decide whether mean, sbert-wk or cls follows people's scores best: "
        "Spearman correlation 0.61 (mean), 0.58 (sbert-wk) and 0.57 (cls). The 95% intervals of "
        "mean's leads over them include 0."
    )


def test_equal_methods_are_level() -> None:
    found = results(pairs(), spearman(0.6, 0.1), spearman(0.6), spearman(0.3))
    assert verdict(found, 0) == (
        "mean and sbert-wk are level: Spearman correlation 0.60 on these 40 pairs; cls 0.30. They "
        "are clearly better than cls."
    )


def test_a_third_that_is_not_decided_is_named_beside_level_ones() -> None:
    close = results(pairs(), spearman(0.6, 0.1), spearman(0.6), spearman(0.58, 0.1), spearman(0.1))
    assert verdict(close, 0) == (
        "mean and sbert-wk are level: Spearman correlation 0.60 on these 40 pairs; cls 0.58, last "
        "0.10. These 40 pairs do not decide whether they are better than cls. They are clearly "
        "better than last."
    )


def test_a_lead_without_interval_is_named_beside_others() -> None:
    alone = replace(spearman(0.5), resampled={})
    found = results(pairs(), spearman(0.6), alone, spearman(0.59, 0.1), spearman(0.1))
    assert verdict(found, 0) == (
        "These 40 pairs do not decide whether mean or cls follows people's scores best: Spearman "
        "correlation 0.60 (mean) and 0.59 (cls); sbert-wk 0.50, last 0.10. The 95% interval of "
        "mean's lead over cls, −0.08 to 0.10, includes 0. mean is clearly better than last. mean "
        "is ahead of sbert-wk, too, but nothing says how sure that is."
    )
    assert verdict(results(pairs(), spearman(0.6), spearman(0.6), alone), 0).endswith(
        "They are ahead of cls, but nothing says how sure that is."
    )


def test_many_methods_are_counted() -> None:
    names = [f"m{number}" for number in range(7)]
    rows = tuple(replace(method_rows(["mean"], {})[0], label=name, key=name) for name in names)
    found = Results(EvaluationPlan((labels(),), rows))
    for at in range(len(rows)):
        found = found.having(Cell(0, at, accuracy(0.9 - at / 10)))
    listed = "; m1 80.0%, m2 70.0%, m3 60.0%, m4 50.0%, 2 others at most 40.0%."
    assert listed in verdict(found, 0)
    for at in range(len(rows)):
        found = found.having(Cell(0, at, accuracy(0.9 - at / 100, 0.0 if at else 0.2)))
    assert (
        "do not decide whether m0, m1, m2, m3 or 3 others finds the label of a text best: for "
        "90.0% (m0), 89.0% (m1), 88.0% (m2), 87.0% (m3) and at most 86.0% (3 others) of them, the"
    ) in verdict(found, 0)


def test_one_method_has_its_value_and_interval() -> None:
    assert verdict(results(pairs(), spearman(0.6, 0.1)), 0) == (
        "mean has a Spearman correlation of 0.60 (95% interval: 0.51 to 0.69) on these 40 pairs; 1 "
        "is the same order as people's scores, 0 no relation."
    )
    assert verdict(results(pairs(), spearman(0.05, 0.1)), 0).endswith(
        "0 no relation. It is not clearly better than chance (0)."
    )
    assert verdict(results(groups(), counted("triplets", 6, 528, 0.01)), 0) == (
        "With mean, 1.1% of these 528 triplets come out wrong (95% interval: 0.2% to 2.1%); by "
        "chance, half of them would."
    )
    assert verdict(results(labels(), accuracy(0.8, 0.1)), 0) == (
        "With mean, the ten nearest texts vote for the right label of 80.0% of these 60 texts (95% "
        "interval: 70.0% to 90.0%); always guessing the most frequent label is right for 33.3%."
    )
    assert verdict(results(labels(), accuracy(0.8, 0.1, k=1)), 0).startswith(
        "With mean, the nearest text votes for the right label of 80.0%"
    )
    assert "the 12 nearest texts vote" in verdict(results(labels(), accuracy(0.8, k=12)), 0)


def test_the_label_is_called_as_its_column_and_a_user_wrote_that() -> None:
    forms = replace(labels(), columns={"text": "text", "label": "form"})
    assert verdict(results(forms, accuracy(0.8, 0.1), accuracy(0.5)), 0) == (
        "mean finds the form of a text better than sbert-wk: for 80.0% of these 60 texts, the ten "
        "nearest texts vote for the right form; sbert-wk 50.0%. Its lead is clear: 18.9 to 30.0 "
        "percentage points (95% interval)."
    )
    odd = replace(labels(), columns={"label": "<b>" + "x" * 90})
    said = verdict(results(odd, accuracy(0.8), accuracy(0.5)), 0, quote=lambda text: f"[{text}]")
    assert f"finds the [“<b>{'x' * 27}…”] of a text" in said


def test_fewer_errors_are_better() -> None:
    found = results(
        groups(), counted("triplets", 33, 528), counted("triplets", 11, 528, 0.01 / 0.95)
    )
    assert verdict(found, 0) == (
        "sbert-wk tells better than mean which texts belong together: 2.1% of these 528 triplets "
        "come out wrong; mean 6.2%. Its lead is clear: 3.2 to 5.2 percentage points (95% interval)."
    )


def test_accuracies_are_compared_with_guessing() -> None:
    found = results(labels(), accuracy(0.4, 0.1), accuracy(0.35))
    assert verdict(found, 0) == (
        "These 60 texts do not decide whether mean or sbert-wk finds the label of a text better: "
        "for 40.0% (mean) and 35.0% (sbert-wk) of them, the ten nearest texts vote for the right "
        "label. The 95% interval of mean's lead, −2.1 to 5.0 percentage points, includes 0. Not "
        "even the best method is clearly better than always guessing the most frequent label "
        "(33.3%)."
    )


def test_another_measure_may_have_another_winner() -> None:
    one = counted("triplets", 100, 1000, correlations=spearman(0.8).correlations)
    other = counted("triplets", 40, 1000, 0.01, correlations=spearman(0.6).correlations)
    one.resampled["spearman"] = np.full(1001, 0.8)
    other.resampled["spearman"] = np.full(1001, 0.6)
    assert verdict(results(pairs(), one, other), 0).endswith(
        " But sbert-wk tells better than mean which texts belong together: 4.0% of these 1,000 "
        "triplets come out wrong; mean 10.0%."
    )


def test_values_that_differ_look_different() -> None:
    (by, *_) = yardsticks_of(results(pairs(), spearman(0.5)), 0)
    assert format_distinct(by, [0.8231, 0.8212, 0.5]) == ["0.823", "0.821", "0.500"]
    assert format_distinct(by, [0.82311, 0.82312]) == ["0.82", "0.82"]


def test_how_exactly_a_text_is_learnt_is_not_said_where_it_is_clear() -> None:
    rows = method_rows(["neural", "mean"], {"precision": "fast"})
    found = Results(EvaluationPlan((pairs(),), rows))
    found = found.having(Cell(0, 0, spearman(0.6))).having(Cell(0, 1, spearman(0.5)))
    assert rows[0].label == "neural, fast"
    assert verdict(found, 0).startswith("neural follows people's scores better than mean: ")


NO_HITS = Measured().hits
LEVEL, CLEAR, OPEN, BARE, UNDEFINED, FAILED, UNFINISHED = range(7)


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        (kind, others)
        for kind, n, standings in (
            *(("pairs", n, range(7)) for n in range(4)),
            ("pairs", 4, range(4)),
            ("labels", 2, range(7)),
            ("groups", 2, range(7)),
        )
        for others in itertools.combinations_with_replacement(standings, n)
    ],
)
def test_every_method_is_accounted_for_and_nothing_is_contradicted(kind, others) -> None:
    """All mixtures of up to five methods that are level, beaten, undecided and so on."""
    make = {"pairs": spearman, "labels": accuracy, "groups": error}[kind]
    data = {"pairs": pairs(), "labels": labels(), "groups": groups()}[kind]
    worse = -1 if kind != "groups" else 1
    made = {
        LEVEL: make(0.6),
        CLEAR: make(0.6 + worse * 0.3, 0.05),
        OPEN: make(0.6 + worse * 0.01, 0.2),
        BARE: replace(make(0.6 + worse * 0.02), resampled={}, hits=NO_HITS),
        UNDEFINED: Measured(correlations=spearman(np.nan).correlations),
        FAILED: None,
    }
    rows = method_rows(METHODS[: len(others) + 1], {})
    found = Results(EvaluationPlan((data,), rows)).having(Cell(0, 0, made[LEVEL]))
    for at, standing in enumerate(others, 1):
        if standing != UNFINISHED:
            one = made[standing]
            found = found.having(Cell(0, at, one, error="" if one else "It broke."))
    said = verdict(found, 0, name=lambda label: f"<{label}>")
    sentences = re.split(r"(?<=\.) (?=[A-Z<])", said)
    assert len(set(sentences)) == len(sentences)
    assert all(one.endswith(".") for one in sentences)
    assert not re.search(r", ,|  |\(\)|None|nan|; \.|: ;", said)
    expected = {
        standing: {
            row.label for row, one in zip(rows, (LEVEL, *others), strict=True) if one == standing
        }
        for standing in range(7)
    }
    behind = expected[CLEAR] | expected[OPEN] | expected[BARE]
    told = {
        standing: {
            label
            for sentence in sentences
            for part in re.findall(pattern, sentence)
            for label in re.findall(r"<(.+?)>", part)
        }
        for standing, pattern in _SAYS.items()
    }
    assert all(f"<{row.label}>" in said for row in rows), said
    if len(expected[LEVEL]) == 1:
        expected[LEVEL] = set()
        told[OPEN].discard(rows[0].label)
        if "lead is clear" in said or "is clear: " in said:
            told[CLEAR] = behind
        if "But nothing says how sure that is." in said:
            told[BARE] = behind
    assert told == expected, said


_SAYS = {
    LEVEL: r"^(.+) are level:",
    CLEAR: r"clearly better than (<.+)\.$",
    OPEN: r"do not decide whether (?:they are better than )?(.+?)(?: follows| finds| tells|\.$)",
    BARE: r"ahead of (.+?),(?: too,)? but nothing says",
    UNDEFINED: r"^(.+) ha(?:s|ve) no ",
    FAILED: r"^(.+) could not be measured",
    UNFINISHED: r"^(.+) (?:is|are) not finished",
}


def test_a_yardstick_can_be_chosen() -> None:
    found = results(pairs(), spearman(0.6, 0.1))
    tau = next(one for one in yardsticks_of(found, 0) if one.name == "kendall_c")
    assert verdict(found, 0, tau) == (
        "mean has a Kendall tau-c correlation of 0.60 on these 40 pairs; 1 is the same order as "
        "people's scores, 0 no relation. But nothing says how sure that is."
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
    assert f". But {why}." in said
    assert "clear:" not in said


def test_what_failed_and_what_is_missing_are_named() -> None:
    found = results(pairs(), spearman(0.75, 0.01), spearman(0.82), None)
    assert verdict(found, 0).endswith("(95% interval). cls could not be measured.")
    half = Results(found.plan, {place: cell for place, cell in found.cells.items() if place[1] < 1})
    assert verdict(half, 0).endswith("sbert-wk and cls are not finished.")
    assert verdict(results(pairs(), None, None), 0) == (
        "No method could be measured on these data. It broke."
    )
    assert verdict(Results(found.plan), 0) == ""


def test_what_kept_all_methods_from_being_measured_is_said() -> None:
    failed = results(pairs(), None, None)
    full = {at: replace(cell, error="The disk is *full*.") for at, cell in failed.cells.items()}
    said = verdict(replace(failed, cells=full), 0, quote=lambda text: text.replace("*", r"\*"))
    assert said == r"No method could be measured on these data. The disk is \*full\*."


def test_an_undefined_correlation_is_no_value() -> None:
    nothing = Measured(correlations=Correlation(np.nan, np.nan, np.nan, np.nan, 40))
    assert verdict(results(pairs(), nothing, spearman(0.6)), 0) == (
        "sbert-wk has a Spearman correlation of 0.60 (95% interval: 0.60 to 0.60) on these 40 "
        "pairs; 1 is the same order as people's scores, 0 no relation. mean has no Spearman "
        "correlation on these data."
    )


def test_names_are_marked_wherever_they_stand() -> None:
    found = results(pairs(), spearman(0.61), spearman(0.58, 0.1), spearman(0.2), None)
    said = verdict(found, 0, name=lambda label: f"<{label}>")
    for label in METHODS[:4]:
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
    assert format_lead(by, Lead("a", "b", value, interval)) == written


def test_one_percentage_point_is_one() -> None:
    (by,) = yardsticks_of(results(labels(), accuracy(0.5)), 0)
    assert format_lead(by, Lead("a", "b", 0.01, None))[0] == "1.0 percentage point"
    assert format_lead(by, Lead("a", "b", 0.0004, None))[0] == "0.04 percentage points"


def test_every_two_methods_are_compared_the_better_one_first() -> None:
    found = results(groups(), *(counted("triplets", n, 528) for n in (30, 10, 20)))
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
    said = describe_other_winner(
        here, {"topics": here, "forms": there}, name=lambda label: f"<{label}>"
    )
    assert said == "Ask the same texts for their forms, and <sbert-wk> is the best."
    close_third = results(there.data[0], accuracy(0.5), accuracy(0.8), accuracy(0.75))
    assert describe_other_winner(here, {"forms": close_third}) == (
        "Ask the same texts for their forms, and sbert-wk beats mean."
    )
    undecided = results(there.data[0], accuracy(0.5), accuracy(0.55, first=3))
    same_winner = results(there.data[0], accuracy(0.9), accuracy(0.8))
    for other in (undecided, same_winner, results(groups(), accuracy(0.1), accuracy(0.9))):
        assert describe_other_winner(here, {"forms": other}) == ""


def test_the_most_different_errors_are_named() -> None:
    found = results(groups(), *(counted("triplets", n, 528) for n in (30, 10, 20)))
    shared = np.array([[30, 9, 6], [9, 10, 8], [6, 8, 20]])
    found = found.having(Compared(0, (0, 1, 2), {"triplets": Overlap(shared, 528)}))
    assert describe_shared_errors(found, 0) == (
        "cls and mean make the most different errors. mean also breaks 30% of the 20 triplets that "
        "cls breaks."
    )
    two = found.having(Compared(0, (0, 1), {"pairs": Overlap(np.array([[1, 1], [1, 4]]), 9)}))
    assert describe_shared_errors(two, 0, name=lambda label: f"<{label}>") == (
        "<sbert-wk> also breaks 100% of the 1 comparison that <mean> breaks."
    )
    nothing = found.having(Compared(0, (0, 1), {"pairs": Overlap(np.zeros((2, 2), int), 9)}))
    assert describe_shared_errors(nothing, 0) == ""
    assert describe_shared_errors(results(groups(), counted("triplets", 3, 528)), 0) == ""


def test_how_far_similar_is_kept_from_dissimilar() -> None:
    cosines = {"same": np.full(3, 0.7), "diff": np.full(2, -0.001)}
    found = results(groups(), counted("triplets", 30, 528), counted("triplets", 3, 528, **cosines))
    assert describe_separation(found, 0, main(found)) == (
        "With sbert-wk, similar texts have a mean cosine similarity of 0.70, dissimilar texts 0.00."
    )
    bare = results(groups(), counted("triplets", 3, 528))
    assert describe_separation(bare, 0, main(bare)) == ""
    undefined = replace(counted("triplets", 3, 528, **cosines), triplets=None)
    found = results(groups(), undefined, counted("triplets", 30, 528, **cosines))
    assert describe_separation(found, 0, main(found)).startswith("With sbert-wk, ")


def test_pairs_that_people_find_similar_are_in_the_upper_half() -> None:
    data = pairs(11)  # with scores 0, 0.5, … 5
    products = np.array([9, 0, 1, 2, 3, 4, 5, 6, 7, 8, -1.0])
    assert describe_halves(data, Measured(products=products), "<mean>") == (
        "Of the pairs that people score 4 or more, <mean> puts 67% in the upper half by cosine "
        "similarity; of those they score 2 or less, 20%."
    )
    low = replace(data, similar=9.0)
    assert describe_halves(low, Measured(products=products), "mean") == ""


def test_the_quality_that_is_followed_best_is_named() -> None:
    data = ParaphraseData(
        "p.csv", ("a", "b"), np.zeros(2, int), np.ones(2, int), ("form", "form"), *np.zeros((3, 2))
    )

    def measured(**taus: float) -> Measured:
        maps = (
            QualityMap(name, np.zeros(1), np.zeros(2), np.array([[tau, np.nan]]), np.ones((1, 2)))
            for name, tau in taus.items()
        )
        return Measured(paraphrases=tuple(maps))

    def said(*methods: Measured) -> str:
        found = results(data, *methods)
        return describe_followed_quality(
            found, 0, main(found), lambda one: f"<{one}>", lambda one: f"[{one}]"
        )

    assert said(measured(form=0.1, meaning=0.2), measured(form=0.61, meaning=0.2)) == (
        "<sbert-wk> follows [form] best (mean tau-c 0.61) and [meaning] least (0.20)."
    )
    assert said(measured(form=0.2, meaning=0.2)) == (
        "<mean> follows all qualities alike (mean tau-c 0.20)."
    )
    assert said(measured(form=0.2, meaning=np.nan)) == (
        "<mean> follows [form] with a mean tau-c of 0.20; 1 is the same order, 0 no relation."
    )
