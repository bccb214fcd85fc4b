"""Forward passes: the vectors of many texts' tokens at every layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuralviz.errors import SettingsError, ShouldStop, check_stop, never
from neuralviz.layers.settings import POOLINGS, PoolingName
from neuralviz.models import TextModel, TokenizedText
from neuralviz.models.passes import encode_ids, pad_inputs
from neuralviz.models.tokens import batch_while

TOKENS_PER_BATCH = 2048


@dataclass(frozen=True, eq=False)
class LayerStates:
    """The vectors of some inputs, one row per text or per chunk of a long text."""

    vectors: Tensor  # [layer, row, token, d_model]; layer 0 is the embedding output
    attention: Tensor  # [row, token] false for padding
    text_of_row: Tensor  # [row] index of the text
    first_token: Tensor  # [row] number of its first token in the text
    is_last: Tensor  # [row] whether it is the text's last chunk
    n_prefix: int  # special tokens before the text in each row
    n_suffix: int  # special tokens after it

    @property
    def lengths(self) -> Tensor:
        """[row] number of tokens, with special tokens."""
        return self.attention.sum(dim=1)

    def select(self, layers: Sequence[int]) -> Tensor:
        """[layer, row, token, d_model] vectors at some layers, without a copy if they follow on."""
        if list(layers) == list(range(layers[0], layers[-1] + 1)):
            return self.vectors[layers[0] : layers[-1] + 1]
        return self.vectors[list(layers)]

    @property
    def without_suffix(self) -> Tensor:
        """[row, token] true for the text's tokens and the special tokens before it."""
        positions = torch.arange(self.attention.shape[1], device=self.attention.device)
        return positions < (self.lengths - self.n_suffix)[:, None]

    @property
    def text_tokens(self) -> Tensor:
        """[row, token] true for the text's own tokens."""
        positions = torch.arange(self.attention.shape[1], device=self.attention.device)
        return self.without_suffix & (positions >= self.n_prefix)


def layer_states(
    model: TextModel, texts: Sequence[TokenizedText], *, call: Callable[..., Any] | None = None
) -> Iterator[LayerStates]:
    """Run texts through the model in batches of similar length.

    Long texts take several rows, maybe in several batches. A batch has up to `TOKENS_PER_BATCH`
    padded tokens, more only for a single longer row. ``call`` and errors are those of `encode_ids`.
    """
    rows = [
        _Row(
            [*model.prefix_ids, *text.ids[chunk].tolist(), *model.suffix_ids],
            text=index,
            first_token=chunk.start,
            is_last=chunk == text.chunks[-1],
        )
        for index, text in enumerate(texts)
        for chunk in text.chunks
    ]
    rows.sort(key=lambda row: -len(row.ids))  # longest first, so that a lack of memory shows early

    def fits(batch: list[_Row], row: _Row) -> bool:
        width = len(batch[0].ids)
        is_full = width * (len(batch) + 1) > TOKENS_PER_BATCH
        return not is_full and model.behaviour.may_share_pass(width, len(row.ids))

    for batch in batch_while(rows, fits):
        yield _forward(model, call, batch)


class _Row(NamedTuple):
    ids: list[int]
    text: int
    first_token: int
    is_last: bool


@torch.no_grad()
def _forward(model: TextModel, call: Callable[..., Any] | None, batch: list[_Row]) -> LayerStates:
    ids, attention = pad_inputs([row.ids for row in batch], model.pad_id, model.device)
    return LayerStates(
        vectors=encode_ids(model, ids, attention, call=call),
        attention=attention.bool(),
        text_of_row=torch.as_tensor([row.text for row in batch], device=model.device),
        first_token=torch.as_tensor([row.first_token for row in batch], device=model.device),
        is_last=torch.as_tensor([row.is_last for row in batch], device=model.device),
        n_prefix=len(model.prefix_ids),
        n_suffix=len(model.suffix_ids),
    )


class TokenWeights(NamedTuple):
    """The weights of tokens in some rows; a text's vector is the weighted mean of its tokens'."""

    layers: Sequence[int]  # that count
    weights: Tensor  # [layer, row, token]; a token's are its weight, shared out over the layers
    total: Tensor  # [row] sum of the weights
    scale: Tensor | float = 1.0  # of the weights, which leaves float32 in range

    @classmethod
    def of_layers(cls, layers: Sequence[int], counted: Tensor, states: LayerStates) -> TokenWeights:
        """Equal weights of the [row, token] tokens ``counted``, averaged over ``layers``."""
        shares = counted.to(states.vectors.dtype) / len(layers)
        return cls(layers, shares.expand(len(layers), -1, -1), counted.sum(dim=1))

    def parts(self, states: LayerStates) -> Tensor:
        """[layer, row, token, d_model] weighted vectors, in float64."""
        return states.select(self.layers).double() * (self.weights * self.scale)[..., None]

    def sums(self, states: LayerStates) -> Tensor:
        """[row, d_model] weighted sums over layers and tokens, in float64."""
        unified = torch.einsum("lrt,lrtd->rtd", self.weights, states.select(self.layers))
        return unified.sum(dim=1).double() * self.scale


