"""Embedders: texts in, vectors out, like ``SentenceTransformer``. Torch loads at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.embedders.base import ConcatenatedEmbedder, EmbeddedBatch, Embedder
from neuralviz.embedders.specs import (
    FOR_CORPORA,
    METHODS,
    EmbedderSpec,
    embedder_spec,
    embedder_specs,
    make_embedder,
    split_options,
)
from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.embedders.neural import GradientEmbedder, NeuralEmbedder, TunedOutputEmbedder
    from neuralviz.embedders.pooled import PooledEmbedder, SbertWkEmbedder
    from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder

__all__ = [
    "FOR_CORPORA",
    "METHODS",
    "ConcatenatedEmbedder",
    "EmbeddedBatch",
    "Embedder",
    "EmbedderSpec",
    "GradientEmbedder",
    "NeuralEmbedder",
    "PooledEmbedder",
    "SbertWkEmbedder",
    "SentenceTransformerEmbedder",
    "TunedOutputEmbedder",
    "embedder_spec",
    "embedder_specs",
    "make_embedder",
    "split_options",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    neural="GradientEmbedder NeuralEmbedder TunedOutputEmbedder",
    pooled="PooledEmbedder SbertWkEmbedder",
    sentence_transformer="SentenceTransformerEmbedder",
)
