"""How much there is to be done for texts, known before it is begun, and without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.micro_tuning.blueprints import mask_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel
    from neuralviz.models.tokens import TokenizedText

MAX_FOLLOWED_VALUES = 5_000_000  # tokens times values of the layers, for token shares


def count_masked(text: TokenizedText, settings: TuningSettings) -> int:
    """Masked positions of a text over all its inputs and chunks: what micro-tuning has to do."""
    total = 0
    for chunk in text.chunks:
        n = chunk.stop - chunk.start
        total += n if settings.predict_unmasked else int(
            mask_inputs(n, settings.blueprints).masked.sum()
        )  # fmt: skip
    return total


def followed_values(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> int:
    """Values that following every token takes: tokens times sizes of the layers."""
    sizes = {layer.name: layer.size for layer in model.layers}
    return sum(map(len, texts)) * sum(sizes[name] for name in settings.layers)
