"""The settings of a micro-tuning run, checked once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, get_args

from neuralviz.errors import SettingsError
from neuralviz.micro_tuning.blueprints import (
    DEFAULT_BLUEPRINTS,
    Blueprint,
    check_blueprints,
    mask_inputs,
)

if TYPE_CHECKING:
    from neuralviz.models import LanguageModel
    from neuralviz.models.tokens import TokenizedText

MAX_EPOCHS = 1000
REVISION = 3
"""Version of the computation, in the keys of kept results: raise it when results change."""
Precision = Literal["exact", "fast", "bf16", "fast+bf16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
DEFAULT_TOLERANCE = 0.005  # of the cosine to exact
PRECISION_LINES: dict[Precision, str] = {
    "exact": "every token of the vocabulary counts in every step. This is the slowest.",
    "fast": (
        "after an exact first step, only the tokens that matter most for the text are tracked "
        "individually, and all others as a group. Several times faster. The cosine similarity to "
        "the exact embedding should fall below 1 by no more than the tolerance (an estimate)."
    ),
    "bf16": (
        "values are rounded to bfloat16 (8 significant bits) before and after each "
        "matrix product. Faster than exact on hardware that supports it."
    ),
    "fast+bf16": "both fast and bf16.",
}
MAX_FOLLOWED_VALUES = 5_000_000  # tokens times values of the layers, for token shares


@dataclass(frozen=True)
class TuningSettings:
    """How texts are micro-tuned on (neural paper, section 2).

    Attributes:
        predict_unmasked: nothing is masked and every token has to be predicted, in place of the
            blueprints (the paper's Appendix A: works, less well).
        precision: ``exact``; ``fast``, after the first step over a part of the vocabulary;
            ``bf16``, with what goes into matrix products and comes out of them rounded to bfloat16;
            ``fast+bf16``, both. Fast is exact where nothing can be spared safely: with the output
            layer's bias, a small vocabulary, or a learning rate above 0.05.
        tolerance: how far below 1 the cosine of a fast embedding to the exact one may be: an
            estimate that texts are kept to, not a bound.
    """

    layers: tuple[str, ...]  # names of the tuned 1-D parameters, in the order of the embedding
    blueprints: tuple[Blueprint, ...] = DEFAULT_BLUEPRINTS  # masking blueprints
    epochs: int = 10  # passes over a text's inputs
    learning_rate: float = 0.01  # of AdamW
    weight_decay: float = 0.01  # of AdamW
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    eps: float = 1e-8  # of AdamW
    predict_unmasked: bool = False
    precision: Precision = "exact"
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        if not self.is_fast:  # it has no other
            object.__setattr__(self, "tolerance", DEFAULT_TOLERANCE)

    @property
    def is_fast(self) -> bool:
        """Whether words of little probability are followed together."""
        return is_fast(self.precision)

    @property
    def precision_in_words(self) -> str:
        """``exact (float32)``, ``fast (tolerance 0.005)``, …"""
        if self.is_fast:
            return f"{self.precision} (tolerance {self.tolerance:g})"
        return "exact (float32)" if self.precision == "exact" else self.precision

    @property
    def in_bf16(self) -> bool:
        """Whether the factors of matrix products are bfloat16."""
        return self.precision.endswith("bf16")


class TuningOptions(TypedDict, total=False):
    """Settings by name as people give them, before `check_settings` has looked at them.

    ``layers`` are names of 1-D parameters, ``"head"`` (default) or ``"last_block"``; ``epochs`` are
    1 … 1000; all others are as of `TuningSettings`.
    """

    layers: Iterable[str] | str | None
    blueprints: Iterable[Sequence[int]]
    epochs: int
    learning_rate: float
    weight_decay: float
    predict_unmasked: bool
    precision: str
    tolerance: float


def check_settings(
    model: LanguageModel,
    settings: TuningSettings | None = None,
    **options: Unpack[TuningOptions],
) -> TuningSettings:
    """The checked settings of a run on a model: the given ones, or the paper's, with some options.

    Raises:
        SettingsError: the model has no such layer, or a value makes no sense.
        TypeError: there is no option of that name.
    """
    if unknown := options.keys() - TuningOptions.__annotations__.keys():
        raise TypeError(f"Unknown setting: {', '.join(sorted(unknown))}.")
    base = TuningSettings(layers=()) if settings is None else settings
    values: dict[str, Any] = {name: getattr(base, name) for name in TuningOptions.__annotations__}
    values |= {"layers": base.layers or None, **options}
    check_numbers(values["epochs"], values["learning_rate"], values["weight_decay"])
    check_tolerance(values["tolerance"])
    return replace(
        base,
        layers=model.check_layers(values["layers"]),
        blueprints=check_blueprints(values["blueprints"]),
        epochs=int(values["epochs"]),
        learning_rate=float(values["learning_rate"]),
        weight_decay=float(values["weight_decay"]),
        predict_unmasked=bool(values["predict_unmasked"]),
        precision=check_precision(values["precision"]),
        tolerance=float(values["tolerance"]),
    )


def is_fast(precision: str) -> bool:
    """Whether a precision has a tolerance."""
    return precision.startswith("fast")


def check_precision(name: str) -> Precision:
    """The precision of a name, in which the order does not matter; else `SettingsError`."""
    parts = {part.strip() for part in str(name).lower().split("+")} - {"exact"}
    for precision in PRECISIONS:
        if parts == set(precision.split("+")) - {"exact"}:
            return precision
    raise SettingsError(
        f"Unknown precision “{str(name)[:40]}”. Choose from: {', '.join(PRECISIONS)}."
    )


def check_tolerance(value: float) -> None:
    """Raise `SettingsError` for a tolerance that is no number above 0 and below 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise SettingsError(f"The tolerance must be above 0 and below 1, not {value}.")


def check_numbers(epochs: int, learning_rate: float, weight_decay: float) -> None:
    """Raise `SettingsError` where one of the numbers among the settings makes no sense."""
    is_whole = isinstance(epochs, Integral) and not isinstance(epochs, bool)
    if not is_whole or not 1 <= epochs <= MAX_EPOCHS:
        sentence = (
            f"The number of epochs must be a whole number from 1 to {MAX_EPOCHS}, not {epochs!r}"
        )
        if is_whole and epochs < 1:
            sentence += ". Without at least one epoch, no weight changes, so there is no embedding"
        raise SettingsError(f"{sentence}.")
    for name, value in (("learning rate", learning_rate), ("weight decay", weight_decay)):
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise SettingsError(f"The {name} must be a number, not {value!r}.")
    if learning_rate <= 0:
        raise SettingsError(
            f"The learning rate must be above 0, not {learning_rate:g}. The paper uses 0.01."
        )
    if weight_decay < 0:
        raise SettingsError("The weight decay must not be negative.")


def count_masked(text: TokenizedText, settings: TuningSettings) -> int:
    """Masked positions of a text over all its inputs and chunks: what micro-tuning has to do."""
    total = 0
    for chunk in text.chunks:
        n = chunk.stop - chunk.start
        total += n if settings.predict_unmasked else int(
            mask_inputs(n, settings.blueprints).masked.sum()
        )  # fmt: skip
    return total


def followed_values(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> int:
    """Values that following every token takes: tokens times sizes of the layers."""
    sizes = {layer.name: layer.size for layer in model.layers}
    return sum(map(len, texts)) * sum(sizes[name] for name in settings.layers)
