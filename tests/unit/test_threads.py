"""Threads: embeddings do not depend on their number, and those that wait let others work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuralviz.native_libraries import WAITING

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
    for whom in ("nobody",)
]
vectors = neuralviz.NeuralEmbedder(model, epochs=5, precision="fast").encode(texts)
np.save(sys.argv[2], vectors)
"""


@pytest.mark.slow
def test_neural_embeddings_are_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    found = []
    for threads in (1, 3):
        file = tmp_path / f"{threads}.npy"
        subprocess.run([sys.executable, "-c", EMBED, str(threads), str(file)], check=True)
        found.append(np.load(file))
    np.testing.assert_array_equal(*found)


needs_libgomp = pytest.mark.skipif(sys.platform != "linux", reason="Needs GCC's OpenMP runtime.")
ON_LINUX = {"OMP_DISPLAY_ENV": "verbose"}  # the runtime says what it has read


def unset(**said: str) -> dict[str, str]:
    """The environment of a user who has said this of how threads wait, and nothing else."""
    return {name: it for name, it in os.environ.items() if name not in WAITING} | said


def spin_counts(imports: str, **said: str) -> list[str]:
    """How long the threads of each OpenMP runtime spin that a process with these imports loads."""
    done = subprocess.run(
        [sys.executable, "-c", imports],
        env=unset(**ON_LINUX, **said),
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)


@pytest.mark.slow
@needs_libgomp
def test_threads_that_wait_soon_sleep() -> None:
    counts = spin_counts("from neuralviz.cli import main; import sklearn.cluster, torch")
    assert len(counts) >= 2  # torch's runtime, and scikit-learn's own
    assert set(counts) == {"1000"}


@pytest.mark.sweep(1)
@needs_libgomp
@pytest.mark.parametrize(
    ("said", "count"),
    [
        ({"GOMP_SPINCOUNT": "77"}, "77"),
        ({"OMP_WAIT_POLICY": "passive"}, "0"),
        ({"KMP_BLOCKTIME": "200"}, "300000"),  # the runtime's own
    ],
)
def test_what_the_user_says_of_waiting_threads_stays(said: dict[str, str], count: str) -> None:
    assert set(spin_counts("import neuralviz, sklearn.utils._openmp_helpers", **said)) == {count}
