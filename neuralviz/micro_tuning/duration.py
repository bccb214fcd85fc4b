"""About how long micro-tuning takes on this machine, before it is started. No torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from statistics import median

import numpy as np

from neuralviz.micro_tuning.settings import TuningSettings, count_masked
from neuralviz.models.language_model import Layer, head_layers
from neuralviz.models.tokens import TokenizedText

EFFICIENCY = 0.5  # of the speed of a large matrix product
FAST_EPOCH = 0.15  # work relative to an exact epoch, after the first
WEIGHTS_OF_BLOCK = 12  # times the squared width: attention, and a feed-forward network 4 as wide
SIZES = 256, 384, 8192  # of the product that is timed


def estimate_seconds(
    texts: Sequence[TokenizedText],
    settings: TuningSettings,
    layers: Sequence[Layer],  # all of the model's
    vocab_size: int,
) -> float:
    """Seconds for all epochs of all texts on the CPU, from the products that they need."""
    width = median(layer.size for layer in layers)
    blocks = [layer.block for layer in layers if layer.block is not None]
    masked = sum(count_masked(text, settings) for text in texts)
    n_inputs = 1 if settings.predict_unmasked else sum(b.period for b in settings.blueprints)
    tokens = sum(map(len, texts)) * n_inputs
    exact_epochs = 1 + (settings.epochs - 1) * (FAST_EPOCH if settings.is_fast else 1)
    # a product takes two operations a weight, and as many for the gradient at its inputs
    output = 4 * masked * width * vocab_size * exact_epochs
    passes = 2 * tokens * WEIGHTS_OF_BLOCK * width**2
    head = head_layers(layers, vocab_size)
    depth = max(blocks, default=0) + 1
    lowest = min(
        (layer.block or 0 for layer in layers if layer.name in {*settings.layers} - {*head}),
        default=depth,
    )
    # the frozen blocks once, the others forwards and backwards in every epoch
    n_blocks = lowest + 3 * (depth - lowest) * settings.epochs
    return (output + passes * n_blocks) / measure_speed()


@cache
def measure_speed() -> float:
    """Operations a second of micro-tuning on this machine, as of a matrix product now."""
    n, width, n_columns = SIZES
    first, second = (np.ones(shape, np.float32) for shape in ((n, width), (width, n_columns)))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        first @ second
        seconds.append(time.perf_counter() - start)
    return EFFICIENCY * 2 * n * width * n_columns / min(seconds)
