"""The rows of a dataset of Ray, as they come."""

from __future__ import annotations

import threading
from collections.abc import Generator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ray.data

PATIENCE = 5.0  # seconds for the work under way, when nobody wants more rows


def iterate_rows(dataset: ray.data.Dataset) -> Generator[dict[str, Any]]:
    """The rows of a dataset, as they are made.

    They come out of a thread of their own. Ctrl-C raises in the main thread at whatever line that
    is; amid Ray's code, which waits for its own threads under locks, it may get lost, or be waited
    for without end. So the main thread only waits for rows.

    Args:
        dataset: that has not run yet; of small rows, for they do not wait until they are wanted.
            It ends when the generator is closed.

    Raises:
        RayError: as of Ray.
    """
    results: SimpleQueue[dict[str, Any] | BaseException | None] = SimpleQueue()
    unwanted = threading.Event()

    def bring() -> None:
        try:
            for row in dataset.iter_rows():
                results.put(row)
                if unwanted.is_set():
                    return
            results.put(None)
        except BaseException as error:
            results.put(error)

    thread = threading.Thread(target=bring, name="rows of Ray", daemon=True)
    try:
        thread.start()
        while (result := results.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        unwanted.set()
        if thread.ident is not None:
            thread.join(PATIENCE)
