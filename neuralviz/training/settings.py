"""The settings of a training, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypedDict, Unpack, get_args

from neuralviz.errors import SettingsError

PairKind = Literal["crops", "dropout", "masking"]
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
Splitting = Literal["sentencex", "full-stops"]
SPLITTINGS: tuple[Splitting, ...] = get_args(Splitting)
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


@dataclass(frozen=True)
class PairSettings:
    """How positive pairs are made from texts (crops paper, section 3.1).

    Attributes:
        kind: ``crops``, two different chunks of a text; ``dropout``, one chunk twice, told apart
            by dropout alone; ``masking``, two different chunks, both with tokens masked.
        sentences: consecutive sentences of a chunk, *t* in the paper.
        shortest, longest: characters of the sentences that are used; all others are skipped before
            chunks are made.
        splitting: ``sentencex``; or ``full-stops``, as the authors' program splits.
        masked: share of tokens that ``masking`` replaces, above 0 and below 1.
    """

    kind: PairKind = "crops"
    sentences: int = 2
    shortest: int = 100
    longest: int = 250
    splitting: Splitting = "sentencex"
    masked: float = 0.15

    def __post_init__(self) -> None:
        _check_one_of("pairs", self.kind, PAIR_KINDS)
        _check_one_of("way to split sentences", self.splitting, SPLITTINGS)
        _check_whole("The number of sentences of a chunk", self.sentences, 1, 100)
        _check_whole("The shortest sentence", self.shortest, 1, 100_000)
        if not (isinstance(self.longest, int) and self.longest >= self.shortest):
            raise SettingsError("The longest sentence must not be shorter than the shortest.")
        if not 0 < self.masked < 1:
            raise SettingsError("The masked share must be above 0 and below 1.")


@dataclass(frozen=True)
class TrainingSettings:
    """How an encoder is trained on pairs (crops paper, sections 3.1 and A.1).

    Attributes:
        pairs: how they are made.
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
    """

    pairs: PairSettings = field(default_factory=PairSettings)
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
        _check_one_of("part to train", self.part, PARTS)
        _check_one_of("start", self.start, STARTS)
        _check_one_of("pooling", self.pooling, TRAINING_POOLINGS)
        _check_whole("The number of frozen blocks", self.frozen_blocks, 0, 10_000)
        _check_whole("The batch size", self.batch_size, 2, LARGEST_BATCH)
        _check_whole("The seed", self.seed, 0, 2**32 - 1)
        if self.epochs is not None:
            _check_whole("The number of epochs", self.epochs, 1, MAX_EPOCHS)
        if self.max_steps is not None:
            _check_whole("The number of steps", self.max_steps, 1, 10**7)
        rate = self.learning_rate
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise SettingsError(
                "The learning rate must be above 0; at 0 nothing would be learnt. "
                f"The paper uses {LEARNING_RATE:g}."
            )
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise SettingsError("The temperature must be above 0.")
        if self.part == "table":
            if self.frozen_blocks:
                raise SettingsError("The embedding table has no blocks to freeze.")
            if self.pooling != "mean":
                raise SettingsError("The embedding table has no pooling but mean.")

    @property
    def n_epochs(self) -> int:
        """Passes over the texts."""
        if self.epochs is not None:
            return self.epochs
        from_scratch = self.start == "random" or self.part == "table"
        return EPOCHS_FROM_SCRATCH if from_scratch else EPOCHS

    @property
    def peak_rate(self) -> float:
        """The highest learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        return TABLE_LEARNING_RATE if self.part == "table" else LEARNING_RATE


class TrainingOptions(TypedDict, total=False):
    """Settings by name as people give them, as of `PairSettings` and `TrainingSettings`."""

    pairs: PairKind | PairSettings
    sentences: int
    shortest: int
    longest: int
    splitting: Splitting
    masked: float
    part: Part
    start: Start
    frozen_blocks: int
    pooling: TrainingPooling
    batch_size: int
    epochs: int | None
    max_steps: int | None
    learning_rate: float | None
    temperature: float
    seed: int


def with_options(
    settings: TrainingSettings, **options: Unpack[TrainingOptions]
) -> TrainingSettings:
    """The settings with what is to differ from them.

    Raises:
        SettingsError: one of them makes no sense.
        TypeError: there is no option of that name.
    """
    if unknown := options.keys() - TrainingOptions.__annotations__.keys():
        raise TypeError(f"Unknown setting: {', '.join(sorted(unknown))}.")
    chosen: dict[str, Any] = dict(options)
    pairs = chosen.pop("pairs", settings.pairs)
    if not isinstance(pairs, PairSettings):
        pairs = replace(settings.pairs, kind=pairs)
    of_pairs = {field.name for field in fields(PairSettings)} & chosen.keys()
    pairs = replace(pairs, **{name: chosen.pop(name) for name in of_pairs})
    return replace(settings, pairs=pairs, **chosen)


def check_can_be_saved(pooling: TrainingPooling) -> None:
    """Refuse a pooling that sentence-transformers does not have, before anything is trained.

    Raises:
        SettingsError: it is the seventh token.
    """
    if pooling not in SAVED_POOLINGS:
        raise SettingsError(
            "The seventh token is there to compare with: sentence-transformers has no such "
            "pooling, so the encoder cannot be saved. Use mean, cls or sep."
        )


def _check_one_of(noun: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"Unknown {noun} “{str(value)[:40]}”. Use: {', '.join(choices)}.")


def _check_whole(noun: str, value: int, lowest: int, highest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise SettingsError(f"{noun} must be a whole number from {lowest} to {highest:,}.")
