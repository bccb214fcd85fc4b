"""All measures of one method on one data set, from the vectors of its different texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz import evaluation
from neuralviz.errors import NeuralvizError, SettingsError, never
from neuralviz.evaluation.bootstrap import (
    FEWEST_DRAWN,
    Intervals,
    bootstrap,
    bootstrap_pairs,
    bootstrap_share,
)
from neuralviz.evaluation.broken import Overlap, count_pairs, shared_pairs, unit_rows
from neuralviz.evaluation.correlation import correlate, why_undefined
from neuralviz.evaluation.data import (
    DataSet,
    GroupedData,
    LabelledData,
    Measure,
    ParaphraseData,
    ScoredData,
    distinct,
)
from neuralviz.evaluation.events import Measured
from neuralviz.evaluation.paraphrases import quality_maps
from neuralviz.evaluation.plan import DEFAULT_MEASURES
from neuralviz.evaluation.probed import Confusion, left_out_in_words, rare_labels
from neuralviz.evaluation.triplets import count_by_anchor, shared_triplets, worst_triplets
from neuralviz.evaluation.uniformity import (
    DRAWN_PRODUCTS,
    alignment_and_uniformity,
    alike_pairs,
    pair_products,
    unlike_pairs,
)
from neuralviz.maps.neighbourhoods import find_outvoted, knn_accuracy, knn_right, knn_voted
from neuralviz.maps.neighbours import find_neighbours
from neuralviz.words import many

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.plan import MeasureSettings

WORST = 20  # triplets, and texts, that are listed


def check_measures(data: DataSet, settings: MeasureSettings) -> tuple[Measure, ...]:
    """The chosen measures, checked against the data before anything is embedded.

    Raises:
        SettingsError: the data are not made for one that is wanted.
        NeuralvizError: none of them can be had from the data, whatever the vectors; the message
            says why.
    """
    chosen = settings.measures_of(data)
    for name in chosen:
        if name not in data.measures:
            raise SettingsError(
                f"{data.name} cannot be used for {name}. It has {data.describe()}. It "
                f"supports: {', '.join(data.measures)}."
            )
    problems = {name: data.problem(name) for name in chosen}
    main: list[Measure] = [name for name in chosen if name != "uniformity"] or list(chosen)
    if all(problems[name] for name in main):
        raise NeuralvizError(
            f"{data.name}: {' '.join(dict.fromkeys(filter(None, problems.values())))}"
        )
    return chosen


def measure(
    data: DataSet,
    vectors: ArrayLike,
    settings: MeasureSettings = DEFAULT_MEASURES,
    *,
    should_stop: ShouldStop = never,
) -> Measured:
    """Measure a method on a data set by its [text, dim] vectors, of any length.

    A measure that fails does not take the others with it: ``failed`` says why.

    Raises:
        NeuralvizError: a vector is not finite, or there is not one a text.
        SettingsError: the data are not made for a measure.
        Stopped: ``should_stop`` said so.
    """
    units = unit_rows(vectors)
    if len(units) != len(data.texts):
        raise NeuralvizError(
            f"Got {len(units):,} vectors for the {len(data.texts):,} different texts of "
            f"{data.name}; expected one per text."
        )
    unknown = [name for name in settings.measures_of(data) if name not in data.measures]
    if unknown:
        raise SettingsError(f"{data.name} does not support: {', '.join(unknown)}.")
    measured = _with_products(data, units, settings.seed)
    inputs = _Inputs(data, units, settings, should_stop)
    for name in settings.measures_of(data):
        problem = data.problem(name)
        try:
            if problem:
                raise NeuralvizError(problem)
            measured = _MEASURES[name](measured, inputs)
        except NeuralvizError as error:
            measured = replace(measured, failed=measured.failed | {name: str(error)})
    return measured


def overlaps(
    data: DataSet,
    vectors: Sequence[ArrayLike],
    settings: MeasureSettings = DEFAULT_MEASURES,
    *,
    should_stop: ShouldStop = never,
) -> tuple[dict[Measure, Overlap], dict[Measure, str]]:
    """What methods break in common, for triplets and for pairs where the data have them (Eq. 3).

    Args:
        vectors: by method [text, dim] of ``data.texts``.

    Returns:
        The overlaps; and, where there is none because there are too many relations to be compared
        one by one, why.

    Raises:
        NeuralvizError: a vector is not finite.
        Stopped: ``should_stop`` said so.
    """
    units = [unit_rows(method_vectors) for method_vectors in vectors]
    overlap_of: dict[Measure, Overlap] = {}
    failed: dict[Measure, str] = {}
    for name in settings.measures_of(data):
        if data.problem(name):
            continue
        try:
            if name == "triplets" and isinstance(data, ScoredData | GroupedData):
                overlap_of[name] = shared_triplets(
                    [method_units[data.rows] for method_units in units],
                    data.grouping,
                    max_compared=settings.max_compared,
                    should_stop=should_stop,
                )
            elif name == "pairs" and isinstance(data, ScoredData):
                products = [
                    pair_products(method_units, data.first, data.second) for method_units in units
                ]
                overlap_of[name] = shared_pairs(
                    [method_products[data.is_similar] for method_products in products],
                    [method_products[data.is_dissimilar] for method_products in products],
                    max_compared=settings.max_compared,
                    should_stop=should_stop,
                )
        except NeuralvizError as error:
            failed[name] = str(error)
    return overlap_of, failed


def _with_products(data: DataSet, units: np.ndarray, seed: int) -> Measured:
    """The products that are drawn, and from which others are counted."""
    if isinstance(data, ScoredData):
        products = pair_products(units, data.first, data.second)
        return Measured(
            products=products, same=products[data.is_similar], diff=products[data.is_dissimilar]
        )
    if isinstance(data, ParaphraseData):
        return Measured(products=pair_products(units, data.original, data.generated))
    rows, group, anchor = _groups_of(data)
    alike, unlike = alike_pairs(group, anchor, seed=seed), unlike_pairs(group, anchor, seed=seed)
    if len(alike) > DRAWN_PRODUCTS:
        drawn = np.random.default_rng(seed).choice(len(alike), DRAWN_PRODUCTS, replace=False)
        alike = alike[drawn]
    return Measured(
        same=pair_products(units[rows], *alike.T), diff=pair_products(units[rows], *unlike.T)
    )


def _groups_of(data: DataSet) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Places of texts, the number of the group that each is in, and which of them are anchors."""
    if isinstance(data, GroupedData):
        return data.rows, data.grouping.group, data.grouping.anchor
    if isinstance(data, LabelledData):
        return data.rows, distinct(data.labels)[1], None
    raise TypeError(type(data).__name__)


