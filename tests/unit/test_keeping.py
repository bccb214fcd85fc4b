"""Results that outlive the session: kept when a run ends, found by its task, bounded."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from huggingface_hub import constants

from neuralviz.arrays import npz_bytes, read_npz
from neuralviz.embedders.specs import embedder_spec
from neuralviz.errors import NeuralvizError, ShouldStop, Stopped
from neuralviz.evaluation.data import labelled_data
from neuralviz.evaluation.plan import EvaluationPlan, method_rows
from neuralviz.jobs import RunQueue, keeping
from neuralviz.jobs.comparing import Compare, Step
from neuralviz.jobs.evaluating import Evaluate
from neuralviz.jobs.keeping import KeptTask, keep_run, reopen_run
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.jobs.run import Run
from neuralviz.micro_tuning import TuningSettings
from neuralviz.micro_tuning.record import RECORD_FORMAT
from neuralviz.models import LanguageModel
from neuralviz.models.shared import ModelRef
from neuralviz.reading.texts import ReadTexts
from neuralviz.store import results
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.results import corpus_view, find_result, keep_result
from tests.support.tasks import submit

VIEW = "AAAAAAAAAAAA"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    return tmp_path


@dataclass(frozen=True)
class Count(KeptTask[int, int]):
    """Counts to a number; fails or is stopped when told to."""

    until: int
    ends: str = "done"

    def start(self) -> int:
        return 0

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        yield from range(1, self.until + 1)
        if self.ends == "stopped":
            raise Stopped
        if self.ends == "failed":
            raise NeuralvizError("No.")

    def fold(self, result: int, events: Sequence[int]) -> int:
        return events[-1]

    def cache_key(self) -> str:
        return f"{self.until} {self.ends}"

    def pack(self, result: int) -> bytes:
        return str(result).encode()

    def unpack(self, content: bytes) -> int:
        return int(content)


def run(task: Count, view: str = VIEW):
    done = submit(RunQueue(), task, lambda: True, view=view, at_end=keep_run)
    assert done.wait(10)
    until = time.monotonic() + 10  # it is kept after that
    while task.ends != "failed" and reopen_run(task, view) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    return done


@pytest.mark.parametrize("ends", ["done", "stopped"])
def test_a_result_comes_back_with_how_and_when_it_ended(ends: str) -> None:
    done = run(Count(7, ends))
    again = reopen_run(Count(7, ends), VIEW, 3)
    assert again is not None
    assert (again.result, again.status, again.number, again.is_over) == (7, ends, 3, True)
    assert again.is_reopened
    assert not done.is_reopened
    assert again.finished == done.finished
    assert again.seconds == pytest.approx(done.seconds)


def test_other_work_other_views_and_failed_runs_have_none() -> None:
    run(Count(7))
    run(Count(7, "failed"))
    for task, view in [(Count(8), VIEW), (Count(7), "BBBBBBBBBBBB"), (Count(7, "failed"), VIEW)]:
        assert reopen_run(task, view) is None


def test_what_everybody_meets_is_whole() -> None:
    specs = tuple(embedder_spec(name) for name in ("mean", "neural"))
    task = Compare(specs, ("a", "b"), ())
    good = Step(0, np.arange(2), np.eye(2, dtype=np.float32), np.zeros(2, bool))
    failed = Step(1, error="Too little memory.")
    for status, steps, shared in (
        ("done", [good], True),
        ("done", [good, failed], False),
        ("stopped", [good], False),
    ):
        result = task.fold(task.start(), steps)
        over = Run.from_result(task, result, status=status, finished=1e9)
        for in_part, is_kept in ((False, shared), (True, True)):
            over.view = view = f"{status}-{len(steps)}-{in_part}"
            keep_run(over, in_part=in_part)
            assert (reopen_run(task, view) is not None) == is_kept


def test_what_cannot_be_read_gives_nothing(home: Path) -> None:
    run(Count(7))
    (path,) = (home / "results").iterdir()
    for content in (b"", b"{}", b"{}\nseven", b'{"status": "done", "finished": 1}\n7', b"\x80\n7"):
        path.write_bytes(content)
        assert reopen_run(Count(7), VIEW) is None


def test_what_cannot_be_written_is_no_harm(home: Path) -> None:
    (home / "results").write_text("no folder")
    done = submit(RunQueue(), Count(7), lambda: True, view=VIEW, at_end=keep_run)
    assert done.wait(10)
    assert done.result == 7


def test_a_result_that_has_no_place_in_a_file_is_no_harm(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = Compare((embedder_spec("mean"),), ("a",), ())
    odd: Any = (SimpleNamespace(vectors=None),)
    over = Run.from_result(task, odd, finished=1e9, view=VIEW)
    keep_run(over)
    assert caplog.messages == [
        "A result could not be kept: SimpleNamespace cannot be kept in a file of a comparison"
    ]
    assert reopen_run(task, VIEW) is None


@pytest.mark.parametrize("view", ["", "../secret", "A" * 40, "A.B", "A\n"])
def test_no_id_leads_anywhere_else(view: str, home: Path) -> None:
    with pytest.raises(ValueError, match="not a valid view ID"):
        keep_result(view, "key", b"content")
    assert find_result(view, "key") is None
    assert not (home / "results").exists()


def test_results_of_one_view_may_be_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def write_with_another(path: Path, content: bytes) -> int:
        if content == b"one":
            keep_result(VIEW, "other", b"other")
        n_bytes = write(path, content)
        if content == b"one":
            keep_result(VIEW, "third", b"third")
        return n_bytes

    monkeypatch.setattr(Path, "write_bytes", write_with_another)
    keep_result(VIEW, "one", b"one")
    kept = [find_result(VIEW, key) for key in ("one", "other", "third")]
    assert kept == [b"one", b"other", b"third"]


def test_results_have_so_much_room_and_so_much_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> set[bytes]:
        return {path.read_bytes() for path in (home / "results").iterdir()}

    def age(content: bytes) -> None:
        (path,) = (one for one in (home / "results").iterdir() if one.read_bytes() == content)
        os.utime(path, (1e9, 1e9))

    for name in ("unopened", "opened"):
        keep_result(VIEW, name, name.encode())
    age(b"opened")
    assert find_result(VIEW, "opened") == b"opened"  # its time begins anew
    age(b"unopened")
    keep_result(VIEW, "new", b"new")
    assert kept() == {b"opened", b"new"}
    monkeypatch.setattr(results, "KEPT_BYTES", 10)
    keep_result(VIEW, "last", b"last one")
    assert kept() == {b"last one"}


def test_arrays_are_never_unpickled() -> None:
    about, arrays = read_npz(npz_bytes({"a": [1, "b"]}, {"x": np.eye(2)}))
    assert about == {"a": [1, "b"]}
    assert arrays["x"].tolist() == np.eye(2).tolist()
    foul = npz_bytes({}, {"x": np.array([{}], dtype=object)})
    for content in (foul, b"", b"PK", foul[:100]):
        with pytest.raises(ValueError, match=r"."):
            read_npz(content)


def test_a_damaged_file_of_arrays_is_a_value_error() -> None:
    content = npz_bytes({"a": 1}, {"x": np.arange(100) * 1.1})
    n_refused = 0
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        try:
            read_npz(bytes(damaged))
        except ValueError:
            n_refused += 1
    assert n_refused > len(content) / 2


def test_a_run_on_texts_is_kept_by_the_version_of_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = TuneTexts(ModelRef("any", None), ("Rain.",), TuningSettings(()))
    before = task.cache_key()
    newer = replace(RECORD_FORMAT, version=RECORD_FORMAT.version + 1)
    monkeypatch.setattr("neuralviz.jobs.micro_tuning.RECORD_FORMAT", newer)
    assert task.cache_key() != before


def test_a_comparison_comes_back_as_it_was() -> None:
    specs = tuple(embedder_spec(name) for name in ("mean", "neural", "sbert-wk"))
    task = Compare(specs, ("a", "b", "c"), ())
    done = task.fold(
        task.start(),
        [
            Step(0, np.arange(3), np.eye(3, 4, dtype=np.float32), np.zeros(3, bool)),
            Step(
                1, np.array([0, 2]), np.ones((2, 5), np.float32), np.array([True, False]), "Lost."
            ),
            Step(2, error="Too little memory."),
        ],
    )
    again = task.unpack(task.pack(done))
    assert [one.unread for one in done] == ["", "Lost.", ""]
    assert [(one.method, one.texts, one.unread, one.error) for one in again] == [
        (one.method, one.texts, one.unread, one.error) for one in done
    ]
    for one, other in zip(done, again, strict=True):
        np.testing.assert_array_equal(one.loss_rose, other.loss_rose)
        if one.vectors is None:
            assert other.vectors is None
        else:
            np.testing.assert_array_equal(one.vectors, other.vectors)
    others = [
        replace(task, texts=("a", "b")),
        replace(task, specs=specs[:2]),
        Compare.for_current_models(
            (embedder_spec("mean", {"model": "bundled"}), *specs[1:]), task.texts
        ),
    ]
    assert len({one.cache_key() for one in (task, *others)}) == 4


def test_another_revision_of_a_hub_model_has_no_kept_results(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    ref = home / "hub" / "models--some--model" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    task = Compare(
        (embedder_spec("mean", {}, "some/model"),), ("a",), (ModelRef.from_id("some/model"),)
    )
    before = task.cache_key()
    ref.write_text("1" * 40)
    keep_run(Run.from_result(task, task.start(), view=VIEW, finished=1e9))
    assert reopen_run(task, VIEW) is not None
    assert task.cache_key() != before
    ref.write_text("2" * 40)
    assert reopen_run(task, VIEW) is None
    assert (
        ModelRef.from_id("some/model") == task.models[0]
    )  # for runs of this session it is the same
    for model_id in ("../..", "a/b/c", ""):
        assert ModelRef.from_id(model_id).identity()["commit"] == ""


def test_other_weights_or_versions_of_what_computes_have_no_kept_results(
    home: Path, bundled: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Compare((embedder_spec("neural"),), ("a",), (ModelRef.from_id("bundled"),))
    assert bundled.fingerprint in task.cache_key()
    keep_run(Run.from_result(task, task.start(), view=VIEW, finished=1e9))
    assert reopen_run(task, VIEW) is not None
    with monkeypatch.context() as other:
        other.setattr(keeping, "_versions", lambda: {"torch": "0.0.1"})
        assert reopen_run(task, VIEW) is None
    weights = home / "of_another_version.safetensors"
    weights.write_bytes(b"other weights")
    monkeypatch.setattr("neuralviz.models.bundled.WEIGHTS", weights)
    assert reopen_run(task, VIEW) is None


def test_a_result_that_is_being_written_is_waited_for() -> None:
    """A link that is followed while the result of the run is written finds it."""
    is_packing = threading.Event()

    class Slow(Count):
        def pack(self, result: int) -> bytes:
            is_packing.set()
            time.sleep(0.2)
            return super().pack(result)

    submit(RunQueue(), Slow(7), lambda: True, view=VIEW, at_end=keep_run)
    assert is_packing.wait(10)
    again = reopen_run(Count(7), VIEW)
    assert again is not None
    assert again.result == 7


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
    task = Evaluate.for_current_models(
        EvaluationPlan((data,), method_rows(["mean"], {})), corpus=corpus.id
    )
    CorpusStore().delete(corpus)
    asked = submit(RunQueue(), task, lambda: True)
    assert asked.wait(10)
    assert asked.error == "This corpus was deleted in the meantime. Choose other data."
    assert CorpusStore().vectors.embedders() == ()
