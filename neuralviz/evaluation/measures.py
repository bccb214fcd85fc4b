"""What is measured of methods on data sets, and tables of it, filled cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from neuralviz.embedders.base import Embedder, has_risen
from neuralviz.embedders.specs import make_embedder
from neuralviz.errors import (
    NeuralvizError,
    ShouldStop,
    UnreadableTextError,
    check_stop,
    describe_unexpected,
    never,
)
from neuralviz.evaluation.bootstrap import (
    FEWEST_DRAWN,
    Drawing,
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
from neuralviz.evaluation.probing import Accuracy, left_out_in_words, probe, rare_labels
from neuralviz.evaluation.results import (
    DEFAULT_MEASURES,
    Cell,
    Compared,
    EvaluationPlan,
    Event,
    Measured,
    MeasureSettings,
    Progress,
    QualityMap,
    Uniformity,
)
from neuralviz.evaluation.rows import Row
from neuralviz.evaluation.triplets import count_triplets, shared_triplets, worst_triplets
from neuralviz.maps.neighbours import find_neighbours, find_outvoted, knn_voted
from neuralviz.micro_tuning.settings import is_fast
from neuralviz.models.shared import LOADERS, Loaders
from neuralviz.paths import home
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.database import Database
from neuralviz.store.embedding import embed, embed_at_once
from neuralviz.store.importing import find_imported
from neuralviz.store.vectors import KeptEmbedder, KeptVectors, text_keys
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.embedders import NeuralEmbedder

WORST = 20  # triplets, and texts, that are listed
DRAWN_PRODUCTS = 20_000  # of each kind, for histograms
MAX_ALIKE = 1_000_000  # pairs of one group or label, for the alignment
MAX_TEXTS = 20_000  # for the uniformity; of more an even sample is taken
_ROWS = 1024


def check_measures(data: DataSet, settings: MeasureSettings) -> tuple[Measure, ...]:
    """The chosen measures; SettingsError if one does not suit, NeuralvizError if undefined."""
    chosen = settings.measures_of(data)
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
    embedder: Embedder | None = None,
    should_stop: ShouldStop = never,
) -> Measured:
    """Measure [text, dim] vectors, which read-back needs the ``embedder`` of.

    `NeuralvizError` if a vector is missing or not finite.
    """
    # a measure that fails does not end the others: ``failed`` says why
    units = unit_rows(vectors)
    if len(units) != len(data.texts):
        raise NeuralvizError(
            f"Got {len(units):,} vectors for the {len(data.texts):,} different texts of "
            f"{data.name}; expected one per text."
        )
    chosen = settings.measures_of(data)
    measured = Measured(**_products(data, units, settings.seed))
    for name in chosen:
        try:
            if problem := data.problem(name):
                raise NeuralvizError(problem)
            inputs = _Inputs(data, units, settings, should_stop, measured, embedder)
            measured = _join(measured, _MEASURES[name](inputs))
        except NeuralvizError as error:
            measured = replace(measured, failed={**measured.failed, name: str(error)})
    return measured


def overlaps(
    data: DataSet,
    vectors: Sequence[ArrayLike],
    settings: MeasureSettings = DEFAULT_MEASURES,
    *,
    should_stop: ShouldStop = never,
) -> tuple[dict[Measure, Overlap], dict[Measure, str]]:
    """What methods' [text, dim] vectors break in common (Eq. 3), or why it is not known."""
    units = [unit_rows(method_vectors) for method_vectors in vectors]
    limits: dict[str, Any] = {"max_compared": settings.max_compared, "should_stop": should_stop}
    overlap_of: dict[Measure, Overlap] = {}
    failed: dict[Measure, str] = {}
    for name in settings.measures_of(data):
        if data.problem(name):
            continue
        try:
            if name == "triplets" and isinstance(data, ScoredData | GroupedData):
                rows = [method_units[data.rows] for method_units in units]
                overlap_of[name] = shared_triplets(rows, data.grouping, **limits)
            elif name == "pairs" and isinstance(data, ScoredData):
                products = [_products(data, method_units, settings.seed) for method_units in units]
                similar, dissimilar = ([p[kind] for p in products] for kind in ("same", "diff"))
                overlap_of[name] = shared_pairs(similar, dissimilar, **limits)
        except NeuralvizError as error:
            failed[name] = str(error)
    return overlap_of, failed


