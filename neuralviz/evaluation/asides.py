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


def separated(results: Results, data: int, by: Yardstick, name: Name = str) -> str:
    """How far the best method keeps similar from dissimilar texts; empty where there are none.

    Args:
        results: as far as they are.
        data: number of the data set.
        by: what says which method is the best.
        name: marks the label of a method, and escapes it where it is markup.
    """
    name = spoken_by(results, name)
    for label, measured in best_first(results, data, by):
        if len(measured.same) and len(measured.diff):
            same, diff = (
                number(float(one.mean(dtype=np.float64)), ".2f")
                for one in (measured.same, measured.diff)
            )
            return (
                f"With {name(label)}, similar texts have a mean cosine similarity of {same}, "
                f"dissimilar texts {diff}."
            )
    return ""


def halves(data: ScoredData, measured: Measured, label: str) -> str:
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
    similar, dissimilar = (is_high[which].mean() for which in (data.is_similar, data.is_dissimilar))
    return (
        f"Of the pairs that people score {number(data.similar)} or more, {label} puts "
        f"{similar:.0%} in the upper half by cosine similarity; of those they score "
        f"{number(data.dissimilar)} or less, "
        f"{dissimilar:.0%}."
    )


def followed(results: Results, data: int, by: Yardstick, name: Name, quote: Name) -> str:
    """Which quality of paraphrases the best method follows best; empty where none is measured.

    Args:
        results, data, by, name: as of `separated`.
        quote: escapes the name of a quality.
    """
    name = spoken_by(results, name)
    for label, measured in best_first(results, data, by):
        means = {
            one.quality: float(np.nanmean(one.kendall_c))
            for one in measured.paraphrases
            if np.isfinite(one.kendall_c).any()
        }
        if not means:
            continue
        in_order = sorted(means, key=means.__getitem__)
        best, least = in_order[-1], in_order[0]
        values = [number(means[one], ".2f") for one in (best, least)]
        if values[0] == values[1] and len(means) > 1:
            return f"{name(label)} follows all qualities alike (mean tau-c {values[0]})."
        said = f"{name(label)} follows {quote(best)} "
        if len(means) == 1:
            return f"{said}with a mean tau-c of {values[0]}; 1 is the same order, 0 no relation."
        return f"{said}best (mean tau-c {values[0]}) and {quote(least)} least ({values[1]})."
    return ""


def least_shared(results: Results, data: int, name: Name = str) -> str:
    """Which two methods make the most different errors; empty where no two make any.

    Args:
        results, data, name: as of `separated`.
    """
    name = spoken_by(results, name)
    compared = results.compared.get(data)
    if compared is None:
        return ""
    for measure, overlap in compared.overlaps.items():
        share = np.where(np.eye(len(overlap.share), dtype=bool), np.nan, overlap.share)
        if not np.isfinite(share).any():
            continue
        one, other = sorted(
            np.unravel_index(int(np.nanargmin(share)), share.shape),
            key=lambda at: int(overlap.shared[at, at]),
        )
        fewer, more = (name(results.rows[compared.rows[at]].label) for at in (one, other))
        noun = "triplet" if measure == "triplets" else "comparison"
        broken = many(int(overlap.shared[one, one]), noun)
        most = f"{fewer} and {more} make the most different errors. " if len(share) > 2 else ""
        return (
            f"{most}{more} also breaks {share[one, other]:.0%} of the {broken} that {fewer} breaks."
        )
    return ""