Pooling = Callable[[LayerStates], TokenWeights]


def pool_texts(
    model: TextModel,
    texts: Sequence[TokenizedText],
    poolings: Sequence[Pooling],
    *,
    call: Callable[..., Any] | None = None,
    should_stop: ShouldStop = never,
) -> list[np.ndarray]:
    """For each pooling, [text, d_model] float32 weighted means over each text's tokens.

    All poolings share the forward passes. ``call`` is passed to `encode_ids`. Raises `Stopped` if
    ``should_stop`` returns true after a pass.
    """
    sums = np.zeros((len(poolings), len(texts), model.d_model))
    totals = np.zeros((len(poolings), len(texts)))
    for states in layer_states(model, texts, call=call):
        text_of_row = states.text_of_row.cpu().numpy()
        for number, pooling in enumerate(poolings):
            weights = pooling(states)
            np.add.at(sums[number], text_of_row, weights.sums(states).cpu().numpy())
            np.add.at(totals[number], text_of_row, weights.total.double().cpu().numpy())
        check_stop(should_stop)
    return list((sums / totals[..., None]).astype(np.float32))


def split_texts(
    model: TextModel,
    texts: Sequence[TokenizedText],
    pooling: Pooling,
    *,
    should_stop: ShouldStop = never,
) -> list[dict[int, np.ndarray]]:
    """For each text, by layer, [token + 1, d_model] float64 parts that add up to its pooled vector.

    The last row is that of the special tokens.
    """
    parts: list[dict[int, np.ndarray]] = [{} for _ in texts]
    totals = np.zeros(len(texts))
    for states in layer_states(model, texts):
        weights = pooling(states)
        by_token = weights.parts(states).cpu().numpy()  # [layer, row, token, d_model]
        text_tokens = states.text_tokens.cpu().numpy()
        np.add.at(totals, states.text_of_row.cpu().numpy(), weights.total.double().cpu().numpy())
        for row, text in enumerate(states.text_of_row.tolist()):
            counted, first = text_tokens[row], int(states.first_token[row])
            for layer, vectors in zip(weights.layers, by_token[:, row], strict=True):
                empty = np.zeros((len(texts[text]) + 1, model.d_model))
                rows = parts[text].setdefault(layer, empty)
                rows[first : first + counted.sum()] = vectors[counted]
                rows[-1] += vectors[~counted].sum(axis=0)
        check_stop(should_stop)
    return [
        {layer: rows / total for layer, rows in by_layer.items()}
        for by_layer, total in zip(parts, totals, strict=True)
    ]


def make_pooling(
    model: TextModel, name: PoolingName, layers: tuple[int, ...], *, special_tokens: bool = True
) -> Pooling:
    """A pooling averaged over ``layers`` (from `check_layer_numbers`).

    ``mean`` averages the tokens, special ones only if ``special_tokens``; ``cls`` takes the first
    special token, ``sep`` the first one after the text, ``last`` the text's last token. All but
    ``last`` average over chunks. `SettingsError` for another name or a token that the model lacks.
    """
    if name not in POOLINGS:
        raise SettingsError(f"The pooling must be one of: {', '.join(POOLINGS)}.")
    if (name == "cls" and not model.prefix_ids) or (name == "sep" and not model.suffix_ids):
        side = "before" if name == "cls" else "after"
        raise SettingsError(
            f"The model “{model.id}” has no special token {side} a text. Use mean or last."
        )

    def weigh(states: LayerStates) -> TokenWeights:
        if name == "mean":
            counted = states.attention if special_tokens else states.text_tokens
        else:
            behind = states.lengths - states.n_suffix
            position = {"cls": torch.zeros_like(behind), "sep": behind, "last": behind - 1}[name]
            places = torch.arange(states.attention.shape[1], device=behind.device)
            counted = places == position[:, None]
            if name == "last":
                counted &= states.is_last[:, None]
        return TokenWeights.of_layers(layers, counted, states)

    return weigh
