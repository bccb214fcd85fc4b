"""Experiments whose rows differ by one or two numbers alone: they are drawn as lines and grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuralviz.evaluation.experiments import Row


def find_swept_options(rows: Sequence[Row]) -> dict[str, tuple[float, ...]]:
    """The one or two options with numbers by which rows of one method differ, and their values.

    A list of one number, as of a single layer, is this number. Empty where the rows differ by
    anything else, or where a combination of values is missing.
    """
    specs = [row.spec for row in rows]
    methods = {(spec.method, spec.model_id) for spec in specs}
    if len(rows) < 3 or len(methods) > 1 or specs[0].parts:
        return {}
    options = [spec.all_options for spec in specs]
    values: dict[str, tuple[float, ...]] = {}
    for name in options[0]:
        as_text = [str(of_row.get(name)) for of_row in options]
        if len(set(as_text)) > 1:
            try:
                values[name] = tuple(float(text.strip("(,)")) for text in as_text)
            except ValueError:
                return {}
    n_combined = math.prod(len(set(numbers)) for numbers in values.values())
    together = set(zip(*values.values(), strict=True))
    return values if len(values) in (1, 2) and n_combined == len(together) == len(rows) else {}
