"""From the name of a method to its embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import neuralviz.models
from neuralviz.embedders.concatenated import ConcatenatedEmbedder
from neuralviz.embedders.methods import METHODS, ModelKind
from neuralviz.embedders.specs import EmbedderSpec, embedder_spec
from neuralviz.errors import ModelError, SettingsError

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder

Loaders = Mapping[ModelKind, Callable[[str], Any]]

# looked up when they are called: they load torch
LOADERS: Loaders = {
    "masked": lambda model_id: neuralviz.models.load_model(model_id),
    "text": lambda model_id: neuralviz.models.load_text_model(model_id),
    "sentence-transformer": lambda model_id: neuralviz.models.load_sentence_transformer(model_id),
}


@cache
def makers() -> dict[str, Callable[..., Embedder]]:
    """By method of `METHODS`, what is called with a model and the options. Loads torch."""
    from neuralviz.embedders.gradient import GradientEmbedder
    from neuralviz.embedders.neural import NeuralEmbedder, neural_1
    from neuralviz.embedders.pooled import PooledEmbedder, SbertWkEmbedder
    from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder
    from neuralviz.embedders.tuned import TunedOutputEmbedder

    return {
        "mean": partial(PooledEmbedder, pooling="mean"),
        "cls": partial(PooledEmbedder, pooling="cls"),
        "sep": partial(PooledEmbedder, pooling="sep"),
        "last": partial(PooledEmbedder, pooling="last"),
        "sbert-wk": SbertWkEmbedder,
        "neural": NeuralEmbedder,
        "neural-1": neural_1,
        "gradient": GradientEmbedder,
        "avg": partial(PooledEmbedder, pooling="mean", name="avg", special_tokens=False),
        "cls-tuned": partial(TunedOutputEmbedder, pooling="cls", difference=False),
        "avg-tuned": partial(TunedOutputEmbedder, pooling="mean", difference=False),
        "cls-diff": partial(TunedOutputEmbedder, pooling="cls", difference=True),
        "avg-diff": partial(TunedOutputEmbedder, pooling="mean", difference=True),
        "sentence-transformer": lambda loaded: SentenceTransformerEmbedder(*loaded),
    }


def make_embedder(spec: EmbedderSpec | str, loaders: Loaders = LOADERS) -> Embedder:
    """The embedder that a spec describes, or a method's with its defaults.

    Args:
        spec: from `embedder_spec`, or a method's name.
        loaders: where models come from, by kind.

    Raises:
        ModelError: a model cannot be had, or there is none: the vectors were imported.
        SettingsError: the values make no sense for the model.
    """
    if isinstance(spec, str):
        spec = embedder_spec(spec)
    if not isinstance(spec, EmbedderSpec):
        raise SettingsError(f"Name a method, such as “mean”, or give a spec, not {spec!r:.60}.")
    if spec.is_imported:
        raise ModelError(
            f"The vectors of “{spec.label}” were imported: there is no model to embed with."
        )
    embedder: Embedder
    if spec.parts:
        embedder = ConcatenatedEmbedder([make_embedder(part, loaders) for part in spec.parts])
    else:
        model = loaders[METHODS[spec.method].kind](spec.model_id)
        embedder = makers()[spec.method](model, **dict(spec.options))
    embedder.spec = spec
    return embedder
