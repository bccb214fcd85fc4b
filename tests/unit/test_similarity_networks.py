"""The networks of the rungs against plain programs, and what holds by construction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from neuralviz.errors import NeuralvizError, Stopped, TextError
from neuralviz.training.similarity.data import PairFeatures
from neuralviz.training.similarity.loop import (
    SimilarityNetwork,
    compute_layer_shares,
    encoder_widths,
    fit,
    load_network,
    log_variance,
    predict,
)
from neuralviz.training.similarity.settings import (
    RUNGS,
    AutoencoderEpoch,
    Rung,
    SimilarityEnded,
    SimilarityEpoch,
    SimilarityEvent,
    SimilaritySettings,
)

LAYERS, WIDTH = 4, 16


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def made_pairs(n: int, seed: int = 0, told_by: int = 2) -> PairFeatures:
    """Pairs of which one layer tells how similar they are; the others are noise."""
    draw = np.random.default_rng(seed)
    vectors = unit(draw.normal(size=(2 * n, LAYERS, WIDTH)))
    scores = draw.uniform(size=n)
    for pair, score in enumerate(scores):
        one, other = vectors[2 * pair, told_by], vectors[2 * pair + 1, told_by]
        aside = unit(other - (other @ one) * one)
        vectors[2 * pair + 1, told_by] = score * one + np.sqrt(1 - score**2) * aside
    places = np.arange(n)
    return PairFeatures(vectors.astype(np.float32), 2 * places, 2 * places + 1, scores)


def trained(
    rung: Rung, train: PairFeatures, dev: PairFeatures, **options: int
) -> tuple[list[SimilarityEvent], SimilarityEnded]:
    settings = SimilaritySettings(
        rung,
        batch_size=16,
        autoencoder_epochs=3,
        autoencoder_steps=0,
        **{"max_epochs": 8, "hidden": 8, **options},
    )
    events = list(fit(train, dev, settings))
    ended = events[-1]
    assert isinstance(ended, SimilarityEnded)
    return events, ended


def test_widths_are_those_of_the_paper() -> None:
    """gpt2-medium: 256 units, the last twelve of 25 layers 512 (section 4.2.3)."""
    assert encoder_widths(25, 1024) == (256,) * 13 + (512,) * 12
    assert encoder_widths(7, 384) == (96,) * 4 + (192,) * 3
    assert encoder_widths(2, 2) == (1, 1)


@pytest.mark.parametrize("rung", RUNGS)
def test_each_rung_agrees_with_a_plain_program(rung: Rung) -> None:
    torch.manual_seed(3)
    network = SimilarityNetwork(SimilaritySettings(rung, hidden=8), LAYERS, WIDTH)
    for parameter in network.parameters():  # none is left at zero
        torch.nn.init.normal_(parameter, std=0.5)
    pairs = made_pairs(5)
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}

    def encoded(vector: np.ndarray, layer: int) -> np.ndarray:
        if rung == "cosines":
            return vector
        name = f"encoders.encoders.{layer}"
        centred = vector - vector.mean()
        normed = centred / np.sqrt((centred**2).mean() + 1e-5)
        normed = normed * weights[f"{name}.0.weight"] + weights[f"{name}.0.bias"]
        return np.asarray(weights[f"{name}.1.weight"] @ normed + weights[f"{name}.1.bias"])

    def f(cosines: np.ndarray) -> float:
        hidden = weights["head.mlp.0.weight"] @ cosines + weights["head.mlp.0.bias"]
        erf = torch.erf(torch.tensor(hidden / np.sqrt(2))).numpy()
        after = weights["head.mlp.2.weight"] @ (hidden * (1 + erf) / 2)
        return float((weights["head.linear.weight"] @ cosines + after)[0])

    expected = []
    for first, second in zip(pairs.first, pairs.second, strict=True):
        cosines = []
        for layer in range(LAYERS):
            one = encoded(pairs.vectors[first, layer].astype(float), layer)
            other = encoded(pairs.vectors[second, layer].astype(float), layer)
            cosines.append(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        logit = weights["head.top"] - abs(f(np.ones(LAYERS)) - f(np.array(cosines)))
        expected.append(1 / (1 + np.exp(-logit)))
    assert predict(network, pairs) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("rung", RUNGS)
def test_nothing_scores_higher_than_identical_texts(rung: Rung) -> None:
    """By construction, whatever the weights; the paper's model does not have this."""
    torch.manual_seed(1)
    network = SimilarityNetwork(SimilaritySettings(rung, hidden=8), LAYERS, WIDTH)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    others = made_pairs(200)
    same = PairFeatures(others.vectors, others.first, others.first, others.scores)
    assert predict(network, same).min() >= predict(network, others).max() - 1e-6


