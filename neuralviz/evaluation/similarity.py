"""Similarities of the same texts by several methods, and where methods disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy  # its parts are loaded when they are first used

from neuralviz.arrays import unit_vectors
from neuralviz.errors import NeuralvizError
from neuralviz.store.writing import write_pieces

ROUNDING = 1e-6  # of cosine similarities of float32 vectors, whose batches differ
LONGEST_TIE = 1e-5  # of many that differ from the next by rounding
PAIRS_AT_A_TIME = 100_000
PERMUTATIONS, FEWEST_DRAWN = 199, 6  # of texts; texts from which not all are tried
MOST_PERMUTED = 300  # texts
MOST_LABELS = 40  # different ones of a column whose texts are grouped


@dataclass(frozen=True, eq=False)
class Similarity:
    method: str
    texts: tuple[str, ...]
    products: np.ndarray  # [text, text] -1 … 1; 0 with a vector of zeros, NaN where there is none
    zeros: np.ndarray  # [text] whether its vector is one of zeros

    @property
    def has_vector(self) -> np.ndarray:
        return np.isfinite(np.diagonal(self.products))

    @cached_property
    def ranks(self) -> np.ndarray:
        """[text, text] rank of each pair, 1 the most similar, best of equals; NaN if missing."""
        ranks = np.full(self.products.shape, np.nan)
        i, j = pair_indices(len(self.texts))
        places = scipy.stats.rankdata(-self.of_pairs, method="min", nan_policy="omit")
        ranks[i, j] = ranks[j, i] = places
        return ranks

    @cached_property
    def of_pairs(self) -> np.ndarray:
        """[pair] products of different texts, in the order of `pair_indices`, ties made equal."""
        return level_ties(self.products[pair_indices(len(self.texts))])

    def in_order(self, order: Sequence[int] | np.ndarray) -> Similarity:
        order = np.asarray(order, dtype=int)
        return Similarity(
            self.method,
            tuple(self.texts[i] for i in order),
            self.products[np.ix_(order, order)],
            self.zeros[order],
        )


def similarity(method: str, texts: Sequence[str], vectors: np.ndarray) -> Similarity:
    """Products of [text, dim] vectors; NeuralvizError if not finite, except rows all NaN."""
    vectors = np.asarray(vectors, dtype=np.float64)
    missing = np.isnan(vectors).all(axis=1)
    if not np.isfinite(vectors[~missing]).all():
        raise NeuralvizError(
            f"The embeddings by {method} contain infinite or NaN values and cannot be compared."
        )
    units = unit_vectors(vectors)
    products = np.clip(units @ units.T, -1, 1)
    products[missing] = products[:, missing] = np.nan
    return Similarity(method, tuple(texts), products.astype(np.float32), (vectors == 0).all(1))


def level_ties(values: np.ndarray) -> np.ndarray:
    """Values of which those that differ by rounding alone, less than 1e-6, are made equal.

    So are more in a row; where their ends differ by more than 1e-5, they are cut into steps.
    """
    order = np.argsort(values, kind="stable")  # NaN last
    ordered = values[order].astype(np.float64)
    is_new = ~(np.diff(ordered, prepend=-np.inf) <= ROUNDING)
    first, last, row = ordered[is_new], ordered[np.roll(is_new, -1)], is_new.cumsum() - 1
    steps = np.floor((ordered - first[row]) / ROUNDING) * (last - first > LONGEST_TIE)[row]
    levelled = np.empty_like(ordered)
    levelled[order] = first[row] + steps * ROUNDING
    return levelled


def pair_indices(n_texts: int) -> tuple[np.ndarray, np.ndarray]:
    """First and second text of every pair of different texts, the first before the second."""
    return np.triu_indices(n_texts, k=1)


def rank_differences(first: Similarity, second: Similarity) -> np.ndarray:
    """[text, text] ranks by which ``first`` puts a pair above ``second``; NaN if missing."""
    return second.ranks - first.ranks


def rank_correlations(similarities: Sequence[Similarity]) -> np.ndarray:
    """[method, method] Spearman's of products over shared pairs; NaN if a method is constant."""
    import pandas as pd

    products = pd.DataFrame(dict(enumerate(s.of_pairs for s in similarities))).dropna()
    return products.corr("spearman").to_numpy()


