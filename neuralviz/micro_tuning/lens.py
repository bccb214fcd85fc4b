"""What a model's prediction head makes of a masked token at every layer (the logit lens)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.func import functional_call

from neuralviz.errors import SettingsError, ShouldStop, check_stop, never
from neuralviz.micro_tuning.cross_entropy import rows_at_once
from neuralviz.micro_tuning.events import TextDelta
from neuralviz.micro_tuning.inputs import MaskedInput, group_inputs, pack_inputs
from neuralviz.micro_tuning.per_text import PrecomputedEncoder, sharing_copy
from neuralviz.models import LanguageModel, bundled
from neuralviz.models.passes import call_with, copy_network, encode_ids
from neuralviz.models.tokens import TokenizedText
from neuralviz.words import ShortRepr

LENS_FILE = Path(bundled.__file__).with_name("lens.safetensors")


@dataclass(frozen=True, eq=False, repr=False)
class Lens(ShortRepr):
    """Predictions of masked tokens from every layer; layer 0 is the embedding output."""

    text: TokenizedText
    tokens: np.ndarray  # [position] indices in the text of the tokens masked, each alone
    probability: np.ndarray  # [position, layer] of the masked token, 0 … 1
    rank: np.ndarray  # [position, layer] of the masked token, from 1
    words: tuple[tuple[tuple[str, ...], ...], ...]  # [position, layer, top] likeliest first
    shares: np.ndarray  # [position, layer, top] their probabilities

    @property
    def loss(self) -> np.ndarray:
        """[layer] mean cross entropy in nats over the positions."""
        return -np.log(np.maximum(self.probability, 1e-30)).mean(axis=0)

    @property
    def first_on_top(self) -> np.ndarray:
        """[position] the layer from which on the masked token stays on top; −1 if it is not."""
        is_behind = self.rank != 1
        n_layers = is_behind.shape[1]
        first = n_layers - np.argmax(is_behind[:, ::-1], axis=1)
        return np.where(is_behind[:, -1], -1, np.where(is_behind.any(axis=1), first, 0))


@torch.no_grad()
def read_layers(
    model: LanguageModel,
    text: TokenizedText,
    tokens: Sequence[int] | None = None,
    *,
    delta: TextDelta | None = None,
    top: int = 5,
    translate: Callable[[Tensor], Tensor] | None = None,
    should_stop: ShouldStop = never,
) -> Lens:
    """Mask each of the ``tokens`` in turn, all by default, and let the head read every layer.

    ``delta`` is added to the weights first. ``translate`` turns [layer, position, d_model] vectors
    into what the last layer would have. `SettingsError` for a token or delta that does not fit,
    `Stopped` if ``should_stop`` returns true.
    """
    chosen = np.arange(len(text)) if tokens is None else np.array(sorted(set(tokens)))
    if not len(chosen) or not 0 <= chosen[0] <= chosen[-1] < len(text):
        raise SettingsError(f"Choose tokens from 0 to {len(text) - 1}.")
    call, head = _tune(model, delta)
    parts: list[tuple[np.ndarray, ...]] = []
    for group in group_inputs(model, list(_mask_tokens(model, text, chosen))):
        check_stop(should_stop)
        piece = pack_inputs(model, group)
        states = encode_ids(model, piece.ids, piece.attention, call=call)
        vectors = states[:, piece.row, piece.column]  # [layer, position, d_model]
        if translate is not None:
            vectors = translate(vectors)
        size = max(1, rows_at_once(model.vocab_size) // len(vectors))
        for rows in (slice(i, i + size) for i in range(0, len(piece.labels), size)):
            scores = head(vectors[:, rows]).log_softmax(dim=-1)  # [layer, position, vocab]
            label = piece.labels[rows].expand(len(scores), -1)[..., None]
            logs = scores.gather(2, label)
            likeliest, ids = scores.topk(min(top, scores.shape[2]), dim=2)
            rank = (~(scores <= logs)).sum(dim=2) + 1  # NaN is last
            columns = (logs[..., 0].exp(), rank, ids, likeliest.exp())
            arrays = (column.transpose(0, 1).cpu().numpy() for column in columns)
            parts.append((piece.token_of[rows].cpu().numpy(), *arrays))
    order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
    probability, rank, ids, shares = (
        np.concatenate(column)[order] for column in list(zip(*parts, strict=True))[1:]
    )
    spell = model.tokenizer.convert_ids_to_tokens
    words = tuple(tuple(tuple(spell(row)) for row in layers) for layers in ids.tolist())
    return Lens(text, chosen, probability, rank, words, shares)


def _mask_tokens(
    model: LanguageModel, text: TokenizedText, tokens: np.ndarray
) -> Iterator[MaskedInput]:
    """An input for each token, which alone is masked in its chunk."""
    n_before = len(model.prefix_ids)
    for number, token in enumerate(tokens.tolist()):
        chunk = next(chunk for chunk in text.chunks if chunk.start <= token < chunk.stop)
        ids = np.array([*model.prefix_ids, *text.ids[chunk], *model.suffix_ids], dtype=np.int64)
        place = token - chunk.start + n_before
        ids[place] = model.mask_id
        label, masked = text.ids[[token]], np.array([place])
        yield MaskedInput(ids, masked, label, np.array([token]), 0, number, 1 / len(tokens))


def _tune(
    model: LanguageModel, delta: TextDelta | None
) -> tuple[Callable[..., Any] | None, Callable[[Tensor], Tensor]]:
    """The encoder, None for the model's own, and the head, both with ``delta`` added."""
    network, encoder = model.network, model.network.base_model_prefix
    parameters = dict(network.named_parameters())
    layers = () if delta is None else zip(delta.layers, delta.values, strict=True)
    weights = {}
    for name, values in layers:
        if name not in parameters or parameters[name].shape != values.shape:
            raise SettingsError(f"This delta does not fit the model “{model.id}”.")
        weights[name] = parameters[name] + torch.as_tensor(values, device=model.device)
    tuned = {
        name.removeprefix(f"{encoder}."): weights.pop(name)
        for name in list(weights)
        if name.startswith(f"{encoder}.")
    }
    call = partial(call_with, copy_network(network.base_model), tuned) if tuned else None
    head = sharing_copy(network, [encoder, *(name.rpartition(".")[0] for name in weights)])
    precomputed = PrecomputedEncoder()
    setattr(head, encoder, precomputed)

    def read(vectors: Tensor) -> Tensor:
        precomputed.output = vectors
        ids = torch.zeros(vectors.shape[:2], dtype=torch.long, device=vectors.device)
        return functional_call(head, weights, (), {"input_ids": ids}).logits

    return call, read


@cache
def translate_bundled(file: Path = LENS_FILE) -> Callable[[Tensor], Tensor]:
    """The bundled model's layers as the last one's, by maps fitted with ``scripts/fit_lens.py``."""
    maps = {name: values.float() for name, values in load_file(file).items()}

    def translate(vectors: Tensor) -> Tensor:
        weight, bias = (maps[name].to(vectors.device) for name in ("weight", "bias"))
        translated = torch.einsum("lpd,lde->lpe", vectors[:-1], weight) + bias[:, None]
        return torch.cat([translated, vectors[-1:]])

    return translate
