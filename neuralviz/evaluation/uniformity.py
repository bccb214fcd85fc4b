"""Pairs of texts that are alike, or not; their alignment, and how evenly all texts are spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError, Stopped, never
from neuralviz.evaluation.broken import unit_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop


DRAWN_PRODUCTS = 20_000  # of each kind, for histograms
MAX_ALIKE = 1_000_000  # pairs of one group or label, for the alignment


def pair_products(units: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[pair] double precision products; pairs are taken some at a time."""
    out = np.empty(len(first))
    for start in range(0, len(first), DRAWN_PRODUCTS):
        block = slice(start, start + DRAWN_PRODUCTS)
        out[block] = np.einsum("pd,pd->p", units[first[block]], units[second[block]])
    return out


def unlike_pairs(
    group: np.ndarray, anchor: np.ndarray | None, *, limit: int = DRAWN_PRODUCTS, seed: int = 0
) -> np.ndarray:
    """[pair, 2] texts of two groups: all, or ``limit`` of them, drawn.

    Args:
        group: [text] number of its group.
        anchor: [text] whether it is an anchor, first in a pair and never second; None: all are.
    """
    n = len(group)
    first = np.arange(n) if anchor is None else np.flatnonzero(anchor)
    second = np.arange(n) if anchor is None else np.flatnonzero(~anchor)
    if len(first) * len(second) <= 4 * limit:
        pairs = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    else:
        draw = np.random.default_rng(seed)
        shape = 4 * limit
        pairs = np.stack([draw.choice(first, shape), draw.choice(second, shape)], axis=1)
    pairs = pairs[group[pairs[:, 0]] != group[pairs[:, 1]]]
    if anchor is None:  # each two texts once
        pairs = np.sort(pairs, axis=1)
    pairs = np.unique(pairs, axis=0)
    if len(pairs) <= limit:
        return pairs
    return pairs[np.random.default_rng(seed).choice(len(pairs), limit, replace=False)]


def alike_pairs(
    group: np.ndarray, anchor: np.ndarray | None, *, limit: int = MAX_ALIKE, seed: int = 0
) -> np.ndarray:
    """[pair, 2] all pairs of one group, or ``limit`` of them, drawn, as of `unlike_pairs`.

    Where there are anchors, those of an anchor and another text.
    """
    if anchor is not None:
        members = np.flatnonzero(~anchor)
        members = members[np.argsort(group[members], kind="stable")]
        first = np.searchsorted(group[members], group, "left")
        size = np.where(anchor, np.searchsorted(group[members], group, "right") - first, 0)
        before = np.cumsum(size) - size  # pairs of the texts before
        total = int(size.sum())
        draw = np.random.default_rng(seed)
        pairs = np.arange(total) if total <= limit else draw.integers(total, size=limit)
        anchors = np.searchsorted(before + size, pairs, "right")
        return np.stack([anchors, members[first[anchors] + pairs - before[anchors]]], axis=1)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    total = int((sizes * (sizes - 1) // 2).sum())
    if total <= limit:
        within_groups = [
            order[start + np.stack(np.triu_indices(size, 1), axis=1)]
            for start, size in zip(starts, sizes, strict=True)
            if size > 1
        ]
        return np.concatenate(within_groups) if within_groups else np.zeros((0, 2), dtype=np.int64)
    draw = np.random.default_rng(seed)
    weight = sizes * (sizes - 1.0)
    chosen = draw.choice(len(sizes), limit, p=weight / weight.sum())
    first_index = draw.integers(sizes[chosen])
    second = (first_index + 1 + draw.integers(sizes[chosen] - 1)) % sizes[chosen]
    return order[starts[chosen, None] + np.stack([first_index, second], axis=1)]


MAX_TEXTS = 20_000
_ROWS = 1024


@dataclass(frozen=True)
class Uniformity:
    """Two sides of a good embedding (Wang & Isola 2020).

    Attributes:
        alignment: mean squared distance of vectors that should be near, 0 … 4; None where no two
            texts are alike.
        uniformity: logarithm of the mean of ``exp(−2 d²)`` over all pairs of different texts, -8 …
            0; the lower, the more evenly they are spread.
        n_texts: texts whose pairs were taken: all, or the `MAX_TEXTS` of an even sample.
    """

    alignment: float | None
    uniformity: float
    n_texts: int


def alignment_and_uniformity(
    vectors: ArrayLike, alike: np.ndarray, *, seed: int = 0, should_stop: ShouldStop = never
) -> Uniformity:
    """Alignment of [pair, 2] texts that should be near, and uniformity of [text, dim] vectors.

    Raises:
        NeuralvizError: a vector is not finite, or there are fewer than two texts.
        Stopped: ``should_stop`` said so.
    """
    units = unit_rows(vectors)
    if len(units) < 2:
        raise NeuralvizError("Uniformity needs at least two texts.")
    alignment = None
    if len(alike):
        chunks = (alike[start : start + _ROWS] for start in range(0, len(alike), _ROWS))
        squares = (np.square(units[c[:, 0]] - units[c[:, 1]]).sum() for c in chunks)
        alignment = float(sum(squares) / len(alike))
    if len(units) > MAX_TEXTS:
        units = units[np.random.default_rng(seed).choice(len(units), MAX_TEXTS, replace=False)]
    n, total = len(units), 0.0
    for start in range(0, n, _ROWS):
        if should_stop():
            raise Stopped
        products = units[start : start + _ROWS] @ units.T
        total += float(np.exp(4 * products - 4).sum())  # d² = 2 − 2 x·y of unit vectors
    total -= float(np.exp(4 * np.square(units).sum(axis=1) - 4).sum())
    return Uniformity(alignment, float(np.log(total / (n * (n - 1)))), n)
