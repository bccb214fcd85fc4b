"""Words by variance, against plain transformers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuralviz.errors import ModelError, NeuralvizError, SettingsError, Stopped
from neuralviz.layers import words
from neuralviz.layers.states import layer_states
from neuralviz.layers.words import WordVariances, word_variances
from neuralviz.micro_tuning import micro_tune
from neuralviz.models import LanguageModel, tokenize
from tests.support.models import SENTENCES


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda model: tokenize(model, "a dog"), "in a list, .* not str"),
        (lambda model: micro_tune(model, 5), "not int"),
        (lambda model: micro_tune("bundled", ["a"]), "micro_tune needs a loaded model"),
        (lambda model: next(word_variances("bundled", [])), "word_variances needs a loaded model"),
        (lambda model: next(word_variances(model, ["a"])), "must be tokenised, .* not 'a'"),
    ],
)
def test_arguments_that_are_something_else(use: Any, sentence: str, tiny: LanguageModel) -> None:
    with pytest.raises(NeuralvizError, match=sentence):
        use(tiny)


def last(model, texts: list[str]) -> WordVariances:
    return list(word_variances(model, tokenize(model, texts)))[-1]


def made(variance: list[float], occurrences: list[int]) -> WordVariances:
    names = tuple(f"w{i}" for i in range(len(variance)))
    return WordVariances("m", "f", 1, 1, names, np.array(variance), np.array(occurrences))


def test_variances_are_those_of_plain_transformers(tiny):
    """The mean over occurrences of what the small BERT's states give, layer by layer."""
    texts = [*SENTENCES, " ".join(SENTENCES), "The harbour, barking zebra!", "RAIN, 🙂"]
    result = last(tiny, texts)
    sums, counts = Counter(), Counter()
    for text in tokenize(tiny, texts):
        variance = np.concatenate([turns_of(tiny, text.ids[chunk]) for chunk in text.chunks])
        for word, (start, end) in enumerate(text.word_spans):
            if not text.unknown[text.words == word].any():
                sums[text.text[start:end].lower()] += variance[text.words == word].mean()
                counts[text.text[start:end].lower()] += 1
    for word, variance, n in zip(result.words, result.variance, result.occurrences, strict=True):
        assert variance == pytest.approx(sums[word] / counts[word], rel=1e-3, abs=1e-9)
        assert n == counts[word]
    assert set(counts) - set(result.words) == {".", ",", ":"}
    assert "zebra" not in result.words  # the vocabulary lacks it
    assert (np.diff(result.variance) >= 0).all()


def turns_of(model: LanguageModel, ids: np.ndarray) -> np.ndarray:
    """Of each token, the variance of its cosines of consecutive layers."""
    given = torch.tensor([[*model.prefix_ids, *ids, *model.suffix_ids]])
    with torch.no_grad():
        out = model.network.base_model(input_ids=given, output_hidden_states=True)
    layers = torch.stack(out.hidden_states)[:, 0, 1:-1].double()
    return torch.cosine_similarity(layers[1:], layers[:-1], dim=2).numpy().var(axis=0)


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


@pytest.mark.parametrize("occurrences", [[], [1, 1, 1, 5]])
def test_fewer_than_three_words_make_no_groups(occurrences):
    with pytest.raises(SettingsError, match="Three groups need at least 3"):
        made([0.1] * len(occurrences), occurrences).rank(3)


def test_the_default_count_is_the_papers_or_leaves_sixty_words():
    assert made([0.1] * 200, [60] * 200).default_min_count() == 51
    assert made([0.1] * 100, list(range(1, 101))).default_min_count() == 41
    assert made([0.1] * 4, [5, 1, 2, 3]).default_min_count() == 1
    assert made([], []).default_min_count() == 1
