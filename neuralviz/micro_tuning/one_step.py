"""The gradient of every text's loss at the pretrained weights: where a first step would go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import never
from neuralviz.micro_tuning.gradients import Gradients, JoinedLayers
from neuralviz.micro_tuning.inputs import PreparedInputs, stop_between
from neuralviz.micro_tuning.learning import batches
from neuralviz.micro_tuning.plan import mask_texts
from neuralviz.micro_tuning.probe import per_text_network

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel
    from neuralviz.models.tokens import TokenizedText


def loss_gradients(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    should_stop: ShouldStop = never,
) -> tuple[np.ndarray, ...]:
    """The gradient of every text's loss, by the layers that would be tuned; nothing is tuned.

    The loss is that of micro-tuning: the cross entropy averaged over the masked positions of all
    chunks of a text.

    Args:
        model: from `neuralviz.load_model`; only read.
        texts: from `tokenize`.
        settings: the layers, and how texts are masked; exact.
        should_stop: asked before every pass through the network.

    Returns:
        Per layer, [text, dim].

    Raises:
        ModelError: the architecture does not let these layers be tuned.
        Stopped: ``should_stop`` said so.
    """
    network = per_text_network(model, settings.layers)
    layers = JoinedLayers(model, settings.layers)
    per_batch = []
    for batch in batches(model, texts, settings):
        gradients = Gradients(model, network, layers, batch, settings, follow_tokens=False)
        weights = layers.weights.expand(len(batch), -1).clone()
        inputs = PreparedInputs(model, network, mask_texts(model, batch, settings), settings)
        gradients.compute(stop_between(should_stop, inputs), weights)
        per_batch.append([layer.cpu().numpy() for layer in layers.split(gradients.joined).values()])
    return tuple(map(np.concatenate, zip(*per_batch, strict=True)))