def _products(data: DataSet, units: np.ndarray, seed: int) -> dict[str, Any]:
    if isinstance(data, ScoredData):
        products = pair_products(units, data.first, data.second)
        same, diff = products[data.is_similar], products[data.is_dissimilar]
        return {"products": products, "same": same, "diff": diff}
    if isinstance(data, ParaphraseData):
        return {"products": pair_products(units, data.original, data.generated)}
    rows, group, anchor = _groups_of(data)
    alike = _sample(alike_pairs(group, anchor, seed), DRAWN_PRODUCTS, seed)
    unlike = unlike_pairs(group, anchor, seed)
    return {
        "same": pair_products(units[rows], *alike.T),
        "diff": pair_products(units[rows], *unlike.T),
    }


def count_kinds(data: DataSet) -> tuple[int, int]:
    """How many pairs are alike, and how many are not; `Measured` has a sample of many."""
    if isinstance(data, ScoredData):
        return int(data.is_similar.sum()), int(data.is_dissimilar.sum())
    _, group, anchor = _groups_of(data)
    sides = (slice(None),) * 2 if anchor is None else (anchor, ~anchor)
    first, second = (np.bincount(group[rows], minlength=group.max() + 1) for rows in sides)
    alike, n_pairs = int(first @ second), int(first.sum() * second.sum())
    if anchor is None:  # each two texts once
        alike, n_pairs = (alike - len(group)) // 2, (n_pairs - len(group)) // 2
    return alike, n_pairs - alike


def _groups_of(data: DataSet) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """[row] text, number of its group, and whether it is an anchor."""
    if isinstance(data, GroupedData):
        return data.rows, data.grouping.group, data.grouping.anchor
    if isinstance(data, LabelledData):
        return data.rows, distinct(data.labels)[1], None
    raise TypeError(type(data).__name__)


# --- each measure: what is measured from, to new values of fields of `Measured` ------------------


@dataclass(frozen=True, eq=False)
class _Inputs:
    data: Any
    units: np.ndarray  # [text, dim] vectors of length 1
    settings: MeasureSettings
    should_stop: ShouldStop
    products: Measured
    embedder: Embedder | None = None

    def drawing(self, cluster: np.ndarray | None) -> Drawing:
        """How resamples are drawn: alike for every method."""
        return Drawing(
            resamples=self.settings.resamples,
            seed=self.settings.seed,
            cluster=cluster,
            should_stop=self.should_stop,
        )


# new values of fields of `Measured`; notes and mappings are added to those there
Fields = dict[str, Any]


def _join(measured: Measured, new: Fields) -> Measured:
    for name in {"resampled", "failed"} & new.keys():
        new[name] = {**getattr(measured, name), **new[name]}
    new["notes"] = (*measured.notes, *new.get("notes", ()))
    return replace(measured, **new)


def _defined(resampled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: draws for name, draws in resampled.items() if np.isfinite(draws).any()}


def _correlations(inputs: _Inputs) -> Fields:
    products, scores = inputs.products.products, inputs.data.scores
    coefficients = correlate(products, scores)
    if undefined := why_undefined(products, scores):
        return {"correlations": coefficients, "failed": {"correlations": undefined}}
    numbers = inputs.data.numbers
    resampled = bootstrap(products, scores, **inputs.drawing(numbers))
    notes = []
    if not resampled and inputs.settings.resamples:
        n = int(numbers.max()) + 1
        size = "few" if n < FEWEST_DRAWN else "many"
        notes = [f"No bootstrap intervals: {many(n, 'different pair')} are too {size}."]
    return {"correlations": coefficients, "resampled": _defined(resampled), "notes": notes}


