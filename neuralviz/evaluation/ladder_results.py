"""Settings, events, results and table of a ladder of similarity models; loads no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neuralviz.errors import SettingsError
from neuralviz.evaluation.best_layer import MeasuredPooling, resample
from neuralviz.evaluation.bootstrap import interval, paired_interval
from neuralviz.evaluation.data import STS_TEST, digest_texts
from neuralviz.evaluation.results import Bounds, finite_mean
from neuralviz.files import RecordFormat
from neuralviz.layers.settings import PoolingName
from neuralviz.reading.pairs import Scale
from neuralviz.training.similarity.settings import (
    PUBLISHED,
    RUNG_NAMES,
    RUNGS,
    AutoencoderEpoch,
    Rung,
    SimilarityEnded,
    SimilarityEpoch,
    SimilarityEvent,
    SimilaritySettings,
)
from neuralviz.words import ShortRepr

DEFAULT_SEED = 42
FLOOR = "mean pooling"
LINEAR = "linear regression"
SENTENCE = "sentence embedding"
NEURAL = "neural embedding"
BASELINES = (FLOOR, LINEAR, SENTENCE, NEURAL)
PUBLISHED_OF = "gpt2-medium"


@dataclass(frozen=True)
class LadderSettings:
    """Which rungs to train, each with every seed; otherwise as `SimilaritySettings`."""

    pooling: PoolingName = "mean"
    rungs: tuple[Rung, ...] = RUNGS
    seeds: tuple[int, ...] = (DEFAULT_SEED,)
    max_epochs: int = SimilaritySettings.max_epochs

    def __post_init__(self) -> None:
        if not self.rungs or not self.seeds:
            raise SettingsError("Choose at least one rung and one seed.")
        self.list_trainings()

    def list_trainings(self) -> list[SimilaritySettings]:
        """The trainings in order; SettingsError for an invalid setting."""
        return [
            SimilaritySettings(rung, self.pooling, seed, max_epochs=self.max_epochs)
            for rung in self.rungs
            for seed in self.seeds
        ]


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class LayerCosines(ShortRepr):
    """How the cosines at the layers follow people's scores (FREEZE, Figure 1)."""

    pooling: str
    layers: tuple[MeasuredPooling, ...]


@dataclass(frozen=True, eq=False)
class FeatureProgress:
    """Texts with features so far, ``found`` of them in the store, for a pooling or a baseline."""

    done: int
    total: int
    found: int
    source: str


@dataclass(frozen=True, eq=False, repr=False)
class TestPairs(ShortRepr):
    __test__ = False  # no test, though it is called so

    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    scores: np.ndarray  # by people
    scale: Scale  # of the train pairs
    n_train: int
    n_dev: int
    notes: tuple[str, ...]
    fingerprint: str  # of the frozen model


@dataclass(frozen=True, eq=False, repr=False)
class Baseline(ShortRepr):
    """One of `BASELINES`, to compare the rungs with, on the test pairs."""

    name: str
    dev: float  # Spearman on the dev pairs
    measured: MeasuredPooling  # its cosines, or scores on people's scale


@dataclass(frozen=True, eq=False, repr=False)
class RungEvent(ShortRepr):
    rung: Rung
    seed: int
    event: SimilarityEvent


@dataclass(frozen=True, eq=False, repr=False)
class RungResult(Baseline):
    """A trained rung on the unseen test pairs, and the seconds that it took."""

    trained: SimilarityEnded
    seconds: float


LadderEvent = FeatureProgress | LayerCosines | TestPairs | Baseline | RungEvent | RungResult


# --- what is known so far -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Curve:
    losses: tuple[float, ...] = ()  # [epoch]
    dev: tuple[float, ...] = ()  # [epoch] Spearman on the dev pairs
    rebuilt: tuple[np.ndarray, ...] = ()  # [epoch, layer] losses of autoencoders

    def having(self, event: SimilarityEvent) -> Curve:
        if isinstance(event, AutoencoderEpoch):
            return replace(self, rebuilt=(*self.rebuilt, event.losses))
        if isinstance(event, SimilarityEpoch):
            return replace(self, losses=(*self.losses, event.loss), dev=(*self.dev, event.dev))
        return self


