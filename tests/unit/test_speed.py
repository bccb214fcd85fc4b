"""What exact and fast save, as ratios of processor time in one run, whatever else is running."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import pytest

from neuralviz.embedders import NeuralEmbedder
from neuralviz.models import LanguageModel
from tests.support.models import SENTENCES
from tests.support.plain_loop import plain_micro_tune
from tests.support.waiting import run_python

EPOCHS = 6
ROUNDS = 3
SHORT = tuple(" ".join(sentence.split()[:8]) for sentence in SENTENCES[:4])

pytestmark = pytest.mark.slow


def throughputs(runners: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Texts a second of each runner, given with its number of texts: the median of their turns.

    They take turns, so that what slows the machine down slows all of them down.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(ROUNDS):
        for name, (run, _) in runners.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return {name: n_texts / median(seconds[name]) for name, (_, n_texts) in runners.items()}


def plainly(model: LanguageModel, texts: tuple[str, ...]) -> None:
    for text in texts:
        ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        plain_micro_tune(model.network, model.tokenizer, [ids], model.head_layers, epochs=EPOCHS)


@pytest.fixture(scope="module")
def speeds(bundled: LanguageModel) -> dict[str, float]:
    runners: dict[str, tuple[Callable[[], object], int]] = {
        "plain": (lambda: plainly(bundled, SHORT[:1]), 1)
    }
    for precision in ("exact", "fast"):
        embedder = NeuralEmbedder(bundled, epochs=EPOCHS, precision=precision)
        embedder.encode(list(SHORT[:2]))  # what is made once a model
        runners[precision] = (lambda e=embedder: e.encode(list(SHORT)), len(SHORT))
    return throughputs(runners)


def test_exact_is_faster_than_the_plain_loop(speeds: dict[str, float]) -> None:
    assert speeds["exact"] >= 1.5 * speeds["plain"]


def test_fast_is_faster_than_exact(speeds: dict[str, float]) -> None:
    assert speeds["fast"] >= 2 * speeds["exact"]


PROGRAM = """
import sys
import torch
from neuralviz.embedders import NeuralEmbedder
from tests.support.memory import peak_memory
from tests.support.models import random_model

torch.set_num_threads(1)
n_texts = int(sys.argv[1])
model = random_model("bert", vocab=8000, width=128, n_blocks=1, spread=0.1, seed=0)
embedder = NeuralEmbedder(model, epochs=2, precision="fast")
texts = [" ".join(f"w{i * j % 7900}" for j in range(1, 9)) for i in range(1, 1 + n_texts)]
embedder.encode(texts[:40], batch_size=n_texts)
before = peak_memory()
embedder.encode(texts, batch_size=n_texts)
print(peak_memory() - before)
"""


def test_memory_does_not_grow_with_the_number_of_texts() -> None:
    """What fast keeps of 400 texts, all at once, would be above 100 MB."""
    done = run_python(PROGRAM, 400)
    assert int(done.stdout.split()[-1]) < 60e6  # bytes beyond the peak with 40 texts
