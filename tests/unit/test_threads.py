"""Embeddings do not depend on the number of threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EMBED = """
import sys
import numpy as np
import torch
import neuralviz

torch.set_num_threads(int(sys.argv[1]))
model = neuralviz.load_model("bundled")
texts = [
    f"The {who} {did} in winter, and {whom} noticed {n} times."
    for n, who in enumerate(("river", "baker", "dog", "storm", "choir", "pilot"))
    for did in ("slept", "fell", "opened")
    for whom in ("nobody", "the town", "a neighbour")
]
vectors = neuralviz.NeuralEmbedder(model, epochs=5, precision="fast").encode(texts)
np.save(sys.argv[2], vectors)
"""


@pytest.mark.slow
def test_neural_embeddings_are_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    found = []
    for threads in (1, 2, 3):
        file = tmp_path / f"{threads}.npy"
        subprocess.run([sys.executable, "-c", EMBED, str(threads), str(file)], check=True)
        found.append(np.load(file))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
