"""The recorded training is what today's program would see: run scripts/record_training.py."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from neuralviz.jobs.training import RECORDED, TrainOnCorpus, example_training, recorded_lessons
from neuralviz.models.shared import shared_text_model
from neuralviz.paths import sample_data
from neuralviz.store.corpora import CorpusStore
from neuralviz.training import train
from neuralviz.training.example import add_textbooks
from neuralviz.training.record import TrainingStep

STEPS = 2


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainOnCorpus:
    """What was recorded."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    store = CorpusStore()
    corpus = add_textbooks(store)
    return example_training(corpus, store.texts(corpus))


def test_it_is_of_the_settings_that_the_page_begins_with(task: TrainOnCorpus) -> None:
    lessons = recorded_lessons()
    assert tuple(one.settings for one in lessons) == task.settings
    for one in lessons:
        assert one.is_over
        assert one.step == one.steps == 60
        assert [seen.step for seen in one.snapshots] == [0, *range(15, 61, task.watch_every)]
        assert one.maps is not None
        assert one.maps.shape == (5, 824, 2)  # all of its texts
    assert (sample_data() / RECORDED).stat().st_size < 400_000


@pytest.mark.slow
def test_it_begins_as_a_training_of_today_does(task: TrainOnCorpus) -> None:
    """The first steps of its first training; the script does all of them."""
    store = CorpusStore()
    texts = store.texts(store.corpus(task.corpus))
    settings = task.settings[0]
    with closing(train(shared_text_model(task.model.id), texts, settings)) as events:
        steps = (event for event in events if isinstance(event, TrainingStep))
        losses = [event.loss for event in islice(steps, STEPS)]
    np.testing.assert_allclose(losses, recorded_lessons()[0].loss[:STEPS], atol=0.005)
