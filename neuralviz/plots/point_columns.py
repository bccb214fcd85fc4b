"""Points for a figure as binary columns, apart from it: sent once, whatever is marked on them.

The traces of the figure say where their points are among the columns, and what is selected is a bit
a point; `ui.live_figure` puts both together in the browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class PointColumns:
    """Points in the order in which they are drawn, and the density of all of which they are some.

    Attributes:
        x, y: [point] float32.
        rows: [point] int32 row numbers that say which texts they are.
        values: [point] float32 by which they are coloured; None where it is not by numbers.
        density: [up, across] uint8, from the bottom.
    """

    x: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    values: np.ndarray | None
    density: np.ndarray

    @cached_property
    def content(self) -> bytes:
        """A line of JSON that says how long they are, and the columns, little-endian."""
        header = {
            "n": len(self.rows),
            "values": self.values is not None,
            "density": list(self.density.shape),
        }
        columns = [self.x, self.y, self.rows, *([] if self.values is None else [self.values])]
        types = ["<f4", "<f4", "<i4", "<f4"]
        parts = [
            np.ascontiguousarray(column, dtype=kind).tobytes()
            for column, kind in zip(columns, types, strict=False)
        ]
        return b"".join([json.dumps(header).encode(), b"\n", *parts, self.density.tobytes()])

    @cached_property
    def digest(self) -> str:
        """Differs from that of any other columns."""
        return hashlib.blake2b(self.content, digest_size=16).hexdigest()


def describe_span(start: int, end: int, *, by_values: bool) -> dict[str, Any]:
    """``meta`` of a trace with the points from one place in the columns to before another.

    Args:
        start, end: the places.
        by_values: whether the values colour them.
    """
    return {"points": [start, end], "values": by_values}


def encode_bits(selected: np.ndarray | None) -> str | None:
    """[point] whether it is selected, as base64 of a bit a point, the lowest first."""
    if selected is None:
        return None
    return base64.b64encode(np.packbits(selected, bitorder="little").tobytes()).decode()
