"""A process that carries out pickled tasks from standard input and reports on standard output."""

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

NICENESS = 5  # pages take precedence over work

_log = logging.getLogger(__name__)


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
        """Carry out a task; send events, then any failure and whether the input caused it."""
        should_stop = self._stop_asked[number].is_set
        failure: tuple[str, bool] | None = None
        try:
            task.carry_out(lambda event: self._send("event", number, event), should_stop)
        except Stopped:
            pass
        except NeuralvizError as error:
            failure = str(error), isinstance(error, TextError | SettingsError)
        except BaseException as error:  # even panics of extensions: no reader may wait for ever
            _log.error("A run failed: %s.", type(task).__name__, exc_info=error)
            failure = describe_unexpected(error), False
        del self._stop_asked[number]
        self._send("end", number, failure)

    def _send(self, kind: str, number: int, value: Any) -> None:
        message = pickle.dumps((kind, number, value))
        with self._sending, suppress(OSError):  # the server is gone
            self._output.write(message)
            self._output.flush()


if __name__ == "__main__":
    main()
