"""Layers measured on scored pairs: known cosines, and the small BERT against its own states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from neuralviz.errors import Stopped, TextError
from neuralviz.evaluation import layer_pairs
from neuralviz.evaluation.layer_pairs import PAIRS_AT_ONCE, measure_layers
from neuralviz.layers.sbert_wk import ablation, sbert_wk_pooling
from neuralviz.layers.settings import check_sbert_wk
from neuralviz.layers.states import pool_texts
from neuralviz.models import tokenize
from neuralviz.reading.pairs import ScoredPairs
from tests.support.models import SENTENCES


def scored(pairs: list[tuple[str, str]], scores: list[float] | None = None) -> ScoredPairs:
    first, second = zip(*pairs, strict=True)
    return ScoredPairs(first, second, np.arange(len(pairs)) if scores is None else np.array(scores))


PAIRS = scored(
    [
        (SENTENCES[0], SENTENCES[1]),
        (SENTENCES[2], SENTENCES[0]),
        (SENTENCES[3], SENTENCES[3]),
        ("The dog barks.", "the dog barks!"),
    ],
    [1, 0.5, 5, 4.5],
)


def last(model, pairs: ScoredPairs):
    return list(measure_layers(model, pairs))[-1]


def test_layers_and_poolings_are_those_of_the_states(tiny):
    result = last(tiny, PAIRS)
    places = {
        "mean": slice(None), "cls": slice(1), "sep": slice(-1, None), "last": slice(-2, -1)
    }  # fmt: skip
    assert set(result.by_layer) == set(places)
    for number, pair in enumerate(zip(PAIRS.sentences1, PAIRS.sentences2, strict=True)):
        states = []
        for text in tokenize(tiny, pair):
            ids = torch.tensor([[*tiny.prefix_ids, *text.ids, *tiny.suffix_ids]])
            with torch.no_grad():
                out = tiny.network.base_model(input_ids=ids, output_hidden_states=True)
            states.append(torch.stack(out.hidden_states)[:, 0].double())
        for name, place in places.items():
            first, second = (of_text[:, place].mean(dim=1) for of_text in states)
            expected = torch.cosine_similarity(first, second).numpy()
            found = [measured.cosines[number] for measured in result.by_layer[name]]
            assert found == pytest.approx(expected, abs=1e-5)


def test_parts_windows_and_first_layers_are_sbert_wk(tiny):
    result = last(tiny, PAIRS)
    both = zip(PAIRS.sentences1, PAIRS.sentences2, strict=True)
    texts = list(dict.fromkeys(text for pair in both for text in pair))
    first, second = ([texts.index(t) for t in s] for s in (PAIRS.sentences1, PAIRS.sentences2))

    def cosines(pooling) -> np.ndarray:
        # in one pass, as when measured: 1/β multiplies what is rounded in another way elsewhere
        vectors = pool_texts(tiny, tokenize(tiny, texts), [pooling])[0].astype(float)
        a, b = vectors[first], vectors[second]
        return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)

    for variant in ("authors", "paper"):
        parts = ablation(check_sbert_wk(tiny, variant=variant))
        assert list(result.ablation[variant]) == list(parts)
        for name, pooling in parts.items():
            found = result.ablation[variant][name].cosines
            assert found == pytest.approx(cosines(pooling), abs=1e-5), name
        assert len(result.windows[variant]) == 4
        assert len(result.layer_starts[variant]) == tiny.n_blocks
        wide = sbert_wk_pooling(check_sbert_wk(tiny, variant=variant, window=4))
        assert result.windows[variant][3].cosines == pytest.approx(cosines(wide), abs=1e-5)
        early = sbert_wk_pooling(check_sbert_wk(tiny, variant=variant, layer_start=0))
        assert result.layer_starts[variant][0].cosines == pytest.approx(cosines(early), abs=1e-5)


def test_every_sentence_passes_once_and_each_event_is_a_result(tiny, monkeypatch):
    """Instead of the model: the words of a text are an angle in degrees."""
    passed = []

    def pool(_model, texts, poolings, should_stop):
        passed.extend(text.text for text in texts)
        radians = np.deg2rad([float(text.text) for text in texts])
        return [np.stack([np.cos(radians), np.sin(radians)], axis=1)] * len(poolings)

    monkeypatch.setattr(layer_pairs, "pool_texts", pool)
    n = 2 * PAIRS_AT_ONCE + 5
    events = list(measure_layers(tiny, scored([("0", str(i)) for i in range(n)])))
    assert sorted(passed) == sorted(map(str, range(n)))
    assert [len(event.pairs) for event in events] == [PAIRS_AT_ONCE, 2 * PAIRS_AT_ONCE, n]
    assert {event.total for event in events} == {n}
    for event in events:
        angles = np.arange(len(event.pairs))
        found = event.by_layer["mean"][0].cosines
        np.testing.assert_allclose(found, np.cos(np.deg2rad(angles)), atol=1e-6)


def test_measuring_can_be_stopped_between_two_passes(tiny):
    pairs = scored([(f"dog {i}", f"rain {i}") for i in range(PAIRS_AT_ONCE + 1)])
    events = measure_layers(tiny, pairs, should_stop=iter([False, True]).__next__)
    assert len(next(events).pairs) == PAIRS_AT_ONCE
    with pytest.raises(Stopped):
        next(events)


def test_a_sentence_without_a_token_is_named_by_its_pair(tiny):
    with pytest.raises(TextError, match="has no character that the model can read"):
        list(measure_layers(tiny, scored([("a", "b"), ("a", "\u200b"), ("c", "d")])))


def test_a_model_without_special_tokens_has_two_poolings(tiny):
    result = last(replace(tiny, prefix_ids=(), suffix_ids=()), PAIRS)
    assert set(result.by_layer) == {"mean", "last"}
