"""Each text's loss and its gradients with respect to the text's own weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from neuralviz.micro_tuning.cross_entropy import CrossEntropy, cross_entropy, output_layer
from neuralviz.micro_tuning.per_text import HEAD_ONLY, PerTextNetwork
from neuralviz.micro_tuning.products import product_dtype, products_in

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.micro_tuning.inputs import Piece, Prepared
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel
    from neuralviz.models.tokens import TokenizedText


class JoinedLayers:
    def __init__(self, model: LanguageModel, names: Sequence[str]) -> None:
        parameters = dict(model.network.named_parameters())
        layers = [parameters[name].detach() for name in names]
        self._names, self._sizes = names, [len(layer) for layer in layers]
        self.weights = torch.cat(layers)  # [value] pretrained

    def split(self, joined: Tensor) -> dict[str, Tensor]:
        """Views of [row, value] by layer, each [row, dim]."""
        return dict(zip(self._names, joined.split(self._sizes, dim=1), strict=True))


class Gradients:
    def __init__(
        self,
        model: LanguageModel,
        network: PerTextNetwork,
        layers: JoinedLayers,
        texts: Sequence[TokenizedText],
        settings: TuningSettings,
        follow_tokens: bool,
    ) -> None:
        self._network, self._layers, self._settings = network, layers, settings
        self._output = output_layer(model, product_dtype(settings))
        self._first_token = np.cumsum([0, *map(len, texts)])
        self._follow = follow_tokens
        # [token, value], all texts' tokens in order, if followed
        self.joined_by_token: Tensor | None = None
        self.by_token: dict[str, Tensor] | None = None

    def add_up(self, inputs: Iterable[Prepared], weights: Tensor) -> Iterator[tuple[Piece, Tensor]]:
        """Set the gradients at [text, value] ``weights``, piece by piece.

        Yields each piece with the [piece text] part of the loss in it, in float64.
        """
        values = self._layers.split(weights)
        self.joined = torch.zeros_like(weights)
        self.by_text = self._layers.split(self.joined)
        if self._follow:
            n_tokens = int(self._first_token[-1])
            self.joined_by_token = weights.new_zeros(n_tokens, weights.shape[1])
            self.by_token = self._layers.split(self.joined_by_token)
        for prepared in inputs:
            yield prepared.piece, self._add(prepared, values)

    def _add(self, prepared: Prepared, values: dict[str, Tensor]) -> Tensor:
        piece, network = prepared.piece, self._network
        bias_name = network.output_bias_name
        head_only = network.cut == HEAD_ONLY
        text_of_row = piece.texts if head_only else piece.text_of_row
        rows = {name: value[text_of_row] for name, value in values.items() if name != bias_name}
        if head_only and self._follow:  # a row for each position: [piece text, slot, dim]
            n_slots = piece.slots.shape[1]
            rows = {name: value[:, None].repeat(1, n_slots, 1) for name, value in rows.items()}
        for row in rows.values():
            row.requires_grad_()
        with torch.enable_grad(), products_in(piece.ids.device, self._settings):
            if head_only:
                assert prepared.frozen_output is not None
                out = network.at_positions(prepared.frozen_output, rows)  # [text, slot, width]
                positions: tuple[Tensor, ...] = (piece.piece_text, piece.slot)
            else:
                out = network.at_tokens(  # [row, token, width]
                    piece.ids, piece.attention, prepared.frozen_output, rows, text_of_row
                )
                positions = (piece.row, piece.column)
        vectors = out.detach().float()
        if head_only and prepared.tail is not None:  # both are in slots
            loss, grad = prepared.tail.loss(vectors)  # [piece text, slot], … width]
            weight = piece.in_slots(piece.weight) * piece.is_used
            grad_out = (grad * weight[..., None]).to(out.dtype)
            self._add_gradients(piece, rows, out, grad_out, head_only)
            return (loss.double() * weight).sum(dim=1)
        vectors = vectors[positions]  # [position, width]
        result = self._loss(prepared, vectors, values.get(bias_name or ""))
        if bias_name:
            self.by_text[bias_name] += result.grad_bias
            if self._follow:
                self._follow_output_bias(piece, vectors, values[bias_name], bias_name)
        if rows:
            grad_out = torch.zeros_like(out)
            grad_out[positions] = (result.grad * piece.weight[:, None]).to(out.dtype)
            self._add_gradients(piece, rows, out, grad_out, head_only)
        loss = result.loss.double() * piece.weight  # [position]
        return loss.new_zeros(len(piece.texts)).index_add_(0, piece.piece_text, loss)

    def _add_gradients(
        self, piece: Piece, rows: dict[str, Tensor], out: Tensor, grad_out: Tensor, head_only: bool
    ) -> None:
        """Backpropagate ``grad_out``, the gradient at ``out``, to the tuned ``rows``."""
        tuned = list(rows.values())
        if head_only and self._follow:
            grads = torch.autograd.grad(out, tuned, grad_out)
            position_grads = [grad[piece.piece_text, piece.slot] for grad in grads]
            self._sum_by_text(list(rows), position_grads, piece.text_of, piece.token_of)
        elif self._follow:
            positions = (piece.row, piece.column)
            for token in piece.token_of.unique():
                token_grad = torch.zeros_like(grad_out)
                token_grad[positions] = grad_out[positions] * (piece.token_of == token)[:, None]
                grads = torch.autograd.grad(out, tuned, token_grad, retain_graph=True)
                self._sum_by_text(list(rows), grads, piece.text_of_row, token)
        else:
            grads = torch.autograd.grad(out, tuned, grad_out)
            text_of_row = piece.texts if head_only else piece.text_of_row
            self._sum_by_text(list(rows), grads, text_of_row, None)

    def _loss(self, prepared: Prepared, vectors: Tensor, tuned_bias: Tensor | None) -> CrossEntropy:
        """Loss and gradients of [position, width] ``vectors``; a tuned bias is [text, vocab]."""
        piece = prepared.piece
        if prepared.tail is not None:
            loss, grad = prepared.tail.loss(piece.in_slots(vectors))
            positions = (piece.piece_text, piece.slot)
            return CrossEntropy(loss[positions], grad[positions], None)
        return cross_entropy(
            vectors,
            self._output.weight,
            self._output.bias if tuned_bias is None else tuned_bias,
            piece.labels,
            text_of=piece.text_of,
            position_weight=piece.weight,
        )

    def _sum_by_text(
        self,
        names: Sequence[str],
        grads: Sequence[Tensor],
        text_of_row: Tensor,
        token: Tensor | None,
    ) -> None:
        """Add [row, dim] gradients by text and, if followed, by token."""
        if self._follow:
            first = torch.as_tensor(self._first_token, device=text_of_row.device)
            token_rows = first[text_of_row] + token
            has_token = token_rows < first[text_of_row + 1]  # a short text has no such token
        for name, grad in zip(names, grads, strict=True):
            self.by_text[name].index_add_(0, text_of_row, grad)
            if self.by_token is not None:
                self.by_token[name].index_add_(0, token_rows[has_token], grad[has_token])

    def _follow_output_bias(self, piece: Piece, vectors: Tensor, bias: Tensor, name: str) -> None:
        for token in torch.stack([piece.text_of, piece.token_of]).unique(dim=1).T:
            mask = (piece.text_of == token[0]) & (piece.token_of == token[1])
            part = cross_entropy(
                vectors[mask],
                self._output.weight,
                bias[token[0]][None],
                piece.labels[mask],
                text_of=torch.zeros_like(piece.text_of[mask]),
                position_weight=piece.weight[mask],
            )
            assert self.by_token is not None and part.grad_bias is not None
            self.by_token[name][self._first_token[int(token[0])] + token[1]] += part.grad_bias[0]
