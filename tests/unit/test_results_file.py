"""Results kept as a file: read again they are the same, and a file that is none is refused."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import numpy as np
import pytest

from neuralviz.errors import StoreError
from neuralviz.evaluation import results_file
from neuralviz.evaluation.data import DataSet
from neuralviz.evaluation.events import Cell, Compared
from neuralviz.evaluation.experiments import method_rows
from neuralviz.evaluation.measures import measure, overlaps
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.results_file import read_results, results_bytes
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


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    else:
        assert one == other or (one != one and other != other)


@pytest.mark.parametrize("data", every_kind(), ids=lambda data: data.kind)
def test_results_read_again_are_the_same(data: DataSet) -> None:
    results = filled(data)
    again = read_results(results_bytes(results))
    assert_same(again, results)
    assert again.plan == results.plan  # by cache key
    assert again.csv() == results.csv()
    assert describe_verdict(again, 0) == describe_verdict(results, 0)
    assert again.begun == results.begun


def test_a_report_can_be_made_of_what_was_read() -> None:
    results = filled(every_kind()[0])
    again = read_results(results_bytes(results))
    assert np.isnan(again.measured(0, 1).correlations.spearman)
    assert again.as_record() == results.as_record()
    assert "No &lt;b&gt;model&lt;/b&gt;." in report_html(again)


def changed(content: bytes, change: Any) -> bytes:
    """The same file with another description."""
    with np.load(io.BytesIO(content)) as arrays:
        about = json.loads(arrays["about"].tobytes())
        kept = {name: arrays[name] for name in arrays.files if name != "about"}
    text = json.dumps(change(about)).encode()
    file = io.BytesIO()
    np.savez(file, about=np.frombuffer(text, np.uint8), **kept)
    return file.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda about: {**about, "format": 99},
        lambda about: {"results": about["results"]},
        lambda about: {**about, "results": ["Popen", {"args": "ls"}]},
        lambda about: {**about, "results": ["array", "array-0"]},
        lambda about: {**about, "results": ["Results", {"code": 1}]},
        lambda about: {**about, "results": ["spec", '["no-such-method", "", [], []]']},
        lambda about: [],
    ],
)
def test_a_file_that_was_changed_is_refused(change: Any) -> None:
    content = results_bytes(filled(every_kind()[3]))
    with pytest.raises(StoreError):
        read_results(changed(content, change))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"{}"])
def test_what_is_no_file_of_results_is_refused(content: bytes) -> None:
    with pytest.raises(StoreError, match="Evaluate again"):
        read_results(content)


def test_pickled_objects_are_never_read() -> None:
    file = io.BytesIO()
    np.savez(file, about=np.array([{"format": 1}], dtype=object))
    with pytest.raises(StoreError):
        read_results(file.getvalue())


def test_what_is_not_foreseen_is_not_written() -> None:
    with pytest.raises(TypeError, match="object cannot be kept"):
        results_file._plain(object(), {})
