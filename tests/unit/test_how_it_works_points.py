"""What each step of the way says of its numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from neuralviz.ui.how_it_works import points


def walk(**values):
    return SimpleNamespace(**values)


@pytest.mark.parametrize(
    ("products", "says"),
    [
        ((0.338, 0.061), "Text 2 is closer to text 1 (0.34) than text 3 is (0.06): the embedding"),
        ((0.1, 0.25), "Text 3 is closer to text 1 (0.25) than text 2 is (0.10). Would you agree?"),
        ((0.201, 0.203), "Texts 2 and 3 are equally similar to text 1 (0.20)"),
        ((0.2, -0.001), "Text 2 is closer to text 1 (0.20) than text 3 is (0.00)"),
    ],
)
def test_the_product_says_which_text_is_closer(products, says):
    assert points.describe_product(walk(products=np.array(products))).startswith(says)


@pytest.mark.parametrize(
    ("before", "after", "epochs", "says"),
    [
        (3.39, 1.24, 10, "The model learns the text: in 10 epochs, the mean loss falls from 3.39"),
        (3.39, 1.24, 1, "The model learns the text: in 1 epoch, the mean loss falls"),
        (1.0, 2.0, 3, "The mean loss does not fall: 1.00 nats before, 2.00 after 3 epochs."),
        (1.0, float("nan"), 3, "The mean loss does not fall: 1.00 nats before, nan after"),
    ],
)
def test_the_loss_falls_or_does_not(before, after, epochs, says):
    found = walk(
        before=walk(mean_loss=before), after=walk(mean_loss=after), settings=walk(epochs=epochs)
    )
    assert points.describe_loss(found).startswith(says)


def test_how_often_tokens_are_masked():
    inputs = walk(masked=np.array([[True, False], [True, True]]))
    assert "2 masked inputs: every token is masked 1 to 2 times" in points.describe_inputs(
        walk(inputs=inputs)
    )
    inputs = walk(masked=np.array([[True, False], [False, True]]))
    assert "every token is masked 1 time, " in points.describe_inputs(walk(inputs=inputs))


@pytest.mark.parametrize(("furthest", "said"), [(0.104, "0.11"), (0.1, "0.10"), (0.0971, "0.10")])
def test_no_weight_changes_by_more_than_what_is_said(furthest, said):
    deltas = [np.array([[[9.0, 9.0]], [[0.01, -furthest]]]), np.array([[[0.0]], [[0.02]]])]
    found = walk(weights=[np.zeros(1500), np.zeros(2)], deltas=deltas)
    assert points.describe_weights(found) == (
        f"Only 1,502 of the model's weights may change, and none changes by more than {said}."
    )


def test_how_soon_the_weights_move():
    def norms(*means):
        return walk(tuning=walk(delta_norm=np.array(means)[:, None, None]))

    assert points.describe_delta(norms(3.0, 4.0, 5.0)) == (
        "The weights move at once: half of the way is done after 1 epoch of 3."
    )
    assert points.describe_delta(norms(1.0, 2.0, 3.0, 4.0)) == (
        "The weights move steadily: half of the way is done after 2 epochs of 4."
    )
    assert points.describe_delta(norms(1.0, 2.0, 5.0)) == (
        "The weights move late: half of the way is done after 3 epochs of 3."
    )
    assert points.describe_delta(norms(1.0)) == "One epoch, one row: this is the delta."


def test_how_much_the_largest_values_hold():
    embedding = np.r_[3.0, np.ones(18), 0.0]
    said = points.describe_embedding(walk(tuning=walk(embeddings=[embedding])))
    assert said.endswith("20 values. The largest tenth of them holds 37% of its squared length.")
