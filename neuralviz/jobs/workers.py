"""Runs carried out by processes of their own, so that none of them takes the server down with it.

What goes to a worker is a task, what comes back are its events: plain values of ours over a
connection of this machine that both sides have a key to.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from typing import TYPE_CHECKING, Any, Protocol

from neuralviz.errors import NeuralvizError, Stopped, TextError, WorkerEndedError

if TYPE_CHECKING:
    from neuralviz.jobs.run import Run

LOOK_EVERY = 0.25  # seconds between two looks whether a run should stop
START_SECONDS = 60.0  # for a worker to connect
END_SECONDS = 5.0  # for a worker to leave
ANSWER_SECONDS = 2.0  # for a worker to say that it is there
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_log = logging.getLogger(__name__)


class Executor(Protocol):
    """Where runs are carried out."""

    def carry_out(self, run: Run[Any]) -> None:
        """Do a run's task; returns when the run is over."""

    def close(self) -> None:
        """Release what is held; no run is carried out after it."""


class LocalExecutor:
    """In this process, on the thread that asks: for tests and the command line."""

    def carry_out(self, run: Run[Any]) -> None:
        """Do a run's task here and now."""
        run.carry_out()

    def close(self) -> None:
        """Nothing is held."""


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
        self._lock = threading.Lock()
        self._threads = threads or _requested_threads() or max(1, _count_cores() // n)
        self._places: list[_Process | None] = [None] * n
        self._starting = [threading.Lock() for _ in range(n)]
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
            self._process(place).carry_out(run)
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
        return [
            process.popen.pid
            for process in self._places
            if process is not None and process.is_alive
        ]

    def is_ready(self, seconds: float = ANSWER_SECONDS) -> bool:
        """Whether a worker has loaded the model and answers within some seconds."""
        alive = [process for process in self._places if process is not None and process.is_alive]
        if not alive and self._n_started and not self._is_closed:  # else the next run starts one
            threading.Thread(target=self._start_again, name="neuralviz-start", daemon=True).start()
        return any(process.answers(seconds) for process in alive if process.is_ready)

    def _start_again(self) -> None:
        with suppress(NeuralvizError, Stopped):
            self._process(0)

    @property
    def n_started(self) -> int:
        """Processes that were started so far, those in place of one that ended included."""
        return self._n_started

    def close(self) -> None:
        """End the workers; whatever they do is lost."""
        with self._lock:
            self._is_closed = True
            places = [process for process in self._places if process is not None]
        for process in places:
            process.ask_to_end()
        deadline = time.monotonic() + END_SECONDS
        for process in places:
            process.end(deadline)

    def _process(self, place: int) -> _Process:
        with self._starting[place]:
            process = self._places[place]
            if process is None or not process.is_alive:
                if self._is_closed:
                    raise Stopped
                process = _Process.start(self._threads)
                with self._lock:
                    self._places[place] = process
                    self._n_started += 1
                    came_too_late = self._is_closed
                if came_too_late:
                    process.ask_to_end()
                    process.end(time.monotonic() + END_SECONDS)
                    raise Stopped
                if self._model:
                    process.load(self._model)
                else:
                    process.is_ready = True
            return process


@dataclass(eq=False)
class _Process:
    """A worker as it is seen from here; a thread takes in what it says."""

    popen: subprocess.Popen[str]
    connection: Connection[Any, Any]
    is_alive: bool = True
    is_ready: bool = False
    _sending: threading.Lock = field(default_factory=threading.Lock)
    _inboxes: dict[int, queue.SimpleQueue[tuple[str, Any]]] = field(default_factory=dict)
    _numbers: int = 0
    _is_ending: bool = False

    @classmethod
    def start(cls, threads: int) -> _Process:
        """Start one and wait until it is connected.

        Raises:
            WorkerEndedError: it did not come up.
        """
        key = secrets.token_bytes(32)
        with Listener(authkey=key) as listener:
            popen = subprocess.Popen(
                [sys.executable, "-m", "neuralviz.jobs.worker"],
                stdin=subprocess.PIPE,
                env={**os.environ, **dict.fromkeys(THREADS, str(threads))},
                text=True,
                start_new_session=True,  # Ctrl-C is for the server, which then ends its workers
            )
            connection_info = {"address": listener.address, "key": base64.b64encode(key).decode()}
            assert popen.stdin is not None
            with suppress(OSError):
                popen.stdin.write(json.dumps(connection_info) + "\n")
                popen.stdin.flush()
            connection = _accept_connection(listener, popen)
        process = cls(popen, connection)
        threading.Thread(target=process._listen, name="neuralviz-worker", daemon=True).start()
        return process

    def carry_out(self, run: Run[Any]) -> None:
        """Send a run's task and take in its events until it is over."""
        number, inbox = self._open_inbox()
        try:
            self._send("run", number, run.task)
            run.end(self._pump(run, number, inbox))
        finally:
            self._inboxes.pop(number, None)

    def load(self, model: str) -> None:
        """Have a model loaded before a task needs it; it is ready then."""

        def wait() -> None:
            self.is_ready = self._ask("load", model, None)

        threading.Thread(target=wait, name="neuralviz-load", daemon=True).start()

    def answers(self, seconds: float) -> bool:
        """Whether it answers a ping within some seconds."""
        return self.is_alive and self._ask("ping", None, seconds)

    def _ask(self, kind: str, value: Any, seconds: float | None) -> bool:
        """Its answer to a request; False where it gives none in time, or ends."""
        number, inbox = self._open_inbox()
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            self._send(kind, number, value)
            while self.is_alive and (deadline is None or time.monotonic() < deadline):
                with suppress(queue.Empty):
                    return bool(inbox.get(timeout=LOOK_EVERY)[1])
        except WorkerEndedError:
            pass
        finally:
            self._inboxes.pop(number, None)
        return False

    def _open_inbox(self) -> tuple[int, queue.SimpleQueue[tuple[str, Any]]]:
        """A new number, and where what is said under it comes in."""
        inbox: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        with self._sending:
            self._numbers += 1
            self._inboxes[self._numbers] = inbox
            return self._numbers, inbox

    def ask_to_end(self) -> None:
        """Have the process end by itself."""
        self._is_ending = True
        with suppress(WorkerEndedError):
            self._send("close", 0, None)

    def end(self, deadline: float) -> None:
        """Wait for the process to end until a time of the clock that never jumps, then end it."""
        try:
            self.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.is_alive = False

    def _pump(
        self, run: Run[Any], number: int, inbox: queue.SimpleQueue[tuple[str, Any]]
    ) -> NeuralvizError | None:
        """Events into the run until it ends; how it failed, if it did."""
        is_told = False
        while True:
            if not self.is_alive and inbox.empty():
                return WorkerEndedError()
            if not is_told and run.should_stop():
                is_told = True
                with suppress(WorkerEndedError):
                    self._send("stop", number, None)
            try:
                kind, value = inbox.get(timeout=LOOK_EVERY)
            except queue.Empty:
                continue
            if kind == "event":
                run.add(value)
            elif kind == "end":
                return _make_error(value)

    def _send(self, kind: str, number: int, value: Any) -> None:
        try:
            with self._sending:
                self.connection.send((kind, number, value))
        except OSError as error:
            self.is_alive = False
            raise WorkerEndedError from error

    def _listen(self) -> None:
        """Sort what the worker says by run, until it is gone."""
        try:
            while True:
                kind, number, value = self.connection.recv()
                inbox = self._inboxes.get(number)
                if inbox is not None:
                    inbox.put((kind, value))
        except (EOFError, OSError):
            pass
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


def _accept_connection(listener: Listener, popen: subprocess.Popen[str]) -> Connection[Any, Any]:
    """The worker's connection.

    Raises:
        WorkerEndedError: it ended, or took too long.
    """
    accepted: queue.SimpleQueue[Connection[Any, Any] | Exception] = queue.SimpleQueue()

    def accept() -> None:
        try:
            accepted.put(listener.accept())
        except Exception as error:
            accepted.put(error)

    threading.Thread(target=accept, name="neuralviz-accept", daemon=True).start()
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with suppress(queue.Empty):
            connection = accepted.get(timeout=LOOK_EVERY)
            if isinstance(connection, Exception):
                break
            return connection
        if popen.poll() is not None:
            break
    popen.kill()
    popen.wait()
    raise WorkerEndedError
