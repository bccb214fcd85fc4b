"""Models and embedders for the commands; on a terminal it is said that one is being loaded."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralviz.cli.common import say, status
from neuralviz.embedders.registry import LOADERS, make_embedder
from neuralviz.errors import PrecisionWarning

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder, EmbedderSpec
    from neuralviz.embedders.registry import Loaders
    from neuralviz.models import LanguageModel

ModelOption = Annotated[
    str, typer.Option("--model", help=("Model: “bundled”, a Hugging Face Hub ID, or a folder."))
]


def load(model_id: str) -> LanguageModel:
    """A masked language model."""
    return _load("masked", model_id)


def cached_loaders() -> Loaders:
    """Where models come from, by kind; each is loaded once."""
    cached = cache(_load)
    return {kind: partial(cached, kind) for kind in LOADERS}


def load_embedders(specs: Sequence[EmbedderSpec]) -> list[Embedder]:
    """The embedders; those of one model share it."""
    shared = cached_loaders()
    with precision_warnings_said():
        return [make_embedder(spec, shared) for spec in specs]


@contextmanager
def precision_warnings_said() -> Iterator[None]:
    """A warning of a precision that is imitated becomes one sentence on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        yield
    was_said = False
    for one in caught:
        if not issubclass(one.category, PrecisionWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        elif not was_said:
            was_said = True
            say(str(one.message))


def _load(kind: Any, model_id: str) -> Any:
    with status(f"Loading {model_id} …"):
        return LOADERS[kind](model_id)