def _pairs(inputs: _Inputs) -> Fields:
    data, products = inputs.data, inputs.products
    drawing = inputs.drawing(data.numbers)
    errors = bootstrap_pairs(products.products, data.is_similar, data.is_dissimilar, **drawing)
    counted = count_pairs(products.same, products.diff)
    return {"pairs": counted, "resampled": _defined({"pairs": errors})}


def _triplets(inputs: _Inputs) -> Fields:
    data, stop = inputs.data, inputs.should_stop
    vectors = inputs.units[data.rows]
    counted = count_triplets(vectors, data.grouping, should_stop=stop)
    worst = worst_triplets(vectors, data.grouping, data.rows, WORST, should_stop=stop)
    cluster = None
    if isinstance(data, ScoredData):  # a group a similar pair
        _, cluster = np.unique(data.numbers[data.is_similar], return_inverse=True)
    errors = bootstrap_share(counted.wrong, counted.total, **inputs.drawing(cluster))
    return {
        "triplets": counted.together,
        "worst_triplets": worst,
        "resampled": _defined({"triplets": errors}),
    }


def _neighbours(inputs: _Inputs) -> Fields:
    data, k = inputs.data, inputs.settings.k
    near = find_neighbours(inputs.units[data.rows], k, should_stop=inputs.should_stop)
    votes = knn_voted(near, data.labels, k)
    missed = find_outvoted(near, data.labels, k, WORST)
    return {
        "neighbours": Accuracy.from_predictions(data.labels, votes, k=min(k, near.k)),
        "outvoted": tuple(replace(miss, text=int(data.rows[miss.text])) for miss in missed),
        "notes": _describe_voters(data.labels, k, near.k),
    }


def _describe_voters(labels: Sequence[str], k: int, n_near: int) -> list[str]:
    """Notes where fewer neighbours than ``k`` can vote, or share a text's label."""
    notes = []
    if n_near < k:
        notes.append(f"Using {many(n_near, 'neighbour')} instead of {k}: there are no more texts.")
    fewest = min(Counter(labels).values())
    if fewest <= n_near:
        notes.append(
            f"The rarest label has {many(fewest, 'text')}, so at most {fewest - 1} of "
            f"{many(n_near, 'neighbour')} can share it. Leave out rare labels"
            + (", or use fewer neighbours." if fewest > 1 else ".")
        )
    return notes


def _probe(inputs: _Inputs) -> Fields:
    data = inputs.data
    probed = probe(
        inputs.units[data.rows],
        data.labels,
        [data.texts[row] for row in data.rows],
        seed=inputs.settings.seed,
        should_stop=inputs.should_stop,
    )
    left_out = left_out_in_words(rare_labels(data.labels, data.rows.tolist()))
    return {"probe": probed, "notes": [left_out] * bool(left_out)}


def _uniformity(inputs: _Inputs) -> Fields:
    data, seed = inputs.data, inputs.settings.seed
    if isinstance(data, ScoredData):
        alike = np.stack([data.first, data.second], axis=1)[data.is_similar]
    else:
        rows, group, anchor = _groups_of(data)
        alike = rows[alike_pairs(group, anchor, seed)]
    uniformity = alignment_and_uniformity(
        inputs.units, alike, seed=seed, should_stop=inputs.should_stop
    )
    return {"uniformity": uniformity}


def _paraphrases(inputs: _Inputs) -> Fields:
    maps = quality_maps(inputs.products.products, inputs.data, should_stop=inputs.should_stop)
    if not any(np.isfinite(quality_map.kendall_c).any() for quality_map in maps):
        raise NeuralvizError(
            "No correlation is defined: the method gives all phrases the same cosine similarity."
        )
    return {"paraphrases": maps}


