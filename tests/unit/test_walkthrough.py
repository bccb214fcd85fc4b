"""The numbers of the walk fit each other."""

import numpy as np
import pytest

from neuralviz.errors import Stopped, TextError
from neuralviz.micro_tuning.walkthrough import walk_through


@pytest.fixture(scope="module")
def walk(bundled):
    return walk_through(
        bundled, ["A cat purrs on the warm mat.", "The dog sleeps.", "Rain."], epochs=3
    )


def test_the_predictions_give_the_loss_that_was_tuned_on(walk):
    assert walk.before.mean_loss == pytest.approx(walk.tuning.loss[0, 0], abs=1e-4)
    assert walk.after.mean_loss < walk.before.mean_loss
    assert len(walk.losses) == 4
    assert len(walk.before) == walk.inputs.masked.sum()


def test_the_first_step_by_hand_is_the_one_that_was_taken(walk):
    for layer in range(3):
        for neuron in (0, 7, 100):
            step = walk.first_step(layer, neuron)
            moved = walk.deltas[layer][0, 0, neuron]
            assert step.result - step.weight == pytest.approx(moved, abs=1e-4)


def test_every_step_leads_to_the_embedding_and_the_product(walk):
    deltas = [layer[-1, 0] for layer in walk.deltas]
    joined = np.concatenate([delta / np.linalg.norm(delta) for delta in deltas])
    embedding = joined / np.linalg.norm(joined)
    np.testing.assert_allclose(embedding, walk.tuning.embeddings[0], atol=1e-6)
    assert walk.products == pytest.approx(walk.tuning.embeddings[1:] @ embedding, abs=1e-6)


def test_long_and_empty_texts_are_refused(bundled):
    with pytest.raises(TextError, match="Text 2 has 100 tokens"):
        walk_through(bundled, ["A cat.", "cat " * 100])
    with pytest.raises(TextError, match="Text 1 is empty"):
        walk_through(bundled, [" ", "A cat."])


def test_it_can_be_stopped_before_every_pass(bundled):
    passes = 0

    def count() -> bool:
        nonlocal passes
        passes += 1
        return False

    walk_through(bundled, ["A cat.", "A dog."], epochs=2, should_stop=count)
    assert passes >= 4
    for last in (1, passes):
        answers = iter([False] * (last - 1) + [True])
        with pytest.raises(Stopped):
            walk_through(bundled, ["A cat.", "A dog."], epochs=2, should_stop=answers.__next__)
