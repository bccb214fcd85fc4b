"""Runs in processes of their own, so that none can crash the server."""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from neuralviz.errors import NeuralvizError, Stopped, TextError, WorkerEndedError
from neuralviz.jobs.task import LatestTask
from neuralviz.models.shared import shared_model
from neuralviz.native_libraries import count_cores

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from neuralviz.errors import ShouldStop
    from neuralviz.jobs.task import Run, Task

    Inbox = queue.SimpleQueue[tuple[str, Any]]

LOOK_EVERY = 0.25  # seconds between two looks whether a run should stop
END_SECONDS = 5.0  # for a worker to leave
ANSWER_SECONDS = 2.0  # for a worker to say that it is there
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_log = logging.getLogger(__name__)


def worker_count(requested: int | None = None) -> int:
    """The number of workers as requested, or one for every two cores."""
    return max(1, count_cores() // 2) if requested is None else requested


def _requested_threads() -> int:
    value = os.environ.get(THREADS[0], "").split(",")[0].strip()  # a list counts levels of nesting
    return int(value) if value.isdecimal() else 0


@dataclass(frozen=True)
class LoadModel(LatestTask[bool]):
    """Load a masked language model, unless it is loaded or the id is empty."""

    model_id: str

    def events(self, should_stop: ShouldStop) -> Generator[bool, None, None]:
        if self.model_id:
            _load_once(self.model_id)
        yield from ()


@cache
def _load_once(model_id: str) -> None:
    """Load a model once: checks must not push out models in use."""
    try:
        shared_model(model_id)
    except NeuralvizError as error:
        _log.warning("Could not preload the model: %s", error)
        raise


class Workers:
    """Processes that each load models once and carry out several tasks at a time.

    Runs of a worker that ends fail with a sentence; the next run there starts a new worker.
    """

    def __init__(self, n: int = 1, threads: int | None = None, *, model: str = "") -> None:
        self._model = model
        self._threads = threads or _requested_threads() or max(1, count_cores() // n)
        self._lock = threading.Lock()
        self._processes: list[_Process | None] = [None] * n
        self.n_started = 0  # including replacements
        self._is_closed = False

    def start(self) -> None:
        with self._lock:
            for place in range(len(self._processes)):
                self._open_process(place)

    def carry_out(self, run: Run[Any]) -> None:
        """Have a worker do a run's task; returns when the run is over."""
        if not run.begin():
            return
        try:
            with self._take_process() as process:
                failure = process.carry_out(run)
            run.end(failure)
        except BaseException as error:  # no reader may wait for ever
            run.end(error)

    def processes(self) -> list[int]:
        return [process.popen.pid for process in self._list_alive()]

    def is_ready(self, seconds: float = ANSWER_SECONDS) -> bool:
        """Whether a worker has loaded the model and answers in time."""
        if self.n_started and not self._list_alive():  # else the next run starts one
            with suppress(Stopped, OSError), self._lock:
                self._open_process(0)
        alive, deadline = self._list_alive(), time.monotonic() + seconds
        answers: Inbox = queue.SimpleQueue()
        with ExitStack() as stack, suppress(queue.Empty):
            for process in alive:  # all are asked before the first answers: it may hang
                stack.enter_context(process.ask(LoadModel(self._model), answers))
            for _ in alive:
                kind, failure = answers.get(timeout=max(deadline - time.monotonic(), 0))
                if kind == "end" and failure is None:
                    return True
        return False

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            processes = [process for process in self._processes if process is not None]
        for process in processes:
            process.ask_to_end()
        deadline = time.monotonic() + END_SECONDS
        for process in processes:
            process.end(deadline)

    def _list_alive(self) -> list[_Process]:
        return [process for process in self._processes if process is not None and process.is_alive]

    @contextmanager
    def _take_process(self) -> Iterator[_Process]:
        with self._lock:
            loads = [process.n_runs if process else 0 for process in self._processes]
            process = self._open_process(loads.index(min(loads)))
            process.n_runs += 1
        try:
            yield process
        finally:
            with self._lock:
                process.n_runs -= 1

    def _open_process(self, place: int) -> _Process:
        """The process at a place, started if necessary; `Stopped` once closed."""
        process = self._processes[place]
        if process is None or not process.is_alive:
            if self._is_closed:
                raise Stopped
            process = self._processes[place] = _Process(self._threads)
            self.n_started += 1
            process.send("run", 0, LoadModel(self._model))
        return process


class _Process:
    """The server's end of a worker; a thread receives its messages."""

    def __init__(self, threads: int) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "neuralviz.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=1 << 16,
            env={**os.environ, **dict.fromkeys(THREADS, str(threads))},
            start_new_session=True,  # Ctrl-C is for the server, which then ends its workers
        )
        self.is_alive = True
        self.n_runs = 0
        self._is_ending = False
        self._sending = threading.Lock()
        self._inboxes: dict[int, Inbox] = {}
        self._numbers = itertools.count(1)
        threading.Thread(target=self._listen, name="neuralviz-worker", daemon=True).start()

    def carry_out(self, run: Run[Any]) -> NeuralvizError | None:
        """Have a run's task done, passing events to the run; the failure, if any."""
        was_told = False
        inbox: Inbox = queue.SimpleQueue()
        with self.ask(run.task, inbox) as number:
            while self.is_alive or not inbox.empty():
                if not was_told and run.should_stop():
                    was_told = True
                    self.send("stop", number)
                with suppress(queue.Empty):
                    kind, value = inbox.get(timeout=LOOK_EVERY)
                    if kind == "end":
                        return _make_error(value)
                    run.add(value)
        return WorkerEndedError()

    @contextmanager
    def ask(self, task: Task[Any, Any], inbox: Inbox) -> Iterator[int]:
        """Send a task, with an inbox for its events and end; yields its number."""
        number = next(self._numbers)
        self._inboxes[number] = inbox
        try:
            self.send("run", number, task)
            yield number
        finally:
            del self._inboxes[number]

    def send(self, kind: str, number: int, task: Task[Any, Any] | None = None) -> None:
        message = pickle.dumps((kind, number, task))
        assert self.popen.stdin is not None
        try:
            with self._sending:
                self.popen.stdin.write(message)
                self.popen.stdin.flush()
        except (OSError, ValueError):  # it has ended, or its input is closed
            self.is_alive = False

    def ask_to_end(self) -> None:
        self._is_ending = True
        assert self.popen.stdin is not None
        with self._sending, suppress(OSError):
            self.popen.stdin.close()

    def end(self, deadline: float) -> None:
        """Wait for the process until ``deadline``, a monotonic time, then kill it."""
        try:
            self.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.is_alive = False

    def _listen(self) -> None:
        assert self.popen.stdout is not None
        try:
            while True:
                kind, number, value = pickle.load(self.popen.stdout)  # noqa: S301 - of our worker
                inbox = self._inboxes.get(number)
                if inbox is not None:
                    inbox.put((kind, value))
        except (EOFError, OSError):
            pass  # it has ended
        except Exception as error:  # it has ended within a message, or no more can be read
            if not isinstance(error, pickle.UnpicklingError):
                _log.exception("A worker said what cannot be read.")
            self.popen.kill()
        finally:
            self.is_alive = False
            code = self.popen.wait()
            if not self._is_ending:
                reason = f"exit code {code}"
                with suppress(ValueError):  # a signal without a name
                    reason = signal.Signals(-code).name
                _log.error("A worker ended suddenly: %s.", reason)


def _make_error(failure: tuple[str, bool] | None) -> NeuralvizError | None:
    if failure is None:
        return None
    sentence, is_input = failure
    return TextError(sentence) if is_input else NeuralvizError(sentence)
