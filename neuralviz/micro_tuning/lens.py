"""What a model makes of a token at every layer (the logit lens).

Its prediction head guesses the token, which is masked. Without a head, the token stays visible and
its vectors are compared with the rows of the embedding table by their cosine: of masked tokens, no
right row is near, and the dot product finds fewer of the visible ones (``benchmarks/lens.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import normalize

from neuralviz.errors import ModelError, SettingsError, ShouldStop, check_stop, never
from neuralviz.micro_tuning.cross_entropy import rows_at_once
from neuralviz.micro_tuning.inputs import MaskedInput, group_inputs, pack_inputs
from neuralviz.micro_tuning.per_text import PrecomputedEncoder
from neuralviz.micro_tuning.predictions import spell_token
from neuralviz.models import LanguageModel, TextModel, bundled
from neuralviz.models.passes import copy_network, encode_ids
from neuralviz.words import FUNCTION_WORDS, ShortRepr

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from neuralviz.micro_tuning.events import TextDelta
    from neuralviz.models.tokens import TokenizedText

LENS_FILE = Path(bundled.__file__).with_name("lens.safetensors")


@dataclass(frozen=True, eq=False, repr=False)
class Lens(ShortRepr):
    """What every layer makes of a text's tokens; layer 0 is the embedding output."""

    text: TokenizedText
    tokens: np.ndarray  # [position] indices in the text, each masked alone
    names: tuple[str, ...]  # [position] of the tokens, as in ``words``
    values: np.ndarray  # [position, layer] the token's probability, or cosine without a head
    rank: np.ndarray  # [position, layer] of the token, from 1
    words: tuple[tuple[tuple[str, ...], ...], ...]  # [position, layer, top] likeliest first
    shares: np.ndarray  # [position, layer, top] their probabilities or cosines
    has_head: bool = True

    @property
    def loss(self) -> np.ndarray:
        """[layer] mean cross entropy in nats over the positions, if the model has a head."""
        return -np.log(np.maximum(self.values, 1e-30)).mean(axis=0)

    @property
    def first_on_top(self) -> np.ndarray:
        """[position] the layer from which on the masked token stays on top; −1 if it is not."""
        is_behind = self.rank != 1
        n_layers = is_behind.shape[1]
        first = n_layers - np.argmax(is_behind[:, ::-1], axis=1)
        return np.where(is_behind[:, -1], -1, np.where(is_behind.any(axis=1), first, 0))

    def find_telling(self, after: Lens | None = None) -> int:
        """The position of the content word that takes the lead, or else is learnt most."""
        gain, is_telling = self.values[:, -1], self.first_on_top > 0
        if not self.has_head:
            gain, is_telling = -gain, self.rank[:, -1] > 1
        elif after is not None:
            gain = after.values[:, -1] - gain
            is_telling = (self.first_on_top < 0) & (after.first_on_top >= 0)
        n_pieces = np.bincount(self.text.words)[self.text.words[self.tokens]]
        is_content = [
            n == 1 and len(name) > 1 and name.isalpha() and name.lower() not in FUNCTION_WORDS
            for n, name in zip(n_pieces, self.names, strict=True)
        ]
        return int(np.lexsort([np.nan_to_num(gain), is_telling, is_content])[-1])


