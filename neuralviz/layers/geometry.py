"""How the tokens of one text move through the layers, and what SBERT-WK makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from neuralviz.errors import ModelError
from neuralviz.layers.sbert_wk import (
    SbertWkSettings,
    gram_matrices,
    importance,
    layer_weights,
    sbert_wk_pooling,
    token_variance,
)
from neuralviz.layers.states import LayerStates, layer_states

if TYPE_CHECKING:
    from neuralviz.models import TextModel, TokenizedText

WIDEST_WINDOW = 6
OMEGAS = np.linspace(0.0, 1.0, 11)


@dataclass(frozen=True, eq=False)
class TokenStates:
    """The vectors of a text's tokens at every layer; of a text in several chunks, the first's.

    Attributes:
        text: the whole text.
        tokens: [token] special ones included, as the tokenizer writes them.
        vectors: [layer, token, d_model] float32; layer 0 is the embedding output.
        n_prefix, n_suffix: special tokens before and behind the text's own.
    """

    text: TokenizedText
    tokens: tuple[str, ...]
    vectors: np.ndarray
    n_prefix: int
    n_suffix: int

    @property
    def n_layers(self) -> int:
        """Layers of vectors: one more than the model has blocks."""
        return len(self.vectors)

    @property
    def n_counted(self) -> int:
        """Tokens that count for SBERT-WK: all but the special ones behind the text."""
        return len(self.tokens) - self.n_suffix

    @property
    def counted(self) -> tuple[str, ...]:
        """The tokens that count."""
        return self.tokens[: self.n_counted]

    @property
    def is_cut(self) -> bool:
        """Whether the text goes on behind these tokens."""
        return len(self.text.chunks) > 1


def follow_tokens(model: TextModel, text: TokenizedText) -> TokenStates:
    """Run a text, or the first chunk of a long one, through the model.

    Raises:
        ModelError: the model gives vectors that are no numbers.
    """
    first = text.chunks[0]
    (states,) = layer_states(model, [replace(text, chunks=(first,))])
    vectors = states.vectors[:, 0].float().cpu().numpy()
    if not np.isfinite(vectors).all():
        raise ModelError(
            f"The model {model.id} gives vectors that are not numbers, so its weights are broken. "
            "Choose another model, or get its files anew."
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


def cosine_maps(vectors: np.ndarray) -> np.ndarray:
    """[token, layer, layer] cosines between a token's vectors (SBERT-WK, Figure 1).

    ``vectors`` is [layer, token, d_model]; a vector of zeros has the cosine 0 with all.
    """
    of_token = np.asarray(vectors, dtype=np.float64).transpose(1, 0, 2)
    lengths = np.linalg.norm(of_token, axis=2, keepdims=True)
    unit = of_token / np.where(lengths > 0, lengths, 1)
    return np.clip(unit @ unit.transpose(0, 2, 1), -1, 1)


def mean_map(states: TokenStates) -> np.ndarray:
    """[layer, layer] mean of the cosine maps over the tokens that count."""
    return cosine_maps(states.vectors[:, : states.n_counted]).mean(axis=0)


def offset_diagonals(
    cosines: np.ndarray, offsets: Sequence[int] = (1, 2, 3, 4)
) -> dict[int, np.ndarray]:
    """By offset, [layer - offset] cosines of layers so far apart (SBERT-WK, Figure 1 e-h).

    Offsets that the [layer, layer] map does not have are left out.
    """
    return {
        offset: np.diagonal(cosines, offset).copy() for offset in offsets if offset < len(cosines)
    }


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """SBERT-WK's weights of the tokens that count.

    Attributes:
        settings: how they are weighed.
        layers: [layer] numbers of the layers that count.
        alignment, novelty, combined: [token, layer] with a sum of 1 over the layers.
        importance: [token] with a sum of 1.
    """

    settings: SbertWkSettings
    layers: np.ndarray
    alignment: np.ndarray
    novelty: np.ndarray
    combined: np.ndarray
    importance: np.ndarray


def token_weights(states: TokenStates, settings: SbertWkSettings) -> TokenWeights:
    """What SBERT-WK gives each layer of each token, and each token (section IV)."""
    counted = states.vectors[settings.layer_start :, : states.n_counted]
    gram = gram_matrices(torch.from_numpy(np.ascontiguousarray(counted.transpose(1, 0, 2))))
    of_layers = layer_weights(gram, settings.window, settings.variant, settings.omega)
    of_tokens = importance(token_variance(gram))
    return TokenWeights(
        settings=settings,
        layers=np.arange(settings.layer_start, states.n_layers),
        alignment=of_layers.alignment.numpy(),
        novelty=of_layers.novelty.numpy(),
        combined=of_layers.combined.numpy(),
        importance=(of_tokens / of_tokens.sum()).numpy(),
    )


def word_importance(states: TokenStates, of_tokens: np.ndarray) -> np.ndarray:
    """[word] sums of the importance of each word's tokens, of the words of the first chunk.

    ``of_tokens`` is [token], of the tokens that count. What is left to 1 is that of the special
    tokens before the text.
    """
    own = of_tokens[states.n_prefix :]
    return np.bincount(states.text.words[: len(own)], weights=own)


def sentence_vector(states: TokenStates, settings: SbertWkSettings) -> np.ndarray:
    """[d_model] SBERT-WK's vector of the text, or of its first chunk."""
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
    """Cosines between a text's vector at the chosen settings and at others (SBERT-WK, Figure 3).

    Attributes:
        settings: the chosen ones.
        windows: [window] 1 … 6 at most.
        layer_starts: [layer_start] 0 … the number of blocks - 1.
        by_window: [window, layer_start] cosines at the chosen omega.
        omegas: [omega] 0 … 1.
        by_omega: [omega] cosines at the chosen window and first layer.
    """

    settings: SbertWkSettings
    windows: np.ndarray
    layer_starts: np.ndarray
    by_window: np.ndarray
    omegas: np.ndarray
    by_omega: np.ndarray


def sensitivity(states: TokenStates, settings: SbertWkSettings) -> Sensitivity:
    """How much the sentence vector depends on ``window``, ``layer_start`` and ``omega``."""
    n_blocks = states.n_layers - 1
    windows = np.arange(1, min(WIDEST_WINDOW, n_blocks) + 1)
    layer_starts = np.arange(n_blocks)
    chosen = sentence_vector(states, settings)

    def cosine(other: SbertWkSettings) -> float:
        vector = sentence_vector(states, other)
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
