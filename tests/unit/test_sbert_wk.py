"""SBERT-WK against a slow program that was written on its own, and where it could break."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from neuralviz.errors import SettingsError
from neuralviz.layers.sbert_wk import (
    ablation,
    gram_matrices,
    importance,
    layer_weights,
    sbert_wk_pooling,
    token_variance,
)
from neuralviz.layers.settings import VARIANTS, SbertWkSettings, Variant, check_sbert_wk
from neuralviz.layers.states import LayerStates, Pooling, layer_states, pool_texts
from neuralviz.models import TextModel, load_text_model, tokenize
from tests.support import plain_sbert_wk as plain
from tests.support.models import SENTENCES, TEXTS

CLOSE = 1e-5
WALKS = [
    (n_layers, n_tokens, window, start)
    for n_layers, n_tokens, window in product((2, 7, 13), (1, 9), (1, 2, 4))
    for start in sorted({0, 1, n_layers // 3, n_layers - 1})
]
FEW = (
    "The bank raised its interest rates.",
    "They sat on the bank of the river.",
    "Bioluminescent jellyfish!",
    "a",
)


def walk(n_layers: int, n_tokens: int, d_model: int = 16, seed: int = 0) -> np.ndarray:
    """[layer, token, d_model]: every layer a step away from the one before."""
    noise = np.random.default_rng(seed).normal(size=(n_layers, n_tokens, d_model))
    noise[1:] *= 0.5
    return noise.cumsum(axis=0).astype(np.float32)


def as_rows(states: np.ndarray) -> LayerStates:
    """One text's vectors as the program gets them."""
    vectors = torch.from_numpy(states)[:, None]
    return LayerStates(
        vectors=vectors,
        attention=torch.ones(vectors.shape[1:3], dtype=torch.bool),
        text_of_row=torch.zeros(1, dtype=torch.long),
        first_token=torch.zeros(1, dtype=torch.long),
        is_last=torch.ones(1, dtype=torch.bool),
        n_prefix=0,
        n_suffix=0,
    )


def pooled(states: np.ndarray, pooling: Pooling) -> np.ndarray:
    rows = as_rows(states)
    weights = pooling(rows)
    return (weights.sums(rows) / weights.total[:, None])[0].numpy()


def gram_of(states: np.ndarray) -> torch.Tensor:
    return gram_matrices(torch.from_numpy(states.transpose(1, 0, 2).copy()))


def assert_close(ours: np.ndarray, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=CLOSE * max(1, np.abs(theirs).max()))


# --- the slow program --------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("n_layers", "n_tokens", "window", "start"), WALKS)
def test_weights_and_vectors_of_random_walks(
    n_layers: int, n_tokens: int, window: int, start: int, variant: Variant
) -> None:
    states = walk(n_layers, n_tokens, seed=n_layers + n_tokens)
    gram = gram_of(states[start:])
    of_layers = layer_weights(gram, window, variant, 0.5)
    for token in range(n_tokens):
        alignment, novelty = plain.word_weights(states[start:, token], window, variant)
        assert_close(of_layers.alignment[token].numpy(), alignment)
        assert_close(of_layers.novelty[token].numpy(), novelty)
    shares = importance(token_variance(gram))
    assert_close((shares / shares.sum()).numpy(), plain.token_importance(states[start:]))
    for omega in (0, 0.3, 0.5, 1):
        settings = SbertWkSettings(start, variant, window, omega)
        expected = plain.sentence_vector(states, start, window, omega, variant)
        assert_close(pooled(states, sbert_wk_pooling(settings)), expected)


@pytest.fixture(scope="module")
def minilm() -> TextModel:
    return load_text_model("all-MiniLM-L6-v2", device="cpu")


def counted_states(model: TextModel, text: str) -> np.ndarray:
    """[layer, token, d_model] without the special token behind the text."""
    (states,) = layer_states(model, tokenize(model, [text]))
    return states.vectors[:, 0, : -len(model.suffix_ids)].numpy()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("which", ["tiny", "minilm"])
