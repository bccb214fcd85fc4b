"""Finding the text that kills the processes that embed it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

KILLED = "killed every process that embedded it."
TWICE = 2  # processes over one part, until the part is to blame, and not its machine


class Attempt:
    """One more process embeds a unit of texts, and notes in a file which part it is working on.

    Ray gives the unit of a process that was killed to another one, and that finds the file. It
    goes through the unit batch by batch. The texts of a batch over which two more were killed are
    embedded one by one, and a text over which two were killed is left out.

    Args:
        folder: of one run; all machines see it.
        unit: names the unit.
        batches: [batch] of places of its texts, as `embed_batches` takes them.
    """

    def __init__(self, folder: Path, unit: bytes, batches: Sequence[np.ndarray]) -> None:
        self._path = folder / hashlib.blake2b(unit, digest_size=16).hexdigest()
        self._batches = batches
        try:
            self._earlier_parts = self._path.read_text().splitlines()
        except OSError:  # the first one
            self._earlier_parts = []
        self._killed = {name for name, n in Counter(self._earlier_parts).items() if n >= TWICE}

    @property
    def deadly(self) -> list[int]:
        """Places of the texts that are left out."""
        return [i for batch in self._batches for i in batch.tolist() if _name(i) in self._killed]

    def parts(self) -> Iterator[list[np.ndarray]]:
        """Batches to embed before the next ones are asked for."""
        if not self._earlier_parts:
            self._record("all")
            yield list(self._batches)
        else:
            yield from self._split_batches()

    def close(self) -> None:
        """Forget the attempt: the unit is done, or has failed without killing a process."""
        with suppress(OSError):
            self._path.unlink()

    def _split_batches(self) -> Iterator[list[np.ndarray]]:
        for number, batch in enumerate(self._batches):
            if f"batch {number}" not in self._killed:
                self._record(f"batch {number}")
                yield [batch]
                continue
            for place in batch.tolist():
                if _name(place) not in self._killed:
                    self._record(_name(place))
                    yield [np.array([place], dtype=np.int64)]

    def _record(self, part: str) -> None:
        with suppress(OSError):  # the run is over
            self._path.write_text("\n".join([*self._earlier_parts, part]))


def _name(place: int) -> str:
    return f"text {place}"
