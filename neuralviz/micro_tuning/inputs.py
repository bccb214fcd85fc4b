"""Masked inputs, packed into pieces of bounded size that go through the network together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuralviz.errors import ShouldStop, check_stop
from neuralviz.micro_tuning.cross_entropy import output_layer
from neuralviz.micro_tuning.frozen_tail import FrozenTail, count_candidates
from neuralviz.micro_tuning.per_text import HEAD_ONLY, PerTextNetwork
from neuralviz.micro_tuning.products import product_dtype, products_in
from neuralviz.micro_tuning.settings import TuningSettings, mask_inputs
from neuralviz.models import LanguageModel, TextModel
from neuralviz.models.passes import pad_inputs
from neuralviz.models.tokens import TokenizedText

TOKENS_PER_PIECE = 4096
KEPT_BYTES = 1 << 30  # of hidden states and tails kept between epochs; more are computed anew
FASTEST_RATE = 0.05  # learning rate beyond which a step goes too far for a tail to be continued
BLOCKS_CAUTION = 3.0  # of the frozen tail, with layers below the head: some hardly move the loss


@dataclass(frozen=True, eq=False)
class Piece:
    """Masked inputs of one or more texts that go through the network together."""

    ids: Tensor  # [row, token] vocabulary ids, masked and padded
    attention: Tensor  # [row, token] 1 for a token, 0 for padding
    text_of_row: Tensor  # [row] index of the input's text in the run
    input_of_row: Tensor  # [row] index of the input among those of its text
    row: Tensor  # [position] row of the masked position in ``ids``
    column: Tensor  # [position] and its column
    labels: Tensor  # [position] id to predict
    text_of: Tensor  # [position] index of its text
    token_of: Tensor  # [position] index of the token in its text
    weight: Tensor  # [position] 1 / number of masked positions of its text
    texts: Tensor  # [piece text] texts with a position here
    slots: Tensor  # [piece text, slot] positions of each text; short rows repeat the first
    is_used: Tensor  # [piece text, slot] false where filled
    piece_text: Tensor  # [position] row in ``slots``
    slot: Tensor  # [position] column in ``slots``

    def shares(self, n_texts: int) -> Tensor:
        """[text] the share of its masked positions that are here."""
        shares = torch.zeros(n_texts, dtype=torch.float64, device=self.weight.device)
        return shares.index_add_(0, self.text_of, self.weight.double())

    def in_slots(self, values: Tensor) -> Tensor:
        """[position, …] to [piece text, slot, …]; ignore the values in unused slots."""
        return values[self.slots]


@dataclass(frozen=True, eq=False)
class MaskedInput:
    ids: np.ndarray  # [token] vocabulary ids, masked, with special tokens
    masked: np.ndarray  # [position] index in ``ids``
    labels: np.ndarray  # [position] id to predict
    tokens: np.ndarray  # [position] index of the token in the text
    text: int  # index of the text
    number: int  # index of the input among those of its text
    weight: float  # of each position in the text's loss


def mask_texts(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> list[MaskedInput]:
    """The masked inputs of all texts; a text's chunks share one step (neural paper, Figure 8)."""
    return [
        entry
        for index, text in enumerate(texts)
        for entry in _mask_chunks(model, text, index, settings)
    ]


def _mask_chunks(
    model: LanguageModel, text: TokenizedText, index: int, settings: TuningSettings
) -> Iterator[MaskedInput]:
    sizes = [chunk.stop - chunk.start for chunk in text.chunks]
    if settings.predict_unmasked:
        labelled = [np.ones((1, size), dtype=bool) for size in sizes]
    else:
        labelled = [mask_inputs(size, settings.blueprints).masked for size in sizes]
    weight, number = 1.0 / sum(int(rows.sum()) for rows in labelled), 0
    for chunk, rows in zip(text.chunks, labelled, strict=True):
        ids = text.ids[chunk]
        for row in rows:
            positions = np.flatnonzero(row)
            visible_ids = ids if settings.predict_unmasked else np.where(row, model.mask_id, ids)
            yield MaskedInput(
                ids=np.concatenate([model.prefix_ids, visible_ids, model.suffix_ids]).astype(
                    np.int64
                ),
                masked=positions + len(model.prefix_ids),
                labels=ids[positions],
                tokens=positions + chunk.start,
                text=index,
                number=number,
                weight=weight,
            )
            number += 1


def group_inputs(model: TextModel, inputs: Sequence[MaskedInput]) -> list[list[MaskedInput]]:
    habits = model.behaviour
    ordered = sorted(inputs, key=lambda entry: len(entry.ids))  # stable: a chunk's stay together
    groups: list[list[MaskedInput]] = []
    batch: list[MaskedInput] = []
    for _, alike in groupby(ordered, key=lambda entry: (len(entry.ids), entry.text)):
        entries = list(alike)  # in one piece, if one can hold them
        length = len(entries[0].ids)
        room = 1 if habits.batching == "single" else TOKENS_PER_PIECE // length
        is_alike = not batch or habits.may_share_pass(len(batch[0].ids), length)
        if batch and (len(batch) + len(entries) > room >= len(entries) or not is_alike):
            groups.append(batch)
            batch = []
        for entry in entries:
            if batch and len(batch) + 1 > room:
                groups.append(batch)
                batch = []
            batch.append(entry)
    return [*groups, batch] if batch else groups


