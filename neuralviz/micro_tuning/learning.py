"""Micro-tuning to the end without watching, in batches sized for the device."""

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
    """Micro-tune all texts; `Stopped` if ``should_stop`` returns true."""
    return learn_by_epoch(model, texts, settings, [settings.epochs], should_stop)[settings.epochs]


def learn_by_epoch(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    epochs: Iterable[int],
    should_stop: ShouldStop = never,
) -> dict[int, MicroTuning]:
    """`learn` after each of ``epochs``, bit for bit; `SettingsError` if impossible."""
    # an epoch outside the run, or not the last of a fast run
    by_epoch: dict[int, list[MicroTuning]] = {epoch: [] for epoch in epochs}
    for epoch in by_epoch:
        if not 1 <= epoch <= settings.epochs or (settings.is_fast and epoch != settings.epochs):
            raise SettingsError(
                f"A run of {many(settings.epochs, 'epoch')} with precision {settings.precision} "
                f"gives no result for {many(epoch, 'epoch')}."
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
    """Texts in order, in batches that fit a CPU's cache or a GPU's memory with padding."""
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
    """Per layer, the [text, dim] gradient of each text's exact loss, without tuning.

    `ModelError` if these layers cannot be tuned, `Stopped` if ``should_stop`` returns true.
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
