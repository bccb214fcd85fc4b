"""Texts learnt to the end without being watched, as many at a time as the machine does best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import SettingsError, never
from neuralviz.micro_tuning.cross_entropy import output_layer
from neuralviz.micro_tuning.events import join_runs
from neuralviz.micro_tuning.frozen_tail import FrozenTail
from neuralviz.micro_tuning.gradients import Gradients, JoinedLayers
from neuralviz.micro_tuning.inputs import KEPT_BYTES, PreparedInputs, mask_texts, stop_between
from neuralviz.micro_tuning.loop import TuningRun
from neuralviz.micro_tuning.probe import per_text_network
from neuralviz.micro_tuning.products import product_dtype
from neuralviz.micro_tuning.settings import count_masked
from neuralviz.models.tokens import batch_while
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning.events import MicroTuning
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.models import LanguageModel
    from neuralviz.models.tokens import TokenizedText

POSITIONS_IN_CACHE = 1024  # masked positions that go through all epochs together on a CPU


def learn(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    should_stop: ShouldStop = never,
) -> MicroTuning:
    """Tune to the end without being watched; `Stopped` where ``should_stop`` says so.

    A few texts at a time go through all epochs: on a CPU as many as stay in its cache, on a GPU as
    many as can be kept there.
    """
    return learn_by_epoch(model, texts, settings, [settings.epochs], should_stop)[settings.epochs]


def learn_by_epoch(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    epochs: Iterable[int],
    should_stop: ShouldStop = never,
) -> dict[int, MicroTuning]:
    """`learn`, and by epoch what there is after some of the epochs on the way.

    Up to there a run that has fewer epochs is the same, bit by bit, unless it is fast: how often a
    fast run looks at all words depends on the number of its epochs.

    Raises:
        SettingsError: an epoch is not there, or is on the way of a fast run.
        Stopped: ``should_stop`` said so.
    """
    by_epoch: dict[int, list[MicroTuning]] = {epoch: [] for epoch in epochs}
    for epoch in by_epoch:
        if not 1 <= epoch <= settings.epochs or (settings.is_fast and epoch != settings.epochs):
            raise SettingsError(
                f"A run of {many(settings.epochs, 'epoch')} with precision {settings.precision} "
                "gives no result for "
                f"{many(epoch, 'epoch')}."
            )
    for batch in batches(model, texts, settings):
        run = TuningRun(model, batch, settings, should_stop=should_stop)
        for epoch in range(1, settings.epochs + 1):
            run.step()
            if epoch in by_epoch:
                by_epoch[epoch].append(run.result())
    return {epoch: join_runs(results) for epoch, results in by_epoch.items()}


def batches(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> Iterator[list[TokenizedText]]:
    """Texts in order, a text or more at a time; what shorter ones are filled up with counts."""
    layer, on_cpu = output_layer(model, product_dtype(settings)), model.device.type == "cpu"
    counted = [(text, count_masked(text, settings)) for text in texts]

    def fits(batch: list[tuple[TokenizedText, int]], entry: tuple[TokenizedText, int]) -> bool:
        n_texts, n_positions = len(batch) + 1, max(count for _, count in [*batch, entry])
        if on_cpu:
            return n_texts * n_positions <= POSITIONS_IN_CACHE
        size = FrozenTail.size_in_bytes(layer, n_texts, n_positions, settings.tolerance)
        return 2 * size <= KEPT_BYTES  # hidden states beside it

    for batch in batch_while(counted, fits):
        yield [text for text, _ in batch]


def loss_gradients(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    should_stop: ShouldStop = never,
) -> tuple[np.ndarray, ...]:
    """The gradient of every text's loss, by the layers that would be tuned; nothing is tuned.

    The loss is that of micro-tuning, exact: the cross entropy averaged over the masked positions of
    all chunks of a text.

    The result is, per layer, [text, dim].

    Raises:
        ModelError: the architecture does not let these layers be tuned.
        Stopped: ``should_stop``, asked before every pass through the network, said so.
    """
    network = per_text_network(model, settings.layers)
    layers = JoinedLayers(model, settings.layers)
    per_batch = []
    for batch in batches(model, texts, settings):
        gradients = Gradients(model, network, layers, batch, settings, follow_tokens=False)
        weights = layers.weights.expand(len(batch), -1).clone()
        inputs = PreparedInputs(model, network, mask_texts(model, batch, settings), settings)
        gradients.compute(stop_between(should_stop, inputs), weights)
        per_batch.append([layer.cpu().numpy() for layer in layers.split(gradients.joined).values()])
    return tuple(map(np.concatenate, zip(*per_batch, strict=True)))
