"""The blueprints and settings of a micro-tuning run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

import numpy as np

from neuralviz.errors import SettingsError
from neuralviz.models import LanguageModel
from neuralviz.models.tokens import TokenizedText

MAX_PERIOD = 512
MAX_BLUEPRINTS = 32
MAX_INPUTS = 2048  # per chunk; a long chunk has as many inputs as the periods sum to


class Blueprint(NamedTuple):
    """A masking pattern: keep ``keep`` tokens, mask the next ``mask``, and repeat."""

    keep: int
    mask: int

    @property
    def period(self) -> int:
        return self.keep + self.mask

    def __str__(self) -> str:
        return f"({self.keep}, {self.mask})"


# The paper's mix (section 2): 3 + 2 + 3 + 4 = 12 inputs for a text of four tokens or more.
DEFAULT_BLUEPRINTS = (Blueprint(2, 1), Blueprint(1, 1), Blueprint(1, 2), Blueprint(1, 3))


@dataclass(frozen=True, eq=False)
class MaskedInputs:
    masked: np.ndarray  # [input, token] bool, true where the token is masked
    blueprint: np.ndarray  # [input] index into the list of blueprints
    shift: np.ndarray  # [input] tokens by which the pattern is shifted

    @property
    def times_masked(self) -> np.ndarray:
        return self.masked.sum(axis=0)


def check_blueprints(blueprints: Iterable[Sequence[int]]) -> tuple[Blueprint, ...]:
    """Check 1 to 32 (keep, mask) pairs; `SettingsError` if not positive or with long periods."""
    # a period may be 512, all together 2,048
    checked = []
    for entry in blueprints:
        pair = tuple(entry) if isinstance(entry, Iterable) and not isinstance(entry, str) else ()
        if len(pair) != 2 or not all(
            isinstance(value, int | np.integer) and not isinstance(value, bool) for value in pair
        ):
            raise SettingsError(
                f"A blueprint must be a pair of whole numbers (keep, mask), not {entry!r}."
            )
        blueprint = Blueprint(*map(int, pair))
        if min(blueprint) < 1 or blueprint.period > MAX_PERIOD:
            raise SettingsError(
                f"The blueprint {blueprint} must keep at least 1 token, mask at least 1, and have "
                f"a period of at most {MAX_PERIOD} tokens."
            )
        checked.append(blueprint)
    if not 1 <= len(checked) <= MAX_BLUEPRINTS:
        raise SettingsError(
            f"Enter 1 to {MAX_BLUEPRINTS} blueprints, such as (2, 1), not {len(checked)}."
        )
    n_inputs = sum(blueprint.period for blueprint in checked)
    if n_inputs > MAX_INPUTS:
        raise SettingsError(
            f"These blueprints give up to {n_inputs:,} masked inputs (the sum of their "
            f"periods); the maximum is {MAX_INPUTS:,}."
        )
    return tuple(checked)


def parse_blueprints(text: str) -> tuple[Blueprint, ...]:
    """Parse ``(2,1), (1,1)`` or ``2 1; 1 1``; `SettingsError` for anything but valid blueprints."""
    body = text.strip().removeprefix("[").removesuffix("]")
    has_brackets = "(" in body or ")" in body
    pattern = r"\(([^()]*)\)" if has_brackets else r"([^;\n]*[^\s;][^;\n]*)"
    pieces = re.findall(pattern, body)
    pieces += re.findall(r"[^\s,;]+", re.sub(pattern, "", body))  # what is no blueprint
    pairs = []
    for piece in pieces:
        numbers = re.fullmatch(r"\s*([+-]?\d{1,20})\s*(?:,|\s)\s*([+-]?\d{1,20})\s*", piece)
        if not numbers:
            raise SettingsError(
                f"“{piece.strip()[:40]}” is not a blueprint. Write pairs such as (2, 1), (1, 3)."
            )
        pairs.append((int(numbers[1]), int(numbers[2])))
    return check_blueprints(pairs)


def mask_inputs(n_tokens: int, blueprints: Iterable[Sequence[int]]) -> MaskedInputs:
    """Make a chunk's masked inputs (neural paper, Figure 10); `SettingsError` without a token."""
    # shift s of blueprint (k, m) masks token j where (j - s) mod (k + m) >= k, for s in 0 … min(k +
    # m, n_tokens) - 1; inputs that mask nothing are dropped, and a single token gets all k + m
    # shifts
    blueprints = check_blueprints(blueprints)
    if n_tokens < 1:
        raise SettingsError("A text needs at least one token.")
    position = np.arange(n_tokens)
    inputs = []
    for index, blueprint in enumerate(blueprints):
        n_shifts = blueprint.period if n_tokens == 1 else min(blueprint.period, n_tokens)
        shift = np.arange(n_shifts)
        masked = (position[None, :] - shift[:, None]) % blueprint.period >= blueprint.keep
        shift = shift[masked.any(axis=1)]
        inputs.append((masked[shift], np.full(len(shift), index), shift))
    return MaskedInputs(*map(np.concatenate, zip(*inputs, strict=True)))


