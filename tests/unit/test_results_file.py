"""Results kept as a file: read again they are the same, and a file that is none is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neuralviz.arrays import npz_bytes, read_npz
from neuralviz.evaluation.data import DataSet
from neuralviz.evaluation.measures import measure, overlaps
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings, method_rows
from neuralviz.evaluation.results import RESULTS_FORMAT, Cell, Compared, Results
from neuralviz.evaluation.tables import read_data
from neuralviz.headlines.evaluation import describe_verdict
from neuralviz.plots.report import report_html
from neuralviz.reading.source import Source

EVIL = "<b>“x”</b> \\ 😀"


def read(content: str) -> DataSet:
    return read_data(Source("own.csv", content.encode()))


def every_kind() -> list[DataSet]:
    n = range(12)
    return [
        read("a,b,score\n" + "".join(f"dog {i},cat {i % 5},{i % 6}\n" for i in n)),
        read("text,group\n" + "".join(f"{EVIL} {i},{i // 3}\n" for i in n)),
        read("text,group,role\n" + "".join(f"x {i},{i // 3},{'anchor' * (i % 3 == 0)}\n"
             for i in n)),
        read("text,label\n" + "".join(f"y {i},{i % 2}\n" for i in n)),
        read("original,generated,varies,value,fixed1,fixed2\n"
             + "".join(f"o {i % 3},g {i},form,0.{i},{i % 2},0.5\n" for i in n)),
    ]  # fmt: skip


def filled(data: DataSet) -> Results:
    """Of three methods: one measured, one whose vectors are all alike, one that failed."""
    rows = method_rows(["mean", "cls", "neural"], {"blueprints": "(1,1)", "mean.layer": "all"})
    settings = MeasureSettings(resamples=200, k=3)
    results = Results(EvaluationPlan((data,), rows, settings))
    vectors = np.random.default_rng(0).normal(size=(len(data.texts), 5))
    alike = np.ones_like(vectors)
    results = results.having(Cell(0, 0, measure(data, vectors, settings), n_rose=2, dim=5))
    results = results.having(Cell(0, 1, measure(data, alike, settings), dim=5))
    results = results.having(Cell(0, 2, None, error="No <b>model</b>."))
    found, failed = overlaps(data, [vectors, alike], settings)
    return results.having(Compared(0, (0, 1), found, {**failed, "pairs": "too many"}, 1))


@pytest.mark.parametrize("data", every_kind(), ids=lambda data: data.kind)
def test_results_read_again_are_the_same(data: DataSet) -> None:
    results = filled(data)
    again = RESULTS_FORMAT.unpack(RESULTS_FORMAT.pack(results))
    assert RESULTS_FORMAT.pack(again) == RESULTS_FORMAT.pack(results)
    assert again.plan == results.plan  # by cache key
    assert again.csv() == results.csv()
    assert describe_verdict(again, 0) == describe_verdict(results, 0)
    assert again.begun == results.begun


def test_a_report_can_be_made_of_what_was_read() -> None:
    results = filled(every_kind()[0])
    again = RESULTS_FORMAT.unpack(RESULTS_FORMAT.pack(results))
    assert np.isnan(again.measured(0, 1).correlations.spearman)
    assert again.as_record() == results.as_record()
    assert "No &lt;b&gt;model&lt;/b&gt;." in report_html(again)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 99},
        {"record": ["Popen", {"args": "ls"}]},
        {"record": ["Results", {"code": 1}]},
        {"record": ["list"]},
        {"record": ["ndarray", "no such array"]},
    ],
)
def test_a_file_that_was_changed_is_refused(changes: dict[str, Any]) -> None:
    metadata, arrays = read_npz(RESULTS_FORMAT.pack(filled(every_kind()[3])))
    with pytest.raises(ValueError, match=r"file of results|unpack"):
        RESULTS_FORMAT.unpack(npz_bytes(metadata | changes, arrays))
