"""Micro-tuning: a masked language model learns a text for some epochs (neural paper, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuralviz.errors import SettingsError, Stopped
from neuralviz.micro_tuning.blueprints import DEFAULT_BLUEPRINTS
from neuralviz.micro_tuning.cross_entropy import CrossEntropy, cross_entropy
from neuralviz.micro_tuning.events import MicroTuning, TokenShares, TuningEvent, joined
from neuralviz.micro_tuning.frozen_tail import FrozenTail, count_candidates
from neuralviz.micro_tuning.optimizer import RowAdamW
from neuralviz.micro_tuning.output_layer import output_layer
from neuralviz.micro_tuning.per_text import HEAD_ONLY, PerTextNetwork, per_text_network
from neuralviz.micro_tuning.plan import Piece, count_masked, make_pieces
from neuralviz.micro_tuning.settings import DEFAULT_TOLERANCE, TuningSettings, check_settings
from neuralviz.models.tokens import TokenizedText, tokenize

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.models import LanguageModel

KEPT_BYTES = 1 << 30  # of hidden states and tails kept between epochs; more are computed anew
POSITIONS_IN_CACHE = 1024  # masked positions that go through all epochs together on a CPU
FASTEST_RATE = 0.05  # learning rate beyond which a step goes too far for a tail to be continued
BLOCKS_CAUTION = 3.0  # of the frozen tail, with layers below the head: some hardly move the loss
MAX_FOLLOWED_VALUES = 5_000_000  # tokens times values of the layers, for token shares


class Prepared(NamedTuple):
    """A piece and what is kept of it between epochs.

    Attributes:
        piece: what goes through the network.
        below: what lies below the tuned parameters: [own text, slot, width] when only the head is
            tuned, else [row, token, width]; None when nothing is reused.
        tail: its loss, when the precision is fast.
    """

    piece: Piece
    below: Tensor | None
    tail: FrozenTail | None


def micro_tune(
    model: LanguageModel,
    texts: Sequence[str],
    *,
    layers: Iterable[str] | str | None = None,
    blueprints: Iterable[Sequence[int]] = DEFAULT_BLUEPRINTS,
    epochs: int = 10,
    learning_rate: float = 0.01,
    weight_decay: float = 0.01,
    predict_unmasked: bool = False,
    precision: str = "exact",
    tolerance: float = DEFAULT_TOLERANCE,
    with_deltas: bool = False,
    with_token_shares: bool = False,
    reuse: bool = True,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[TuningEvent]:
    """Tune the chosen layers on every text, each from the pretrained weights, each on its own.

    The texts go through the network together and learn nothing of each other; the model itself is
    only read. Whoever consumes the events may stop at any of them.

    Args:
        model: from `neuralviz.load_model`.
        texts: at least one.
        layers: names of 1-D parameters of any blocks, ``"head"`` (default) or ``"last_block"``.
        blueprints: pairs (keep, mask).
        epochs: 1 … 1000.
        learning_rate, weight_decay: of AdamW; betas are 0.9 and 0.999, eps 1e-8.
        predict_unmasked: mask nothing and predict every token.
        precision, tolerance: as of `TuningSettings`.
        with_deltas: events carry the deltas of every step.
        with_token_shares: the result says which tokens wrote the deltas. Free when only the head
            is tuned; otherwise one backward pass a token.
        reuse: keep what lies below the lowest tuned parameter. ``False`` computes the whole
            network in every step and gives the same numbers.
        should_stop: asked before every pass through the network, of which a step of long texts has
            many.

    Yields:
        A `TuningEvent` for every optimiser step; the last one carries the `MicroTuning`.

    Raises:
        SettingsError, TextError: at once.
        ModelError: with the first event, where the architecture does not let these layers be tuned.
        Stopped: ``should_stop`` said so.
    """
    settings = check_settings(
        model,
        layers=layers,
        blueprints=blueprints,
        epochs=epochs,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        predict_unmasked=predict_unmasked,
        precision=precision,
        tolerance=tolerance,
    )
    if isinstance(texts, str):
        texts = [texts]
    tokenized = tokenize(model, texts)
    if not tokenized:
        raise SettingsError("Give at least one text to tune on.")
    if with_token_shares and followed_values(model, tokenized, settings) > MAX_FOLLOWED_VALUES:
        raise SettingsError(
            "Which words wrote the embedding cannot be followed for so long texts and so large "
            "layers at once; give fewer or shorter texts, or smaller layers."
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


def followed_values(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> int:
    """Values that following every token takes: tokens times sizes of the layers."""
    sizes = {layer.name: layer.size for layer in model.layers}
    return sum(map(len, texts)) * sum(sizes[name] for name in settings.layers)


def tune(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    *,
    with_deltas: bool = False,
    with_token_shares: bool = False,
    reuse: bool = True,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[TuningEvent]:
    """`micro_tune` on tokenised texts with checked settings."""
    run = TuningRun(
        model,
        texts,
        settings,
        with_token_shares=with_token_shares,
        reuse=reuse,
        should_stop=should_stop,
    )
    for step in range(run.steps):
        run.step()
        loss, epoch_loss = run.losses_of_step(step)
        yield TuningEvent(
            step=step + 1,
            steps=run.steps,
            epoch=step // run.rounds + 1,
            epochs=settings.epochs,
            loss=loss,
            epoch_loss=epoch_loss,
            delta_norm=run.norms().cpu().numpy(),
            deltas=run.deltas() if with_deltas else None,
            result=run.result() if step + 1 == run.steps else None,
        )


def learn(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    should_stop: Callable[[], bool] = lambda: False,
) -> MicroTuning:
    """Tune to the end without being watched.

    A few texts at a time go through all epochs: on a CPU as many as stay in its cache, on a GPU as
    many as can be kept there. An exact run reads nothing back from a GPU before its end; a fast one
    reads, once an epoch, which texts need another exact pass.

    Raises:
        Stopped: ``should_stop`` said so.
    """
    return learn_by_epoch(model, texts, settings, [settings.epochs], should_stop)[settings.epochs]


def learn_by_epoch(
    model: LanguageModel,
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    epochs: Iterable[int],
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[int, MicroTuning]:
    """`learn`, and what there is after some of the epochs on the way.

    Up to there a run that has fewer epochs is the same, bit by bit, unless it is fast: how often a
    fast run looks at all words depends on the number of its epochs.

    Args:
        model, texts, settings, should_stop: as of `learn`.
        epochs: 1 … ``settings.epochs``; of a fast run, the last one alone.

    Returns:
        By epoch, what a run of so many comes to.

    Raises:
        SettingsError: an epoch is not there, or is on the way of a fast run.
        Stopped: ``should_stop`` said so.
    """
    found: dict[int, list[MicroTuning]] = {epoch: [] for epoch in epochs}
    for epoch in found:
        if not 1 <= epoch <= settings.epochs or (settings.is_fast and epoch != settings.epochs):
            raise SettingsError(
                f"A {settings.precision} run of {settings.epochs} epochs does not "
                f"pass one of {epoch}."
            )
    for group in _groups(model, texts, settings):
        run = TuningRun(model, group, settings, should_stop=should_stop)
        for step in range(1, run.steps + 1):
            run.step()
            epoch, rest = divmod(step, run.rounds)
            if not rest and epoch in found:
                found[epoch].append(run.result())
    return {epoch: joined(results) for epoch, results in found.items()}


def _groups(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> Iterator[list[TokenizedText]]:
    """Texts in order, a text or more at a time; what shorter ones are filled up with counts."""
    layer, on_cpu = output_layer(model, _dtype(settings)), model.device.type == "cpu"

    def fit(n_texts: int, n_positions: int) -> bool:
        if on_cpu:
            return n_texts * n_positions <= POSITIONS_IN_CACHE
        size = FrozenTail.size_in_bytes(layer, n_texts, n_positions, settings.tolerance)
        return 2 * size <= KEPT_BYTES  # hidden states beside it

    group: list[TokenizedText] = []
    longest = 0
    for text in texts:
        longest = max(longest, count_masked(text, settings))
        if group and not fit(len(group) + 1, longest):
            yield group
            group, longest = [], count_masked(text, settings)
        group.append(text)
    yield group


class TuningRun:
    """Micro-tuning under way, an optimiser step at a time.

    An exact step only queues work on the model's device; reading a result waits for it.

    Attributes:
        rounds: steps of an epoch, as many as the text of most chunks has chunks.
        steps: in all.
    """

    def __init__(
        self,
        model: LanguageModel,
        texts: Sequence[TokenizedText],
        settings: TuningSettings,
        *,
        with_token_shares: bool = False,
        reuse: bool = True,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._model, self._texts, self._settings = model, texts, settings
        network = per_text_network(model, settings.layers, reuse=reuse)
        self._inputs = PreparedInputs(model, network, texts, settings)
        self._layers = JoinedLayers(model, settings.layers)
        followed = np.repeat(
            np.arange(len(texts)), list(map(len, texts)) if with_token_shares else 0
        )
        self._optimizer = RowAdamW(
            self._layers.weights.expand(len(texts), -1).clone(),
            settings,
            torch.as_tensor(followed, device=model.device),
        )
        self._gradients = Gradients(
            model, network, self._layers, texts, settings, with_token_shares
        )
        self._with_token_shares = with_token_shares
        self._should_stop = should_stop
        n_chunks = np.array([len(text.chunks) for text in texts])
        self.rounds = int(n_chunks.max())
        self.steps = settings.epochs * self.rounds
        # [round, text] whether a text has a chunk there
        self._there = np.arange(self.rounds)[:, None] < n_chunks
        self._present = torch.as_tensor(self._there, device=model.device)
        self._alive = torch.ones(len(texts), dtype=torch.bool, device=model.device)
        self._loss: list[Tensor] = []  # of every step, [text]
        self._norms: list[Tensor] = []  # after every epoch, [text, layer]

    def step(self) -> None:
        """Take the next step.

        Raises:
            Stopped: ``should_stop``, asked before every pass through the network, said so.
        """
        chunk = len(self._loss) % self.rounds
        pieces = _until(self._should_stop, self._inputs.of_chunk(chunk))
        loss = self._gradients.of(pieces, self._optimizer.value)
        grad, present = self._gradients.joined, self._present[chunk]
        step = self._optimizer.prepare(grad)
        finite = loss.isfinite() & step.finite & grad.isfinite().all(dim=1)
        moved = self._alive & present & finite  # all layers of a text move, or none
        self._optimizer.take(step, moved, self._gradients.joined_by_token)
        self._alive = self._alive & (moved | ~present)
        self._loss.append(loss)
        if chunk == self.rounds - 1:
            self._norms.append(self.norms())

    def losses_of_step(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """[text] loss of a step taken, and [text] the mean over the epoch's chunks until then."""
        epoch, chunk = divmod(step, self.rounds)
        of_round = np.full(self._there.shape, np.nan)
        for seen in range(chunk + 1):
            of_round[seen] = self._loss[epoch * self.rounds + seen].cpu().numpy()
        return of_round[chunk], self._mean(of_round, self._there[: chunk + 1])

    def norms(self) -> Tensor:
        """[text, layer] lengths of the deltas."""
        deltas = self._layers.split(self._optimizer.delta.double()).values()
        return torch.stack([torch.linalg.vector_norm(d, dim=1) for d in deltas], dim=1)

    def deltas(self) -> tuple[np.ndarray, ...]:
        """Per layer, [text, dim]."""
        return tuple(d.cpu().numpy() for d in self._layers.split(self._optimizer.delta).values())

    def result(self) -> MicroTuning:
        """What has come of it, after the last step of an epoch: as if it were the last one."""
        epochs = len(self._norms)
        of_step = torch.stack(self._loss).cpu().numpy()
        of_epoch = of_step.reshape(epochs, self.rounds, len(self._texts))
        return MicroTuning(
            model_id=self._model.id,
            fingerprint=self._model.fingerprint,
            settings=replace(self._settings, epochs=epochs),
            texts=tuple(self._texts),
            deltas=self.deltas(),
            loss=np.array([self._mean(losses, self._there) for losses in of_epoch]),
            delta_norm=torch.stack(self._norms).cpu().numpy(),
            diverged=~self._alive.cpu().numpy(),
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

    @staticmethod
    def _mean(of_round: np.ndarray, there: np.ndarray) -> np.ndarray:
        """[text] mean over the rounds that a text is there in; what is not finite stays so."""
        return np.where(there, of_round[: len(there)], 0).sum(axis=0) / there.sum(axis=0)


class JoinedLayers:
    """The tuned layers, one behind the other in one tensor.

    Attributes:
        weights: [value] the pretrained ones.
    """

    def __init__(self, model: LanguageModel, names: Sequence[str]) -> None:
        parameters = dict(model.network.named_parameters())
        layers = [parameters[name].detach() for name in names]
        self._names, self._sizes = names, [len(layer) for layer in layers]
        self.weights = torch.cat(layers)

    def split(self, joined: Tensor) -> dict[str, Tensor]:
        """[row, value] to views of it by layer, each [row, dim]."""
        return dict(zip(self._names, joined.split(self._sizes, dim=1), strict=True))


def _until(should_stop: Callable[[], bool], pieces: Iterable[Prepared]) -> Iterator[Prepared]:
    for prepared in pieces:
        if should_stop():
            raise Stopped
        yield prepared


def _dtype(settings: TuningSettings) -> torch.dtype:
    """Of what goes into matrix products."""
    return torch.bfloat16 if settings.in_bf16 else torch.float32


_choosing_attention = Lock()  # the choice is the process's, and is put back by who made it


@contextmanager
def _products_in(device: torch.device, settings: TuningSettings) -> Iterator[None]:
    """Matrix products of modules take factors of the settings' type."""
    with ExitStack() as stack:
        if settings.in_bf16:
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
            if device.type == "cpu":  # the fused attention's backward pass crawls in bfloat16
                stack.enter_context(_choosing_attention)
                stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield


class PreparedInputs:
    """The pieces of every chunk with what lies below the tuned layers, kept while memory allows."""

    def __init__(
        self,
        model: LanguageModel,
        network: PerTextNetwork,
        texts: Sequence[TokenizedText],
        settings: TuningSettings,
    ) -> None:
        self._model, self._network = model, network
        self._output = output_layer(model, _dtype(settings))
        self._texts, self._settings = texts, settings
        self._kept: dict[int, list[Prepared]] = {}
        self._bytes = 0

    def of_chunk(self, chunk: int) -> Iterator[Prepared]:
        """The pieces of the ``chunk``-th chunk of every text."""
        if chunk in self._kept:
            yield from self._kept[chunk]
            return
        made: list[Prepared] | None = []
        for piece in make_pieces(self._model, self._texts, self._settings, chunk):
            at: tuple[Tensor, ...] = ()
            if self._network.cut == HEAD_ONLY:
                at = (piece.in_slots(piece.row), piece.in_slots(piece.column))
            with _products_in(self._model.device, self._settings):
                below = self._network.below(piece.ids, piece.attention, at)
            below = None if below is None else below.float()
            prepared = Prepared(piece, below, self._tail_of(piece))
            size = self._size_of(prepared)
            if made is not None and self._bytes + size <= KEPT_BYTES:
                self._bytes += size
                made.append(prepared)
            elif made is not None:  # this chunk does not fit: leave the room to later ones
                self._bytes -= sum(map(self._size_of, made))
                made = None
            yield prepared
        if made is not None:
            self._kept[chunk] = made

    def _tail_of(self, piece: Piece) -> FrozenTail | None:
        settings = self._settings
        words = len(self._output.weight)
        if not settings.is_fast or self._network.output_bias_name is not None:
            return None  # a text's own output bias moves every word
        if settings.learning_rate > FASTEST_RATE:
            return None
        if count_candidates(words, settings.tolerance) == words:
            return None
        labels = piece.in_slots(piece.labels)
        return FrozenTail(
            self._output,
            labels,
            piece.is_used,
            epochs=settings.epochs,
            tolerance=settings.tolerance,
            caution=1.0 if self._network.cut == HEAD_ONLY else BLOCKS_CAUTION,
        )

    def _size_of(self, prepared: Prepared) -> int:
        size = 0 if prepared.below is None else prepared.below.nbytes
        if prepared.tail is not None:
            n_texts, n_slots = prepared.piece.slots.shape
            size += FrozenTail.size_in_bytes(
                self._output, n_texts, n_slots, self._settings.tolerance
            )
        return size


class Gradients:
    """Loss and gradients of every text, summed over the pieces of one step.

    Attributes:
        joined: [text, value], the layers one behind the other.
        joined_by_token: [token, value], tokens of all texts one after the other; None unless
            followed.
        by_text, by_token: views of these, by name of the layer.
    """

    def __init__(
        self,
        model: LanguageModel,
        network: PerTextNetwork,
        layers: JoinedLayers,
        texts: Sequence[TokenizedText],
        settings: TuningSettings,
        follow_tokens: bool,
    ) -> None:
        self._network, self._layers, self._settings = network, layers, settings
        self._output = output_layer(model, _dtype(settings))
        self._n_texts = len(texts)
        self._first_token = np.cumsum([0, *map(len, texts)])
        self._follow = follow_tokens
        self.joined_by_token: Tensor | None = None
        self.by_token: dict[str, Tensor] | None = None

    def of(self, inputs: Iterable[Prepared], weights: Tensor) -> Tensor:
        """Set the gradients and return the loss [text] in double precision.

        It is NaN for a text without a position.

        Args:
            inputs: the pieces.
            weights: [text, value] of the layers, one behind the other.
        """
        values = self._layers.split(weights)
        self.joined = torch.zeros_like(weights)
        self.by_text = self._layers.split(self.joined)
        if self._follow:
            n_tokens = int(self._first_token[-1])
            self.joined_by_token = weights.new_zeros(n_tokens, weights.shape[1])
            self.by_token = self._layers.split(self.joined_by_token)
        loss = torch.zeros(self._n_texts, dtype=torch.float64, device=weights.device)
        seen = torch.zeros(self._n_texts, dtype=torch.bool, device=weights.device)
        for prepared in inputs:
            texts = prepared.piece.texts
            loss.index_add_(0, texts, self._add(prepared, values))
            seen[texts] = True
        return loss.masked_fill_(~seen, torch.nan)

    def _add(self, prepared: Prepared, values: dict[str, Tensor]) -> Tensor:
        """Add one piece's gradients; returns its part of the losses, [own text]."""
        piece, network = prepared.piece, self._network
        bias_name = network.output_bias_name
        of_head = network.cut == HEAD_ONLY
        text_of_row = piece.texts if of_head else piece.text_of_row
        rows = {name: value[text_of_row] for name, value in values.items() if name != bias_name}
        if of_head and self._follow:  # a row for each position
            n_slots = piece.slots.shape[1]
            rows = {name: value[:, None].repeat(1, n_slots, 1) for name, value in rows.items()}
        for row in rows.values():
            row.requires_grad_()
        with torch.enable_grad(), _products_in(piece.ids.device, self._settings):
            if of_head:
                assert prepared.below is not None
                out = network.at_positions(prepared.below, rows)
                at: tuple[Tensor, ...] = (piece.own_text, piece.slot)
            else:
                out = network.at_tokens(
                    piece.ids, piece.attention, prepared.below, rows, text_of_row
                )
                at = (piece.row, piece.column)
        vectors = out.detach().float()
        if of_head and prepared.tail is not None:  # both are in slots
            loss, grad = prepared.tail.loss(vectors)
            weight = piece.in_slots(piece.weight) * piece.is_used
            self._add_rows(piece, rows, out, (grad * weight[..., None]).to(out.dtype), of_head)
            return (loss.double() * weight).sum(dim=1)
        vectors = vectors[at]
        result = self._loss(prepared, vectors, values.get(bias_name or ""))
        if bias_name:
            self.by_text[bias_name] += result.grad_bias
            if self._follow:
                self._follow_output_bias(piece, vectors, values[bias_name], bias_name)
        if rows:
            grad_out = torch.zeros_like(out)
            grad_out[at] = (result.grad * piece.weight[:, None]).to(out.dtype)
            self._add_rows(piece, rows, out, grad_out, of_head)
        loss = result.loss.double() * piece.weight
        return loss.new_zeros(len(piece.texts)).index_add_(0, piece.own_text, loss)

    def _add_rows(
        self,
        piece: Piece,
        rows: dict[str, Tensor],
        out: Tensor,
        grad_out: Tensor,
        of_head: bool,
    ) -> None:
        """Add what the loss's gradient by the output, ``grad_out``, is by the tuned ``rows``."""
        inputs = list(rows.values())
        if of_head and self._follow:
            grads = torch.autograd.grad(out, inputs, grad_out)
            own = [grad[piece.own_text, piece.slot] for grad in grads]
            self._add_up(list(rows), own, piece.text_of, piece.token_of)
        elif self._follow:
            at = (piece.row, piece.column)
            for token in piece.token_of.unique():
                of_token = torch.zeros_like(grad_out)
                of_token[at] = grad_out[at] * (piece.token_of == token)[:, None]
                grads = torch.autograd.grad(out, inputs, of_token, retain_graph=True)
                self._add_up(list(rows), grads, piece.text_of_row, token)
        else:
            grads = torch.autograd.grad(out, inputs, grad_out)
            text_of_row = piece.texts if of_head else piece.text_of_row
            self._add_up(list(rows), grads, text_of_row, None)

    def _loss(self, prepared: Prepared, vectors: Tensor, own_bias: Tensor | None) -> CrossEntropy:
        """Loss and gradients at the positions of a piece, from [position, width] ``vectors``."""
        piece = prepared.piece
        if prepared.tail is not None:
            loss, grad = prepared.tail.loss(piece.in_slots(vectors))
            at = (piece.own_text, piece.slot)
            return CrossEntropy(loss[at], grad[at], None)
        return cross_entropy(
            vectors,
            self._output.weight,
            self._output.bias if own_bias is None else own_bias,
            piece.labels,
            text_of=piece.text_of,
            position_weight=piece.weight,
        )

    def _add_up(
        self,
        names: Sequence[str],
        grads: Sequence[Tensor],
        text_of_row: Tensor,
        token: Tensor | None,
    ) -> None:
        """Add gradients [row, dim]; those of ``token``, [row] or one for all, if followed."""
        if self._follow:
            first = torch.as_tensor(self._first_token, device=text_of_row.device)
            at = first[text_of_row] + token
            has_it = at < first[text_of_row + 1]  # a short text has no such token
        for name, grad in zip(names, grads, strict=True):
            self.by_text[name].index_add_(0, text_of_row, grad)
            if self.by_token is not None:
                self.by_token[name].index_add_(0, at[has_it], grad[has_it])

    def _follow_output_bias(self, piece: Piece, out: Tensor, bias: Tensor, name: str) -> None:
        """Each token's part of the gradient by a text's own output bias, token by token."""
        for token in torch.stack([piece.text_of, piece.token_of]).unique(dim=1).T:
            at = (piece.text_of == token[0]) & (piece.token_of == token[1])
            part = cross_entropy(
                out[at],
                self._output.weight,
                bias[token[0]][None],
                piece.labels[at],
                text_of=torch.zeros_like(piece.text_of[at]),
                position_weight=piece.weight[at],
            )
            assert self.by_token is not None and part.grad_bias is not None
            self.by_token[name][self._first_token[int(token[0])] + token[1]] += part.grad_bias[0]
