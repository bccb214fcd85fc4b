"""How a ladder of similarity models is kept in a file; loads no torch."""

from __future__ import annotations

from neuralviz.arrays import RecordFormat
from neuralviz.evaluation.ladder_events import (
    Baseline,
    Curve,
    FeatureProgress,
    Ladder,
    LayerCosines,
    RungResult,
    TestPairs,
)
from neuralviz.reading.scales import Scale
from neuralviz.training.similarity.events import SimilarityEnded
from neuralviz.training.similarity.settings import SimilaritySettings

LADDER_FORMAT = RecordFormat(
    "a ladder",
    version=4,
    classes=(
        Baseline, Curve, FeatureProgress, Ladder, LayerCosines, RungResult, Scale,
        SimilarityEnded, SimilaritySettings, TestPairs,
    ),
)  # fmt: skip
