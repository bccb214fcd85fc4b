"""Runs and their queue: order, stopping, folding, time left, vanished owners, failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders.specs import embedder_spec, list_models
from neuralviz.errors import NeuralvizError, ShouldStop, Stopped
from neuralviz.evaluation.data import scored_data
from neuralviz.evaluation.results import EvaluationPlan
from neuralviz.evaluation.rows import Row
from neuralviz.jobs import Progress, Run, RunQueue, Task
from neuralviz.jobs import queue as queues
from neuralviz.jobs import task as runs
from neuralviz.jobs.comparing import Compare
from neuralviz.jobs.evaluating import Evaluate
from neuralviz.jobs.mapping import MakeMaps, MapChoice, PlaceSentence, stream_events
from neuralviz.jobs.queue import NOT_BEGUN
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.ui.runs import describe_time_left
from tests.support.tasks import Fails, submit


@dataclass(frozen=True)
class Listed(Task[object, tuple[object, ...]]):
    """A task whose result lists its events."""

    name: str = "listed"

    def start(self) -> tuple[object, ...]:
        return ()

    def fold(self, result: tuple[object, ...], events: Sequence[object]) -> tuple[object, ...]:
        return (*result, *events)

    def events(self, should_stop: ShouldStop) -> Generator[object, None, None]:
        yield self.name


@dataclass(frozen=True)
class Gate(Listed):
    """Says when it has begun and goes on when it is let."""

    begun: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)
    is_deaf: bool = False  # never asks whether it should stop

    def events(self, should_stop: ShouldStop) -> Generator[object, None, None]:
        yield "begun"
        self.begun.set()
        while not self.open.wait(0.01):
            if should_stop() and not self.is_deaf:
                raise Stopped
        yield "ended"
        if self.is_deaf:
            yield "never reached"


@dataclass(frozen=True)
class Counting(Task[int, int]):
    """Counts up to a number; its result is the last one."""

    to: int

    def start(self) -> int:
        return 0

    def fold(self, result: int, events: Sequence[int]) -> int:
        return events[-1]

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        yield from range(1, self.to + 1)

    def progress(self, result: int) -> Progress:
        return Progress(result, self.to, "numbers", f"{result} of {self.to} numbers")


def test_first_come_first_served() -> None:
    queue, gate = RunQueue(max_running=1), Gate("first")
    first = submit(queue, gate)
    later = [submit(queue, Listed(str(i))) for i in range(5)]
    assert gate.begun.wait(5)
    assert [queue.place_in_queue(run) for run in [first, *later]] == [0, 1, 2, 3, 4, 5]
    assert (first.status, later[0].status) == ("running", "queued")
    gate.open.set()
    assert all(run.wait(5) for run in later)
    assert sorted(later, key=lambda run: run.started) == later
    assert {run.status for run in [first, *later]} == {"done"}
    assert first.started <= first.finished
    assert len({run.id for run in [first, *later]}) == 6


def test_a_waiting_run_that_is_stopped_never_begins() -> None:
    queue, gate = RunQueue(max_running=1), Gate("first")
    submit(queue, gate)
    stopped = submit(queue, Listed("stopped"))
    last = submit(queue, Listed("last"))
    stopped.stop()
    assert (stopped.status, stopped.is_over) == ("stopped", True)
    assert queue.place_in_queue(last) == 1
    gate.open.set()
    assert last.wait(5)
    assert (stopped.result, stopped.started) == ((), None)
    assert stopped.has_nothing


def test_a_short_task_does_not_wait_for_long_ones() -> None:
    class Short(Gate):
        lane = "short"

    queue, long, short = RunQueue(max_running=1, max_short=1), Gate("long"), Short("short")
    waiting = [submit(queue, long), submit(queue, Listed("long, too"))]
    quick = [submit(queue, short), submit(queue, Short("short, too"))]
    assert long.begun.wait(5)
    assert short.begun.wait(5)
    assert [queue.place_in_queue(run) for run in (*waiting, *quick)] == [0, 1, 0, 1]
    short.open.set()
    assert quick[0].wait(5)
    assert not waiting[0].is_over
    quick[1].stop()
    long.open.set()
    assert waiting[1].wait(5)


@pytest.mark.parametrize("asks", [True, False])
def test_a_run_that_is_stopped_keeps_its_result_and_ends_with_its_next_event(asks: bool) -> None:
    gate = Gate(is_deaf=not asks)
    run = submit(RunQueue(), gate)
    assert gate.begun.wait(5)
    run.stop()
    gate.open.set()
    assert run.wait(5)
    assert (run.status, run.result[0], run.error) == ("stopped", "begun", None)
    assert len(run.result) <= 2
    assert not run.has_nothing


@pytest.fixture
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(runs, "GONE_AFTER", 0.05)
    monkeypatch.setattr(runs, "LOOK_EVERY", 0.01)


@pytest.mark.usefixtures("impatient")
def test_a_waiting_run_leaves_the_queue_with_its_owner() -> None:
    queue, gate = RunQueue(max_running=1), Gate("first")
    submit(queue, gate)
    orphan, last = submit(queue, Listed("orphan"), lambda: False), submit(queue, Listed("last"))
    assert queue.place_in_queue(last) == 2
    time.sleep(0.1)
    assert queue.place_in_queue(last) == 1
    assert orphan.status == "stopped"
    gate.open.set()


@pytest.mark.usefixtures("impatient")
def test_a_run_goes_on_while_one_of_its_watchers_is_there() -> None:
    present = threading.Event()
    run = Run(Listed(), lambda: False)
    run.watch(present.is_set)
    assert not run.should_stop()  # a reconnect takes a moment
    present.set()
    time.sleep(0.1)
    assert not run.should_stop()
    present.clear()
    time.sleep(0.02)
    assert not run.is_abandoned()
    time.sleep(0.1)
    assert run.should_stop()


def test_failures_become_sentences(caplog) -> None:
    def fail(kind: str, sentence: str) -> Run:
        run = submit(RunQueue(), Fails(kind, sentence))
        assert run.wait(5)
        assert (run.status, run.result) == ("failed", 1)
        return run

    assert fail("text", "The text is empty.").error == "The text is empty."
    assert not caplog.records
    assert fail("other", "odd").error == "Unexpected error: ZeroDivisionError: odd."
    assert "Traceback" in caplog.text


def test_events_that_cannot_be_folded_fail_the_run_and_not_its_reader() -> None:
    class Unfoldable(Counting):
        def fold(self, result: int, events: Sequence[int]) -> int:
            if max(events) > 2:
                raise ValueError("more than two")
            return events[-1]

    run = Run(Unfoldable(5))
    run.carry_out()
    assert (run.status, run.error) == ("failed", "Unexpected error: ValueError: more than two.")
    assert run.result <= 2


@pytest.mark.parametrize("method", ["mean", "neural+mean"])
def test_a_folder_model_whose_files_have_changed_is_other_work(method: str, tmp_path: Path) -> None:
    spec = embedder_spec(method, model_id=str(tmp_path))
    data = scored_data("pairs", ["a", "b", "c"], ["d", "e", "f"], np.array([1.0, 3.0, 5.0]))
    plan = EvaluationPlan((data,), (Row("row", spec, "row"),))
    choice = MapChoice(spec, ProjectionSettings())
    (tmp_path / "model.safetensors").write_bytes(b"old")

    def tasks() -> list[Task]:
        return [
            Compare.for_current_models((spec,), ("a", "b")),
            MakeMaps.for_current_models("corpus", (choice,)),
            PlaceSentence("corpus", "map", spec, "a", list_models((spec,))),
            Evaluate.for_current_models(plan),
        ]

    before = tasks()
    assert before == tasks()
    (tmp_path / "model.safetensors").write_bytes(b"newer")
    assert not [old for old, new in zip(before, tasks(), strict=True) if old == new]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1e9 - 7 * self.now  # a clock that is put back again and again


def test_the_time_left_is_measured_since_the_first_event(monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr(runs, "time", clock)
    run = Run(Counting(100))
    assert run.begin()
    assert run.seconds_left is None
    clock.now += 50  # a model is loaded
    run.add(20)  # found in a cache
    assert run.seconds_left is None
    clock.now += 8
    run.add(25)
    assert run.seconds_left is None  # one event says little
    run.add(30)
    run.add(40)
    assert run.seconds_left == pytest.approx(24)  # 60 more, 20 of which took 8 s
    clock.now += 2
    assert run.seconds_left == pytest.approx(22)
    clock.now += 102  # an event is overdue
    assert run.seconds_left > 300
    assert run.seconds == pytest.approx(162)
    run.end()
    clock.now += 1000
    assert (run.seconds_left, run.seconds) == (0, pytest.approx(162))


@dataclass(frozen=True)
class InParts(Counting):
    """A quick part of half of the work, and a slow one."""

    def progress(self, result: int) -> Progress:
        return Progress(result, self.to, is_last=result >= self.to // 2)


def test_the_time_left_waits_for_the_last_part(monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr(runs, "time", clock)
    run = Run(InParts(100))
    run.begin()
    for number in range(1, 54):
        assert describe_time_left(run) == ""  # else “about 3 s”, before twenty minutes
        run.add(number)
        clock.now += 0.06 if number < 49 else 24
    assert run.seconds_left == pytest.approx(24 * 46)
    assert describe_time_left(run) == ", about 18 min left"


def test_work_that_calls_back_comes_as_events_and_ends_with_their_stream() -> None:
    ended = threading.Event()

    def work(on_progress, should_stop) -> str:
        on_progress("begun")
        while not should_stop():
            time.sleep(0.01)
        ended.set()
        raise NeuralvizError("No.")

    events = stream_events(work, lambda: False)
    assert next(events) == "begun"
    events.close()
    assert ended.is_set()
    events = stream_events(work, lambda: True)
    assert next(events) == "begun"
    with pytest.raises(NeuralvizError, match="No"):
        next(events)


def test_closing_ends_what_runs_and_what_waits() -> None:
    queue, gate = RunQueue(max_running=1), Gate()
    running = submit(queue, gate)
    waiting = submit(queue, Listed("waiting"))
    assert gate.begun.wait(5)
    assert queue.close()
    late = submit(queue, Listed("late"))
    assert [run.status for run in (running, waiting, late)] == ["stopped", "failed", "failed"]
    assert waiting.error == late.error == NOT_BEGUN
    assert waiting.result == late.result == ()


def test_one_owner_has_so_many_runs() -> None:
    queue, gate = RunQueue(max_of_owner=2), Gate()
    ended = []
    first = submit(queue, gate, owner="ann")
    second = submit(queue, Listed("second"), owner="ann")
    third = submit(queue, Listed("third"), at_end=ended.append, owner="ann")
    other = submit(queue, Listed("other"), owner="ben")
    assert (third.status, third.may_succeed_again) == ("failed", True)
    assert third.error.startswith("You already have 2 unfinished runs")
    assert ended == [third]
    gate.open.set()
    assert all(run.wait(5) for run in (first, second, other))
    again = submit(queue, Listed("third"), owner="ann")
    assert again.wait(5)
    assert [run.status for run in (first, second, other, again)] == ["done"] * 4


def test_nothing_new_begins_without_memory(monkeypatch) -> None:
    monkeypatch.setattr(queues, "spare_memory", lambda: 499 * 2**20)
    refused = submit(RunQueue(spare_mb=500), Listed("large"))
    taken = submit(RunQueue(spare_mb=499), Listed("large"))
    assert refused.status == "failed"
    assert refused.error.endswith("too little memory. Try again in a minute.")
    assert taken.wait(5)
    assert taken.status == "done"


def test_whoever_listens_hears_of_every_end_though_another_fails(caplog) -> None:
    queue, gate = RunQueue(max_of_owner=2), Gate()
    heard: list[str] = []
    queue.at_every_end(lambda _: 1 / 0)
    queue.at_every_end(lambda run: heard.append(run.status))
    running = submit(queue, gate, owner="ann")
    waiting = submit(queue, Listed("waiting"), owner="ann")
    submit(queue, Listed("too many"), owner="ann")
    assert gate.begun.wait(5)
    assert queue.n_by_lane() == {"long": (1, 1), "short": (0, 0), "shared": (0, 0)}
    waiting.stop()
    gate.open.set()
    assert running.wait(5)
    assert queue.close()
    assert heard == ["failed", "stopped", "done"]
    assert running.seconds_waited < 1
    assert {*caplog.messages} >= {"A listener to a run's end failed: Listed."}


def test_owners_take_turns() -> None:
    queue, gate = RunQueue(max_running=1), Gate()
    first = submit(queue, gate, owner="ann")
    assert gate.begun.wait(5)
    names = ("ann", "ann", "ann", "ben", "ben", "eve")
    runs = [submit(queue, Counting(n), owner=name) for n, name in enumerate(names)]
    # ann has one under way; ben and eve have had none, and ben came first
    assert [queue.place_in_queue(run) for run in runs] == [4, 5, 6, 1, 3, 2]
    gate.open.set()
    assert all(run.wait(10) for run in (first, *runs))
    begun = sorted(runs, key=lambda run: run.started or 0)
    assert [names[runs.index(run)] for run in begun] == ["ben", "eve", "ann", "ben", "ann", "ann"]


def test_what_an_owner_looks_at_goes_before_what_they_have_left() -> None:
    queue, gate = RunQueue(), Gate()
    submit(queue, gate, owner="ann")
    tasks = [Listed("left"), Counting(1), Listed("left, too"), Counting(2)]
    runs = [submit(queue, task, owner="ann") for task in tasks]
    assert [queue.place_in_queue(run) for run in runs] == [3, 1, 4, 2]
    gate.open.set()
    assert all(run.wait(10) for run in runs)


def test_the_next_run_waits_as_long_as_one_under_way_still_takes(monkeypatch) -> None:
    queue, gate = RunQueue(max_running=1), Gate()
    submit(queue, gate)
    first, second = (submit(queue, Listed(name)) for name in ("first", "second"))
    assert queue.seconds_until_start(first) is None  # a gate does not say how far it is
    monkeypatch.setattr(Run, "seconds_left", 12.0)
    assert queue.seconds_until_start(first) == 12
    assert queue.seconds_until_start(second) is None
    gate.open.set()
    assert second.wait(5)
