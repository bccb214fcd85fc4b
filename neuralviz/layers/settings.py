"""Settings for poolings, layer numbers and SBERT-WK. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, get_args

from neuralviz.errors import SettingsError

if TYPE_CHECKING:
    from neuralviz.models import TextModel

PoolingName = Literal["mean", "cls", "sep", "last"]
POOLINGS: tuple[PoolingName, ...] = get_args(PoolingName)
POOLING_NAMES: dict[str, str] = {
    "mean": "mean of all tokens",
    "cls": "start mark [CLS]",
    "sep": "end mark [SEP]",
    "last": "last token",
}
Variant = Literal["authors", "paper"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
# labels of the two versions of SBERT-WK's formulas
VARIANT_NAMES: dict[Variant, str] = {"authors": "Authors' program", "paper": "Paper's equations"}
# The parts of SBERT-WK that can be used alone (rows of Table VII), with their labels.
PARTS = {
    "all": "SBERT-WK",
    "alignment": "Alignment",
    "novelty": "Novelty",
    "importance": "Token importance, all layers",
    "importance-last": "Token importance, last layer",
    "last": "Mean of the last layer",
}

WIDEST_WINDOW, MOST_WINDOW = 6, 1000  # layer windows: offered, possible
LAYER_START_SHARE = 1 / 3  # of the blocks: the paper starts at layer 4 of 12


def check_layer_numbers(
    model: TextModel, layer: int | Iterable[int] | Literal["last", "all"]
) -> tuple[int, ...]:
    """Resolve ``last``, ``all`` or numbers (negative ones count back) to 0 … ``n_blocks``.

    `SettingsError` if the model lacks a layer, or none is given.
    """
    n_layers = model.n_blocks + 1
    if isinstance(layer, str):
        if layer not in ("last", "all"):
            raise SettingsError("The layer must be a number, “last” or “all”.")
        return tuple(range(n_layers)) if layer == "all" else (n_layers - 1,)
    numbers = tuple(layer) if isinstance(layer, Iterable) else (layer,)
    if not numbers:
        raise SettingsError("Choose at least one layer.")
    for number in numbers:
        is_whole = isinstance(number, Integral) and not isinstance(number, bool)
        if not is_whole or not -n_layers <= number < n_layers:
            raise SettingsError(
                f"The model “{model.id}” has no layer {number}. Choose from 0 (embedding "
                f"output) to {n_layers - 1}, or from -1 to -{n_layers}, counted from the end."
            )
    return tuple(dict.fromkeys(int(number) % n_layers for number in numbers))


@dataclass(frozen=True)
class SbertWkSettings:
    """How SBERT-WK weights layers and tokens (SBERT-WK, section IV)."""

    layer_start: int  # first layer that counts
    # "authors": the program behind the paper's tables; "paper": its equations
    variant: Variant = "authors"
    window: int = 2  # compare each layer with this many on each side
    omega: float = 0.5  # weight of alignment, 0 … 1; novelty has 1 - omega


def check_sbert_wk(
    model: TextModel,
    *,
    variant: Variant = "authors",
    layer_start: int | None = None,
    window: int = 2,
    omega: float = 0.5,
) -> SbertWkSettings:
    """Check the settings, which raises SettingsError; layers start at a third of the blocks."""
    if variant not in VARIANTS:
        raise SettingsError(f"The variant must be {' or '.join(VARIANTS)}.")
    if layer_start is None:
        layer_start = round(model.n_blocks * LAYER_START_SHARE)
    for name, value, kind, low, high in (
        ("first layer", layer_start, Integral, 0, model.n_blocks),
        ("layer window", window, Integral, 1, MOST_WINDOW),
        ("omega", omega, Real, 0, 1),
    ):
        if not isinstance(value, kind) or isinstance(value, bool) or not low <= value <= high:
            unit = "a whole number" if kind is Integral else "a number"
            raise SettingsError(
                f"For the model “{model.id}”, the {name} must be {unit} from {low} to {high}, not "
                f"{value!r}."
            )
    return SbertWkSettings(int(layer_start), variant, int(window), float(omega))
