"""neuralviz: see what a language model learns from a text.

>>> import neuralviz
>>> model = neuralviz.load_model("bundled")
>>> neuralviz.NeuralEmbedder(model).encode(["A text.", "Another one."]).shape
(2, 1152)

Names are resolved when they are first used, so that ``import neuralviz`` loads no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuralviz.embedders import NeuralEmbedder
    from neuralviz.micro_tuning import micro_tune
    from neuralviz.models import load_model

__all__ = ["NeuralEmbedder", "__version__", "load_model", "micro_tune"]
__version__ = "0.1.0"

_HOMES = {
    "NeuralEmbedder": "neuralviz.embedders",
    "load_model": "neuralviz.models",
    "micro_tune": "neuralviz.micro_tuning",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'neuralviz' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
