"""Embedders: texts in, vectors out, all in the shape of ``SentenceTransformer.encode``.

Names of classes that need torch are resolved when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neuralviz.embedders.base import EmbeddedBatch, Embedder
from neuralviz.embedders.concatenated import ConcatenatedEmbedder
from neuralviz.embedders.methods import FOR_CORPORA, METHODS
from neuralviz.embedders.registry import make_embedder
from neuralviz.embedders.specs import (
    EmbedderSpec,
    embedder_spec,
    embedder_specs,
    split_options,
)

if TYPE_CHECKING:
    from neuralviz.embedders.neural import NeuralEmbedder
    from neuralviz.embedders.pooled import PooledEmbedder, SbertWkEmbedder
    from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder
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

_HOMES = {
    "NeuralEmbedder": "neural",
    "PooledEmbedder": "pooled",
    "SbertWkEmbedder": "pooled",
    "SentenceTransformerEmbedder": "sentence_transformer",
    "TunedOutputEmbedder": "tuned",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'neuralviz.embedders' has no attribute {name!r}")
    return getattr(import_module(f"neuralviz.embedders.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
