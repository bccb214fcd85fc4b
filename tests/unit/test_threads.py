"""Threads: embeddings do not depend on their number, and those that wait let others work."""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest
import torch

from neuralviz import NeuralEmbedder
from neuralviz.models import LanguageModel
from neuralviz.native_libraries import OPENBLAS_SPIN, WAITING, count_cores
from tests.support.waiting import run_python


@pytest.mark.slow
def test_neural_embeddings_are_the_same_for_any_number_of_threads(bundled: LanguageModel) -> None:
    texts = [f"The {who} slept in winter, and nobody noticed." for who in ("river", "dog", "choir")]
    found = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        found.append(NeuralEmbedder(bundled, epochs=2, precision="fast").encode(texts))
    np.testing.assert_array_equal(*found)


THREADS = (*WAITING, *OPENBLAS_SPIN, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
needs_libgomp = pytest.mark.skipif(sys.platform != "linux", reason="Needs GCC's OpenMP runtime.")


def spin_counts(imports: str, **said: str) -> list[str]:
    """How long the threads of each OpenMP runtime spin, as a new process says."""
    unset = {name: it for name, it in os.environ.items() if name not in WAITING}
    done = run_python(imports, env={**unset, "OMP_DISPLAY_ENV": "verbose", **said})
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


IDLE = """
import {first}numpy, time
square = numpy.ones((400, 400), numpy.float32)
square @ square
start = time.process_time()
for _ in range(10):
    square @ square
    time.sleep(0.05)
print(time.process_time() - start)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    "openblas" not in str(np.show_config("dicts")) or count_cores() < 2,
    reason="Needs NumPy with OpenBLAS, and two cores.",
)
def test_threads_of_matrix_products_soon_sleep() -> None:
    env = {name: it for name, it in os.environ.items() if name not in THREADS}
    ratios = []
    for _ in range(3):  # of a machine that may be busy
        ours, default = (
            float(run_python(IDLE.format(first=first), env=env).stdout)
            for first in ("neuralviz, ", "")
        )
        ratios.append(ours / default)
    assert min(ratios) < 0.6
