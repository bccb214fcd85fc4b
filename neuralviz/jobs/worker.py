"""A worker: a process that carries out tasks on threads of its own, and tells what happens.

    python -m neuralviz.jobs.worker

Started by `neuralviz.jobs.workers`, which sends pickled messages to its standard input and reads
them from its standard output. Models are loaded once a worker, by the first task that needs them.
It ends when its input does, so that none outlives the process that started it.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from neuralviz.errors import NeuralvizError, SettingsError, Stopped, TextError, describe_unexpected
from neuralviz.jobs.logs import log_as_json
from neuralviz.server_settings import server_settings

if TYPE_CHECKING:
    from neuralviz.jobs.task import Task

NICENESS = 5  # pages are drawn first, and work has what is left of the cores

_log = logging.getLogger(__name__)


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it says when it is over
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if server_settings().json_logs:
        log_as_json()
    messages, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # packages neither read messages nor print among them
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        _Worker(output).serve(messages)
    except (EOFError, OSError):
        pass  # it is gone that started this
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # threads inside torch would end with a complaint


class _Worker:
    """The tasks under way, by the number that they were sent under."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._sending = threading.Lock()
        self._stop_asked: dict[int, threading.Event] = {}

    def serve(self, messages: BinaryIO) -> None:
        """Take in messages; EOFError or OSError when the input ends."""
        while True:
            kind, number, task = pickle.load(messages)  # noqa: S301 - of the server
            if kind == "run":
                self._stop_asked[number] = threading.Event()
                threading.Thread(target=self._carry_out, args=(number, task), daemon=True).start()
            elif (asked := self._stop_asked.get(number)) is not None:  # it may have ended
                asked.set()

    def _carry_out(self, number: int, task: Task[Any, Any]) -> None:
        """Do a task, and send its events and how it failed: a sentence, and if it was the input."""
        should_stop = self._stop_asked[number].is_set
        failure: tuple[str, bool] | None = None
        try:
            task.carry_out(lambda event: self._send("event", number, event), should_stop)
        except Stopped:
            pass
        except NeuralvizError as error:
            failure = str(error), isinstance(error, TextError | SettingsError)
        except BaseException as error:  # panics of extensions, too: nobody may wait for ever
            _log.error("A run failed: %s.", type(task).__name__, exc_info=error)
            failure = describe_unexpected(error), False
        del self._stop_asked[number]
        self._send("end", number, failure)

    def _send(self, kind: str, number: int, value: Any) -> None:
        message = pickle.dumps((kind, number, value))
        with self._sending, suppress(OSError):  # nobody listens any more
            self._output.write(message)
            self._output.flush()


if __name__ == "__main__":
    main()
