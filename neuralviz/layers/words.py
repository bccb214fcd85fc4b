"""The tokens of a text through all layers, and SBERT-WK's weights of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from neuralviz.errors import ModelError
from neuralviz.layers.geometry import TokenStates
from neuralviz.layers.sbert_wk import gram_matrices, importance, layer_weights, token_variance
from neuralviz.layers.settings import SbertWkSettings
from neuralviz.layers.states import layer_states
from neuralviz.models import TokenizedText
from neuralviz.models.language_model import TextModel, check_model
from neuralviz.models.tokens import check_tokenized


def follow_tokens(model: TextModel, text: TokenizedText) -> TokenStates:
    """Run a text, or the first chunk of a long one; `ModelError` if the vectors are not finite."""
    check_model(model, TextModel, "follow_tokens")
    check_tokenized([text])
    first = text.chunks[0]
    (states,) = layer_states(model, [replace(text, chunks=(first,))])
    vectors = states.vectors[:, 0].float().cpu().numpy()
    if not np.isfinite(vectors).all():
        raise ModelError(
            f"The model “{model.id}” outputs infinite or NaN values: its weights are damaged. "
            "Download it again, or choose another model."
        )
    special = model.tokenizer.convert_ids_to_tokens
    return TokenStates(
        text=text,
        tokens=(
            *special(list(model.prefix_ids)),
            *text.tokens[first],
            *special(list(model.suffix_ids)),
        ),
        vectors=vectors,
        n_prefix=len(model.prefix_ids),
        n_suffix=len(model.suffix_ids),
    )


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """SBERT-WK's weights of the tokens that count."""

    settings: SbertWkSettings
    layers: np.ndarray  # [layer] numbers of the layers that count
    alignment: np.ndarray  # [token, layer]; these three sum to 1 over the layers
    novelty: np.ndarray  # [token, layer]
    combined: np.ndarray  # [token, layer]
    importance: np.ndarray  # [token], summing to 1


def token_weights(states: TokenStates, settings: SbertWkSettings) -> TokenWeights:
    """SBERT-WK's weights of each token's layers, and of each token (section IV)."""
    counted = states.vectors[settings.layer_start :, : states.n_counted]
    gram = gram_matrices(torch.from_numpy(np.ascontiguousarray(counted.transpose(1, 0, 2))))
    weights = layer_weights(gram, settings.window, settings.variant, settings.omega)
    token_importance = importance(token_variance(gram))
    return TokenWeights(
        settings=settings,
        layers=np.arange(settings.layer_start, states.n_layers),
        alignment=weights.alignment.numpy(),
        novelty=weights.novelty.numpy(),
        combined=weights.combined.numpy(),
        importance=(token_importance / token_importance.sum()).numpy(),
    )
