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
    except KeyError:  # a method, a setting or a revision that came later
        return None
    return hashlib.sha256(identity.encode()).hexdigest()[:ID_LENGTH]


def _identity(depends_on: Mapping[str, Any]) -> str:
    return _IDENTITIES[depends_on["method"]](depends_on)


def _of_model(method: str, depends_on: Mapping[str, Any], *settings: str) -> str:
    model = repr(depends_on["model"]), repr(depends_on["fingerprint"])
    return f"({', '.join((repr(method), *model, *settings))})"


def _tuning(tuning: Mapping[str, Any]) -> str:
    """Exact settings are written as they were before there was another precision.

    Raises:
        KeyError: vectors with these settings are computed in another way since.
    """
    if "revision" in tuning:
        raise KeyError("revision")
    blueprints = (f"Blueprint(keep={keep}, mask={mask})" for keep, mask in tuning["blueprints"])
    values = {
        "layers": _tuple(map(repr, tuning["layers"])),
        "blueprints": _tuple(blueprints),
        "epochs": repr(tuning["epochs"]),
        "learning_rate": repr(tuning["learning_rate"]),
        "weight_decay": repr(tuning["weight_decay"]),
        "betas": _tuple(map(repr, tuning["betas"])),
        "eps": repr(tuning["eps"]),
        "predict_unmasked": repr(tuning["predict_unmasked"]),
    }
    if tuning["precision"] != "exact":
        values["precision"] = repr(tuning["precision"])
        values["tolerance"] = repr(tuning.get("tolerance", 0.005))
    return f"TuningSettings({', '.join(f'{name}={value}' for name, value in values.items())})"


def _tuple(values: Any) -> str:
    entries = list(values)
    return f"({', '.join(entries)}{',' * (len(entries) == 1)})"


def _neural(depends_on: Mapping[str, Any]) -> str:
    return _of_model("neural", depends_on, _tuning(depends_on["tuning"]))


def _tuned(depends_on: Mapping[str, Any]) -> str:
    pooling, difference = repr(depends_on["pooling"]), repr(depends_on["difference"])
    how = _tuple([pooling, difference, _tuning(depends_on["tuning"])])
    return _of_model("tuned", depends_on, how)


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
    "neural": _neural,
    "tuned": _tuned,
    "pooled": _pooled,
    "sbert-wk": _sbert_wk,
    "sentence-transformer": _sentence_transformer,
    "concatenated": _concatenated,
}