def test_log_variance_is_that_of_numpy_and_ignores_a_shift() -> None:
    draw = np.random.default_rng(0)
    predicted, scores = draw.uniform(size=(2, 50))
    expected = np.log(np.var(predicted - scores, ddof=1))
    for shift in (0.0, 0.3):
        found = log_variance(torch.tensor(predicted + shift), torch.tensor(scores))
        assert found.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("rung", RUNGS)
def test_a_rung_learns_which_layer_tells(rung: Rung) -> None:
    train, dev, test = made_pairs(400), made_pairs(60, 1), made_pairs(60, 2)
    events, ended = trained(rung, train, dev, max_epochs=30)
    epochs = [event for event in events if isinstance(event, SimilarityEpoch)]
    passes = [event for event in events if isinstance(event, AutoencoderEpoch)]
    assert len(passes) == (3 if rung in ("autoencoder", "log-variance") else 0)
    assert len(epochs) == ended.epochs
    assert max(event.dev for event in epochs) == ended.dev == epochs[ended.best_epoch - 1].dev
    least = 0.9 if rung == "cosines" else 0.75  # four units for sixteen values
    assert ended.dev > least
    network = load_network(ended)
    assert np.corrcoef(predict(network, test), test.scores)[0, 1] > least
    assert ended.layer_shares.sum() == pytest.approx(1)
    assert int(ended.layer_shares.argmax()) == 2
    assert ended.layer_shares == pytest.approx(compute_layer_shares(network, dev))
    if rung == "log-variance":  # shifted to people's mean
        mean = train.scores.mean()
        assert predict(network, train).mean() == pytest.approx(mean, abs=1e-4)


def test_training_ends_when_dev_gets_no_better() -> None:
    train = made_pairs(40)
    random = np.random.default_rng(5).uniform(size=40)
    dev = PairFeatures(train.vectors, train.first, train.second, random)
    events, ended = trained("cosines", train, dev, patience=2, max_epochs=50)
    assert ended.epochs == ended.best_epoch + 2 < 50
    values = [event.dev for event in events if isinstance(event, SimilarityEpoch)]
    assert ended.dev == max(values) == values[ended.best_epoch - 1]


def test_dev_pairs_that_choose_no_epoch_are_refused() -> None:
    train = made_pairs(40)
    constant = PairFeatures(train.vectors, train.first, train.second, np.full(40, 0.5))
    with pytest.raises(TextError, match=r"All scores of the dev pairs are 0\.5\."):
        trained("cosines", train, constant)
    same = np.zeros_like(train.vectors)
    same[..., 0] = 1
    twice = PairFeatures(same, train.first, train.second, train.scores)
    with pytest.raises(NeuralvizError, match="No epoch could be chosen"):
        trained("cosines", train, twice)


def test_a_training_can_be_stopped() -> None:
    train, dev = made_pairs(64), made_pairs(20, 1)
    asked = iter([False] * 6)
    settings = SimilaritySettings("cosines", batch_size=16)
    with pytest.raises(Stopped):
        list(fit(train, dev, settings, should_stop=lambda: next(asked, True)))


def test_nan_scores_and_single_pairs_are_refused() -> None:
    good = made_pairs(10)
    scores = np.where(np.arange(10) == 2, np.nan, good.scores)
    for train, dev, said in (
        (good, replace(good, scores=scores), "1 of 10 dev pairs without a score"),
        (good.select(np.array([0])), good, "At least two train pairs"),
    ):
        with pytest.raises(TextError, match=said):
            list(fit(train, dev, SimilaritySettings()))


def test_a_training_that_diverges_says_so() -> None:
    train, dev = made_pairs(64), made_pairs(20, 1)
    settings = SimilaritySettings("siamese", encoder_rate=1e30, learning_rate=1e30, batch_size=8)
    with pytest.raises(NeuralvizError, match="diverged"):
        list(fit(train, dev, settings))
