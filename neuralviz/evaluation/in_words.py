"""Numbers of an evaluation in words, for tables, and by flat names, for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.store.writing import escape_formula
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.confusion import Confusion
    from neuralviz.evaluation.measured import Measured

NAMES = {
    "spearman": "Spearman",
    "kendall_c": "tau-c",
    "kendall_b": "tau-b",
    "pearson": "Pearson",
}
HIGHER, LOWER = "higher is better", "lower is better"
ARROWS = {HIGHER: "↑", LOWER: "↓"}
EMPTY_CELL = "–"


class Table(NamedTuple):
    """A table as words.

    Attributes:
        heads: of the columns.
        lines: a row each.
        better: of each column, `HIGHER`, `LOWER`, or nothing where neither is better.
        best: line and column of the best values, where they differ.
    """

    heads: list[str]
    lines: list[list[str]]
    better: list[str]
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Word:
    """What stands in a cell.

    Attributes:
        text: as it is read.
        value: as it is compared; NaN where it is not.
        better: as of `Table`.
    """

    text: str
    value: float = np.nan
    better: str = ""


def format_measured(measured: Measured) -> dict[str, dict[str, Word]]:
    """What was measured, by kind of measure and head of a column."""
    words: dict[str, dict[str, Word]] = {}
    if measured.correlations is not None:
        values = {NAMES[n]: getattr(measured.correlations, n) for n in COEFFICIENTS}
        cells = {name: Word(in_digits(v, 3), v, HIGHER) for name, v in values.items()}
        if measured.intervals is not None:
            low, high = measured.intervals.spearman
            bounds = f"{number(low, '.3f')} to {number(high, '.3f')}"
            cells["Spearman, 95% interval"] = Word(bounds)
        words[""] = cells
    for name, counted in (("pairs", measured.pairs), ("triplets", measured.triplets)):
        if counted is not None:
            words[name] = {
                "error": Word(f"{counted.error:.2%}", counted.error, LOWER),
                "broken": Word(f"{counted.wrong:,} of {counted.total:,}", counted.wrong, LOWER),
                "without ties": Word(f"{counted.wrong_strict:,}", counted.wrong_strict, LOWER),
                "same": Word(number(counted.same, ".2f")),
                "diff": Word(number(counted.diff, ".2f")),
            }
    if measured.neighbours is not None:
        accuracy, (low, high) = measured.neighbours.accuracy, measured.neighbours.interval
        words[f"{measured.neighbours.k}-NN"] = {
            "accuracy": Word(f"{accuracy:.1%}", accuracy, HIGHER),
            "95% interval": Word(f"{low:.1%} to {high:.1%}"),
            "majority baseline": Word(f"{measured.neighbours.baseline:.1%}"),
        }
        words |= _by_label(f"{measured.neighbours.k}-NN", measured.votes)
    if measured.probe is not None:
        probe, (low, high) = measured.probe, measured.probe.interval
        words["probe"] = {
            "accuracy": Word(f"{probe.accuracy:.1%}", probe.accuracy, HIGHER),
            "95% interval": Word(f"{low:.1%} to {high:.1%}"),
            "majority baseline": Word(f"{probe.baseline:.1%}"),
            "TF-IDF baseline": Word(EMPTY_CELL if probe.tfidf is None else f"{probe.tfidf:.1%}"),
        }
        words |= _by_label("probe", probe.confusion)
    if measured.uniformity is not None:
        spread = {
            "alignment": measured.uniformity.alignment,
            "uniformity": measured.uniformity.uniformity,
        }
        words["embeddings"] = {
            name: Word(number(value, ".3f"), value, LOWER)
            for name, value in spread.items()
            if value is not None
        }
    for quality_map in measured.paraphrases:
        defined = quality_map.kendall_c[np.isfinite(quality_map.kendall_c)]
        mean = float(defined.mean()) if len(defined) else np.nan
        words.setdefault("mean tau-c", {})[f"{quality_map.quality} varies"] = Word(
            in_digits(mean, 3), mean, HIGHER
        )
    return words


def _by_label(kind: str, confusion: Confusion | None) -> dict[str, dict[str, Word]]:
    """The measures that count every label alike, as of `format_measured`."""
    if confusion is None:
        return {}
    values = {"macro-F1": confusion.macro_f1, "balanced accuracy": confusion.balanced_accuracy}
    cells = {name: Word(f"{value:.1%}", value, HIGHER) for name, value in values.items()}
    return {f"{kind}, by label": cells}


def as_lines(lines: Sequence[Mapping[str, str | Word]]) -> Table:
    """Heads as they first come, and the cells under them."""
    heads = list(dict.fromkeys(head for line in lines for head in line))
    nothing = Word(EMPTY_CELL)
    columns = [[_word(line.get(head, nothing)) for line in lines] for head in heads]
    better = [next((word.better for word in column if word.better), "") for column in columns]
    best = {
        (line, place)
        for place, (column, direction) in enumerate(zip(columns, better, strict=True))
        for line in _best_of(column, direction)
    }
    texts = [[word.text for word in line] for line in zip(*columns, strict=True)]
    return Table(heads, texts, better, frozenset(best))


def _word(cell: str | Word) -> Word:
    return Word(cell) if isinstance(cell, str) else cell


def _best_of(column: Sequence[Word], better: str) -> list[int]:
    """Lines with the best value of a column, as it is read; none where all are alike."""
    values = [word.value for word in column]
    if not better or len({word.text for word in column if np.isfinite(word.value)}) < 2:
        return []
    text = column[int((np.nanargmax if better == HIGHER else np.nanargmin)(values))].text
    return [line for line, word in enumerate(column) if word.text == text]


def in_digits(value: float, digits: int) -> str:
    """A number with so many digits behind the point."""
    return EMPTY_CELL if np.isnan(value) else number(value, f".{digits}f")


def flatten(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Names and what they stand for, those of a mapping within behind a full stop."""
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        if name == "paraphrases" and not isinstance(value, str):
            pairs += [
                (
                    f"{quality_map['quality']}.kendall_c at {a:g}, {b:g}",
                    quality_map["kendall_c"][i][j],
                )
                for quality_map in value
                for i, a in enumerate(quality_map["fixed1"])
                for j, b in enumerate(quality_map["fixed2"])
            ]
        elif isinstance(value, Mapping):
            pairs += flatten(value, f"{before}{name}.")
        elif isinstance(value, tuple):  # an interval
            pairs += [(f"{before}{name}.low", value[0]), (f"{before}{name}.high", value[1])]
        elif isinstance(value, str):
            pairs.append((before + name, escape_formula(value)))
        elif isinstance(value, int | float):
            pairs.append((before + name, value))
    return pairs
