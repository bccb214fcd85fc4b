"""Micro-tuning as a stream of events, and the neural embedding that comes out of it.

Names are resolved when they are first used: blueprints need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuralviz.micro_tuning.blueprints import (
    DEFAULT_BLUEPRINTS,
    Blueprint,
    check_blueprints,
    mask_inputs,
    parse_blueprints,
)
from neuralviz.micro_tuning.events import (
    MicroTuning,
    TokenShares,
    TuningEvent,
    finished,
    neural_embeddings,
)
from neuralviz.micro_tuning.settings import TuningOptions, TuningSettings, check_settings

if TYPE_CHECKING:
    from neuralviz.micro_tuning.loop import micro_tune
    from neuralviz.micro_tuning.predictions import MaskedPredictions, predict_masked

__all__ = [
    "DEFAULT_BLUEPRINTS",
    "Blueprint",
    "MaskedPredictions",
    "MicroTuning",
    "TokenShares",
    "TuningEvent",
    "TuningOptions",
    "TuningSettings",
    "check_blueprints",
    "check_settings",
    "finished",
    "mask_inputs",
    "micro_tune",
    "neural_embeddings",
    "parse_blueprints",
    "predict_masked",
]

_NEEDS_TORCH = {
    "MaskedPredictions": "neuralviz.micro_tuning.predictions",
    "micro_tune": "neuralviz.micro_tuning.loop",
    "predict_masked": "neuralviz.micro_tuning.predictions",
}


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_TORCH:
        raise AttributeError(f"module 'neuralviz.micro_tuning' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_NEEDS_TORCH[name]), name)
