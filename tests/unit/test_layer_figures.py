"""The figures of layer dynamics: what they hold, and that they can be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neuralviz.layers.geometry import FollowedWord
from neuralviz.micro_tuning.lens import Lens
from neuralviz.plots import layers as plots
from neuralviz.plots.layers import layer_figure, scatter_figure
from neuralviz.plots.theme import GREEN, method_colour, spaced_ticks


def test_a_cosine_map_has_values_in_its_cells_while_there_is_room() -> None:
    (cells,) = plots.cosine_map_figure(np.full((7, 7), 0.34), "mean").data
    assert (bool(cells.texttemplate), cells.showscale) == (True, False)
    assert (cells.zmin, cells.zmax) == (pytest.approx(0.24), 0.34)  # the diagonal is grey
    assert np.isnan(np.diagonal(cells.z)).all()
    (cells,) = plots.cosine_map_figure(np.ones((25, 25)), "mean").data
    assert (bool(cells.texttemplate), cells.showscale) == (False, True)
    assert cells.zmin == 0.9  # identical layers are not blown up


@pytest.mark.parametrize(
    ("numbers", "ticks"),
    [
        (range(13), [0, 2, 4, 6, 8, 10, 12]),  # 10, 11 and 12 touched each other
        (range(12), [0, 2, 4, 6, 8, 11]),
        ([], []),
    ],
)
def test_numbers_along_an_axis_stay_apart(numbers: range, ticks: list[int]) -> None:
    assert spaced_ticks(numbers) == ticks


@pytest.mark.parametrize("has_head", [True, False])
def test_a_lens_lists_the_guesses_of_a_cell(has_head: bool) -> None:
    words = ((("<b>", "a much longer word", "c"), ("d", "e", "f")),)
    shares = np.array([[[0.5, 0.25, 0.125], [0.9, 0.04, 0.03]]])
    values, rank = shares[:, :, 0], np.ones((1, 2), dtype=int)
    text: Any = None
    lens = Lens(text, np.arange(1), ("<i>",), values, rank, words, shares, has_head)
    figure = plots.lens_figure(lens, "Guesses", 0)
    (matrix,) = figure.data
    listed = {
        True: "“&lt;b&gt;” 50%<br>“a much longer word” 25%<br>“c” 12%",
        False: "“&lt;b&gt;” 0.50<br>“a much longer word” 0.25<br>“c” 0.12",
    }
    assert matrix.customdata[0][0] == listed[has_head]
    assert matrix.text[0][0] == "&lt;b&gt;"
    assert matrix.colorbar.title.text == ("probability" if has_head else "cosine")
    assert figure.layout.xaxis.ticktext == ("&lt;i&gt;",)
    leads = plots.leads_figure({"before": values[0]}, "<i>", has_head=has_head)
    assert "“&lt;i&gt;” at every layer" in leads.layout.title.text


def test_a_token_is_escaped_and_cannot_be_html() -> None:
    evil = "<b>&"
    assert "&lt;b&gt;&amp;" in plots.cosine_map_figure(np.eye(3), evil).layout.title.text
    figure = plots.weights_figure({"Alignment": np.ones((1, 3))}, np.arange(3), [evil])
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;&amp;",)
    assert figure.data[0].customdata[0][0] == "&lt;b&gt;&amp;"


def test_of_weights_the_first_60_tokens_are_drawn_in_one_scale_of_colours() -> None:
    weights = {"Alignment": np.full((80, 5), 0.2), "Novelty": np.full((80, 5), -0.6)}
    figure = plots.weights_figure(weights, np.arange(2, 7), [f"token{i}" for i in range(80)])
    assert [cells.z.shape for cells in figure.data] == [(60, 5), (60, 5)]
    assert len(figure.layout.yaxis.ticktext) == 60
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-0.6, 0.6)


def test_the_bars_of_words_and_of_all_else_sum_to_the_embedding() -> None:
    words = [FollowedWord(f"<{i}>", 0.05) for i in range(12)]
    figure, table = plots.word_shares_figure(words, 3, 0.25)
    (bars,) = figure.data
    names = ["2 others", "punctuation", "[start]"]
    assert table["word"] == [*(f"<{i}>" for i in range(10)), *names]
    assert list(bars.customdata[:1]) == ["&lt;0&gt;"]
    np.testing.assert_allclose(bars.y, [*[0.05] * 10, 0.1, 0.25, 0.15])
    assert [colour == GREEN for colour in bars.marker.color] == [True] * 3 + [False] * 10
    assert len(plots.word_shares_figure([FollowedWord("the", 1.0)], 1, 0)[1]["word"]) == 1


def test_a_line_for_each_pooling_and_a_mark_at_the_best_layer() -> None:
    values = {"mean": [0.1, 0.3], "cls": [np.nan, 0.25]}
    mean, cls, best = layer_figure(values, ("mean", 1)).data
    assert (mean.name, cls.name, list(mean.y)) == (
        "mean of all tokens",
        "start mark [CLS]",
        [0.1, 0.3],
    )
    assert mean.line.dash != cls.line.dash
    assert mean.line.color == cls.line.color == method_colour("cls")
    assert (best.x, best.text) == ((1,), ("<b>0.30</b>",))


def test_pairs_are_named_escaped_and_short() -> None:
    sentences = [("<script>alert(1)</script>", "x" * 500), ("a", "b"), ("c", "d")]
    cosines, scores = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2, 3])
    (points,) = scatter_figure(cosines, scores, sentences, "t").data
    assert (list(points.x), list(points.y)) == ([0.1, 0.2, 0.3], [1, 2, 3])
    first = points.customdata[0]
    assert "<script>" not in first and "&lt;script&gt;" in first
    assert len(first) < 200
