"""The settings of a training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from neuralviz.errors import SettingsError

PairKind = Literal["crops", "dropout", "masking"]
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
PAIR_LINES: dict[PairKind, str] = {
    "crops": "two different chunks of a text should be near each other",
    "dropout": "a chunk, read twice, should be near itself",
    "masking": "as crops, with tokens of both chunks masked",
}
Splitting = Literal["sentencex", "full-stops"]
TrainingPooling = Literal["mean", "cls", "sep", "seventh"]
TRAINING_POOLINGS: tuple[TrainingPooling, ...] = get_args(TrainingPooling)
Start = Literal["pretrained", "random"]
STARTS: tuple[Start, ...] = get_args(Start)
Part = Literal["model", "table"]
PARTS: tuple[Part, ...] = get_args(Part)

LEARNING_RATE = 2e-5
TABLE_LEARNING_RATE = 0.5  # for the embedding table alone, as in the authors' program
# The poolings that sentence-transformers has, by its names.
SAVED_POOLINGS = {"mean": "mean", "cls": "cls", "sep": "lasttoken"}
EPOCHS = 1
EPOCHS_FROM_SCRATCH = 10  # for random weights, and for the table alone
Limits = tuple[str, int, int]  # noun, lowest, highest
WHOLE_NUMBERS: Mapping[str, Limits] = {
    "sentences": ("number of sentences of a chunk", 1, 100),
    "shortest": ("shortest sentence", 1, 100_000),
    "longest": ("longest sentence", 1, 10**9),
    "frozen_blocks": ("number of frozen blocks", 0, 10_000),
    "batch_size": ("batch size", 2, 4096),
    "seed": ("seed", 0, 2**32 - 1),
    "epochs": ("number of epochs", 1, 1000),
    "max_steps": ("number of steps", 1, 10**7),
}


@dataclass(frozen=True)
class TrainingSettings:
    """How an encoder is trained (crops paper, 3.1 and A.1); `SettingsError` for invalid values."""

    # "crops": two chunks of a text; "dropout": one chunk twice; "masking": two chunks, both masked
    pairs: PairKind = "crops"
    sentences: int = 2  # consecutive sentences per chunk, *t* in the paper
    shortest: int = 100  # characters; shorter sentences are skipped
    longest: int = 250  # characters; longer sentences are skipped
    splitting: Splitting = "sentencex"  # or "full-stops", as in the authors' program
    masked: float = 0.15  # share of tokens masked, for pairs="masking"; above 0 and below 1
    part: Part = "model"  # or "table", the token embeddings alone
    start: Start = "pretrained"  # or "random" weights
    frozen_blocks: int = 0  # lowest blocks; if any, embeddings too
    # "sep" is the last token, "seventh" arbitrary; tables need "mean"
    pooling: TrainingPooling = "mean"
    batch_size: int = 64  # pairs; the other pairs' positives are negatives
    epochs: int | None = None  # passes over the texts; None: 1, or 10 for random weights or table
    max_steps: int | None = None  # ends earlier; the learning rate still falls to 0
    learning_rate: float | None = None  # peak, for Adam; None is 2e-5, or 0.5 for the table
    temperature: float = 0.05  # divides the cosines
    seed: int = 42  # of pairs, batches, dropout, masks and random weights

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(TrainingSettings).items():
            choices = get_args(kind)
            if get_origin(kind) is Literal and getattr(self, name) not in choices:
                chosen = str(getattr(self, name))[:40]
                raise SettingsError(f"Unknown {name} “{chosen}”. Use: {', '.join(choices)}.")
        check_whole_numbers(self, WHOLE_NUMBERS)
        if self.longest < self.shortest:
            raise SettingsError("The longest sentence must not be shorter than the shortest.")
        if not 0 < self.masked < 1:
            raise SettingsError("The masked share must be above 0 and below 1.")
        rates = {"learning rate": self.learning_rate, "temperature": self.temperature}
        for noun, value in rates.items():
            if value is not None and not (math.isfinite(value) and value > 0):
                raise SettingsError(f"The {noun} must be above 0.")
        if self.part == "table" and (self.frozen_blocks or self.pooling != "mean"):
            raise SettingsError("The embedding table has no blocks to freeze, no pooling but mean.")

    @property
    def n_epochs(self) -> int:
        from_scratch = self.start == "random" or self.part == "table"
        return self.epochs or (EPOCHS_FROM_SCRATCH if from_scratch else EPOCHS)

    @property
    def peak_rate(self) -> float:
        default = TABLE_LEARNING_RATE if self.part == "table" else LEARNING_RATE
        return self.learning_rate or default


def check_whole_numbers(settings: object, limits: Mapping[str, Limits]) -> None:
    """Raise `SettingsError` beyond limits (noun, lowest, highest); None may stand where default."""
    for name, (noun, lowest, highest) in limits.items():
        number = getattr(settings, name)
        if number is None and getattr(type(settings), name) is None:
            continue
        if type(number) is not int or not lowest <= number <= highest:
            raise SettingsError(f"The {noun} must be a whole number from {lowest} to {highest:,}.")


def check_can_be_saved(pooling: TrainingPooling) -> None:
    """Raise `SettingsError` for ``seventh``, a pooling that sentence-transformers lacks."""
    if pooling not in SAVED_POOLINGS:
        raise SettingsError(
            "The seventh token is there to compare with: sentence-transformers has no such "
            "pooling, so the encoder cannot be saved. Use mean, cls or sep."
        )
