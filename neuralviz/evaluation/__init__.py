"""How well embeddings agree with people.

Names that bring torch or pandas are resolved when they are first used, so that pages load without
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.evaluation.data import grouped_data, labelled_data, scored_data
    from neuralviz.evaluation.events import Progress
    from neuralviz.evaluation.lab import evaluate
    from neuralviz.evaluation.ladder import (
        measure_cosines,
        model_poolings,
        own_embeddings,
        train_ladder,
    )
    from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings, method_rows
    from neuralviz.evaluation.probing import probe
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.tables import read_data
    from neuralviz.evaluation.training_lab import fill_table
    from neuralviz.evaluation.training_tables import training_frame, training_numbers

_MODULES = {
    "EvaluationPlan": "plan",
    "MeasureSettings": "plan",
    "Progress": "events",
    "Results": "results",
    "evaluate": "lab",
    "fill_table": "training_lab",
    "grouped_data": "data",
    "labelled_data": "data",
    "measure_cosines": "ladder",
    "method_rows": "plan",
    "model_poolings": "ladder",
    "own_embeddings": "ladder",
    "probe": "probing",
    "read_data": "tables",
    "scored_data": "data",
    "train_ladder": "ladder",
    "training_frame": "training_tables",
    "training_numbers": "training_tables",
}
__all__ = [
    "EvaluationPlan",
    "MeasureSettings",
    "Progress",
    "Results",
    "evaluate",
    "fill_table",
    "grouped_data",
    "labelled_data",
    "measure_cosines",
    "method_rows",
    "model_poolings",
    "own_embeddings",
    "probe",
    "read_data",
    "scored_data",
    "train_ladder",
    "training_frame",
    "training_numbers",
]

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()}
)
