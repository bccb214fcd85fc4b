"""The arguments of an object: for its repr, for pickles, and for scikit-learn."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neuralviz.errors import SettingsError

if TYPE_CHECKING:
    from sklearn.utils import Tags


class Parametrised:
    """Knows its arguments and can be made again from them, as scikit-learn's transformers can."""

    _kept: tuple[str, ...] = ()  # other attributes in pickles and clones

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        self = super().__new__(cls)
        self._arguments = arguments, options
        return self

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _sklearn_output_config: Mapping[str, str] = MappingProxyType({})  # its name in scikit-learn

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments by name, defaults included; ``deep`` has no effect."""
        arguments, options = self._arguments
        signature = inspect.signature(type(self))
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        values = dict(bound.arguments)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                values |= values.pop(name)
        return values

    def set_params(self, **params: Any) -> Self:
        """Make the object anew with changed arguments; `SettingsError` if they are invalid."""
        values = self.get_params()
        new = [name for name in params if name not in values]
        try:
            changed = type(self)(**{**values, **params})
        except TypeError as error:
            if not new:
                raise
            raise SettingsError(
                f"{type(self).__name__} has no parameter “{new[0]}”. It has: {', '.join(values)}."
            ) from error
        if params:
            output = self._sklearn_output_config
            vars(self).clear()
            vars(self).update(vars(changed), _sklearn_output_config=output)
        return self

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Do nothing: an embedder learns nothing from the texts."""
        return self

    def transform(self, texts: Any) -> Any:
        """[text, dim] vectors as from `encode`, or the table that `set_output` asks for."""
        vectors = np.asarray(self.encode(texts))  # type: ignore[attr-defined]
        container = self._sklearn_output_config.get("transform")
        if container is None and "sklearn" in sys.modules:
            container = sys.modules["sklearn"].get_config()["transform_output"]
        if container in (None, "default"):
            return vectors
        names, make_table = self.get_feature_names_out(), import_module(container).DataFrame
        if container == "polars":
            return make_table(vectors, schema=list(names))
        index = getattr(texts, "index", None)  # a list has a method of this name
        return make_table(vectors, None if callable(index) else index, names)

    def fit_transform(self, texts: Any, y: Any = None) -> Any:
        return self.transform(texts)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """[dim] names of a vector's values: ``pooledembedder0``, ``pooledembedder1``, …"""
        dim: int = self.dim  # type: ignore[attr-defined]
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(dim)], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let `transform` return an array (``default``), or a table of ``pandas`` or ``polars``."""
        if transform not in (None, "default", "pandas", "polars"):
            raise SettingsError("transform must be 'default', 'pandas' or 'polars'.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_clone__(self) -> Self:
        """An equal object that shares the model."""
        return _make_again(type(self), self.get_params(), self._other_state())

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        utils = sys.modules["sklearn.utils"]  # loaded, as it asks for the tags
        return utils.Tags(
            estimator_type="transformer",
            target_tags=utils.TargetTags(required=False),
            transformer_tags=utils.TransformerTags(),
            input_tags=utils.InputTags(one_d_array=True, two_d_array=False, string=True),
            requires_fit=False,
        )

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_again, (type(self), self.get_params(), self._other_state())

    def _other_state(self) -> dict[str, Any]:
        kept = (*self._kept, "_sklearn_output_config")
        return {name: vars(self)[name] for name in kept if name in vars(self)}

    def __repr__(self) -> str:
        values = {name: v for name, v in self.get_params().items() if name != "name"}
        model = values.pop("model", None)
        named = {"method": getattr(self, "name", "")} | ({"model": model.id} if model else {})
        values_shown = [f"{name}={v!r}" for name, v in (named | values).items() if v is not None]
        return f"{type(self).__name__}({', '.join(values_shown)})"


def _make_again(kind: type[Any], params: dict[str, Any], kept: dict[str, Any]) -> Any:
    copied = kind(**params)
    vars(copied).update(kept)
    return copied
