"""What came of runs: results found by their task, and how runs ended, though the server did."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from huggingface_hub import constants

from neuralviz import files
from neuralviz.embedders.specs import embedder_spec
from neuralviz.errors import NeuralvizError, ShouldStop, Stopped, TextError
from neuralviz.evaluation import EvaluationPlan, Results, method_rows
from neuralviz.evaluation.data import DataSet, labelled_data, read_data
from neuralviz.evaluation.measures import measure, overlaps
from neuralviz.evaluation.results import RESULTS_FORMAT, Cell, Compared, MeasureSettings
from neuralviz.files import COMMON_VIEW, corpus_view, find_result, keep_result, npz_bytes, read_npz
from neuralviz.headlines.evaluation import describe_verdict
from neuralviz.jobs import RunQueue
from neuralviz.jobs import queue as run_results
from neuralviz.jobs.comparing import Compare, Step
from neuralviz.jobs.evaluating import Evaluate
from neuralviz.jobs.queue import find_status, keep_run, reopen_run
from neuralviz.jobs.task import KeptTask, Progress, Run
from neuralviz.models import LanguageModel
from neuralviz.models.shared import ModelRef
from neuralviz.plots.report import report_html
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from tests.support.tasks import submit
from tests.support.waiting import run_python

ROOT = Path(__file__).parents[2]
VIEW = "AAAAAAAAAAAA"
SECRET = "a text that nobody else may see"
_may_end = threading.Event()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    _may_end.clear()
    yield tmp_path
    _may_end.set()


@dataclass(frozen=True)
class Count(KeptTask[int, int]):
    """Counts to a number; ends as it is told to."""

    until: int
    ends: str = "done"
    text: str = SECRET

    def start(self) -> int:
        return 0

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        yield from range(1, self.until + 1)
        if self.ends == "stopped":
            raise Stopped
        if self.ends == "failed":
            raise TextError(self.text)
        while self.ends == "waits" and not _may_end.wait(0.01):
            if should_stop():
                raise Stopped

    def fold(self, result: int, events: Sequence[int]) -> int:
        return events[-1]

    def cache_key(self) -> str:
        return f"{self.until} {self.ends} {self.text}"

    def pack(self, result: int) -> bytes:
        return str(result).encode()

    def unpack(self, content: bytes) -> int:
        return int(content)


def carry_out(task: Any, **options: str) -> Run[Any]:
    """A run that is over, with all that is done at its end."""
    queue = RunQueue()
    run = submit(queue, task, **options)
    assert queue.close(grace=10)
    return run


@pytest.mark.parametrize("ends", ["done", "stopped"])
def test_a_result_comes_back_with_how_and_when_it_ended(ends: str) -> None:
    done = carry_out(Count(7, ends), view=VIEW)
    again = reopen_run(Count(7, ends), VIEW)
    assert (again.result, again.status, again.is_over) == (7, ends, True)
    assert again.is_reopened
    assert not done.is_reopened
    assert again.finished == done.finished
    assert again.seconds == pytest.approx(done.seconds)
    assert reopen_run(Count(8, ends), VIEW) is None
    assert reopen_run(Count(7, ends), "BBBBBBBBBBBB") is None
    carry_out(Count(7, "failed"), view=VIEW)
    assert reopen_run(Count(7, "failed"), VIEW) is None


def test_a_run_that_was_stopped_early_comes_back_with_as_much_as_it_had(monkeypatch) -> None:
    monkeypatch.setattr(Count, "progress", lambda self, result: Progress(0, self.until))
    for until in (0, 1):  # events, of which none is a step
        stopped = carry_out(Count(until, "stopped"), view=VIEW)
        again = reopen_run(Count(until, "stopped"), VIEW)
        assert stopped.has_nothing == again.has_nothing == (not until)


def test_what_everybody_meets_is_whole() -> None:
    specs = tuple(embedder_spec(name) for name in ("mean", "neural"))
    task = Compare(specs, ("a", "b"), ())
    good = Step(0, np.arange(2), np.eye(2, dtype=np.float32), np.zeros(2, bool))
    failed = Step(1, error="Too little memory.")
    for status, steps, is_whole in (
        ("stopped", [good], False),
        ("done", [good, failed], False),
        ("done", [good], True),
    ):
        over = Run.from_result(task, task.fold(task.start(), steps), status=status, finished=1e9)
        for view, is_kept in ((COMMON_VIEW, is_whole), (VIEW, True)):
            over.view = view
            keep_run(over)
            assert (reopen_run(task, view) is not None) == is_kept


def test_what_cannot_be_read_gives_nothing(home: Path) -> None:
    carry_out(Count(7), view=VIEW)
    (path,) = (home / "results").iterdir()
    for content in (b"", b"{}", b"{}\nseven", b'{"status": "done", "finished": 1}\n7', b"\x80\n7"):
        path.write_bytes(content)
        assert reopen_run(Count(7), VIEW) is None


def test_what_cannot_be_written_or_has_no_place_in_a_file_is_no_harm(home: Path, caplog) -> None:
    task = Compare((embedder_spec("mean"),), ("a",), ())
    keep_run(Run.from_result(task, (SimpleNamespace(error=""),), finished=1e9, view=VIEW))
    assert caplog.messages == [
        "A result could not be kept: SimpleNamespace cannot be kept in a file of a comparison"
    ]
    assert reopen_run(task, VIEW) is None
    (home / "results").write_text("no folder")
    assert carry_out(Count(7), view=VIEW, work="some work").result == 7


@pytest.mark.parametrize("view", ["", "../secret", "A" * 40, "A.B", "A\n"])
def test_no_id_leads_anywhere_else(view: str, home: Path) -> None:
    with pytest.raises(ValueError, match="not a valid view ID"):
        keep_result(view, "key", b"content")
    assert find_result(view, "key") is None
    assert not (home / "results").exists()


def test_results_have_so_much_room_and_so_much_time(home: Path, monkeypatch) -> None:
    def kept() -> set[bytes]:
        return {path.read_bytes() for path in (home / "results").iterdir()}

    def age(content: bytes) -> None:
        paths = (home / "results").iterdir()
        os.utime(next(path for path in paths if path.read_bytes() == content), (1e9, 1e9))

    for name in ("unopened", "opened"):
        keep_result(VIEW, name, name.encode())
    age(b"opened")
    assert find_result(VIEW, "opened") == b"opened"  # its time begins anew
    age(b"unopened")
    keep_result(VIEW, "new", b"new")
    assert kept() == {b"opened", b"new"}
    monkeypatch.setattr(files, "KEPT_BYTES", 10)
    keep_result(VIEW, "last", b"last one")
    assert kept() == {b"last one"}


def test_arrays_are_never_unpickled_and_a_damaged_file_is_a_value_error() -> None:
    metadata, arrays = read_npz(npz_bytes({"a": [1, "b"]}, {"x": np.eye(2)}))
    assert metadata == {"a": [1, "b"]}
    assert arrays["x"].tolist() == np.eye(2).tolist()
    foul = npz_bytes({}, {"x": np.array([{}], dtype=object)})
    for content in (foul, b"", b"PK", foul[:100]):
        with pytest.raises(ValueError, match=r"."):
            read_npz(content)
    content = npz_bytes({"a": 1}, {"x": np.arange(100) * 1.1})
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        with suppress(ValueError):
            read_npz(bytes(damaged))


def test_a_comparison_comes_back_as_it_was() -> None:
    specs = tuple(embedder_spec(name) for name in ("mean", "neural", "sbert-wk"))
    task = Compare(specs, ("a", "b", "c"), ())
    rose = np.array([True, False])
    steps = [
        Step(0, np.arange(3), np.eye(3, 4, dtype=np.float32), np.zeros(3, bool)),
        Step(1, np.array([0, 2]), np.ones((2, 5), np.float32), rose, "Lost."),
        Step(2, error="Too little memory."),
    ]
    done = task.fold(task.start(), steps)
    again = task.unpack(task.pack(done))
    assert [embedded.unread for embedded in done] == ["", "Lost.", ""]
    for before, after in zip(done, again, strict=True):
        for name in ("method", "texts", "unread", "error"):
            assert getattr(after, name) == getattr(before, name)
        np.testing.assert_array_equal(after.loss_rose, before.loss_rose)
        np.testing.assert_array_equal(after.vectors, before.vectors)
    others = [replace(task, texts=("a", "b")), replace(task, specs=specs[:2])]
    assert len({other.cache_key() for other in (task, *others)}) == 3


def test_another_revision_of_a_hub_model_has_no_kept_results(home: Path, monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    ref = home / "hub" / "models--some--model" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    model = ModelRef.from_id("some/model")
    task = Compare((embedder_spec("mean", {}, "some/model"),), ("a",), (model,))
    before = task.cache_key()
    ref.write_text("1" * 40)
    keep_run(Run.from_result(task, task.start(), view=VIEW, finished=1e9))
    assert reopen_run(task, VIEW) is not None
    assert task.cache_key() != before
    ref.write_text("2" * 40)
    assert reopen_run(task, VIEW) is None
    assert ModelRef.from_id("some/model") == model  # for runs of this session it is the same
    for model_id in ("../..", "a/b/c", ""):
        assert ModelRef.from_id(model_id).identity()["commit"] == ""


def test_other_weights_or_versions_of_what_computes_have_no_kept_results(
    home: Path, bundled: LanguageModel, monkeypatch
) -> None:
    task = Compare((embedder_spec("neural"),), ("a",), (ModelRef.from_id("bundled"),))
    assert bundled.fingerprint in task.cache_key()
    keep_run(Run.from_result(task, task.start(), view=VIEW, finished=1e9))
    assert reopen_run(task, VIEW) is not None
    with monkeypatch.context() as other:
        other.setattr(run_results, "_versions", lambda: {"torch": "0.0.1"})
        assert reopen_run(task, VIEW) is None
    weights = home / "of_another_version.safetensors"
    weights.write_bytes(b"other weights")
    monkeypatch.setattr("neuralviz.models.bundled.WEIGHTS", weights)
    assert reopen_run(task, VIEW) is None


def test_what_came_of_a_deleted_corpus_is_not_kept(home: Path) -> None:
    store = CorpusStore()
    corpus = store.add("some", ReadTexts(("one", "two")))
    over = Run.from_result(Count(7), 7, view=corpus_view(corpus.id), finished=1e9)
    keep_run(over)
    assert reopen_run(Count(7), corpus_view(corpus.id)) is not None
    store.delete(corpus)
    keep_run(over)
    assert not list((home / "results").iterdir())


def test_a_deleted_corpus_is_not_evaluated() -> None:
    corpus = CorpusStore().add("some", ReadTexts(("one", "two", "three", "four")))
    data = labelled_data("some", ["one", "two", "three", "four"], ["a", "a", "b", "b"])
    plan = EvaluationPlan((data,), method_rows(["mean"], {}))
    task = Evaluate.for_current_models(plan, corpus=corpus.id)
    CorpusStore().delete(corpus)
    with pytest.raises(NeuralvizError, match="This corpus was deleted in the meantime"):
        next(task.events(lambda: False))
    assert CorpusStore().vectors.embedders() == ()


@pytest.mark.parametrize("status", ["done", "stopped", "failed"])
def test_how_a_run_ended_is_known_by_its_id_and_its_work(status: str, home: Path) -> None:
    queue = RunQueue()
    run = submit(queue, Count(2, status), work=SECRET)
    queue.close(grace=10)
    assert find_status(run.id, SECRET) == status
    assert find_status(run.id, "another text") is None
    for path in home.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


SERVER = """
import time
from neuralviz.jobs import RunQueue
from tests.support.tasks import submit
from tests.unit.test_results import VIEW, Count

