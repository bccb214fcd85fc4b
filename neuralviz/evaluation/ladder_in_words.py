"""What a ladder of similarity models shows, as the sentences above its figures."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.best_layer import (
    MeasuredPooling,
    best_layer,
    best_layer_in_words,
    interval_of_difference,
    reversed_median,
)
from neuralviz.evaluation.bootstrap import seem_reversed
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.evaluation.ladder_events import FLOOR, LINEAR, NEURAL, SENTENCE
from neuralviz.evaluation.ladder_table import (
    best_baseline,
    best_rung,
    ladder_lines,
    lead_interval,
)
from neuralviz.evaluation.normal_plot import least_straight, normal_plot
from neuralviz.training.similarity.names import RUNG_NAMES
from neuralviz.words import joined, many, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from neuralviz.evaluation.best_layer import BestLayer
    from neuralviz.evaluation.ladder_events import Ladder, LayerCosines
    from neuralviz.evaluation.ladder_table import LadderLine, Prediction
    from neuralviz.training.similarity.settings import Rung

    Quote = Callable[[str], str]

FEWEST_TESTED = 8  # errors
PAPERS_SCORE = 0.4735  # of its example, on a scale from 0 to 1 (FREEZE, section 10)
PAPERS_PAIR = ("A brown dog is jumping.", "A brown dog is jumping")
ALIKE = 1.25  # times its fair share: a layer that has less is like the others
LEVEL = 0.005  # values that differ by less are written alike
_BASELINES = {
    FLOOR: "mean pooling",
    LINEAR: "a linear regression on the cosines",
    SENTENCE: "the model's own sentence embedding",
    NEURAL: "its neural embedding",
}
_UNTRAINED = (FLOOR, SENTENCE, NEURAL)  # baselines that learn nothing from the scores


def layers_point(
    layers: Mapping[str, LayerCosines], *, is_whole: bool = True
) -> tuple[str, BestLayer | None]:
    """Which layer's cosine follows people's scores best, in markdown, and that layer.

    Args:
        layers: by pooling.
        is_whole: whether they are all there, so that it can be told whether the pairs decide it.
    """
    return _layers_point(tuple(layers.values()), is_whole) if layers else ("", None)


@lru_cache(maxsize=8)
def _are_reversed(poolings: tuple[LayerCosines, ...]) -> bool:
    return reversed_median(_by_layer(poolings), "spearman") is not None


def _by_layer(poolings: tuple[LayerCosines, ...]) -> dict[str, list[MeasuredPooling]]:
    return {
        layers.pooling: [
            MeasuredPooling(column, layers.scores, layers.numbers) for column in layers.cosines.T
        ]
        for layers in poolings
    }


@lru_cache(maxsize=8)  # the page draws it again and again
def _layers_point(
    poolings: tuple[LayerCosines, ...], is_whole: bool
) -> tuple[str, BestLayer | None]:
    by_layer = _by_layer(poolings)
    best = best_layer(by_layer, "spearman")
    bounds = median = None
    if is_whole and best is not None:
        median = reversed_median(by_layer, "spearman")
        if best.rival is not None:
            of_pooling = by_layer[best.pooling]
            bounds = interval_of_difference(
                of_pooling[best.layer], of_pooling[best.rival], "spearman"
            )
    n_pairs = len(poolings[0].scores)
    return best_layer_in_words(best, "Spearman", n_pairs, bounds, median), best


def ladder_point(ladder: Ladder, *, is_whole: bool = True) -> str:
    """What `_ladder_point` says, and whether scores seem to say how different texts are."""
    point = _ladder_point(ladder, is_whole=is_whole)
    untrained = [line.interval for line in ladder_lines(ladder) if line.name in _UNTRAINED]
    if not point or not (seem_reversed(untrained) or _are_reversed(tuple(ladder.layers.values()))):
        return point
    return (
        f"{point}\n\nBefore any training, the Spearman of the model's cosine similarities is "
        f"clearly below chance (0). {REVERSE}"
    )


def _ladder_point(ladder: Ladder, *, is_whole: bool) -> str:
    """Which rung the dev pairs choose, and how far it is above the best baseline, in markdown.

    Args:
        ladder: as far as it is.
        is_whole: whether no rung is missing.

    Returns:
        Empty before the test pairs and mean pooling are known.
    """
    floor = ladder.baselines.get(FLOOR)
    if ladder.test is None or floor is None:
        return ""
    n = len(ladder.test.scores)
    pairs = many(n, "test pair")
    if np.ptp(ladder.test.scores) == 0:
        return f"All {pairs} have the same score, so the correlation is undefined."
    rung = best_rung(ladder)
    if rung is None:
        if ladder.results:
            return "No rung can be chosen: Spearman is undefined on the dev pairs."
        return (
            f"Mean pooling reaches a Spearman of **{number(floor.spearman, '.2f')}** on {pairs}. "
            "The rungs have to beat that."
        )
    lines = ladder_lines(ladder)
    line = next(candidate for candidate in lines if candidate.rung == rung)
    best = ladder.baselines[best_baseline(ladder)]
    if not np.isfinite([line.spearman, best.spearman]).all():
        return f"**{line.name}** is the best on the dev pairs; on {pairs} Spearman is undefined."
    lead = round(line.spearman, 2) - round(best.spearman, 2)  # as the table has them
    than = "as that of"
    if abs(lead) >= LEVEL:
        than = f"{number(abs(lead), '.2f')} {'above' if lead > 0 else 'below'}"
    name = _BASELINES[best.name]
    also = "" if line.dev > best.dev else f", but no better there than {name}"
    point = (
        f"{'' if is_whole else 'So far, '}**{line.name}** is the best rung on the dev pairs{also}. "
        f"On {pairs} its Spearman is **{number(line.spearman, '.2f')}**, {than} {name}"
    )
    bounds = lead_interval(ladder, rung, best.name)
    if bounds is None:
        return f"{point}.{_describe_other_baselines(ladder, best.name)}"
    is_decided = not bounds[0] <= 0 <= bounds[1]
    low, high = (number(bound, "+.2f") for bound in bounds)
    point += (
        f", and these {n:,} pairs decide it."
        if is_decided
        else f". But these {n:,} pairs do not decide it."
    )
    return (
        f"{point}\n\nThe 95% interval of the difference is {low} to {high}."
        f"{_higher(lines, line, best.name)}{_describe_other_baselines(ladder, best.name)}"
    )


def rung_warnings(ladder: Ladder, rung: Rung) -> list[str]:
    """Why a rung may be of no use, as plain sentences; none where the test pairs speak for it.

    Args:
        ladder: with test pairs and results of the rung.
        rung: that is to be saved.
    """
    lines = ladder_lines(ladder)
    line = next(candidate for candidate in lines if candidate.rung == rung)
    assert ladder.test is not None
    pairs = many(len(ladder.test.scores), "test pair")
    reached = number(line.spearman, ".3f")
    if not np.isfinite(line.spearman):
        return [f"The Spearman of “{line.name}” is undefined on {pairs}: it may be of no use."]
    sentences = []
    if line.interval is None:
        sentences.append(f"{pairs} are too few to say whether “{line.name}” is better than chance.")
    elif line.interval[0] <= 0:
        low, high = (number(bound, "+.2f") for bound in line.interval)
        is_worse = line.interval[1] < 0
        sentences.append(
            f"On {pairs}, “{line.name}” is {'worse' if is_worse else 'not clearly better'} than "
            f"chance: its Spearman is {reached}, with a 95% interval of {low} to {high}."
        )
    higher = [
        baseline
        for baseline in ladder.baselines.values()
        if round(baseline.spearman - line.spearman, 3) >= 0
    ]
    if higher:
        best = max(higher, key=lambda baseline: baseline.spearman)
        bounds = lead_interval(ladder, rung, best.name)
        is_worse = bounds is not None and bounds[1] < 0
        sentences.append(
            f"On {pairs}, “{line.name}” is {'worse' if is_worse else 'no better'} than "
            f"{_BASELINES[best.name]}: {reached} against {number(best.spearman, '.3f')}."
        )
    return sentences


def _higher(lines: Sequence[LadderLine], chosen: LadderLine, compared: str) -> str:
    """What the test pairs would have chosen, as a sentence after others; or empty."""
    rungs = [line for line in lines if line.name != compared and np.isfinite(line.spearman)]
    highest = max(rungs, key=lambda line: line.spearman)
    if round(highest.spearman, 2) <= round(chosen.spearman, 2):  # as the table has them
        return ""
    return (
        f" On these pairs **{highest.name}** is higher, {number(highest.spearman, '.2f')}; but the "
        "test pairs have no say in the choice."
    )


def _describe_other_baselines(ladder: Ladder, compared: str) -> str:
    """What the other baselines reach, as a sentence after others; empty without any."""
    values = [
        f"{title} {number(baseline.spearman, '.2f')}"
        for name, title in _BASELINES.items()
        if name != compared
        and (baseline := ladder.baselines.get(name)) is not None
        and np.isfinite(baseline.spearman)
    ]
    return f" For comparison: {joined(values)}." if values else ""


def layer_shares_point(rung: Rung, shares: np.ndarray) -> str:
    """Which layers a rung listens to, in markdown.

    Args:
        rung: that was trained.
        shares: [layer] shares, together 1.
    """
    name, n = RUNG_NAMES[rung], len(shares)
    if float(shares.max()) < ALIKE / n:
        return f"**{name}** listens to all {many(n, 'layer')} about alike."
    order = np.argsort(-shares, kind="stable")
    n_named = int(np.searchsorted(np.cumsum(shares[order]), 0.5 - 1e-9)) + 1
    named = sorted(int(layer) for layer in order[:n_named])
    share = f"{float(shares[order[:n_named]].sum()):.0%}"
    if n_named == 1:
        return f"**{name}** listens to **layer {named[0]}** most: {share} of its score's changes."
    return (
        f"**{name}** listens to **layers {joined([str(layer) for layer in named])}** most: "
        f"together {share} of its score's changes."
    )


def rebuilt_point(losses: np.ndarray) -> str:
    """Which layer the autoencoders rebuild worst, in markdown.

    Args:
        losses: [layer] share of the variance that is lost.
    """
    worst, best = int(losses.argmax()), int(losses.argmin())
    sentence = (
        f"The autoencoders lose most of **layer {worst}**, {losses[worst]:.0%} of its variance, "
        f"and least of layer {best}, {losses[best]:.0%}."
    )
    if losses[worst] > 1:
        sentence += " Above 100%, the mean of all vectors would be closer."
    return sentence


def residuals_point(rung: Rung, predicted: np.ndarray, scores: np.ndarray) -> str:
    """How far predictions are off, and whether their errors are normal, in markdown.

    Args:
        rung: whose predictions.
        predicted, scores: [pair] on people's scale.
    """
    errors = predicted - scores
    mean, middle = float(errors.mean()), float(np.median(np.abs(errors)))
    shift = (
        "neither too high nor too low on average"
        if not float(f"{mean:.2f}")
        else f"on average {number(abs(mean), '.2f')} too {'high' if mean > 0 else 'low'}"
    )
    sentence = (
        f"Half of the predictions of **{RUNG_NAMES[rung]}** are within "
        f"**{number(middle, '.2f')}** of people's score; they are {shift}."
    )
    if len(errors) < FEWEST_TESTED or np.ptp(errors) == 0:
        return sentence
    straight, least = normal_plot(errors).straight, least_straight(len(errors))
    normal = "could be normal" if straight >= least else "are not normal"
    return (
        f"{sentence}\n\nThe errors {normal}: the correlation of the Q–Q plot is {straight:.3f}, "
        f"and normal errors have at least {least:.3f} in 95 of 100 cases."
    )


def worst_point(rung: Rung, worst: Prediction, quote: Quote) -> str:
    """The prediction that is furthest off, in markdown.

    Args:
        rung: whose it is.
        worst: the first of `worst_predictions`.
        quote: shortens and escapes a text.
    """
    first, second = map(quote, worst.sentences)
    return (
        f"**{RUNG_NAMES[rung]}** is furthest off on {first} and {second}: people give "
        f"**{worst.score:.3g}**, it says **{number(worst.predicted, '.2f')}**."
    )


def identical_point(
    pair: tuple[str, str], scores: Mapping[Rung, float], equal: Mapping[Rung, float], quote: Quote
) -> str:
    """What the rungs say of two texts, against the highest that they can say, in markdown.

    Args:
        pair: the two texts.
        scores: of the pair, by rung.
        equal: of two identical texts, likewise: no pair scores higher.
        quote: shortens and escapes a text.
    """
    if not scores:
        return ""
    lowest, highest = _range([number(score, ".2f") for score in scores.values()], scores)
    score_range = lowest if lowest == highest else f"{lowest} to {highest}"
    top = [number(score, ".2f") for score in equal.values()]
    low_top, high_top = _range(top, equal)
    best = low_top if low_top == high_top else f"{low_top} to {high_top}"
    if pair[0] == pair[1]:
        return (
            f"Identical texts get **{best}**, the highest score that there is: all their cosines "
            "are 1."
        )
    if pair == PAPERS_PAIR:
        return (
            f"A sentence and itself without the full stop get **{score_range}**; two "
            f"identical texts get {best}, and no pair scores higher.\n\nThe paper's model gives "
            f"this pair {PAPERS_SCORE:.2f} of 1: it has not learnt that identical texts are "
            "the most similar."
        )
    return (
        f"{quote(pair[0])} and {quote(pair[1])} get **{score_range}**. Two identical texts get "
        f"{best}, and no pair scores higher."
    )


def _range(written: list[str], values: Mapping[Rung, float]) -> tuple[str, str]:
    """The lowest and the highest of some values, as they are written."""
    numbers = list(values.values())
    return written[int(np.argmin(numbers))], written[int(np.argmax(numbers))]
