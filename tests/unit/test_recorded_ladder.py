"""The recorded ladder is what today's program would see: run scripts/record_ladder.py."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuralviz.evaluation.ladder_results import FLOOR, LINEAR, SENTENCE, Curve, Ladder
from neuralviz.headlines.ladder import PAPERS_PAIR
from neuralviz.jobs.ladder import (
    RECORDED,
    example_ladder,
    example_pairs,
    make_similarity_models,
    recorded_ladder,
    score_two_texts,
)
from neuralviz.layers.settings import POOLINGS
from neuralviz.models import MINILM, load_text_model
from neuralviz.paths import sample_data
from neuralviz.training import similarity
from neuralviz.training.similarity.settings import RUNGS

CLOSE = 0.02  # weights of half precision, and another processor
EPOCHS = 2


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    found = recorded_ladder()
    assert found is not None
    return found


def test_it_is_of_the_settings_and_the_pairs_that_the_page_begins_with(ladder: Ladder) -> None:
    task = example_ladder()
    assert [
        one.trained.settings for one in ladder.results.values()
    ] == task.settings.list_trainings()
    assert set(ladder.results) == set(ladder.curves) == {(rung, 42) for rung in RUNGS}
    assert set(ladder.layers) == set(POOLINGS)
    assert list(ladder.baselines) == [FLOOR, LINEAR, SENTENCE]
    pairs, test = example_pairs(), ladder.test
    split = similarity.split_pairs(pairs)
    for one in ladder.layers.values():
        np.testing.assert_array_equal(one.scores, split.train.scores)
    assert test is not None
    assert (test.n_train, test.n_dev) == (len(split.train), len(split.dev))
    assert test.sentences1 == split.test.sentences1
    assert test.sentences2 == split.test.sentences2
    assert (sample_data() / RECORDED).stat().st_size < 3_000_000


@pytest.mark.slow
def test_it_begins_as_a_ladder_of_today_does(
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
        assert started.baselines[name].spearman == pytest.approx(baseline.spearman, abs=CLOSE)
    losses = ladder.curves[place].losses
    np.testing.assert_allclose(started.curves[place].losses[:EPOCHS], losses[:EPOCHS], atol=0.005)


def test_its_networks_score_two_texts_at_once_and_identical_ones_highest(ladder: Ladder) -> None:
    rungs = make_similarity_models(example_ladder().model, ladder)
    found = score_two_texts(load_text_model(MINILM), rungs, *PAPERS_PAIR)
    assert set(found.pair) == set(found.equal) == set(RUNGS)
    for rung in RUNGS:
        assert found.pair[rung] <= found.equal[rung]
        assert found.pair[rung] > 2.5  # of 5: the paper's model gives it less than half