def _read_back(inputs: _Inputs) -> Fields:
    from neuralviz.evaluation.read_back import count_read, read_words  # imports torch

    if inputs.embedder is None:
        raise NeuralvizError("There is no model that these vectors could be read back with.")
    words = read_words(inputs.embedder, inputs.units, should_stop=inputs.should_stop)
    counted, hits, n = count_read(inputs.data.texts, words)
    recall = bootstrap_share(hits, n, **inputs.drawing(None))
    return {"read_back": counted, "resampled": _defined({"read-back": recall})}


_MEASURES: dict[Measure, Callable[[_Inputs], Fields]] = {
    "correlations": _correlations,
    "pairs": _pairs,
    "triplets": _triplets,
    "neighbours": _neighbours,
    "uniformity": _uniformity,
    "paraphrases": _paraphrases,
    "probe": _probe,
    "read-back": _read_back,
}


# --- paraphrases (section 3.1) --------------------------------------------------------------------


def quality_maps(
    products: np.ndarray, data: ParaphraseData, *, should_stop: ShouldStop = never
) -> tuple[QualityMap, ...]:
    """A map of tau-c of [phrase] products per quality that varies; NeuralvizError if NaN."""
    names = np.array(data.varies, dtype=object)
    maps = []
    for quality in dict.fromkeys(data.varies):
        of_quality = names == quality
        rows, columns = np.unique(data.fixed1[of_quality]), np.unique(data.fixed2[of_quality])
        tau = np.full((len(rows), len(columns)), np.nan)
        n = np.zeros(tau.shape, dtype=int)
        for i, row in enumerate(rows):
            check_stop(should_stop)
            for j, column in enumerate(columns):
                is_cell = of_quality & (data.fixed1 == row) & (data.fixed2 == column)
                n[i, j] = is_cell.sum()
                if n[i, j] >= 2:
                    tau[i, j] = correlate(products[is_cell], data.values[is_cell]).kendall_c
        maps.append(QualityMap(quality, rows, columns, tau, n))
    return tuple(maps)


# --- texts that are alike, or not -----------------------------------------------------------------


