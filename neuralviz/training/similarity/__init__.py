"""Small networks that learn people's scores from a frozen model; loads no torch."""

from neuralviz.training.similarity.data import split_pairs
from neuralviz.training.similarity.kept import (
    SimilarityModel,
    load_similarity_model,
    save_similarity_model,
    score_pairs,
)

__all__ = [
    "SimilarityModel",
    "load_similarity_model",
    "save_similarity_model",
    "score_pairs",
    "split_pairs",
]
