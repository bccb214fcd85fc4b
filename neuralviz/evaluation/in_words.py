"""Numbers of an evaluation in words, for tables, and by flat names, for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.store.writing import inert
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.measured import Measured

NAMES = {
    "spearman": "Spearman",
    "kendall_c": "tau-c",
    "kendall_b": "tau-b",
    "pearson": "Pearson",
}
NONE = "–"


def in_words(measured: Measured) -> dict[str, dict[str, str]]:
    """What was measured, by kind of measure and head of a column."""
    words: dict[str, dict[str, str]] = {}
    if measured.correlations is not None:
        found = {NAMES[n]: in_digits(getattr(measured.correlations, n), 3) for n in COEFFICIENTS}
        if measured.intervals is not None:
            low, high = measured.intervals.spearman
            found["Spearman, 95% interval"] = f"{number(low, '.3f')} to {number(high, '.3f')}"
        words[""] = found
    for name, counted in (("pairs", measured.pairs), ("triplets", measured.triplets)):
        if counted is not None:
            words[name] = {
                "broken": f"{counted.wrong:,} of {counted.total:,}",
                "without ties": f"{counted.wrong_strict:,}",
                "error": f"{counted.error:.2%}",
                "same": number(counted.same, ".2f"),
                "diff": number(counted.diff, ".2f"),
            }
    if measured.neighbours is not None:
        low, high = measured.neighbours.interval
        words[f"{measured.neighbours.k}-NN"] = {
            "accuracy": f"{measured.neighbours.accuracy:.1%}",
            "95% interval": f"{low:.1%} to {high:.1%}",
            "majority baseline": f"{measured.neighbours.baseline:.1%}",
        }
    if measured.uniformity is not None:
        aligned = measured.uniformity.alignment
        words["embeddings"] = {} if aligned is None else {"alignment": number(aligned, ".3f")}
        words["embeddings"]["uniformity"] = number(measured.uniformity.uniformity, ".3f")
    for one in measured.paraphrases:
        defined = one.kendall_c[np.isfinite(one.kendall_c)]
        mean = number(defined.mean(), ".3f") if len(defined) else NONE
        words.setdefault("mean tau-c", {})[f"{one.quality} varies"] = mean
    return words


def as_lines(lines: Sequence[Mapping[str, str]]) -> tuple[list[str], list[list[str]]]:
    """Heads as they first come, and the cells under them."""
    heads = list(dict.fromkeys(head for line in lines for head in line))
    return heads, [[line.get(head, NONE) for head in heads] for line in lines]


def in_digits(value: float, digits: int) -> str:
    """A number with so many digits behind the point."""
    return NONE if np.isnan(value) else number(value, f".{digits}f")


def flat(found: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Names and what they stand for, those of a mapping within behind a full stop."""
    pairs: list[tuple[str, Any]] = []
    for name, value in found.items():
        if name == "paraphrases":
            pairs += [
                (f"{one['quality']}.kendall_c at {a:g}, {b:g}", one["kendall_c"][i][j])
                for one in value
                for i, a in enumerate(one["fixed1"])
                for j, b in enumerate(one["fixed2"])
            ]
        elif isinstance(value, Mapping):
            pairs += flat(value, f"{before}{name}.")
        elif isinstance(value, tuple):  # an interval
            pairs += [(f"{before}{name}.low", value[0]), (f"{before}{name}.high", value[1])]
        elif isinstance(value, str):
            pairs.append((before + name, inert(value)))
        elif isinstance(value, int | float):
            pairs.append((before + name, value))
    return pairs
