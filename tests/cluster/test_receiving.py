"""Results of Ray come out of a thread of their own; units of lost processes go to others."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, nullcontext
from functools import partial
from types import SimpleNamespace as Made

import pytest
from ray.exceptions import RayActorError, RayError

from neuralviz.cluster import connecting, embedding
from neuralviz.cluster.connecting import receive
from neuralviz.errors import NeuralvizError, Stopped


def count(ends: list[type], wait: Callable[[], object]) -> Generator[int]:
    """Numbers; ``ends`` gets what ended them."""
    try:
        for i in range(1000):
            yield i
            wait()
    except BaseException as error:
        ends.append(type(error))
        raise


def wait_for_thread() -> None:
    for thread in threading.enumerate():
        if thread.name == "results of Ray":
            thread.join(5)


@pytest.fixture
def interrupts():
    """Ctrl-C is heard also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_is_raised_where_results_are_waited_for_and_not_where_they_are_made():
    ends: list[type] = []
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    results = receive(count(ends, lambda: time.sleep(0.3)))
    with closing(results), pytest.raises(KeyboardInterrupt):
        next(results)
        timer.start()
        list(results)
    wait_for_thread()
    assert ends == [GeneratorExit]


def test_work_that_hangs_is_left_alone_and_stop_is_heard(monkeypatch):
    monkeypatch.setattr(connecting, "RESULTS_PATIENCE", 0.2)
    ends, hangs = [], threading.Event()
    results = receive(count(ends, hangs.wait), should_stop=lambda: True)
    assert next(results) == 0
    start = time.monotonic()
    with pytest.raises(Stopped):
        next(results)
    assert time.monotonic() - start < 3
    assert ends == []
    hangs.set()
    wait_for_thread()
    assert ends == [GeneratorExit]


@pytest.mark.parametrize(
    ("error", "raised", "says"),
    [
        (None, None, ""),
        (ValueError("a bug"), ValueError, "^a bug$"),
        (RayError("no head"), NeuralvizError, r"^Ray stopped \(RayError: no head\)\. Try again\.$"),
    ],
)
def test_the_end_is_heard_at_once_and_an_error_is_no_end(monkeypatch, error, raised, says) -> None:
    monkeypatch.setattr(connecting, "LOOK_EVERY", 12)
    wanted = threading.Event()

    def make() -> Generator[int]:
        yield 0
        wanted.wait(5)
        time.sleep(0.2)  # the reader waits again
        if error:
            raise error

    results = receive(make(), "Try again.")
    assert next(results) == 0
    wanted.set()
    start = time.monotonic()
    with pytest.raises(raised, match=says) if raised else nullcontext():
        assert list(results) == []
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("deaths", [["embed"], ["", *["start"] * 99], ["embed", "start", "embed"]])
def test_units_of_processes_that_die_are_embedded_by_others(monkeypatch, deaths):
    monkeypatch.setattr(embedding, "ray", fake_ray(deaths))
    assert sorted(embedding.embed_units((), [(i,) for i in range(9)], 2, {})) == list(range(9))


def test_processes_that_never_start_are_given_up(monkeypatch):
    monkeypatch.setattr(embedding, "ray", fake_ray(["start"] * 99))
    with pytest.raises(RayActorError):
        list(embedding.embed_units((), [(1,)], 2, {}))


def fake_ray(deaths: list[str]) -> Made:
    """Ray; of each process that is started, where it dies. Calls are functions."""
    left = iter(deaths)

    def lose() -> None:
        raise RayActorError

    def start() -> Made:
        death = next(left, "")
        prepare = Made(remote=lambda: partial(lose) if death == "start" else lambda: None)
        embed = Made(remote=lambda i: partial(lose) if death == "embed" else lambda: i)
        return Made(prepare=prepare, embed=embed)

    actors = Made(options=lambda **_: Made(remote=start))
    wait, get = lambda calls: (calls[:1], []), lambda call: call()
    return Made(remote=lambda _: actors, wait=wait, get=get, kill=id)
