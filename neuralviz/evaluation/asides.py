"""What the other views of results show, in a sentence each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.yardsticks import yardsticks_of
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.evaluation.results import Results

Name = Callable[[str], str]


def separated(results: Results, data: int, name: Name = str) -> str:
    """How far the best method keeps similar from dissimilar texts; empty where there are none.

    Args:
        results: as far as they are.
        data: number of the data set.
        name: marks the label of a method, and escapes it where it is markup.
    """
    found = [one for one in results.finished(data) if len(one[2].same) and len(one[2].diff)]
    for by in yardsticks_of(results, data)[:1]:
        values = {at: by.sign * by.read(one) for at, _, one in found}
        found = sorted(found, key=lambda one: -np.nan_to_num(values[one[0]], nan=-np.inf))
    if not found:
        return ""
    _, label, measured = found[0]
    same, diff = (
        number(float(one.mean(dtype=np.float64)), ".2f") for one in (measured.same, measured.diff)
    )
    return (
        f"With {name(label)}, similar texts have a mean cosine similarity of {same}, dissimilar "
        f"texts {diff}."
    )


def least_shared(results: Results, data: int, name: Name = str) -> str:
    """Which two methods make the most different errors; empty where no two make any.

    Args:
        results, data, name: as of `separated`.
    """
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
