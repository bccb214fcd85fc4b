"""The description of a micro-tuning run in the files that are downloaded of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.headlines.micro_tuning import describe_progress
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.plots.micro_tuning import short_layer_names
from neuralviz.plots.standalone import About
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.micro_tuning.record import RunRecord


def describe_run(record: RunRecord, text: int = 0) -> About:
    """The description of a run for its figures and tables.

    Args:
        record: of the run.
        text: index of the text in view, after which files are named; the first for all texts.
    """
    settings = record.settings
    masking = "none: every token is predicted"
    if not settings.predict_unmasked:
        masking = ", ".join(map(str, settings.blueprints))
    return About(
        f"Micro-tuning on {many(len(record.texts), 'text')}",
        {
            "model": record.model_id,
            "texts": f"{len(record.texts):,}",
            "layers": ", ".join(short_layer_names(settings.layers)),
            "blueprints": masking,
            "epochs": f"{settings.epochs:,}",
            "learning rate": f"{settings.learning_rate:g}",
            "precision": settings.precision_in_words,
        }
        | ({"so far": progress} if (progress := describe_progress(record)) else {}),
        files=(record.texts[text], *_changed_settings(settings)),
    )


def _changed_settings(settings: TuningSettings) -> list[str]:
    """Settings in the names of a run's files, behind the text."""
    parts = [many(settings.epochs, "epoch")]
    if settings.learning_rate != TuningSettings.learning_rate:
        parts.append(f"rate {settings.learning_rate:g}")
    if settings.precision != TuningSettings.precision:
        parts.append(settings.precision)
    return parts + ["no masks"] * settings.predict_unmasked
