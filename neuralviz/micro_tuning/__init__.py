"""Micro-tuning as a stream of events, and neural embeddings. Loads torch only when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names
from neuralviz.micro_tuning.events import (
    MaskedPredictions,
    MicroTuning,
    TokenShares,
    TuningEvent,
    collect_result,
    neural_embeddings,
)
from neuralviz.micro_tuning.settings import (
    DEFAULT_BLUEPRINTS,
    Blueprint,
    TuningOptions,
    TuningSettings,
    check_blueprints,
    check_settings,
    mask_inputs,
    parse_blueprints,
)

if TYPE_CHECKING:
    from neuralviz.micro_tuning.loop import micro_tune
    from neuralviz.micro_tuning.predictions import predict_masked

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
    "collect_result",
    "mask_inputs",
    "micro_tune",
    "neural_embeddings",
    "parse_blueprints",
    "predict_masked",
]

__getattr__, __dir__ = lazy_names(__name__, loop="micro_tune", predictions="predict_masked")
