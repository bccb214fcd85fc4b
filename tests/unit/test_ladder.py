"""Climbing the ladder: what is compared, in which order, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import LinearRegression

from neuralviz.embedders.pooled import PooledEmbedder
from neuralviz.errors import ModelError, TextError
from neuralviz.evaluation.ladder import train_ladder
from neuralviz.evaluation.ladder_results import (
    FLOOR,
    LADDER_FORMAT,
    LINEAR,
    NEURAL,
    Ladder,
    LadderSettings,
)
from neuralviz.jobs.ladder import ClimbLadder, ScoreTwoTexts, make_similarity_models
from neuralviz.models import LanguageModel
from neuralviz.models.shared import ModelRef
from neuralviz.reading.pairs import ScoredPairs
from neuralviz.store.vectors import MemoryVectors
from neuralviz.training.similarity.data import SplitPairs, split_pairs

NOUNS = ("gulls", "harbour", "baker", "bread", "letter", "dog", "boats", "rain", "nets", "lamps")


def made_pairs() -> ScoredPairs:
    """45 pairs of different texts, each with a score."""
    sentences = [
        f"The {one} and the {two} wait in the {one}." for one, two in combinations(NOUNS, 2)
    ]
    others = [f"A {two} is not a {one}." for one, two in combinations(NOUNS, 2)]
    scores = np.arange(45) % 6 + np.linspace(0, 0.5, 45)
    return ScoredPairs(tuple(sentences), tuple(others), scores)


SETTINGS = LadderSettings(rungs=("cosines", "siamese"), seeds=(1, 2), max_epochs=2)


@pytest.fixture(scope="module")
def split() -> SplitPairs:
    return split_pairs(made_pairs())


@pytest.fixture(scope="module")
def ladder(split: SplitPairs, tiny: LanguageModel) -> Ladder:
    return Ladder().having(list(train_ladder(tiny, split, SETTINGS, MemoryVectors())))


def test_every_rung_is_trained_with_every_seed_and_measured_on_the_test_pairs(
    ladder: Ladder, split: SplitPairs
) -> None:
    assert list(ladder.results) == [(one.rung, one.seed) for one in SETTINGS.list_trainings()]
    assert list(ladder.results) == list(ladder.curves)
    assert ladder.test is not None
    assert ladder.test.sentences1 == split.test.sentences1
    assert (ladder.test.n_train, ladder.test.n_dev) == (len(split.train), len(split.dev))
    assert [one.trained.settings.seed for one in ladder.of_rung("siamese")] == [1, 2]
    for one in (*ladder.baselines.values(), *ladder.results.values()):
        predicted, found = one.measured.cosines, one.measured.correlation
        assert found.spearman == pytest.approx(spearmanr(predicted, split.test.scores).statistic)
        assert found.pearson == pytest.approx(pearsonr(predicted, split.test.scores).statistic)


def test_floor_and_linear_regression_are_those_of_plain_programs(ladder, split, tiny) -> None:
    def cosines(part: ScoredPairs, layer: int) -> np.ndarray:
        embedder = PooledEmbedder(tiny, "mean", layer)
        one, other = (
            np.asarray(embedder.encode(list(texts))) for texts in (part.sentences1, part.sentences2)
        )
        return np.asarray((one * other).sum(axis=1))

    floor, linear = (ladder.baselines[name].measured.cosines for name in (FLOOR, LINEAR))
    assert floor == pytest.approx(cosines(split.test, 3), abs=1e-5)
    train, test = (
        np.stack([cosines(part, layer) for layer in range(4)], axis=1)
        for part in (split.train, split.test)
    )
    line = LinearRegression().fit(train, split.train.scores)
    assert linear == pytest.approx(line.predict(test), abs=2e-3)


@pytest.mark.parametrize("role", ["train", "dev"])
def test_equal_scores_are_refused_before_anything_is_computed(split, tiny, role) -> None:
    part = split.train if role == "train" else split.dev
    same = replace(part, scores=np.full(len(part), 3.0))
    flat = replace(split, train=same) if role == "train" else replace(split, dev=same)
    with pytest.raises(TextError, match=f"All scores of the {role} pairs are 3"):
        next(train_ladder(tiny, flat, SETTINGS, MemoryVectors()))


@pytest.fixture
def ref(bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRef:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    return ModelRef.from_id(str(bert_folder))


def test_the_job_climbs_and_scores_two_texts(ref: ModelRef) -> None:
    task = ClimbLadder(
        ref, made_pairs(), LadderSettings(rungs=("cosines", "siamese"), max_epochs=2)
    )
    result = task.start()
    shares = []
    for event in task.events(lambda: False):
        result = task.fold(result, [event])
        progress = task.progress(result)
        shares.append(progress.share)
        assert progress.is_last is ("siamese" in {rung for rung, _ in result.curves})
    assert task.is_whole(result)
    assert shares[-1] == 1.0
    assert LADDER_FORMAT.pack(task.unpack(task.pack(result))) == task.pack(result)
    assert {*result.baselines} == {FLOOR, LINEAR, NEURAL}
    rungs = make_similarity_models(ref, result)
    two = ScoreTwoTexts(ref, rungs, "The dog barks.", "A letter from the north.")
    (found,) = two.events(lambda: False)
    assert list(found.pair) == ["cosines", "siamese"]
    assert all(found.equal[rung] > found.pair[rung] for rung in found.pair)
    (alone,) = (one for one in rungs if one.trained.settings.rung == "siamese")
    pair = ScoredPairs((two.first,), (two.second,))
    assert alone.score(pair)[0] == pytest.approx(found.pair["siamese"], abs=1e-5)
    with pytest.raises(TextError, match="The text is empty"):
        next(replace(two, second=" ").events(lambda: False))


def test_a_changed_model_is_not_asked(ref: ModelRef, small_model: object) -> None:
    task = ClimbLadder(ref, made_pairs(), LadderSettings(rungs=("cosines",), max_epochs=1))
    result = task.fold(task.start(), list(task.events(lambda: False)))
    assert result.test is not None
    changed = replace(result, test=replace(result.test, fingerprint="another"))
    with pytest.raises(ModelError, match="have changed since"):
        next(
            ScoreTwoTexts(ref, make_similarity_models(ref, changed), "a", "b").events(lambda: False)
        )
