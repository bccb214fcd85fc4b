"""The duration that is said before a run, against what a run takes and against a plain count."""

from __future__ import annotations

import time

import pytest

from neuralviz.micro_tuning import duration
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.micro_tuning.watching import watch
from neuralviz.models import LanguageModel, bundled, tokenize
from neuralviz.models.bundled import text_reader
from neuralviz.models.language_model import head_layers, last_block_layers, list_layers

LONG = "The old harbour lies quiet in the morning, and only the gulls are awake. " * 24
LAYERS, VOCABULARY = list_layers(bundled.shapes(), "bert"), 30_522
HEAD = head_layers(LAYERS, VOCABULARY)


def estimate(text: str, layers: tuple[str, ...] = HEAD, **settings) -> float:
    texts = tokenize(text_reader(), [text])
    return duration.estimate_seconds(texts, TuningSettings(layers, **settings), LAYERS, VOCABULARY)


def test_the_work_is_that_of_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "measure_speed", lambda: 1.0)
    n = 9  # tokens of the text
    one, two = (estimate("cat " * n, epochs=epochs) for epochs in (1, 2))
    rows = 3 + 2 + 3 + 4  # of the default blueprints, which mask every token 7 times
    assert two - one == 7 * n * 384 * VOCABULARY * 2 * 2  # predicted, and the gradient there
    assert 2 * one - two == rows * n * 6 * 12 * 384**2 * 2  # through six blocks, once
    assert estimate("cat " * n, epochs=2, precision="fast") < two
    assert estimate("cat " * n, last_block_layers(LAYERS)) > estimate("cat " * n)


@pytest.mark.slow
def test_a_long_text_takes_about_as_long(bundled: LanguageModel) -> None:
    settings = TuningSettings(HEAD, epochs=2)
    start = time.perf_counter()
    list(watch(bundled, [LONG], settings))
    seconds = time.perf_counter() - start
    assert seconds / 3 < estimate(LONG, epochs=2) < 3 * seconds
