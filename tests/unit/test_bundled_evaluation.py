"""The script that measures the bundled model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from bundled_model import evaluate
from neuralviz.models import bundled

if TYPE_CHECKING:
    from pathlib import Path


def test_what_each_file_of_weights_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.safetensors"
    other.write_bytes(bundled.WEIGHTS.read_bytes())
    asked = ["evaluate.py", "--only", "cost", "--weights", str(bundled.WEIGHTS), str(other)]
    monkeypatch.setattr(sys, "argv", asked)
    monkeypatch.setattr(evaluate, "TURNS", 1)
    monkeypatch.delenv("NEURALVIZ_DATA", raising=False)  # not needed
    evaluate.main()
    _, head, _, size, *times = capsys.readouterr().out.splitlines()
    assert head == f"| cost | {bundled.WEIGHTS} | {other} |"
    megabytes = f"{bundled.WEIGHTS.stat().st_size / 1e6:.2f}"
    assert size == f"| MB of the file | {megabytes} | {megabytes} |"
    assert len(times) == 2
    for line in times:
        assert all(float(cell) > 0 for cell in line.split("|")[2:4])
