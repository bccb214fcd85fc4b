"""Rows of Ray come out of a thread of their own, in which nothing is raised."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from neuralviz.cluster import connecting
from neuralviz.cluster.connecting import iterate_rows


class FakeDataset:
    """A dataset whose rows are those of a generator, which says how it ended."""

    def __init__(self, wait: Callable[[], object] = lambda: None, n: int = 3) -> None:
        self.wait, self.n = wait, n
        self.ended_by: type[BaseException] | None = None
        self.ended = threading.Event()

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        try:
            for i in range(self.n):
                yield {"row": i}
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
def test_an_interrupt_is_raised_where_rows_are_waited_for_and_not_in_the_dataset():
    dataset = FakeDataset(lambda: time.sleep(0.3), n=1000)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with closing(iterate_rows(dataset)) as found, pytest.raises(KeyboardInterrupt):
        next(found)
        timer.start()
        for _ in found:
            pass
    assert dataset.ended.wait(5)
    assert dataset.ended_by is GeneratorExit


def test_a_dataset_that_hangs_is_left_alone(monkeypatch):
    monkeypatch.setattr(connecting, "ROWS_PATIENCE", 0.2)
    let_go = threading.Event()
    dataset = FakeDataset(let_go.wait)
    found = iterate_rows(dataset)
    assert next(found) == {"row": 0}
    start = time.monotonic()
    found.close()
    assert time.monotonic() - start < 3
    assert not dataset.ended.is_set()
    let_go.set()
    assert dataset.ended.wait(5)
