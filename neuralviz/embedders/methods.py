"""The embedding methods: each with its embedder, model and options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from neuralviz.layers.settings import MOST_WINDOW, PARTS, VARIANTS
from neuralviz.micro_tuning import parse_blueprints
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    MAX_EPOCHS,
    PRECISIONS,
    check_precision,
    check_tolerance,
)
from neuralviz.models import BUNDLED, MINILM
from neuralviz.models.shared import ModelKind

# Defaults when many texts are embedded and kept. Half the usual epochs take less time, and neural
# embeddings by the bundled model then say more about a text's topic: docs/bundled_model.md.
FOR_CORPORA = {"precision": "fast", "neural.epochs": "5"}


@dataclass(frozen=True)
class Option:
    """A setting of a method."""

    name: str  # of the embedder's argument
    line: str  # what it sets, such as ``Number of epochs``
    expects: str  # what to type, such as ``a whole number``
    read: Callable[[str], Any]  # converts what was typed; raises ValueError or `SettingsError`
    default: str  # as typed
    choices: tuple[str, ...] = ()  # all values, if they can be listed


@dataclass(frozen=True)
class Method:
    """A way to embed texts."""

    line: str  # its description
    kind: ModelKind  # of model
    model_id: str  # default
    embedder: str  # module of `neuralviz.embedders`, colon, class or function
    options: tuple[Option, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)  # fixed ones of the embedder

    def find_maker(self) -> Callable[..., Any]:
        """The embedder's class or function, called with a model and options. Imports torch."""
        module, _, name = self.embedder.partition(":")
        maker = getattr(import_module(f"neuralviz.embedders.{module}"), name)
        return partial(maker, **self.arguments)


