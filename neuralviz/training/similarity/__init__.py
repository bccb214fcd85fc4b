"""Small networks that learn people's scores from a frozen model; names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.training.similarity.data import split_pairs as split_pairs
    from neuralviz.training.similarity.kept import SimilarityModel as SimilarityModel
    from neuralviz.training.similarity.kept import load_similarity_model as load_similarity_model
    from neuralviz.training.similarity.kept import save_similarity_model as save_similarity_model
    from neuralviz.training.similarity.kept import score_pairs as score_pairs

_MODULES = {
    "SimilarityModel": "kept",
    "load_similarity_model": "kept",
    "save_similarity_model": "kept",
    "score_pairs": "kept",
    "split_pairs": "data",
}
__all__ = [*_MODULES]

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()}
)
