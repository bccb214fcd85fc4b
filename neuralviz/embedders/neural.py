"""The neural embedding of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from neuralviz.embedders.base import ModelEmbedder, unit_vectors
from neuralviz.errors import SettingsError
from neuralviz.micro_tuning.learning import learn, learn_by_epoch
from neuralviz.micro_tuning.settings import (
    REVISION,
    TuningOptions,
    TuningSettings,
    check_settings,
)
from neuralviz.micro_tuning.workload import count_masked
from neuralviz.models import LanguageModel, tokenize
from neuralviz.models.bfloat16 import warn_of_imitated_bf16

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning import MicroTuning
    from neuralviz.models import TokenizedText

APPENDIX_G_EPOCHS = 5


class NeuralEmbedder(ModelEmbedder):
    """Embeds a text by the change of weights that learning it causes (neural paper, Equation 1).

    >>> NeuralEmbedder(model, epochs=5)

    Args:
        model: from `neuralviz.load_model`.
        settings: of micro-tuning; by default the paper's.
        name: for labels.
        options: settings that are to differ from ``settings``, as of `check_settings`.

    Raises:
        SettingsError: a setting makes no sense.

    Warns:
        PrecisionWarning: the device has to imitate bf16.
    """

    model: LanguageModel
    model_kind = LanguageModel
    zeros_mean = "no weight changed. Choose a learning rate closer to 0.01."

    def __init__(
        self,
        model: LanguageModel,
        settings: TuningSettings | None = None,
        *,
        name: str = "neural",
        **options: Unpack[TuningOptions],
    ) -> None:
        super().__init__(model, name)
        self.settings = check_settings(model, settings, **options)
        if self.settings.in_bf16:
            warn_of_imitated_bf16(model.device)
        self._shared: _SharedRun | None = None

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Sizes of the layers, in the order in which they are joined in a vector."""
        sizes = {layer.name: layer.size for layer in self.model.layers}
        return tuple(sizes[name] for name in self.settings.layers)

    @property
    def dim(self) -> int:
        """Values of one embedding: the sizes of the layers, summed."""
        return sum(self.layer_sizes)

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "neural", **self.depends_on_model, "tuning": tuning_key(self.settings)}

    def masked_positions(self, texts: Sequence[str]) -> int:
        """Masked positions that have to be predicted, in all epochs, while these are learnt."""
        of_epoch = sum(count_masked(text, self.settings) for text in tokenize(self.model, texts))
        return of_epoch * self.settings.epochs

    def layer_products(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """[layer] products of two embeddings' deltas, layer by layer.

        Their mean is the product of the embeddings, where every layer has moved.
        """
        ends = np.cumsum(self.layer_sizes)[:-1]
        parts = zip(np.split(first, ends), np.split(second, ends), strict=True)
        return np.array([a @ b for a, b in (unit_vectors(np.stack(pair)) for pair in parts)])

    def _embed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        learn_texts = learn if self._shared is None else self._shared.learn
        result = learn_texts(self.model, read, self.settings, should_stop)
        return result.embeddings, losses(result)


def share_epochs(embedders: Sequence[NeuralEmbedder]) -> None:
    """Have embedders that differ by their epochs alone learn a batch of texts in one run.

    On its way the longest run passes what the others come to. Whichever of them is given a batch
    first has it learnt, and what the others will ask for next is kept until another batch comes.
    The vectors are the same, bit by bit.

    Args:
        embedders: of one model; none of them fast, since a fast run depends on its epochs.

    Raises:
        SettingsError: they differ by more, or are fast.
    """
    settings = [embedder.settings for embedder in embedders]
    but_for_epochs = {replace(each, epochs=1) for each in settings}
    models = {embedder.model.fingerprint for embedder in embedders}
    if len(but_for_epochs) > 1 or len(models) > 1 or any(each.is_fast for each in settings):
        raise SettingsError(
            "Only runs that differ in nothing but their epochs, and are not fast, can share "
            "one computation."
        )
    shared = _SharedRun(sorted({each.epochs for each in settings}))
    for embedder in embedders:
        embedder._shared = shared


class _SharedRun:
    """A run of the most epochs, and what it came to after each of some on the last batch."""

    def __init__(self, epochs: Sequence[int]) -> None:
        self._epochs = epochs
        self._texts: list[str] = []
        self._results: dict[int, MicroTuning] = {}

    def learn(
        self,
        model: LanguageModel,
        read: Sequence[TokenizedText],
        settings: TuningSettings,
        should_stop: ShouldStop,
    ) -> MicroTuning:
        texts = [text.text for text in read]
        if texts != self._texts or settings.epochs not in self._results:
            longest = replace(settings, epochs=self._epochs[-1])
            self._results = learn_by_epoch(model, read, longest, self._epochs, should_stop)
            self._texts = texts
        return self._results.pop(settings.epochs)


def tuning_key(settings: TuningSettings) -> dict[str, Any]:
    """The settings as a part of a cache key."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    if not settings.is_fast:
        del values["tolerance"]
    return {**values, "revision": REVISION}


def losses(result: MicroTuning) -> np.ndarray:
    """[text, 2] the first and the last loss in nats; the last is NaN where the run diverged."""
    first = np.nan_to_num(result.loss[0], nan=np.inf)
    return np.stack([first, np.where(result.diverged, np.nan, result.loss[-1])], axis=1)


def neural_1(
    model: LanguageModel,
    settings: TuningSettings | None = None,
    **options: Unpack[TuningOptions],
) -> NeuralEmbedder:
    """The neural embedding of one layer, the last block's output bias (*neural-1*, Appendix G).

    Args:
        model, settings, options: as of `NeuralEmbedder`; by default 5 epochs of that layer.
    """
    if settings is None:
        layers = model.last_block_layers[-1:]
        settings = check_settings(model, layers=layers, epochs=APPENDIX_G_EPOCHS)
    return NeuralEmbedder(model, settings, name="neural-1", **options)
