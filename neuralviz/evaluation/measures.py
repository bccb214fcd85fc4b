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
from neuralviz.evaluation.confusion import Confusion
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
from neuralviz.evaluation.measured import Measured
from neuralviz.evaluation.paraphrases import quality_maps
from neuralviz.evaluation.plan import DEFAULT_MEASURES
from neuralviz.evaluation.probed import left_out_in_words, rare_labels
from neuralviz.evaluation.sampling import (
    DRAWN_PRODUCTS,
    alike_pairs,
    pair_products,
    unlike_pairs,
)
from neuralviz.evaluation.triplets import count_by_anchor, shared_triplets, worst_triplets
from neuralviz.evaluation.uniformity import alignment_and_uniformity
from neuralviz.maps.neighbourhoods import find_outvoted, knn_accuracy, knn_right, knn_voted
from neuralviz.maps.neighbours import find_neighbours
from neuralviz.words import many

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.plan import MeasureSettings

WORST = 20  # triplets, and texts, that are listed


def check_measures(data: DataSet, wanted: MeasureSettings) -> tuple[Measure, ...]:
    """Those of the wanted measures that the data are made for, before anything is embedded.

    Args:
        data: to measure on.
        wanted: what is to be measured.

    Raises:
        SettingsError: the data are not made for one that is wanted.
        NeuralvizError: none of them can be had from the data, whatever the vectors; the message
            says why.
    """
    chosen = wanted.measures_of(data)
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
    """Measure a method on a data set.

    A measure that fails does not take the others with it: ``failed`` says why.

    Args:
        data: what is measured on.
        vectors: [text, dim] of ``data.texts``, of any length.
        settings: what is measured, and how.
        should_stop: asked again and again.

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
    found = _with_products(data, units, settings.seed)
    given = _Given(data, units, settings, should_stop)
    for name in settings.measures_of(data):
        problem = data.problem(name)
        try:
            if problem:
                raise NeuralvizError(problem)
            found = _MEASURES[name](found, given)
        except NeuralvizError as error:
            found = replace(found, failed=found.failed | {name: str(error)})
    return found


def overlaps(
    data: DataSet,
    vectors: Sequence[ArrayLike],
    settings: MeasureSettings = DEFAULT_MEASURES,
    *,
    should_stop: ShouldStop = never,
) -> tuple[dict[Measure, Overlap], dict[Measure, str]]:
    """What methods break in common, for triplets and for pairs where the data have them (Eq. 3).

    Args:
        data: what is measured on.
        vectors: by method [text, dim] of ``data.texts``.
        settings, should_stop: as of `measure`.

    Returns:
        The overlaps; and, where there is none because there are too many relations to be compared
        one by one, why.

    Raises:
        NeuralvizError: a vector is not finite.
        Stopped: ``should_stop`` said so.
    """
    units = [unit_rows(of_method) for of_method in vectors]
    found: dict[Measure, Overlap] = {}
    failed: dict[Measure, str] = {}
    for name in settings.measures_of(data):
        if data.problem(name):
            continue
        try:
            if name == "triplets" and isinstance(data, ScoredData | GroupedData):
                rows = data.similar_rows if isinstance(data, ScoredData) else data.rows
                found[name] = shared_triplets(
                    [of_method[rows] for of_method in units],
                    data.grouping,
                    max_compared=settings.max_compared,
                    should_stop=should_stop,
                )
            elif name == "pairs" and isinstance(data, ScoredData):
                products = [pair_products(one, data.first, data.second) for one in units]
                found[name] = shared_pairs(
                    [one[data.is_similar] for one in products],
                    [one[data.is_dissimilar] for one in products],
                    max_compared=settings.max_compared,
                    should_stop=should_stop,
                )
        except NeuralvizError as error:
            failed[name] = str(error)
    return found, failed


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
        few = np.random.default_rng(seed).choice(len(alike), DRAWN_PRODUCTS, replace=False)
        alike = alike[few]
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


# --- each measure: what was found so far, and what is given -> what is found ---------------------


@dataclass(frozen=True, eq=False)
class _Given:
    """What a measure is made from.

    Attributes:
        data: of the kind that the measure is for.
        units: [text, dim] vectors of length 1, of ``data.texts``.
        settings, should_stop: as of `measure`.
    """

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


def _resampled(found: Measured, values: Mapping[str, np.ndarray]) -> Measured:
    """The same with what was resampled, as far as it could be."""
    there = {name: one for name, one in values.items() if len(one) and np.isfinite(one).any()}
    return replace(found, resampled={**found.resampled, **there})


def _correlations(found: Measured, given: _Given) -> Measured:
    products, scores = found.products, given.data.scores
    coefficients = correlate(products, scores)
    if undefined := why_undefined(products, scores):
        failed: dict[Measure, str] = found.failed | {"correlations": undefined}
        return replace(found, correlations=coefficients, failed=failed)
    numbers = given.data.numbers
    resampled = bootstrap(products, scores, cluster=numbers, **given.drawing)
    notes = found.notes
    if not resampled and given.settings.resamples:
        n = int(numbers.max()) + 1
        much = "few" if n < FEWEST_DRAWN else "many"
        notes += (f"No bootstrap intervals: {many(n, 'different pair')} are too {much}.",)
    intervals = Intervals.of(resampled) if resampled else None
    return _resampled(
        replace(found, correlations=coefficients, intervals=intervals, notes=notes), resampled
    )


def _pairs(found: Measured, given: _Given) -> Measured:
    data = given.data
    counted = count_pairs(found.same, found.diff)
    errors = bootstrap_pairs(
        found.products, data.is_similar, data.is_dissimilar, cluster=data.numbers, **given.drawing
    )
    return _resampled(replace(found, pairs=counted), {"pairs": errors})


def _triplets(found: Measured, given: _Given) -> Measured:
    data, stop = given.data, given.should_stop
    rows = data.similar_rows if isinstance(data, ScoredData) else data.rows
    vectors = given.units[rows]
    counted = count_by_anchor(vectors, data.grouping, should_stop=stop)
    worst = worst_triplets(vectors, data.grouping, rows, WORST, should_stop=stop)
    cluster = None
    if isinstance(data, ScoredData):  # a group a similar pair
        _, cluster = np.unique(data.numbers[data.is_similar], return_inverse=True)
    errors = bootstrap_share(*counted.by_group, cluster=cluster, **given.drawing)
    return _resampled(
        replace(found, triplets=counted.together, worst_triplets=worst.among(rows)),
        {"triplets": errors},
    )


def _neighbours(found: Measured, given: _Given) -> Measured:
    data, k = given.data, given.settings.k
    near = find_neighbours(given.units[data.rows], k, should_stop=given.should_stop)
    notes = found.notes
    if near.k < k:
        notes += (f"Using {many(near.k, 'neighbour')} instead of {k}: there are no more texts.",)
    sizes = Counter(Counter(data.labels).values())  # labels by their number of texts
    if sizes[1]:
        who = "label has" if sizes[1] == 1 else "labels have"
        notes += (
            f"{sizes[1]:,} {who} a single text, for which no neighbour can vote. Give such texts "
            "the label of others, or leave them out.",
        )
    fewest = min(filter(lambda size: size > 1, sizes), default=near.k + 1)
    if fewest <= near.k:
        others = " of several texts" if sizes[1] else ""
        notes += (
            f"The rarest label{others} has only {fewest} texts, so at most {fewest - 1} of "
            f"{many(near.k, 'neighbour')} can share it. Use fewer neighbours.",
        )
    missed = find_outvoted(near, data.labels, k, WORST)
    return replace(
        found,
        neighbours=knn_accuracy(near, data.labels, k),
        hits=knn_right(near, data.labels, k),
        votes=Confusion.of(data.labels, knn_voted(near, data.labels, k)),
        outvoted=tuple(replace(one, text=int(data.rows[one.text])) for one in missed),
        notes=notes,
    )


def _probe(found: Measured, given: _Given) -> Measured:
    data = given.data
    told, right = evaluation.probe(
        given.units[data.rows],
        data.labels,
        [data.texts[row] for row in data.rows],
        seed=given.settings.seed,
        should_stop=given.should_stop,
    )
    rare = rare_labels(data.labels, data.rows.tolist())
    notes = tuple(filter(None, [left_out_in_words(rare)]))
    return replace(found, probe=told, told=right, notes=(*found.notes, *notes))


def _uniformity(found: Measured, given: _Given) -> Measured:
    data, seed = given.data, given.settings.seed
    if isinstance(data, ScoredData):
        alike = np.stack([data.first, data.second], axis=1)[data.is_similar]
    else:
        rows, group, anchor = _groups_of(data)
        alike = rows[alike_pairs(group, anchor, seed=seed)]
    uniformity = alignment_and_uniformity(
        given.units, alike, seed=seed, should_stop=given.should_stop
    )
    return replace(found, uniformity=uniformity)


def _paraphrases(found: Measured, given: _Given) -> Measured:
    data = given.data
    maps = quality_maps(
        found.products,
        data.varies,
        data.values,
        data.fixed1,
        data.fixed2,
        should_stop=given.should_stop,
    )
    if not any(np.isfinite(one.kendall_c).any() for one in maps):
        raise NeuralvizError(
            "No correlation is defined: the method gives all phrases the same cosine similarity."
        )
    return replace(found, paraphrases=maps)


_MEASURES: dict[Measure, Callable[[Measured, _Given], Measured]] = {
    "correlations": _correlations,
    "pairs": _pairs,
    "triplets": _triplets,
    "neighbours": _neighbours,
    "uniformity": _uniformity,
    "paraphrases": _paraphrases,
    "probe": _probe,
}
