"""Rows of Ray come out of a thread of their own, in which nothing is raised."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing

import pytest

from neuralviz.cluster import connecting
from neuralviz.cluster.connecting import receive


class FakeRun:
    """A run whose rows are those of a generator, which says how it ended."""

    def __init__(self, wait: Callable[[], object] = lambda: None, n: int = 3) -> None:
        self.wait, self.n = wait, n
        self.ended_by: type[BaseException] | None = None
        self.ended = threading.Event()

    def results(self) -> Generator[int]:
        try:
            for i in range(self.n):
                yield i
                self.wait()
        except BaseException as error:
            self.ended_by = type(error)
            raise
        finally:
            self.ended.set()


@pytest.fixture
def interrupts():
    """Ctrl-C is heard also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_is_raised_where_rows_are_waited_for_and_not_in_the_run():
    run = FakeRun(lambda: time.sleep(0.3), n=1000)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with closing(receive(run.results())) as found, pytest.raises(KeyboardInterrupt):
        next(found)
        timer.start()
        for _ in found:
            pass
    assert run.ended.wait(5)
    assert run.ended_by is GeneratorExit


def test_a_run_that_hangs_is_left_alone(monkeypatch):
    monkeypatch.setattr(connecting, "RESULTS_PATIENCE", 0.2)
    let_go = threading.Event()
    run = FakeRun(let_go.wait)
    found = receive(run.results())
    assert next(found) == 0
    start = time.monotonic()
    found.close()
    assert time.monotonic() - start < 3
    assert not run.ended.is_set()
    let_go.set()
    assert run.ended.wait(5)
