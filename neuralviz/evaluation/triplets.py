"""Broken triplets of anchor, positive and negative (neural paper, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from neuralviz.errors import NeuralvizError, ShouldStop, check_stop, never
from neuralviz.evaluation.broken import (
    BLOCK,
    MAX_COMPARED,
    TIE,
    BrokenCount,
    Overlap,
    add_shared,
    check_compared,
    count_above,
    unit_rows,
)

MAX_PRODUCTS = 4 * 10**10  # of anchors with texts: minutes of work


@dataclass(frozen=True, eq=False)
class WorstTriplets:
    """Broken triplets whose products are furthest from the right order, worst first."""

    # anchor, positive, negative: [triplet] numbers of the texts
    anchor: np.ndarray
    positive: np.ndarray
    negative: np.ndarray
    # alike, unlike: [triplet] products of the anchor with the positive and with the negative
    alike: np.ndarray
    unlike: np.ndarray

    def __len__(self) -> int:
        return len(self.anchor)


@dataclass(frozen=True, eq=False)
class TripletCounts:
    together: BrokenCount
    # wrong, total: [group with anchors] broken triplets, ties included, and triplets there are
    wrong: np.ndarray
    total: np.ndarray


@dataclass(frozen=True, eq=False)
class Grouping:
    group: np.ndarray  # [text] number of its group
    # [text] whether it is an anchor; where some are and some are not, anchors are never positive
    # or negative, as documents beside their summaries. None: every text is all
    anchor: np.ndarray | None = None

    @property
    def n_triplets(self) -> int:
        size = np.bincount(
            self.group[self.candidates], minlength=int(self.group.max(initial=0)) + 1
        )
        same_group = size[self.group[self.anchors]].astype(object)  # Python's: never too large
        positives = same_group - (self.anchor is None)
        return int(np.sum(positives * (int(size.sum()) - same_group)))

    @property
    def anchors(self) -> np.ndarray:
        """Places of anchors, sorted by group."""
        chosen = np.arange(len(self.group)) if self.anchor is None else np.flatnonzero(self.anchor)
        return chosen[np.argsort(self.group[chosen], kind="stable")]

    @property
    def candidates(self) -> np.ndarray:
        """Places of possible positives and negatives, sorted by group."""
        chosen = np.arange(len(self.group)) if self.anchor is None else np.flatnonzero(~self.anchor)
        return chosen[np.argsort(self.group[chosen], kind="stable")]

    def check(self, max_products: int = MAX_PRODUCTS) -> None:
        """Raise NeuralvizError if there are no triplets, or over ``max_products`` products."""
        if len(self.anchors) * len(self.candidates) > max_products:
            raise NeuralvizError(
                f"{len(self.group):,} texts make too many triplets. Use at most 200,000 texts."
            )
        if self.n_triplets:
            return
        n_groups = len(np.unique(self.group))
        if n_groups < 2:
            raise NeuralvizError("All texts are in one group. Triplets need at least two groups.")
        if self.anchor is None:
            raise NeuralvizError(
                f"Each of the {n_groups:,} groups has only one text. Triplets need groups of "
                "at least two texts."
            )
        raise NeuralvizError(
            "No anchor has both a positive and a negative. Triplets need an anchor, another "
            "text of its group and a text of another group."
        )


def count_triplets(
    vectors: ArrayLike, grouping: Grouping, *, should_stop: ShouldStop = never
) -> TripletCounts:
    """Count triplets (A, B, C) of [text, dim] vectors with ``A·B ≤ A·C`` (neural paper, Eq. 2).

    A is an anchor, B another text of its group, C one of another group. `BLOCK` bounds the
    products in memory, except for a single anchor. Raises Stopped, and NeuralvizError if there are
    no triplets or too many, or a vector is not finite.
    """
    grouping.check()
    strict = 0
    same_sum = diff = 0.0
    anchors, wrong, total = [], [], []
    for anchor, _, alike, unlike in _anchors([unit_rows(vectors)], grouping, should_stop):
        positives, negatives = alike[0], unlike[0]
        near = np.sort(negatives[negatives > positives.min() - TIE])
        anchors.append(anchor)
        wrong.append(count_above(near, positives - TIE))
        total.append(len(positives) * len(negatives))
        strict += count_above(near, positives + TIE, or_equal=True)
        same_sum += float(positives.sum()) * len(negatives)
        diff += float(negatives.sum()) * len(positives)
    n = sum(total)
    _, group = np.unique(grouping.group[anchors], return_inverse=True)
    return TripletCounts(
        BrokenCount(sum(wrong), strict, n, same_sum / n, diff / n),
        np.bincount(group, wrong),
        np.bincount(group, total),
    )


def shared_triplets(
    vectors: Sequence[ArrayLike],
    grouping: Grouping,
    *,
    max_compared: int = MAX_COMPARED,
    should_stop: ShouldStop = never,
) -> Overlap:
    """Triplets that two methods both break (Eq. 3), by [text, dim] vectors of each method.

    Raises as `count_triplets`, and NeuralvizError if there are over ``max_compared`` triplets.
    """
    grouping.check()
    total = grouping.n_triplets
    check_compared(total, "triplets", max_compared)
    units = [unit_rows(of_method) for of_method in vectors]
    shared = np.zeros((len(units), len(units)), dtype=np.int64)
    for _, _, alike, unlike in _anchors(units, grouping, should_stop):
        may_break = (unlike > alike.min(axis=1)[:, None] - TIE).any(axis=0)
        add_shared(shared, alike, unlike[:, may_break])
    return Overlap(shared, total)


def worst_triplets(
    vectors: ArrayLike,
    grouping: Grouping,
    texts: ArrayLike,
    n: int,
    *,
    should_stop: ShouldStop = never,
) -> WorstTriplets:
    """The ``n`` worst broken triplets, one for each anchor's text; raises as `count_triplets`.

    ``texts`` are the [vector] numbers of the texts.
    """
    # furthest positive, nearest negative; a negative equal to the anchor or the positive says
    # nothing of the vectors and is passed over
    grouping.check()
    broken: list[tuple[int, int, int]] = []
    products: list[tuple[float, float]] = []
    candidates, number = grouping.candidates, np.asarray(texts)
    for anchor, place, alike, unlike in _anchors([unit_rows(vectors)], grouping, should_stop):
        positives = candidates[place][candidates[place] != anchor]
        negatives = np.delete(candidates, place)
        far = int(alike[0].argmin())
        is_same_text = np.isin(number[negatives], number[[anchor, positives[far]]])
        near = int(np.where(is_same_text, -np.inf, unlike[0]).argmax())
        if not is_same_text[near] and unlike[0, near] > alike[0, far] - TIE:
            broken.append((anchor, int(positives[far]), int(negatives[near])))
            products.append((float(alike[0, far]), float(unlike[0, near])))
    rows = np.array(broken, dtype=np.int64).reshape(-1, 3)
    product_pairs = np.array(products).reshape(-1, 2)
    order = np.argsort(product_pairs[:, 0] - product_pairs[:, 1], kind="stable")
    _, first = np.unique(number[rows[order, 0]], return_index=True)  # of each anchor's text
    worst = order[np.sort(first)[:n]]
    return WorstTriplets(*number[rows[worst]].T, *product_pairs[worst].T)


def _anchors(
    units: Sequence[np.ndarray], grouping: Grouping, should_stop: ShouldStop
) -> Iterator[tuple[int, slice, np.ndarray, np.ndarray]]:
    """Each anchor, the place of its group among the candidates, and two arrays of products.

    These are [method, positive] and [method, negative].
    """
    anchors, candidates = grouping.anchors, grouping.candidates
    group = grouping.group[candidates]  # sorted
    first = np.searchsorted(group, grouping.group[anchors], "left")
    last = np.searchsorted(group, grouping.group[anchors], "right")
    texts = [of_method[candidates] for of_method in units]
    n_at_once = max(1, BLOCK // max(1, len(candidates) * len(units)))
    for start in range(0, len(anchors), n_at_once):
        check_stop(should_stop)
        anchor_block = anchors[start : start + n_at_once]
        products = np.stack(
            [
                of_method[anchor_block] @ rows.T
                for of_method, rows in zip(units, texts, strict=True)
            ],
            axis=1,
        )
        for row, anchor, a, b in zip(
            products, anchor_block, first[start:], last[start:], strict=False
        ):
            place = slice(a, b)
            alike, unlike = row[:, place], np.delete(row, place, axis=1)
            if grouping.anchor is None:  # a text is no positive of its own
                alike = alike[:, candidates[place] != anchor]
            if alike.size and unlike.size:
                yield int(anchor), place, alike, unlike