@dataclass(frozen=True, eq=False)
class Disagreements:
    """Numbers of pairs of texts, greatest disagreement first."""

    first: np.ndarray
    second: np.ndarray
    products: np.ndarray  # [pair, method]
    ranks: np.ndarray  # [pair, method] places among all pairs, 1 for the most similar
    spread: np.ndarray  # [pair] 0 … 1 largest place minus the smallest, over the number of pairs


def disagreements(similarities: Sequence[Similarity]) -> Disagreements:
    """Pairs whose ranks differ most between methods, of those that all methods have."""
    # ranks, not products, which methods spread differently
    i, j = pair_indices(len(similarities[0].texts))
    products = np.stack([s.of_pairs for s in similarities], axis=1)
    is_done = np.isfinite(products).all(axis=1)
    i, j, products = i[is_done], j[is_done], products[is_done]
    places = [scipy.stats.rankdata(-of_method, method="average") for of_method in products.T]
    ranks = np.stack([s.ranks[i, j] for s in similarities], axis=1)
    apart = np.ptp(np.stack(places, axis=1), axis=1) if len(i) else np.zeros(0)
    spread = apart / max(len(i), 1)
    order = np.argsort(-spread, kind="stable")
    return Disagreements(i[order], j[order], products[order], ranks[order], spread[order])


def order_by_cluster(similarity: Similarity) -> np.ndarray:
    """[text] order by average linkage of 1 − product; texts without vectors come last."""
    finished = np.flatnonzero(similarity.has_vector)
    rest = np.flatnonzero(~similarity.has_vector)
    if len(finished) < 3:
        return np.concatenate([finished, rest])
    hierarchy = scipy.cluster.hierarchy
    distances = 1 - similarity.products[np.ix_(finished, finished)].astype(np.float64)
    np.fill_diagonal(distances, 0)
    condensed = scipy.spatial.distance.squareform(np.maximum(distances, 0), checks=False)
    tree = hierarchy.linkage(condensed, "average", optimal_ordering=True)
    return np.concatenate([finished[hierarchy.leaves_list(tree)], rest])


def order_by_label(labels: Sequence[str]) -> np.ndarray:
    """[text] order by label, labels in order of appearance."""
    first = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return np.argsort([first[label] for label in labels], kind="stable")


def are_ordered(labels: Sequence[str]) -> bool:
    """Whether the texts of each label follow each other."""
    return bool((np.diff(order_by_label(labels)) == 1).all())


