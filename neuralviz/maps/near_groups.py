"""Approximate neighbours by an inverted file, shared on disk (Jégou, Douze and Schmid 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.errors import ShouldStop, Stopped, never
from neuralviz.maps.neighbours import Neighbours, pair_distances, sort_keys, split_keys

PROBED = 64  # groups
ROUNDS = 8  # k-means iterations
ROWS = 8192  # vectors compared with all centres at once
RANKED = 512  # queries ranked exactly at once
SPARE = 8  # extra candidates, as float32 rounds
SPARE_MANHATTAN = 4  # multiple of those wanted, as candidates are Euclidean

_ARRAYS = ("vectors", "texts", "centres", "starts")


@dataclass(frozen=True, eq=False)
class NearGroups:
    """Vectors sorted by group."""

    vectors: np.ndarray  # [text, dim] float32 sorted by group, unit length for cosine
    texts: np.ndarray  # [text] int32 row of each vector
    centres: np.ndarray  # [group, dim] float32
    starts: np.ndarray  # [group + 1] start of each group
    metric: str  # one of ``METRICS``

    @classmethod
    def build(
        cls, vectors: np.ndarray, metric: str, seed: int, *, should_stop: ShouldStop = never
    ) -> NearGroups:
        """Divide vectors into about √n groups (Lloyd 1982)."""
        data = _scale(vectors, metric)
        n = len(data)
        n_groups = max(1, round(n**0.5))
        drawn = np.random.default_rng(seed).choice(n, n_groups, replace=False)
        centres = data[np.sort(drawn)].copy()
        group = np.zeros(n, dtype=np.int64)
        for last in range(ROUNDS + 1):
            if should_stop():
                raise Stopped
            for start in range(0, n, ROWS):
                rows = slice(start, start + ROWS)
                group[rows] = _closeness(data[rows], centres).argmin(axis=1)
            if last == ROUNDS:
                break
            order = np.argsort(group, kind="stable")
            occupied, first = np.unique(group[order], return_index=True)
            for number, members in zip(occupied, np.split(order, first[1:]), strict=True):
                centres[number] = data[members].mean(axis=0, dtype=np.float64)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(n_groups + 1))
        return cls(data[order], order.astype(np.int32), centres, starts, metric)

    def save(self, folder: Path) -> None:
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, metric: str) -> NearGroups:
        """Memory-map the arrays that `save` wrote."""
        vectors, texts, centres, starts = (
            np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS
        )
        return cls(vectors, texts, centres, starts, metric)

    def nearest(self, queries: np.ndarray, k: int) -> Neighbours:
        """About the ``k`` nearest texts of [query, dim] vectors, including the query itself."""
        scaled = _scale(queries, self.metric)
        n_kept = k * SPARE_MANHATTAN if self.metric == "manhattan" else k + SPARE
        places = self._candidates(scaled, min(n_kept, len(self.texts)))
        best_keys = np.zeros((len(scaled), k), dtype=np.int64)
        for start in range(0, len(scaled), RANKED):
            rows = slice(start, start + RANKED)
            candidates = places[rows]
            exact_distances = pair_distances(
                scaled[rows].astype(np.float64),
                self.vectors[candidates].astype(np.float64),
                self.metric,
            )
            keys = sort_keys(exact_distances, self.texts[candidates].astype(np.int64))
            best_keys[rows] = np.sort(keys, axis=1)[:, :k]
        indices, distances = split_keys(best_keys)
        return Neighbours(indices, distances, self.metric)

    def _candidates(self, queries: np.ndarray, n: int) -> np.ndarray:
        """[query, n] candidate positions, by float32 distances."""
        groups = self._probe_groups(queries, n)
        best = np.full((len(queries), n), np.inf, dtype=np.float32)
        places = np.zeros((len(queries), n), dtype=np.int64)
        order = np.argsort(groups, axis=None, kind="stable")
        ends = np.searchsorted(groups.ravel()[order], np.arange(len(self.centres) + 1))
        query_rows = order // groups.shape[1]
        for group in range(len(self.centres)):
            askers = query_rows[ends[group] : ends[group + 1]]
            first, last = int(self.starts[group]), int(self.starts[group + 1])
            if not len(askers) or first == last:
                continue
            near = _closeness(queries[askers], self.vectors[first:last])
            positions = np.broadcast_to(np.arange(first, last), near.shape)
            near, positions = _keep_smallest(near, positions, n)
            best[askers], places[askers] = _keep_smallest(
                np.concatenate([best[askers], near], axis=1),
                np.concatenate([places[askers], positions], axis=1),
                n,
            )
        return places

    def _probe_groups(self, queries: np.ndarray, n: int) -> np.ndarray:
        """[query, group] nearest groups, enough to hold ``n`` vectors."""
        sizes = np.sort(np.diff(self.starts))
        n_probed = max(PROBED, int(np.searchsorted(np.cumsum(sizes), n)) + 1)
        n_probed = min(n_probed, len(self.centres))
        probed = np.zeros((len(queries), n_probed), dtype=np.int64)
        for start in range(0, len(queries), ROWS):
            rows = slice(start, start + ROWS)
            near = _closeness(queries[rows], self.centres)
            probed[rows] = np.argpartition(near, n_probed - 1, axis=1)[:, :n_probed]
        return probed


def _scale(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Vectors whose Euclidean distance ranks neighbours."""
    scaled = unit_vectors(vectors) if metric == "cosine" else vectors
    return np.ascontiguousarray(scaled, dtype=np.float32)


def _closeness(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """[query, vector] squared distance minus the query's squared length."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    return squares - 2 * (queries @ vectors.T)


def _keep_smallest(near: np.ndarray, places: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``n`` smallest of each row, unsorted, with their places."""
    order = np.argpartition(near, min(n, near.shape[1]) - 1, axis=1)[:, :n]
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(places, order, axis=1)
