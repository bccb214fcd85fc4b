"""What scored pairs measure on real data; needs the folder that NEURALVIZ_DATA names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from neuralviz.corpus.pairs import read_pairs
from neuralviz.evaluation.layer_pairs import measure_layers
from neuralviz.models import MINILM, load_text_model

if TYPE_CHECKING:
    from pathlib import Path

FILE = "stsb/test.csv"
PUBLISHED = 0.820  # Spearman's correlation of all-MiniLM-L6-v2


def test_the_last_layers_mean_has_the_published_correlation(data: Path) -> None:
    path = data / FILE
    if not path.is_file():
        pytest.skip(f"needs real data: there is no {FILE} in NEURALVIZ_DATA")
    pairs = read_pairs(path.name, path.read_bytes())
    assert len(pairs) == 1379
    *_, result = measure_layers(load_text_model(MINILM, device="cpu"), pairs)
    mean = result.by_layer["mean"][-1].correlation
    assert mean.n == 1379
    assert mean.spearman == pytest.approx(PUBLISHED, abs=0.001)
    assert mean.spearman > result.by_layer["mean"][0].correlation.spearman
