"""Pairs in three parts, scores as shares, features of every layer."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from neuralviz.embedders.pooled import LayerwiseEmbedder, PooledEmbedder
from neuralviz.errors import TextError
from neuralviz.evaluation.ladder import measure_cosines, model_poolings
from neuralviz.evaluation.ladder_results import LayerCosines
from neuralviz.layers.settings import PoolingName
from neuralviz.models import LanguageModel, load_text_model
from neuralviz.reading.pairs import ScoredPairs
from neuralviz.store.database import Database
from neuralviz.store.vectors import KeptVectors
from neuralviz.training.similarity import data
from neuralviz.training.similarity.data import check_different, split_pairs
from tests.support.models import SENTENCES, save_causal


def pairs_of(n: int, *, shared: bool = False) -> ScoredPairs:
    first = tuple(f"text {0 if shared else i}" for i in range(n))
    second = tuple(f"other {i}" for i in range(n))
    return ScoredPairs(first, second, np.arange(n, dtype=float))


def texts_of(pairs: ScoredPairs) -> set[str]:
    return {*pairs.sentences1, *pairs.sentences2}


def test_no_text_is_in_two_parts_and_no_pair_is_lost() -> None:
    draw = np.random.default_rng(0)
    first = tuple(f"t{i}" for i in draw.integers(0, 200, size=150))
    second = tuple(f"t{i}" for i in draw.integers(200, 400, size=150))
    pairs = ScoredPairs(first, second, np.arange(150.0))
    split = split_pairs(pairs, seed=1)
    train, dev, test = split.parts
    assert not texts_of(train) & (texts_of(dev) | texts_of(test))
    assert not texts_of(dev) & texts_of(test)
    assert sorted(np.concatenate([part.scores for part in split.parts])) == list(range(150))
    assert [len(part) for part in split.parts] == [90, 30, 30]
    parts = split_pairs(pairs_of(100)).parts
    assert [part.scores.mean() for part in parts] == pytest.approx([49.5] * 3, abs=2)
    again, other = (split_pairs(pairs, seed=seed).test.sentences1 for seed in (1, 2))
    assert test.sentences1 == again != other


def test_given_parts_stay_as_they_are_and_shared_texts_are_told() -> None:
    train, dev, test = pairs_of(6 * 5), pairs_of(6), pairs_of(5)
    train = replace(train, scores=train.scores % 6)
    dev = replace(dev, sentences1=tuple(f"dev {i}" for i in range(6)), notes=("Skipped line 3.",))
    split = split_pairs(train, dev, test)
    assert (split.train, split.dev, split.test) == (train, dev, test)
    assert split.notes == (
        "Skipped line 3.",
        "Texts of the dev or test pairs are in 6 train pairs, too.",
    )


SCALES = {
    "0 to 5": np.array([0.0, 0.4, 2.2, 3.8, 4.0, 5.0]),
    "0 to 1": np.array([0.0, 0.1, 0.45, 0.8, 0.9, 1.0]),
    "1 to 5": np.array([1.0, 2.0, 2.0, 3.0, 4.0, 5.0]),
    "0 to 100": np.array([0.0, 13.0, 44.0, 61.0, 75.0, 98.0]),
    "−1 to 1": np.array([-0.9, -0.2, 0.0, 0.2, 0.5, 0.7]),
    "0.02 to 3.92": np.array([0.02, 0.5, 1.0, 2.6, 3.4, 3.92]),
}

FIT_IN = [("0 to 5", "1 to 5"), ("0 to 5", "0.02 to 3.92"), ("−1 to 1", "0 to 1")]


@pytest.mark.parametrize(("first", "second"), list(product(SCALES, SCALES)))
def test_parts_on_another_scale_are_told(first: str, second: str) -> None:
    train, test = pairs_of(30), pairs_of(6)
    train = replace(train, scores=np.tile(SCALES[first], 5))
    test = replace(test, scores=SCALES[second])
    notes = [note for note in split_pairs(train, test=test).notes if "scale" in note]
    sentence = (
        f"The scores of the test pairs seem to be on another scale (from {second}) than those of "
        f"the train pairs (from {first})."
    )
    fits = first == second or (first, second) in FIT_IN
    assert notes == ([] if fits else [sentence])


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (pairs_of(3), "There are 3 pairs. To train on some and test on others, at least 20"),
        (pairs_of(40, shared=True), "too many pairs share a text"),
    ],
)
def test_too_few_pairs_are_refused(pairs: ScoredPairs, said: str) -> None:
    with pytest.raises(TextError, match=said):
        split_pairs(pairs)


@pytest.mark.parametrize("pooling", ["mean", "cls", "sep", "last"])
def test_features_are_those_of_each_layer(pooling: PoolingName, tiny: LanguageModel) -> None:
    embedder = LayerwiseEmbedder(tiny, pooling)
    texts = list(SENTENCES[:4])
    by_layer = embedder.unfold(np.asarray(embedder.encode(texts)))
    assert by_layer.shape == (4, 4, 32)
    for layer in range(4):
        expected = PooledEmbedder(tiny, pooling, layer).encode(texts)
        assert by_layer[:, layer] == pytest.approx(np.asarray(expected), abs=1e-6)


def test_a_second_look_computes_nothing(tiny: LanguageModel, tmp_path: Path) -> None:
    second = (SENTENCES[0], *SENTENCES[3:6], SENTENCES[1])
    pairs = ScoredPairs(SENTENCES[:5], second, np.arange(5.0))
    for found in (0, 6):
        events = list(measure_cosines(tiny, pairs, KeptVectors(Database(tmp_path))))
        first = next(n for n, event in enumerate(events) if isinstance(event, LayerCosines))
        last, cosines = events[first - 1 : first + 1]
        assert (cosines.pooling, last.source) == ("mean", "mean")
        assert (last.done, last.total, last.found) == (6, 6, found)
        assert [layer.cosines[0] for layer in cosines.layers] == [1.0] * 4  # a text and itself


def test_a_next_token_model_is_read_at_its_last_token(tmp_path: Path) -> None:
    model = load_text_model(save_causal(tmp_path, has_specials=False), device="cpu")
    assert model_poolings(model) == ("last", "mean")
    by_layer = LayerwiseEmbedder(model, "last")
    one, other = (
        by_layer.unfold(np.asarray(by_layer.encode([text])))[0]
        for text in ("The dog barks.", "A long letter barks.")
    )
    assert one.shape == (3, 32)
    assert one[-1] @ other[-1] < 0.999  # the last token has seen the words before it
    ids = model.encoder.encode("The dog barks.").ids
    with torch.no_grad():
        states = model.network.base_model(torch.tensor([ids]), output_hidden_states=True)
    last = torch.stack([state[0, -1] for state in states.hidden_states])
    assert one == pytest.approx(torch.nn.functional.normalize(last).numpy(), abs=1e-5)


def test_features_that_do_not_fit_are_refused_at_once(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "MOST_BYTES", 1024)
    embedder = LayerwiseEmbedder(tiny)
    with pytest.raises(TextError, match=r"At most 2 texts fit. Use fewer pairs."):
        data.make_room(3, embedder)


def test_pairs_need_no_scores_but_nothing_is_learnt_from_those_without() -> None:
    scored = pairs_of(40)
    pairs = ScoredPairs(scored.sentences1, scored.sentences2)
    assert np.isnan(pairs.scores).all()
    with pytest.raises(TextError, match="40 of 40 train pairs without a score"):
        check_different(pairs.scores, "train")
    some = np.arange(40.0)
    some[7] = np.nan
    with pytest.raises(TextError, match="1 of 40 dev pairs without a score"):
        check_different(some, "dev")
