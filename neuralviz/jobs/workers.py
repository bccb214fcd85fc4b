"""Runs carried out by processes of their own, so that none of them takes the server down with it.

What goes to a worker is a task, what comes back are its events, through its standard input and
output.
"""

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
from typing import TYPE_CHECKING, Any

from neuralviz.errors import NeuralvizError, Stopped, TextError, WorkerEndedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuralviz.jobs.run import Run

LOOK_EVERY = 0.25  # seconds between two looks whether a run should stop
END_SECONDS = 5.0  # for a worker to leave
ANSWER_SECONDS = 2.0  # for a worker to say that it is there
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_log = logging.getLogger(__name__)


def worker_count(requested: int | None = None) -> int:
    """Workers that this machine should have: as asked for, or one for two cores."""
    return max(1, _count_cores() // 2) if requested is None else requested


def _requested_threads() -> int:
    """Threads that the environment asks for; 0 where it does not."""
    value = os.environ.get(THREADS[0], "").split(",")[0].strip()  # a list counts levels of nesting
    return int(value) if value.isdecimal() else 0


def _count_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """A few processes, each of which loads every model once and takes several tasks at a time.

    A worker that ends, whatever ended it, ends its runs with a sentence; the next run that would
    have gone to it starts a new one.

    Args:
        n: workers.
        threads: of torch in each; by default what ``OMP_NUM_THREADS`` says, else the machine's
            cores, shared evenly.
        model: id of a masked language model that each loads when it starts; empty for none.
    """

    def __init__(self, n: int = 1, threads: int | None = None, *, model: str = "") -> None:
        self._model = model
        self._threads = threads or _requested_threads() or max(1, _count_cores() // n)
        self._lock = threading.Lock()
        self._places: list[_Process | None] = [None] * n
        self._load = [0] * n
        self._n_started = 0
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._places)

    def start(self) -> None:
        """Start all of them, so that the first run need not wait; may be left out."""
        for place in range(len(self._places)):
            self._process(place)

    def carry_out(self, run: Run[Any]) -> None:
        """Have a worker do a run's task; returns when the run is over."""
        if not run.begin():
            return
        with self._lock:
            place = self._load.index(min(self._load))
            self._load[place] += 1
        try:
            run.end(self._process(place).carry_out(run))
        except NeuralvizError as error:
            run.end(error)
        except BaseException as error:  # nobody may wait for ever
            run.end(error)
            if not isinstance(error, Exception):
                raise
        finally:
            with self._lock:
                self._load[place] -= 1

    def processes(self) -> list[int]:
        """Ids of the processes that are there now."""
        return [process.popen.pid for process in self._list_alive()]

    def is_ready(self, seconds: float = ANSWER_SECONDS) -> bool:
        """Whether a worker has loaded the model and answers within some seconds."""
        alive = self._list_alive()
        if not alive and self._n_started:  # else the next run starts one
            with suppress(Stopped, OSError):
                alive = [self._process(0)]
        deadline = time.monotonic() + seconds
        answers, n_answers = queue.SimpleQueue[tuple[str, Any]](), 0
        with ExitStack() as stack:  # all are asked before the first answers: it may hang
            for process in alive:
                stack.enter_context(process.ask("load", self._model, answers))
            while n_answers < len(alive) and any(process.is_alive for process in alive):
                if (left := deadline - time.monotonic()) <= 0:
                    break
                with suppress(queue.Empty):
                    if answers.get(timeout=min(left, LOOK_EVERY))[1]:
                        return True
                    n_answers += 1
        return False

    @property
    def n_started(self) -> int:
        """Processes that were started so far, those in place of one that ended included."""
        return self._n_started

    def close(self) -> None:
        """End the workers; whatever they do is lost."""
        with self._lock:
            self._is_closed = True
            processes = [process for process in self._places if process is not None]
        for process in processes:
            process.ask_to_end()
        deadline = time.monotonic() + END_SECONDS
        for process in processes:
            process.end(deadline)

    def _list_alive(self) -> list[_Process]:
        return [process for process in self._places if process is not None and process.is_alive]

    def _process(self, place: int) -> _Process:
        """The process of a place, started where there is none.

        Raises:
            Stopped: the workers were closed.
        """
        with self._lock:
            process = self._places[place]
            if process is None or not process.is_alive:
                if self._is_closed:
                    raise Stopped
                process = self._places[place] = _Process(self._threads)
                self._n_started += 1
                process.send("load", 0, self._model)
            return process


class _Process:
    """A worker as it is seen from here; a thread takes in what it says."""

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
        self._is_ending = False
        self._sending = threading.Lock()
        self._inboxes: dict[int, queue.SimpleQueue[tuple[str, Any]]] = {}
        self._numbers = itertools.count(1)
        threading.Thread(target=self._listen, name="neuralviz-worker", daemon=True).start()

    def carry_out(self, run: Run[Any]) -> NeuralvizError | None:
        """Have a run's task done, with its events going to the run; how it failed, if it did."""
        is_told = False
        inbox = queue.SimpleQueue[tuple[str, Any]]()
        with self.ask("run", run.task, inbox) as number:
            while self.is_alive or not inbox.empty():
                if not is_told and run.should_stop():
                    is_told = True
                    self.send("stop", number)
                with suppress(queue.Empty):
                    kind, value = inbox.get(timeout=LOOK_EVERY)
                    if kind == "end":
                        return _make_error(value)
                    run.add(value)
        return WorkerEndedError()

    def send(self, kind: str, number: int, value: Any = None) -> None:
        """Send a message; one that it cannot take any more is dropped."""
        message = pickle.dumps((kind, number, value))
        assert self.popen.stdin is not None
        try:
            with self._sending:
                self.popen.stdin.write(message)
                self.popen.stdin.flush()
        except (OSError, ValueError):  # it has ended, or its input is closed
            self.is_alive = False

    def ask_to_end(self) -> None:
        """Have the process end by itself."""
        self._is_ending = True
        assert self.popen.stdin is not None
        with self._sending, suppress(OSError):
            self.popen.stdin.close()

    def end(self, deadline: float) -> None:
        """Wait for the process to end until a time of the clock that never jumps, then end it."""
        try:
            self.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.is_alive = False

    @contextmanager
    def ask(
        self, kind: str, value: Any, inbox: queue.SimpleQueue[tuple[str, Any]]
    ) -> Iterator[int]:
        """Send a request, whose answers come into an inbox; its number."""
        number = next(self._numbers)
        self._inboxes[number] = inbox
        try:
            self.send(kind, number, value)
            yield number
        finally:
            del self._inboxes[number]

    def _listen(self) -> None:
        """Sort what the worker says by request, until it is gone."""
        assert self.popen.stdout is not None
        try:
            while True:
                kind, number, value = pickle.load(self.popen.stdout)  # noqa: S301 - of our worker
                inbox = self._inboxes.get(number)
                if inbox is not None:
                    inbox.put((kind, value))
        except (EOFError, OSError):
            pass  # it has ended
        except pickle.UnpicklingError:  # it has ended within a message, or said something else
            self.popen.kill()
        except Exception:  # what came could not be read: no more can be
            _log.exception("A worker said what cannot be read.")
            self.popen.kill()
        finally:
            self.is_alive = False
            code = self.popen.wait()
            if not self._is_ending:
                _log.error("A worker ended suddenly: %s.", _describe_exit(code))


def _describe_exit(code: int) -> str:
    """How a process ended, from its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _make_error(message: tuple[str, bool] | None) -> NeuralvizError | None:
    """A worker's message on a failed task, as an error."""
    if message is None:
        return None
    sentence, is_input = message
    return TextError(sentence) if is_input else NeuralvizError(sentence)
