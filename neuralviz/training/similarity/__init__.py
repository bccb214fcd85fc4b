"""Similarity models: small networks that learn people's scores from a frozen language model.

Names are resolved when they are first used, so that pages load without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.training.similarity.data import split_pairs
    from neuralviz.training.similarity.kept import (
        SimilarityModel,
        load_similarity_model,
        save_similarity_model,
        score_pairs,
    )
    from neuralviz.training.similarity.loop import fit, load_network, predict

_MODULES = {
    "SimilarityModel": "kept",
    "fit": "loop",
    "load_network": "loop",
    "load_similarity_model": "kept",
    "predict": "loop",
    "save_similarity_model": "kept",
    "score_pairs": "kept",
    "split_pairs": "data",
}
__all__ = [
    "SimilarityModel",
    "fit",
    "load_network",
    "load_similarity_model",
    "predict",
    "save_similarity_model",
    "score_pairs",
    "split_pairs",
]

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()}
)
