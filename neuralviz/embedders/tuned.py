"""What a model says of a text after it was micro-tuned on it (neural paper, Appendix G)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import torch
from torch.func import functional_call

from neuralviz.embedders.base import ModelEmbedder
from neuralviz.embedders.neural import APPENDIX_G_EPOCHS, losses, tuning_key
from neuralviz.errors import SettingsError
from neuralviz.layers.pooling import make_pooling
from neuralviz.layers.states import pool_texts
from neuralviz.micro_tuning.learning import learn
from neuralviz.micro_tuning.settings import TuningOptions, TuningSettings, check_settings
from neuralviz.micro_tuning.workload import count_masked
from neuralviz.models import LanguageModel, tokenize
from neuralviz.models.bfloat16 import warn_of_imitated_bf16
from neuralviz.models.passes import copy_network

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.micro_tuning import MicroTuning
    from neuralviz.models import TokenizedText


class TunedOutputEmbedder(ModelEmbedder):
    """Output of the tuned model on the unmasked text: *cls-tuned*, *avg-tuned*, *-diff*.

    The last block's output layers are tuned on each text, then the text is read as it is.

    Args:
        model: from `neuralviz.load_model`.
        pooling: ``cls``, or ``mean`` over the text's own tokens, at the last layer.
        difference: tuned minus plain.
        settings: of micro-tuning, whatever its layers; by default the paper's with 5 epochs. The
            tuned model is always read in float32.
        name: for labels.
        options: settings that are to differ from ``settings``, as of `check_settings`.

    Raises:
        SettingsError: a setting makes no sense, or the model has no blocks to tune.

    Warns:
        PrecisionWarning: the device has to imitate bf16.
    """

    model: LanguageModel
    model_kind = LanguageModel

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
        if difference:
            self.zeros_mean = (
                "micro-tuning did not change the output. Choose a learning rate closer to 0.01."
            )
        if not model.last_block_layers:
            raise SettingsError(
                f"The model “{model.id}” has no blocks with layers that can be tuned."
            )
        if settings is None:
            settings = check_settings(model, layers="last_block", epochs=APPENDIX_G_EPOCHS)
        options["layers"] = "last_block"
        self.settings = check_settings(model, settings, **options)
        if self.settings.in_bf16:
            warn_of_imitated_bf16(model.device)
        self._pooling_name = pooling
        self._pooling = make_pooling(model, pooling, (model.n_blocks,), special_tokens=False)

    @property
    def dim(self) -> int:
        """Values of one vector: the width of the model."""
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

    def masked_positions(self, texts: Sequence[str]) -> int:
        """Masked positions that have to be predicted, in all epochs, while these are learnt."""
        of_epoch = sum(count_masked(text, self.settings) for text in tokenize(self.model, texts))
        return of_epoch * self.settings.epochs

    def _embed(
        self, read: Sequence[TokenizedText], should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        result = learn(self.model, read, self.settings, should_stop)
        return self._outputs(result, should_stop), losses(result)

    def _outputs(self, result: MicroTuning, should_stop: ShouldStop) -> np.ndarray:
        """[text, d_model] outputs of a copy of the model that has each text's weights in turn.

        Tuned and plain outputs come from the same calls, so that no difference is mere rounding.
        """
        prefix = f"{self.model.network.base_model_prefix}."
        tuned = [name.removeprefix(prefix) for name in result.settings.layers]
        encoder = copy_network(self.model.network.base_model)  # nobody else sees its weights change
        original = dict(self.model.network.named_parameters())
        outputs = []
        for number, text in enumerate(result.texts):
            weights = {
                name: original[prefix + name]
                + torch.as_tensor(deltas[number], device=self.model.device)
                for name, deltas in zip(tuned, result.deltas, strict=True)
            }
            call = partial(_call_with, encoder, weights)
            (output,) = pool_texts(
                self.model, [text], [self._pooling], call=call, should_stop=should_stop
            )
            if self.difference:
                (plain,) = pool_texts(self.model, [text], [self._pooling])
                output = output - plain
            outputs.append(output)
        return np.concatenate(outputs)


def _call_with(encoder: Any, weights: dict[str, Any], **inputs: Any) -> Any:
    return functional_call(encoder, weights, (), inputs)