@torch.no_grad()
def read_layers(
    model: TextModel,
    text: TokenizedText,
    tokens: Sequence[int] | None = None,
    *,
    delta: TextDelta | None = None,
    top: int = 5,
    translate: Callable[[Tensor], Tensor] | None = None,
    should_stop: ShouldStop = never,
) -> Lens:
    """Mask each of the ``tokens`` in turn, all by default, and let the head read every layer.

    What follows the encoder's last block, such as a norm, is done to every layer, or ``translate``,
    which turns [layer, position, d_model] vectors into what the last layer would have. ``delta`` is
    added to the weights first. `SettingsError` for a token or delta that does not fit, `ModelError`
    if rows of the embedding table differ in size, `Stopped` if ``should_stop`` returns true.
    """
    chosen = np.arange(len(text)) if tokens is None else np.array(sorted(set(tokens)))
    if not len(chosen) or not 0 <= chosen[0] <= chosen[-1] < len(text):
        raise SettingsError(f"Choose tokens from 0 to {len(text) - 1}.")
    network, has_head = _tune(model, delta), isinstance(model, LanguageModel)
    encoder, calls = network.base_model, _watch_outside_blocks(network.base_model)
    read = _take_head(network) if has_head else partial(_compare_rows, model)
    n_rows = len(model.network.get_input_embeddings().weight)
    parts: list[tuple[np.ndarray, ...]] = []
    for group in group_inputs(model, list(_make_inputs(model, text, chosen))):
        check_stop(should_stop)
        piece = pack_inputs(model, group)
        calls.clear()
        reader = copy_network(encoder) if model.behaviour.keeps_state else encoder
        states = encode_ids(model, piece.ids, piece.attention, call=reader)
        vectors = states[:, piece.row, piece.column]  # [layer, position, d_model]
        if translate is not None:
            vectors = translate(vectors)
        else:
            vectors[:-1] = _join_last(calls, states[-1])(vectors[:-1])
        size = max(1, rows_at_once(n_rows) // len(vectors))
        for rows in (slice(i, i + size) for i in range(0, len(piece.labels), size)):
            scores = read(vectors[:, rows])  # [layer, position, vocab]
            label = piece.labels[rows].expand(len(scores), -1)[..., None]
            score = scores.gather(2, label)
            likeliest, ids = scores.topk(min(top, scores.shape[2]), dim=2)
            rank = (~(scores <= score)).sum(dim=2) + 1  # NaN is last
            columns = (score[..., 0], rank, ids, likeliest)
            arrays = (column.transpose(0, 1).cpu().numpy() for column in columns)
            parts.append((piece.token_of[rows].cpu().numpy(), *arrays))
    order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
    values, rank, ids, shares = (
        np.concatenate(column)[order] for column in list(zip(*parts, strict=True))[1:]
    )
    if has_head:
        values, shares = np.exp(values), np.exp(shares)
    spell = partial(spell_token, model)
    words = tuple(tuple(tuple(map(spell, row)) for row in layers) for layers in ids.tolist())
    names = tuple(map(spell, text.ids[chosen].tolist()))
    return Lens(text, chosen, names, values, rank, words, shares, has_head)


def _make_inputs(
    model: TextModel, text: TokenizedText, tokens: np.ndarray
) -> Iterator[MaskedInput]:
    """An input for each token, which alone is masked in its chunk; without a head, one a chunk."""
    hidden = model.mask_id if isinstance(model, LanguageModel) else None
    for chunk in text.chunks:
        chosen = tokens[(chunk.start <= tokens) & (tokens < chunk.stop)]
        for entry in [chosen] if hidden is None else chosen[:, None]:
            ids = np.array([*model.prefix_ids, *text.ids[chunk], *model.suffix_ids], dtype=np.int64)
            places = entry - chunk.start + len(model.prefix_ids)
            labels = ids[places]
            if hidden is not None:
                ids[places] = hidden
            if len(entry):
                yield MaskedInput(ids, places, labels, entry, 0, int(entry[0]), 1 / len(tokens))


def _tune(model: TextModel, delta: TextDelta | None) -> PreTrainedModel:
    """A copy of the network with ``delta`` added; all other parameters are the model's own."""
    network = copy_network(model.network)
    parameters = dict(network.named_parameters())
    for name, values in () if delta is None else zip(delta.layers, delta.values, strict=True):
        if name not in parameters or parameters[name].shape != values.shape:
            raise SettingsError(f"This delta does not fit the model “{model.id}”.")
        frozen, change = parameters[name], torch.as_tensor(values, device=model.device)
        for module in network.modules():
            keys = [key for key, value in module._parameters.items() if value is frozen]
            module._parameters |= dict.fromkeys(keys, nn.Parameter(frozen + change, False))
    return network


def _watch_outside_blocks(encoder: nn.Module) -> list[tuple[nn.Module, Tensor, Tensor]]:
    """Later calls (module, input, output) of modules that are in no list, as blocks are."""
    calls: list[tuple[nn.Module, Tensor, Tensor]] = []

    def note(module: nn.Module, inputs: tuple[Any, ...], output: object) -> None:
        if inputs and isinstance(inputs[0], Tensor) and isinstance(output, Tensor):
            calls.append((module, inputs[0], output))

    for path, module in encoder.named_modules():
        if not any(map(str.isdigit, path.split("."))) and not list(module.children()):
            module.register_forward_hook(note)
    return calls


def _join_last(calls: Sequence[tuple[nn.Module, Tensor, Tensor]], last: Tensor) -> nn.Module:
    """The modules that made the ``last`` hidden states of what the last block returned."""
    modules: list[nn.Module] = []
    for module, vectors, output in reversed(calls):
        if output.shape == last.shape and torch.equal(output, last):
            modules, last = [module, *modules], vectors
    return nn.Sequential(*modules)


def _take_head(network: PreTrainedModel) -> Callable[[Tensor], Tensor]:
    """What maps vectors to log-probabilities; the network's encoder goes."""
    precomputed = PrecomputedEncoder()
    setattr(network, network.base_model_prefix, precomputed)

    def read(vectors: Tensor) -> Tensor:
        precomputed.output = vectors
        ids = torch.zeros(vectors.shape[:2], dtype=torch.long, device=vectors.device)
        scores: Tensor = network(input_ids=ids).logits
        return scores.log_softmax(dim=-1)

    return read


def _compare_rows(model: TextModel, vectors: Tensor) -> Tensor:
    """Cosines of vectors with the rows of the embedding table."""
    table = model.network.get_input_embeddings().weight
    if table.shape[1] != vectors.shape[-1]:
        raise ModelError(
            f"The lens cannot read {model.id}: it has no prediction head, and the rows of its "
            f"embedding table have {table.shape[1]} values, its vectors {vectors.shape[-1]}."
        )
    return normalize(vectors, dim=-1) @ normalize(table, dim=-1).T


@cache
def translate_bundled(file: Path = LENS_FILE) -> Callable[[Tensor], Tensor]:
    """The bundled model's layers as the last one's, by maps fitted with ``scripts/fit_lens.py``."""
    maps = {name: values.float() for name, values in load_file(file).items()}

    def translate(vectors: Tensor) -> Tensor:
        weight, bias = (maps[name].to(vectors.device) for name in ("weight", "bias"))
        translated = torch.einsum("lpd,lde->lpe", vectors[:-1], weight) + bias[:, None]
        return torch.cat([translated, vectors[-1:]])

    return translate
