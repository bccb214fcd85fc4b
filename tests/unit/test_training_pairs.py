"""Pairs obey their definition, whatever the texts are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.training.settings import PairSource, TrainingSettings, chunks_of, sentences_of

WORDS = "The quick harbour lies still in the early morning and nobody wakes".split()


def sentence(n_words: int, seed: int = 0) -> str:
    return " ".join(WORDS[(seed + i) % len(WORDS)] for i in range(n_words)).capitalize() + "."


def text(*n_words: int) -> str:
    return " ".join(sentence(n, seed) for seed, n in enumerate(n_words))


LONG = text(22, 23, 24, 25, 26)
sentences = st.builds(sentence, st.integers(1, 60), st.integers(0, 5))
texts = st.lists(
    st.lists(sentences, min_size=2, max_size=8).map(" ".join) | st.text(max_size=80), max_size=8
)
pair_settings = st.builds(
    TrainingSettings,
    pairs=st.sampled_from(["crops", "dropout", "masking"]),
    sentences=st.integers(1, 3),
    shortest=st.integers(1, 100),
    longest=st.integers(150, 300),
    splitting=st.sampled_from(["sentencex", "full-stops"]),
    seed=st.integers(0, 3),
)


@settings(max_examples=150, deadline=None)
@given(texts, pair_settings, st.integers(0, 3), st.integers(2, 5))
def test_pairs_obey_their_definition(
    corpus: list[str], how: TrainingSettings, epoch: int, batch_size: int
) -> None:
    if sum(len(chunks_of(one, how)) >= 2 for one in corpus) < 2:
        with pytest.raises(NeuralvizError):
            PairSource(corpus, how)
        return
    source = PairSource(corpus, how)
    pairs = [source.pair(*row) for row in source.epoch(epoch)]

    assert sorted(pair.text for pair in pairs) == source.used.tolist()  # one a text and epoch
    assert sorted([*source.used, *source.skipped]) == list(range(len(corpus)))
    for pair in pairs:
        chunks = chunks_of(corpus[pair.text], how)
        assert len(set(chunks)) == len(chunks) >= 2
        assert pair.anchor in chunks
        assert pair.positive in chunks
        assert (pair.anchor == pair.positive) == (how.pairs == "dropout")
    batches = list(source.batches(epoch, batch_size))
    flat = [pair for batch in batches for pair in batch]
    assert flat == pairs[: len(flat)]
    assert len(pairs) - len(flat) == (len(pairs) % batch_size == 1)
    assert all(2 <= len(batch) <= batch_size for batch in batches)
    assert list(source.batches(epoch, batch_size, first=1)) == batches[1:]
    for skipped in source.skipped:
        assert len(chunks_of(corpus[skipped], how)) < 2


@settings(max_examples=100, deadline=None)
@given(st.lists(sentences, max_size=8).map(" ".join), pair_settings)
def test_sentences_have_the_lengths_asked_for_and_come_in_order(
    whole: str, how: TrainingSettings
) -> None:
    found = sentences_of(whole, how)
    assert all(how.shortest <= len(one) <= how.longest for one in found)
    place = 0
    for one in found:
        place = whole.index(one, place) + 1


def test_splitting_at_full_stops_breaks_abbreviations_and_keeps_questions_together() -> None:
    whole = "Why did Dr. Miller leave the old harbour so early? Nobody knows."
    how = TrainingSettings(shortest=1, sentences=1, splitting="full-stops")
    assert chunks_of(whole, how) == [
        "Why did Dr.", "Miller leave the old harbour so early? Nobody knows."
    ]  # fmt: skip
    how = TrainingSettings(shortest=1, sentences=1)
    assert len(chunks_of(whole, how)) == 2
    assert re.match("Why did Dr. Miller", chunks_of(whole, how)[0])


def test_every_kind_of_pairs_has_the_same_anchors_in_the_same_batches() -> None:
    corpus = [text(20 + i, 21 + i, 22 + i, 23 + i) for i in range(9)]
    crops, dropout, masking = (
        next(PairSource(corpus, TrainingSettings(pairs=kind, seed=3)).batches(0, 9))
        for kind in ("crops", "dropout", "masking")
    )
    assert [pair.anchor for pair in crops] == [pair.anchor for pair in dropout]
    assert [pair.text for pair in crops] == [pair.text for pair in dropout]
    assert masking == crops  # mask(crop 1) against mask(crop 2)


def test_texts_that_are_too_short_are_counted() -> None:
    corpus = [text(10, 10, 10), text(11, 11, 11), LONG, LONG + LONG[9:]]
    source = PairSource(corpus, TrainingSettings())
    assert source.skipped.tolist() == [0, 1]
    assert source.skipped_in_words() == "Too short to train on: 2 texts of 4."
    source = PairSource([*corpus, "Short."], TrainingSettings())
    assert "A pair needs 3 different sentences of 100 to 250 chara" in source.skipped_in_words()


@pytest.mark.parametrize(
    ("corpus", "says"),
    [
        ([LONG], "at least two texts"),
        (["", " "], "Too few of the 2 texts are long enough for a pair, which needs 3 different"),
        ([LONG, "Short."], "Too few of the 2 texts"),
    ],
)
def test_a_corpus_that_makes_no_pairs_is_explained(corpus: list[str], says: str) -> None:
    with pytest.raises(NeuralvizError, match=says):
        PairSource(corpus, TrainingSettings())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"pairs": "magic"}, "Unknown pairs “magic”"),
        ({"sentences": 0}, "must be a whole number from 1"),
        ({"shortest": 90, "longest": 80}, "must not be shorter"),
        ({"masked": 1.0}, "above 0 and below 1"),
        ({"batch_size": 1}, "batch size"),
        ({"learning_rate": 0.0}, "The learning rate must be above 0"),
        ({"temperature": 0.0}, "temperature"),
        ({"part": "table", "frozen_blocks": 1}, "no blocks to freeze"),
        ({"part": "table", "pooling": "cls"}, "only mean pooling"),
    ],
)
def test_settings_are_checked(options: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        TrainingSettings(**options)
