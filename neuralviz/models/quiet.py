"""The library `transformers`, used by one thread at a time and without its messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.RLock()


@contextmanager
def quiet_transformers() -> Iterator[Any]:
    """Yield `transformers`, silenced; first imports by two threads may leave modules empty."""
    with _lock:
        import transformers

        logging = transformers.logging
        verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield transformers
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()
