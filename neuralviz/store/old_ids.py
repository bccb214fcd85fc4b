"""Ids under which versions before cache keys kept vectors, so that they are still found.

These versions hashed the representation of a tuple of Python: method, model, settings. What they
wrote down is spelt out here from what a cache key holds today, and must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

ID_LENGTH = 24
SAME_VECTORS = "neuralviz-vectors/2:"
"""How cache keys begin as long as vectors are computed as they were by these versions."""


def old_id(depends_on: Mapping[str, Any]) -> str | None:
    """The id of vectors that depend on this, as of `Embedder.depends_on`; None where none was."""
    try:
        identity = _IDENTITIES[depends_on["method"]](depends_on)
    except KeyError:  # a method or a setting that came later, or texts are learnt in another way
        return None
    return hashlib.sha256(identity.encode()).hexdigest()[:ID_LENGTH]


def _identity(depends_on: Mapping[str, Any]) -> str:
    return _IDENTITIES[depends_on["method"]](depends_on)


def _of_model(method: str, depends_on: Mapping[str, Any], *settings: str) -> str:
    model = repr(depends_on["model"]), repr(depends_on["fingerprint"])
    return f"({', '.join((repr(method), *model, *settings))})"


def _tuple(values: Any) -> str:
    entries = list(values)
    return f"({', '.join(entries)}{',' * (len(entries) == 1)})"


def _pooled(depends_on: Mapping[str, Any]) -> str:
    layers = _tuple(map(repr, depends_on["layers"]))
    settings = (repr(depends_on["pooling"]), layers, repr(depends_on["special_tokens"]))
    return _of_model("pooled", depends_on, _tuple(settings))


def _sbert_wk(depends_on: Mapping[str, Any]) -> str:
    names = ("layer_start", "variant", "window", "omega")
    settings = ", ".join(f"{name}={depends_on[name]!r}" for name in names)
    part = depends_on["part"]
    more = () if part == "all" else (repr(part),)
    return _of_model("sbert-wk", depends_on, f"SbertWkSettings({settings})", *more)


def _sentence_transformer(depends_on: Mapping[str, Any]) -> str:
    return f"('sentence-transformer', {depends_on['fingerprint']!r})"


def _concatenated(depends_on: Mapping[str, Any]) -> str:
    return _tuple(["'concatenated'", *map(_identity, depends_on["parts"])])


_IDENTITIES = {
    "pooled": _pooled,
    "sbert-wk": _sbert_wk,
    "sentence-transformer": _sentence_transformer,
    "concatenated": _concatenated,
}
