"""The library `transformers`, used by one thread at a time and without its messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.RLock()


@contextmanager
def quiet_transformers() -> Iterator[Any]:
    """Import from `transformers`, which it gives, and load with it in here.

    The package puts another module in its place when its import ends, and its parts are imported at
    first use: two threads at once may be left with a module that has nothing in it. Progress bars
    and warnings, which are kept from the terminal, are switched for the whole process.
    """
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
