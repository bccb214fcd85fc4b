"""What climbing the ladder of similarity models tells; loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.training.similarity.events import AutoencoderEpoch, SimilarityEpoch
from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.reading.scales import Scale
    from neuralviz.training.similarity.events import SimilarityEnded, SimilarityEvent
    from neuralviz.training.similarity.settings import Rung

FLOOR = "mean pooling"
LINEAR = "linear regression"
SENTENCE = "sentence embedding"
NEURAL = "neural embedding"
BASELINES = (FLOOR, LINEAR, SENTENCE, NEURAL)


@dataclass(frozen=True, eq=False)
class LayerCosines:
    """How the cosines at the layers follow people's scores (FREEZE, Figure 1).

    Attributes:
        pooling: of the vectors.
        cosines: [pair, layer] of all pairs.
        scores: [pair] by people.
        numbers: [pair] as of `number_pairs`.
        spearman, pearson: [layer] -1 … 1, NaN where undefined.
    """

    __repr__ = short_repr

    pooling: str
    cosines: np.ndarray
    scores: np.ndarray
    numbers: np.ndarray
    spearman: np.ndarray
    pearson: np.ndarray


@dataclass(frozen=True, eq=False)
class FeatureProgress:
    """How far the features are.

    Attributes:
        done, total: different texts.
        found: of those done, how many had been kept before.
        source: whose features they are: the pooling, or a baseline.
    """

    done: int
    total: int
    found: int
    source: str


@dataclass(frozen=True, eq=False)
class TestPairs:
    """The pairs that everything is tested on.

    Attributes:
        sentences1, sentences2: of the pairs.
        scores: [pair] by people.
        scale: of people's scores, by the train pairs.
        n_train, n_dev: how many train and dev pairs there are.
        notes: sentences on how the pairs were divided.
        fingerprint: of the frozen model.
    """

    __repr__ = short_repr

    __test__ = False  # no test, though it is called so

    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    scores: np.ndarray
    scale: Scale
    n_train: int
    n_dev: int
    notes: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True, eq=False)
class Baseline:
    """What the rungs are compared with, on the same pairs.

    Attributes:
        name: one of `BASELINES`.
        dev: Spearman on the dev pairs.
        predicted: [pair] of the test pairs; cosines, or scores on people's scale.
        spearman, pearson: of the test pairs.
    """

    __repr__ = short_repr

    name: str
    dev: float
    predicted: np.ndarray
    spearman: float
    pearson: float


@dataclass(frozen=True, eq=False)
class RungEvent:
    """Something in the training of a rung.

    Attributes:
        rung, seed: which.
        event: what.
    """

    __repr__ = short_repr

    rung: Rung
    seed: int
    event: SimilarityEvent


@dataclass(frozen=True, eq=False)
class RungResult:
    """A trained rung on the test pairs, which it has not seen.

    Attributes:
        rung, seed: which.
        trained: its weights and how they were learnt.
        predicted: [pair] scores of the test pairs on people's scale.
        spearman, pearson: of the test pairs.
        seconds: that the training took.
    """

    __repr__ = short_repr

    rung: Rung
    seed: int
    trained: SimilarityEnded
    predicted: np.ndarray
    spearman: float
    pearson: float
    seconds: float


LadderEvent = FeatureProgress | LayerCosines | TestPairs | Baseline | RungEvent | RungResult


@dataclass(frozen=True, eq=False)
class Curve:
    """The training of a rung, as far as it is.

    Attributes:
        losses: [epoch] mean loss.
        dev: [epoch] Spearman on the dev pairs.
        rebuilt: [epoch, layer] losses of its autoencoders; no row without.
    """

    losses: tuple[float, ...] = ()
    dev: tuple[float, ...] = ()
    rebuilt: tuple[np.ndarray, ...] = ()

    def having(self, event: SimilarityEvent) -> Curve:
        """The curve with one more event."""
        if isinstance(event, AutoencoderEpoch):
            return replace(self, rebuilt=(*self.rebuilt, event.losses))
        if isinstance(event, SimilarityEpoch):
            return replace(self, losses=(*self.losses, event.loss), dev=(*self.dev, event.dev))
        return self


@dataclass(frozen=True, eq=False)
class Ladder:
    """All that is known of a ladder.

    Attributes:
        progress: of the features; None before.
        layers: by pooling.
        test: pairs; None until the features are there.
        baselines: by name, in the order they came.
        curves: by rung and seed, in the order they came.
        results: likewise.
    """

    progress: FeatureProgress | None = None
    layers: Mapping[str, LayerCosines] = field(default_factory=dict)
    test: TestPairs | None = None
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    curves: Mapping[tuple[Rung, int], Curve] = field(default_factory=dict)
    results: Mapping[tuple[Rung, int], RungResult] = field(default_factory=dict)

    def having(self, events: Sequence[LadderEvent]) -> Ladder:
        """The ladder with some more events."""
        progress, test = self.progress, self.test
        layers, baselines = dict(self.layers), dict(self.baselines)
        curves, results = dict(self.curves), dict(self.results)
        for event in events:
            match event:
                case FeatureProgress():
                    progress = event
                case LayerCosines():
                    layers[event.pooling] = event
                case TestPairs():
                    test = event
                case Baseline():
                    baselines[event.name] = event
                case RungEvent():
                    place = event.rung, event.seed
                    curves[place] = curves.get(place, Curve()).having(event.event)
                case RungResult():
                    results[event.rung, event.seed] = event
        return Ladder(progress, layers, test, baselines, curves, results)

    def of_rung(self, rung: Rung) -> list[RungResult]:
        """The results of a rung, a seed each."""
        return [result for (name, _), result in self.results.items() if name == rung]
