"""Relations between products that embeddings break: triplets, and similar against dissimilar pairs.

Nothing is enumerated to be counted: the products that may break a relation are sorted and looked up
(neural paper, sections 3.2 and 3.3). Products are double precision. Two that differ by less than
`TIE` are a tie, whose order is rounding's; a tie counts as broken, and is left out of
``wrong_strict``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neuralviz.errors import NeuralvizError, Stopped

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop

TIE = 1e-7
MAX_PRODUCTS = 4 * 10**10  # of anchors with texts: minutes of work
MAX_COMPARED = 4 * 10**10  # relations that are compared one by one, for what two methods share
_BLOCK = 1 << 22  # products, or relations, that are in memory at once


@dataclass(frozen=True)
class BrokenCount:
    """How many relations hold.

    Attributes:
        wrong: broken, ties included.
        wrong_strict: broken by more than a tie.
        total: relations there are.
        same, diff: means of the products of what is alike and of what is not, over all relations.
    """

    wrong: int
    wrong_strict: int
    total: int
    same: float
    diff: float

    @property
    def error(self) -> float:
        """Share that is broken, 0 … 1."""
        return self.wrong / self.total


@dataclass(frozen=True, eq=False)
class Overlap:
    """What methods break in common (Eq. 3).

    Attributes:
        shared: [method, method] relations that both break; on the diagonal, those of one.
        total: relations there are.
    """

    shared: np.ndarray
    total: int

    @property
    def share(self) -> np.ndarray:
        """[method, method] ``I``, 0 … 1; NaN with a method that breaks nothing."""
        wrong = np.diag(self.shared)
        fewer = np.minimum(wrong[:, None], wrong[None, :])
        return np.divide(self.shared, fewer, out=np.full(fewer.shape, np.nan), where=fewer > 0)


@dataclass(frozen=True, eq=False)
class WorstTriplets:
    """Broken triplets whose products are furthest from where they should be, the worst first.

    Attributes:
        anchor, positive, negative: [triplet] rows of the vectors.
        alike, unlike: [triplet] products of the anchor with the positive and with the negative.
    """

    anchor: np.ndarray
    positive: np.ndarray
    negative: np.ndarray
    alike: np.ndarray
    unlike: np.ndarray

    def __len__(self) -> int:
        return len(self.anchor)

    def among(self, rows: np.ndarray) -> WorstTriplets:
        """The same where the vectors are ``rows`` of others."""
        return replace(
            self,
            anchor=rows[self.anchor],
            positive=rows[self.positive],
            negative=rows[self.negative],
        )


@dataclass(frozen=True, eq=False)
class Grouping:
    """Texts in groups, from which triplets are made.

    Attributes:
        group: [text] number of its group.
        anchor: [text] whether it is an anchor; where some are and some are not, anchors are never
            positive or negative, as documents beside their summaries. None: every text is all.
    """

    group: np.ndarray
    anchor: np.ndarray | None = None

    @property
    def n_triplets(self) -> int:
        """All that there are."""
        size = np.bincount(self.group[self.others], minlength=int(self.group.max(initial=0)) + 1)
        own = size[self.group[self.anchors]]
        positives = own - (self.anchor is None)
        return int(np.sum(positives.astype(object) * (int(size.sum()) - own.astype(object))))

    @property
    def anchors(self) -> np.ndarray:
        """Texts that are anchors, those of a group together."""
        chosen = np.arange(len(self.group)) if self.anchor is None else np.flatnonzero(self.anchor)
        return chosen[np.argsort(self.group[chosen], kind="stable")]

    @property
    def others(self) -> np.ndarray:
        """Texts that are positive and negative, those of a group together."""
        chosen = np.arange(len(self.group)) if self.anchor is None else np.flatnonzero(~self.anchor)
        return chosen[np.argsort(self.group[chosen], kind="stable")]

    def check(self) -> None:
        """Find out whether there are triplets, and not too many.

        Raises:
            NeuralvizError: all texts are of one group, every group has one text only, or there are
                too many texts.
        """
        if len(self.anchors) * len(self.others) > MAX_PRODUCTS:
            raise NeuralvizError(
                f"{len(self.group):,} texts make too many triplets to be counted in minutes; take "
                "the first 200,000 texts or fewer."
            )
        if self.n_triplets:
            return
        n_groups = len(np.unique(self.group))
        if n_groups < 2:
            raise NeuralvizError(
                "All texts are of one group, so there is no text of another one to tell them from; "
                "triplets need at least two groups."
            )
        if self.anchor is None:
            raise NeuralvizError(
                f"Each of the {n_groups:,} groups has one text only; triplets need groups of at "
                "least two texts that mean the same."
            )
        raise NeuralvizError(
            "No anchor has another text in its group and one outside of it; triplets need anchors "
            "and other texts in at least two groups."
        )


def count_triplets(
    vectors: ArrayLike, grouping: Grouping, *, should_stop: ShouldStop | None = None
) -> BrokenCount:
    """Count the triplets (A, B, C) with ``A·B ≤ A·C`` (neural paper, Eq. 2).

    A is every anchor, B every other text of its group, C every text of another group.

    Args:
        vectors: [text, dim] of any length.
        grouping: of the same texts.
        should_stop: asked between blocks of anchors.

    Raises:
        NeuralvizError: there are no triplets, or too many; or a vector is not finite.
        Stopped: ``should_stop`` said so.
    """
    grouping.check()
    wrong = strict = total = 0
    same = diff = 0.0
    for _, alike, unlike in _anchors([unit_rows(vectors)], grouping, should_stop):
        positives, negatives = alike[0], unlike[0]
        near = np.sort(negatives[negatives > positives.min() - TIE])
        wrong += _above(near, positives - TIE)
        strict += _above(near, positives + TIE, or_equal=True)
        total += len(positives) * len(negatives)
        same += float(positives.sum()) * len(negatives)
        diff += float(negatives.sum()) * len(positives)
    return BrokenCount(wrong, strict, total, same / total, diff / total)


def shared_triplets(
    vectors: Sequence[ArrayLike], grouping: Grouping, *, should_stop: ShouldStop | None = None
) -> Overlap:
    """How many triplets each two methods break both (Eq. 3).

    No more than one anchor's triplets are looked at at a time.

    Args:
        vectors: by method [text, dim].
        grouping, should_stop: as of `count_triplets`.

    Raises:
        NeuralvizError, Stopped: as of `count_triplets`; or there are too many to be compared.
    """
    grouping.check()
    total = grouping.n_triplets
    _check_compared(total, "triplets")
    units = [unit_rows(of_method) for of_method in vectors]
    shared = np.zeros((len(units), len(units)), dtype=np.int64)
    for _, alike, unlike in _anchors(units, grouping, should_stop):
        may_break = (unlike > alike.min(axis=1)[:, None] - TIE).any(axis=0)
        _add_shared(shared, alike, unlike[:, may_break])
    return Overlap(shared, total)


def worst_triplets(
    vectors: ArrayLike,
    grouping: Grouping,
    texts: ArrayLike,
    n: int,
    *,
    should_stop: ShouldStop | None = None,
) -> WorstTriplets:
    """The ``n`` triplets that are broken most, one for each anchor's text.

    An anchor's worst triplet has the positive that is furthest and the negative that is nearest. A
    negative that is the anchor's own text, or the positive's, tells nothing of the vectors and is
    passed over, though it counts as broken.

    Args:
        vectors, grouping, should_stop: as of `count_triplets`.
        texts: [text] a number for each, the same for the same text.
        n: fewer where fewer anchors have a broken triplet.

    Raises:
        NeuralvizError, Stopped: as of `count_triplets`.
    """
    grouping.check()
    found: list[tuple[int, int, int]] = []
    products: list[tuple[float, float]] = []
    others, number = grouping.others, np.asarray(texts)
    for place, alike, unlike in _anchors([unit_rows(vectors)], grouping, should_stop):
        positives, negatives = place.of(others)
        far = int(alike[0].argmin())
        same = np.isin(number[negatives], number[[place.anchor, positives[far]]])
        near = int(np.where(same, -np.inf, unlike[0]).argmax())
        if not same[near] and unlike[0, near] > alike[0, far] - TIE:
            found.append((place.anchor, int(positives[far]), int(negatives[near])))
            products.append((float(alike[0, far]), float(unlike[0, near])))
    rows = np.array(found, dtype=np.int64).reshape(-1, 3)
    both = np.array(products).reshape(-1, 2)
    order = np.argsort(both[:, 0] - both[:, 1], kind="stable")
    _, first = np.unique(number[rows[order, 0]], return_index=True)  # of each anchor's text
    worst = order[np.sort(first)[:n]]
    return WorstTriplets(*rows[worst].T, *both[worst].T)


def count_pairs(similar: ArrayLike, dissimilar: ArrayLike) -> BrokenCount:
    """Count the similar pairs whose product is not above a dissimilar pair's (Eq. 4).

    Args:
        similar, dissimilar: [pair] products.

    Raises:
        NeuralvizError: there is no similar or no dissimilar pair, or a product is not finite.
    """
    alike, unlike = _two_kinds(similar, dissimilar)
    ordered = np.sort(unlike)
    return BrokenCount(
        wrong=_above(ordered, alike - TIE),
        wrong_strict=_above(ordered, alike + TIE, or_equal=True),
        total=len(alike) * len(unlike),
        same=float(alike.mean()),
        diff=float(unlike.mean()),
    )


def shared_pairs(
    similar: Sequence[ArrayLike],
    dissimilar: Sequence[ArrayLike],
    *,
    should_stop: ShouldStop | None = None,
) -> Overlap:
    """How many pairs of pairs each two methods break both (Eq. 3 for Eq. 4).

    Args:
        similar, dissimilar: by method [pair] products, the pairs in one order.
        should_stop: asked again and again.

    Raises:
        NeuralvizError, Stopped: as of `count_pairs`; or there are too many to be compared.
    """
    both = [_two_kinds(*kinds) for kinds in zip(similar, dissimilar, strict=True)]
    alike, unlike = np.stack([one for one, _ in both]), np.stack([other for _, other in both])
    total = alike.shape[1] * unlike.shape[1]
    _check_compared(total, "comparisons of pairs")
    shared = np.zeros((len(both), len(both)), dtype=np.int64)
    _add_shared(shared, alike, unlike, should_stop)
    return Overlap(shared, total)


def unit_rows(vectors: ArrayLike) -> np.ndarray:
    """[text, dim] float64 vectors of length 1; those of zeros stay so.

    Raises:
        NeuralvizError: one is not finite.
    """
    rows = np.array(vectors, dtype=np.float64)
    if not np.isfinite(rows).all():
        broken = int((~np.isfinite(rows)).any(axis=1).sum())
        raise NeuralvizError(
            f"{broken:,} of {len(rows):,} vectors hold something that is no finite number, so "
            "their products mean nothing; choose another model or method."
        )
    peak = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    rows /= np.where(peak > 0, peak, 1)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(length > 0, length, 1)
    return rows


class _Place(NamedTuple):
    """Where an anchor's own group is among the other texts, which are sorted by group."""

    anchor: int
    first: int
    last: int

    def of(self, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Its positives and its negatives among the other texts."""
        own = others[self.first : self.last]
        return own[own != self.anchor], np.concatenate([others[: self.first], others[self.last :]])


def _anchors(
    units: Sequence[np.ndarray], grouping: Grouping, should_stop: ShouldStop | None
) -> Iterator[tuple[_Place, np.ndarray, np.ndarray]]:
    """For each anchor its place, [method, positive] and [method, negative] products."""
    anchors, others = grouping.anchors, grouping.others
    group = grouping.group[others]  # sorted
    first = np.searchsorted(group, grouping.group[anchors], "left")
    last = np.searchsorted(group, grouping.group[anchors], "right")
    texts = [of_method[others] for of_method in units]
    n_at_once = max(1, _BLOCK // max(1, len(others) * len(units)))
    for start in range(0, len(anchors), n_at_once):
        _stop_if(should_stop)
        some = anchors[start : start + n_at_once]
        products = np.stack(
            [of_method[some] @ rows.T for of_method, rows in zip(units, texts, strict=True)], axis=1
        )
        for row, anchor, a, b in zip(products, some, first[start:], last[start:], strict=False):
            alike = row[:, a:b]
            if grouping.anchor is None:  # a text is no positive of its own
                alike = alike[:, others[a:b] != anchor]
            unlike = np.concatenate([row[:, :a], row[:, b:]], axis=1)
            if alike.size and unlike.size:
                yield _Place(int(anchor), int(a), int(b)), alike, unlike


def _above(ordered: np.ndarray, bounds: np.ndarray, *, or_equal: bool = False) -> int:
    """For all bounds together, how many values, which are sorted, are above."""
    below = np.searchsorted(ordered, bounds, "left" if or_equal else "right")
    return int(len(bounds) * len(ordered) - below.sum())


def _add_shared(
    shared: np.ndarray,
    alike: np.ndarray,
    unlike: np.ndarray,
    should_stop: ShouldStop | None = None,
) -> None:
    """Add what each two methods break both.

    ``alike`` is [method, one], ``unlike`` [method, other]; a relation is one with other.
    """
    n_methods, n_unlike = unlike.shape
    at_once = max(1, _BLOCK // max(1, n_methods * n_unlike))
    for start in range(0, alike.shape[1] if n_unlike else 0, at_once):
        _stop_if(should_stop)
        some = alike[:, start : start + at_once]
        broken = unlike[:, None, :] > some[:, :, None] - TIE
        for one in range(n_methods):
            for other in range(one, n_methods):
                both = int(np.count_nonzero(broken[one] & broken[other]))
                shared[one, other] += both
                shared[other, one] += both * (one != other)


def _two_kinds(similar: ArrayLike, dissimilar: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    alike, unlike = (np.asarray(one, dtype=np.float64) for one in (similar, dissimilar))
    if not len(alike) or not len(unlike):
        which = "similar" if not len(alike) else "dissimilar"
        raise NeuralvizError(
            f"There is no {which} pair to compare the others with; both kinds are needed."
        )
    if not (np.isfinite(alike).all() and np.isfinite(unlike).all()):
        raise NeuralvizError(
            "Products that are not finite numbers cannot be compared; choose another model or "
            "method."
        )
    return alike, unlike


def _check_compared(total: int, what: str) -> None:
    if total > MAX_COMPARED:
        raise NeuralvizError(
            f"{total:,} {what} are too many to compare one by one, so what methods break in common "
            "is not told; take fewer texts."
        )


def _stop_if(should_stop: Callable[[], bool] | None) -> None:
    if should_stop is not None and should_stop():
        raise Stopped
