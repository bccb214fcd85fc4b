"""From a spec to its embedder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.embedders.concatenated import ConcatenatedEmbedder
from neuralviz.embedders.methods import METHODS
from neuralviz.embedders.specs import EmbedderSpec, embedder_spec
from neuralviz.errors import ModelError, SettingsError
from neuralviz.models.shared import LOADERS, Loaders

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder


def make_embedder(spec: EmbedderSpec | str, loaders: Loaders = LOADERS) -> Embedder:
    """The embedder that a spec describes, or a method's with its defaults.

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
        method = METHODS[spec.method]
        loaded = loaders[method.kind](spec.model_id)
        model = loaded if isinstance(loaded, tuple) else (loaded,)  # an encoder, its fingerprint
        embedder = method.find_maker()(*model, **dict(spec.options))
    embedder.spec = spec
    return embedder
