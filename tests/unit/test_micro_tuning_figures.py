"""The figures of a run: axes that can be read, and no more cells than a browser takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from neuralviz.micro_tuning.events import RUN_FORMAT, Candidate, FilledBlank, Part, RunRecord
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.paths import sample_data
from neuralviz.plots.micro_tuning import (
    MAX_CELLS,
    MOST_GUESSES,
    PALE,
    blank_figure,
    cosines_figure,
    delta_norm_figure,
    describe_run,
    loss_figure,
    neurons_figure,
    shares_figure,
)
from neuralviz.plots.theme import AFTER, BEFORE, LAYER_COLOURS

LAYER = "cls.predictions.transform.dense.bias"


def record_of(
    curves: np.ndarray, texts: Sequence[str], layers: Sequence[str] = (LAYER,)
) -> RunRecord:
    """A run with [text, epoch] losses that are known, and as many norms."""
    settings = TuningSettings(tuple(layers), epochs=curves.shape[1])
    record = RunRecord("bundled", settings, texts)
    record.loss, record.delta_norm = curves.T, np.repeat(curves.T[:, :, None], len(layers), axis=2)
    return record


def names_of(figure) -> list[str]:
    return [line.name for line in figure.data if line.showlegend is not False]


def test_a_few_texts_are_lines_under_the_chosen_one() -> None:
    record = record_of(np.arange(12.0).reshape(3, 4), ["One <b>.", "Two.", "Three."])
    figure = loss_figure(record, 1)
    assert names_of(figure) == ["the other texts", "text 2"]
    np.testing.assert_array_equal(figure.data[-1].y, [4, 5, 6, 7, np.nan])
    assert figure.data[-1].line.color == AFTER
    assert figure.data[-1].text == ("4.00", "", "", "7.00", "")  # the ends
    assert [line.meta["stage"].get("visible") for line in figure.data] == [False, False, None]
    assert not loss_figure(record_of(np.ones((1, 4)), ["One."]), 0).layout.showlegend


def test_many_texts_are_a_band_with_three_entries_in_the_legend() -> None:
    curves = np.random.default_rng(0).random((200, 11))
    curves[150:] = np.nan  # not started
    figure = loss_figure(record_of(curves, ["A text."] * 200), 140)
    assert names_of(figure) == ["lowest to highest", "median of 150 texts", "text 141"]
    high, low, median, chosen = (line.y[:-1] for line in figure.data)
    np.testing.assert_allclose(high, np.nanmax(curves, axis=0))
    np.testing.assert_allclose(low, np.nanmin(curves, axis=0))
    np.testing.assert_allclose(median, np.nanmedian(curves, axis=0))
    np.testing.assert_array_equal(chosen, curves[140])


def test_a_curve_without_a_point_or_line_is_not_in_the_legend() -> None:
    curves = np.array([[3.0, np.nan], [2.0, np.nan], [np.nan, np.nan]])
    assert names_of(loss_figure(record_of(curves, ["One.", "Two.", "Three."]), 0)) == ["text 1"]
    record = record_of(curves[2:], ["Three."])
    assert not loss_figure(record, 0).data
    record.parts = [Part(0, 0.25, 4.5), Part(0, 0.5, 3.5)]
    figure = loss_figure(record, 0)
    assert names_of(figure) == ["parts in epoch 1"]
    assert (figure.data[0].x, figure.data[0].y) == ((0.25, 0.5), (4.5, 3.5))
    assert figure.layout.xaxis.range[1] == pytest.approx(1.04)  # the first epoch, not all


def test_norms_start_at_zero_and_a_layer_has_one_colour_in_both_runs() -> None:
    (line,) = delta_norm_figure(record_of(np.array([[1.0, np.nan]]), ["A."]), 0).data
    np.testing.assert_array_equal(line.y, [0, 1, np.nan])
    record = record_of(np.ones((1, 3)), ["A."])
    earlier = record_of(np.ones((1, 10)), ["A."], ["a.b", LAYER])
    figure = delta_norm_figure(record, 0, earlier, runs=(3, 1))
    pale = PALE["opacity"]
    assert [line.opacity for line in figure.data] == [pale, pale, None, pale]
    assert names_of(figure) == ["dense.bias", "run 1 (wide line)"]
    same = [line.line.color for line in figure.data if line.name == "dense.bias"]
    assert same[0] == same[1] in LAYER_COLOURS


def test_neurons_are_sorted_by_the_last_known_delta() -> None:
    deltas = np.random.default_rng(0).normal(size=(5, 384)) * np.arange(1, 6)[:, None]
    deltas[4] = np.nan  # not known yet
    figure = neurons_figure(deltas, LAYER)
    drawn = figure.data[0]
    order = np.argsort(deltas[3].astype(np.float16), kind="stable")  # as links find them
    assert list(drawn.x) == [str(i) for i in order]
    np.testing.assert_allclose(drawn.z[3], deltas[3][order], atol=1e-5)
    assert list(figure.layout.yaxis.range) == [0.5, 5.5]  # upwards
    assert figure.layout.title.text == "Neurons of dense.bias"


@pytest.mark.parametrize(("n_epochs", "dim"), [(1000, 384), (100, 30522), (1, 30522)])
def test_a_heatmap_has_a_bounded_number_of_cells(n_epochs: int, dim: int) -> None:
    deltas = np.arange(n_epochs)[:, None] * np.ones((1, dim))
    drawn = neurons_figure(deltas, LAYER).data[0]
    assert np.size(drawn.z) <= max(MAX_CELLS, 2 * dim)
    assert drawn.y[-1] == n_epochs  # the last one is always there
    np.testing.assert_allclose(drawn.z[:, 0], np.array(drawn.y) - 1)


def test_blanks_are_two_bars_for_each_token() -> None:
    tokens = (Candidate("a <b>", 0.1, 0.6), Candidate("b", 0.3, 0.0004))
    figure = blank_figure(FilledBlank(tokens[::-1], tokens[:1], tokens), "Blank")
    before, after = figure.data
    assert (list(before.x), list(after.x)) == ([0.1, 0.3], [0.6, 0.0004])
    assert (before.marker.color, after.marker.color) == (BEFORE, AFTER)
    assert list(after.text) == ["60%", "&lt; 0.1%"]
    assert list(figure.layout.yaxis.ticktext) == ["“a &lt;b&gt;”", "“b”"]
    assert figure.layout.yaxis.autorange == "reversed"  # the first on top
    many = tuple(Candidate(f"{i}", 0.1, 0.2) for i in range(10))
    figure = blank_figure(FilledBlank(many, many, many), "Blank")
    assert len(figure.data[0].x) == MOST_GUESSES  # large letters stay apart


def test_the_words_that_a_sentence_names_have_bars() -> None:
    likely = tuple(Candidate(f"{i}", 0.01 * i, 0.3 - 0.01 * i) for i in range(9))
    blank = FilledBlank(likely[::-1], likely, likely)
    drawn = blank_figure(blank, "Blank").layout.yaxis.ticktext
    # both best guesses among them, the likeliest after micro-tuning first
    assert list(drawn) == ["“0”", "“1”", "“2”", "“3”", "“4”", "“8”"]
    blank = FilledBlank(likely[:4], likely[4:], likely)
    figure = blank_figure(blank, "", has_after=False, hidden="3")
    assert list(figure.data[0].text) == ["0.0%", "1.0%", "2.0%", "", "3.0%"]
    assert list(figure.layout.yaxis.ticktext[3:]) == ["", "“3”<br>(hidden word)"]  # set apart


def test_of_a_long_text_the_largest_shares_are_drawn_in_text_order() -> None:
    words = [f"word{n}" for n in range(200)]
    shares = np.full(200, 0.001)
    shares[50:110] = np.linspace(-0.3, 0.4, 60)
    figure = shares_figure(words, shares)
    assert list(figure.layout.xaxis.ticktext) == words[50:110]
    np.testing.assert_allclose(figure.data[0].y, 100 * shares[50:110])
    assert "the 60 largest" in figure.layout.title.text
    assert figure.data[0].text[:2] == ("−30%", "−29%")
    assert "" in figure.data[0].text  # of a share that is hardly seen


def test_downloads_say_which_run_they_are_of_and_how_far_it_came() -> None:
    record = RUN_FORMAT.unpack((sample_data() / "recorded_run.npz").read_bytes())
    whole = describe_run(record)
    assert whole.files == (record.texts[0], "10 epochs")
    assert describe_run(record, 2).files == (record.texts[2], "10 epochs")
    assert "so far" not in whole.settings
    begun = RunRecord(record.model_id, replace(record.settings, epochs=1), record.texts)
    assert describe_run(begun).files[1:] == ("1 epoch",)
    assert describe_run(begun).settings["so far"] == "0 of 3 texts finished, in epoch 1 of 1."


def test_a_negative_cosine_has_room_for_its_value() -> None:
    figure = cosines_figure(["a", "b"], np.array([0.03, -0.02]))
    assert figure.layout.xaxis.range[0] == pytest.approx(-0.14)
    assert cosines_figure(["a"], np.array([0.5])).layout.xaxis.range[0] == 0