def usable_labels(labels: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of labels that most texts share, with 2 to 40 different values."""
    nonempty = {name: [value for value in values if value] for name, values in labels.items()}
    return [
        name
        for name, values in nonempty.items()
        if 1 < len(set(values)) <= min(MOST_LABELS, (len(values) + 1) // 2)
    ]


def nearest_shares(similarity: Similarity, labels: Sequence[str]) -> np.ndarray:
    """[labelled text] share of its most similar texts, of one if none ties, with its label."""
    is_used = similarity.has_vector & np.array([bool(label) for label in labels])
    if is_used.sum() < 2:
        return np.zeros(0)
    products = similarity.products[np.ix_(is_used, is_used)].astype(float)
    np.fill_diagonal(products, -np.inf)
    used_labels = np.asarray(labels)[is_used]
    is_nearest = products >= products.max(axis=1, keepdims=True) - ROUNDING
    has_label = used_labels[:, None] == used_labels
    return (has_label & is_nearest).sum(axis=1) / is_nearest.sum(axis=1)


def random_share(labels: Sequence[str]) -> float:
    """The share of the other texts that have a text's label, on average over labelled texts."""
    counts = np.array(list(Counter(filter(None, labels)).values()))
    n = counts.sum()
    return float((counts * (counts - 1)).sum() / (n * (n - 1)))


@lru_cache(maxsize=16)
def agree_by_chance(first: Similarity, second: Similarity) -> float:
    """The share of permutations of the texts in which two methods agree as well (Mantel 1967).

    All permutations of up to five texts, 199 drawn ones of more, and the texts as they are; of
    more than 300 texts, 300 are drawn.
    """
    draw = np.random.default_rng(0)
    rows = np.flatnonzero(first.has_vector & second.has_vector)
    if len(rows) > MOST_PERMUTED:
        rows = draw.choice(rows, MOST_PERMUTED, replace=False)
    n = len(rows)
    ranks = np.zeros((2, n, n))
    for method, similarity in enumerate((first, second)):
        ranks[method][pair_indices(n)] = scipy.stats.rankdata(similarity.in_order(rows).of_pairs)
    fixed, moved = ranks + ranks.swapaxes(1, 2)
    drawn = (draw.permutation(n) for _ in range(PERMUTATIONS))
    orders = permutations(range(n)) if n < FEWEST_DRAWN else chain([range(n)], drawn)
    sums = np.array([(fixed * moved[order][:, order]).sum() for order in map(list, orders)])
    return float((sums >= sums[0]).mean())


def least_alike(similarities: Sequence[Similarity]) -> tuple[int, int]:
    """The two methods that agree least; the first two if unknown."""
    correlations = np.nan_to_num(rank_correlations(similarities), nan=2)
    pairs = zip(*np.triu_indices(len(similarities), k=1), strict=True)
    first, second = min(pairs, key=correlations.__getitem__)
    return int(first), int(second)


def furthest_apart(
    first: Similarity, second: Similarity, hardly_read: Sequence[int] = ()
) -> tuple[int, int] | None:
    """The two texts whose ranks by two methods differ most; None if no pair has both."""
    pairs = order_apart(first, second, hardly_read)
    return (int(pairs[0, 0]), int(pairs[0, 1])) if len(pairs) else None


def order_apart(
    first: Similarity, second: Similarity, hardly_read: Sequence[int] = ()
) -> np.ndarray:
    """[pair, 2] texts that have ranks by both methods, those that differ most first.

    Texts ``hardly_read`` are among them only if no others differ.
    """
    i, j = pair_indices(len(first.texts))
    apart = np.abs(first.ranks[i, j] - second.ranks[i, j])
    is_read = ~np.isin([i, j], hardly_read).any(axis=0)
    if np.nanmax(apart[is_read], initial=0) > 0:
        apart[~is_read] = np.nan
    order = np.argsort(-apart, kind="stable")[: np.isfinite(apart).sum()]  # NaN last
    return np.stack([i, j], axis=1)[order]


def most_similar(similarity: Similarity) -> np.ndarray:
    """[pair, 2] places of the texts that are most similar, with two decimals; several if equal."""
    pairs = np.column_stack(pair_indices(len(similarity.texts)))
    products = np.round(similarity.of_pairs, 2)
    return pairs[products == products[np.isfinite(products)].max(initial=-np.inf)]


def write_products(path: Path, similarities: Sequence[Similarity], ids: Sequence[str]) -> None:
    """Write a row per method and pair of texts; on NeuralvizError the old file remains."""
    write_pieces(path, (piece for result in similarities for piece in _product_pieces(result, ids)))


def _product_pieces(similarity: Similarity, ids: Sequence[str]) -> Iterator[pa.Table]:
    id_column, texts = pa.array(ids, pa.string()), pa.array(similarity.texts, pa.string())
    first, second = pair_indices(len(similarity.texts))
    for start in range(0, len(first), PAIRS_AT_A_TIME):
        i, j = (indices[start : start + PAIRS_AT_A_TIME] for indices in (first, second))
        columns = {
            "method": pa.repeat(pa.scalar(similarity.method), len(i)),
            "id1": id_column.take(pa.array(i)),
            "id2": id_column.take(pa.array(j)),
            "text1": texts.take(pa.array(i)),
            "text2": texts.take(pa.array(j)),
            "product": pa.array(similarity.products[i, j], pa.float32()),
            "rank": pa.array(similarity.ranks[i, j].astype(np.int64)),
        }
        yield pa.table(columns)
