"""What scored pairs measure on real data; needs the folder that NEURALVIZ_DATA names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

from neuralviz import cli
from neuralviz.embedders import make_embedder
from neuralviz.embedders.registry import LOADERS
from neuralviz.evaluation.correlation import correlate
from neuralviz.evaluation.layer_pairs import measure_layers
from neuralviz.models import MINILM, load_text_model
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FILE = "stsb/test.csv"
SOME = 200  # pairs measured at every layer


def test_published_figures_come_out_and_the_last_layer_has_them(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data / FILE
    if not path.is_file():
        pytest.skip(f"needs real data: there is no {FILE} in NEURALVIZ_DATA")
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    words = ["evaluate", "--data", str(path), "--method", "mean", "--measure", "all", "--json"]
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == 0, result.output
    mean = json.loads(result.stdout)["mean"]
    for name, expected in (("spearman", 0.820), ("kendall_c", 0.638), ("kendall_b", 0.642)):
        assert mean[name] == pytest.approx(expected, abs=5e-4)
    assert (mean["pairs"]["wrong"], mean["pairs"]["total"]) == (7_216, 180_492)
    # the published 945 lies between: ties of sentences that are there twice, decided by rounding
    triplets = mean["triplets"]
    assert (triplets["wrong"], triplets["wrong_strict"]) == (957, 873)
    assert triplets["total"] == 455_624

    # the layers' measure of the same method gives the same
    pairs = read_pairs(Source.at(path))
    assert len(pairs) == 1379
    some = pairs.first(SOME)
    model = load_text_model(MINILM, device="cpu")
    *_, measured = measure_layers(model, some)
    last = measured.by_layer["mean"][-1].correlation
    texts = [*some.sentences1, *some.sentences2]
    embedder = make_embedder("mean", {**LOADERS, "text": lambda _: model})
    vectors = embedder.encode(texts).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    products = (vectors[:SOME] * vectors[SOME:]).sum(axis=1)
    assert last.n == SOME
    assert last.spearman == pytest.approx(correlate(products, some.scores).spearman, abs=1e-4)
    assert last.spearman > measured.by_layer["mean"][0].correlation.spearman