def test_texts_of_real_models(which: str, variant: Variant, request: pytest.FixtureRequest) -> None:
    model: TextModel = request.getfixturevalue(which)
    settings = check_sbert_wk(model, variant=variant)
    (ours,) = pool_texts(model, tokenize(model, FEW), [sbert_wk_pooling(settings)])
    for vector, text in zip(ours, FEW, strict=True):
        states = counted_states(model, text)
        expected = plain.sentence_vector(states, settings.layer_start, 2, 0.5, variant)
        assert_close(vector, expected)


DEGENERATE = {
    "one token": walk(7, 1),
    "two layers": walk(2, 3),
    "one layer": walk(1, 3),
    "identical layers": np.repeat(walk(1, 3), 7, axis=0),
    "zero vectors": np.zeros((7, 3, 16), dtype=np.float32),
    "one layer of zeros": walk(7, 3) * (np.arange(7) != 3).astype(np.float32)[:, None, None],
    "one token of zeros": walk(7, 3) * np.array([1, 1, 0], dtype=np.float32)[:, None],
    "opposite layers": walk(1, 3) * np.array([1, -1] * 3, dtype=np.float32)[:, None, None],
    "tiny": walk(7, 3) * np.float32(1e-15),
    "huge": walk(7, 3) * np.float32(1e15),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_states_give_finite_weights_of_sum_1(case: str, variant: Variant) -> None:
    states = DEGENERATE[case]
    gram = gram_of(states)
    for weights in layer_weights(gram, 2, variant, 0.5):
        assert weights.isfinite().all()
        np.testing.assert_allclose(weights.sum(dim=1), 1, atol=1e-9)
    shares = importance(token_variance(gram))
    assert shares.isfinite().all()
    assert shares.sum() > 0
    expected = plain.sentence_vector(states, 0, 2, 0.5, variant)
    ours = pooled(states, sbert_wk_pooling(SbertWkSettings(0, variant)))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_batch_gives_what_each_text_gives_alone(tiny: TextModel, variant: Variant) -> None:
    texts = tokenize(tiny, [*TEXTS.values(), *SENTENCES])
    assert len(tokenize(tiny, [TEXTS["several chunks"]])[0].chunks) > 1
    pooling = sbert_wk_pooling(check_sbert_wk(tiny, variant=variant))
    (together,) = pool_texts(tiny, texts, [pooling])
    for vector, text in zip(together, texts, strict=True):
        assert_close(vector, pool_texts(tiny, [text], [pooling])[0][0])


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"variant": "mine"}, "must be authors or paper"),
        ({"layer_start": 4}, "the first layer must be a whole number from 0 to 3, not 4"),
        ({"layer_start": 1.5}, "first layer must be a whole number"),
        ({"window": 0}, "layer window must be a whole number from 1"),
        ({"omega": 1.01}, "number from 0 to 1"),
        ({"omega": float("nan")}, "number from 0 to 1"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(tiny: TextModel, wrong: dict, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        check_sbert_wk(tiny, **wrong)


def test_the_first_layer_is_a_third_of_the_way(tiny: TextModel, minilm: TextModel) -> None:
    assert check_sbert_wk(tiny) == SbertWkSettings(1, "authors", 2, 0.5)
    assert check_sbert_wk(minilm).layer_start == 2
    assert check_sbert_wk(tiny, layer_start=np.int64(3)).layer_start == 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_rows_of_the_ablation_are_what_they_say(variant: Variant) -> None:
    states, start = walk(7, 5), 2
    used = states[start:].astype(np.float64)
    settings = SbertWkSettings(start, variant, 2, 0.3)

    def words(omega: float) -> list[np.ndarray]:
        """Of each token the unified word vector: that of a sentence of one token."""
        alone = np.split(states, 5, axis=1)
        return [plain.sentence_vector(token, start, 2, omega, variant) for token in alone]

    tokens = plain.token_importance(used)
    expected = {
        "Mean of the last layer": used[-1].mean(axis=0),
        "Alignment": np.mean(words(1.0), axis=0),
        "Novelty": np.mean(words(0.0), axis=0),
        "Token importance, last layer": tokens @ used[-1],
        "Token importance, all layers": tokens @ used.mean(axis=0),
        "SBERT-WK": plain.sentence_vector(states, start, 2, 0.3, variant),
    }
    rows = ablation(settings)
    assert list(rows) == list(expected)
    for name, pooling in rows.items():
        assert_close(pooled(states, pooling), expected[name])