def pair_products(units: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[pair] float64 products, some pairs at a time."""
    out = np.empty(len(first))
    for start in range(0, len(first), DRAWN_PRODUCTS):
        block = slice(start, start + DRAWN_PRODUCTS)
        out[block] = np.einsum("pd,pd->p", units[first[block]], units[second[block]])
    return out


def _sample(rows: np.ndarray, limit: int, seed: int) -> np.ndarray:
    if len(rows) <= limit:
        return rows
    return rows[np.random.default_rng(seed).choice(len(rows), limit, replace=False)]


def unlike_pairs(group: np.ndarray, anchor: np.ndarray | None, seed: int) -> np.ndarray:
    """[pair, 2] texts of different [text] groups, anchors first; `DRAWN_PRODUCTS` at most."""
    n, n_drawn = len(group), 4 * DRAWN_PRODUCTS  # some of them alike
    first = np.arange(n) if anchor is None else np.flatnonzero(anchor)
    second = np.arange(n) if anchor is None else np.flatnonzero(~anchor)
    if len(first) * len(second) <= n_drawn:
        pairs = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    else:
        draw = np.random.default_rng(seed)
        pairs = np.stack([draw.choice(first, n_drawn), draw.choice(second, n_drawn)], axis=1)
    pairs = pairs[group[pairs[:, 0]] != group[pairs[:, 1]]]
    if anchor is None:  # each two texts once
        pairs = np.sort(pairs, axis=1)
    return _sample(np.unique(pairs, axis=0), DRAWN_PRODUCTS, seed)


def alike_pairs(group: np.ndarray, anchor: np.ndarray | None, seed: int) -> np.ndarray:
    """[pair, 2] texts of one group, or an anchor and another; `MAX_ALIKE` at most."""
    members = np.arange(len(group)) if anchor is None else np.flatnonzero(~anchor)
    members = members[np.argsort(group[members], kind="stable")]
    texts = members if anchor is None else np.flatnonzero(anchor)
    first = np.arange(len(texts)) + 1  # each two texts once: a text and those behind it
    if anchor is not None:
        first = np.searchsorted(group[members], group[texts], "left")
    size = np.searchsorted(group[members], group[texts], "right") - first
    ends = np.cumsum(size)
    total = int(size.sum())
    draw = np.random.default_rng(seed)
    pairs = np.arange(total) if total <= MAX_ALIKE else draw.integers(total, size=MAX_ALIKE)
    place = np.searchsorted(ends, pairs, "right")  # of a pair's first text
    second = first[place] + pairs - (ends - size)[place]
    return np.stack([texts[place], members[second]], axis=1)


def alignment_and_uniformity(
    vectors: ArrayLike, alike: np.ndarray, *, seed: int = 0, should_stop: ShouldStop = never
) -> Uniformity:
    """Alignment of [pair, 2] texts, uniformity of [text, dim] vectors; NeuralvizError if NaN."""
    units = unit_rows(vectors)
    if len(units) < 2:
        raise NeuralvizError("Uniformity needs at least two texts.")
    alignment = None
    if len(alike):
        chunks = (alike[start : start + _ROWS] for start in range(0, len(alike), _ROWS))
        squares = (np.square(units[c[:, 0]] - units[c[:, 1]]).sum() for c in chunks)
        alignment = float(sum(squares) / len(alike))
    units = _sample(units, MAX_TEXTS, seed)
    n, total = len(units), 0.0
    for start in range(0, n, _ROWS):
        check_stop(should_stop)
        products = units[start : start + _ROWS] @ units.T
        total += float(np.exp(4 * products - 4).sum())  # d² = 2 − 2 x·y of unit vectors
    total -= float(np.exp(4 * np.square(units).sum(axis=1) - 4).sum())
    return Uniformity(alignment, float(np.log(total / (n * (n - 1)))), n)


# --- tables, filled cell by cell; vectors are kept, so that it can stop and resume ----------------

WITH_EPOCHS = ("neural", "neural-1")  # methods of which one run serves several epochs
MAX_OVERLAPPED = 12  # rows whose shared errors are computed


def kept_vectors(folder: Path | None = None) -> KeptVectors:
    """Vectors of evaluations, by default in the user's folder; StoreError if it is unreadable."""
    return KeptVectors(Database(folder or home() / "evaluation"))


def evaluate(
    plan: EvaluationPlan,
    vectors: KeptVectors | None = None,
    *,
    loaders: Loaders = LOADERS,
    should_stop: ShouldStop = never,
) -> Generator[Event]:
    """Fill a table cell by cell; a cell that fails does not end the work.

    Vectors are kept in ``vectors``, by default `kept_vectors`, so that the same plan resumes where
    it stopped. Yields `Progress`, a `Cell` for each row and data set and, from two rows on, what
    they break in common. Raises Stopped, and StoreError as `kept_vectors`.
    """
    once = {kind: cache(load) for kind, load in loaders.items()}
    yield from _Evaluation(plan, vectors or kept_vectors(), once, should_stop).events()


@dataclass(eq=False)
class _Evaluation:
    """One pass over a plan; remembers where each row's vectors are kept, by its number."""

    plan: EvaluationPlan
    vectors: KeptVectors
    loaders: Loaders
    should_stop: ShouldStop
    kept: dict[int, tuple[KeptVectors, KeptEmbedder]] = field(default_factory=dict)

    def events(self) -> Iterator[Event]:
        rows, settings = self.plan.rows, self.plan.settings
        order = sorted(range(len(rows)), key=lambda index: rows[index].spec.learns)
        together = {group[0]: group for group in _in_one_run(rows)}
        for number, data in enumerate(self.plan.data):
            finished = []
            for index in order:
                if index in together:
                    yield from self._embed_at_once(number, together[index])
                check_stop(self.should_stop)
                for event in self._cell(number, index):
                    yield event
                    if isinstance(event, Cell) and event.measured is not None:
                        finished.append(index)
            if len(finished) > 1 and {"triplets", "pairs"} & set(settings.measures_of(data)):
                yield Progress(number, None, "comparing")
                yield self._compare(number, sorted(finished))

    def _cell(self, number: int, index: int) -> Iterator[Event]:
        """Embed and measure; the last event is the cell."""
        row, data = self.plan.rows[index], self.plan.data[number]
        embedder: Embedder | None = None
        keys, n, unread = text_keys(data.texts), len(data.texts), ""
        try:
            if row.spec.is_imported:
                self.kept[index] = find_imported(
                    (self.vectors, CorpusStore().vectors), row.spec, keys
                )
            else:
                embedder = make_embedder(row.spec, self.loaders)
                if self.plan.settings.measures_of(data) == ("read-back",):
                    from neuralviz.evaluation.read_back import check_readable

                    check_readable(embedder)  # before much is embedded for nothing
                for event in embed(
                    data.texts,
                    embedder,
                    self.vectors,
                    with_vectors=False,
                    should_stop=self.should_stop,
                ):
                    unread = event.unread
                    yield Progress(number, index, "embedding", event.done, event.total)
                self.kept[index] = self.vectors, event.embedder
            vectors, kept = self.kept[index]
            yield Progress(number, index, "measuring", n, n)
            measured = measure(
                data,
                vectors.get(kept, keys),
                self.plan.settings,
                embedder=embedder,
                should_stop=self.should_stop,
            )
            if unread:
                measured = replace(measured, notes=(*measured.notes, unread))
            n_rose = int(has_risen(vectors.losses(kept, keys)).sum())
            yield Cell(number, index, measured, n_rose=n_rose, dim=kept.dim)
        except UnreadableTextError as error:
            start = " ".join(data.texts[error.place].split())[:60]
            yield Cell(
                number, index, None, error=f"Cannot embed “{start}”: the text {error.reason}"
            )
        except NeuralvizError as error:
            yield Cell(number, index, None, error=str(error))
        except (RuntimeError, MemoryError) as error:  # of torch: too little memory, mostly
            yield Cell(number, index, None, error=describe_unexpected(error))

    def _embed_at_once(self, number: int, group: Sequence[int]) -> Iterator[Progress]:
        """Embed rows that one run serves; each row meets its own errors again later."""
        rows, texts = self.plan.rows, self.plan.data[number].texts
        with suppress(NeuralvizError, RuntimeError, MemoryError):
            embedders = [
                cast("NeuralEmbedder", make_embedder(rows[index].spec, self.loaders))
                for index in group
            ]
            for event in embed_at_once(
                texts, embedders, self.vectors, should_stop=self.should_stop
            ):
                together = tuple(group[place] for place in event.embedders)
                yield Progress(number, together[0], "embedding", event.done, event.total, together)

    def _compare(self, number: int, finished: Sequence[int]) -> Compared:
        data = self.plan.data[number]
        rows = tuple(finished[:MAX_OVERLAPPED])
        keys = text_keys(data.texts)
        vectors = [store.get(kept, keys) for store, kept in map(self.kept.__getitem__, rows)]
        shared, failed = overlaps(data, vectors, self.plan.settings, should_stop=self.should_stop)
        return Compared(number, rows, shared, failed, len(finished) - len(rows))


def _in_one_run(rows: Sequence[Row]) -> list[list[int]]:
    """Groups of rows that differ by epochs alone, so that one run of micro-tuning serves them."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(rows):
        if row.spec.method not in WITH_EPOCHS:
            continue
        options = row.spec.all_options
        if not is_fast(str(options["precision"])):
            del options["epochs"]
            alike = row.spec.method, row.spec.model_id, *options.items()
            groups.setdefault(alike, []).append(index)
    return [group for group in groups.values() if len(group) > 1]