def pack_inputs(model: TextModel, inputs: Sequence[MaskedInput]) -> Piece:
    place = {text: i for i, text in enumerate(dict.fromkeys(entry.text for entry in inputs))}
    batch = sorted(inputs, key=lambda entry: place[entry.text])
    ids, attention = pad_inputs([entry.ids for entry in batch], model.pad_id, model.device)
    counts = [len(entry.masked) for entry in batch]
    text_of = np.repeat([entry.text for entry in batch], counts)
    texts, starts, n_of_text = np.unique(text_of, return_index=True, return_counts=True)
    order = np.argsort(starts)
    texts, starts, n_of_text = texts[order], starts[order], n_of_text[order]
    slot = np.arange(n_of_text.max())
    is_used = slot < n_of_text[:, None]

    def tensor(values: Sequence[float] | np.ndarray, dtype: torch.dtype = torch.long) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=dtype, device=model.device)

    def joined(values: list[np.ndarray]) -> Tensor:
        return tensor(np.concatenate(values))

    return Piece(
        ids=ids,
        attention=attention,
        text_of_row=tensor([entry.text for entry in batch]),
        input_of_row=tensor([entry.number for entry in batch]),
        row=tensor(np.repeat(np.arange(len(batch)), counts)),
        column=joined([entry.masked for entry in batch]),
        labels=joined([entry.labels for entry in batch]),
        text_of=tensor(text_of),
        token_of=joined([entry.tokens for entry in batch]),
        weight=tensor(np.repeat([entry.weight for entry in batch], counts), torch.float32),
        texts=tensor(texts),
        slots=tensor(starts[:, None] + np.where(is_used, slot, 0)),
        is_used=tensor(is_used, torch.bool),
        piece_text=tensor(np.nonzero(is_used)[0]),
        slot=tensor(np.nonzero(is_used)[1]),
    )


class Prepared(NamedTuple):
    """A piece with what is reused between epochs."""

    piece: Piece
    # [piece text, slot, width] for the head alone, else [row, token, width]
    frozen_output: Tensor | None
    tail: FrozenTail | None  # the loss, if the precision is fast


class PreparedInputs:
    """The pieces of a run; the output below the tuned layers is cached while memory allows."""

    def __init__(
        self,
        model: LanguageModel,
        network: PerTextNetwork,
        inputs: Sequence[MaskedInput],
        settings: TuningSettings,
    ) -> None:
        self._model, self._network = model, network
        self._output = output_layer(model, product_dtype(settings))
        self._groups, self._settings = group_inputs(model, inputs), settings
        self.n_positions = sum(len(entry.masked) for entry in inputs)
        self._kept: dict[int, Prepared] = {}
        self._bytes = 0

    def __iter__(self) -> Iterator[Prepared]:
        for number, inputs in enumerate(self._groups):
            if number in self._kept:
                yield self._kept[number]
                continue
            piece = pack_inputs(self._model, inputs)
            prepared = Prepared(piece, self._run_frozen_part(piece), self._tail_of(piece))
            size = self._size_of(prepared)
            if self._bytes + size <= KEPT_BYTES:
                self._bytes += size
                self._kept[number] = prepared
            yield prepared

    def _run_frozen_part(self, piece: Piece) -> Tensor | None:
        positions: tuple[Tensor, ...] = ()
        if self._network.cut == HEAD_ONLY:
            positions = (piece.in_slots(piece.row), piece.in_slots(piece.column))
        with products_in(self._model.device, self._settings):
            frozen_output = self._network.run_frozen_part(piece.ids, piece.attention, positions)
        return None if frozen_output is None else frozen_output.float()

    def _tail_of(self, piece: Piece) -> FrozenTail | None:
        settings, weight = self._settings, self._output.weight
        if (
            not settings.is_fast
            or self._network.output_bias_name is not None  # its own for a text moves every word
            or settings.learning_rate > FASTEST_RATE
            or count_candidates(len(weight), settings.tolerance, weight.dtype) == len(weight)
        ):
            return None
        return FrozenTail(
            self._output,
            piece.in_slots(piece.labels),
            piece.is_used,
            epochs=settings.epochs,
            tolerance=settings.tolerance,
            caution=1.0 if self._network.cut == HEAD_ONLY else BLOCKS_CAUTION,
        )

    def _size_of(self, prepared: Prepared) -> int:
        size = 0 if prepared.frozen_output is None else prepared.frozen_output.nbytes
        if prepared.tail is not None:
            n_texts, n_slots = prepared.piece.slots.shape
            size += FrozenTail.size_in_bytes(
                self._output, n_texts, n_slots, self._settings.tolerance
            )
        return size


def stop_between(should_stop: ShouldStop, inputs: Iterable[Prepared]) -> Iterator[Prepared]:
    """Yield the inputs; raise `Stopped` between two of them when ``should_stop`` returns true."""
    for prepared in inputs:
        check_stop(should_stop)
        yield prepared
