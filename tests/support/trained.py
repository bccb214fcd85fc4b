"""Encoders that are trained in a moment, and a corpus to train them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuralviz.models.shared import encoders_folder

if TYPE_CHECKING:
    from neuralviz.models import TextModel
    from neuralviz.training.record import Trained

NOUNS = "harbour gulls baker bread square market letter brother ship north children boats".split()
CORPUS = [f"The {n} is old. A {n} waits in the rain. Nobody reads the {n} twice." for n in NOUNS]
SHORT_SENTENCES: dict[str, Any] = {"sentences": 1, "shortest": 5, "longest": 400}


def train_briefly(model: TextModel, **options: Any) -> Trained:
    """What two steps give."""
    from neuralviz.training import TrainingEnded, train

    given = {"batch_size": 4, "max_steps": 2, "learning_rate": 0.01} | SHORT_SENTENCES | options
    (*_, ended) = train(model, CORPUS, **given)
    assert isinstance(ended, TrainingEnded)
    return ended.result


def save_trained(name: str, model: TextModel, **options: Any) -> Trained:
    """Train a model briefly and save the encoder under a name."""
    from neuralviz.training import save_encoder

    trained = train_briefly(model, **options)
    save_encoder(trained, model, encoders_folder() / name)
    return trained
