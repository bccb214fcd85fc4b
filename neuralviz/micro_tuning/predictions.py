"""What a model says at the masked positions of a text, before and after micro-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from neuralviz.errors import SettingsError, Stopped, never
from neuralviz.micro_tuning.cross_entropy import rows_at_once
from neuralviz.micro_tuning.inputs import group_inputs, mask_texts, pack_inputs
from neuralviz.micro_tuning.per_text import HEAD_ONLY, PerTextNetwork
from neuralviz.micro_tuning.probe import per_text_network

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.inputs import Piece
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel
    from neuralviz.models.tokens import TokenizedText


@dataclass(frozen=True, eq=False)
class MaskedPredictions:
    """The predictions for every masked position of a text, input by input, token by token.

    Attributes:
        input: [position] the input, counted over all chunks; within a chunk in the order of
            `mask_inputs`.
    """

    input: np.ndarray
    token: np.ndarray  # [position] the masked token, as an index into the text's tokens
    label: np.ndarray  # [position] its vocabulary id: what should be predicted
    probability: np.ndarray  # [position] of the label, 0 … 1
    loss: np.ndarray  # [position] cross entropy in nats, minus the logarithm of ``probability``
    top_ids: np.ndarray  # [position, top] the likeliest vocabulary ids, likeliest first
    top_probabilities: np.ndarray  # [position, top] their probabilities

    def __len__(self) -> int:
        return len(self.label)

    @property
    def mean_loss(self) -> float:
        """Mean cross entropy over the positions; over all of a text, what tuning minimises."""
        return float(self.loss.mean())


@torch.no_grad()
def predict_masked(
    model: LanguageModel,
    text: TokenizedText,
    settings: TuningSettings,
    all_deltas: Sequence[Sequence[np.ndarray] | None],
    top: int = 5,
    at_most: int | None = None,
    should_stop: ShouldStop = never,
) -> list[MaskedPredictions]:
    """Predict the masked positions of all inputs that the settings make from a text.

    What lies below the tuned layers is run once; logits are made a block of positions at a time.

    Args:
        model, text: only read; from `neuralviz.load_model` and `tokenize`.
        settings: which layers the deltas belong to, and how the text is masked.
        all_deltas: each per layer of ``settings``, [dim] to be added to its weights; None for the
            pretrained model.
        top: how many of the likeliest tokens to give, 1 … vocabulary size.
        at_most: of a long text the first so many masked positions; None for all of them.
        should_stop: asked before every pass through the network.

    Raises:
        SettingsError: deltas do not fit the layers, or ``top`` is out of range.
        Stopped: ``should_stop`` said so.
    """
    if not 1 <= top <= model.vocab_size:
        raise SettingsError(
            f"The number of predictions must be from 1 to {model.vocab_size:,}, not {top}."
        )
    network = per_text_network(model, settings.layers)
    values = [_tuned_values(model, settings, deltas) for deltas in all_deltas]
    parts: list[list[tuple[Tensor, ...]]] = [[] for _ in all_deltas]
    inputs = mask_texts(model, [text], settings)
    if at_most is not None:
        n_before = np.cumsum([0, *(len(entry.masked) for entry in inputs)])[:-1]
        inputs = inputs[: np.searchsorted(n_before, at_most)]
    for group in group_inputs(model, inputs):
        piece = pack_inputs(model, group)
        frozen_output = _run_frozen_part(network, piece)
        for tuned, columns in zip(values, parts, strict=True):
            if should_stop():
                raise Stopped
            predicted = _predict(network, piece, frozen_output, tuned, top)
            columns.append(
                (piece.input_of_row[piece.row], piece.token_of, piece.labels, *predicted)
            )
    return [_join_in_order(part, at_most) for part in parts]


def _join_in_order(parts: Sequence[tuple[Tensor, ...]], at_most: int | None) -> MaskedPredictions:
    """The predictions of some pieces, input by input."""
    columns = [torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")[:at_most]
    return MaskedPredictions(*(column[order] for column in columns))


def _tuned_values(
    model: LanguageModel, settings: TuningSettings, deltas: Sequence[np.ndarray] | None
) -> dict[str, Tensor]:
    """Layer name to [1, dim] weights."""
    parameters = dict(model.network.named_parameters())
    values = {name: parameters[name].detach()[None] for name in settings.layers}
    if deltas is None:
        return values
    shapes = [np.shape(delta) for delta in deltas]
    if shapes != [tuple(value.shape[1:]) for value in values.values()]:
        raise SettingsError("Pass one delta per tuned layer, each of the layer's size.")
    return {
        name: value + torch.as_tensor(delta, dtype=value.dtype, device=value.device)
        for (name, value), delta in zip(values.items(), deltas, strict=True)
    }


def _predict(
    network: PerTextNetwork,
    piece: Piece,
    frozen_output: Tensor | None,
    values: dict[str, Tensor],
    top: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Probability and loss of the label [position], likeliest ids and theirs [position, top]."""
    weight = network.output_weight
    bias = values.get(network.output_bias_name or "", network.output_bias)
    vectors = _output_layer_inputs(network, piece, frozen_output, values)
    rows = rows_at_once(len(weight))  # logits never exist all at once
    parts = []
    for block, labels in zip(vectors.split(rows), piece.labels.split(rows), strict=True):
        logits = block @ weight.T
        if bias is not None:
            logits += bias
        log_probability = logits.log_softmax(dim=1)
        loss = -log_probability.gather(1, labels[:, None]).squeeze(1)
        likeliest, ids = log_probability.topk(top, dim=1)
        parts.append((loss.neg().exp(), loss, ids, likeliest.exp()))
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def _run_frozen_part(network: PerTextNetwork, piece: Piece) -> Tensor | None:
    """Run the part of the network below the tuned layers on a piece."""
    positions = (piece.row, piece.column) if network.cut == HEAD_ONLY else ()
    return network.run_frozen_part(piece.ids, piece.attention, positions=positions)


def _output_layer_inputs(
    network: PerTextNetwork, piece: Piece, frozen_output: Tensor | None, values: dict[str, Tensor]
) -> Tensor:
    """[position, width] what goes into the output layer at the masked positions of a piece."""
    rows = {name: value for name, value in values.items() if name != network.output_bias_name}
    if network.cut == HEAD_ONLY:
        assert frozen_output is not None
        return network.at_positions(frozen_output[None], rows)[0]
    row_values = {name: value.expand(len(piece.ids), -1) for name, value in rows.items()}
    out = network.at_tokens(
        piece.ids, piece.attention, frozen_output, row_values, piece.text_of_row
    )
    return out[piece.row, piece.column]
