"""Work that tells its progress to a callback, as a stream of events."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from neuralviz.errors import ShouldStop

E = TypeVar("E")
R = TypeVar("R")


def stream_events(
    work: Callable[[Callable[[E], None], ShouldStop], R], should_stop: ShouldStop
) -> Generator[E, None, R]:
    """Yield the events that ``work`` reports, as they come, and return what it returns.

    Libraries that lay out maps report by callback; this makes a stream of it. The work runs on a
    thread of its own, which is over when the stream is: closing the stream ends the work.

    Args:
        work: called with a function that takes an event, and with what it has to ask whether it
            should stop.
        should_stop: asked again and again by the work.

    Raises:
        What ``work`` raises.
    """
    messages: queue.SimpleQueue[tuple[str, object]] = queue.SimpleQueue()
    is_closed = threading.Event()

    def run() -> None:
        try:
            result = work(
                lambda event: messages.put(("event", event)),
                lambda: is_closed.is_set() or should_stop(),
            )
        except BaseException as error:
            messages.put(("error", error))
        else:
            messages.put(("result", result))

    thread = threading.Thread(target=run, name="neuralviz-callbacks", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = messages.get()
            if kind == "event":
                yield value  # type: ignore[misc]
            elif kind == "error":
                raise value  # type: ignore[misc]
            else:
                return value  # type: ignore[return-value]
    finally:
        is_closed.set()
        thread.join()
