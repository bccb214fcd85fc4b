"""What the training page says: the point, what moved, and what to try next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from neuralviz.training.in_words import (
    is_decided,
    layers_point,
    moves_point,
    new_neighbours,
    suggest_next,
    trained_part,
    training_point,
)
from neuralviz.training.record import Lesson, SnapshotRecord
from neuralviz.training.settings import TrainingSettings, with_options

N = 200
NEAR = (np.arange(N)[:, None] + np.arange(1, 11)) % N  # the ten that follow
FAR = (np.arange(N)[:, None] + np.arange(101, 111)) % N


def lesson(*shares: float, nearest: np.ndarray = NEAR, **settings: Any) -> Lesson:
    """One that is over: a snapshot every 12 steps, at which so many texts are right."""
    seen = [
        SnapshotRecord(
            12 * at, np.array([0.5, share]), np.arange(N) < share * N, nearest if at else NEAR
        )
        for at, share in enumerate(shares)
    ]
    n = 12 * max(len(shares) - 1, 1)
    loss = np.linspace(2.0, 0.2, n)
    return Lesson(
        with_options(TrainingSettings(), **settings), n_pairs=64, steps=n, loss=loss,
        snapshots=tuple(seen), is_over=True,
    )  # fmt: skip


def point(*lessons: Lesson, label: str = "topic") -> str:
    return training_point(lessons, label, is_decided(lessons))


CROPS, DROPOUT = lesson(0.5, 0.65, 0.7), lesson(0.5, 0.52, 0.55, pairs="dropout")
ALIKE = lesson(0.5, 0.6, 0.7, pairs="dropout")
NEARLY = lesson(0.5, 0.6, 0.685, pairs="dropout")
UNLABELLED = replace(
    CROPS, snapshots=tuple(replace(one, accuracy=None, right=None) for one in CROPS.snapshots)
)


@pytest.mark.parametrize(
    ("lessons", "said"),
    [
        (
            (CROPS, DROPOUT),
            "**Crops** teaches more: the ten nearest texts point to the right topic for **70%** of "
            "texts after **crops**, for 55% after **dropout** and for 50% before.",
        ),
        (
            (CROPS, NEARLY),
            "The ten nearest texts point to the right topic for **70%** of texts after **crops**, "
            "for 69% after **dropout** and for 50% before: too few texts to tell crops from "
            "dropout.",
        ),
        (
            (CROPS, ALIKE),
            "The ten nearest texts point to the right topic for **70%** of texts after **crops**, "
            "for 70% after **dropout** and for 50% before: too few texts to tell crops from "
            "dropout.",
        ),
        (
            (replace(CROPS, is_over=False), replace(DROPOUT, is_over=False)),
            "**Crops** is ahead so far: the ten nearest texts point to the right topic for **70%** "
            "of texts after **crops**, for 55% after **dropout** and for 50% before.",
        ),
        (
            (CROPS, lesson(0.5, 0.3, pairs="dropout")),
            "**Crops** teaches more, **dropout** does harm: the ten nearest texts point to the "
            "right topic for **70%** of texts after **crops**, for 30% after **dropout** and for "
            "50% before.",
        ),
        (
            (lesson(0.5, 0.505), lesson(0.5, 0.4, pairs="dropout")),
            "**Dropout** does harm: the ten nearest texts point to the right topic for **51%** of "
            "texts after **crops**, for 40% after **dropout** and for 50% before.",
        ),
        (
            (lesson(0.5, 0.3), lesson(0.5, 0.32, pairs="dropout")),
            "**Both** do harm: the ten nearest texts point to the right topic for **32%** of "
            "texts after **dropout**, for 30% after **crops** and for 50% before.",
        ),
        (
            (lesson(0.5, 0.505), lesson(0.5, 0.485, pairs="dropout")),
            "The ten nearest texts point to the right topic for **51%** of texts after **crops**, "
            "for 49% after **dropout** and for 50% before: too few texts to tell crops from "
            "dropout.",
        ),
        (
            tuple(
                replace(one, is_over=False)
                for one in (lesson(0.5, 0.505), lesson(0.5, 0.3, pairs="dropout"))
            ),
            "The ten nearest texts point to the right topic for **51%** of texts after **crops**, "
            "for 30% after **dropout** and for 50% before.",
        ),
        (
            (CROPS,),
            "After 24 steps of crops, the ten nearest texts point to the right topic for **70%** "
            "of texts, up from 50%.",
        ),
        (
            (lesson(0.5, 0.515),),
            "After 12 steps of crops, the ten nearest texts point to the right topic for **52%** "
            "of texts, up from 50%: with so few texts, that may be chance.",
        ),
        (
            (lesson(0.5, 0.5),),
            "After 12 steps of crops, the ten nearest texts point to the right topic for **50%** "
            "of texts, as before.",
        ),
        (
            (UNLABELLED,),
            "Crops: the encoder finds the other half of a text among 64 far better than at first: "
            "the loss fell from 2.00 to 0.55 nats.",
        ),
        (
            (replace(CROPS, diverged=True), DROPOUT),
            "The loss of **crops** diverged: the learning rate is too high. The encoder has the "
            "best weights of the run. Try a tenth of the rate.",
        ),
        ((Lesson(TrainingSettings()),), ""),
    ],
)  # fmt: skip
def test_the_point_of_a_training(lessons: tuple[Lesson, ...], said: str) -> None:
    assert point(*lessons) == said


TABLE = replace(lesson(0.5, 0.6, 0.65, part="table"), untrained=0.7)
MASKING = replace(lesson(0.5, 0.55, 0.6, part="table", pairs="masking"), untrained=0.7)
SCRATCH = replace(lesson(0.05, 0.2, start="random"), untrained=0.7)


@pytest.mark.parametrize(
    ("lessons", "said"),
    [
        (
            (TABLE,),
            "**The whole model, untrained, does better**: its ten nearest texts point to the right "
            "topic for **70%** of texts. With **the embedding table alone** trained, it is 65% "
            "after crops, and 50% before.",
        ),
        (
            (replace(TABLE, is_over=False),),
            "**The whole model, untrained, does better**: its ten nearest texts point to the right "
            "topic for **70%** of texts. With **the embedding table alone** trained, it is 65% "
            "after crops, and 50% before.",
        ),
        (
            (TABLE, MASKING),
            "**The whole model, untrained, does better**: its ten nearest texts point to the right "
            "topic for **70%** of texts. With **the embedding table alone** trained, it is 65% "
            "after crops and 60% after masking, and 50% before.",
        ),
        (
            (replace(TABLE, untrained=0.65),),
            "**The whole model, untrained, does as well**: its ten nearest texts point to the "
            "right topic for **65%** of texts. With **the embedding table alone** trained, it is "
            "65% after crops, and 50% before.",
        ),
        (
            (SCRATCH,),
            "**The whole model, untrained, does better**: its ten nearest texts point to the right "
            "topic for **70%** of texts. With **the whole model from random weights** trained, it "
            "is 20% after crops, and 5% before.",
        ),
        (
            (replace(TABLE, untrained=0.6),),
            "After 24 steps of crops, with **the embedding table alone** trained, the ten nearest "
            "texts point to the right topic for **65%** of texts, up from 50%.",
        ),
        (
            (lesson(0.5, 0.7, frozen_blocks=4), lesson(0.5, 0.5, frozen_blocks=4, pairs="dropout")),
            "**Crops** teaches more: with **all but the first 4 blocks** trained, the ten nearest "
            "texts point to the right topic for **70%** of texts after **crops**, for 50% after "
            "**dropout** and for 50% before.",
        ),
        (
            (lesson(0.5, 0.7),),
            "After 12 steps of crops, with **the whole model** trained, the ten nearest texts "
            "point to the right topic for **70%** of texts, up from 50%.",
        ),
    ],
)  # fmt: skip
def test_what_is_trained_is_named_and_comes_after_what_the_whole_model_does_untrained(
    lessons: tuple[Lesson, ...], said: str
) -> None:
    part = trained_part(lessons[0].settings)
    assert training_point(lessons, "topic", is_decided(lessons), part=part) == said


def test_without_labels_what_is_trained_is_named_too() -> None:
    part = trained_part(with_options(TrainingSettings(), frozen_blocks=1))
    assert part == "all but the first block"
    assert training_point([UNLABELLED], "", part=part).startswith(f"With **{part}** trained: Crops")


def test_accuracy_waits_for_the_look_at_the_texts_before() -> None:
    begun = replace(CROPS, snapshots=CROPS.snapshots[1:], is_over=False)
    assert begun.accuracy.size == 0
    assert point(begun) == (
        "Training has begun: each step pulls the two halves of a pair together."
    )


def test_the_layer_that_has_changed_most_is_named() -> None:
    assert layers_point([DROPOUT, CROPS]) == (
        "**Layer 1** changed most: crops took it from 50% to **70%**. No other layer changed by "
        "more than 0 points."
    )
    assert layers_point([lesson(0.5, 0.5)]) == "No layer's accuracy has changed by a point."


def at_layers(before: list[float], now: list[float]) -> Lesson:
    """A training with the accuracies of several layers."""
    first, last = lesson(0.5, 0.5).snapshots
    return replace(
        lesson(0.5, 0.5),
        snapshots=(
            replace(first, accuracy=np.array(before)), replace(last, accuracy=np.array(now))
        ),
    )  # fmt: skip


def test_layers_that_changed_alike_are_named_together() -> None:
    assert layers_point([at_layers([0.16, 0.17, 0.3], [0.232, 0.24, 0.31])]) == (
        "**Layers 0 and 1** changed most. Layer 0: crops took it from 16% to **23%**."
    )
    assert layers_point([at_layers([0.1, 0.1], [0.2, 0.205])]) == (
        "**All layers** changed about alike. Layer 1: crops took it from 10% to **21%**."
    )


def test_a_training_that_goes_on_says_so() -> None:
    resumed = replace(UNLABELLED, snapshots=(), first=9, loss=np.ones(10), is_over=False)
    said = "Training **goes on** after step 9, where it was stopped."
    assert training_point([resumed], "topic") == said


def test_encoders_that_were_stopped_at_different_steps_are_not_compared() -> None:
    assert is_decided((CROPS, replace(DROPOUT, snapshots=DROPOUT.snapshots[:2]))) is None
    assert is_decided((CROPS, DROPOUT)) is True


def test_texts_with_new_neighbours_are_named_with_the_nearest_before_and_now() -> None:
    nearest = NEAR.copy()
    nearest[7] = FAR[7]
    moved = lesson(0.5, 0.6, nearest=nearest)
    (one,) = new_neighbours(moved, 5)
    assert (one.text, one.kept, one.before, one.after) == (7, 0, 8, 108)

    everywhere = lesson(0.5, 0.6, nearest=FAR)
    assert moves_point(everywhere, new_neighbours(everywhere, 5)) == (
        "After crops, **10 of a text's 10** nearest texts are new, on average. The lines "
        "follow the texts that moved most."
    )
    assert new_neighbours(CROPS, 5) == []
    assert moves_point(CROPS, []) == (
        "No text has another nearest text than before: the training has hardly moved them."
    )


@pytest.mark.parametrize(
    ("lessons", "said"),
    [
        (
            (CROPS, DROPOUT),
            "Try **more epochs**: crops still gained 5 points in the last 12 steps.",
        ),
        (
            (lesson(0.5, 0.65, 0.662), DROPOUT),
            "Try **more epochs**: crops still gained 1 point in the last 12 steps.",
        ),
        (
            (lesson(0.5, 0.7, 0.7), DROPOUT),
            "Try the **embedding table** alone, under Settings: without a transformer it is quick.",
        ),
        (
            (lesson(0.5, 0.7, 0.7),),
            "Try **dropout** beside it: the same texts and steps, and no crops.",
        ),
        (
            (lesson(0.5, 0.7, 0.7, pairs="masking"),),
            "Try **crops** beside it: the same texts and steps, with two parts of a text a pair.",
        ),
        (
            (lesson(0.5, 0.7, 0.7, part="table"),),
            "Try the **whole model**: it takes longer, and learns what words mean together.",
        ),
        ((replace(CROPS, diverged=True),), ""),
        ((replace(CROPS, is_over=False),), ""),
    ],
)
def test_what_to_try_next_is_what_has_not_been_seen_yet(
    lessons: tuple[Lesson, ...], said: str
) -> None:
    assert suggest_next(lessons) == said


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ([np.nan] * 4, "Crops: the loss is not known yet."),
        ([np.nan] * 4 + [1.0, 0.9], "Crops: the loss went from 1.00 to 0.95 nats in 2 steps."),
    ],
)
def test_a_loss_that_is_not_known_is_not_called_learning(loss: list[float], said: str) -> None:
    assert point(replace(UNLABELLED, loss=np.array(loss)), label="") == said
