"""Models and embedders for the commands; a terminal shows which model is being loaded."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralviz.cli.common import print_message, status
from neuralviz.embedders.making import make_embedder
from neuralviz.errors import PrecisionWarning
from neuralviz.models.shared import LOADERS

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder, EmbedderSpec
    from neuralviz.models import LanguageModel
    from neuralviz.models.shared import Loaders

ModelOption = Annotated[
    str, typer.Option("--model", help=("Model: “bundled”, a Hugging Face Hub ID, or a folder."))
]


def load(model_id: str) -> LanguageModel:
    """Load a masked language model."""
    return _load("masked", model_id)


def cached_loaders() -> Loaders:
    """A loader per kind of model; each loads a model once."""
    cached = cache(_load)
    return {kind: partial(cached, kind) for kind in LOADERS}


def load_embedders(specs: Sequence[EmbedderSpec]) -> list[Embedder]:
    """The embedders; those of one model share it."""
    shared = cached_loaders()
    with print_precision_warnings():
        return [make_embedder(spec, shared) for spec in specs]


@contextmanager
def print_precision_warnings() -> Iterator[None]:
    """Print the first warning of an imitated precision as a sentence; pass on other warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        yield
    was_said = False
    for warning in caught:
        if not issubclass(warning.category, PrecisionWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        elif not was_said:
            was_said = True
            print_message(str(warning.message))


def _load(kind: Any, model_id: str) -> Any:
    with status(f"Loading {model_id} …"):
        return LOADERS[kind](model_id)
