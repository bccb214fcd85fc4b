"""Embedders: texts in, vectors out, all in the shape of ``SentenceTransformer.encode``."""

from neuralviz.embedders.neural import NeuralEmbedder

__all__ = ["NeuralEmbedder"]
