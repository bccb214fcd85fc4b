"""What the other views of results show, in a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.claims import Name, spoken_by
from neuralviz.evaluation.yardsticks import best_first
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.data import ScoredData
    from neuralviz.evaluation.measured import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick


def describe_separation(results: Results, data: int, yardstick: Yardstick, name: Name = str) -> str:
    """How far the best method keeps similar from dissimilar texts; empty where there are none.

    Args:
        results: as far as they are.
        data: number of the data set.
        yardstick: what says which method is the best.
        name: marks the label of a method, and escapes it where it is markup.
    """
    name = spoken_by(results, name)
    for label, measured in best_first(results, data, yardstick):
        if len(measured.same) and len(measured.diff):
            similar_mean, diff = (
                number(float(products.mean(dtype=np.float64)), ".2f")
                for products in (measured.same, measured.diff)
            )
            return (
                f"With {name(label)}, similar texts have a mean cosine similarity of "
                f"{similar_mean}, dissimilar texts {diff}."
            )
    return ""


def describe_halves(data: ScoredData, measured: Measured, label: str) -> str:
    """How many similar and dissimilar pairs a method has in its upper half.

    Args:
        data: of which at least one pair is measured.
        measured: of a method.
        label: of the method, marked up already.

    Returns:
        The sentence; empty where no pair is similar, or none is dissimilar.
    """
    is_high = measured.products > np.median(measured.products)
    if not (data.is_similar.any() and data.is_dissimilar.any()):
        return ""
    similar, dissimilar = (is_high[mask].mean() for mask in (data.is_similar, data.is_dissimilar))
    return (
        f"Of the pairs that people score {number(data.similar)} or more, {label} puts "
        f"{similar:.0%} in the upper half by cosine similarity; of those they score "
        f"{number(data.dissimilar)} or less, "
        f"{dissimilar:.0%}."
    )


def describe_followed_quality(
    results: Results, data: int, yardstick: Yardstick, name: Name, quote: Name
) -> str:
    """Which quality of paraphrases the best method follows best; empty where none is measured.

    Args:
        results, data, yardstick, name: as of `describe_separation`.
        quote: escapes the name of a quality.
    """
    name = spoken_by(results, name)
    for label, measured in best_first(results, data, yardstick):
        means = {
            quality_map.quality: float(np.nanmean(quality_map.kendall_c))
            for quality_map in measured.paraphrases
            if np.isfinite(quality_map.kendall_c).any()
        }
        if not means:
            continue
        in_order = sorted(means, key=means.__getitem__)
        best, least = in_order[-1], in_order[0]
        values = [number(means[quality], ".2f") for quality in (best, least)]
        if values[0] == values[1] and len(means) > 1:
            return f"{name(label)} follows all qualities alike (mean tau-c {values[0]})."
        sentence = f"{name(label)} follows {quote(best)} "
        if len(means) == 1:
            return (
                f"{sentence}with a mean tau-c of {values[0]}; 1 is the same order, 0 no relation."
            )
        return f"{sentence}best (mean tau-c {values[0]}) and {quote(least)} least ({values[1]})."
    return ""


def describe_shared_errors(results: Results, data: int, name: Name = str) -> str:
    """Which two methods make the most different errors; empty where no two make any.

    Args:
        results, data, name: as of `describe_separation`.
    """
    name = spoken_by(results, name)
    compared = results.compared.get(data)
    if compared is None:
        return ""
    for measure, overlap in compared.overlaps.items():
        share = np.where(np.eye(len(overlap.share), dtype=bool), np.nan, overlap.share)
        if not np.isfinite(share).any():
            continue
        low, high = sorted(
            np.unravel_index(int(np.nanargmin(share)), share.shape),
            key=lambda row: int(overlap.shared[row, row]),
        )
        fewer_errors, more_errors = (
            name(results.rows[compared.rows[row]].label) for row in (low, high)
        )
        noun = "triplet" if measure == "triplets" else "comparison"
        broken = many(int(overlap.shared[low, low]), noun)
        beginning = (
            f"{fewer_errors} and {more_errors} make the most different errors. "
            if len(share) > 2
            else ""
        )
        return (
            f"{beginning}{more_errors} also breaks {share[low, high]:.0%} of the {broken} that "
            f"{fewer_errors} breaks."
        )
    return ""
