"""What a ladder of similarity models shows: sentences of markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.best_layer import reversed_median
from neuralviz.evaluation.bootstrap import seem_reversed
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.evaluation.ladder_results import (
    FLOOR,
    LINEAR,
    NEURAL,
    SENTENCE,
    best_line,
    ladder_lines,
    lead_interval,
)
from neuralviz.headlines import Entry, Headline, Measured, Name, compare_two, write_range
from neuralviz.training.similarity.settings import RUNG_NAMES
from neuralviz.words import joined, many, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.evaluation.ladder_results import Ladder
    from neuralviz.training.similarity.settings import Rung

PAPERS_PAIR = ("A brown dog is jumping.", "A brown dog is jumping")
PAPERS_SCORE = 0.4735  # of the paper's example, 0 … 1 (FREEZE, section 10)
ALIKE = 1.25  # times the mean share: a layer with less is like the others
_BASELINES = {
    FLOOR: "mean pooling",
    LINEAR: "a linear regression on the cosines",
    SENTENCE: "the model's own sentence embedding",
    NEURAL: "its neural embedding",
}
_UNTRAINED = (FLOOR, SENTENCE, NEURAL)  # baselines that learn nothing from the scores


def describe_ladder(ladder: Ladder, *, is_whole: bool = True) -> str:
    """Whether the rung that the dev pairs choose beats the best baseline, if all are there."""
    if ladder.test is None or FLOOR not in ladder.baselines:
        return ""
    pairs = many(len(ladder.test.scores), "test pair")
    if np.ptp(ladder.test.scores) == 0:
        return f"All {pairs} have the same score, so the correlation is undefined."
    lines, measured = ladder_lines(ladder), Measured("Spearman is", pairs)
    rung = best_line(line for line in lines if line.rung)
    best = best_line(line for line in lines if not line.rung) or lines[0]
    if rung is None or rung.rung is None:
        if ladder.results:
            return "No rung can be chosen: Spearman is undefined on the dev pairs."
        return Headline(measured, Entry(FLOOR, lines[0].spearman)).write_sentence()
    if not np.isfinite([rung.spearman, best.spearman]).all():
        return f"**{rung.name}** is the best on the dev pairs; on {pairs} Spearman is undefined."
    chosen = Entry(f"**{rung.name}** (chosen on the dev pairs)", rung.spearman)
    baseline = Entry(_BASELINES[best.name], best.spearman)
    bounds = lead_interval(ladder, rung.rung, best.name) if is_whole else None
    reason = f"{pairs} are too few to say how sure that is" if is_whole else ""
    sentence = compare_two(measured, chosen, baseline, bounds, reason)
    untrained = [line.interval for line in lines if line.name in _UNTRAINED]
    if seem_reversed(untrained) or reversed_median(ladder.layers, "spearman") is not None:
        sentence += (
            "\n\nEven untrained, the model's cosine similarities run against people's scores: "
            f"their Spearman is clearly below 0. {REVERSE}"
        )
    return sentence


def warn_of_rung(ladder: Ladder, rung: Rung) -> list[str]:
    """Plain sentences on why a rung that is to be saved may be of no use."""
    lines = ladder_lines(ladder)
    line = next(candidate for candidate in lines if candidate.rung == rung)
    assert ladder.test is not None
    subject = f"On {many(len(ladder.test.scores), 'test pair')}, “{line.name}” is"
    reached = number(line.spearman, ".3f") if np.isfinite(line.spearman) else "undefined"
    sentences = []
    if line.interval is None or line.interval[0] <= 0:
        sentences.append(
            f"{subject} not clearly better than chance (0): its Spearman is {reached}."
        )
    baselines = [other for other in lines if not other.rung]
    best = max(baselines, key=lambda other: np.nan_to_num(other.spearman, nan=-np.inf))
    if best.spearman >= line.spearman:
        sentences.append(
            f"{subject} no better than {_BASELINES[best.name]}: {reached} against "
            f"{number(best.spearman, '.3f')}."
        )
    return sentences


def describe_layer_shares(rung: Rung, shares: np.ndarray) -> str:
    """Which layers a rung listens to, from [layer] shares that sum to 1."""
    name, n = RUNG_NAMES[rung], len(shares)
    if float(shares.max()) < ALIKE / n:
        return f"**{name}** listens to all {many(n, 'layer')} about alike."
    order = np.argsort(-shares, kind="stable")
    n_named = int(np.searchsorted(np.cumsum(shares[order]), 0.5 - 1e-9)) + 1
    named = joined([str(layer) for layer in sorted(order[:n_named].tolist())])
    return (
        f"**{name}** listens most to **layer{'s' * (n_named > 1)} {named}**, which "
        f"account{'s' * (n_named == 1)} for {shares[order[:n_named]].sum():.0%} of the changes in "
        "its score."
    )


def describe_errors(rung: Rung, predicted: np.ndarray, scores: np.ndarray) -> str:
    """How far predictions [pair] are off people's scores."""
    errors = predicted - scores
    mean, middle = (number(float(v), ".2f") for v in (abs(errors.mean()), np.median(abs(errors))))
    bias = f"{mean} too {'high' if errors.mean() > 0 else 'low'}"
    return (
        f"Half of the predictions of **{RUNG_NAMES[rung]}** are within **{middle}** of people's "
        f"score; on average they are {bias if float(mean) else 'neither too high nor too low'}."
    )


def describe_worst(
    rung: Rung, pair: tuple[str, str], score: float, predicted: float, quote: Name
) -> str:
    """The prediction that is furthest off; ``quote`` shortens and escapes a text."""
    first, second = map(quote, pair)
    return (
        f"**{RUNG_NAMES[rung]}** is furthest off on {first} and {second}: people give "
        f"**{score:.3g}**, it says **{number(predicted, '.2f')}**."
    )


def describe_two_texts(
    pair: tuple[str, str], scores: Mapping[Rung, float], equal: Mapping[Rung, float], quote: Name
) -> str:
    """What the rungs say of two texts, and of two identical ones: no pair scores higher."""
    if not scores:
        return ""
    score, highest = (write_range(list(values.values())) for values in (scores, equal))
    papers = ""
    if pair == PAPERS_PAIR:
        papers = f" In the FREEZE paper, this pair gets {PAPERS_SCORE:.2f} on a scale from 0 to 1."
    return (
        f"{quote(pair[0])} and {quote(pair[1])} get **{score}**; no pair can get more than "
        f"{highest}, the score of two identical texts.{papers}"
    )
