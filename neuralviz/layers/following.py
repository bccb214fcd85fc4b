"""The tokens of one text through all layers, and their SBERT-WK weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from neuralviz.errors import ModelError
from neuralviz.layers.geometry import TokenStates
from neuralviz.layers.sbert_wk import (
    gram_matrices,
    importance,
    layer_weights,
    sbert_wk_pooling,
    token_variance,
)
from neuralviz.layers.settings import WIDEST_WINDOW
from neuralviz.layers.states import LayerStates, layer_states
from neuralviz.models.language_model import TextModel, check_model
from neuralviz.models.tokens import check_tokenized

if TYPE_CHECKING:
    from neuralviz.layers.settings import SbertWkSettings
    from neuralviz.models import TokenizedText

OMEGAS = np.linspace(0.0, 1.0, 11)


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


def sentence_vector(states: TokenStates, settings: SbertWkSettings) -> np.ndarray:
    """[d_model] SBERT-WK vector of the text, or of its first chunk."""
    vectors = torch.from_numpy(states.vectors)[:, None]
    row = LayerStates(
        vectors=vectors,
        attention=torch.ones(vectors.shape[1:3], dtype=torch.bool),
        text_of_row=torch.zeros(1, dtype=torch.long),
        is_last=torch.ones(1, dtype=torch.bool),
        n_prefix=states.n_prefix,
        n_suffix=states.n_suffix,
    )
    sums, weights = sbert_wk_pooling(settings)(row)
    return (sums / weights[:, None])[0].numpy()


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Cosines of a text's vector with those at other settings (SBERT-WK, Figure 3)."""

    settings: SbertWkSettings  # the chosen settings
    windows: np.ndarray  # [window] from 1 to at most 6
    layer_starts: np.ndarray  # [layer_start] 0 … number of blocks - 1
    by_window: np.ndarray  # [window, layer_start] cosines at the chosen omega
    omegas: np.ndarray  # [omega] 0 … 1
    by_omega: np.ndarray  # [omega] cosines at the chosen window and layer_start


def sensitivity(states: TokenStates, settings: SbertWkSettings) -> Sensitivity:
    """How the sentence vector depends on ``window``, ``layer_start`` and ``omega``."""
    n_blocks = states.n_layers - 1
    windows = np.arange(1, min(WIDEST_WINDOW, n_blocks) + 1)
    layer_starts = np.arange(n_blocks)
    chosen = sentence_vector(states, settings)

    def cosine(varied: SbertWkSettings) -> float:
        vector = sentence_vector(states, varied)
        lengths = np.linalg.norm(vector) * np.linalg.norm(chosen)
        return float(np.clip(vector @ chosen / lengths, -1, 1)) if lengths > 0 else 0.0

    return Sensitivity(
        settings=settings,
        windows=windows,
        layer_starts=layer_starts,
        by_window=np.array(
            [
                [
                    cosine(replace(settings, window=int(window), layer_start=int(start)))
                    for start in layer_starts
                ]
                for window in windows
            ]
        ),
        omegas=OMEGAS,
        by_omega=np.array([cosine(replace(settings, omega=float(omega))) for omega in OMEGAS]),
    )