# --- the settings of a run ------------------------------------------------------------------------


MAX_EPOCHS = 1000
# Version of the computation, part of the keys of stored results. Raise it when results change.
REVISION = 3
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
    """How texts are micro-tuned on (neural paper, section 2)."""

    layers: tuple[str, ...]  # names of the tuned 1-D parameters, in the order of the embedding
    blueprints: tuple[Blueprint, ...] = DEFAULT_BLUEPRINTS
    epochs: int = 10  # each is one pass over a text's inputs, and one step
    learning_rate: float = 0.01  # of AdamW
    weight_decay: float = 0.01  # of AdamW
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    eps: float = 1e-8  # of AdamW
    # mask nothing, predict all tokens (Appendix A: works, less well)
    predict_unmasked: bool = False
    # bf16: matrix products in bfloat16; fast: part of the vocabulary after the first step, but all
    # if the output bias is tuned, the vocabulary is small or the learning rate exceeds 0.05
    precision: Precision = "exact"
    tolerance: float = DEFAULT_TOLERANCE  # estimated loss of cosine to exact, if fast

    def __post_init__(self) -> None:
        if not self.is_fast:  # it has no other
            object.__setattr__(self, "tolerance", DEFAULT_TOLERANCE)

    @property
    def is_fast(self) -> bool:
        """Whether improbable words are extrapolated together."""
        return is_fast(self.precision)

    @property
    def precision_in_words(self) -> str:
        """``exact (float32)``, ``fast (tolerance 0.005)``, …"""
        if self.is_fast:
            return f"{self.precision} (tolerance {self.tolerance:g})"
        return "exact (float32)" if self.precision == "exact" else self.precision

    @property
    def in_bf16(self) -> bool:
        return self.precision.endswith("bf16")


class TuningOptions(TypedDict, total=False):
    """Settings as users give them, unchecked; otherwise as `TuningSettings`."""

    layers: Iterable[str] | str | None  # names of 1-D parameters, "head" (default) or "last_block"
    blueprints: Iterable[Sequence[int]]
    epochs: int  # 1 … 1000
    learning_rate: float
    weight_decay: float
    predict_unmasked: bool
    precision: str
    tolerance: float


def check_settings(
    model: LanguageModel, settings: TuningSettings | None = None, **options: Unpack[TuningOptions]
) -> TuningSettings:
    """Check ``settings``, by default the paper's, with ``options`` replacing single values.

    `SettingsError` for a missing layer or invalid value, `TypeError` for an unknown option.
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
    return precision.startswith("fast")


def check_precision(name: str) -> Precision:
    """The precision of that name, with its parts in any order; else `SettingsError`."""
    parts = {part.strip() for part in str(name).lower().split("+")} - {"exact"}
    for precision in PRECISIONS:
        if parts == set(precision.split("+")) - {"exact"}:
            return precision
    raise SettingsError(
        f"Unknown precision “{str(name)[:40]}”. Choose from: {', '.join(PRECISIONS)}."
    )


def check_tolerance(value: float) -> None:
    """Raise `SettingsError` unless 0 < ``value`` < 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise SettingsError(f"The tolerance must be above 0 and below 1, not {value}.")


def check_numbers(epochs: int, learning_rate: float, weight_decay: float) -> None:
    """Raise `SettingsError` if a number is out of range."""
    is_whole = isinstance(epochs, Integral) and not isinstance(epochs, bool)
    if not is_whole or not 1 <= epochs <= MAX_EPOCHS:
        raise SettingsError(
            f"The number of epochs must be a whole number from 1 to {MAX_EPOCHS}, not {epochs!r}."
        )
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
    if settings.predict_unmasked:
        return len(text)
    sizes = [chunk.stop - chunk.start for chunk in text.chunks]
    return sum(int(mask_inputs(size, settings.blueprints).masked.sum()) for size in sizes)


def followed_values(
    model: LanguageModel, texts: Sequence[TokenizedText], settings: TuningSettings
) -> int:
    """Number of values needed to follow every token."""
    sizes = {layer.name: layer.size for layer in model.layers}
    return sum(map(len, texts)) * sum(sizes[name] for name in settings.layers)
