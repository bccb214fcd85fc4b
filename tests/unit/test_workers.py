"""Worker processes: what goes to them and comes back, and what happens when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from neuralviz.jobs import Run
from neuralviz.jobs import workers as the_workers
from neuralviz.jobs.workers import Workers
from tests.support.tasks import CountUp, Fails, SaysWhere, WaitForStop
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers(n=2, threads=1)
    yield made
    made.close()
    assert made.processes() == []


def carry_out(workers: Workers, task: Any) -> Run[Any]:
    run: Run[Any] = Run(task)
    run.carry_out(workers.carry_out)
    return run


def begin(workers: Workers, run: Run[Any]) -> threading.Thread:
    thread = threading.Thread(target=run.carry_out, args=(workers.carry_out,))
    thread.start()
    return thread


def test_a_task_is_done_in_another_process(workers: Workers) -> None:
    run = carry_out(workers, SaysWhere())
    assert run.status == "done"
    assert run.result in workers.processes()
    assert run.result != os.getpid()
    assert carry_out(workers, CountUp(500)).result == tuple(range(500))


def test_what_a_task_raises_is_said_as_it_is_here(workers: Workers) -> None:
    said = carry_out(workers, Fails("text", "Text 3 is empty."))
    assert (said.status, said.error) == ("failed", "Text 3 is empty.")
    assert not said.may_succeed_again
    odd = carry_out(workers, Fails("unforeseen", "odd"))
    assert (odd.status, odd.error) == ("failed", "Unexpected error: ZeroDivisionError: odd.")
    assert odd.may_succeed_again


def test_stop_reaches_a_worker(workers: Workers) -> None:
    run: Run[Any] = Run(WaitForStop())
    thread = begin(workers, run)
    wait_until(lambda: run.result)
    run.stop()
    thread.join(10)
    assert run.status == "stopped"


def test_a_killed_worker_ends_its_runs_alone_and_is_started_anew(workers: Workers, caplog) -> None:
    runs: list[Run[Any]] = [Run(WaitForStop(n)) for n in range(2)]
    threads = [begin(workers, run) for run in runs]
    wait_until(lambda: all(run.result for run in runs))
    killed, spared = runs
    assert killed.result[0] != spared.result[0]  # one each
    os.kill(killed.result[0], signal.SIGKILL)
    threads[0].join(10)
    assert killed.status == "failed"
    assert "ended suddenly" in killed.error
    assert killed.may_succeed_again
    assert spared.status == "running"
    wait_until(lambda: caplog.messages == ["A worker ended suddenly: SIGKILL."])
    spared.stop()
    threads[1].join(10)
    assert {carry_out(workers, SaysWhere()).result for _ in range(4)} <= set(workers.processes())


def test_a_killed_worker_is_made_ready_again_and_one_that_hangs_is_not_ready() -> None:
    workers = Workers(n=1, threads=1)
    try:
        assert not workers.is_ready()  # none was started
        workers.start()
        wait_until(workers.is_ready)
        (killed,) = workers.processes()
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not workers.is_ready())
        wait_until(workers.is_ready)  # without any run
        (hanging,) = workers.processes()
        assert (hanging != killed, workers.n_started) == (True, 2)
        os.kill(hanging, signal.SIGSTOP)
        assert not workers.is_ready(seconds=0.3)
        os.kill(hanging, signal.SIGCONT)
        assert workers.is_ready(seconds=20)
    finally:
        workers.close()
    assert not workers.is_ready()


def test_a_stopped_run_whose_worker_ends_is_stopped(caplog) -> None:
    """As where the server ends and the worker hangs."""
    workers = Workers(n=1, threads=1)
    run: Run[Any] = Run(WaitForStop())
    thread = begin(workers, run)
    wait_until(lambda: run.result)
    (process,) = workers.processes()
    os.kill(process, signal.SIGSTOP)
    run.stop()
    os.kill(process, signal.SIGKILL)
    thread.join(10)
    assert (run.status, run.error) == ("stopped", None)
    assert run.result == (process, 0)
    workers.close()


def test_workers_end_with_the_process_that_started_them() -> None:
    code = (
        "import os, sys\n"
        "from neuralviz.jobs.workers import Workers\n"
        "workers = Workers(n=1, threads=1)\n"
        "workers.start()\n"
        "print(*workers.processes(), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )

    out = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: not psutil.pid_exists(int(out.stdout)))


@pytest.mark.parametrize(
    ("said", "threads"), [("3", 3), ("2,1", 2), ("", 4), ("many", 4), ("0", 4)]
)
def test_threads_are_as_the_environment_says_or_an_even_share(monkeypatch, said, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    monkeypatch.setattr(the_workers, "count_cores", lambda: 8)
    assert the_workers.Workers(2)._threads == threads
