"""neuralviz: see what a language model learns from a text.

>>> import neuralviz
>>> model = neuralviz.load_model("bundled")
>>> neuralviz.NeuralEmbedder(model).encode(["A text.", "Another one."]).shape
(2, 1152)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names
from neuralviz.native_libraries import prepare_environment

if TYPE_CHECKING:
    from neuralviz.embedders import NeuralEmbedder
    from neuralviz.evaluation.explanation import explain
    from neuralviz.micro_tuning import micro_tune
    from neuralviz.models import load_model
    from neuralviz.training import train

prepare_environment()

__all__ = ["NeuralEmbedder", "__version__", "explain", "load_model", "micro_tune", "train"]
__version__ = "0.1.0"

__getattr__, __dir__ = lazy_names(
    __name__,
    embedders="NeuralEmbedder",
    **{"evaluation.explanation": "explain"},
    micro_tuning="micro_tune",
    models="load_model",
    training="train",
)
