"""Embedders by name, each with the options that it declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from neuralviz.embedders.neural import NeuralEmbedder
from neuralviz.errors import SettingsError
from neuralviz.micro_tuning import parse_blueprints

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from neuralviz.models import LanguageModel


class Embedder(Protocol):
    """Texts in, vectors out, in the shape of ``SentenceTransformer.encode``."""

    def encode(
        self,
        sentences: str | Iterable[str],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = True,
    ) -> np.ndarray | Tensor:
        """[text, dim] vectors of ``sentences``, in the order given."""
        ...


@dataclass(frozen=True)
class Option:
    """A setting of a method.

    Attributes:
        name: the argument of the embedder.
        expects: what a person has to type, e.g. ``a whole number``.
        read: the value from what was typed; raises ValueError or `SettingsError`.
    """

    name: str
    expects: str
    read: Callable[[str], Any]


@dataclass(frozen=True)
class Method:
    """A way to embed texts.

    Attributes:
        make: called with a model and the options.
        options: those it takes.
    """

    make: Callable[..., Embedder]
    options: tuple[Option, ...]


def read_layers(text: str) -> str | tuple[str, ...]:
    """``head``, ``last_block``, or names of layers with commas between them."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    return names[0] if names in {("head",), ("last_block",)} else names


def _read_yes_or_no(text: str) -> bool:
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}[
        text.lower()
    ]


METHODS: dict[str, Method] = {
    "neural": Method(
        make=NeuralEmbedder,
        options=(
            Option("layers", "head, last_block or names of layers", read_layers),
            Option("blueprints", "pairs like (2, 1), (1, 3)", parse_blueprints),
            Option("epochs", "a whole number", int),
            Option("learning_rate", "a number", float),
            Option("weight_decay", "a number", float),
            Option("predict_unmasked", "yes or no", _read_yes_or_no),
        ),
    ),
}


def read_options(method: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """The values of a method's options from what was typed.

    Raises:
        SettingsError: there is no such method, it has no such option, or a value cannot be read.
    """
    if method not in METHODS:
        raise SettingsError(f"There is no method “{method}”; there is {', '.join(METHODS)}.")
    options = {option.name: option for option in METHODS[method].options}
    values = {}
    for name, text in typed.items():
        if name not in options:
            raise SettingsError(
                f"The method {method} has no option “{name}”; it has {', '.join(options)}."
            )
        try:
            values[name] = options[name].read(text)
        except (ValueError, KeyError) as error:
            raise SettingsError(
                f"The option {name} has to be {options[name].expects}, and “{text[:40]}” is not."
            ) from error
    return values


def make_embedder(method: str, model: LanguageModel, options: Mapping[str, Any]) -> Embedder:
    """The embedder of a method on ``model``.

    Raises:
        SettingsError: the values make no sense; see the embedder.
    """
    return METHODS[method].make(model, **options)
