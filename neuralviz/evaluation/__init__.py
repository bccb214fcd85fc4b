"""How well embeddings agree with people.

Names that bring torch or pandas are resolved when they are first used, so that pages load without
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder import climb, look_at_layers, model_poolings
    from neuralviz.evaluation.own_embedding import own_embeddings
    from neuralviz.evaluation.probing import probe
    from neuralviz.evaluation.training_frames import training_frame, training_numbers
    from neuralviz.evaluation.training_lab import fill_table

__all__ = [
    "climb",
    "fill_table",
    "look_at_layers",
    "model_poolings",
    "own_embeddings",
    "probe",
    "training_frame",
    "training_numbers",
]

__getattr__ = lazy_names(
    __name__,
    {
        "climb": "neuralviz.evaluation.ladder",
        "fill_table": "neuralviz.evaluation.training_lab",
        "look_at_layers": "neuralviz.evaluation.ladder",
        "model_poolings": "neuralviz.evaluation.ladder",
        "own_embeddings": "neuralviz.evaluation.own_embedding",
        "probe": "neuralviz.evaluation.probing",
        "training_frame": "neuralviz.evaluation.training_frames",
        "training_numbers": "neuralviz.evaluation.training_frames",
    },
)