# --- each measure: results so far and inputs -> results with the measure ------------------------


@dataclass(frozen=True, eq=False)
class _Inputs:
    """What a measure is computed from; ``units`` are [text, dim] vectors of length 1."""

    data: Any
    units: np.ndarray
    settings: MeasureSettings
    should_stop: ShouldStop

    @property
    def drawing(self) -> dict[str, Any]:
        """How resamples are drawn: alike for every method."""
        return {
            "resamples": self.settings.resamples,
            "seed": self.settings.seed,
            "should_stop": self.should_stop,
        }


def _resampled(measured: Measured, values: Mapping[str, np.ndarray]) -> Measured:
    defined = {
        name: draws for name, draws in values.items() if len(draws) and np.isfinite(draws).any()
    }
    return replace(measured, resampled={**measured.resampled, **defined})


def _correlations(measured: Measured, inputs: _Inputs) -> Measured:
    products, scores = measured.products, inputs.data.scores
    coefficients = correlate(products, scores)
    if undefined := why_undefined(products, scores):
        failed: dict[Measure, str] = measured.failed | {"correlations": undefined}
        return replace(measured, correlations=coefficients, failed=failed)
    numbers = inputs.data.numbers
    resampled = bootstrap(products, scores, cluster=numbers, **inputs.drawing)
    notes = measured.notes
    if not resampled and inputs.settings.resamples:
        n = int(numbers.max()) + 1
        size = "few" if n < FEWEST_DRAWN else "many"
        notes += (f"No bootstrap intervals: {many(n, 'different pair')} are too {size}.",)
    intervals = Intervals.from_resamples(resampled) if resampled else None
    return _resampled(
        replace(measured, correlations=coefficients, intervals=intervals, notes=notes), resampled
    )


def _pairs(measured: Measured, inputs: _Inputs) -> Measured:
    data = inputs.data
    counted = count_pairs(measured.same, measured.diff)
    errors = bootstrap_pairs(
        measured.products,
        data.is_similar,
        data.is_dissimilar,
        cluster=data.numbers,
        **inputs.drawing,
    )
    return _resampled(replace(measured, pairs=counted), {"pairs": errors})


