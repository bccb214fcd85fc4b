"""Which cells of a grid and which points lie in an area, by the even-odd rule."""

from __future__ import annotations

import math

import numpy as np

_EDGE = 1e-3  # of a cell: so far from its border a point may have been put into the next one


def cut_cells(starts: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
    """[size, size] whether an edge of an area goes through a cell.

    Args:
        starts, ends: [edge, 2] in cells.
    """
    marks = np.zeros((size + 1, size), dtype=np.int32)  # where cut cells begin and end, upwards
    for (u, v), (to_u, to_v) in zip(starts.tolist(), ends.tolist(), strict=True):
        if u > to_u:
            u, v, to_u, to_v = to_u, to_v, u, v
        first = max(0, math.floor(u - _EDGE))
        last = min(size - 1, math.floor(to_u + _EDGE))
        if first > last or max(v, to_v) < -_EDGE or min(v, to_v) > size + _EDGE:
            continue
        columns = np.arange(first, last + 1)
        if to_u - u > _EDGE:
            slope = (to_v - v) / (to_u - u)
            x_low, x_high = np.clip(columns - _EDGE, u, to_u), np.clip(columns + 1 + _EDGE, u, to_u)
            crossings = np.stack([v + slope * (x_low - u), v + slope * (x_high - u)])
            low, high = crossings.min(axis=0), crossings.max(axis=0)
        else:
            low = np.full(len(columns), min(v, to_v))
            high = np.full(len(columns), max(v, to_v))
        low = np.clip(np.floor(low - _EDGE), 0, size).astype(np.int64)
        high = np.clip(np.floor(high + _EDGE) + 1, 0, size).astype(np.int64)
        marks[low, columns] += 1
        marks[high, columns] -= 1
    return np.cumsum(marks[:-1], axis=0) > 0


def covered_cells(starts: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
    """[size, size] whether the middle of a cell lies in an area."""
    crossings = np.zeros((size, size + 1), dtype=np.int32)
    for (u, v), (to_u, to_v) in zip(starts.tolist(), ends.tolist(), strict=True):
        low, high = min(v, to_v), max(v, to_v)
        rows = np.arange(max(0, math.ceil(low - 0.5)), min(size, math.ceil(high - 0.5)))
        if not len(rows):
            continue
        crossed = u + (rows + 0.5 - v) * ((to_u - u) / (to_v - v))
        crossings[rows, np.clip(np.ceil(crossed - 0.5), 0, size).astype(np.int64)] += 1
    return (np.cumsum(crossings[:, :-1], axis=1) & 1).astype(bool)


def is_inside_area(x: np.ndarray, y: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """[point] whether a ray to the right crosses the edges of an area an odd number of times."""
    order = np.argsort(y, kind="stable")
    across, up = x[order].astype(np.float64), y[order].astype(np.float64)
    is_in = np.zeros(len(order), dtype=bool)
    for (u, v), (to_u, to_v) in zip(
        corners.tolist(), np.roll(corners, -1, axis=0).tolist(), strict=True
    ):
        if v == to_v:
            continue
        first, last = np.searchsorted(up, [min(v, to_v), max(v, to_v)]).tolist()
        span = slice(first, last)
        crossed = u + (up[span] - v) * ((to_u - u) / (to_v - v))
        is_in[span] ^= across[span] < crossed
    is_inside = np.empty(len(order), dtype=bool)
    is_inside[order] = is_in
    return is_inside
