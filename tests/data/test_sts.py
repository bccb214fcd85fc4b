"""What scored pairs measure on real data; needs the folder that NEURALVIZ_DATA names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from neuralviz import cli

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FILE = "stsb/test.csv"
SPEARMAN = 0.820  # of all-MiniLM-L6-v2


def published(data: Path) -> Path:
    """The pairs on which the figures were published; the test is skipped where they are absent."""
    path = data / FILE
    if not path.is_file():
        pytest.skip(f"needs real data: there is no {FILE} in NEURALVIZ_DATA")
    return path


def test_evaluate_gives_the_published_figures(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    path = str(published(data))
    words = f"evaluate --method mean --measure all --json --data {path}".split()
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == 0, result.output
    mean = json.loads(result.stdout)["mean"]
    for name, expected in (("spearman", SPEARMAN), ("kendall_c", 0.638), ("kendall_b", 0.642)):
        assert mean[name] == pytest.approx(expected, abs=5e-4)
    assert (mean["pairs"]["wrong"], mean["pairs"]["total"]) == (7_216, 180_492)
    # the published 945 lies between: ties of sentences that are there twice, decided by rounding
    triplets = mean["triplets"]
    assert (triplets["wrong"], triplets["wrong_strict"]) == (957, 873)
    assert triplets["total"] == 455_624
