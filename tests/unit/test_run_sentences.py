"""What is said of a micro-tuning run, from its numbers."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.events import TuningEvent
from neuralviz.micro_tuning.in_words import (
    compare_with_earlier,
    describe_differences,
    neurons_point,
    run_point,
    similar_point,
    words_point,
)
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.micro_tuning.record_file import load_record
from neuralviz.micro_tuning.watching import WatchedEvent
from neuralviz.paths import sample_data
from neuralviz.plots.micro_tuning import describe_run


@pytest.fixture
def three() -> RunRecord:
    """The recorded run, of three texts."""
    return load_record(sample_data() / "recorded_run.npz")


def of_one(record: RunRecord, **changes) -> RunRecord:
    """The first text of a run, as if it had been alone."""
    alone = RunRecord(record.model_id, replace(record.settings, **changes), record.texts[:1])
    alone.loss, alone.delta_norm = record.loss[:, :1].copy(), record.delta_norm[:, :1].copy()
    alone.last = [last[:1] for last in record.last]
    alone.reports = {0: record.reports[0]}
    alone.texts_done = 1
    return alone


def predicting(record: RunRecord, before: float, after: float) -> RunRecord:
    """A run of one text whose masked words have these probabilities."""
    report = record.reports[0]
    n = len(report.predictions.before)
    predictions = replace(
        report.predictions,
        before=np.full(n, before),
        after=np.full(n, after),
        loss_before=np.full(n, -np.log(before)),
        loss_after=np.full(n, -np.log(after)),
    )
    changed = copy(record)
    changed.reports = {0: replace(report, predictions=predictions)}
    return changed


def unfinished(record: RunRecord, epochs: int) -> RunRecord:
    """As it was after so many epochs, and the first step of one more."""
    live = copy(record)
    live.loss, live.delta_norm = record.loss.copy(), record.delta_norm.copy()
    live.loss[epochs + 1 :], live.delta_norm[epochs + 1 :] = np.nan, np.nan
    live.reports, live.texts_done = {}, 0
    return live


def test_the_point_of_three_texts(three: RunRecord) -> None:
    assert run_point(three, 0) == (
        "At first the model was 26% sure, on average, of the masked words of 3 texts; after 10 "
        "epochs it is 36% sure. In text 1, “watched” and “river” caused 52% of the "
        "change in its weights."
    )
    assert run_point(three, 2).endswith(
        "In text 3, “interest” and “raised” caused 43% of the change in its weights."
    )


def test_the_point_of_one_text(three: RunRecord) -> None:
    assert run_point(of_one(three), 0) == (
        "At first the model was 29% sure of this text's masked words; after 10 epochs it is 36% "
        "sure. “watched” and “river” caused 52% of the change in its weights."
    )
    unmasked = of_one(three, predict_unmasked=True, epochs=1)
    assert run_point(unmasked, 0).startswith(
        "At first the model was 29% sure of this text's words; after 1 epoch it is 36% sure."
    )


def test_a_text_that_was_not_learnt(three: RunRecord) -> None:
    said = run_point(predicting(of_one(three), 0.3, 0.3), 0)
    assert (
        "was 30% sure of this text's masked words; after 10 epochs it is 30% sure: it has" in said
    )
    assert "it has not learnt it. “watched”" in said
    three.diverged = {1}
    assert run_point(three, 1) == "Micro-tuning on text 2 diverged at a learning rate of 0.01."


def test_a_text_whose_unlikely_words_alone_became_likelier(three: RunRecord) -> None:
    alone = predicting(of_one(three), 0.4, 0.4)
    report = alone.reports[0]
    losses = {}
    for when, unlikely in (("before", 0.0001), ("after", 0.01)):
        probabilities = np.full(len(report.predictions.before), 0.5)
        probabilities[: len(probabilities) // 2] = unlikely
        losses |= {when: probabilities, f"loss_{when}": -np.log(probabilities)}
    alone.reports = {0: replace(report, predictions=replace(report.predictions, **losses))}
    before, after = (losses[name].mean() for name in ("loss_before", "loss_after"))
    assert run_point(alone, 0).startswith(
        "At first the model was 25% sure of this text's masked words; after 10 epochs it is 26% "
        "sure. But the words that it expected least are 100 times as likely, and the loss fell "
        f"from {before:.1f} to {after:.1f}. “watched”"
    )


def test_the_point_of_words(three: RunRecord) -> None:
    assert words_point(three, 0) == (
        "In text 1, the words that changed the weights most are “watched” (33% of the change), "
        "“river” (19%) and “bank” (16%)."
    )
    report = three.reports[0]
    of_one_word = np.where(report.text.words == 1, 0.5, -0.01)
    three.reports[0] = replace(report, shares=of_one_word)
    assert words_point(three, 0) == (
        "In text 1, the word that changed the weights most is “sat” (50% of the change)."
    )
    three.reports[0] = replace(report, shares=None)
    assert words_point(three, 0) == ""


def test_words_are_said_even_where_punctuation_counted_more(three: RunRecord) -> None:
    report = three.reports[0]
    full_stop = report.text.words.max()
    three.reports[0] = replace(report, shares=np.where(report.text.words == full_stop, 0.6, 0.03))
    assert words_point(three, 0).startswith(
        "In text 1, punctuation aside, the words that changed the weights most are "
    )


def test_a_text_that_the_model_cannot_read(three: RunRecord) -> None:
    report = three.reports[0]
    text = replace(report.text, unknown=np.ones(len(report.text), dtype=bool))
    three.reports[0] = replace(report, text=text)
    assert run_point(three, 0).startswith("The model cannot read text 1: it has no token for most")
    assert run_point(three, 1).startswith("At first the model was ")


def epoch_of_two(epoch: int, loss: float) -> WatchedEvent:
    """An epoch of a text that has two."""
    norms = np.full((1, 3), 0.1 * epoch)
    event = TuningEvent(epoch=epoch, epochs=2, loss=np.array([loss]), delta_norm=norms)
    return WatchedEvent(0, event)


def test_the_loss_is_that_of_the_epochs_done(three: RunRecord) -> None:
    record = RunRecord("bundled", replace(three.settings, epochs=2), ["A long text."])
    assert record.progress == 0
    record = record.having([epoch_of_two(1, 5.0)])
    assert run_point(record, 0) == "The loss starts at 5.00."
    assert not record.loss_rose(0)
    assert record.progress == 0.5
    record = record.having([epoch_of_two(2, 6.0)])
    assert record.loss_rose(0)


def test_shares_that_cancel_are_not_said_as_parts_of_a_whole(three: RunRecord) -> None:
    report = three.reports[0]
    shares = np.where(report.text.words % 2, 1.5, -1.2)
    three.reports[0] = replace(report, shares=shares)
    said = words_point(three, 0)
    assert said.startswith("The words of text 1 pull the weights in opposite directions: “")
    assert said.endswith(" pushed most, and others pulled back.")
    assert "caused" not in run_point(three, 0)


def test_shares_that_are_not_known_are_not_said(three: RunRecord) -> None:
    alone = of_one(three)
    alone.reports = {0: replace(alone.reports[0], shares=None)}
    assert run_point(alone, 0).endswith("after 10 epochs it is 36% sure.")
    nothing = np.zeros_like(three.reports[0].shares)
    alone.reports = {0: replace(alone.reports[0], shares=nothing)}
    assert run_point(alone, 0).endswith("after 10 epochs it is 36% sure.")


def test_while_it_goes_on_the_losses_are_said(three: RunRecord) -> None:
    assert run_point(unfinished(three, 4), 0) == (
        "After 4 of 10 epochs, the losses of 3 texts are 2.37 to 2.89; they started at "
        "3.37 to 4.27."
    )
    alone = of_one(three)
    assert run_point(unfinished(alone, 4), 0) == (
        "After 4 of 10 epochs, the loss is 2.37; it started at 3.37."
    )
    assert run_point(unfinished(three, 0), 0) == "The losses of 3 texts start at 3.37 to 4.27."
    assert run_point(unfinished(alone, 0), 0) == "The loss starts at 3.37."
    not_begun = RunRecord("bundled", three.settings, three.texts)
    assert run_point(not_begun, 1) == "Text 2 has not been started."


def test_a_stopped_run_speaks_of_the_text_that_is_looked_at(three: RunRecord) -> None:
    stopped = copy(three)
    stopped.loss, stopped.delta_norm = three.loss.copy(), three.delta_norm.copy()
    stopped.loss[4:, 2], stopped.delta_norm[4:, 2] = np.nan, np.nan
    stopped.reports = {i: three.reports[i] for i in (0, 1)}
    assert "of 2 of 3 texts;" in run_point(stopped, 0)
    assert run_point(stopped, 2) == "After 3 of 10 epochs, the loss is 3.16; it started at 4.27."


def test_a_text_that_diverged_says_nothing_of_the_others(three: RunRecord) -> None:
    report = three.reports[1]
    after = np.full(len(report.predictions.after), np.nan)
    three.reports[1] = replace(report, predictions=replace(report.predictions, after=after))
    three.diverged = {1}
    said = run_point(three, 0)
    assert said.startswith("At first the model was ")
    assert "of the masked words of 2 of 3 texts; after 10 epochs it is" in said
    assert "nan" not in said


def test_downloads_say_which_run_they_are_of_and_how_far_it_came(three: RunRecord) -> None:
    whole = describe_run(three)
    assert whole.files == (three.texts[0], "10 epochs")
    assert describe_run(three, 2).files == (three.texts[2], "10 epochs")
    assert "so far" not in whole.settings
    alone = of_one(three, epochs=1, learning_rate=0.02, precision="fast", predict_unmasked=True)
    assert describe_run(alone).files[1:] == ("1 epoch", "rate 0.02", "fast", "no masks")
    assert (
        describe_run(unfinished(three, 4)).settings["so far"].startswith("Texts 1 to 3 are half-")
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"epochs": 20}, "20 epochs instead of 10"),
        ({"epochs": 1}, "1 epoch instead of 10"),
        ({"learning_rate": 0.02, "epochs": 5},
         "5 epochs instead of 10, learning rate 0.02 instead of 0.01"),
        ({"layers": ("a",)}, "1 layer instead of 3"),
        ({"layers": ("a", "b", "c")}, "other layers"),
        ({"blueprints": (Blueprint(1, 1),)},
         "blueprints (1, 1) instead of (2, 1), (1, 1), (1, 2), (1, 3)"),
        ({"predict_unmasked": True}, "no masks"),
        ({"precision": "fast"}, "precision fast (tolerance 0.005) instead of exact (float32)"),
    ],
)  # fmt: skip
def test_what_differs(three: RunRecord, changes: dict, said: str) -> None:
    assert describe_differences(replace(three.settings, **changes), three.settings) == said


def test_a_run_against_an_earlier_one(three: RunRecord) -> None:
    assert compare_with_earlier(three, three, (2, 1)) == (
        "Run 2 has the same settings, compared with run 1 (wide line). Its mean loss is the "
        "same: 2.01. A text's two embeddings have a cosine similarity of 1.00."
    )
    other = copy(three)
    other.settings = replace(three.settings, layers=("a", "b", "c"))
    assert compare_with_earlier(three, other, (4, 2)).startswith(
        "Run 4 has other layers, compared with run 2 (wide line)."
    )
    assert "cosine" not in compare_with_earlier(three, other, (4, 2))
    stopped = unfinished(three, 4)
    assert compare_with_earlier(three, stopped, (2, 1)) == (
        "Run 2 has the same settings, compared with run 1 (wide line, unfinished). Its mean loss "
        "is the same at the same epoch: 2.71."
    )


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        (0.0048, 0.0006, "Its mean loss is 0.0048 instead of 0.0006."),
        (2.014, 2.011, "Its mean loss is nearly the same: 2.01."),
        (2.02, 2.01, "Its mean loss is 2.02 instead of 2.01."),
    ],
)
def test_only_equal_losses_are_the_same(
    three: RunRecord, now: float, then: float, said: str
) -> None:
    ended = []
    for loss in (now, then):
        run = copy(three)
        run.reports = {i: replace(r, loss_after=loss) for i, r in three.reports.items()}
        ended.append(run)
    assert said in compare_with_earlier(*ended, (2, 1))


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ([0.2, -0.3, 0.1], "Neurons 1 (−0.300) and 0 (+0.200) of bias changed most."),
        ([0.01, -0.0101, 0.0099],
         "After one step every neuron has moved by about 0.01: its sign is the gradient's."),
        ([0.3, -0.29, 0.28, 0.1],
         "No neuron of bias stands out: half of all 4 changed by 0.235 to 0.292, the most by "
         "0.300."),
        ([0.01, 0.0101, 0.0099, 0.0101, 0.00901],
         "No neuron of bias stands out: most of 5 changed by 0.010."),
        ([0.5], "Neuron 0 (+0.500) of bias changed most."),
        ([0.0, 0.0, 0.0], ""),
        ([np.nan, 0.1, 0.1], ""),
    ],
)  # fmt: skip
def test_the_point_of_neurons(delta: list[float], said: str) -> None:
    assert neurons_point(np.array(delta), "bias") == said


def test_the_point_of_similar_texts() -> None:
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [-0.6, 0.8]])
    assert similar_point(vectors, ["One.", "A second text that is far too long.", "Five."]) == (
        "The most similar are “One.” and “A second text that is far …” (0.80), "
        "the least “One.” and “Five.” (−0.60)."
    )
    assert similar_point(vectors[1:] * [1, 0], ["One.", "Two."]) == (
        "The embeddings of the two texts have a cosine similarity of −0.48."
    )
    assert similar_point(np.array([[1.0, 0.0], [-0.001, 1.0]]), ["One.", "Two."]) == (
        "These texts taught the model different things: cosine similarity 0.00, close to 0."
    )
    three = np.array([[1.0, 0.0, 0.0], [0.04, 1.0, 0.0], [-0.04, 0.0, 1.0]])
    assert similar_point(three, ["One.", "Two.", "Three."]) == (
        "These texts taught the model different things: cosine similarities −0.04 to 0.04, close "
        "to 0."
    )
    assert similar_point(vectors[:1], ["One."]) == ""
