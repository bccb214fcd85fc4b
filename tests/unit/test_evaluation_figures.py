"""Figures of measured embeddings, sweeps, and the report: values, escaping, what is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from neuralviz import __version__
from neuralviz.embedders import embedder_spec
from neuralviz.evaluation import EvaluationPlan, Results, method_rows
from neuralviz.evaluation.broken import Overlap
from neuralviz.evaluation.data import (
    DataSet,
    LabelledData,
    ParaphraseData,
    ScoredData,
    grouped_data,
    scored_data,
)
from neuralviz.evaluation.measures import measure, overlaps
from neuralviz.evaluation.probing import Confusion
from neuralviz.evaluation.results import (
    YARDSTICKS,
    Cell,
    Compared,
    Measured,
    MeasureSettings,
    QualityMap,
)
from neuralviz.evaluation.rows import Row, experiment_rows, find_swept_options
from neuralviz.evaluation.yardsticks import yardsticks_of
from neuralviz.headlines.evaluation import describe_verdict
from neuralviz.jobs.evaluating import recorded_results
from neuralviz.plots import evaluation as plots
from neuralviz.plots.report import other_figures, proof_figures, report_html
from neuralviz.plots.theme import BLUE, VERMILLION

EVIL = "<script>alert(1)</script> & <b>bold</b>"


def filled(rows: Sequence[Row], *data: DataSet, resamples: int = 200) -> Results:
    """Results of random vectors: a cell for each row and data set, and what they share."""
    settings = MeasureSettings(resamples=resamples)
    results = Results(EvaluationPlan(data, tuple(rows), settings))
    for number, one in enumerate(data):
        size = (len(one.texts), 8)
        vectors = [np.random.default_rng(seed).normal(size=size) for seed in range(len(rows))]
        for at in range(len(rows)):
            measured = measure(one, vectors[at], settings)
            results = results.having(Cell(number, at, measured))
        if len(rows) > 1:
            found, failed = overlaps(one, vectors)
            results = results.having(Compared(number, tuple(range(len(rows))), found, failed))
    return results


def few_pairs(name: str = "few.csv") -> ScoredData:
    scores = np.array([5, 4.5, 4, 3, 2, 1, 0, 2.5])
    return scored_data(name, [f"dog {i}" for i in range(8)], [f"cat {i}" for i in range(8)], scores)


def pairs_like_the_benchmark() -> ScoredData:
    """As many pairs of each kind as the papers' data have, of texts that mean nothing."""
    scores = np.full(1379, 3.0)
    scores[:338] = 4.5
    scores[-534:] = 0.0
    first, second = ([f"{side} {i}" for i in range(1379)] for side in ("one", "other"))
    data = scored_data("numbers.csv", first, second, scores)
    return replace(data, benchmark="stsb")


def all_figures(results: Results) -> list[go.Figure]:
    return [*proof_figures(results, 0), *other_figures(results, 0)]


def titles(results: Results) -> list[str]:
    return [figure.layout.title.text for figure in all_figures(results)]


