"""Words by variance: states made by hand whose cosines are known, and the small BERT."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuralviz.errors import ModelError, NeuralvizError, SettingsError, Stopped
from neuralviz.layers import words
from neuralviz.layers.following import follow_tokens
from neuralviz.layers.states import LayerStates, layer_states
from neuralviz.layers.words import WordVariances, word_variances
from neuralviz.micro_tuning import micro_tune
from neuralviz.models import LanguageModel, tokenize
from tests.support.models import SENTENCES, WINDOW


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda model: tokenize(model, "a dog"), "in a list, .* not str"),
        (lambda model: tokenize(model, None), "not NoneType"),
        (lambda model: micro_tune(model, 5), "not int"),
        (lambda model: micro_tune("bundled", ["a"]), "micro_tune needs a loaded model"),
        (lambda model: next(word_variances("bundled", [])), "word_variances needs a loaded model"),
        (lambda model: next(word_variances(model, ["a"])), "must be tokenised, .* not 'a'"),
        (lambda model: follow_tokens(model, "a"), "must be tokenised"),
    ],
)
def test_arguments_that_are_something_else(use: Any, sentence: str, tiny: LanguageModel) -> None:
    with pytest.raises(NeuralvizError, match=sentence):
        use(tiny)


def variance_of(token_id: int) -> float:
    """Of the cosines 1 - id/1000, 1, 1 of consecutive layers."""
    return 2 / 9 * (token_id / 1000) ** 2


@pytest.fixture
def known(monkeypatch):
    """Instead of the model: a token turns once, as far as its id says; rows come backwards."""

    def states(model, texts, tokens_per_batch=0):
        for number in reversed(range(len(texts))):
            ids = [*model.prefix_ids, *texts[number].ids.tolist(), *model.suffix_ids]
            turn = np.arccos(1 - np.array(ids) / 1000)
            angles = np.stack([0 * turn, turn, turn, turn])
            vectors = np.stack([np.cos(angles), np.sin(angles)], axis=-1)[:, None] * 7
            padded = np.pad(vectors, ((0, 0), (0, 0), (0, 3), (0, 0)))
            yield LayerStates(
                vectors=torch.tensor(padded),
                attention=torch.tensor([[True] * len(ids) + [False] * 3]),
                text_of_row=torch.tensor([number]),
                is_last=torch.tensor([True]),
                n_prefix=len(model.prefix_ids),
                n_suffix=len(model.suffix_ids),
            )

    monkeypatch.setattr(words, "layer_states", states)


def last(model, texts: list[str]) -> WordVariances:
    return list(word_variances(model, tokenize(model, texts)))[-1]


def made(variance: list[float], occurrences: list[int]) -> WordVariances:
    names = tuple(f"w{i}" for i in range(len(variance)))
    return WordVariances("m", "f", 1, 1, names, np.array(variance), np.array(occurrences))


def test_known_variances(tiny, known):
    texts = ["The harbour, the rain: barking zebra!", "RAIN, 🙂"]
    result = last(tiny, texts)
    assert set(result.words) == {"the", "harbour", "rain", "barking"}
    found = dict(zip(result.words, result.variance, strict=True))
    for word, variance in found.items():
        ids = tokenize(tiny, [word])[0].ids
        assert variance == pytest.approx(np.mean([variance_of(i) for i in ids]), abs=1e-6), word
    assert len(tokenize(tiny, ["barking"])[0]) > 1  # a word in pieces takes part
    assert tokenize(tiny, ["zebra"])[0].unknown.all()  # a word that the vocabulary lacks does not
    counts = dict(zip(result.words, result.occurrences.tolist(), strict=True))
    assert counts == {"the": 2, "harbour": 1, "rain": 2, "barking": 1}
    assert (np.diff(result.variance) >= 0).all()


def test_a_text_in_several_chunks_is_put_together_again(tiny, known):
    text = " ".join(SENTENCES)
    assert len(tokenize(tiny, [text])[0].chunks) > 2
    whole, apart = last(tiny, [text]), last(tiny, list(SENTENCES))
    assert whole.words == apart.words
    assert whole.variance == pytest.approx(apart.variance)
    assert whole.occurrences.tolist() == apart.occurrences.tolist()


def test_the_model_itself(tiny):
    """The mean over occurrences of what the small BERT's states give, layer by layer."""
    result = last(tiny, list(SENTENCES))
    sums, counts = Counter(), Counter()
    for text in tokenize(tiny, SENTENCES):
        assert len(text) + 2 <= WINDOW
        ids = torch.tensor([[*tiny.prefix_ids, *text.ids, *tiny.suffix_ids]])
        with torch.no_grad():
            out = tiny.network.base_model(input_ids=ids, output_hidden_states=True)
        layers = torch.stack(out.hidden_states)[:, 0, 1:-1].double()
        cosines = torch.cosine_similarity(layers[1:], layers[:-1], dim=2).numpy()
        variance = cosines.var(axis=0)
        for word, (start, end) in enumerate(text.word_spans):
            sums[text.text[start:end].lower()] += variance[text.words == word].mean()
            counts[text.text[start:end].lower()] += 1
    for word, variance, n in zip(result.words, result.variance, result.occurrences, strict=True):
        assert variance == pytest.approx(sums[word] / counts[word], rel=1e-3, abs=1e-9)
        assert n == counts[word]
    assert "." not in result.words and "." in counts


def test_words_can_be_stopped_between_two_passes(tiny):
    texts = tokenize(tiny, ["the rain", "a dog barks", "the quay"] * 2)
    should_stop = iter([False, False, True]).__next__
    events = word_variances(tiny, texts, tokens_at_once=1, should_stop=should_stop)
    assert [next(events).n_read, next(events).n_read] == [1, 2]
    with pytest.raises(Stopped):
        next(events)


def test_vectors_that_are_not_finite_are_refused(tiny, monkeypatch):
    def broken(model, texts):
        (states,) = layer_states(model, texts)
        yield replace(states, vectors=states.vectors * torch.nan)

    monkeypatch.setattr(words, "layer_states", broken)
    with pytest.raises(ModelError, match="infinite or NaN"):
        last(tiny, ["a"])


def test_three_groups_of_equal_size():
    result = made([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], [9, 9, 1, 9, 9, 9, 9, 9])
    words = result.rank(2)
    assert words["word"].tolist() == ["w0", "w1", "w3", "w4", "w5", "w6", "w7"]
    assert words["group"].tolist() == ["low"] * 2 + ["middle"] * 2 + ["high"] * 3
    assert words["variance"].tolist()[-3:] == [0.6, 0.7, 0.8]
    assert result.rank(1)["group"].value_counts().to_dict() == {"low": 2, "middle": 3, "high": 3}


@pytest.mark.parametrize("occurrences", [[], [3], [3, 3], [1, 1, 1, 5]])
def test_fewer_than_three_words_make_no_groups(occurrences):
    with pytest.raises(SettingsError, match="Three groups need at least 3"):
        made([0.1] * len(occurrences), occurrences).rank(3)


def test_the_default_count_is_the_papers_or_leaves_sixty_words():
    assert made([0.1] * 200, [60] * 200).default_min_count() == 51
    assert made([0.1] * 100, list(range(1, 101))).default_min_count() == 41
    assert made([0.1] * 4, [5, 1, 2, 3]).default_min_count() == 1
    assert made([], []).default_min_count() == 1
