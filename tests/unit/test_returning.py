"""Runs that people come back to: met where they are, found when they are over, told when lost."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from neuralviz.errors import ShouldStop, TextError, WorkerEndedError
from neuralviz.jobs import Run, RunQueue
from neuralviz.jobs.keeping import KeptTask, make_keeper, reopen_run
from neuralviz.jobs.returning import (
    CRASHED,
    CUT_OFF,
    ELSEWHERE,
    FAILED,
    NOT_BEGUN,
    RESULT_DELETED,
    STOPPED,
    ReturningRuns,
    Watchers,
    digest_work,
)
from neuralviz.jobs.run_table import RunTable

ROOT = Path(__file__).parents[2]
SECRET = "a text that nobody else may see"
_may_end = threading.Event()


@dataclass(frozen=True)
class Wait(KeptTask[int, int]):
    """Waits for `_may_end`, or fails."""

    text: str = SECRET
    fails: bool = False
    is_cut_off: bool = False

    def start(self) -> int:
        return 0

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        yield 1
        if self.fails:
            raise TextError(f"“{self.text}” cannot be read.")
        if self.is_cut_off:
            raise WorkerEndedError
        while not _may_end.wait(0.01):
            if should_stop():
                return
        yield 2

    def fold(self, result: int, events: Any) -> int:
        return result + sum(events)

    def cache_key(self) -> str:
        return json.dumps([self.text, self.fails])

    def pack(self, result: int) -> bytes:
        return str(result).encode()

    def unpack(self, content: bytes) -> int:
        return int(content)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    _may_end.clear()
    yield tmp_path
    _may_end.set()


@pytest.fixture
def queue() -> Iterator[RunQueue]:
    queue = RunQueue()
    yield queue
    queue.close()


def work(task: Wait) -> str:
    return digest_work(task.cache_key())


def is_any(task: object) -> bool:
    return isinstance(task, Wait)


def begun(returning: ReturningRuns, queue: RunQueue, task: Wait) -> tuple[str, Run[int]]:
    def submit(watchers: Watchers, at_end: Callable[[Run[int]], None]) -> Run[int]:
        return queue.submit(task, watchers.any_is_here, 1, at_end, "me", 3600.0)

    return returning.begin(work(task), submit, make_keeper("aView"))


def over(returning: ReturningRuns, run_id: str, task: Wait) -> str | None:
    return returning.why_no_result(run_id, work(task))


def ended(run: Run[int], returning: ReturningRuns, run_id: str) -> None:
    assert run.wait(10)
    until = time.monotonic() + 10  # what is called at the end comes a moment later
    while returning.join(run_id, is_any, lambda: True) is not None:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_run_under_way_is_met_where_it_is(queue: RunQueue) -> None:
    returning = ReturningRuns(RunTable())
    run_id, run = begun(returning, queue, Wait())
    assert returning.join(run_id, is_any, lambda: True) is run
    assert returning.join(run_id, lambda task: task == Wait("another text"), lambda: True) is None
    assert returning.join("another id", is_any, lambda: True) is None
    assert returning.join_last(is_any, lambda: True) is run
    assert returning.join_last(lambda task: task == Wait("another text"), lambda: True) is None
    _may_end.set()
    ended(run, returning, run_id)
    assert returning.join_last(is_any, lambda: True) is None
    assert over(returning, run_id, Wait()) == RESULT_DELETED  # had its result not been kept
    assert over(returning, run_id, Wait("another text")) is None


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("stopped", STOPPED),
        ("failed", FAILED),
        ("cut off", CUT_OFF),
        ("stopped before it began", STOPPED),
        ("the server ended before it began", NOT_BEGUN),
    ],
)
def test_how_a_run_ended_is_told(queue: RunQueue, how: str, said: str) -> None:
    returning = ReturningRuns(RunTable())
    if "before it began" in how:
        begun(returning, queue, Wait("first"))
    task = Wait(fails=how == "failed", is_cut_off=how == "cut off")
    run_id, run = begun(returning, queue, task)
    if said == STOPPED:
        run.stop()
    elif said == NOT_BEGUN:
        queue.close(seconds=0)
    ended(run, returning, run_id)
    assert over(ReturningRuns(RunTable()), run_id, task) == said


def test_a_server_that_is_there_and_one_that_ended_are_told_apart(queue: RunQueue) -> None:
    first, second = ReturningRuns(RunTable()), ReturningRuns(RunTable())
    run_id, _ = begun(first, queue, Wait())
    assert over(second, run_id, Wait()) == ELSEWHERE
    first.close()
    assert over(second, run_id, Wait()) == CRASHED
    assert over(first, run_id, Wait()) == CRASHED


def test_a_killed_server_leaves_runs_that_say_so(folder: Path) -> None:
    program = (
        "import sys, time\n"
        "from neuralviz.jobs.run_table import RunTable\n"
        "table = RunTable()\n"
        "table.add('an-id', 'some work')\n"
        "print('added', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"added\n"
        table = RunTable()
        known = table.find("an-id")
        assert known is not None
        assert known.status == "elsewhere"
        server.send_signal(signal.SIGKILL)
        server.wait()
    known = table.find("an-id")
    assert known is not None
    assert known.status == "crashed"


TEN_RUNS = """
import sys, threading, time
from neuralviz.jobs import RunQueue
from neuralviz.jobs.keeping import make_keeper
from neuralviz.jobs.returning import ReturningRuns
from neuralviz.jobs.run_table import RunTable
from tests.unit.test_returning import Wait, _may_end, is_any, work