def as_read(text: str) -> str:
    """What a browser reads in a script."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), text)


def test_a_dot_stands_at_its_value_and_its_line_ends_at_the_bounds() -> None:
    labels = ["mean", "neural, exact"]
    figure = plots.interval_figure(
        plots.Chart(labels, [0.5, 0.25], [(0.4, 0.7), None], "", "Spearman")
    )
    mean, neural = figure.data
    assert (mean.x, mean.y) == ((0.5,), ("mean",))
    assert mean.error_x.array[0] == pytest.approx(0.2)
    assert mean.error_x.arrayminus[0] == pytest.approx(0.1)
    assert "0.400 to 0.700" in mean.hovertemplate
    assert neural.error_x.array is None
    assert (mean.marker.color, neural.marker.color) == (BLUE, VERMILLION)
    assert figure.layout.yaxis.categoryarray == ("neural, exact", "mean")  # the first on top


def test_values_stand_beside_the_line_of_guessing_and_long_names_are_left_out() -> None:
    texts, columns = tuple(f"text {i}" for i in range(24)), {"label": "x" * 90}
    data = LabelledData("l.csv", texts, np.arange(24), ("a", "b", "c") * 8, columns=columns)
    figure, *_ = proof_figures(filled(method_rows(["mean", "neural"], {}), data), 0)
    assert figure.layout.annotations[0].text == "always the same guess 33%"
    assert figure.layout.title.text.endswith("the label correctly")
    assert [dot.name for dot in figure.data] == ["mean", "neural"]
    chart = plots.Chart(
        ["a", "b"], [0.34, 0.9], [None] * 2, "", "share ↑", baselines={"guess": 1 / 3}
    )
    near, far = plots.interval_figure(chart).data
    assert (near.textposition, far.textposition) == ("top right", "top center")


@pytest.mark.parametrize(
    ("same", "diff"),
    [
        (np.linspace(0.2, 0.9, 30), np.linspace(-0.4, 0.5, 2000)),
        ([], []), ([], [0.5]), ([1.0] * 40, [1.0] * 9),
    ],
)  # fmt: skip
def test_both_histograms_have_the_same_bins_and_all_of_their_values(same, diff) -> None:
    dissimilar, similar = plots.product_histogram(np.array(same), np.array(diff), "").data
    assert similar.name == f"similar ({len(same):,})"
    np.testing.assert_allclose(dissimilar.x, similar.x)
    assert sum(similar.y) == pytest.approx(100 if len(same) else 0)
    assert sum(dissimilar.y) == pytest.approx(100 if len(diff) else 0)
    assert 16 <= len(similar.x) <= plots.MAX_BINS


@pytest.mark.parametrize(("n", "sampled"), [(200, ""), (201, " sampled")])
def test_a_sample_is_called_one(n: int, sampled: str) -> None:
    """200 anchors and 200 texts have 20,000 pairs of each kind, as many as are drawn at most."""
    texts, is_anchor = [f"Text {i}" for i in range(n + 200)], np.arange(n + 200) < n
    data = grouped_data("groups", texts, [f"{i % 2}" for i in range(n + 200)], is_anchor)
    vectors = np.random.default_rng(0).normal(size=(n + 200, 3))
    measured = measure(data, vectors, MeasureSettings(resamples=0))
    results = SimpleNamespace(
        finished=lambda _: [(0, "mean", measured)],
        data=[data],
        rows=[SimpleNamespace(label="mean")],
    )
    ((_, figure),) = plots.histograms(results, 0)
    assert [trace.name.partition(" (")[2] for trace in figure.data] == [f"20,000{sampled})"] * 2


def test_labels_that_are_never_taken_for_others_have_zeros() -> None:
    (shares,) = plots.confusion_figure(Confusion(("a", "b"), np.array([[3, 1], [0, 2]])), "").data
    assert list(shares.text) == [["75%", "25%"], ["0%", "100%"]]


def test_errors_in_common_are_written_in_the_cells_but_for_methods_without_any() -> None:
    overlap = Overlap(np.array([[4, 1, 0], [1, 2, 0], [0, 0, 0]]), 9)
    (cells,) = plots.overlap_figure(["a", "b", "c"], overlap, "").data
    assert list(cells.text) == [["", "0.50", ""], ["0.50", "", ""], ["", "", ""]]
    assert (cells.zmin, cells.zmax, cells.customdata[0][1]) == (0, 1, 1)
    assert np.isnan(cells.z[0][0])


@pytest.mark.parametrize(
    ("values", "is_ratio", "drawn", "ends"),
    [
        ([0.2, np.nan, 0.8], False, 0.2, (0, 0.8)),
        ([-0.2, np.nan, 0.8], False, -0.2, (-0.8, 0.8)),
        ([1.5, np.nan, 0.5], True, 0.5, (-0.5, 0.5)),  # from 1, and written as they are
    ],
)
def test_qualities_are_written_and_coloured_by_their_range(values, is_ratio, drawn, ends) -> None:
    drawn_values = np.array([values])
    quality_map = QualityMap("form", np.ones(1), np.arange(3), drawn_values, np.ones((1, 3)))
    figure = plots.quality_figure([quality_map], "", [drawn_values] if is_ratio else None)
    assert figure.layout.annotations[0].text == "form varies"
    (cells,) = figure.data
    assert (cells.x, cells.y, cells.z[0][0]) == (("0", "1", "2"), ("1",), drawn)
    assert cells.text[0][0] == f"{values[0]:.2f}".replace("-", "−")
    assert cells.text[0][1] == ""
    axis = figure.layout.coloraxis
    assert (axis.cmin, axis.cmax) == ends


def test_the_headline_has_the_digits_of_the_figure() -> None:
    for results in recorded_results():
        figure = plots.yardstick_figure(results, 0, yardsticks_of(results, 0)[0])
        assert figure is not None
        sentence, texts = describe_verdict(results, 0), {trace.text[0] for trace in figure.data}
        assert all(f" {text} " in sentence for text in texts), (sentence, texts)


def test_scored_pairs_have_their_figures_in_order() -> None:
    results = filled(method_rows(["mean", "neural"], {}), few_pairs())
    assert titles(results) == [
        "Spearman correlation",
        "Lead of mean over …",
        "Kendall tau-c correlation",
        "The dissimilar pair is rated as more similar",
        "The text of another group is nearer",
        "Shared errors: pairs",
        "Shared errors: triplets",
        "Cosine similarities with mean",
        "Cosine similarities with neural",
    ]
    first = all_figures(results)[0]
    measured = results.measured(0, 0)
    assert measured is not None
    assert first.data[0].x[0] == measured.correlations.spearman
    low, high = measured.interval("spearman")
    assert first.data[0].x[0] + first.data[0].error_x.array[0] == pytest.approx(high)
    assert first.data[0].x[0] - first.data[0].error_x.arrayminus[0] == pytest.approx(low)


def test_nothing_measured_yet_is_a_report_without_figures() -> None:
    rows = method_rows(["mean"], {})
    results = Results(EvaluationPlan((few_pairs(),), rows))
    assert titles(results) == []
    report = report_html(results)
    assert "0 of 1 result finished" in report
    assert "Plotly" not in report
    assert report.endswith("</html>\n")


def paraphrases(quality: str = "form") -> ParaphraseData:
    values = np.array([0.1, 0.5, 0.9, 0.1, 0.5, 0.9])
    return ParaphraseData(
        "p.csv", ("o", *"abcdef"), np.zeros(6, dtype=int), np.arange(1, 7), (quality,) * 6, values,
        np.repeat([0.2, 0.8], 3), np.full(6, 0.5),
    )  # fmt: skip


def rows_of(experiment: str) -> tuple[Row, ...]:
    model = SimpleNamespace(head_layers=["one", "two"], n_blocks=6)
    loaders = dict.fromkeys(("masked", "text"), lambda _id: model)
    with patch.dict("neuralviz.models.shared.LOADERS", loaders):
        return experiment_rows(experiment, {}, None)


def test_epochs_rates_and_layers_are_sweeps_of_one_option() -> None:
    assert find_swept_options(rows_of("epochs")) == {"epochs": tuple(range(1, 21))}
    assert list(find_swept_options(rows_of("learning-rate"))) == ["learning_rate"]
    rows = rows_of("layer-by-layer")
    assert [row.label for row in rows] == [f"layer {n}" for n in range(7)]
    assert {(row.spec.method, row.spec.model_id) for row in rows} == {("mean", "bundled")}
    assert find_swept_options(rows) == {"layer": tuple(range(7))}


def test_a_sweep_of_two_options_has_every_combination() -> None:
    rows = rows_of("sbert-wk-sweep")
    found = find_swept_options(rows)
    assert list(found) == ["layer_start", "window"]
    assert set(zip(*found.values(), strict=True)) == {(a, b) for a in range(6) for b in range(1, 5)}
    assert find_swept_options(rows[:-1]) == {}  # one combination is missing
    for name in ("precision", "layers", "outputs", "concatenated", "sbert-wk-parts"):
        assert find_swept_options(rows_of(name)) == {}


def test_a_line_has_its_values_in_order_and_its_band() -> None:
    chart = plots.Chart(
        ["a", "b", "c"], [0.3, 0.1, 0.2], [(0.2, 0.4), (0.0, 0.2), (0.1, 0.3)], "T", "Spearman",
        published=[(0.9, "a <b>model</b>"), None, None],
    )  # fmt: skip
    figure = plots.line_figure(chart, "epochs", [3, 1, 2])
    low, high, line, theirs = figure.data
    assert line.x == (1, 2, 3)
    assert line.y == (0.1, 0.2, 0.3)
    assert (low.y, high.y) == ((0.0, 0.1, 0.2), (0.2, 0.3, 0.4))
    assert high.fill == "tonexty"
    assert (theirs.x, theirs.y) == ((3,), (0.9,))
    assert "a &lt;b&gt;model&lt;/b&gt;" in theirs.name


def test_a_grid_has_every_value_at_its_place() -> None:
    chart = plots.Chart(list("abcd"), [1, 2, 3, np.nan], [None] * 4, "", "")
    figure = plots.grid_figure(chart, {"first": [4, 0, 4, 0], "window": [1, 2, 2, 1]})
    (heat,) = figure.data
    assert (heat.y, heat.x) == (("0", "4"), ("1", "2"))
    np.testing.assert_array_equal(np.array(heat.z, dtype=float), [[np.nan, 2], [1, 3]])
    assert list(heat.text[0]) == ["", "2.000"]


def test_a_sweep_is_drawn_as_a_line_and_a_grid_and_methods_as_before() -> None:
    by_name = {yardstick.name: yardstick for yardstick in YARDSTICKS}
    learnt = filled(rows_of("epochs")[:6], few_pairs())
    figure = plots.yardstick_figure(learnt, 0, by_name["spearman"])
    line = next(one for one in figure.data if one.mode == "lines+markers")
    assert list(line.x) == [1, 2, 3, 4, 5, 6]
    assert list(line.y) == [learnt.measured(0, at).correlations.spearman for at in range(6)]
    figure = plots.yardstick_figure(learnt, 0, by_name["triplets"])
    expected = [learnt.measured(0, at).triplets.error for at in range(6)]
    assert list(figure.data[-1].y) == expected
    windows = filled(rows_of("sbert-wk-sweep"), few_pairs())
    figure = plots.yardstick_figure(windows, 0, by_name["kendall_b"])
    assert (figure.data[0].type, figure.layout.height) == ("heatmap", 456)
    methods = filled(method_rows(["mean", "cls", "sep"], {}), few_pairs())
    dots = plots.yardstick_figure(methods, 0, by_name["spearman"]).data
    assert [trace.type for trace in dots] == ["scatter"] * 3


def test_the_report_needs_no_network_and_has_the_library_once() -> None:
    groups = grouped_data("groups.csv", list("abcd"), list("1122"))
    report = report_html(filled(method_rows(["mean", "cls"], {}), few_pairs(), groups))
    assert report.count(get_plotlyjs()) == 1
    rest = report.replace(get_plotlyjs(), "")
    assert rest.count("Plotly.newPlot") == 9 + 4  # two groups are too few for a lead
    assert "src=" not in rest
    assert rest.count("href=") == rest.count("href='data:,'")  # no icon is asked for
    assert rest.count("<h2>") == 4  # data, how to read them, settings


def test_whatever_a_user_gave_is_escaped_in_the_report() -> None:
    row = Row(EVIL, embedder_spec("mean", {"model": EVIL}), EVIL)
    scored = few_pairs(EVIL)
    labelled = LabelledData(EVIL, ("a", "b", "c"), np.arange(3), (EVIL,) * 3, notes=(EVIL,))
    results = filled([row], scored, labelled, paraphrases(EVIL))
    results = results.having(Compared(0, (0,), failed={"pairs": EVIL}))
    failed = Measured(failed={"pairs": EVIL})
    results = results.having(Cell(1, 0, failed))
    report = report_html(results)
    rest = as_read(report.replace(get_plotlyjs(), ""))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in rest
    assert "&lt;script&gt;alert(1)&lt;/s… varies" in rest
    assert "&gt;: tau-c" in rest
    assert "Cosine similarities with &lt;" in rest
    assert "<script>alert" not in rest
    assert "<b>" not in rest


def test_the_report_has_every_setting_and_the_tables_their_numbers() -> None:
    typed = {"neural.epochs": "3", "precision": "fast", "sbert-wk.window": "4",
             "sbert-wk.model": "some/encoder"}  # fmt: skip
    rows = method_rows(["neural", "sbert-wk", "neural+mean"], typed)
    settings = MeasureSettings(("pairs", "triplets"), k=7, resamples=321)
    report = report_html(Results(EvaluationPlan((few_pairs(),), rows, settings)))
    for part in (
        f"neuralviz {__version__}", "Measures: pairs, triplets", "7 neighbours",
        "321 bootstrap resamples", "0 of 3 results", "epochs 3", "precision fast", "window 4",
        "some/encoder", "neural.epochs 3", "bundled + all-MiniLM-L6-v2",
        "8 scored pairs, 3 of them similar (≥ 4), 3 dissimilar (≤ 2)",
    ):  # fmt: skip
        assert part in report, part
    results = filled(method_rows(["mean"], {}), few_pairs())
    measured = results.measured(0, 0)
    assert measured is not None
    report = report_html(results)
    assert f"<td>{measured.correlations.spearman:.3f}</td>" in report
    assert f"<td>{measured.pairs.wrong} of 9</td>" in report
    assert f"<td>{measured.triplets.error:.2%}</td>" in report


def test_what_was_published_stands_beside_with_its_model() -> None:
    rows = method_rows(["mean", "neural", "sbert-wk"], {})
    results = filled(rows, pairs_like_the_benchmark(), resamples=0)
    published = report_html(results).split("Published results, with the model used in the paper")[1]
    table = published.split("</table>")[0]
    paper = "<td>Tables 1, 3 and 4</td>"
    neural = f"<td>neural, exact</td><td>bert-base-uncased</td>{paper}<td>0.658</td>"
    counts = "<td>17,893</td><td>0.53</td><td>0.29</td><td>455</td><td>0.53</td><td>0.03</td>"
    assert f"{neural}<td>0.478</td><td>0.482</td>{counts}" in table
    assert f"<td>mean</td><td>all-MiniLM-L6-v2</td>{paper}<td>0.820</td>" in table
    assert "sbert-wk" not in table
    spearman = all_figures(results)[0]
    assert spearman.data[-1].x == (0.820, 0.658)
    assert spearman.data[0].error_x.array is None  # no resamples, no interval
