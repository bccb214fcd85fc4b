"""Micro-tuning: a masked language model learns a text for some epochs (neural paper, section 2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
import torch

from neuralviz.errors import SettingsError, ShouldStop, never
from neuralviz.micro_tuning.cross_entropy import output_layer
from neuralviz.micro_tuning.events import MicroTuning, TokenShares, TuningEvent, join_runs
from neuralviz.micro_tuning.frozen_tail import FrozenTail
from neuralviz.micro_tuning.gradients import Gradients, JoinedLayers
from neuralviz.micro_tuning.inputs import KEPT_BYTES, PreparedInputs, mask_texts, stop_between
from neuralviz.micro_tuning.probe import per_text_network
from neuralviz.micro_tuning.products import product_dtype
from neuralviz.micro_tuning.settings import (
    MAX_FOLLOWED_VALUES,
    TuningOptions,
    TuningSettings,
    check_settings,
    count_masked,
    followed_values,
)
from neuralviz.models.language_model import LanguageModel, check_model
from neuralviz.models.tokens import TokenizedText, batch_while, tokenize
from neuralviz.words import many

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.micro_tuning.inputs import Piece
    from neuralviz.models import LanguageModel


def micro_tune(
    model: LanguageModel,
    texts: Sequence[str],
    settings: TuningSettings | None = None,
    *,
    with_deltas: bool = False,
    with_token_shares: bool = False,
    reuse: bool = True,
    should_stop: ShouldStop = never,
    **options: Unpack[TuningOptions],
) -> Iterator[TuningEvent]:
    """Tune the chosen layers on every text, each independently from the pretrained weights.

    Settings are the paper's by default; ``options`` override single values (`TuningOptions`).
    Yields a `TuningEvent` per epoch, the last with the `MicroTuning`; the model itself stays
    unchanged. ``with_deltas`` adds deltas to every event; ``with_token_shares`` each token's share,
    free for the head alone, else a backward pass per token; without ``reuse`` the frozen lower part
    is computed anew, with equal results. SettingsError and TextError are raised at once, ModelError
    at the first event if these layers cannot be tuned, and Stopped between two passes through
    the network.
    """
    check_model(model, LanguageModel, "micro_tune")
    settings = check_settings(model, settings, **options)
    if isinstance(texts, str):
        texts = [texts]
    tokenized = tokenize(model, texts)
    if not tokenized:
        raise SettingsError("Pass at least one text.")
    if with_token_shares and followed_values(model, tokenized, settings) > MAX_FOLLOWED_VALUES:
        raise SettingsError(
            "Word shares need too much memory for texts this long and layers this large. "
            "Use fewer or shorter texts, or smaller layers."
        )
    return tune(
        model,
        tokenized,
        settings,
        with_deltas=with_deltas,
        with_token_shares=with_token_shares,
        reuse=reuse,
        should_stop=should_stop,
    )


def tune(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    *,
    with_deltas: bool = False,
    with_token_shares: bool = False,
    with_parts: bool = False,
    reuse: bool = True,
    should_stop: ShouldStop = never,
) -> Iterator[TuningEvent]:
    """`micro_tune` for tokenised texts and checked settings; ``with_parts`` within epochs, too."""
    run = TuningRun(
        model,
        texts,
        settings,
        with_token_shares=with_token_shares,
        reuse=reuse,
        should_stop=should_stop,
    )
    for epoch in range(1, settings.epochs + 1):
        read = np.zeros(len(texts))
        for share, piece, sums in run.step_by_piece():
            if with_parts and share < 1:
                shares = piece.shares(len(texts))
                loss = torch.zeros_like(shares).index_add_(0, piece.texts, sums) / shares
                read = read + shares.cpu().numpy()
                norms = run.norms().cpu().numpy()
                yield TuningEvent(epoch, settings.epochs, loss.cpu().numpy(), norms, share, read)
        yield TuningEvent(
            epoch=epoch,
            epochs=settings.epochs,
            loss=run.last_loss.cpu().numpy(),
            delta_norm=run.norms().cpu().numpy(),
            deltas=run.deltas() if with_deltas else None,
            result=run.result() if epoch == settings.epochs else None,
        )


class TuningRun:
    """Micro-tuning, one epoch at a time. Exact steps are queued on the device, not waited for."""

    def __init__(
        self,
        model: LanguageModel,
        texts: Sequence[TokenizedText],
        settings: TuningSettings,
        *,
        with_token_shares: bool = False,
        reuse: bool = True,
        should_stop: ShouldStop = never,
    ) -> None:
        self._model, self._texts, self._settings = model, texts, settings
        self._with_token_shares, self._should_stop = with_token_shares, should_stop
        network = per_text_network(model, settings.layers, reuse=reuse)
        inputs = mask_texts(model, texts, settings)
        self._inputs = PreparedInputs(model, network, inputs, settings)
        self._layers = JoinedLayers(model, settings.layers)
        self._gradients = Gradients(
            model, network, self._layers, texts, settings, with_token_shares
        )
        n_followed = list(map(len, texts)) if with_token_shares else 0
        text_of_token = np.repeat(np.arange(len(texts)), n_followed)
        self._optimizer = RowAdamW(
            self._layers.weights.expand(len(texts), -1).clone(),  # [text, value]
            settings,
            torch.as_tensor(text_of_token, device=model.device),
        )
        self._diverged = torch.zeros(len(texts), dtype=torch.bool, device=model.device)
        self._loss: list[Tensor] = []  # of every epoch, [text]
        self._norms: list[Tensor] = []  # after every epoch, [text, layer]

    def step(self) -> None:
        """Take a step; `Stopped` if ``should_stop`` says so."""
        deque(self.step_by_piece(), maxlen=0)

    def step_by_piece(self) -> Iterator[tuple[float, Piece, Tensor]]:
        """Take a step once all pieces are read.

        Yields the share of the masked positions that are read, the last piece, and the [piece text]
        part of the loss in it.
        """
        inputs = stop_between(self._should_stop, self._inputs)
        loss = torch.zeros(len(self._texts), dtype=torch.float64, device=self._model.device)
        n_read = 0
        for piece, part in self._gradients.add_up(inputs, self._optimizer.value):
            loss.index_add_(0, piece.texts, part)
            n_read += len(piece.labels)
            yield n_read / self._inputs.n_positions, piece, part
        grad = self._gradients.joined  # [text, value]
        step = self._optimizer.prepare(grad)
        is_finite = loss.isfinite() & step.is_finite & grad.isfinite().all(dim=1)  # [text]
        moves = is_finite & ~self._diverged  # all layers of a text move, or none
        self._optimizer.take(step, moves, self._gradients.joined_by_token)
        self._diverged = ~moves
        self._loss.append(loss)
        self._norms.append(self.norms())

    @property
    def last_loss(self) -> Tensor:
        """[text] loss before the last step."""
        return self._loss[-1]

    def norms(self) -> Tensor:
        """[text, layer] lengths of the deltas."""
        deltas = self._layers.split(self._optimizer.delta.double()).values()
        return torch.stack([torch.linalg.vector_norm(d, dim=1) for d in deltas], dim=1)

    def deltas(self) -> tuple[np.ndarray, ...]:
        return tuple(d.cpu().numpy() for d in self._layers.split(self._optimizer.delta).values())

    def result(self) -> MicroTuning:
        return MicroTuning(
            model_id=self._model.id,
            fingerprint=self._model.fingerprint,
            settings=replace(self._settings, epochs=len(self._loss)),
            texts=tuple(self._texts),
            deltas=self.deltas(),
            loss=torch.stack(self._loss).cpu().numpy(),
            delta_norm=torch.stack(self._norms).cpu().numpy(),
            diverged=self._diverged.cpu().numpy(),
            shares=self._shares() if self._with_token_shares else None,
        )

    def _shares(self) -> tuple[TokenShares, ...]:
        tokens = self._layers.split(self._optimizer.token_part.cpu()).values()
        decay = self._layers.split(self._optimizer.decay_part.cpu()).values()
        ends = np.cumsum([0, *map(len, self._texts)])
        return tuple(
            TokenShares(
                tokens=tuple(part[ends[i] : ends[i + 1]].numpy() for part in tokens),
                decay=tuple(part[i].numpy() for part in decay),
            )
            for i in range(len(self._texts))
        )


class Step(NamedTuple):
    """A pending AdamW step, all [text, dim]; the weights change by ``decay - scale * first``."""

    first: Tensor  # moving average of the gradient after the step
    second: Tensor  # and of its square
    scale: Tensor
    decay: Tensor
    value: Tensor  # the new weights

    @property
    def is_finite(self) -> Tensor:
        """[text] true if the step leads to finite numbers."""
        return self.value.isfinite().all(dim=1) & self.second.isfinite().all(dim=1)


@dataclass(eq=False)
class RowAdamW:
    """``torch.optim.AdamW`` row by row; tracks each token's part, and rows can be left out."""

    value: Tensor  # [text, dim] tuned weights
    settings: TuningSettings
    text_of: Tensor  # [token] text of each followed token; empty to follow none

    def __post_init__(self) -> None:
        self.start = self.value.clone()
        self.first = torch.zeros_like(self.value)
        self.second = torch.zeros_like(self.value)
        # steps so far; float64, because 1 - 0.999 loses its last digits in float32
        self.n_taken = self.value.new_zeros((), dtype=torch.float64)
        n_tokens, dim = len(self.text_of), self.value.shape[1]
        self.token_first = self.value.new_zeros(n_tokens, dim)
        self.token_part = self.value.new_zeros(n_tokens, dim)
        self.decay_part = torch.zeros_like(self.value)

    @property
    def delta(self) -> Tensor:
        return self.value - self.start

    def prepare(self, grad: Tensor) -> Step:
        """The step for the [text, dim] gradient; weights stay unchanged until `take`."""
        s, (beta1, beta2) = self.settings, self.settings.betas
        n_steps = self.n_taken + 1
        first = beta1 * self.first + (1 - beta1) * grad
        second = beta2 * self.second + (1 - beta2) * grad.square()
        rate = (s.learning_rate / (1 - beta1**n_steps)).to(grad.dtype)
        spread = (1 - beta2**n_steps).sqrt().to(grad.dtype)
        scale = rate / (second.sqrt() / spread + s.eps)
        decay = -s.learning_rate * s.weight_decay * self.value
        value = self.value + decay - scale * first
        return Step(first, second, scale, decay, value)

    def take(self, step: Step, texts: Tensor, token_grad: Tensor | None = None) -> None:
        """Take the step for the texts marked in ``texts``; once left out, a text must stay out."""
        rows = texts[:, None]
        if token_grad is not None:
            beta1 = self.settings.betas[0]
            tokens = rows[self.text_of]
            token_first = beta1 * self.token_first + (1 - beta1) * token_grad
            self.token_first = torch.where(tokens, token_first, self.token_first)
            part = self.token_part - step.scale[self.text_of] * token_first
            self.token_part = torch.where(tokens, part, self.token_part)
            self.decay_part = torch.where(rows, self.decay_part + step.decay, self.decay_part)
        self.value = torch.where(rows, step.value, self.value)
        self.first = torch.where(rows, step.first, self.first)
        self.second = torch.where(rows, step.second, self.second)
        self.n_taken += 1


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
    *,
    by_token: bool = False,
) -> tuple[np.ndarray, ...]:
    """Per layer, the [text, dim] gradient of each text's exact loss, without tuning.

    ``by_token`` gives [token, dim] instead, each token's part, with all texts' tokens in order.
    `ModelError` if these layers cannot be tuned, `Stopped` if ``should_stop`` returns true.
    """
    network = per_text_network(model, settings.layers)
    layers = JoinedLayers(model, settings.layers)
    per_batch = []
    for batch in batches(model, texts, settings):
        gradients = Gradients(model, network, layers, batch, settings, follow_tokens=by_token)
        weights = layers.weights.expand(len(batch), -1).clone()
        inputs = PreparedInputs(model, network, mask_texts(model, batch, settings), settings)
        deque(gradients.add_up(stop_between(should_stop, inputs), weights), maxlen=0)
        joined = gradients.joined_by_token if by_token else gradients.joined
        assert joined is not None, "tokens are followed"
        per_batch.append([layer.cpu().numpy() for layer in layers.split(joined).values()])
    return tuple(map(np.concatenate, zip(*per_batch, strict=True)))
