"""A worker: a process that carries out tasks on threads of its own, and tells what happens.

    python -m neuralviz.jobs.worker

Started by `neuralviz.jobs.workers`, which says on its standard input where it listens. Models are
loaded once a worker, by the first task that needs them. It ends when the connection does, so that
none outlives the process that started it.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import signal
import sys
import threading
from contextlib import closing, suppress
from multiprocessing.connection import Client, Connection
from typing import TYPE_CHECKING, Any

from neuralviz.errors import NeuralvizError, SettingsError, Stopped, TextError, describe_unexpected
from neuralviz.jobs.logs import log_as_json
from neuralviz.jobs.sharing import Sharer, Sharing
from neuralviz.jobs.task import SharingTask
from neuralviz.models.shared import shared_model
from neuralviz.server_settings import server_settings

if TYPE_CHECKING:
    from neuralviz.jobs.task import Task

NICENESS = 5  # pages are drawn first, and work has what is left of the cores

_log = logging.getLogger(__name__)


def main() -> None:
    """Serve until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it says when it is over
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if server_settings().json_logs:
        log_as_json()
    server = json.loads(sys.stdin.readline())
    connection = Client(server["address"], authkey=base64.b64decode(server["key"]))
    try:
        _Worker(connection).serve()
    except (EOFError, OSError):
        pass  # it is gone that started this
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # threads inside torch would end with a complaint


class _Worker:
    """The tasks under way, by the number that they were sent under."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._stopped: dict[int, threading.Event] = {}
        self._sharing = Sharing()

    def serve(self) -> None:
        """Take in what is said until nobody says anything more.

        Raises:
            EOFError, OSError: the connection ended.
        """
        while True:
            kind, number, value = self._connection.recv()
            if kind == "run":
                self._start(number, value)
            elif kind == "load":
                threading.Thread(target=self._load, args=(number, value), daemon=True).start()
            elif kind == "ping":
                self._send("answer", number, True)
            elif kind == "stop":
                stopped = self._stopped.get(number)
                if stopped is not None:  # it may have ended a moment ago
                    stopped.set()
            elif kind == "close":
                return

    def _load(self, number: int, model_id: str) -> None:
        """Load a masked language model before a task needs it, and say whether it is there."""
        is_there = False
        try:
            shared_model(model_id)
            is_there = True
        except NeuralvizError as error:
            _log.warning("Could not preload the model: %s", error)
        finally:
            with suppress(OSError):
                self._send("answer", number, is_there)

    def _start(self, number: int, task: Task[Any, Any]) -> None:
        stopped = self._stopped[number] = threading.Event()
        shares = isinstance(task, SharingTask) and task.sharing_key() is not None
        threading.Thread(
            target=self._share if shares else self._carry_out,
            args=(number, task, stopped),
            daemon=True,
        ).start()

    def _share(self, number: int, task: SharingTask[Any, Any], stopped: threading.Event) -> None:
        try:
            task.prepare()
        except BaseException as error:  # nobody may wait for ever
            with suppress(OSError):
                self._end(number, task, error)
            return
        self._sharing.add(
            Sharer(
                task,
                stopped.is_set,
                event=lambda event: self._send("event", number, event),
                end=lambda error: self._end(number, task, error),
            )
        )

    def _carry_out(self, number: int, task: Task[Any, Any], stopped: threading.Event) -> None:
        failed: BaseException | None = None
        try:
            with closing(task.events(stopped.is_set)) as events:
                for event in events:
                    self._send("event", number, event)
                    if stopped.is_set():
                        break
        except Stopped:
            pass
        except BaseException as error:  # panics of extensions, too: nobody may wait for ever
            failed = error
        with suppress(OSError):
            self._end(number, task, failed)

    def _end(self, number: int, task: Task[Any, Any], error: BaseException | None) -> None:
        """Say that a task is over; if it failed, by a sentence, and whether it was the input."""
        self._stopped.pop(number, None)
        failed: tuple[str, bool] | None = None
        if isinstance(error, NeuralvizError):
            failed = str(error), isinstance(error, TextError | SettingsError)
        elif error is not None:
            _log.error("The run “%s” failed.", task.label, exc_info=error)
            failed = describe_unexpected(error), False
        self._send("end", number, failed)

    def _send(self, kind: str, number: int, value: Any) -> None:
        with self._sending:
            self._connection.send((kind, number, value))


if __name__ == "__main__":
    main()
