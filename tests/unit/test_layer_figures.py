"""The figures of layer dynamics: what they hold, and that they can be read."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.layers.geometry import FollowedWord
from neuralviz.plots import blocks
from neuralviz.plots import layers as plots
from neuralviz.plots.blueprints import KEPT, MASKED
from neuralviz.plots.pairs import layer_figure, scatter_figure
from neuralviz.plots.room import cell_values, spaced_ticks
from neuralviz.plots.theme import method_colour


def test_a_cosine_map_has_values_in_its_cells_while_there_is_room() -> None:
    cosines = np.full((7, 7), 0.34)
    (cells,) = plots.cosine_map_figure(cosines, "mean").data
    assert cells.texttemplate
    assert not cells.showscale
    assert (cells.zmin, cells.zmax) == (pytest.approx(0.3), 1.0)
    (cells,) = plots.cosine_map_figure(np.ones((25, 25)), "mean").data
    assert cells.texttemplate is None
    assert cells.showscale
    assert cells.zmin == 0.9  # identical layers are not blown up


def test_a_value_in_a_cell_has_a_minus_sign_and_an_empty_cell_has_none() -> None:
    cells = cell_values(np.array([[-0.254, -0.001, np.nan]]))
    assert cells["text"] == [["−0.25", "0.00", ""]]
    assert "text" not in cell_values(np.zeros((1, 3)), most_columns=2)


def test_norms_of_blocks_have_two_digits_that_count() -> None:
    norms = np.array([[0.0342, 0.00031, 123.4, 9.96]])
    (cells,) = blocks.marks_figure(norms, ["bias"], range(4), measure="norm", moment="now").data
    assert cells.text == (["0.034", "0.00031", "120", "10"],)


def test_a_token_is_escaped_and_cannot_be_html() -> None:
    evil = "<b>&"
    assert "&lt;b&gt;&amp;" in plots.cosine_map_figure(np.eye(3), evil).layout.title.text
    figure = plots.weights_figure({"Alignment": np.ones((1, 3))}, np.arange(3), [evil])
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;&amp;",)
    assert figure.data[0].customdata[0][0] == "&lt;b&gt;&amp;"


def test_layers_are_counted_in_steps_that_fit() -> None:
    few = plots.cosine_map_figure(np.eye(7), "mean").layout.xaxis.tickvals
    assert list(few) == [0, 1, 2, 3, 4, 5, 6]
    many = plots.cosine_map_figure(np.eye(49), "mean").layout.xaxis.tickvals
    assert len(many) <= 13
    assert (many[0], many[-1]) == (0, 48)
    odd = plots.cosine_map_figure(np.eye(26), "mean").layout.xaxis.tickvals
    assert min(np.diff(odd)) >= 2


def test_diagonals_are_lines_of_their_own_length() -> None:
    figure = plots.diagonals_figure({1: np.ones(3), 2: np.ones(2)}, "mean")
    assert [len(line.y) for line in figure.data] == [3, 2]
    assert list(figure.data[1].customdata) == [2, 3]
    assert not plots.diagonals_figure({}, "mean").data


def test_weights_share_their_colours_and_the_first_60_tokens_are_drawn() -> None:
    weights = {"Alignment": np.full((80, 5), 0.2), "Novelty": np.full((80, 5), 0.6)}
    tokens = [f"token{i}" for i in range(80)]
    figure = plots.weights_figure(weights, np.arange(2, 7), tokens)
    assert [cells.z.shape for cells in figure.data] == [(60, 5), (60, 5)]
    assert len(figure.layout.yaxis.ticktext) == 60
    assert {cells.coloraxis for cells in figure.data} == {"coloraxis"}
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 0.6)
    assert list(figure.data[0].x) == [2, 3, 4, 5, 6]
    assert plots.weights_height(80) == plots.weights_height(60) > plots.weights_height(3)


def test_negative_weights_are_centred_at_0() -> None:
    weights = {"Alignment": np.array([[-0.5, 1.5]])}
    axis = plots.weights_figure(weights, np.arange(2), ["a"]).layout.coloraxis
    assert (axis.cmin, axis.cmax) == (-1.5, 1.5)
    assert axis.colorscale is None  # the template's diverging one


def test_numbers_along_an_axis_stay_apart() -> None:
    """Of a model of 12 blocks, 10, 11 and 12 touched each other."""
    assert spaced_ticks(range(13)) == [0, 2, 4, 6, 8, 10, 12]
    assert spaced_ticks(range(12)) == [0, 2, 4, 6, 8, 11]
    assert spaced_ticks(range(10)) == list(range(10))
    assert spaced_ticks([4]) == [4]
    assert spaced_ticks([]) == []
    figure = layer_figure({"mean": [0.1] * 13}, "Spearman")
    assert list(figure.layout.xaxis.tickvals) == [0, 2, 4, 6, 8, 10, 12]


def test_epochs_run_upwards() -> None:
    figure = blocks.block_totals_figure(np.ones((40, 2)), [0, 1], measure="length", epochs=40)
    ticks = list(figure.layout.xaxis.tickvals)
    assert (ticks, ticks[0], ticks[-1]) == (sorted(ticks), 0, 40)


def test_layers_and_blocks_have_no_methods_colours() -> None:
    methods = {method_colour(name) for name in ("neural", "mean", "sbert-wk", "tf-idf", "a+b")}
    methods |= {method_colour(name) for name in ("sentence-transformer", "gradient")}
    words = [FollowedWord(str(i), 1, 1, 0.1, np.ones(3)) for i in range(6)]
    for figure in (
        plots.diagonals_figure(dict.fromkeys((1, 2, 3, 4), np.ones(3)), "mean"),
        blocks.block_totals_figure(np.ones((2, 6)), range(6), measure="length", epochs=2),
        plots.turns_figure(words, 3, 2),
    ):
        assert methods.isdisjoint(line.line.color for line in figure.data)
    pairs = scatter_figure(np.ones(2), np.ones(2), [("a", "b")] * 2, ["x", "y"], "t")
    assert methods.isdisjoint(dots.marker.color for dots in pairs.data)
    assert methods.isdisjoint((KEPT, MASKED))
    assert {line.line.color for line in layer_figure({"mean": [1], "cls": [1]}, "S").data} == {
        method_colour("cls")
    }


def test_the_words_that_are_named_have_colours_and_the_layers_that_count_no_shade() -> None:
    words = [FollowedWord(f"<{i}>", 1, 1, 0.1, np.full(6, 0.5)) for i in range(100)]
    figure = plots.turns_figure(words, 3, 2)
    named = [line for line in figure.data if line.showlegend]
    assert [line.name for line in named] == [f"&lt;{i}&gt;" for i in (0, 1, 2, 99)]
    assert len(figure.data) == plots.MAX_WORDS
    (shade,) = figure.layout.shapes
    assert (shade.x0, shade.x1) == (0.7, 2.5)
    assert list(figure.data[0].x) == [1, 2, 3, 4, 5, 6]
    (only,) = plots.turns_figure(words[:1], 1, 0).data
    assert only.showlegend


def test_the_best_layer_is_marked() -> None:
    figure = layer_figure({"mean": [0.1, 0.3], "cls": [0.2, 0.25]}, "Spearman", ("mean", 1))
    assert (figure.data[-1].x, figure.data[-1].text) == ((1,), ("<b>0.30</b>",))


def test_the_chosen_settings_are_framed() -> None:
    windows, starts = np.arange(1, 4), np.arange(3)
    figure = plots.settings_figure(np.ones((3, 3)), windows, starts, (2, 1))
    frame = figure.layout.shapes[0]
    assert (frame.x0 + frame.x1, frame.y0 + frame.y1) == (2, 4)
    assert not plots.settings_figure(np.ones((3, 3)), windows, starts, (2, 5)).layout.shapes


def test_omega_is_seen_where_it_changes_nothing() -> None:
    figure = plots.omega_figure(np.linspace(0, 1, 11), np.ones(11), 0.5)
    assert figure.layout.yaxis.range[0] == pytest.approx(0.95)
    assert figure.layout.shapes[0].x0 == 0.5


def marks(norms: np.ndarray) -> object:
    (cells,) = blocks.marks_figure(
        norms, ["<a>", "b"], [0, 1], measure="Length", moment="epoch 1"
    ).data
    return cells


def test_marks_span_the_epochs_values_and_equal_ones_look_equal() -> None:
    cells = marks(np.array([[1.0, 2.0], [4.0, np.nan]]))
    assert (cells.zmin, cells.zmax) == (1, 4)
    assert cells.customdata[0][0] == "&lt;a&gt;"
    cells = marks(np.array([[1.0, 1.0], [1.0, 1.000001]]))
    assert cells.zmin == pytest.approx(0.9)
    cells = marks(np.full((2, 2), np.nan))
    assert (cells.zmin, cells.zmax) == (0.9, 1)


def test_blocks_start_from_nothing() -> None:
    totals = np.array([[1.0, 2.0], [np.nan, np.nan]])
    figure = blocks.block_totals_figure(totals, [0, 1], measure="length", epochs=2)
    np.testing.assert_array_equal(figure.data[1].y, [0, 2, np.nan])
    assert figure.layout.showlegend
    many = blocks.block_totals_figure(np.ones((2, 24)), range(24), measure="length", epochs=2)
    assert not many.layout.showlegend
    assert len({line.line.color for line in many.data}) == 24