def begin(number, ends):
    task = Count(number, ends)
    return submit(queue, task, view=VIEW, work=task.cache_key())

queue = RunQueue(max_running=4)
"""
TEN_RUNS = """
runs = [begin(number, "done") for number in range(4)]
while queue.n_unfinished():
    time.sleep(0.01)
runs += [begin(number, "waits") for number in range(4, 14)]
print(*(run.id for run in runs), flush=True)
time.sleep(60)
"""


def test_a_server_that_is_killed_with_ten_runs_loses_only_those() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER + TEN_RUNS], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as server:
        ids = server.stdout.readline().split()
        server.kill()
    assert len(ids) == 14
    for number, run_id in enumerate(ids):
        task = Count(number, "done" if number < 4 else "waits")
        assert (reopen_run(task, VIEW) is not None) == (number < 4)
        assert find_status(run_id, task.cache_key()) == ("done" if number < 4 else "queued")


def test_a_full_disk_hinders_no_run() -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        f"{SERVER}"
        'run = begin(3, "done")\n'
        "print(run.wait(10), run.status, run.result, flush=True)\n"
        "queue.close()\n"
    )
    done = run_python(program)
    assert done.stdout == "True done 3\n"
    assert done.stderr.count("Runs are not noted") == 1
    assert "Traceback" not in done.stderr


# --- results of an evaluation as a file ----------------------------------------------------------

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
