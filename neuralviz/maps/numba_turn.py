"""The process's one turn at numba."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from neuralviz.errors import ShouldStop, Stopped, never

_numba = threading.Lock()


@contextmanager
def numba_turn(
    should_stop: ShouldStop = never, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """The process's one turn at numba: UMAP, pynndescent and what else uses its threads.

    Two at once can abort the whole process where numba has no threading layer but its own. Not to
    be entered twice by the same thread.

    Args:
        should_stop: asked every tenth of a second while others have their turn.
        on_wait: called once if others have their turn.

    Raises:
        Stopped: ``should_stop`` said so before the turn came.
    """
    if not _numba.acquire(blocking=False):
        on_wait()
        while not _numba.acquire(timeout=0.1):
            if should_stop():
                raise Stopped
    try:
        import numba

        n_threads = numba.get_num_threads()  # UMAP leaves another number behind when it is stopped
        # numba's OpenMP layer changes the number that torch's kernels use on this thread
        torch = sys.modules.get("torch")
        n_torch_threads = torch.get_num_threads() if torch is not None else 0
        try:
            yield
        finally:
            numba.set_num_threads(n_threads)
            if torch is not None:
                torch.set_num_threads(n_torch_threads)
    finally:
        _numba.release()
