"""The nearest of many vectors for a great many new ones, by groups of them.

A new vector is compared with those of the nearest groups alone (an inverted file), which may miss a
few. Everything is decided by the vectors and the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuralviz.embedders.base import unit_vectors
from neuralviz.maps.distances import ROWS, from_keys, pair_distances, smallest, sort_keys
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.settings import SEED

PROBES = 32  # groups that a new vector is compared with
ROUNDS = 8  # of finding the centres
LEARNT_FROM = 100  # vectors a group, which its centre is found by
COMPARED = 4  # times as many as wanted whose distances are computed once more, exactly

_VECTORS, _REST = "vectors.npy", "groups.npz"


@dataclass(frozen=True, eq=False)
class Grouped:
    """Vectors in groups.

    Attributes:
        vectors: [text, dim] float32, group by group.
        rows: [text] int32 the number of each.
        starts: [group + 1] where each group begins, and the end.
        centres: [group, dim] float32, of what `_flat` makes of vectors.
        middle: [dim] float32 of all vectors; zeros for ``cosine``.
        metric: ``cosine``, ``euclidean`` or ``manhattan``.
    """

    vectors: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    centres: np.ndarray
    middle: np.ndarray
    metric: str

    def save(self, folder: Path) -> None:
        """Write it into a folder, for `open_grouped`."""
        np.save(folder / _VECTORS, self.vectors)
        np.savez(
            folder / _REST,
            rows=self.rows,
            starts=self.starts,
            centres=self.centres,
            middle=self.middle,
            metric=np.array(self.metric),
        )


def open_grouped(folder: Path) -> Grouped:
    """What `Grouped.save` wrote; processes that open it share the vectors."""
    with np.load(folder / _REST, allow_pickle=False) as file:
        rest = dict(file)
    vectors = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
    return Grouped(vectors, metric=str(rest.pop("metric")), **rest)


def group(vectors: np.ndarray, metric: str) -> Grouped:
    """Divide vectors into groups, about as many as the root of their number.

    Args:
        vectors: [text, dim] float32, finite.
        metric: one of ``METRICS``.
    """
    n, dim = vectors.shape
    n_groups = max(1, round(n**0.5))
    random = np.random.default_rng(SEED)
    middle = np.zeros(dim, np.float32) if metric == "cosine" else vectors.mean(axis=0)
    drawn = random.choice(n, min(n, n_groups * LEARNT_FROM), replace=False)
    some = _flat(vectors[drawn], middle, metric)
    centres = some[:n_groups].copy()
    for _ in range(ROUNDS):
        of = _nearest_centres(some, centres, 1)[:, 0]
        order = np.argsort(of, kind="stable")
        sizes = np.bincount(of, minlength=n_groups)
        filled = np.flatnonzero(sizes)
        starts = np.cumsum(sizes) - sizes
        sums = np.add.reduceat(some[order], starts[filled], axis=0)
        centres[filled] = sums / sizes[filled, None]
    parts = (vectors[at : at + ROWS * 8] for at in range(0, n, ROWS * 8))
    of = np.concatenate(
        [_nearest_centres(_flat(part, middle, metric), centres, 1)[:, 0] for part in parts]
    )
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(n_groups + 1))
    return Grouped(vectors[order], order.astype(np.int32), starts, centres, middle, metric)


def nearest_of_groups(
    grouped: Grouped, queries: np.ndarray, k: int, probes: int = PROBES
) -> Neighbours:
    """The texts nearest to new vectors, of which a few may be missed.

    Args:
        grouped: the texts.
        queries: [query, dim] float32, finite.
        k: texts a query; there must be as many.
        probes: groups that each is compared with, and more where these have not ``k`` texts.

    Returns:
        [query, k] numbers of texts, and exact distances to these; a text with the query's own
        vector counts, at distance 0.
    """
    flat = _flat(queries, grouped.middle, grouped.metric)
    sizes = np.diff(grouped.starts)
    probes = min(max(probes, _enough(sizes, k)), len(sizes))
    probed = _nearest_centres(flat, grouped.centres, probes).ravel()
    wanted = min(COMPARED * k, len(grouped.vectors))
    best = np.full((len(queries), probes, wanted), np.inf, dtype=np.float32)
    places = np.zeros(best.shape, dtype=np.int32)
    order = np.argsort(probed, kind="stable")
    ends = np.searchsorted(probed[order], np.arange(len(sizes) + 1))
    for one in np.flatnonzero(sizes).tolist():
        slots = order[ends[one] : ends[one + 1]]
        if not len(slots):
            continue
        start, stop = grouped.starts[one], grouped.starts[one + 1]
        members = _flat(grouped.vectors[start:stop], grouped.middle, grouped.metric)
        scores = _scores(flat[slots // probes], members)
        n = min(wanted, stop - start)
        near = np.argpartition(scores, n - 1, axis=1)[:, :n]
        at = np.divmod(slots, probes)
        best[(*at, slice(n))] = np.take_along_axis(scores, near, axis=1)
        places[(*at, slice(n))] = start + near
    shape = (len(queries), -1)
    chosen = np.argpartition(best.reshape(shape), wanted - 1, axis=1)[:, :wanted]
    missing = np.isinf(np.take_along_axis(best.reshape(shape), chosen, axis=1))
    candidates = np.take_along_axis(places.reshape(shape), chosen, axis=1)
    return _exactly(grouped, queries, candidates, missing, k)


def _exactly(
    grouped: Grouped, queries: np.ndarray, places: np.ndarray, missing: np.ndarray, k: int
) -> Neighbours:
    """The nearest ``k`` of some candidates."""
    indices = np.zeros((len(queries), k), dtype=np.int32)
    distances = np.zeros((len(queries), k), dtype=np.float32)
    step = 256
    for first in range(0, len(queries), step):
        at = slice(first, first + step)
        near = grouped.vectors[places[at]].astype(np.float64)
        apart = pair_distances(queries[at].astype(np.float64), near, grouped.metric)
        keys = sort_keys(apart, grouped.rows[places[at]].astype(np.int64))
        keys[missing[at]] = np.iinfo(np.int64).max
        indices[at], distances[at] = from_keys(np.sort(smallest(keys, k), axis=1))
    return Neighbours(indices, distances, grouped.metric)


def _flat(vectors: np.ndarray, middle: np.ndarray, metric: str) -> np.ndarray:
    """[text, dim] float32 vectors whose straight distances say which are near."""
    if metric == "cosine":
        return unit_vectors(vectors).astype(np.float32)
    return (vectors - middle).astype(np.float32)


def _scores(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[a, b] float32 that rise with the straight distance from each of ``a``."""
    return np.einsum("ij,ij->i", b, b) / 2 - a @ b.T


def _nearest_centres(flat: np.ndarray, centres: np.ndarray, k: int) -> np.ndarray:
    """[text, k] the nearest centres, in any order."""
    found = np.zeros((len(flat), k), dtype=np.int64)
    for first in range(0, len(flat), ROWS * 8):
        at = slice(first, first + ROWS * 8)
        scores = _scores(flat[at], centres)
        found[at] = (
            scores.argmin(axis=1)[:, None]
            if k == 1
            else np.argpartition(scores, k - 1, axis=1)[:, :k]
        )
    return found


def _enough(sizes: np.ndarray, k: int) -> int:
    """How many groups hold ``k`` texts, whichever they are."""
    return int(np.searchsorted(np.cumsum(np.sort(sizes)), k)) + 1
