"""All measures of one method on one data set, from the vectors of its different texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.evaluation.broken import (
    BrokenCount,
    Overlap,
    WorstTriplets,
    count_pairs,
    count_triplets,
    shared_pairs,
    shared_triplets,
    unit_rows,
    worst_triplets,
)
from neuralviz.evaluation.correlation import (
    Correlation,
    Intervals,
    bootstrap,
    correlate,
    why_undefined,
)
from neuralviz.evaluation.data import (
    DataSet,
    GroupedData,
    LabelledData,
    Measure,
    ParaphraseData,
    ScoredData,
    distinct,
)
from neuralviz.evaluation.neighbourhoods import K, KnnAccuracy, Outvoted, knn_accuracy, outvoted
from neuralviz.evaluation.paraphrases import QualityMap, quality_maps
from neuralviz.evaluation.uniformity import Uniformity, alignment_and_uniformity
from neuralviz.words import many

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop

WORST = 20  # triplets, and texts, that are told in words
DRAWN_PRODUCTS = 20_000  # of each kind, for histograms
MAX_ALIKE = 1_000_000  # pairs of one group or label, for the alignment


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured; None where it was not asked for, is not defined, or failed.

    Attributes:
        correlations, intervals: of products with scores, and where they would lie in other samples.
        pairs: similar against dissimilar pairs (Eq. 4).
        triplets: anchor, positive, negative (Eq. 2).
        worst_triplets: the most broken, their rows places in ``data.texts``.
        neighbours: accuracy of the nearest neighbours' labels.
        outvoted: texts with another label than their neighbours', by place in ``data.texts``.
        uniformity: alignment and uniformity.
        paraphrases: a map of tau-c for each quality.
        failed: measure to why there is none.
        notes: what is to be minded besides.
        products: [pair] or [phrase] of scored pairs and paraphrases; empty elsewhere.
        same, diff: products of what is alike and what is not, a sample where there are many.
    """

    correlations: Correlation | None = None
    intervals: Intervals | None = None
    pairs: BrokenCount | None = None
    triplets: BrokenCount | None = None
    worst_triplets: WorstTriplets | None = None
    neighbours: KnnAccuracy | None = None
    outvoted: tuple[Outvoted, ...] = ()
    uniformity: Uniformity | None = None
    paraphrases: tuple[QualityMap, ...] = ()
    failed: dict[Measure, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    products: np.ndarray = field(default_factory=lambda: np.zeros(0))
    same: np.ndarray = field(default_factory=lambda: np.zeros(0))
    diff: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def as_json(self) -> dict[str, Any]:
        """The numbers by the names that scripts know; None where one is undefined."""
        found: dict[str, Any] = {}
        if self.correlations is not None:
            c = self.correlations
            found |= {
                "spearman": _or_none(c.spearman),
                "kendall_c": _or_none(c.kendall_c),
                "kendall_b": _or_none(c.kendall_b),
                "pearson": _or_none(c.pearson),
                "n": c.n,
            }
        if self.intervals is not None:
            found["intervals"] = asdict(self.intervals)
        for name, counted in (("pairs", self.pairs), ("triplets", self.triplets)):
            if counted is not None:
                found[name] = asdict(counted) | {"error": counted.error}
        if self.neighbours is not None:
            found["neighbours"] = asdict(self.neighbours)
        if self.uniformity is not None:
            found["uniformity"] = asdict(self.uniformity)
        if self.paraphrases:
            found["paraphrases"] = [_map_json(one) for one in self.paraphrases]
        if self.failed:
            found["failed"] = dict(self.failed)
        if self.notes:
            found["notes"] = list(self.notes)
        return found


def check_measures(data: DataSet, wanted: Sequence[Measure]) -> tuple[Measure, ...]:
    """Those of the wanted measures that the data are made for, before anything is embedded.

    Args:
        data: to measure on.
        wanted: names; empty for all.

    Raises:
        SettingsError: the data are not made for one that is wanted.
        NeuralvizError: none of them can be had from the data, whatever the vectors; the message
            says why.
    """
    for name in wanted:
        if name not in data.measures:
            raise SettingsError(
                f"{data.name} has no columns to measure {name} on: it is {data.describe()}, for "
                f"{', '.join(data.measures)}."
            )
    chosen = tuple(wanted) or data.measures
    problems = {name: data.problem(name) for name in chosen}
    meant: list[Measure] = [name for name in chosen if name != "uniformity"] or list(chosen)
    if all(problems[name] for name in meant):
        raise NeuralvizError(
            f"{data.name}: {' '.join(dict.fromkeys(filter(None, problems.values())))}"
        )
    return chosen


def measure(
    data: DataSet,
    vectors: ArrayLike,
    wanted: Sequence[Measure] = (),
    *,
    k: int = K,
    resamples: int = 1000,
    should_stop: ShouldStop = lambda: False,
) -> Measured:
    """Measure a method on a data set.

    A measure that fails does not take the others with it: ``failed`` says why.

    Args:
        data: what is measured on.
        vectors: [text, dim] of ``data.texts``, of any length.
        wanted: measures; all that the data are made for by default.
        k: neighbours that vote on a label.
        resamples: of the bootstrap intervals; 0 for none.
        should_stop: asked again and again.

    Raises:
        NeuralvizError: a vector is not finite, or there is not one a text.
        SettingsError: the data are not made for a measure.
        Stopped: ``should_stop`` said so.
    """
    units = unit_rows(vectors)
    if len(units) != len(data.texts):
        raise NeuralvizError(
            f"There are {len(units):,} vectors for the {len(data.texts):,} different texts of "
            f"{data.name}; give one a text."
        )
    unknown = [name for name in wanted if name not in data.measures]
    if unknown:
        raise SettingsError(f"{data.name} cannot be measured by {', '.join(unknown)}.")
    found = _products(data, units)
    for name in wanted or data.measures:
        problem = data.problem(name)
        try:
            if problem:
                raise NeuralvizError(problem)
            found = _MEASURES[name](found, data, units, k, resamples, should_stop)
        except NeuralvizError as error:
            found = replace(found, failed=found.failed | {name: str(error)})
    return found


def overlaps(
    data: DataSet,
    vectors: Sequence[ArrayLike],
    wanted: Sequence[Measure] = (),
    *,
    should_stop: ShouldStop = lambda: False,
) -> tuple[dict[Measure, Overlap], dict[Measure, str]]:
    """What methods break in common, for triplets and for pairs where the data have them (Eq. 3).

    Args:
        data: what is measured on.
        vectors: by method [text, dim] of ``data.texts``.
        wanted, should_stop: as of `measure`.

    Returns:
        The overlaps; and, where there is none because there are too many relations to be compared
        one by one, why.

    Raises:
        NeuralvizError: a vector is not finite.
        Stopped: ``should_stop`` said so.
    """
    chosen = [name for name in wanted or data.measures if not data.problem(name)]
    units = [unit_rows(of_method) for of_method in vectors]
    found: dict[Measure, Overlap] = {}
    failed: dict[Measure, str] = {}
    for name in chosen:
        try:
            if name == "triplets" and isinstance(data, ScoredData | GroupedData):
                rows = data.similar_rows if isinstance(data, ScoredData) else data.rows
                of_rows = [of_method[rows] for of_method in units]
                found[name] = shared_triplets(of_rows, data.grouping, should_stop=should_stop)
            elif name == "pairs" and isinstance(data, ScoredData):
                products = [_pair_products(one, data.first, data.second) for one in units]
                found[name] = shared_pairs(
                    [one[data.is_similar] for one in products],
                    [one[data.is_dissimilar] for one in products],
                    should_stop=should_stop,
                )
        except NeuralvizError as error:
            failed[name] = str(error)
    return found, failed


def _products(data: DataSet, units: np.ndarray) -> Measured:
    """The products that are drawn, and from which others are counted."""
    if isinstance(data, ScoredData):
        products = _pair_products(units, data.first, data.second)
        return Measured(
            products=products, same=products[data.is_similar], diff=products[data.is_dissimilar]
        )
    if isinstance(data, ParaphraseData):
        return Measured(products=_pair_products(units, data.original, data.generated))
    rows, group, anchor = _groups_of(data)
    alike, unlike = _alike(group, anchor), _unlike(group, anchor)
    if len(alike) > DRAWN_PRODUCTS:
        few = np.random.default_rng(0).choice(len(alike), DRAWN_PRODUCTS, replace=False)
        alike = alike[few]
    return Measured(
        same=_pair_products(units[rows], *alike.T), diff=_pair_products(units[rows], *unlike.T)
    )


def _groups_of(data: DataSet) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Places of texts, the number of the group that each is in, and which of them are anchors."""
    if isinstance(data, GroupedData):
        return data.rows, data.grouping.group, data.grouping.anchor
    if isinstance(data, LabelledData):
        return data.rows, distinct(data.labels)[1], None
    raise TypeError(type(data).__name__)


def _pair_products(units: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[pair] double precision products; pairs are taken some at a time."""
    out = np.empty(len(first))
    for start in range(0, len(first), DRAWN_PRODUCTS):
        at = slice(start, start + DRAWN_PRODUCTS)
        out[at] = np.einsum("pd,pd->p", units[first[at]], units[second[at]])
    return out


def _unlike(group: np.ndarray, anchor: np.ndarray | None) -> np.ndarray:
    """[pair, 2] texts of two groups, the first an anchor: all, or `DRAWN_PRODUCTS` of them."""
    n = len(group)
    first = np.arange(n) if anchor is None else np.flatnonzero(anchor)
    second = np.arange(n) if anchor is None else np.flatnonzero(~anchor)
    if len(first) * len(second) <= 4 * DRAWN_PRODUCTS:
        pairs = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    else:
        draw = np.random.default_rng(0)
        shape = 4 * DRAWN_PRODUCTS
        pairs = np.stack([draw.choice(first, shape), draw.choice(second, shape)], axis=1)
    pairs = pairs[group[pairs[:, 0]] != group[pairs[:, 1]]]
    if anchor is None:  # each two texts once
        pairs = np.sort(pairs, axis=1)
    pairs = np.unique(pairs, axis=0)
    if len(pairs) <= DRAWN_PRODUCTS:
        return pairs
    return pairs[np.random.default_rng(0).choice(len(pairs), DRAWN_PRODUCTS, replace=False)]


def _alike(group: np.ndarray, anchor: np.ndarray | None, *, limit: int = MAX_ALIKE) -> np.ndarray:
    """[pair, 2] all pairs of one group; ``limit`` of them, drawn, where there are more.

    Where there are anchors, those of an anchor and another text.
    """
    if anchor is not None:
        others = np.flatnonzero(~anchor)
        others = others[np.argsort(group[others], kind="stable")]
        first = np.searchsorted(group[others], group, "left")
        size = np.where(anchor, np.searchsorted(group[others], group, "right") - first, 0)
        before = np.cumsum(size) - size  # pairs of the texts before
        total = int(size.sum())
        pairs = np.arange(total)
        if total > limit:
            pairs = np.random.default_rng(0).integers(total, size=limit)
        anchors = np.searchsorted(before + size, pairs, "right")
        return np.stack([anchors, others[first[anchors] + pairs - before[anchors]]], axis=1)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    total = int((sizes * (sizes - 1) // 2).sum())
    if total <= limit:
        found = [
            order[start + np.stack(np.triu_indices(size, 1), axis=1)]
            for start, size in zip(starts, sizes, strict=True)
            if size > 1
        ]
        return np.concatenate(found) if found else np.zeros((0, 2), dtype=np.int64)
    draw = np.random.default_rng(0)
    weight = sizes * (sizes - 1.0)
    chosen = draw.choice(len(sizes), limit, p=weight / weight.sum())
    one = draw.integers(sizes[chosen])
    other = (one + 1 + draw.integers(sizes[chosen] - 1)) % sizes[chosen]
    return order[starts[chosen, None] + np.stack([one, other], axis=1)]


# --- each measure: found so far, data, unit vectors, k, resamples, should_stop -> found ----------


def _correlations(
    found: Measured, data: Any, units: np.ndarray, k: int, resamples: int, should_stop: ShouldStop
) -> Measured:
    undefined = why_undefined(found.products, data.scores)
    known = correlate(found.products, data.scores)
    if undefined:
        failed: dict[Measure, str] = found.failed | {"correlations": undefined}
        return replace(found, correlations=known, failed=failed)
    if not resamples:
        return replace(found, correlations=known)
    intervals = bootstrap(found.products, data.scores, resamples=resamples, should_stop=should_stop)
    notes = found.notes
    if intervals is None:
        notes += (
            f"{known.n:,} pairs are too many to be drawn again often: there are no intervals.",
        )
    return replace(found, correlations=known, intervals=intervals, notes=notes)


def _pairs(
    found: Measured, data: Any, units: np.ndarray, k: int, resamples: int, should_stop: ShouldStop
) -> Measured:
    return replace(found, pairs=count_pairs(found.same, found.diff))


def _triplets(
    found: Measured, data: Any, units: np.ndarray, k: int, resamples: int, should_stop: ShouldStop
) -> Measured:
    rows = data.similar_rows if isinstance(data, ScoredData) else data.rows
    counted = count_triplets(units[rows], data.grouping, should_stop=should_stop)
    worst = worst_triplets(units[rows], data.grouping, rows, WORST, should_stop=should_stop)
    return replace(found, triplets=counted, worst_triplets=worst.among(rows))


def _neighbours(
    found: Measured, data: Any, units: np.ndarray, k: int, resamples: int, should_stop: ShouldStop
) -> Measured:
    from neuralviz.maps.neighbours import find_neighbours

    near = find_neighbours(units[data.rows], k, should_stop=should_stop)
    notes = found.notes
    if near.k < k:
        notes += (f"{near.k} neighbours vote in place of {k}: there are no more texts.",)
    fewest = min(Counter(data.labels).values())
    if fewest <= near.k:
        notes += (
            f"The rarest label is on {many(fewest, 'text')}, so no more than "
            f"{fewest - 1} of {near.k} neighbours can share it: take fewer neighbours.",
        )
    missed = outvoted(near, data.labels, k, WORST)
    return replace(
        found,
        neighbours=knn_accuracy(near, data.labels, k),
        outvoted=tuple(replace(one, text=int(data.rows[one.text])) for one in missed),
        notes=notes,
    )


def _uniformity(
    found: Measured, data: Any, units: np.ndarray, k: int, resamples: int, should_stop: ShouldStop
) -> Measured:
    if isinstance(data, ScoredData):
        alike = np.stack([data.first, data.second], axis=1)[data.is_similar]
    else:
        rows, group, anchor = _groups_of(data)
        alike = rows[_alike(group, anchor)]
    return replace(found, uniformity=alignment_and_uniformity(units, alike))


def _paraphrases(
    found: Measured, data: Any, units: np.ndarray, k: int, resamples: int, should_stop: ShouldStop
) -> Measured:
    maps = quality_maps(found.products, data.varies, data.values, data.fixed1, data.fixed2)
    if not any(np.isfinite(one.kendall_c).any() for one in maps):
        raise NeuralvizError(
            "In no cell is there a correlation: the method finds all phrases equally near."
        )
    return replace(found, paraphrases=maps)


_MEASURES: dict[Measure, Callable[..., Measured]] = {
    "correlations": _correlations,
    "pairs": _pairs,
    "triplets": _triplets,
    "neighbours": _neighbours,
    "uniformity": _uniformity,
    "paraphrases": _paraphrases,
}


def _map_json(one: QualityMap) -> dict[str, Any]:
    return {
        "quality": one.quality,
        "fixed1": one.fixed1.tolist(),
        "fixed2": one.fixed2.tolist(),
        "kendall_c": [[_or_none(value) for value in row] for row in one.kendall_c.tolist()],
        "n": one.n.tolist(),
    }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
