"""Embeddings by micro-tuning: how texts change a model, and what the changed model gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np
import torch

from neuralviz.embedders.base import Embedded, ModelEmbedder, missing_losses
from neuralviz.embedders.splits import Part, SplitVector, join_splits
from neuralviz.errors import LossWarning, SettingsError, ShouldStop
from neuralviz.layers.states import make_pooling, pool_texts
from neuralviz.micro_tuning import MicroTuning
from neuralviz.micro_tuning.events import collect_result, neural_embeddings
from neuralviz.micro_tuning.loop import learn, learn_by_epoch, loss_gradients, tune
from neuralviz.micro_tuning.products import warn_of_imitated_bf16
from neuralviz.micro_tuning.settings import (
    DEFAULT_BLUEPRINTS,
    REVISION,
    TuningOptions,
    TuningSettings,
    check_settings,
)
from neuralviz.micro_tuning.watching import can_follow
from neuralviz.models import LanguageModel, TokenizedText
from neuralviz.models.passes import call_with, copy_network

APPENDIX_G_EPOCHS = 5


class _LearningEmbedder(ModelEmbedder):
    model: LanguageModel
    model_kind = LanguageModel
    settings: TuningSettings

    @property
    def dim(self) -> int:
        sizes = {layer.name: layer.size for layer in self.model.layers}
        return sum(sizes[name] for name in self.settings.layers)

    def _split(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> list[SplitVector] | None:
        is_followed = can_follow(self.model, read, self.settings)
        return self._split_followed(read, should_stop) if is_followed else None

    def _split_followed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> list[SplitVector] | None:
        """As `_split`, of texts whose tokens can be followed; None where that tells nothing."""
        return None

    def _split_deltas(
        self,
        text: TokenizedText,
        tokens: Sequence[np.ndarray],
        deltas: Sequence[np.ndarray],
        rest: str,
    ) -> SplitVector:
        """From each layer's [dim] delta and its [token, dim] parts; what they lack is the rest."""
        splits = []
        for layer, parts, delta in zip(self.settings.layers, tokens, deltas, strict=True):
            exact = parts.astype(np.float64)
            rows = np.vstack([exact, delta.astype(np.float64) - exact.sum(axis=0)])
            splits.append(SplitVector.of_text(text, [Part(layer, 0, rows)], rest))
        return join_splits(splits)


class NeuralEmbedder(_LearningEmbedder):
    """Embeds a text by how learning it changes the weights (neural paper, Equation 1).

    ``settings`` are the paper's by default; ``options``, as in ``NeuralEmbedder(model, epochs=5)``,
    override them. `SettingsError` for invalid ones.
    """

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
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "neural", **self.depends_on_model, "tuning": tuning_key(self.settings)}

    def _embed(self, read: Sequence[TokenizedText], should_stop: ShouldStop) -> Embedded:
        learn_texts = learn if self._shared is None else self._shared.learn
        result = learn_texts(self.model, read, self.settings, should_stop)
        return result.embeddings, end_losses(result)

    def _split_followed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> list[SplitVector]:
        events = tune(
            self.model, read, self.settings, with_token_shares=True, should_stop=should_stop
        )
        result = collect_result(events)
        assert result.shares is not None, "shares were asked for"
        if n_rose := int(result.loss_rose.sum()):
            warnings.warn(LossWarning(n_rose, len(read)), stacklevel=3)
        deltas = zip(*result.deltas, strict=True)
        return [
            self._split_deltas(text, shares.tokens, layers, "weight decay")
            for text, shares, layers in zip(read, result.shares, deltas, strict=True)
        ]


def share_epochs(embedders: Sequence[NeuralEmbedder]) -> None:
    """Let embedders that differ only in their epochs learn each batch of texts in one run.

    The results are the same, bit by bit. `SettingsError` for other differences and fast runs.
    """
    settings = [embedder.settings for embedder in embedders]
    runs = {(tuner.model.fingerprint, replace(tuner.settings, epochs=1)) for tuner in embedders}
    if len(runs) > 1 or any(entry.is_fast for entry in settings):
        raise SettingsError(
            "Only runs that differ in nothing but their epochs, and are not fast, can share "
            "one computation."
        )
    shared = _SharedRun(sorted({entry.epochs for entry in settings}))
    for embedder in embedders:
        embedder._shared = shared


class _SharedRun:
    """A run of the most epochs; keeps what the last batch gave after each number of epochs."""

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
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    if not settings.is_fast:
        del values["tolerance"]
    return {**values, "revision": REVISION}


def end_losses(result: MicroTuning) -> np.ndarray:
    """[text, 2] first and last loss in nats; the last is NaN where the run diverged."""
    first = np.nan_to_num(result.loss[0], nan=np.inf)
    return np.stack([first, np.where(result.diverged, np.nan, result.loss[-1])], axis=1)


