"""The settings of a training, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from neuralviz.errors import SettingsError

PairKind = Literal["crops", "dropout", "masking"]
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
Splitting = Literal["sentencex", "full-stops"]
TrainingPooling = Literal["mean", "cls", "sep", "seventh"]
TRAINING_POOLINGS: tuple[TrainingPooling, ...] = get_args(TrainingPooling)
Start = Literal["pretrained", "random"]
STARTS: tuple[Start, ...] = get_args(Start)
Part = Literal["model", "table"]
PARTS: tuple[Part, ...] = get_args(Part)

MAX_EPOCHS = 1000
LARGEST_BATCH = 4096
LEARNING_RATE = 2e-5
TABLE_LEARNING_RATE = 0.5  # of the embedding table alone, as in the authors' program
SAVED_POOLINGS = {"mean": "mean", "cls": "cls", "sep": "lasttoken"}
"""What sentence-transformers calls those that it has."""
EPOCHS = 1
EPOCHS_FROM_SCRATCH = 10  # of random weights, and of the table alone
_CHOICES = {
    "pairs": ("pairs", PAIR_KINDS),
    "splitting": ("way to split sentences", get_args(Splitting)),
    "part": ("part to train", PARTS),
    "start": ("start", STARTS),
    "pooling": ("pooling", TRAINING_POOLINGS),
}
_WHOLE_NUMBERS = {
    "sentences": ("The number of sentences of a chunk", 1, 100),
    "shortest": ("The shortest sentence", 1, 100_000),
    "frozen_blocks": ("The number of frozen blocks", 0, 10_000),
    "batch_size": ("The batch size", 2, LARGEST_BATCH),
    "seed": ("The seed", 0, 2**32 - 1),
    "epochs": ("The number of epochs", 1, MAX_EPOCHS),
    "max_steps": ("The number of steps", 1, 10**7),
}


@dataclass(frozen=True)
class TrainingSettings:
    """How pairs are made of texts, and an encoder is trained on them (crops paper, 3.1 and A.1).

    Attributes:
        pairs: ``crops``, two different chunks of a text; ``dropout``, one chunk twice, told apart
            by dropout alone; ``masking``, two different chunks, both with tokens masked.
        sentences: consecutive sentences of a chunk, *t* in the paper.
        shortest, longest: characters of the sentences that are used; all others are skipped before
            chunks are made.
        splitting: ``sentencex``; or ``full-stops``, as the authors' program splits.
        masked: share of tokens that ``masking`` replaces, above 0 and below 1.
        part: ``model``, or the ``table`` of token embeddings alone, without a transformer.
        start: from ``pretrained`` or ``random`` weights.
        frozen_blocks: blocks from below that stay as they are, and with the first of them the
            embeddings.
        pooling: of a text's vector from those of its tokens; ``sep`` is the last token, ``seventh``
            an arbitrary one, to compare with. The table has ``mean`` alone.
        batch_size: pairs of a step; each has the others' positives as negatives.
        epochs: passes over the texts, a pair of each; None for 1, or 10 for random weights and for
            the table.
        max_steps: ends the training earlier; None for all epochs. The learning rate falls to 0 at
            the last step that is made.
        learning_rate: of Adam, at its highest; None for 2e-5, for the table 0.5.
        temperature: divides the cosines.
        seed: of pairs, batches, dropout, masks and random weights.

    Raises:
        SettingsError: one of them makes no sense.
    """

    pairs: PairKind = "crops"
    sentences: int = 2
    shortest: int = 100
    longest: int = 250
    splitting: Splitting = "sentencex"
    masked: float = 0.15
    part: Part = "model"
    start: Start = "pretrained"
    frozen_blocks: int = 0
    pooling: TrainingPooling = "mean"
    batch_size: int = 64
    epochs: int | None = None
    max_steps: int | None = None
    learning_rate: float | None = None
    temperature: float = 0.05
    seed: int = 42

    def __post_init__(self) -> None:
        for name, (noun, choices) in _CHOICES.items():
            if (choice := getattr(self, name)) not in choices:
                raise SettingsError(
                    f"Unknown {noun} “{str(choice)[:40]}”. Use: {', '.join(choices)}."
                )
        for name, (noun, lowest, highest) in _WHOLE_NUMBERS.items():
            number = getattr(self, name)
            if number is None and name in ("epochs", "max_steps"):
                continue
            if type(number) is not int or not lowest <= number <= highest:
                raise SettingsError(f"{noun} must be a whole number from {lowest} to {highest:,}.")
        if not (isinstance(self.longest, int) and self.longest >= self.shortest):
            raise SettingsError("The longest sentence must not be shorter than the shortest.")
        if not 0 < self.masked < 1:
            raise SettingsError("The masked share must be above 0 and below 1.")
        rate = self.learning_rate
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise SettingsError(
                "The learning rate must be above 0; at 0 nothing would be learnt. "
                f"The paper uses {LEARNING_RATE:g}."
            )
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise SettingsError("The temperature must be above 0.")
        if self.part == "table" and self.frozen_blocks:
            raise SettingsError("The embedding table has no blocks to freeze.")
        if self.part == "table" and self.pooling != "mean":
            raise SettingsError("The embedding table has no pooling but mean.")

    @property
    def n_epochs(self) -> int:
        """Passes over the texts."""
        from_scratch = self.start == "random" or self.part == "table"
        return self.epochs or (EPOCHS_FROM_SCRATCH if from_scratch else EPOCHS)

    @property
    def peak_rate(self) -> float:
        """The highest learning rate."""
        default = TABLE_LEARNING_RATE if self.part == "table" else LEARNING_RATE
        return self.learning_rate or default


def check_can_be_saved(pooling: TrainingPooling) -> None:
    """Raise `SettingsError` for a pooling that sentence-transformers does not have: the seventh."""
    if pooling not in SAVED_POOLINGS:
        raise SettingsError(
            "The seventh token is there to compare with: sentence-transformers has no such "
            "pooling, so the encoder cannot be saved. Use mean, cls or sep."
        )
