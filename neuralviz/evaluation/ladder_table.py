"""The ladder of similarity models as lines of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.bootstrap import (
    bootstrap_spearman,
    interval,
    paired_interval,
)
from neuralviz.evaluation.data import digest_texts
from neuralviz.evaluation.tables import STS_TEST
from neuralviz.reading.pairs import number_pairs
from neuralviz.training.similarity.names import RUNG_NAMES
from neuralviz.training.similarity.settings import PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.evaluation.ladder_events import Baseline, Ladder, RungResult, TestPairs
    from neuralviz.training.similarity.settings import Rung

PUBLISHED_OF = "gpt2-medium"
WORST = 20  # predictions

Bounds = tuple[float, float]


@dataclass(frozen=True)
class LadderLine:
    """A baseline or a rung on the test pairs; of several seeds, the mean.

    Attributes:
        name: of it.
        rung: None for a baseline.
        dev: Spearman on the dev pairs.
        spearman, pearson: on the test pairs; NaN where they are undefined.
        seeds: [seed] Spearman on the test pairs of each; none for a baseline.
        interval: of ``spearman``, 95%, over samples of such test pairs; None where there are too
            few of them.
        published: Spearman of gpt2-medium; None for a baseline, and on other pairs than the test
            pairs of STS-B.
    """

    name: str
    rung: Rung | None
    dev: float
    spearman: float
    pearson: float
    seeds: tuple[float, ...]
    interval: Bounds | None
    published: float | None

    @property
    def spread(self) -> Bounds | None:
        """The lowest and the highest Spearman of several seeds."""
        return (min(self.seeds), max(self.seeds)) if len(self.seeds) > 1 else None


def ladder_lines(ladder: Ladder) -> list[LadderLine]:
    """Baselines, then rungs, in the order they came."""
    test = ladder.test
    if test is None:
        return []
    is_published = is_sts_test(test)
    lines = [
        LadderLine(
            baseline.name, None, baseline.dev, baseline.spearman, baseline.pearson, (),
            _bounds(_resampled([baseline], test)), None,
        )
        for baseline in ladder.baselines.values()
    ]  # fmt: skip
    for rung in dict.fromkeys(rung for rung, _ in ladder.results):
        results = ladder.of_rung(rung)
        lines.append(
            LadderLine(
                RUNG_NAMES[rung],
                rung,
                _mean([result.trained.dev for result in results]),
                _mean([result.spearman for result in results]),
                _mean([result.pearson for result in results]),
                tuple(result.spearman for result in results),
                _bounds(_resampled(results, test)),
                PUBLISHED[rung][1] if is_published else None,
            )
        )
    return lines


def is_sts_test(test: TestPairs) -> bool:
    """Whether these are the test pairs of STS-B, of which figures are published."""
    return digest_texts(dict.fromkeys([*test.sentences1, *test.sentences2])) == STS_TEST


def best_rung(ladder: Ladder) -> Rung | None:
    """The rung that the dev pairs choose, the first of equals; None where they choose none.

    The test pairs have no say in it, so that they can tell how good it is.
    """
    dev: dict[Rung, float] = {
        rung: _mean([result.trained.dev for result in ladder.of_rung(rung)])
        for rung in dict.fromkeys(rung for rung, _ in ladder.results)
    }
    defined = {rung: value for rung, value in dev.items() if np.isfinite(value)}
    if not defined:
        return None
    return max(defined, key=defined.__getitem__)


def best_baseline(ladder: Ladder) -> str:
    """The name of the baseline that the dev pairs choose, the first of equals.

    Raises:
        ValueError: the ladder has none.
    """
    return max(
        ladder.baselines, key=lambda name: np.nan_to_num(ladder.baselines[name].dev, nan=-np.inf)
    )


def best_line(lines: Sequence[LadderLine]) -> LadderLine | None:
    """What the dev pairs choose of all, baselines included; None where they choose nothing."""
    defined = [line for line in lines if np.isfinite(line.dev)]
    return max(defined, key=lambda line: line.dev, default=None)


def best_result(ladder: Ladder, rung: Rung) -> RungResult:
    """The result of a rung, among its seeds, that is best on the dev pairs.

    Raises:
        ValueError: the rung has none.
    """
    return max(
        ladder.of_rung(rung), key=lambda result: np.nan_to_num(result.trained.dev, nan=-np.inf)
    )


def lead_interval(ladder: Ladder, rung: Rung, baseline: str) -> Bounds | None:
    """The 95% interval of how far a rung is above a baseline, in the same resamples of the pairs.

    Args:
        ladder: with results of the rung.
        rung: of several seeds, their mean counts.
        baseline: one of `BASELINES` that the ladder has.

    Returns:
        Of the difference of Spearman; None where it is undefined or there are too few test pairs.
    """
    test = ladder.test
    assert test is not None
    first = _resampled(ladder.of_rung(rung), test)
    second = _resampled([ladder.baselines[baseline]], test)
    return paired_interval(first, second) if len(first) and len(second) else None


@dataclass(frozen=True)
class Prediction:
    """A test pair, and what a rung makes of it.

    Attributes:
        sentences: the two.
        score: by people.
        predicted: by the rung, on people's scale.
    """

    sentences: tuple[str, str]
    score: float
    predicted: float

    @property
    def error(self) -> float:
        """How much too high it is, or with a minus too low."""
        return self.predicted - self.score


def worst_predictions(test: TestPairs, predicted: np.ndarray, n: int = WORST) -> list[Prediction]:
    """The predictions that are furthest from people's scores, the worst first.

    Args:
        test: pairs.
        predicted: [pair] of them.
        n: at most so many.
    """
    order = np.argsort(-np.abs(predicted - test.scores), kind="stable")[:n]
    return [
        Prediction(
            (test.sentences1[row], test.sentences2[row]),
            float(test.scores[row]),
            float(predicted[row]),
        )
        for row in order
    ]


def _mean(values: Sequence[float]) -> float:
    """The mean of what is defined; NaN of nothing."""
    defined = [value for value in values if np.isfinite(value)]
    return float(np.mean(defined)) if defined else float("nan")


def _bounds(resampled: np.ndarray) -> Bounds | None:
    return interval(resampled) if np.isfinite(resampled).any() else None


def _resampled(predictions: Sequence[Baseline | RungResult], test: TestPairs) -> np.ndarray:
    """[resample] mean Spearman of some predictions; empty where it is undefined."""
    drawn = [
        resampled
        for prediction in predictions
        if len(resampled := _resampled_once(prediction, test))
    ]
    return np.mean(drawn, axis=0) if drawn else np.zeros(0)


def _resampled_once(prediction: Baseline | RungResult, test: TestPairs) -> np.ndarray:
    arrays = prediction.predicted, test.scores.astype(float), _numbers(test)
    return _resampled_as_bytes(*(values.tobytes() for values in arrays))


@lru_cache(maxsize=4)
def _numbers(test: TestPairs) -> np.ndarray:
    return number_pairs(test.sentences1, test.sentences2)


@lru_cache(maxsize=64)  # a ladder is drawn again and again while it is climbed
def _resampled_as_bytes(predicted: bytes, scores: bytes, numbers: bytes) -> np.ndarray:
    """The resampled correlation of float64 values; keeps nothing alive but these."""
    cluster = np.frombuffer(numbers, np.int64)
    return bootstrap_spearman(np.frombuffer(predicted), np.frombuffer(scores), cluster=cluster)
