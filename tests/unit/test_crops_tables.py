"""Tables of trainings: their rows, how they are filled, stopped and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.crops_tables import (
    TRAINING_TABLES,
    RowProgress,
    TrainingCell,
    TrainingRow,
    fill_table,
    knn_by_space,
    main,
    training_frame,
    training_numbers,
    training_table,
)
from neuralviz import training
from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.models import LanguageModel
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.learner import make_learner
from neuralviz.training.settings import TrainingSettings
from tests.support.trained import CORPUS, NOUNS, SHORT_SENTENCES

TEXTS = CORPUS + [f"We sell the {n}. She buys a {n} in town. All pay for the {n}." for n in NOUNS]
LABELS = ["waits"] * 12 + ["trade"] * 12
FEW = TrainingSettings(**SHORT_SENTENCES, batch_size=8, epochs=2, learning_rate=1e-3)


def cells_of(model: LanguageModel, folder: Path, **options: Any) -> list[TrainingCell]:
    rows = options.pop("rows", TRAINING_TABLES["layers"].rows(FEW, model.n_blocks))
    events = fill_table(rows, model, TEXTS, LABELS, folder=folder, **options)
    return [event for event in events if isinstance(event, TrainingCell)]


def same(first: TrainingCell, second: TrainingCell) -> bool:
    names = ("row", "seed", "steps", "layers", "epochs", "spaces", "diverged")
    return all(getattr(first, name) == getattr(second, name) for name in names)


def test_rows_of_a_table_are_told_apart_and_their_settings_make_sense() -> None:
    for table in TRAINING_TABLES.values():
        rows = table.rows(TrainingSettings(), 3)
        labels = [row.label for row in rows]
        assert len(set(labels)) == len(labels) > 1
        ways = [(row.settings, row.is_trained, row.unseen) for row in rows]
        assert len(set(ways)) == len(ways)


def test_a_random_table_knows_nothing_of_the_pretrained_one(tiny: LanguageModel) -> None:
    rows = {row.label: row for row in TRAINING_TABLES["starts"].rows(FEW, tiny.n_blocks)}
    own = tiny.network.get_input_embeddings().weight.detach()
    for label, is_own in (("table alone, before", False), ("pretrained table alone, before", True)):
        table = make_learner(tiny, rows[label].settings).table.weight.detach()
        assert torch.equal(table, own) == is_own
        correlation = np.corrcoef(table.flatten(), own.flatten())[0, 1]
        assert abs(correlation) < 0.05 or is_own


def test_a_table_has_every_seed_and_what_is_not_trained_once(
    tiny: LanguageModel, tmp_path: Path
) -> None:
    cells = cells_of(tiny, tmp_path, seeds=(1, 2))
    assert [(cell.row, cell.seed) for cell in cells] == [
        ("before", 1), ("crops", 1), ("dropout", 1), ("crops", 2), ("dropout", 2)
    ]  # fmt: skip
    before, crops, *_ = cells
    assert (before.steps, crops.steps) == (0, 6)
    assert len(before.layers) == len(crops.layers) == tiny.n_blocks + 1
    assert len(crops.epochs) == 3
    assert crops.epochs[0] == before.layers[-1]
    assert crops.epochs[-1] == crops.layers[-1]
    assert {"raw euclidean", "centred cosine", "whitened cosine"} < set(crops.spaces)
    assert not same(cells[1], cells[3])


def test_a_stopped_table_goes_on_where_it_was_and_ends_alike(
    tiny: LanguageModel, tmp_path: Path
) -> None:
    whole = cells_of(tiny, tmp_path / "whole", seeds=(1,))

    found: list[Any] = []

    def in_the_middle() -> bool:
        return any(isinstance(one, RowProgress) and one.step == 3 for one in found)

    with pytest.raises(Stopped):
        for event in fill_table(
            TRAINING_TABLES["layers"].rows(FEW, tiny.n_blocks), tiny, TEXTS, LABELS,
            seeds=(1,), folder=tmp_path / "parts", should_stop=in_the_middle,
        ):  # fmt: skip
            found.append(event)
    assert [one.row for one in found if isinstance(one, TrainingCell)] == ["before"]

    rows = TRAINING_TABLES["layers"].rows(FEW, tiny.n_blocks)
    again = list(fill_table(rows, tiny, TEXTS, LABELS, seeds=(1,), folder=tmp_path / "parts"))
    cells = [event for event in again if isinstance(event, TrainingCell)]
    assert all(same(one, other) for one, other in zip(cells, whole, strict=True))
    steps_made = [event.step for event in again if isinstance(event, RowProgress) and event.steps]
    assert steps_made == [4, 5, 6, *range(7)]  # of crops, and of dropout

    third = list(fill_table(rows, tiny, TEXTS, LABELS, seeds=(1,), folder=tmp_path / "parts"))
    assert all(isinstance(event, TrainingCell) for event in third)  # nothing is done again
    assert not [path for path in (tmp_path / "parts").iterdir() if path.is_dir()]


def test_a_broken_file_is_made_anew(tiny: LanguageModel, tmp_path: Path) -> None:
    rows = (TrainingRow("before", FEW, is_trained=False),)
    (first,) = cells_of(tiny, tmp_path, rows=rows)
    (path,) = tmp_path.glob("*.npz")
    path.write_text("[]")
    (again,) = cells_of(tiny, tmp_path, rows=rows)
    assert same(first, again)


def test_texts_that_are_tested_unseen_make_no_pairs(
    tiny: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained_on: list[list[str]] = []

    def noting(model: LanguageModel, texts: list[str], *arguments: Any, **options: Any) -> Any:
        trained_on.append(texts)
        return train(model, texts, *arguments, **options)

    train = training.train
    monkeypatch.setattr(training, "train", noting)
    rows = (TrainingRow("seen", FEW), TrainingRow("unseen", FEW, unseen=True))
    twice = [*TEXTS, *TEXTS]  # what is tested is there once more
    labels = [*LABELS, *[""] * len(TEXTS)]
    list(fill_table(rows, tiny, twice, labels, seeds=(1,), folder=tmp_path))
    seen, unseen = trained_on
    assert seen == twice
    assert len(unseen) == 2 * (24 - 3)
    assert len(set(unseen)) == 24 - 3


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a"] * 24, "at least two different labels"),
        ([""] * 20 + ["a", "b"] * 2, "20 different texts"),
        ([f"{n}.5" for n in range(24)], "All 24 labels are different, as ids or measurements are"),
    ],
)
def test_too_few_labels_are_refused(
    tiny: LanguageModel, tmp_path: Path, labels: list[str], said: str
) -> None:
    with pytest.raises(NeuralvizError, match=said):
        next(fill_table([TrainingRow("x", FEW)], tiny, TEXTS, labels, folder=tmp_path))


def test_nearness_in_every_space_by_hand() -> None:
    draw = np.random.default_rng(0)
    labels = np.array(["up", "down"] * 30)
    vectors = draw.normal(size=(60, 4)) + np.array([100.0, 0, 0, 0])  # all lie far to one side
    vectors[:, 1] = np.where(labels == "up", 0.05, -0.05)
    vectors[:, 2:] *= 10
    tested = np.arange(60) < 12
    found = knn_by_space(vectors, labels, tested)
    assert found["whitened euclidean"] > max(found["raw euclidean"], found["raw cosine"])
    assert found["centred euclidean"] == found["raw euclidean"]


CELLS = [
    TrainingCell("before", 1, 0, 0.0, False, (0.2, 0.3), (0.3,), {"raw cosine": 0.25}),
    TrainingCell("crops", 1, 6, 10.0, False, (0.2, 0.4), (0.3, None, 0.4), {"raw cosine": 0.5}),
    TrainingCell("crops", 2, 6, 20.0, False, (0.3, 0.5), (0.3, 0.45, 0.5), {"raw cosine": 0.4}),
]


def test_tables_give_the_mean_and_the_range_of_the_seeds() -> None:
    frame = training_frame(training_table("pairs"), CELLS)
    assert frame.to_dict("list") == {
        "row": ["before", "crops"],
        "last layer": ["30.0", "45.0 (40.0 … 50.0)"],
        "best layer": ["30.0", "45.0 (40.0 … 50.0)"],
        "steps": ["0", "6"],
        "seconds": ["0", "15"],
    }
    epochs = training_frame(training_table("epochs"), CELLS[1:2])
    assert epochs[["before", "epoch 1", "epoch 2"]].iloc[0].tolist() == ["30.0", "–", "40.0"]
    layers = training_numbers(training_table("layers"), CELLS)
    assert layers["layer 1"].tolist() == [0.3, 0.4, 0.5]
    assert layers["seed"].tolist() == [1, 1, 2]
    assert training_frame(training_table("spaces"), CELLS)["raw cosine"].tolist() == [
        "25.0", "45.0 (40.0 … 50.0)"
    ]  # fmt: skip


def test_the_command_fills_a_table_and_writes_numbers(
    bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    CorpusStore().add("town", ReadTexts(tuple(TEXTS), labels={"what": tuple(LABELS)}))

    def fill(*words: str) -> None:
        command = ["crops_tables.py", "pairs", "--corpus", "town", "--labels", "what"]
        options = ["--seeds", "1", "--model", str(bert_folder)]
        monkeypatch.setattr("sys.argv", [*command, *options, *words])
        main()

    file = tmp_path / "table.csv"
    with pytest.raises(SystemExit, match="sentences of 100 to 250 characters"):
        fill("-o", str(file))
    assert not file.exists()

    fill("--sentences", "1", "--shortest", "5", "--longest", "400", "-o", str(file))
    rows = [row.label for row in training_table("pairs").rows(FEW, 3)]
    assert pd.read_csv(file)["row"].tolist() == rows
    assert capsys.readouterr().out.startswith("| row | last layer | best layer | steps | seconds |")
