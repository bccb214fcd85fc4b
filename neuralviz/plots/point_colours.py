"""What the points of a map are coloured by: categories or numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuralviz.plots.theme import (
    BLUE,
    GREEN,
    LAYER_COLOURS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    shorten,
)
from neuralviz.reading.cells import cell_text, finite_number

# Those seen on light and on dark pages, those that are told apart best first.
COLOURS = (VERMILLION, BLUE, GREEN, PURPLE, ORANGE, SKY, *LAYER_COLOURS)
SYMBOLS = ("circle", "diamond", "square", "x")
PER_SYMBOL = 6  # categories with one symbol: up to 12 have a colour of their own, and half of them
MAX_CATEGORIES = PER_SYMBOL * len(SYMBOLS)  # another symbol, too
GREY = "#9A9FA5"
LABEL_CHARACTERS = 18
EXACT_IN_FLOAT32 = 2**24  # larger whole numbers, such as times, run together


@dataclass(frozen=True, eq=False)
class PointColour:
    """What the points of a map are coloured by: categories or numbers.

    Attributes:
        name: of the column or measure.
        categories: those with a colour of their own come first.
        codes: [text] place of each text's category, -1 where it has none; None for numbers.
        values: [text] float32, NaN where there is none; None for categories.
        number_format: of the values, as d3 writes it.
        missing: what texts without a category or number are called.
        ends: of the scale of the values; by default those of the middle 98% of them.
    """

    name: str
    categories: tuple[str, ...] = ()
    codes: np.ndarray | None = None
    values: np.ndarray | None = None
    number_format: str = ".3~g"
    missing: str = "no value"
    ends: tuple[float, float] | None = None

    def select(self, rows: np.ndarray) -> PointColour:
        """The colours of some texts, which look as they do among all."""
        codes = None if self.codes is None else self.codes[rows]
        return replace(self, codes=codes, values=None if self.values is None else self.values[rows])


def cluster_names(cluster_words: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A name for every cluster: its number, from 1, and its first words."""
    return tuple(
        f"{number} {', '.join(words[:2])}".strip() for number, words in enumerate(cluster_words, 1)
    )


def cluster_label(name: str) -> str:
    """A cluster's name, short enough to stand on a map."""
    if len(name) > LABEL_CHARACTERS:
        name = name.partition(",")[0]
    return shorten(name, LABEL_CHARACTERS)


def category_look(code: int, symbols: Sequence[str] = SYMBOLS) -> tuple[str, str]:
    """Colour and symbol of a category, no two alike."""
    return COLOURS[code % len(COLOURS)], symbols[code // PER_SYMBOL]


def colour_by_category(
    name: str, labels: Sequence[object], missing: str = "no value"
) -> PointColour:
    """Colours by label: the largest categories first, those that are numbers in their order.

    Args:
        name: of the labels.
        labels: [text]; None, NaN and blank ones are missing.
        missing: what texts without a label are called.
    """
    by_label = {label: cell_text(label).strip() for label in set(labels)}
    names = [by_label[label] for label in labels]
    ordered = _sort_categories(Counter(label for label in names if label))
    place = {label: code for code, label in enumerate(ordered)}
    codes = np.fromiter((place.get(label, -1) for label in names), np.int32, len(names))
    return PointColour(name, ordered, codes=codes, missing=missing)


def colour_by_code(
    name: str, codes: np.ndarray, names: Sequence[str], missing: str = "no value"
) -> PointColour:
    """`colour_by_category` of labels that are numbers already.

    Args:
        name: of the labels.
        codes: [text] which of the names each has, -1 where there is none.
        names: no two alike.
        missing: what texts without a label are called.
    """
    sizes = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    ordered = _sort_categories(
        Counter({label: n for label, n in zip(names, sizes, strict=True) if n})
    )
    place = {label: code for code, label in enumerate(ordered)}
    new = np.array([*(place.get(label, -1) for label in names), -1], dtype=np.int32)
    return PointColour(name, ordered, codes=new[codes], missing=missing)


def _sort_categories(sizes: Counter[str]) -> tuple[str, ...]:
    """The largest categories first; the first of those that are numbers as numbers."""
    by_size = [label for label, _ in sizes.most_common()]
    if all(finite_number(label) is not None for label in by_size):
        coloured, uncoloured = by_size[:MAX_CATEGORIES], by_size[MAX_CATEGORIES:]
        by_size = [*sorted(coloured, key=float), *sorted(uncoloured, key=float)]
    return tuple(by_size)


def colour_by_number(name: str, values: Sequence[float] | np.ndarray) -> PointColour:
    """Colours by a number of each text; what is not finite is missing.

    Args:
        name: of the numbers.
        values: [text].
    """
    numbers = np.asarray(values, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    if np.abs(finite).max(initial=0) < EXACT_IN_FLOAT32:
        numbers = numbers.astype(np.float32)
    number_format = ".3~g"
    if len(finite) and (finite == np.round(finite)).all():
        number_format = ",.0f" if np.abs(finite).max() >= 10_000 else ".0f"
    return PointColour(
        name, values=np.where(np.isfinite(numbers), numbers, np.nan), number_format=number_format
    )