def read_layers(text: str) -> str | tuple[str, ...]:
    """``head``, ``last_block``, or names of layers separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    return names[0] if names in {("head",), ("last_block",)} else names


def _read_layer_numbers(text: str) -> str | tuple[int, ...]:
    return text if text in ("last", "all") else tuple(int(part) for part in text.split(","))


def _read_yes_or_no(text: str) -> bool:
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}[
        text.lower()
    ]


def _read_layer_start(text: str) -> int | None:
    return None if text == "default" else int(text)


def _read_tolerance(text: str) -> float:
    check_tolerance(float(text))
    return float(text)


def _read_number(text: str, kind: type, low: float, high: float = math.inf) -> Any:
    if not low <= kind(text) <= high:
        raise ValueError(text)
    return kind(text)


def _choice(name: str, line: str, choices: tuple[str, ...], default: str) -> Option:
    expects = f"{', '.join(choices[:-1])} or {choices[-1]}"
    read = dict(zip(choices, choices, strict=True)).__getitem__
    return Option(name, line, expects, read, default, choices)


def _yes_or_no(name: str, line: str, default: str) -> Option:
    return Option(name, line, "yes or no", _read_yes_or_no, default, YES_OR_NO)


YES_OR_NO = ("yes", "no")
_layer = Option(
    "layer", "Layer or layers to pool", "layer numbers separated by commas, last, or all",
    _read_layer_numbers, "last",
)  # fmt: skip
_blueprints = Option(
    "blueprints", "Masking blueprints", "pairs (keep, mask) such as (2, 1), (1, 3)",
    parse_blueprints, "(2, 1), (1, 1), (1, 2), (1, 3)",
)  # fmt: skip
_layers = Option(
    "layers", "Layers to micro-tune", "head, last_block, or layer names separated by commas",
    read_layers, "head",
)  # fmt: skip
_predict_unmasked = _yes_or_no("predict_unmasked", "Predict every token, without masking", "no")
_adamw = (
    Option("learning_rate", "AdamW's learning rate", "a number above 0", float, "0.01"),
    Option("weight_decay", "AdamW's weight decay", "a number of at least 0", float, "0.01"),
)
_how_exactly = (
    replace(
        _choice("precision", "How exactly micro-tuning is computed", PRECISIONS, "exact"),
        read=check_precision,
    ),
    Option(
        "tolerance",
        "With fast, how far the cosine similarity to the exact embedding may fall below 1",
        "a number above 0 and below 1", _read_tolerance, f"{DEFAULT_TOLERANCE:g}",
    ),
)  # fmt: skip
_sbert_wk = (
    _choice("variant", "The authors' program or the paper's equations", VARIANTS, "authors"),
    Option(
        "layer_start", "First layer to use", "a whole number, or default (one third of the blocks)",
        _read_layer_start, "default",
    ),
    Option(
        "window", "Layers on each side to compare with", f"a whole number from 1 to {MOST_WINDOW}",
        partial(_read_number, kind=int, low=1, high=MOST_WINDOW), "2",
    ),
    Option(
        "omega", "Weight of alignment (novelty gets the rest)", "a number from 0 to 1",
        partial(_read_number, kind=float, low=0, high=1), "0.5",
    ),
    _choice("part", "Part of SBERT-WK to use", tuple(PARTS), "all"),
)  # fmt: skip


def _epochs(default: str) -> Option:
    return Option(
        "epochs", "Number of epochs", f"a whole number from 1 to {MAX_EPOCHS}", int, default
    )


def _pooled(line: str, *options: Option, model_id: str = MINILM, **arguments: Any) -> Method:
    options = (_layer, *options)
    return Method(line, "text", model_id, "pooled:PooledEmbedder", options, arguments)


def _tuned(line: str, pooling: str = "", difference: bool = False) -> Method:
    """*neural-1*, or with a ``pooling`` the output of a tuned model."""
    options = (*_how_exactly, _blueprints, _epochs("5"), *_adamw)
    if not pooling:
        return Method(line, "masked", BUNDLED, "neural:neural_1", options)
    arguments = {"pooling": pooling, "difference": difference}
    return Method(line, "masked", BUNDLED, "neural:TunedOutputEmbedder", options, arguments)


METHODS: dict[str, Method] = {
    "mean": _pooled(
        "Mean of the token vectors, including special tokens.",
        _yes_or_no("special_tokens", "Include special tokens in the mean", "yes"),
        pooling="mean",
    ),
    "cls": _pooled("Vector of [CLS], the special token before the text.", pooling="cls"),
    "sep": _pooled("Vector of [SEP], the special token after the text.", pooling="sep"),
    "last": _pooled("Vector of the text's last token.", pooling="last"),
    "sbert-wk": Method(
        "Weighted mean of token vectors; the weights come from how the vectors change "
        "across the layers.",
        "text",
        MINILM,
        "pooled:SbertWkEmbedder",
        _sbert_wk,
    ),
    "neural": Method(
        "Change in the model's weights after micro-tuning on the text.",
        "masked",
        BUNDLED,
        "neural:NeuralEmbedder",
        (_layers, *_how_exactly, _blueprints, _epochs("10"), *_adamw, _predict_unmasked),
    ),
    "neural-1": _tuned("Neural embedding of the last block's output bias alone."),
    "gradient": Method(
        "The direction in which one plain gradient step on the text would move the weights, "
        "without taking it.",
        "masked",
        BUNDLED,
        "neural:GradientEmbedder",
        (_layers, _blueprints, _predict_unmasked),
    ),
    "avg": _pooled(
        "Mean of the masked language model's token vectors, without special tokens or "
        "micro-tuning.",
        model_id=BUNDLED,
        pooling="mean",
        name="avg",
        special_tokens=False,
    ),
    "cls-tuned": _tuned("Vector of [CLS] after micro-tuning.", "cls"),
    "avg-tuned": _tuned(
        "Mean of the token vectors after micro-tuning, without special tokens.", "mean"
    ),
    "cls-diff": _tuned("Change in the [CLS] vector caused by micro-tuning.", "cls", True),
    "avg-diff": _tuned(
        "Change in the mean token vector caused by micro-tuning, without special tokens.",
        "mean",
        True,
    ),
    "sentence-transformer": Method(
        "Any sentence-transformers model, with its own pooling.",
        "sentence-transformer",
        MINILM,
        "sentence_transformer:SentenceTransformerEmbedder",
    ),
}
