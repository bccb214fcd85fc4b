"""How tokens move through the layers, and where a text leaves its mark: numbers known by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from neuralviz.errors import ModelError
from neuralviz.layers.geometry import (
    TokenStates,
    cosine_maps,
    followed_words,
    mean_map,
    word_importance,
)
from neuralviz.layers.sbert_wk import sbert_wk_pooling
from neuralviz.layers.settings import check_sbert_wk
from neuralviz.layers.states import layer_states, pool_texts
from neuralviz.layers.words import follow_tokens, token_weights
from neuralviz.models import LanguageModel, tokenize
from tests.support.models import TEXTS, WINDOW

SENTENCE = "A baker carries warm bread, and the gulls are awake."


@pytest.fixture(scope="module")
def states(tiny: LanguageModel) -> TokenStates:
    return follow_tokens(tiny, tokenize(tiny, [SENTENCE])[0])


def test_of_a_long_text_the_first_chunk_is_followed(tiny, states: TokenStates) -> None:
    assert (states.counted, states.is_cut) == (("[CLS]", *states.text.tokens), False)
    (text,) = tokenize(tiny, [TEXTS["several chunks"]])
    states = follow_tokens(tiny, text)
    assert states.is_cut
    assert len(states.tokens) == text.chunks[0].stop + 2 <= WINDOW
    assert states.tokens[1:-1] == text.tokens[text.chunks[0]]
    shares = token_weights(states, check_sbert_wk(tiny)).importance
    words = word_importance(states, shares)
    assert len(words) == text.words[text.chunks[0].stop - 1] + 1
    np.testing.assert_allclose(words.sum() + shares[0], 1)  # the special token has the rest


def test_a_broken_model_is_an_error_that_says_so(tiny: LanguageModel, monkeypatch) -> None:
    def broken(*args: object) -> list:
        (row,) = layer_states(*args)
        return [replace(row, vectors=torch.full_like(row.vectors, float("nan")))]

    monkeypatch.setattr("neuralviz.layers.words.layer_states", broken)
    with pytest.raises(ModelError, match="weights are damaged"):
        follow_tokens(tiny, tokenize(tiny, [SENTENCE])[0])


def test_cosines_of_known_vectors() -> None:
    """One token turns by 45 degrees a layer, the other is zero at the second layer."""
    turning = np.array([[1, 0], [1, 1], [0, 2]])
    lost = np.array([[1, 0], [0, 0], [-1, 0]])
    maps = cosine_maps(np.stack([turning, lost], axis=1))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(maps[0], [[1, half, 0], [half, 1, half], [0, half, 1]], atol=1e-12)
    np.testing.assert_allclose(maps[1], [[1, 0, -1], [0, 0, 0], [-1, 0, 1]])


def test_the_mean_leaves_out_the_token_behind_the_text(states: TokenStates) -> None:
    maps = cosine_maps(states.vectors)
    np.testing.assert_allclose(mean_map(states), maps[:-1].mean(axis=0))
    assert not np.allclose(mean_map(states), maps.mean(axis=0))


@pytest.mark.parametrize("variant", ["authors", "paper"])
def test_weights_give_the_sentence_vector(tiny: LanguageModel, variant: str) -> None:
    """The weights that are shown, put together, are what the embedder gives."""
    (text,) = tokenize(tiny, [SENTENCE])
    states = follow_tokens(tiny, text)
    settings = check_sbert_wk(tiny, variant=variant, window=1, omega=0.3)
    weights = token_weights(states, settings)
    for of_layers in (weights.alignment, weights.novelty, weights.combined):
        assert of_layers.shape == (states.n_counted, 3)
        np.testing.assert_allclose(of_layers.sum(axis=1), 1)
    assert weights.layers.tolist() == [1, 2, 3]
    by_hand = np.einsum(
        "t,tl,ltd->d", weights.importance, weights.combined, states.vectors[1:, :-1]
    )
    (embedded,) = pool_texts(tiny, [text], [sbert_wk_pooling(settings)])
    np.testing.assert_allclose(embedded[0], by_hand, atol=1e-5)


def test_a_word_is_followed_at_all_its_places() -> None:
    text = SimpleNamespace(
        text="The cat, the", words=(0, 1, 1, 2, 3), word_spans=((0, 3), (4, 7), (7, 8), (9, 12))
    )
    vectors = np.ones((3, 7, 2), dtype=np.float32)
    vectors[1, 1] = (1, -1)  # "The" turns by a right angle, twice
    states = TokenStates(text, ("[CLS]", *"abcde", "[SEP]"), vectors, 1, 1)  # type: ignore[arg-type]
    the, cat = followed_words(states, np.array([0.1, 0.3, 0.1, 0.1, 0.15, 0.25]))
    assert (the.word, the.importance) == ("the", pytest.approx(0.55))
    assert (cat.word, cat.importance) == ("cat", pytest.approx(0.2))  # a comma is no word
