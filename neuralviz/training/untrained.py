"""The whole model as it is, which a training of less than that has to be better than."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.pooled import PooledEmbedder
from neuralviz.errors import never
from neuralviz.store.embedding import embed

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.models import TextModel
    from neuralviz.store.vectors import VectorStore
    from neuralviz.training.settings import TrainingSettings
    from neuralviz.training.snapshots import Watch


def measure_untrained(
    model: TextModel,
    settings: TrainingSettings,
    watch: Watch,
    store: VectorStore,
    should_stop: ShouldStop = never,
) -> float | None:
    """10-NN accuracy of the whole model by mean pooling of its last layer, before any training.

    Args:
        model: that a training begins with.
        settings: of the training.
        watch: of the texts that are measured.
        store: where vectors are found and kept: they are the same for all trainings.
        should_stop: asked again and again.

    Returns:
        0 … 1; None without labels, and where the training itself begins with that.

    Raises:
        Stopped: ``should_stop`` said so.
        StoreError: the vectors cannot be kept.
    """
    is_less = settings.part == "table" or settings.start == "random" or settings.pooling != "mean"
    if not (is_less and watch.has_labels):
        return None
    accuracy = watch.look(_LastLayer(model, store), 0, should_stop).accuracy
    return None if accuracy is None else float(accuracy[-1])


class _LastLayer:
    """The last layer of a model as it is.

    Args:
        model: that reads the texts.
        store: of their vectors.
    """

    def __init__(self, model: TextModel, store: VectorStore) -> None:
        self._model, self._store = model, store

    def of_layers(
        self, texts: Sequence[str], should_stop: ShouldStop = never, *, is_whole: bool = True
    ) -> list[np.ndarray]:
        """[text, dim] of that layer; a text without a token has zeros."""
        encoded = self._model.encoder.encode_batch_fast(list(texts), add_special_tokens=False)
        readable = [i for i, encoding in enumerate(encoded) if encoding.ids and texts[i].strip()]
        embedder = PooledEmbedder(self._model, "mean")
        vectors = np.zeros((len(readable), embedder.dim), np.float32)
        read = [texts[i] for i in readable]
        for event in embed(read, embedder, self._store, should_stop=should_stop):
            if event.vectors is not None:
                vectors[event.at] = event.vectors
        all_vectors = np.zeros((len(texts), embedder.dim), np.float32)
        all_vectors[readable] = vectors
        return [all_vectors]
