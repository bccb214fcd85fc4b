"""Measures over settings that are varied: which rows are a sweep, and what is drawn of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from neuralviz.evaluation.data import ScoredData, labelled_data, scored_data
from neuralviz.evaluation.events import Cell
from neuralviz.evaluation.measures import measure
from neuralviz.evaluation.plan import (
    EvaluationPlan,
    MeasureSettings,
    Row,
    experiment_rows,
    find_swept_options,
    method_rows,
)
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.yardsticks import yardsticks_of
from neuralviz.plots.evaluation import grid_figure, line_figure
from neuralviz.plots.report import report_html
from neuralviz.plots.results import broken_figure, correlation_figure, yardstick_figure


def rows_of(experiment: str) -> tuple[Row, ...]:
    return experiment_rows(experiment, {}, None, lambda _model: ["one", "two"], lambda _model: 6)


def some_pairs() -> ScoredData:
    scores = np.array([5, 4.5, 4, 3, 2, 1, 0, 2.5])
    return scored_data(
        "p.csv", [f"dog {i}" for i in range(8)], [f"cat {i}" for i in range(8)], scores
    )


def filled(rows: Sequence[Row], data, resamples: int = 200) -> Results:
    settings = MeasureSettings(resamples=resamples)
    results = Results(EvaluationPlan((data,), tuple(rows), settings))
    for at in range(len(rows)):
        vectors = np.random.default_rng(at).normal(size=(len(data.texts), 8))
        results = results.having(Cell(0, at, measure(data, vectors, settings)))
    return results


def test_epochs_are_a_sweep_of_one_option() -> None:
    assert find_swept_options(rows_of("epochs")) == {"epochs": tuple(range(1, 21))}
    assert list(find_swept_options(rows_of("learning-rate"))) == ["learning_rate"]


def test_layers_one_by_one_are_a_sweep() -> None:
    rows = rows_of("layer-by-layer")
    assert [row.label for row in rows] == [f"layer {n}" for n in range(7)]
    assert {(row.spec.method, row.spec.model_id) for row in rows} == {("mean", "bundled")}
    assert [dict(row.spec.options) for row in rows] == [{"layer": (n,)} for n in range(7)]
    assert find_swept_options(rows) == {"layer": tuple(range(7))}
    assert find_swept_options(method_rows(["mean", "cls", "last"], {"layer": "1,2"})) == {}


def test_layers_and_windows_are_a_sweep_of_two() -> None:
    rows = rows_of("sbert-wk-sweep")
    found = find_swept_options(rows)
    assert list(found) == ["layer_start", "window"]
    assert set(zip(*found.values(), strict=True)) == {(a, b) for a in range(6) for b in range(1, 5)}
    assert find_swept_options(rows[:-1]) == {}  # one combination is missing


@pytest.mark.parametrize(
    "experiment", ["precision", "layers", "outputs", "concatenated", "sbert-wk-parts"]
)
def test_other_tables_are_no_sweep(experiment: str) -> None:
    assert find_swept_options(rows_of(experiment)) == {}


def test_methods_of_ones_own_are_no_sweep() -> None:
    assert find_swept_options(method_rows(["mean", "cls", "neural"], {})) == {}
    assert find_swept_options(()) == {}
    assert find_swept_options(rows_of("epochs")[:2]) == {}  # two points are no curve


def test_a_line_has_its_values_in_order_and_its_band() -> None:
    figure = line_figure(
        "epochs", [3, 1, 2], [0.3, 0.1, 0.2], [(0.2, 0.4), (0.0, 0.2), (0.1, 0.3)], "T", "Spearman",
        [(0.9, "a <b>model</b>"), None, None],
    )  # fmt: skip
    low, high, line, theirs = figure.data
    assert line.x == (1, 2, 3)
    assert line.y == (0.1, 0.2, 0.3)
    assert (low.y, high.y) == ((0.0, 0.1, 0.2), (0.2, 0.3, 0.4))
    assert high.fill == "tonexty"
    assert (theirs.x, theirs.y) == ((3,), (0.9,))
    assert "a &lt;b&gt;model&lt;/b&gt;" in theirs.name
    assert figure.layout.xaxis.type is None


def test_a_line_without_all_intervals_has_no_band() -> None:
    figure = line_figure("e", [1, 2, 3], [1, 3, 2], [(0, 1), None, (1, 2)], "", "", [None] * 3)
    (line,) = figure.data
    assert line.y == (1, 3, 2)


def test_a_line_goes_on_behind_what_is_missing() -> None:
    figure = line_figure("e", [1, 2, 3], [1, np.nan, 2], [(0, 1), None, (1, 2)], "", "", [None] * 3)
    low, high, line = figure.data
    assert (low.x, line.x, line.y, high.y) == ((1, 3), (1, 3), (1, 2), (1, 2))
    all_there = line_figure("e", [1, 2], [1, 2], [(0, 1), (1, 2)], "", "", [None] * 2)
    assert len(all_there.data) == 3


def test_nothing_measured_is_an_empty_line() -> None:
    figure = line_figure("e", [1, 2], [np.nan, np.nan], [None, None], "", "", [None, None])
    (line,) = figure.data
    assert line.x == ()


@pytest.mark.parametrize(
    ("value", "told"),
    [(100.0, "100"), (41.6041, "41.6"), (0.22, "0.220"), (0.0, "0.00"), (-1, "−1.00")],
)
def test_cells_have_three_digits(value: float, told: str) -> None:
    figure = grid_figure(("a", "b"), ([1], [1]), [value], "", "")
    assert figure.data[0].text[0][0] == told


def test_values_of_several_magnitudes_have_a_logarithmic_axis() -> None:
    rates = [0.001, 0.01, 0.1]
    figure = line_figure("learning rate", rates, [1, 2, 3], [None] * 3, "", "", [None] * 3)
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.ticktext == ("0.001", "0.01", "0.1")
    with_zero = line_figure("x", [0, 1, 99], [1, 2, 3], [None] * 3, "", "", [None] * 3)
    assert with_zero.layout.xaxis.type is None


def test_a_grid_has_every_value_at_its_place() -> None:
    figure = grid_figure(
        ("first", "window"), ([4, 0, 4, 0], [1, 2, 2, 1]), [1, 2, 3, np.nan], "", ""
    )
    (heat,) = figure.data
    assert (heat.y, heat.x) == (("0", "4"), ("1", "2"))
    np.testing.assert_array_equal(np.array(heat.z, dtype=float), [[np.nan, 2], [1, 3]])
    assert list(heat.text[0]) == ["", "2.00"]


def test_a_sweep_is_drawn_as_a_line_and_a_grid_and_methods_as_before() -> None:
    learnt = filled(rows_of("epochs")[:6], some_pairs())
    figure, _ = correlation_figure(learnt, 0, "spearman")
    line = next(one for one in figure.data if one.mode == "lines+markers")
    assert list(line.x) == [1, 2, 3, 4, 5, 6]
    assert list(line.y) == [learnt.measured(0, at).correlations.spearman for at in range(6)]
    figure, _ = broken_figure(learnt, 0, "triplets")
    expected = [100 * learnt.measured(0, at).triplets.error for at in range(6)]
    assert list(figure.data[-1].y) == expected
    windows = filled(rows_of("sbert-wk-sweep"), some_pairs())
    figure, n_rows = correlation_figure(windows, 0, "kendall_b")
    assert (figure.data[0].type, n_rows) == ("heatmap", 7)
    methods = filled(method_rows(["mean", "cls", "sep"], {}), some_pairs())
    assert correlation_figure(methods, 0, "spearman")[0].data[0].type == "scatter"
    assert len(correlation_figure(methods, 0, "spearman")[0].data) == 3


def test_what_is_published_stands_at_its_epochs() -> None:
    results = filled(rows_of("epochs"), replace(some_pairs(), benchmark="stsb"))
    has = [at for at in range(20) if results.published(0, at)]
    assert [results.rows[at].label for at in has] == [
        "neural, epochs 5, exact", "neural, epochs 10, exact"
    ]  # fmt: skip
    figure, _ = correlation_figure(results, 0, "spearman")
    assert figure.data[-1].x == (5, 10)


def test_a_sweep_that_is_not_finished_is_drawn_as_far_as_it_is() -> None:
    rows = rows_of("epochs")
    whole = filled(rows, some_pairs())
    some = replace(whole, cells={at: cell for at, cell in whole.cells.items() if at[1] != 3})
    figure, _ = correlation_figure(some, 0, "spearman")
    assert 4 not in figure.data[-1].x
    assert len(figure.data[-1].x) == 19
    assert "lines+markers" in report_html(some)


def test_a_grid_has_a_gap_where_a_row_failed() -> None:
    rows = rows_of("sbert-wk-sweep")
    whole = filled(rows, some_pairs())
    some = replace(whole, cells={at: cell for at, cell in whole.cells.items() if at[1] != 5})
    figure, _ = correlation_figure(some, 0, "spearman")
    (heat,) = figure.data
    gaps = np.argwhere(~np.isfinite(np.array(heat.z, dtype=float)))
    assert gaps.tolist() == [[1, 1]]  # the sixth row: first layer 1, window 2
    assert heat.text[1][1] == ""


def test_labels_have_a_line_too() -> None:
    data = labelled_data("l.csv", [f"text {i}" for i in range(12)], ["a", "b"] * 6)
    results = filled(rows_of("learning-rate"), data)
    figure, _ = yardstick_figure(results, 0, yardsticks_of(results, 0)[0])
    assert figure.layout.xaxis.type == "log"
    assert list(figure.data[-1].y) == [
        results.measured(0, at).neighbours.accuracy for at in range(6)
    ]


def test_baselines_are_lines_with_room_below_the_lowest() -> None:
    figure = line_figure(
        "layer", [0, 1, 2], [0.5, 0.7, 0.6], [(0.4, 0.6), (0.6, 0.8), (0.5, 0.7)], "", "",
        [None] * 3, {"majority baseline": 0.2, "TF-IDF baseline": 0.3},
    )  # fmt: skip
    assert [one.y0 for one in figure.layout.shapes] == [0.2, 0.3]
    assert [one.text for one in figure.layout.annotations] == [
        "majority baseline",
        "TF-IDF baseline",
    ]
    assert figure.layout.yaxis.range == pytest.approx((0.2 - 0.048, 0.8 + 0.048))
