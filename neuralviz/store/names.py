"""Names of what people keep."""

from __future__ import annotations

import re

from neuralviz.errors import StoreError

MAX_NAME = 80  # characters


def tidy_name(name: str) -> str:
    """A name without what cannot be printed, and not too long.

    Raises:
        StoreError: nothing is left of it.
    """
    printable = "".join(c if c.isprintable() else " " for c in name)
    tidied = " ".join(printable.split())[:MAX_NAME].strip()
    if not tidied:
        raise StoreError("Enter a name for the corpus.")
    return tidied


def name_pattern(name: str) -> re.Pattern[str]:
    """The names that something called like this may have got: a number behind it counts.

    Raises:
        StoreError: as of `tidy_name`.
    """
    return re.compile(rf"{re.escape(tidy_name(name))}( \(\d+\))?")
