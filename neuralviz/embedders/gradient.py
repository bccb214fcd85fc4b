"""The gradient of texts: what a neural embedding is before there is a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuralviz.embedders.base import ModelEmbedder, nothing_learnt
from neuralviz.micro_tuning.blueprints import DEFAULT_BLUEPRINTS
from neuralviz.micro_tuning.events import neural_embeddings
from neuralviz.micro_tuning.one_step import loss_gradients
from neuralviz.micro_tuning.settings import REVISION, check_settings
from neuralviz.micro_tuning.workload import count_masked
from neuralviz.models import LanguageModel, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from neuralviz.errors import ShouldStop
    from neuralviz.models import TokenizedText


class GradientEmbedder(ModelEmbedder):
    """Embeds a text by the negative gradient of its loss at the pretrained weights.

    That is Equation 1 of the neural paper with ``W' - W`` replaced by the direction in which a
    plain gradient step would move the weights. AdamW's first step moves every weight by about the
    learning rate, whatever the gradient's size: the delta of a single epoch is the gradient's sign.

    >>> GradientEmbedder(model, layers="last_block")

    Args:
        model: from `neuralviz.load_model`.
        layers, blueprints, predict_unmasked: as of `TuningSettings`.
        name: for labels.

    Raises:
        SettingsError: a setting makes no sense.
    """

    model: LanguageModel
    model_kind = LanguageModel
    zeros_mean = "no weight has a gradient. Choose other layers."

    def __init__(
        self,
        model: LanguageModel,
        *,
        layers: Iterable[str] | str | None = None,
        blueprints: Iterable[Sequence[int]] = DEFAULT_BLUEPRINTS,
        predict_unmasked: bool = False,
        name: str = "gradient",
    ) -> None:
        super().__init__(model, name)
        self.settings = check_settings(
            model, layers=layers, blueprints=blueprints, predict_unmasked=predict_unmasked
        )

    @property
    def dim(self) -> int:
        """Values of one embedding: the sizes of the layers, summed."""
        sizes = {layer.name: layer.size for layer in self.model.layers}
        return sum(sizes[name] for name in self.settings.layers)

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {
            "method": "gradient",
            **self.depends_on_model,
            "layers": self.settings.layers,
            "blueprints": self.settings.blueprints,
            "predict_unmasked": self.settings.predict_unmasked,
            "revision": REVISION,
        }

    def masked_positions(self, texts: Sequence[str]) -> int:
        """Masked positions that have to be predicted, each once."""
        return sum(count_masked(text, self.settings) for text in tokenize(self.model, texts))

    def _embed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        gradients = loss_gradients(self.model, read, self.settings, should_stop)
        downhill = neural_embeddings(tuple(-layer for layer in gradients))
        return downhill, nothing_learnt(len(read))
