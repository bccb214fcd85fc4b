"""Runs that people come back to: met where they are, found when they are over, told when lost."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from neuralviz.errors import ShouldStop, TextError, WorkerEndedError
from neuralviz.jobs import Run, RunQueue
from neuralviz.jobs.keeping import KeptTask, keep_run, reopen_run
from neuralviz.jobs.returning import RunTable

ROOT = Path(__file__).parents[2]
SECRET = "a text that nobody else may see"
_may_end = threading.Event()


@dataclass(frozen=True)
class Wait(KeptTask[int, int]):
    """Waits for `_may_end`, or fails."""

    text: str = SECRET
    error: Exception | None = None

    def start(self) -> int:
        return 0

    def events(self, should_stop: ShouldStop) -> Generator[int, None, None]:
        yield 1
        if self.error is not None:
            raise self.error
        while not _may_end.wait(0.01):
            if should_stop():
                return
        yield 2

    def fold(self, result: int, events: Any) -> int:
        return result + sum(events)

    def cache_key(self) -> str:
        return json.dumps(self.text)

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


def begin(table: RunTable, queue: RunQueue, task: Wait) -> Run[int]:
    run = Run(task, view="aView")
    table.add(run.id, task.text)
    run.at_end += [keep_run, table.end]
    return queue.submit(run)


def wait_for_end(run: Run[int], queue: RunQueue) -> None:
    assert run.wait(10)
    until = time.monotonic() + 10  # what is called at the end comes a moment later
    while queue.find(lambda other: other is run) is not None:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("done", "done"),
        ("stopped", "stopped"),
        ("failed", "failed"),
        ("cut off", "cut off"),
        ("stopped before it began", "stopped"),
        ("the server ended before it began", "not begun"),
    ],
)
def test_how_a_run_ended_is_told(queue: RunQueue, how: str, status: str, folder: Path) -> None:
    table = RunTable()
    if "before it began" in how:
        begin(table, queue, Wait("first"))
    errors = {"failed": TextError(SECRET), "cut off": WorkerEndedError()}
    run = begin(table, queue, Wait(error=errors.get(how)))
    if status == "stopped":
        run.stop()
    elif status == "not begun":
        queue.close(seconds=0)
    else:
        _may_end.set()
    wait_for_end(run, queue)
    assert RunTable().find_status(run.id, SECRET) == status
    assert RunTable().find_status(run.id, "another text") is None
    for path in folder.glob("runs.sqlite*"):
        assert SECRET.encode() not in path.read_bytes()


def test_a_server_that_is_there_and_one_that_ended_are_told_apart(
    queue: RunQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the clock says."""
    first, second, now = RunTable(), RunTable(), time.time()
    run = begin(first, queue, Wait())
    for days in (0, -3, 3):
        monkeypatch.setattr(time, "time", lambda days=days: now + days * 86_400)
        assert second.find_status(run.id, SECRET) == "elsewhere"
    first.close()
    assert second.find_status(run.id, SECRET) == "crashed"
    assert first.find_status(run.id, SECRET) == "crashed"


SERVER = """
import time
from neuralviz.jobs import RunQueue
from neuralviz.jobs.returning import RunTable
from tests.unit.test_returning import Wait, _may_end, begin, wait_for_end

table, queue = RunTable(), RunQueue(max_running=4)
"""
TEN_RUNS = """
runs = [begin(table, queue, Wait(f"text {n}")) for n in range(4)]
_may_end.set()
for run in runs:
    wait_for_end(run, queue)
_may_end.clear()
runs += [begin(table, queue, Wait(f"text {n}")) for n in range(4, 14)]
print(*(run.id for run in runs), flush=True)
time.sleep(60)
"""


def test_a_server_that_is_killed_with_ten_runs_loses_only_those() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER + TEN_RUNS], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as server:
        assert server.stdout is not None
        ids = server.stdout.readline().split()
        table = RunTable()
        assert table.find_status(ids[4], "text 4") == "elsewhere"
        server.kill()
    assert len(ids) == 14
    for number, run_id in enumerate(ids):
        kept = reopen_run(Wait(f"text {number}"), "aView")
        if number < 4:
            assert kept is not None
            assert (kept.status, kept.result) == ("done", 3)
        else:
            assert kept is None
            assert table.find_status(run_id, f"text {number}") == "crashed"


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are Unix's")
def test_a_full_disk_hinders_no_run() -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        f"{SERVER}"
        "run = begin(table, queue, Wait())\n"
        "_may_end.set()\n"
        "print(run.wait(10), run.status, run.result, flush=True)\n"
        "queue.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True done 3\n"
    assert done.stderr.count("Runs are not noted") == 1
    assert "Traceback" not in done.stderr


def test_runs_of_long_ago_are_forgotten() -> None:
    table = RunTable()
    table.add("an-id", "some work")
    assert RunTable(days=1).find_status("an-id", "some work") == "elsewhere"
    time.sleep(0.01)
    assert RunTable(days=0).find_status("an-id", "some work") is None


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
    table = RunTable()
    run = begin(table, queue, Wait())
    _may_end.set()
    assert run.wait(10)
    assert (run.status, run.result) == ("done", 3)
    assert table.find_status(run.id, SECRET) is None
    table.close()
