"""A folder of snapshots on the training page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.training.folders import write_lesson, write_texts
from neuralviz.training.record import Lesson, SnapshotRecord
from neuralviz.training.settings import TrainingSettings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def page() -> AppTest:
    def alone() -> None:
        from neuralviz.ui.training.snapshot_folder import open_folder

        open_folder()

    return AppTest.from_function(alone, default_timeout=60).run()


def recorded(folder: Path, steps: int = 20) -> Lesson:
    snapshots = tuple(
        SnapshotRecord(
            step, np.array([0.2, 0.3, share]), np.arange(8) < 8 * share, np.zeros((8, 7), int)
        )
        for step, share in ((0, 0.25), (10, 0.5), (20, 0.75))
    )
    curve = np.linspace(2, 1, steps)
    lesson = Lesson(
        TrainingSettings(), steps=40, loss=curve, learning_rate=curve, alignment=curve,
        uniformity=curve, snapshots=snapshots,
    )  # fmt: skip
    write_texts(folder, [f"text {i}" for i in range(8)], ["a", "b"] * 4, "someone/encoder")
    write_lesson(folder, lesson)
    return lesson


def opened(page: AppTest, folder: str) -> AppTest:
    page.text_input(key="training-folder").set_value(folder)
    return page.button(key="training-folder-open").click().run()


def said(page: AppTest) -> str:
    kinds = (page.error, page.info, page.caption, page.markdown)
    return " ".join(element.value for kind in kinds for element in kind)


def test_a_training_is_looked_at_while_it_runs_and_again(page: AppTest, tmp_path: Path) -> None:
    lesson = recorded(tmp_path / "run")
    opened(page, str(tmp_path / "run"))
    assert not page.exception
    assert "of 75.0% of 8 texts, against 25.0%" in said(page)
    assert "20 steps of 40, so far; 3 snapshots of 8 texts." in said(page)
    assert len(page.get("bidi_component")) == 3
    write_lesson(tmp_path / "run", replace(lesson, is_over=True))
    page.run()
    assert "so far" in said(page)  # what was opened stays until it is opened again
    page.button(key="training-folder-open").click().run()
    assert "20 steps of 40, finished" in said(page)


def test_what_cannot_be_opened_is_said(page: AppTest, tmp_path: Path) -> None:
    assert "Enter the path of a folder first." in said(opened(page, " "))
    assert "No such folder" in said(opened(page, str(tmp_path / "nowhere")))
    assert "holds no snapshots yet" in said(opened(page, str(tmp_path)))
    assert not page.exception
