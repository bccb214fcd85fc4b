"""Forward passes: the vectors of many texts' tokens at every layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from neuralviz.errors import SettingsError, ShouldStop, check_stop, never
from neuralviz.layers.settings import POOLINGS, PoolingName
from neuralviz.models.passes import encode_ids, pad_inputs
from neuralviz.models.tokens import batch_while

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.models import TextModel, TokenizedText

TOKENS_PER_BATCH = 2048


@dataclass(frozen=True, eq=False)
class LayerStates:
    """The vectors of some inputs, one row per text or per chunk of a long text."""

    vectors: Tensor  # [layer, row, token, d_model]; layer 0 is the embedding output
    attention: Tensor  # [row, token] false for padding
    text_of_row: Tensor  # [row] index of the text
    is_last: Tensor  # [row] whether it is the text's last chunk
    n_prefix: int  # special tokens before the text in each row
    n_suffix: int  # special tokens after it

    @property
    def lengths(self) -> Tensor:
        """[row] number of tokens, with special tokens."""
        return self.attention.sum(dim=1)

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
    model: TextModel,
    texts: Sequence[TokenizedText],
    *,
    call: Callable[..., Any] | None = None,
) -> Iterator[LayerStates]:
    """Run texts through the model in batches of similar length.

    Long texts take several rows, maybe in several batches. A batch has up to `TOKENS_PER_BATCH`
    padded tokens, more only for a single longer row. ``call`` and errors are those of `encode_ids`.
    """
    rows = [
        _Row(
            [*model.prefix_ids, *text.ids[chunk].tolist(), *model.suffix_ids],
            text=index,
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
    is_last: bool


@torch.no_grad()
def _forward(model: TextModel, call: Callable[..., Any] | None, batch: list[_Row]) -> LayerStates:
    ids, attention = pad_inputs([row.ids for row in batch], model.pad_id, model.device)
    return LayerStates(
        vectors=encode_ids(model, ids, attention, call=call),
        attention=attention.bool(),
        text_of_row=torch.as_tensor([row.text for row in batch], device=model.device),
        is_last=torch.as_tensor([row.is_last for row in batch], device=model.device),
        n_prefix=len(model.prefix_ids),
        n_suffix=len(model.suffix_ids),
    )


# [row, dim] weighted sums over each row's tokens, and [row] sums of the weights
Pooling = Callable[[LayerStates], "tuple[Tensor, Tensor]"]


def pool_texts(
    model: TextModel,
    texts: Sequence[TokenizedText],
    poolings: Sequence[Pooling],
    *,
    call: Callable[..., Any] | None = None,
    should_stop: ShouldStop = never,
) -> list[np.ndarray]:
    """For each pooling, [text, dim] float32 weighted means over each text's tokens.

    All poolings share the forward passes. ``call`` is passed to `encode_ids`. Raises `Stopped` if
    ``should_stop`` returns true after a pass.
    """
    sums: list[np.ndarray] = []
    weights = np.zeros((len(poolings), len(texts)))
    for states in layer_states(model, texts, call=call):
        text_of_row = states.text_of_row.cpu().numpy()
        for number, pooling in enumerate(poolings):
            row_sums, row_weights = (values.double().cpu().numpy() for values in pooling(states))
            if len(sums) <= number:
                sums.append(np.zeros((len(texts), row_sums.shape[1])))
            np.add.at(sums[number], text_of_row, row_sums)
            np.add.at(weights[number], text_of_row, row_weights)
        check_stop(should_stop)
    return [
        (total / weight[:, None]).astype(np.float32)
        for total, weight in zip(sums, weights, strict=False)
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
    chosen = list(layers)

    def average(vectors: Tensor) -> Tensor:
        return vectors[chosen].mean(dim=0) if len(chosen) > 1 else vectors[chosen[0]]

    def mean(states: LayerStates) -> tuple[Tensor, Tensor]:
        mask = states.attention if special_tokens else states.text_tokens
        return torch.einsum("rtd,rt->rd", average(states.vectors), mask.float()), mask.sum(dim=1)

    def one_token(states: LayerStates) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(states.lengths), device=states.lengths.device)
        behind = states.lengths - states.n_suffix
        positions = {"cls": torch.zeros_like(behind), "sep": behind, "last": behind - 1}[name]
        counts = states.is_last if name == "last" else torch.ones_like(behind)
        return average(states.vectors[:, rows, positions]) * counts[:, None], counts

    return mean if name == "mean" else one_token
