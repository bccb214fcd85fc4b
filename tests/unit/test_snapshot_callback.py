"""Snapshots of trainings by sentence-transformers' own Trainer, and the folders they lie in."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from neuralviz.errors import NeuralvizError
from neuralviz.models import LanguageModel
from neuralviz.plots.training import smooth
from neuralviz.training import SnapshotCallback, Watch, read_folder, record
from neuralviz.training.callback import MOST_SNAPSHOTS, _Layers
from neuralviz.training.record import RECORDING_FORMAT
from tests.support.models import SENTENCES
from tests.support.trained import CORPUS, save_trained

LABELS = ["odd" if i % 2 else "even" for i in range(12)]
needs_trainer = pytest.mark.skipif(
    find_spec("accelerate") is None or find_spec("datasets") is None,
    reason="sentence-transformers' Trainer needs the packages accelerate and datasets",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    return tmp_path


def encoder(tiny: LanguageModel, home: Path) -> SentenceTransformer:
    save_trained("mine", tiny)
    return SentenceTransformer(str(home / "home" / "encoders" / "mine"), device="cpu")


def state(step: int, steps: int = 6) -> Any:
    return SimpleNamespace(global_step=step, max_steps=steps, is_world_process_zero=True)


def driven(callback: SnapshotCallback, model: Any, *, first: int = 0, steps: int = 6) -> None:
    """As the Trainer would call it: a log every two steps."""
    callback.on_train_begin(None, state(first, steps), None, model=model)
    for step in range(first + 1, steps + 1):
        if step % 2 == 0:
            logs = {"loss": 1 / step, "learning_rate": 1e-3}
            callback.on_log(None, state(step, steps), None, logs=logs)
        callback.on_step_end(None, state(step, steps), None, model=model)
    callback.on_train_end(None, state(steps, steps), None, model=model)


@pytest.mark.parametrize(
    ("part", "pooling", "n_layers"),
    [("model", "mean", 4), ("model", "sep", 4), ("table", "mean", 1)],
)
def test_layers_are_those_of_our_own_snapshots_and_the_last_is_the_encoders(
    tiny: LanguageModel, home: Path, part: str, pooling: str, n_layers: int
) -> None:
    trained = save_trained("mine", tiny, part=part, pooling=pooling)
    theirs = SentenceTransformer(str(home / "home" / "encoders" / "mine"), device="cpu")
    theirs.train()
    texts = [*CORPUS, *SENTENCES]
    layers = _Layers(theirs).of_layers(texts)
    assert theirs.training
    assert len(layers) == n_layers
    np.testing.assert_allclose(layers[-1], theirs.eval().encode(texts), atol=1e-5)
    ours = trained.learner.of_layers(texts, is_whole=False)
    np.testing.assert_allclose(np.stack(layers), ours, atol=1e-5)


def test_a_training_is_recorded_as_it_goes_on(tiny: LanguageModel, home: Path) -> None:
    model = encoder(tiny, home)
    callback = SnapshotCallback(
        home / "runs" / "one", CORPUS, LABELS, every_steps=2, n_texts=10, pairs="dropout"
    )
    callback.on_train_begin(None, state(0), None, model=model)
    other = state(4)
    other.is_world_process_zero = False
    callback.on_train_end(None, other, None, model=None)  # of another process
    begun = read_folder(home / "runs" / "one")
    assert (begun.lesson.step, begun.lesson.steps, begun.lesson.is_over) == (0, 6, False)
    assert len(begun.lesson.snapshots[0].nearest) == 10

    driven(SnapshotCallback(home / "two", CORPUS, LABELS, every_steps=2, n_texts=10), model)
    lesson = read_folder(home / "two").lesson
    assert lesson.is_over
    assert [one.step for one in lesson.snapshots] == [0, 2, 4, 6]
    assert lesson.accuracy.shape == (4, 4)
    np.testing.assert_allclose(lesson.loss, [1 / 2, 1 / 2, 1 / 4, 1 / 4, 1 / 6, 1 / 6])
    assert begun.lesson.settings.pairs == "dropout"
    ours = Watch(CORPUS, LABELS, n_texts=10).look(_Layers(model), 0)
    np.testing.assert_array_equal(lesson.snapshots[0].accuracy, ours.accuracy)
    np.testing.assert_array_equal(lesson.snapshots[0].nearest, ours.nearest)
    assert [path.name for path in (home / "two").iterdir()] == ["training.npz"]


def test_snapshots_thin_out_where_there_are_many(tiny: LanguageModel, home: Path) -> None:
    callback = SnapshotCallback(home / "run", CORPUS, every_steps=1)
    driven(callback, encoder(tiny, home), steps=100)
    steps = [one.step for one in read_folder(home / "run").lesson.snapshots]
    assert steps[0] == 0
    assert steps[-1] == 100
    assert MOST_SNAPSHOTS / 2 <= len(steps) <= MOST_SNAPSHOTS
    assert steps == sorted(set(steps))


def test_a_training_that_goes_on_from_a_checkpoint_keeps_what_was_recorded(
    tiny: LanguageModel, home: Path
) -> None:
    model = encoder(tiny, home)
    driven(SnapshotCallback(home / "run", CORPUS, LABELS, every_steps=2), model)
    driven(SnapshotCallback(home / "run", CORPUS, LABELS, every_steps=2), model, first=4, steps=8)
    lesson = read_folder(home / "run").lesson
    assert (lesson.step, lesson.steps, lesson.is_over) == (8, 8, True)
    assert [one.step for one in lesson.snapshots] == [0, 2, 4, 6, 8]
    driven(SnapshotCallback(home / "other", CORPUS), model, first=4)
    lesson = read_folder(home / "other").lesson
    assert np.isnan(lesson.loss).tolist() == [True] * 4 + [False] * 2
    np.testing.assert_allclose(smooth(lesson.loss)[4:], 1 / 6)
    upper = [text.upper() for text in CORPUS]
    for texts, labels, first in ((CORPUS, LABELS, 0), (upper, LABELS, 4), (CORPUS, None, 4)):
        with pytest.raises(NeuralvizError, match="snapshots of another training"):
            driven(SnapshotCallback(home / "run", texts, labels), model, first=first)
    assert read_folder(home / "run").lesson.step == 8


def test_a_folder_that_cannot_be_written_is_warned_of(tiny: LanguageModel, home: Path) -> None:
    (home / "file").write_text("")
    with pytest.warns(UserWarning, match="Could not write .* The training goes on"):
        driven(SnapshotCallback(home / "file" / "run", CORPUS), encoder(tiny, home))


def test_what_cannot_be_watched_is_refused_before_the_training(home: Path) -> None:
    with pytest.raises(NeuralvizError, match="5 labels for 12 texts"):
        SnapshotCallback(home / "run", CORPUS, LABELS[:5])
    with pytest.raises(NeuralvizError, match="at least two texts"):
        SnapshotCallback(home / "run", CORPUS[:1])


def test_an_encoder_that_gives_no_numbers_any_more_is_warned_of_and_trained_on(
    tiny: LanguageModel, home: Path
) -> None:
    model = encoder(tiny, home)
    callback = SnapshotCallback(home / "run", CORPUS, LABELS, every_steps=2)
    callback.on_train_begin(None, state(0), None, model=model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    with pytest.warns(UserWarning, match="outputs infinite or NaN values. The training goes on"):
        for step in (2, 4):
            callback.on_step_end(None, state(step), None, model=model)
        callback.on_train_end(None, state(6), None, model=model)
    lesson = read_folder(home / "run").lesson
    assert (lesson.is_over, [one.step for one in lesson.snapshots]) == (True, [0])


def test_what_is_no_folder_of_snapshots_is_said(tiny: LanguageModel, home: Path) -> None:
    def said(path: Path | str) -> str:
        with pytest.raises(NeuralvizError) as caught:
            read_folder(path)
        return str(caught.value)

    folder = home / "run"
    assert "holds no snapshots" in said(folder)
    folder.mkdir()
    (folder / "training.npz").write_bytes(b"PK nonsense")
    assert "damaged" in said(folder)
    good = home / "good"
    driven(SnapshotCallback(good, CORPUS, [0, 1] * 6), encoder(tiny, home))
    recorded = read_folder(good)
    (good / "training.npz").write_bytes(RECORDING_FORMAT.pack(replace(recorded, lesson=None)))
    assert "damaged" in said(good)


def test_what_unpacks_to_too_much_is_not_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_BYTES", 10_000)
    with zipfile.ZipFile(home / "training.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.npy", b"\0" * 1_000_000)
    with pytest.raises(NeuralvizError, match="too large"):
        read_folder(home)


@needs_trainer
def test_with_the_real_trainer_it_changes_nothing_and_can_be_read_meanwhile(
    tiny: LanguageModel, home: Path
) -> None:
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    save_trained("mine", tiny)
    pairs = Dataset.from_dict({"anchor": CORPUS, "positive": CORPUS[1:] + CORPUS[:1]})
    meanwhile: list[int] = []

    class Look(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            meanwhile.append(read_folder(home / "run").lesson.step)

    def trained(name: str, *callbacks: TrainerCallback) -> dict[str, torch.Tensor]:
        model = SentenceTransformer(str(home / "home" / "encoders" / "mine"), device="cpu")
        settings = SentenceTransformerTrainingArguments(
            str(home / name), num_train_epochs=2, per_device_train_batch_size=4, logging_steps=1,
            learning_rate=1e-3, save_strategy="no", report_to="none", use_cpu=True, seed=3,
            disable_tqdm=True,
        )  # fmt: skip
        SentenceTransformerTrainer(
            model=model, args=settings, train_dataset=pairs, callbacks=list(callbacks),
            loss=MultipleNegativesRankingLoss(model),
        ).train()  # fmt: skip
        return model.state_dict()

    alone = trained("alone")
    watched = trained(
        "watched", SnapshotCallback(home / "run", CORPUS, LABELS, every_steps=2), Look()
    )
    assert all(torch.equal(alone[name], watched[name]) for name in alone)
    lesson = read_folder(home / "run").lesson
    assert lesson.is_over
    assert (lesson.step, [one.step for one in lesson.snapshots]) == (6, [0, 2, 4, 6])
    assert np.isfinite(lesson.loss).all()
    assert len(meanwhile) == 6
    assert not np.array_equal(lesson.snapshots[0].nearest, lesson.snapshots[-1].nearest)