returning, queue = ReturningRuns(RunTable()), RunQueue(max_running=4)

def begin(task):
    return returning.begin(
        work(task), lambda watchers, at_end: queue.submit(task, lambda: True, 1, at_end),
        make_keeper("aView"),
    )

begun = [begin(Wait(f"text {n}")) for n in range(4)]
_may_end.set()
for run_id, run in begun:
    run.wait(10)
    while returning.join(run_id, is_any, lambda: True) is not None:
        time.sleep(0.01)
_may_end.clear()
begun += [begin(Wait(f"text {n}")) for n in range(4, 14)]
print(*(run_id for run_id, _ in begun), flush=True)
time.sleep(60)
"""


def test_a_server_that_is_killed_with_ten_runs_loses_only_those(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TEN_RUNS], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as server:
        assert server.stdout is not None
        ids = server.stdout.readline().split()
        server.send_signal(signal.SIGKILL)
    returning = ReturningRuns(RunTable())
    assert len(ids) == 14
    for number, run_id in enumerate(ids):
        task = Wait(f"text {number}")
        kept = reopen_run(task, "aView", 1)
        if number < 4:
            assert kept is not None
            assert (kept.status, kept.result) == ("done", 3)
        else:
            assert kept is None
            assert over(returning, run_id, task) == CRASHED
    returning.close()


def test_a_clock_that_jumps_changes_nothing(
    queue: RunQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ReturningRuns(RunTable()), ReturningRuns(RunTable())
    now = time.time()
    run_id, run = begun(first, queue, Wait())
    monkeypatch.setattr(time, "time", lambda: now - 3 * 86_400)
    assert over(second, run_id, Wait()) == ELSEWHERE
    monkeypatch.setattr(time, "time", lambda: now + 3 * 86_400)
    assert over(second, run_id, Wait()) == ELSEWHERE
    _may_end.set()
    ended(run, first, run_id)
    assert 0 < run.seconds < 10
    assert over(second, run_id, Wait()) == RESULT_DELETED  # its result is found by its task


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are Unix's")
def test_a_full_disk_hinders_no_run(folder: Path) -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        f"{TEN_RUNS.split('begun = ')[0]}"
        "run_id, run = begin(Wait())\n"
        "_may_end.set()\n"
        "print(run.wait(10), run.status, run.result, flush=True)\n"
        "queue.close()\n"
        "returning.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True done 3\n"
    assert done.stderr.count("Runs are not noted") == 1
    assert "Traceback" not in done.stderr


def test_no_text_is_in_the_table(queue: RunQueue, folder: Path) -> None:
    returning = ReturningRuns(RunTable())
    for task in (Wait(), Wait(fails=True)):
        run_id, run = begun(returning, queue, task)
        _may_end.set()
        ended(run, returning, run_id)
    for path in folder.glob("runs.sqlite*"):
        assert SECRET.encode() not in path.read_bytes()


def test_runs_of_long_ago_are_forgotten_whatever_the_clock_says() -> None:
    table = RunTable()
    table.add("an-id", "some work")
    assert RunTable(days=1).find("an-id") is not None
    time.sleep(0.01)
    assert RunTable(days=0).find("an-id") is None


@pytest.mark.parametrize("spoilt", ["a folder in its place", "no table", "read-only"])
def test_a_table_that_cannot_be_used_hinders_nobody(
    spoilt: str, folder: Path, queue: RunQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spoilt == "a folder in its place":
        (folder / "runs.sqlite").mkdir()
    elif spoilt == "no table":
        (folder / "runs.sqlite").write_bytes(b"this is no table" * 100)
    else:

        def refuse(*_: object, **__: object) -> sqlite3.Connection:
            raise sqlite3.OperationalError("attempt to write a readonly database")

        monkeypatch.setattr(sqlite3, "connect", refuse)
    returning = ReturningRuns(RunTable())
    run_id, run = begun(returning, queue, Wait())
    assert returning.join(run_id, is_any, lambda: True) is run
    _may_end.set()
    assert run.wait(10)
    assert (run.status, run.result) == ("done", 3)
    assert returning.why_no_result("an-id", work(Wait())) is None
    returning.close()


def test_a_run_is_somebodys_as_long_as_one_of_its_watchers_is_there() -> None:
    watchers, here = Watchers(), {"first": True, "second": True}
    assert not watchers.any_is_here()
    for name in here:
        watchers.add(lambda name=name: here[name])  # type: ignore[misc]
    here["first"] = False
    assert watchers.any_is_here()
    here["second"] = False
    assert not watchers.any_is_here()
    here["second"] = True  # back after a cut of the connection
    assert watchers.any_is_here()
