"""Measures over settings that are varied: which rows are a sweep, and what is drawn of them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from neuralviz.evaluation.columns import YARDSTICKS
from neuralviz.evaluation.data import ScoredData, scored_data
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
from neuralviz.plots.evaluation import Chart, grid_figure, line_figure, yardstick_figure


def rows_of(experiment: str) -> tuple[Row, ...]:
    model = SimpleNamespace(head_layers=["one", "two"], n_blocks=6)
    loaders = dict.fromkeys(("masked", "text"), lambda _id: model)
    return experiment_rows(experiment, {}, None, loaders)


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


def test_a_line_has_its_values_in_order_and_its_band() -> None:
    chart = Chart(
        ["a", "b", "c"], [0.3, 0.1, 0.2], [(0.2, 0.4), (0.0, 0.2), (0.1, 0.3)], "T", "Spearman",
        [(0.9, "a <b>model</b>"), None, None],
    )  # fmt: skip
    figure = line_figure(chart, "epochs", [3, 1, 2])
    low, high, line, theirs = figure.data
    assert line.x == (1, 2, 3)
    assert line.y == (0.1, 0.2, 0.3)
    assert (low.y, high.y) == ((0.0, 0.1, 0.2), (0.2, 0.3, 0.4))
    assert high.fill == "tonexty"
    assert (theirs.x, theirs.y) == ((3,), (0.9,))
    assert "a &lt;b&gt;model&lt;/b&gt;" in theirs.name
    assert figure.layout.xaxis.type is None


def test_a_grid_has_every_value_at_its_place() -> None:
    chart = Chart(list("abcd"), [1, 2, 3, np.nan], [None] * 4, "", "")
    figure = grid_figure(chart, {"first": [4, 0, 4, 0], "window": [1, 2, 2, 1]})
    (heat,) = figure.data
    assert (heat.y, heat.x) == (("0", "4"), ("1", "2"))
    np.testing.assert_array_equal(np.array(heat.z, dtype=float), [[np.nan, 2], [1, 3]])
    assert list(heat.text[0]) == ["", "2.00"]


def test_a_sweep_is_drawn_as_a_line_and_a_grid_and_methods_as_before() -> None:
    by_name = {yardstick.name: yardstick for yardstick in YARDSTICKS}
    learnt = filled(rows_of("epochs")[:6], some_pairs())
    figure = yardstick_figure(learnt, 0, by_name["spearman"])
    line = next(one for one in figure.data if one.mode == "lines+markers")
    assert list(line.x) == [1, 2, 3, 4, 5, 6]
    assert list(line.y) == [learnt.measured(0, at).correlations.spearman for at in range(6)]
    figure = yardstick_figure(learnt, 0, by_name["triplets"])
    expected = [100 * learnt.measured(0, at).triplets.error for at in range(6)]
    assert list(figure.data[-1].y) == expected
    windows = filled(rows_of("sbert-wk-sweep"), some_pairs())
    figure = yardstick_figure(windows, 0, by_name["kendall_b"])
    assert (figure.data[0].type, figure.layout.height) == ("heatmap", 456)
    methods = filled(method_rows(["mean", "cls", "sep"], {}), some_pairs())
    dots = yardstick_figure(methods, 0, by_name["spearman"]).data
    assert [trace.type for trace in dots] == ["scatter"] * 3