def neural_1(
    model: LanguageModel, settings: TuningSettings | None = None, **options: Unpack[TuningOptions]
) -> NeuralEmbedder:
    """The neural embedding of the last block's output bias, with 5 epochs (Appendix G)."""
    if settings is None:
        options.setdefault("layers", model.last_block_layers[-1:])
        options.setdefault("epochs", APPENDIX_G_EPOCHS)
    return NeuralEmbedder(model, settings, name="neural-1", **options)


class GradientEmbedder(_LearningEmbedder):
    """Embeds a text by the negative gradient of its loss at the pretrained weights.

    That replaces ``W' - W`` in Equation 1 of the neural paper by the direction of a plain gradient
    step; an epoch of AdamW would give little more than the gradient's sign.
    """

    zeros_mean = "no weight has a gradient. Choose other layers."

    def __init__(
        self,
        model: LanguageModel,
        *,
        layers: Iterable[str] | str | None = None,
        blueprints: Iterable[Sequence[int]] = DEFAULT_BLUEPRINTS,
        predict_unmasked: bool = False,
        name: str = "gradient",
    ) -> None:
        super().__init__(model, name)
        self.settings = check_settings(
            model, layers=layers, blueprints=blueprints, predict_unmasked=predict_unmasked, epochs=1
        )

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {
            "method": "gradient",
            **self.depends_on_model,
            "layers": self.settings.layers,
            "blueprints": self.settings.blueprints,
            "predict_unmasked": self.settings.predict_unmasked,
            "revision": REVISION,
        }

    def _embed(self, read: Sequence[TokenizedText], should_stop: ShouldStop) -> Embedded:
        gradients = loss_gradients(self.model, read, self.settings, should_stop)
        downhill = neural_embeddings(tuple(-layer for layer in gradients))
        return downhill, missing_losses(len(read))

    def _split_followed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> list[SplitVector]:
        gradients = loss_gradients(self.model, read, self.settings, should_stop, by_token=True)
        ends = np.cumsum([0, *map(len, read)])
        return [
            self._split_deltas(
                text, tokens, [part.sum(axis=0, dtype=np.float64) for part in tokens], ""
            )
            for text, start, end in zip(read, ends, ends[1:], strict=False)
            for tokens in [[-layer[start:end] for layer in gradients]]
        ]


class TunedOutputEmbedder(_LearningEmbedder):
    """Output for a text of the model tuned on it: *cls-tuned*, *avg-tuned*, *cls-diff*, *avg-diff*.

    Tunes the last block's output layers, with the paper's settings and 5 epochs by default.
    The text is read unmasked; ``mean`` covers its own tokens at the last layer, and ``difference``
    is tuned minus plain.
    """

    zeros_mean = "micro-tuning did not change the output. Choose a learning rate closer to 0.01."

    def __init__(
        self,
        model: LanguageModel,
        pooling: Literal["cls", "mean"],
        difference: bool,
        settings: TuningSettings | None = None,
        *,
        name: str = "",
        **options: Unpack[TuningOptions],
    ) -> None:
        kind = "diff" if difference else "tuned"
        super().__init__(model, name or f"{'cls' if pooling == 'cls' else 'avg'}-{kind}")
        self.difference = difference
        if not model.last_block_layers:
            raise SettingsError(
                f"The model “{model.id}” has no blocks with layers that can be tuned."
            )
        options["layers"] = "last_block"
        if settings is None:
            options.setdefault("epochs", APPENDIX_G_EPOCHS)
        self.settings = check_settings(model, settings, **options)
        if self.settings.in_bf16:
            warn_of_imitated_bf16(model.device)
        self._pooling_name = pooling
        self._pooling = make_pooling(model, pooling, (model.n_blocks,), special_tokens=False)

    @property
    def dim(self) -> int:
        return self.model.d_model

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {
            "method": "tuned",
            **self.depends_on_model,
            "pooling": self._pooling_name,
            "difference": self.difference,
            "tuning": tuning_key(self.settings),
        }

    def _embed(self, read: Sequence[TokenizedText], should_stop: ShouldStop) -> Embedded:
        result = learn(self.model, read, self.settings, should_stop)
        return self._outputs(result, should_stop), end_losses(result)

    def _outputs(self, result: MicroTuning, should_stop: ShouldStop) -> np.ndarray:
        """[text, d_model] outputs with each text's weights; plain ones come from the same calls."""
        prefix = f"{self.model.network.base_model_prefix}."
        tuned = [name.removeprefix(prefix) for name in result.settings.layers]
        encoder = copy_network(self.model.network.base_model)  # the shared model never changes
        original = dict(self.model.network.named_parameters())
        outputs = []
        for number, text in enumerate(result.texts):
            weights = {
                name: original[prefix + name]
                + torch.as_tensor(deltas[number], device=self.model.device)
                for name, deltas in zip(tuned, result.deltas, strict=True)
            }
            call = partial(call_with, encoder, weights)
            (output,) = pool_texts(
                self.model, [text], [self._pooling], call=call, should_stop=should_stop
            )
            if self.difference:
                (plain,) = pool_texts(self.model, [text], [self._pooling])
                output = output - plain
            outputs.append(output)
        return np.concatenate(outputs)
