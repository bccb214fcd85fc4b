"""Micro-tuning on short texts, with every intermediate number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuralviz.errors import ShouldStop, TextError, check_stop, never
from neuralviz.micro_tuning.blanks import read_hidden_word, sentence_with_blank
from neuralviz.micro_tuning.events import (
    FilledBlank,
    MaskedPredictions,
    MicroTuning,
    TextDelta,
    TextReport,
    collect_result,
)
from neuralviz.micro_tuning.loop import loss_gradients, micro_tune
from neuralviz.micro_tuning.predictions import fill_blanks, predict_masked
from neuralviz.micro_tuning.settings import MaskedInputs, TuningSettings, mask_inputs
from neuralviz.models import LanguageModel
from neuralviz.models.tokens import TokenizedText, tokenize

MAX_TOKENS = 64
GUESSES = 4  # for the blank, before and after


@dataclass(frozen=True, eq=False)
class Walkthrough:
    """A run on short texts, with the intermediate numbers for the first of them."""

    tuning: MicroTuning
    inputs: MaskedInputs  # masked inputs of the first text
    before: MaskedPredictions  # predictions at its masked positions
    after: MaskedPredictions
    weights: tuple[np.ndarray, ...]  # per layer, [dim] pretrained
    gradients: tuple[np.ndarray, ...]  # per layer, [dim] of the first step
    deltas: tuple[np.ndarray, ...]  # per layer, [epoch, text, dim]
    sentence: str  # the first text with a blank
    blank: FilledBlank

    @property
    def text(self) -> TokenizedText:
        return self.tuning.texts[0]

    @property
    def settings(self) -> TuningSettings:
        return self.tuning.settings

    @property
    def is_hardly_read(self) -> bool:
        """Whether the first text is likely in a language that the model cannot read."""
        return _report_on(self.text, self.before, self.after).is_hardly_read

    @property
    def losses(self) -> np.ndarray:
        """[epoch] mean loss of the first text in nats, before tuning and after each epoch."""
        return np.append(self.tuning.loss[:, 0], self.after.mean_loss)

    @property
    def products(self) -> np.ndarray:
        """[text] cosine similarities of the first text to the others, -1 … 1."""
        return self.tuning.products[0, 1:]

    def first_step(self, layer: int, neuron: int) -> AdamWStep:
        settings = self.settings
        weight = float(self.weights[layer][neuron])
        gradient = float(self.gradients[layer][neuron])
        beta1, beta2 = settings.betas
        first, second = (1 - beta1) * gradient, (1 - beta2) * gradient**2
        rate = settings.learning_rate
        # Divided by 1 - beta, the moments of a first step are the gradient and its square.
        step = rate * gradient / (abs(gradient) + settings.eps)
        decay = rate * settings.weight_decay * weight
        return AdamWStep(weight, gradient, first, second, step, decay, weight - decay - step)


@dataclass(frozen=True)
class AdamWStep:
    weight: float  # before
    gradient: float  # of the loss by the weight
    first: float  # moving average of the gradient
    second: float  # moving average of its square
    step: float  # learning rate × corrected first ÷ (root of corrected second + eps)
    decay: float  # learning rate × weight decay × weight
    result: float  # weight - decay - step


def walk_through(
    model: LanguageModel, texts: Sequence[str], epochs: int = 10, *, should_stop: ShouldStop = never
) -> Walkthrough:
    """Micro-tune with default settings, keeping every number of the first text.

    `TextError` for a text that is empty, over 64 tokens or longer than the model's window;
    `Stopped` if ``should_stop`` says so.
    """
    most = min(MAX_TOKENS, model.room - 1)  # and a blank
    for number, text in enumerate(tokenize(model, list(texts)), 1):
        if len(text) > most:
            raise TextError(
                f"Text {number} has {len(text):,} tokens. This page accepts texts of up to {most} "
                "tokens; use the Micro-tuning page for longer ones."
            )
    events = list(
        micro_tune(model, list(texts), epochs=epochs, with_deltas=True, should_stop=should_stop)
    )
    tuning = collect_result(events)
    text, settings = tuning.texts[0], tuning.settings
    deltas = [delta[0] for delta in tuning.deltas]
    before, after = predict_masked(model, text, settings, [None, deltas], should_stop=should_stop)
    sentence = sentence_with_blank(text.text, _report_on(text, before, after))
    delta = TextDelta(tuning.model_id, settings.layers, tuple(deltas))
    hidden = read_hidden_word(text.text, sentence)
    (blank,) = fill_blanks(model, sentence, [(1.0, delta)], GUESSES, hidden)
    check_stop(should_stop)
    parameters = dict(model.network.named_parameters())
    return Walkthrough(
        tuning=tuning,
        inputs=mask_inputs(len(text), settings.blueprints),
        before=before,
        after=after,
        weights=tuple(parameters[name].detach().cpu().numpy().copy() for name in settings.layers),
        gradients=tuple(layer[0] for layer in loss_gradients(model, [text], settings, should_stop)),
        deltas=tuple(np.stack(layer) for layer in zip(*(e.deltas for e in events), strict=True)),
        sentence=sentence,
        blank=blank,
    )


def _report_on(
    text: TokenizedText, before: MaskedPredictions, after: MaskedPredictions
) -> TextReport:
    return TextReport(0, text, None, 0.0, before, after, None)
