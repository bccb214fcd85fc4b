"""Tasks in processes of their own, so that none can crash the server.

The server sends pickled tasks to a worker's standard input, and receives events and ends from its
standard output.
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
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

from neuralviz.errors import (
    NeuralvizError,
    SettingsError,
    ShouldStop,
    Stopped,
    TextError,
    WorkerEndedError,
    describe_unexpected,
)
from neuralviz.jobs.logs import log_as_json
from neuralviz.jobs.task import LatestTask, Task
from neuralviz.models.shared import shared_model
from neuralviz.native_libraries import count_cores
from neuralviz.server_settings import server_settings

LOOK_EVERY = 0.25  # seconds between two looks whether a run should stop
END_SECONDS = 5.0  # for a worker to leave
ANSWER_SECONDS = 2.0  # for a worker to say that it is there
NICENESS = 5  # pages take precedence over work
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_log = logging.getLogger(__name__)
Inbox = queue.SimpleQueue[tuple[str, Any]]


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

    def carry_out(
        self, task: Task[Any, Any], add: Callable[[Any], None], should_stop: ShouldStop
    ) -> None:
        """Have a worker do a task, as `Task.carry_out`; `NeuralvizError` where it fails."""
        with self._lock:
            loads = [process.n_tasks if process else 0 for process in self._processes]
            process = self._open_process(loads.index(min(loads)))
            process.n_tasks += 1
        try:
            process.carry_out(task, add, should_stop)
        finally:
            with self._lock:
                process.n_tasks -= 1

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
            [sys.executable, "-m", "neuralviz.jobs.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=1 << 16,
            env={**os.environ, **dict.fromkeys(THREADS, str(threads))},
            start_new_session=True,  # Ctrl-C is for the server, which then ends its workers
        )
        self.is_alive = True
        self.n_tasks = 0
        self._is_ending = False
        self._sending = threading.Lock()
        self._inboxes: dict[int, Inbox] = {}
        self._numbers = itertools.count(1)
        threading.Thread(target=self._listen, name="neuralviz-worker", daemon=True).start()

    def carry_out(
        self, task: Task[Any, Any], add: Callable[[Any], None], should_stop: ShouldStop
    ) -> None:
        is_told = False
        inbox: Inbox = queue.SimpleQueue()
        with self.ask(task, inbox) as number:
            while self.is_alive or not inbox.empty():
                if not is_told and should_stop():
                    is_told = True
                    self.send("stop", number)
                with suppress(queue.Empty):
                    kind, value = inbox.get(timeout=LOOK_EVERY)
                    if kind == "event":
                        add(value)
                    elif value is None:
                        return
                    else:
                        raise value
        raise WorkerEndedError

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
        except (EOFError, OSError, pickle.UnpicklingError):
            pass  # it has ended, maybe within a message
        except Exception:
            _log.exception("A worker's message could not be read.")
        finally:
            self.popen.kill()
            self.is_alive = False
            code = self.popen.wait()
            if not self._is_ending:
                reason = f"exit code {code}"
                with suppress(ValueError):  # a signal without a name
                    reason = signal.Signals(-code).name
                _log.error("A worker ended suddenly: %s.", reason)


# --- in the worker -------------------------------------------------------------------------------


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when it ends
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if server_settings().json_logs:
        log_as_json()
    messages, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # so that packages neither read messages nor print among them
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        _Worker(output).serve(messages)
    except (EOFError, OSError):
        pass  # the server is gone
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # threads inside torch would crash a normal exit


class _Worker:
    """Active tasks, by the server's number for them."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._sending = threading.Lock()
        self._stop_asked: dict[int, threading.Event] = {}

    def serve(self, messages: BinaryIO) -> None:
        """Handle messages; EOFError or OSError when the input ends."""
        while True:
            kind, number, task = pickle.load(messages)  # noqa: S301 - of the server
            if kind == "run":
                self._stop_asked[number] = threading.Event()
                threading.Thread(target=self._carry_out, args=(number, task), daemon=True).start()
            elif (stop_event := self._stop_asked.get(number)) is not None:  # it may have ended
                stop_event.set()

    def _carry_out(self, number: int, task: Task[Any, Any]) -> None:
        """Carry out a task; send its events, then None or an error."""
        should_stop = self._stop_asked[number].is_set
        failure: NeuralvizError | None = None
        try:
            task.carry_out(lambda event: self._send("event", number, event), should_stop)
        except Stopped:
            pass
        except NeuralvizError as error:
            is_input = isinstance(error, TextError | SettingsError)
            failure = TextError(str(error)) if is_input else NeuralvizError(str(error))
        except BaseException as error:  # even panics of extensions: no reader may wait for ever
            _log.error("A run failed: %s.", type(task).__name__, exc_info=error)
            failure = NeuralvizError(describe_unexpected(error))
        del self._stop_asked[number]
        self._send("end", number, failure)

    def _send(self, kind: str, number: int, value: Any) -> None:
        message = pickle.dumps((kind, number, value))
        with self._sending, suppress(OSError):  # the server is gone
            self._output.write(message)
            self._output.flush()


if __name__ == "__main__":
    main()
