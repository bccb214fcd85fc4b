"""Whether near texts have similar numbers: a rank correlation with a permutation test."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from neuralviz.maps.neighbours import Neighbours

PERMUTATIONS = 999  # none of which may reach the correlation,
DEVIATIONS = 4  # which is as many standard deviations above their mean: p < 0.0001
FEWEST_NUMBERS = 20  # texts with a number
MOST_TESTED = 1000  # texts; a random sample of more


class Trend(NamedTuple):
    correlation: float  # Spearman's, of a text's number and its neighbours' mean
    n_texts: int
    is_decided: bool  # whether no permutation of the numbers comes near it


def find_trend(
    near: Neighbours,  # of ``rows``, nearest first
    rows: np.ndarray,  # [query] texts
    numbers: np.ndarray,  # [text], NaN for none, of all texts
) -> Trend | None:
    """The trend of texts that have a number and a neighbour with one; None for too few.

    The null hypothesis is that the numbers of all texts that are compared are exchangeable.
    """
    has_number = np.isfinite(numbers)
    usable = np.flatnonzero(has_number[rows] & has_number[near.indices].any(axis=1))
    if len(usable) > MOST_TESTED:
        usable = np.random.default_rng(0).choice(usable, MOST_TESTED, replace=False)
    texts, neighbours = rows[usable], near.indices[usable]
    compared = np.unique(np.concatenate([texts, neighbours.ravel()]))
    compared = compared[has_number[compared]]
    values = numbers[compared].astype(np.float64)
    if len(texts) < FEWEST_NUMBERS or np.ptp(values[np.searchsorted(compared, texts)]) == 0:
        return None
    place = np.full(len(numbers), len(compared))  # behind the last, for those without a number
    place[compared] = np.arange(len(compared))
    own_places, other_places = place[texts], place[neighbours]
    n_others = (other_places < len(compared)).sum(axis=1)

    def correlate(values: np.ndarray) -> float:
        means = np.append(values, 0)[other_places].sum(axis=1) / n_others
        return correlate_ranks(values[own_places], means)

    observed = correlate(values)
    return Trend(observed, len(texts), _is_decided(observed, correlate, values))


def _is_decided(
    observed: float, correlate: Callable[[np.ndarray], float], values: np.ndarray
) -> bool:
    """Whether no permutation comes near; stops at the first that reaches ``observed``."""
    draw = np.random.default_rng(0)
    by_chance: list[float] = []
    while len(by_chance) < PERMUTATIONS:
        by_chance.append(correlate(draw.permutation(values)))
        if by_chance[-1] >= observed:
            return False
    return bool(observed >= np.mean(by_chance) + DEVIATIONS * np.std(by_chance))


def correlate_ranks(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation of two [text] arrays, ties at their mean rank; 0 if undefined."""
    a, b = (_rank(values) for values in (x, y))
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size else 0.0


def _rank(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, as scipy's ``rankdata`` minus 1 without its slow import."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts + 1) / 2)[place]


def mean_by_cluster(numbers: np.ndarray, labels: np.ndarray, fewest: int) -> dict[int, float]:
    """Mean number by cluster, of those in which ``fewest`` texts have one; -1 is in none."""
    has_number = np.isfinite(numbers) & (labels >= 0)
    n_texts = np.bincount(labels[has_number])
    sums = np.bincount(labels[has_number], numbers[has_number])
    clusters = np.flatnonzero(n_texts >= max(fewest, 1)).tolist()
    return {cluster: float(sums[cluster] / n_texts[cluster]) for cluster in clusters}