def _triplets(measured: Measured, inputs: _Inputs) -> Measured:
    data, stop = inputs.data, inputs.should_stop
    vectors = inputs.units[data.rows]
    counted = count_by_anchor(vectors, data.grouping, should_stop=stop)
    worst = worst_triplets(vectors, data.grouping, data.rows, WORST, should_stop=stop)
    cluster = None
    if isinstance(data, ScoredData):  # a group a similar pair
        _, cluster = np.unique(data.numbers[data.is_similar], return_inverse=True)
    errors = bootstrap_share(*counted.by_group, cluster=cluster, **inputs.drawing)
    return _resampled(
        replace(measured, triplets=counted.together, worst_triplets=worst.among(data.rows)),
        {"triplets": errors},
    )


def _neighbours(measured: Measured, inputs: _Inputs) -> Measured:
    data, k = inputs.data, inputs.settings.k
    near = find_neighbours(inputs.units[data.rows], k, should_stop=inputs.should_stop)
    notes = measured.notes
    if near.k < k:
        notes += (f"Using {many(near.k, 'neighbour')} instead of {k}: there are no more texts.",)
    sizes = Counter(Counter(data.labels).values())  # labels by their number of texts
    if sizes[1]:
        subject = "label has" if sizes[1] == 1 else "labels have"
        notes += (
            f"{sizes[1]:,} {subject} a single text, for which no neighbour can vote. Give such "
            "texts the label of others, or leave them out.",
        )
    fewest = min(filter(lambda size: size > 1, sizes), default=near.k + 1)
    if fewest <= near.k:
        qualifier = " of several texts" if sizes[1] else ""
        notes += (
            f"The rarest label{qualifier} has only {fewest} texts, so at most {fewest - 1} of "
            f"{many(near.k, 'neighbour')} can share it. Use fewer neighbours.",
        )
    missed = find_outvoted(near, data.labels, k, WORST)
    return replace(
        measured,
        neighbours=knn_accuracy(near, data.labels, k),
        hits=knn_right(near, data.labels, k),
        votes=Confusion.from_predictions(data.labels, knn_voted(near, data.labels, k)),
        outvoted=tuple(replace(miss, text=int(data.rows[miss.text])) for miss in missed),
        notes=notes,
    )


def _probe(measured: Measured, inputs: _Inputs) -> Measured:
    data = inputs.data
    probed, right = evaluation.probe(
        inputs.units[data.rows],
        data.labels,
        [data.texts[row] for row in data.rows],
        seed=inputs.settings.seed,
        should_stop=inputs.should_stop,
    )
    rare = rare_labels(data.labels, data.rows.tolist())
    notes = tuple(filter(None, [left_out_in_words(rare)]))
    return replace(measured, probe=probed, told=right, notes=(*measured.notes, *notes))


def _uniformity(measured: Measured, inputs: _Inputs) -> Measured:
    data, seed = inputs.data, inputs.settings.seed
    if isinstance(data, ScoredData):
        alike = np.stack([data.first, data.second], axis=1)[data.is_similar]
    else:
        rows, group, anchor = _groups_of(data)
        alike = rows[alike_pairs(group, anchor, seed=seed)]
    uniformity = alignment_and_uniformity(
        inputs.units, alike, seed=seed, should_stop=inputs.should_stop
    )
    return replace(measured, uniformity=uniformity)


def _paraphrases(measured: Measured, inputs: _Inputs) -> Measured:
    data = inputs.data
    maps = quality_maps(
        measured.products,
        data.varies,
        data.values,
        data.fixed1,
        data.fixed2,
        should_stop=inputs.should_stop,
    )
    if not any(np.isfinite(quality_map.kendall_c).any() for quality_map in maps):
        raise NeuralvizError(
            "No correlation is defined: the method gives all phrases the same cosine similarity."
        )
    return replace(measured, paraphrases=maps)


_MEASURES: dict[Measure, Callable[[Measured, _Inputs], Measured]] = {
    "correlations": _correlations,
    "pairs": _pairs,
    "triplets": _triplets,
    "neighbours": _neighbours,
    "uniformity": _uniformity,
    "paraphrases": _paraphrases,
    "probe": _probe,
}
