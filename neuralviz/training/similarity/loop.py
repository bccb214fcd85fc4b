"""The networks of the rungs, and their training as a stream of events."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator

import numpy as np
import torch
from safetensors.torch import load, save
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn import functional

from neuralviz.errors import NeuralvizError, ShouldStop, TextError, check_stop, never
from neuralviz.training.similarity.data import PairFeatures, check_different
from neuralviz.training.similarity.settings import (
    AutoencoderEpoch,
    SimilarityEnded,
    SimilarityEpoch,
    SimilarityEvent,
    SimilaritySettings,
)


def encoder_widths(n_layers: int, d_model: int) -> tuple[int, ...]:
    """[layer] encoder units: a quarter of the model's width, half the width in the upper layers."""
    # gpt2-medium: 256, and 512 for the last twelve layers (FREEZE, section 4.2.3)
    n_wide = n_layers // 2
    narrow, wide = max(d_model // 4, 1), max(d_model // 2, 1)
    return (narrow,) * (n_layers - n_wide) + (wide,) * n_wide


class LayerEncoders(nn.Module):
    """An encoder per layer: layer norm, then linear (FREEZE, sections 4.2.2 and 4.2.3)."""

    # they begin as orthogonal random projections, which change cosines little

    def __init__(self, n_layers: int, d_model: int) -> None:
        super().__init__()
        self.encoders = nn.ModuleList()
        for width in encoder_widths(n_layers, d_model):
            linear = nn.Linear(d_model, width)
            nn.init.orthogonal_(linear.weight)
            nn.init.zeros_(linear.bias)
            self.encoders.append(nn.Sequential(nn.LayerNorm(d_model), linear))

    def forward(self, vectors: Tensor) -> list[Tensor]:
        """[text, layer, d_model] to a [text, width] for each layer."""
        return [encoder(vectors[:, layer]) for layer, encoder in enumerate(self.encoders)]


class Decoders(nn.Module):
    """Turn codes back into layers' vectors; needed only for training."""

    def __init__(self, n_layers: int, d_model: int) -> None:
        super().__init__()
        widths = encoder_widths(n_layers, d_model)
        self.decoders = nn.ModuleList(nn.Linear(width, d_model) for width in widths)

    def losses(self, codes: list[Tensor], vectors: Tensor) -> Tensor:
        """[layer] mean squared errors of the [text, layer, d_model] vectors behind the codes."""
        errors = [
            functional.mse_loss(decoder(code), vectors[:, layer])
            for layer, (decoder, code) in enumerate(zip(self.decoders, codes, strict=True))
        ]
        return torch.stack(errors)


class CosineHead(nn.Module):
    """``sigmoid(top - |f(1, …, 1) - f(cosines)|)``, where ``f`` is linear plus an MLP."""

    # so equal texts, whose cosines are all 1, get the highest score

    def __init__(self, n_layers: int, hidden: int) -> None:
        super().__init__()
        self.top = nn.Parameter(torch.tensor(3.0))
        self.linear = nn.Linear(n_layers, 1, bias=False)
        nn.init.constant_(self.linear.weight, 6.0 / n_layers)
        self.mlp = nn.Sequential(
            nn.Linear(n_layers, hidden), nn.GELU(), nn.Linear(hidden, 1, bias=False)
        )
        nn.init.zeros_(self.mlp[2].weight)

    def f(self, cosines: Tensor) -> Tensor:
        return (self.linear(cosines) + self.mlp(cosines))[:, 0]

    def forward(self, cosines: Tensor) -> Tensor:
        """[pair] logits from [pair, layer] cosines."""
        best = self.f(torch.ones_like(cosines[:1]))
        return self.top - (best - self.f(cosines)).abs()


class SimilarityNetwork(nn.Module):
    """A rung: encoders, if any, then cosines, then the head."""

    def __init__(self, settings: SimilaritySettings, n_layers: int, d_model: int) -> None:
        super().__init__()
        self.encoders = LayerEncoders(n_layers, d_model) if settings.has_encoders else None
        self.head = CosineHead(n_layers, settings.hidden)

    def cosines(self, first: Tensor, second: Tensor) -> Tensor:
        """[pair, layer] cosines of two [pair, layer, d_model], after the encoders if any."""
        if self.encoders is None:
            return functional.cosine_similarity(first, second, dim=2)
        codes = zip(self.encoders(first), self.encoders(second), strict=True)
        return torch.stack([functional.cosine_similarity(*both, dim=1) for both in codes], dim=1)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """[pair] scores, 0 … 1, of two [pair, layer, d_model]."""
        return torch.sigmoid(self.head(self.cosines(first, second)))


def log_variance(predicted: Tensor, scores: Tensor) -> Tensor:
    """``log Var(prediction - score)``: a shift of all predictions costs nothing (section 4.1)."""
    return torch.log((predicted - scores).var() + 1e-8)


AT_ONCE = 1024  # pairs or texts that go through a network together without gradients
MOST_HEARD = 2000  # pairs by which it is told what the scores depend on


def fit(
    train: PairFeatures,
    dev: PairFeatures,
    settings: SimilaritySettings,
    *,
    should_stop: ShouldStop = never,
) -> Generator[SimilarityEvent]:
    """Train one rung (FREEZE, section 4) on the CPU, on scores from 0 to 1.

    Keeps the weights with the best Spearman on the dev pairs. Yields an event per epoch, then the
    model. `TextError` for too few pairs or unusable vectors or scores; `NeuralvizError` if training
    diverged or all predictions are equal; `Stopped` before a step.
    """
    for part, role in ((train, "train"), (dev, "dev")):
        if len(part) < 2:
            raise TextError(f"At least two {role} pairs are needed.")
        check_different(part.scores, role)
    training = _Training(train, dev, settings, should_stop)
    network, losses = training.network, None
    for passed in training.learn_to_rebuild():
        losses = passed.losses
        yield passed
    best, best_epoch, epoch = -np.inf, 0, 0
    weights = _weights(network)
    for event in training.learn_to_score():
        epoch = event.epoch
        if event.is_best:
            best, best_epoch, weights = event.dev, epoch, _weights(network)
        yield event
    if not best_epoch:
        raise NeuralvizError(
            "No epoch could be chosen: Spearman on the dev pairs is undefined, because all "
            "predictions are the same. Use a lower learning rate, or more pairs."
        )
    network.load_state_dict(weights)
    if settings.rung == "log-variance":
        _shift_to_mean(network, train)
    yield SimilarityEnded(
        settings=settings,
        n_layers=train.n_layers,
        d_model=train.d_model,
        weights=save(_weights(network)),
        losses=losses,
        best_epoch=best_epoch,
        epochs=epoch,
        dev=best,
        layer_shares=compute_layer_shares(network, dev),
    )


def load_network(ended: SimilarityEnded) -> SimilarityNetwork:
    network = SimilarityNetwork(ended.settings, ended.n_layers, ended.d_model)
    network.load_state_dict(load(ended.weights))
    return network.eval()


@torch.no_grad()
def predict(network: SimilarityNetwork, pairs: PairFeatures) -> np.ndarray:
    """[pair] scores, 0 … 1."""
    scores = [network(first, second).double().numpy() for first, second in _in_parts(pairs)]
    return np.concatenate(scores) if scores else np.zeros(0)


@torch.no_grad()
def network_cosines(network: SimilarityNetwork, pairs: PairFeatures) -> np.ndarray:
    """[pair, layer] cosines that the network's head reads."""
    cosines = [network.cosines(first, second) for first, second in _in_parts(pairs)]
    return torch.cat(cosines).double().numpy()


def compute_layer_shares(network: SimilarityNetwork, pairs: PairFeatures) -> np.ndarray:
    """[layer] share of what the scores depend on, summing to 1; equal if on nothing."""
    # mean size of the score's gradient by a cosine, times the cosine's standard deviation
    sample = pairs.select(np.arange(min(len(pairs), MOST_HEARD)))
    cosines = torch.tensor(
        network_cosines(network, sample), dtype=torch.float32, requires_grad=True
    )
    (gradient,) = torch.autograd.grad(torch.sigmoid(network.head(cosines)).sum(), cosines)
    moved = (gradient.abs().mean(dim=0) * cosines.detach().std(dim=0)).double().numpy()
    total = moved.sum()
    return moved / total if total > 0 else np.full(len(moved), 1 / len(moved))


class _Training:
    def __init__(
        self,
        train: PairFeatures,
        dev: PairFeatures,
        settings: SimilaritySettings,
        should_stop: ShouldStop,
    ) -> None:
        self.train, self.dev, self.settings, self.should_stop = train, dev, settings, should_stop
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.network = SimilarityNetwork(settings, train.n_layers, train.d_model)
            self.decoders = Decoders(train.n_layers, train.d_model) if settings.pretrains else None
        self.shuffle = np.random.default_rng(settings.seed)

    def learn_to_rebuild(self) -> Iterator[AutoencoderEpoch]:
        """Train the encoders as autoencoders of the train texts, if asked for."""
        settings, encoders, decoders = self.settings, self.network.encoders, self.decoders
        if encoders is None or decoders is None:
            return
        texts, dev_texts = _texts_of(self.train), _texts_of(self.dev)
        # elements of unit vectors are small; by this factor their mean square is 1
        scale = float(np.sqrt(self.train.d_model))
        optimizer = torch.optim.Adam(
            [*encoders.parameters(), *decoders.parameters()], lr=settings.encoder_rate
        )
        size = 2 * settings.batch_size
        steps = math.ceil(len(texts) / size)  # of an epoch
        epochs = max(settings.autoencoder_epochs, math.ceil(settings.autoencoder_steps / steps))
        for epoch in range(1, epochs + 1):
            for batch in self._batches(len(texts), size):
                vectors = torch.from_numpy(self.train.vectors[texts[batch]]) * scale
                _step(optimizer, decoders.losses(encoders(vectors), vectors).sum())
            lost = _lost(self.network, decoders, self.dev, dev_texts, scale)
            yield AutoencoderEpoch(epoch, epochs, lost)

    def learn_to_score(self) -> Iterator[SimilarityEpoch]:
        """Train the head and the encoders until the dev pairs stop improving."""
        settings, network, train = self.settings, self.network, self.train
        groups = [{"params": [*network.head.parameters()], "lr": settings.learning_rate}]
        if network.encoders is not None:
            encoders = [*network.encoders.parameters()]
            groups.append({"params": encoders, "lr": settings.encoder_rate})
        optimizer = torch.optim.Adam(groups)
        loss_of = log_variance if settings.rung == "log-variance" else functional.mse_loss
        # without encoders the cosines never change
        cosines = None if network.encoders else torch.from_numpy(train.cosines).float()
        scores = torch.from_numpy(train.scores).float()
        best, since = -np.inf, 0
        for epoch in range(1, settings.max_epochs + 1):
            losses = []
            for batch in self._batches(len(train), settings.batch_size):
                if cosines is not None:
                    predicted = torch.sigmoid(network.head(cosines[batch]))
                else:
                    predicted = network(*_vectors(train, batch))
                loss = loss_of(predicted, scores[batch])
                _step(optimizer, loss)
                losses.append(loss.item())
            mean = float(np.mean(losses))
            if not np.isfinite(mean):
                raise NeuralvizError(
                    "The training diverged: its loss is no longer a number. Lower the learning "
                    "rate."
                )
            value = _spearman(predict(network, self.dev), self.dev.scores)
            is_best = value > best
            best, since = (value, 0) if is_best else (best, since + 1)
            yield SimilarityEpoch(epoch, settings.max_epochs, mean, value, is_best)
            if since >= settings.patience:
                return

    def _batches(self, n: int, size: int) -> Iterator[np.ndarray]:
        """Places in random order; a single one left over joins the last batch."""
        order = self.shuffle.permutation(n)
        starts = [start for start in range(0, n, size) if start == 0 or n - start > 1]
        for start, end in zip(starts, [*starts[1:], n], strict=True):
            check_stop(self.should_stop)
            yield order[start:end]


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def _lost(
    network: SimilarityNetwork,
    decoders: Decoders,
    pairs: PairFeatures,
    texts: np.ndarray,
    scale: float,
) -> np.ndarray:
    """[layer] share of the variance of vectors that codes lose."""
    assert network.encoders is not None
    errors = np.zeros(pairs.n_layers)
    for start in range(0, len(texts), AT_ONCE):
        batch = texts[start : start + AT_ONCE]
        vectors = torch.from_numpy(pairs.vectors[batch]) * scale
        of_some = decoders.losses(network.encoders(vectors), vectors)
        errors += of_some.double().numpy() * len(batch) / len(texts)
    variance = scale**2 * pairs.vectors[texts].var(axis=0, dtype=np.float64).mean(axis=1)
    return errors / np.maximum(variance, np.finfo(np.float32).tiny)


@torch.no_grad()
def _shift_to_mean(network: SimilarityNetwork, train: PairFeatures) -> None:
    """Shift all scores to people's mean, which the log-variance loss ignores."""
    cosines = torch.from_numpy(network_cosines(network, train)).float()
    logits = network.head(cosines).double().numpy()
    target = float(np.clip(train.scores.mean(), 1e-3, 1 - 1e-3))
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = float((1 / (1 + np.exp(-np.clip(logits + middle, -700, 700)))).mean())
        low, high = (middle, high) if mean < target else (low, middle)
    network.head.top += (low + high) / 2


def _spearman(predicted: np.ndarray, scores: np.ndarray) -> float:
    if np.ptp(predicted) == 0 or np.ptp(scores) == 0:
        return float("nan")
    return float(spearmanr(predicted, scores).statistic)


def _weights(network: SimilarityNetwork) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _texts_of(pairs: PairFeatures) -> np.ndarray:
    return np.unique(np.concatenate([pairs.first, pairs.second]))


def _vectors(pairs: PairFeatures, places: np.ndarray) -> tuple[Tensor, Tensor]:
    return (
        torch.from_numpy(pairs.vectors[pairs.first[places]]),
        torch.from_numpy(pairs.vectors[pairs.second[places]]),
    )


def _in_parts(pairs: PairFeatures) -> Iterator[tuple[Tensor, Tensor]]:
    for start in range(0, len(pairs), AT_ONCE):
        yield _vectors(pairs, np.arange(start, min(start + AT_ONCE, len(pairs))))
