"""The figures of a run: axes that can be read, and no more cells than a browser takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuralviz.micro_tuning.blanks import Candidate, FilledBlank
from neuralviz.micro_tuning.record import RunRecord, load_record
from neuralviz.paths import sample_data
from neuralviz.plots.micro_tuning import (
    EXTREME,
    MAX_CELLS,
    ON_STAGE,
    PALE,
    Norms,
    blank_figure,
    delta_norm_figure,
    describe_run,
    loss_figure,
    neurons_figure,
    shares_figure,
)
from neuralviz.plots.theme import AFTER, BEFORE, LAYER_COLOURS

LAYER = "cls.predictions.transform.dense.bias"


def names_of(figure) -> list[str]:
    return [line.name for line in figure.data if line.showlegend is not False]


def test_a_few_texts_are_lines_under_the_chosen_one() -> None:
    curves = np.arange(12.0).reshape(3, 4)
    figure = loss_figure(curves, ["One <b>.", "Two.", "Three."], chosen=1)
    assert names_of(figure) == ["the other texts", "2. Two."]
    np.testing.assert_array_equal(figure.data[-1].y, curves[1])
    assert figure.data[-1].line.color == AFTER
    assert not loss_figure(curves[:1], ["One."]).layout.showlegend


def test_many_texts_are_a_band_with_three_entries_in_the_legend() -> None:
    curves = np.random.default_rng(0).random((200, 11))
    curves[150:, 3:] = np.nan  # not known yet
    figure = loss_figure(curves, ["A text."] * 200, chosen=160)
    assert names_of(figure) == ["lowest to highest", "median of 200 texts", "161. A text."]
    high, low, median, chosen = figure.data
    np.testing.assert_allclose(high.y, np.nanmax(curves, axis=0))
    np.testing.assert_allclose(low.y, np.nanmin(curves, axis=0))
    np.testing.assert_allclose(median.y, np.nanmedian(curves, axis=0))
    np.testing.assert_array_equal(chosen.y, curves[160])
    curves[1:] = np.nan
    assert names_of(loss_figure(curves, ["A text."] * 200)) == ["1. A text."]


def test_norms_start_at_zero_and_a_layer_has_one_colour_in_both_runs() -> None:
    (line,) = delta_norm_figure(Norms(np.array([[1.0], [np.nan]]), [LAYER])).data
    np.testing.assert_array_equal(line.y, [0, 1, np.nan])
    norms, before = Norms(np.ones((3, 1)), [LAYER]), Norms(np.ones((10, 2)), ["a.b", LAYER])
    figure = delta_norm_figure(norms, before, runs=(3, 1))
    assert [line.opacity for line in figure.data] == [PALE, PALE, 1, PALE]
    assert names_of(figure) == ["run 1 (wide line)"]
    same = [line.line.color for line in figure.data if line.name == "dense.bias"]
    assert same[0] == same[1] in LAYER_COLOURS


def test_neurons_are_those_that_changed_most_sorted() -> None:
    deltas = np.random.default_rng(0).normal(size=(5, 384)) * np.arange(1, 6)[:, None]
    deltas[4] = np.nan  # not known yet
    figure = neurons_figure(deltas, LAYER)
    drawn = figure.data[0]
    order = np.argsort(deltas[3])
    assert list(drawn.x) == [str(i) for i in [*order[:EXTREME], *order[-EXTREME:]]]
    ends = [*range(15), *range(-15, 0)]
    np.testing.assert_allclose(drawn.z[3], np.sort(deltas[3])[ends], atol=1e-5)
    assert list(figure.layout.yaxis.range) == [0.5, 5.5]  # upwards
    every = neurons_figure(deltas, LAYER, all_neurons=True)
    assert np.shape(every.data[0].z) == (5, 384)
    assert not every.layout.xaxis.showticklabels
    few = neurons_figure(deltas[:, :20], LAYER)
    assert few.layout.title.text == "Neurons of dense.bias"
    ((_, wide),) = few.layout.meta["from_width"]
    assert wide["title.text"] == "All neurons of dense.bias, sorted by their delta"


@pytest.mark.parametrize(("n_epochs", "dim"), [(1000, 384), (100, 30522), (1, 30522)])
def test_a_heatmap_has_a_bounded_number_of_cells(n_epochs: int, dim: int) -> None:
    deltas = np.arange(n_epochs)[:, None] * np.ones((1, dim))
    drawn = neurons_figure(deltas, LAYER, all_neurons=True).data[0]
    assert np.size(drawn.z) <= max(MAX_CELLS, 2 * dim)
    assert drawn.y[-1] == n_epochs  # the last one is always there
    np.testing.assert_allclose(drawn.z[:, 0], np.array(drawn.y) - 1)


def test_blanks_are_two_bars_for_each_token() -> None:
    tokens = (Candidate("a <b>", 0.1, 0.6), Candidate("b", 0.3, 0.0004))
    figure = blank_figure(FilledBlank(tokens[::-1], tokens, tokens), "Blank")
    before, after = figure.data
    assert (list(before.x), list(after.x)) == ([0.1, 0.3], [0.6, 0.0004])
    assert (before.marker.color, after.marker.color) == (BEFORE, AFTER)
    assert list(after.text) == ["60%", "&lt; 0.1%"]
    assert list(figure.layout.yaxis.ticktext) == ["“a &lt;b&gt;”", "“b”"]
    assert figure.layout.yaxis.range == (1.6, -0.6)  # the first on top
    many = tuple(Candidate(f"{i}", 0.1, 0.2) for i in range(10))
    on_stage = blank_figure(FilledBlank(many, many, many), "Blank").layout.meta["stage"]
    assert on_stage["yaxis.range"] == [ON_STAGE - 0.4, -0.6]  # large letters stay apart


def test_of_a_long_text_the_largest_bars_have_their_words() -> None:
    words = [f"word{n}" for n in range(200)]
    shares = np.full(200, 0.001)
    shares[[3, 4, 100]] = 0.3, 0.2, -0.25
    axis = shares_figure(words, shares, "Shares").layout.xaxis
    assert {"word3", "word100"} <= set(axis.ticktext)
    assert "word4" not in axis.ticktext  # no room beside a larger one
    assert [f"word{at}" for at in axis.tickvals] == list(axis.ticktext)
    assert len(axis.ticktext) == 10
    assert np.diff(axis.tickvals).min() >= 200 / 16


def test_downloads_say_which_run_they_are_of_and_how_far_it_came() -> None:
    record = load_record(sample_data() / "recorded_run.npz")
    whole = describe_run(record)
    assert whole.files == (record.texts[0], "10 epochs")
    assert describe_run(record, 2).files == (record.texts[2], "10 epochs")
    assert "so far" not in whole.settings
    options = {"epochs": 1, "learning_rate": 0.02, "precision": "fast", "predict_unmasked": True}
    begun = RunRecord(record.model_id, replace(record.settings, **options), record.texts)
    assert describe_run(begun).files[1:] == ("1 epoch", "rate 0.02", "fast", "no masks")
    assert describe_run(begun).settings["so far"] == "Of 3 texts: 3 not started."
