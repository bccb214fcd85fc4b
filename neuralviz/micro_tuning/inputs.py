"""What goes into every step: pieces of masked inputs, and what is kept of them between epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from neuralviz.errors import Stopped
from neuralviz.micro_tuning.frozen_tail import FrozenTail, count_candidates
from neuralviz.micro_tuning.output_layer import output_layer
from neuralviz.micro_tuning.per_text import HEAD_ONLY
from neuralviz.micro_tuning.plan import group_inputs, pack_inputs
from neuralviz.micro_tuning.products import product_dtype, products_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor

    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.per_text import PerTextNetwork
    from neuralviz.micro_tuning.plan import MaskedInput, Piece
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel

KEPT_BYTES = 1 << 30  # of hidden states and tails kept between epochs; more are computed anew
FASTEST_RATE = 0.05  # learning rate beyond which a step goes too far for a tail to be continued
BLOCKS_CAUTION = 3.0  # of the frozen tail, with layers below the head: some hardly move the loss


class Prepared(NamedTuple):
    """A piece and what is kept of it between epochs.

    Attributes:
        piece: what goes through the network.
        frozen_output: of what lies below the tuned parameters: [piece text, slot, width] when only
            the head is tuned, else [row, token, width]; None when nothing is reused.
        tail: its loss, when the precision is fast.
    """

    piece: Piece
    frozen_output: Tensor | None
    tail: FrozenTail | None


class PreparedInputs:
    """Pieces of masked inputs with what lies below the tuned layers, kept while memory allows.

    Args:
        model, network: that they go through.
        inputs: from `mask_texts`.
        settings: of the run.
    """

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
        self._kept: dict[int, Prepared] = {}
        self._bytes = 0

    def __iter__(self) -> Iterator[Prepared]:
        for number, inputs in enumerate(self._groups):
            yield self._kept[number] if number in self._kept else self._prepare(number, inputs)

    def _prepare(self, number: int, inputs: Sequence[MaskedInput]) -> Prepared:
        piece = pack_inputs(self._model, inputs)
        prepared = Prepared(piece, self._run_frozen_part(piece), self._tail_of(piece))
        size = self._size_of(prepared)
        if self._bytes + size <= KEPT_BYTES:
            self._bytes += size
            self._kept[number] = prepared
        return prepared

    def _run_frozen_part(self, piece: Piece) -> Tensor | None:
        positions: tuple[Tensor, ...] = ()
        if self._network.cut == HEAD_ONLY:
            positions = (piece.in_slots(piece.row), piece.in_slots(piece.column))
        with products_in(self._model.device, self._settings):
            frozen_output = self._network.run_frozen_part(piece.ids, piece.attention, positions)
        return None if frozen_output is None else frozen_output.float()

    def _tail_of(self, piece: Piece) -> FrozenTail | None:
        settings = self._settings
        n_words = len(self._output.weight)
        if not settings.is_fast or self._network.output_bias_name is not None:
            return None  # a text's own output bias moves every word
        if settings.learning_rate > FASTEST_RATE:
            return None
        dtype = self._output.weight.dtype
        if count_candidates(n_words, settings.tolerance, dtype) == n_words:
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
    """Yield the inputs, and stop between two of them when asked to.

    Raises:
        Stopped: ``should_stop``, asked before each, said so.
    """
    for prepared in inputs:
        if should_stop():
            raise Stopped
        yield prepared