@dataclass(frozen=True, eq=False)
class Ladder:
    """All that is known of a ladder, in order of arrival."""

    progress: FeatureProgress | None = None
    layers: Mapping[str, tuple[MeasuredPooling, ...]] = field(default_factory=dict)
    test: TestPairs | None = None
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    curves: Mapping[tuple[Rung, int], Curve] = field(default_factory=dict)
    results: Mapping[tuple[Rung, int], RungResult] = field(default_factory=dict)

    def having(self, events: Sequence[LadderEvent]) -> Ladder:
        progress, test = self.progress, self.test
        layers, baselines = dict(self.layers), dict(self.baselines)
        curves, results = dict(self.curves), dict(self.results)
        for event in events:
            match event:
                case FeatureProgress():
                    progress = event
                case LayerCosines():
                    layers[event.pooling] = event.layers
                case TestPairs():
                    test = event
                case RungEvent():
                    place = event.rung, event.seed
                    curves[place] = curves.get(place, Curve()).having(event.event)
                case RungResult(trained=trained):
                    results[trained.settings.rung, trained.settings.seed] = event
                case Baseline():
                    baselines[event.name] = event
        return Ladder(progress, layers, test, baselines, curves, results)

    @property
    def rungs(self) -> list[Rung]:
        return list(dict.fromkeys(rung for rung, _ in self.results))

    def of_rung(self, rung: Rung) -> list[RungResult]:
        return [result for (name, _), result in self.results.items() if name == rung]


LADDER_FORMAT = RecordFormat(
    "a ladder",
    version=6,
    classes=(
        Baseline, Curve, FeatureProgress, Ladder, MeasuredPooling, RungResult, Scale,
        SimilarityEnded, SimilaritySettings, TestPairs,
    ),
)  # fmt: skip


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LadderLine:
    """A baseline, or a rung, on the test pairs; of several seeds, the mean."""

    name: str
    rung: Rung | None  # None for a baseline
    dev: float  # Spearman on the dev pairs
    spearman: float  # on the test pairs; NaN where it is undefined, and so below
    pearson: float
    seeds: tuple[float, ...]  # [seed] Spearman on the test pairs of each; none for a baseline
    interval: Bounds | None  # 95%, of Spearman; None where there are too few test pairs
    published: float | None  # Spearman of gpt2-medium, on the test pairs of STS-B

    @property
    def spread(self) -> Bounds | None:
        """The lowest and the highest Spearman of several seeds."""
        return (min(self.seeds), max(self.seeds)) if len(self.seeds) > 1 else None


def ladder_lines(ladder: Ladder) -> list[LadderLine]:
    test = ladder.test
    if test is None:
        return []
    is_published = digest_texts(dict.fromkeys([*test.sentences1, *test.sentences2])) == STS_TEST
    lines = [_line(baseline.name, None, [baseline]) for baseline in ladder.baselines.values()]
    for rung in ladder.rungs:
        published = PUBLISHED[rung][1] if is_published else None
        lines.append(_line(RUNG_NAMES[rung], rung, ladder.of_rung(rung), published))
    return lines


def _line(
    name: str, rung: Rung | None, results: Sequence[Baseline], published: float | None = None
) -> LadderLine:
    drawn = _mean_resamples(results)
    correlations = [result.measured.correlation for result in results]
    return LadderLine(
        name,
        rung,
        dev=_mean(result.dev for result in results),
        spearman=_mean(correlation.spearman for correlation in correlations),
        pearson=_mean(correlation.pearson for correlation in correlations),
        seeds=tuple(correlation.spearman for correlation in correlations) if rung else (),
        interval=interval(drawn) if np.isfinite(drawn).any() else None,
        published=published,
    )


def best_line(lines: Iterable[LadderLine]) -> LadderLine | None:
    """The line with the best result on the dev pairs, the first of equals; None if undefined."""
    defined = [line for line in lines if np.isfinite(line.dev)]
    return max(defined, key=lambda line: line.dev, default=None)


def best_rung(ladder: Ladder) -> Rung | None:
    """The rung with the best result on the dev pairs; None if undefined."""
    best = best_line(line for line in ladder_lines(ladder) if line.rung)
    return best.rung if best else None


def best_result(ladder: Ladder, rung: Rung) -> RungResult:
    """The seed of a rung with the best result on the dev pairs."""
    return max(ladder.of_rung(rung), key=lambda result: np.nan_to_num(result.dev, nan=-np.inf))


def lead_interval(ladder: Ladder, rung: Rung, baseline: str) -> Bounds | None:
    """95% interval of a rung's mean lead over a baseline; None if undefined or few pairs."""
    first = _mean_resamples(ladder.of_rung(rung))
    return paired_interval(first, _mean_resamples([ladder.baselines[baseline]]))


def _mean(values: Iterable[float]) -> float:
    return finite_mean(np.array([*values]))


def _mean_resamples(results: Sequence[Baseline]) -> np.ndarray:
    """[resample] mean Spearman of some predictions; empty where it is undefined."""
    drawn = [resample(result.measured, "spearman") for result in results]
    defined = [resampled for resampled in drawn if len(resampled)]
    return np.mean(defined, axis=0) if defined else np.zeros(0)
