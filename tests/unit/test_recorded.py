"""What was recorded is what today's program finds: run the script that recorded it."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders import make_embedder
from neuralviz.evaluation.ladder_results import FLOOR, LINEAR, Curve, Ladder
from neuralviz.evaluation.measures import alike_pairs, measure
from neuralviz.evaluation.results import RESULTS_FORMAT, Results
from neuralviz.headlines.layers import PAPERS_PAIR
from neuralviz.jobs.evaluating import EXAMPLES, RECORDED, example_plan, recorded_results
from neuralviz.jobs.ladder import RECORDED as LADDER
from neuralviz.jobs.ladder import (
    ScoreTwoTexts,
    example_ladder,
    example_pairs,
    make_similarity_models,
    recorded_ladder,
)
from neuralviz.jobs.training import RECORDED as TRAINING
from neuralviz.jobs.training import TrainOnCorpus, add_textbooks, example_training, recorded_lessons
from neuralviz.layers.settings import POOLINGS
from neuralviz.models.shared import shared_text_model
from neuralviz.paths import sample_data
from neuralviz.store.corpora import CorpusStore
from neuralviz.training import similarity, train
from neuralviz.training.record import TrainingStep
from neuralviz.training.similarity.settings import RUNGS


def test_every_example_is_there_and_whole_and_has_todays_plan() -> None:
    assert RESULTS_FORMAT.unpack((sample_data() / RECORDED).read_bytes()).plan == example_plan()
    found = recorded_results()
    assert [one.data[0].name for one in found] == [one.read().name for one in EXAMPLES.values()]
    for one in found:
        assert len(one.cells) == len(one.rows)
        assert not one.any_failed
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one.begun)
        assert one.version


def recorded_groups(method: str) -> tuple[Results, int]:
    """The results of the groups, and a method's row in them."""
    recorded = recorded_results()[list(EXAMPLES).index("Texts in groups")]
    (at,) = (at for at, row in enumerate(recorded.rows) if row.spec.method == method)
    return recorded, at


@pytest.mark.parametrize("method", ["mean", "sbert-wk"])
def test_the_numbers_are_those_of_the_models_of_today(method: str) -> None:
    recorded, at = recorded_groups(method)
    data, was = recorded.data[0], recorded.measured(0, at)
    vectors = make_embedder(recorded.rows[at].spec).encode(list(data.texts))
    found = measure(data, vectors, recorded.plan.settings)
    assert found.triplets.wrong == pytest.approx(was.triplets.wrong, abs=2)
    assert found.triplets.same == pytest.approx(was.triplets.same, abs=1e-4)
    np.testing.assert_allclose(found.same, was.same, atol=2e-3)
    np.testing.assert_allclose(found.resampled["triplets"], was.resampled["triplets"], atol=1e-3)


def test_the_first_neural_cosine_is_that_of_the_model_of_today() -> None:
    """More would take as long as all other tests of this file together."""
    recorded, at = recorded_groups("neural")
    data, was = recorded.data[0], recorded.measured(0, at)
    grouping, seed = data.grouping, recorded.plan.settings.seed
    pair = alike_pairs(grouping.group, grouping.anchor, seed=seed)[0]
    embedder = make_embedder(recorded.rows[at].spec)
    one, other = embedder.encode([data.texts[data.rows[i]] for i in pair])
    assert one @ other == pytest.approx(was.same[0], abs=2e-3)


# --- the ladder ---------------------------------------------------------------------------------

CLOSE = 0.02  # weights of half precision, and another processor
EPOCHS = 2


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    found = recorded_ladder()
    assert found is not None
    return found


def test_the_ladder_is_of_the_settings_and_pairs_that_the_page_begins_with(ladder: Ladder) -> None:
    task = example_ladder()
    assert [
        one.trained.settings for one in ladder.results.values()
    ] == task.settings.list_trainings()
    assert set(ladder.results) == set(ladder.curves) == {(rung, 42) for rung in RUNGS}
    assert set(ladder.layers) == set(POOLINGS)
    assert list(ladder.baselines) == [FLOOR, LINEAR]  # its own embedding is mean pooling
    pairs, test = example_pairs(), ladder.test
    split = similarity.split_pairs(pairs)
    for one, *_ in ladder.layers.values():
        np.testing.assert_array_equal(one.scores, split.train.scores)
    assert test is not None
    assert (test.n_train, test.n_dev) == (len(split.train), len(split.dev))
    assert test.sentences1 == split.test.sentences1
    assert test.sentences2 == split.test.sentences2
    assert (sample_data() / LADDER).stat().st_size < 3_000_000


@pytest.mark.slow
def test_the_ladder_begins_as_one_of_today_does(
    ladder: Ladder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The baselines, and the first epochs of a rung that learns; the script trains all."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    task = example_ladder()
    task = replace(task, settings=replace(task.settings, rungs=("siamese",)))
    started = task.start()
    place = ("siamese", 42)
    with closing(task.events(lambda: False)) as events:
        while len(started.curves.get(place, Curve()).losses) < EPOCHS:
            started = task.fold(started, [next(events)])
    for name, baseline in ladder.baselines.items():
        assert started.baselines[name].dev == pytest.approx(baseline.dev, abs=CLOSE)
    losses = ladder.curves[place].losses
    np.testing.assert_allclose(started.curves[place].losses[:EPOCHS], losses[:EPOCHS], atol=0.005)


def test_its_networks_score_two_texts_at_once_and_identical_ones_highest(ladder: Ladder) -> None:
    rungs = make_similarity_models(example_ladder().model, ladder)
    task = ScoreTwoTexts(example_ladder().model, rungs, *PAPERS_PAIR)
    (found,) = task.events(lambda: False)
    assert set(found.pair) == set(found.equal) == set(RUNGS)
    for rung in RUNGS:
        assert found.pair[rung] <= found.equal[rung]
        assert found.pair[rung] > 2.5  # of 5: the paper's model gives it less than half


# --- a training --------------------------------------------------------------------------------

STEPS = 2


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainOnCorpus:
    """What was recorded."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    store = CorpusStore()
    corpus = add_textbooks(store)
    return example_training(corpus, store.texts(corpus))


def test_the_training_is_of_the_settings_that_the_page_begins_with(task: TrainOnCorpus) -> None:
    lessons = recorded_lessons()
    assert tuple(one.settings for one in lessons) == task.settings
    for one in lessons:
        assert one.is_over
        assert one.step == one.steps == 60
        assert [seen.step for seen in one.snapshots] == [0, *range(15, 61, task.watch_every)]
        assert one.maps is not None
        assert one.maps.shape == (5, 824, 2)  # all of its texts
    assert (sample_data() / TRAINING).stat().st_size < 400_000


@pytest.mark.slow
def test_the_training_begins_as_one_of_today_does(task: TrainOnCorpus) -> None:
    """The first steps of its first training; the script does all of them."""
    store = CorpusStore()
    texts = store.texts(store.corpus(task.corpus))
    settings = task.settings[0]
    with closing(train(shared_text_model(task.model.id), texts, settings)) as events:
        steps = (event for event in events if isinstance(event, TrainingStep))
        losses = [event.loss for event in islice(steps, STEPS)]
    np.testing.assert_allclose(losses, recorded_lessons()[0].loss[:STEPS], atol=0.005)
