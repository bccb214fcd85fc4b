"""Embedders: texts in, vectors out, all in the shape of ``SentenceTransformer.encode``."""

from neuralviz.embedders.neural import NeuralEmbedder
from neuralviz.embedders.registry import METHODS, Embedder, make_embedder, read_options

__all__ = ["METHODS", "Embedder", "NeuralEmbedder", "make_embedder", "read_options"]
