"""What blueprints do to a text, in a sentence made from its masked inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.micro_tuning.blueprints import mask_inputs
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from neuralviz.micro_tuning.blueprints import Blueprint, MaskedInputs


def describe_masks(inputs: MaskedInputs, blueprints: Sequence[Blueprint]) -> str:
    """How often the tokens are masked; of several blueprints, how often by the first one alone.

    Args:
        inputs: of all tokens of a chunk.
        blueprints: that they were made by.
    """
    times = inputs.times_masked
    n_inputs = many(len(inputs.masked), "masked input")
    if not times.all():  # with a shift by j + 1, token j is masked: only the last one may be left
        return "The last token is never masked: the model does not have to predict it."
    mask = "masks" if len(inputs.masked) == 1 else "mask"
    subject = "every token" if len(times) > 1 else "the only token"
    sentence = f"{n_inputs} {mask} {subject} {_format_times(times)}"
    if len(blueprints) == 1:
        return f"{sentence}."
    often = _format_times(mask_inputs(len(times), blueprints[:1]).times_masked)
    pronoun = "each token" if len(times) > 1 else "it"
    return f"{sentence}; with {blueprints[0]} alone, {pronoun} would be masked {often}."


def _format_times(times: np.ndarray) -> str:
    """``once``, ``twice``, ``7 times``, ``6 or 7 times``, ``3 to 7 times``."""
    lowest, highest = int(times.min()), int(times.max())
    if lowest < highest:
        return f"{lowest} {'or' if highest == lowest + 1 else 'to'} {highest} times"
    return {1: "once", 2: "twice"}.get(highest, many(highest, "time"))
