"""A text that kills its process is found by what earlier processes left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuralviz.cluster.worker import Attempt

BATCHES = [np.arange(0, 3), np.arange(3, 6), np.arange(6, 8)]
KILLER = 4


def killed_at(folder: Path, unit: bytes = b"unit", killer: int | None = KILLER) -> list[int] | None:
    """One process; the places that it embeds, in their order, or None where it is killed."""
    embedded: list[int] = []
    attempt = Attempt(folder, unit, BATCHES)
    deadly = attempt.deadly
    for some in attempt.parts():
        for place in np.concatenate(some).tolist():
            if place not in deadly:
                if place == killer:
                    return None
                embedded.append(place)
    attempt.close()
    return embedded


def test_the_text_is_found_and_all_others_are_embedded(tmp_path: Path) -> None:
    assert [killed_at(tmp_path) for _ in range(5)] == [None] * 5
    assert killed_at(tmp_path) == [0, 1, 2, 3, 5, 6, 7]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lost", [1, 2])
def test_processes_that_are_lost_with_their_machines_cost_no_text(tmp_path: Path, lost: int):
    for _ in range(lost):
        next(Attempt(tmp_path, b"unit", BATCHES).parts())
    assert killed_at(tmp_path, killer=None) == list(range(8))


def test_units_are_told_apart_and_a_run_that_is_over_is_none(tmp_path: Path) -> None:
    assert killed_at(tmp_path, b"one") is None
    assert killed_at(tmp_path, b"other", killer=None) == list(range(8))
    assert len(list(tmp_path.iterdir())) == 1
    assert killed_at(tmp_path / "gone", killer=None) == list(range(8))


def test_a_unit_that_fails_and_says_so_leaves_nothing_behind(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, b"unit", BATCHES)
    next(attempt.parts())
    attempt.close()
    assert not list(tmp_path.iterdir())
