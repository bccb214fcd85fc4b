"""Embedders: texts in, vectors out, all in the shape of ``SentenceTransformer.encode``."""

from neuralviz.embedders.base import EmbeddedBatch, Embedder
from neuralviz.embedders.concatenated import ConcatenatedEmbedder
from neuralviz.embedders.methods import FOR_CORPORA, METHODS
from neuralviz.embedders.neural import NeuralEmbedder
from neuralviz.embedders.pooled import PooledEmbedder, SbertWkEmbedder
from neuralviz.embedders.registry import make_embedder
from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder
from neuralviz.embedders.specs import (
    EmbedderSpec,
    embedder_spec,
    embedder_specs,
    split_options,
)
from neuralviz.embedders.tuned import TunedOutputEmbedder

__all__ = [
    "FOR_CORPORA",
    "METHODS",
    "ConcatenatedEmbedder",
    "EmbeddedBatch",
    "Embedder",
    "EmbedderSpec",
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
