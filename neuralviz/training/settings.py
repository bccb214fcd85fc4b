"""The settings of a training, and the pairs of texts that it learns from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
from sentencex import get_sentence_boundaries

from neuralviz.errors import NeuralvizError, SettingsError, check_choice
from neuralviz.words import many

PairKind = Literal["crops", "dropout", "masking"]
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
PAIR_LINES: dict[PairKind, str] = {
    "crops": "two different chunks of a text",
    "dropout": "the same chunk, read twice with some of the numbers in its vectors, chosen at "
    "random, set to 0",
    "masking": "two different chunks of a text, with tokens of both masked",
}
Splitting = Literal["sentencex", "full-stops"]
TrainingPooling = Literal["mean", "cls", "sep", "seventh"]
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
    "sentences": ("number of sentences per chunk", 1, 100),
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
            if get_origin(kind) is Literal:
                check_choice(name, getattr(self, name), get_args(kind))
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
            raise SettingsError(
                "The embedding table has no blocks to freeze, and only mean pooling."
            )

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
            "The seventh token is for comparison only: sentence-transformers has no such "
            "pooling, so the encoder cannot be saved. Use mean, cls or sep."
        )


FEWEST_CHUNKS = 2  # that a text needs to be used
_MOST_SKIPPED = 0.5  # share of skipped texts from which advice is given
_ADVICE = "Use longer texts, allow sentences of other lengths, or make chunks of one sentence."


@dataclass(frozen=True)
class Pair:
    """Two chunks of text number ``text`` that should be close; the same chunk for dropout."""

    text: int
    anchor: str
    positive: str


def sentences_of(text: str, settings: TrainingSettings) -> list[str]:
    if settings.splitting == "full-stops":
        parts = text.split(".")
    else:
        parts = [boundary["text"] for boundary in get_sentence_boundaries("en", text)]
    stripped = (sentence.strip() for sentence in parts)
    return [
        sentence for sentence in stripped if settings.shortest <= len(sentence) <= settings.longest
    ]


def chunks_of(text: str, settings: TrainingSettings) -> list[str]:
    """The distinct chunks of consecutive sentences, skipping sentences of unsuitable length."""
    sentences = sentences_of(text, settings)
    joint, end = (". ", ".") if settings.splitting == "full-stops" else (" ", "")
    starts = range(len(sentences) - settings.sentences + 1)
    return list(
        dict.fromkeys(
            joint.join(sentences[start : start + settings.sentences]) + end for start in starts
        )
    )


class PairSource:
    """Pairs, one per text and epoch; `NeuralvizError` unless two texts have two chunks each."""

    # made on demand to save memory; with one seed, all kinds of pairs share anchors and batches

    def __init__(self, texts: Sequence[str], settings: TrainingSettings) -> None:
        self.texts = texts
        self.settings = settings
        counts = np.fromiter((len(chunks_of(text, settings)) for text in texts), dtype=np.int64)
        # numbers of the texts with at least two chunks
        self.used = np.flatnonzero(counts >= FEWEST_CHUNKS)
        self.skipped = np.flatnonzero(counts < FEWEST_CHUNKS)  # numbers of the others
        self._counts = counts[self.used]
        if len(texts) < 2:
            raise NeuralvizError(
                "Training needs at least two texts: each is told apart from the others."
            )
        if len(self.used) < 2:
            raise NeuralvizError(
                f"Too few of the {len(texts):,} texts are long enough for a pair, which needs "
                f"{self._needed()}. {_ADVICE}"
            )

    def __len__(self) -> int:
        return len(self.used)

    def epoch(self, number: int) -> list[tuple[int, int, int]]:
        """An epoch's draws in random order: text, anchor chunk, positive chunk."""
        draw = np.random.default_rng([self.settings.seed, number])
        first = (draw.random(len(self)) * self._counts).astype(np.int64)
        further = 1 + (draw.random(len(self)) * (self._counts - 1)).astype(np.int64)
        second = (first + further) % self._counts
        if self.settings.pairs == "dropout":
            second = first
        order = draw.permutation(len(self))
        rows = np.stack([self.used, first, second], axis=1)[order]
        return [(int(text), int(anchor), int(positive)) for text, anchor, positive in rows]

    def batches(self, number: int, batch_size: int, first: int = 0) -> Iterator[list[Pair]]:
        """An epoch's batches from number ``first``; a final single pair is dropped."""
        drawn = self.epoch(number)
        for start in range(first * batch_size, len(drawn) - 1, batch_size):
            yield [self.pair(*row) for row in drawn[start : start + batch_size]]

    def pair(self, text: int, anchor: int, positive: int) -> Pair:
        chunks = chunks_of(self.texts[text], self.settings)
        return Pair(text, chunks[anchor], chunks[positive])

    def skipped_in_words(self) -> str:
        """How many texts are too short, and what would help; empty if none."""
        if not len(self.skipped):
            return ""
        n = many(len(self.skipped), "text")
        sentence = f"Too short to train on: {n} of {len(self.texts):,}."
        if len(self.skipped) <= _MOST_SKIPPED * len(self.texts):
            return sentence
        return f"{sentence} A pair needs {self._needed()}. {_ADVICE}"

    def _needed(self) -> str:
        s = self.settings
        sentences = many(s.sentences + 1, "different sentence")
        return f"{sentences} of {s.shortest} to {s.longest} characters"


def steps_of_epoch(n_pairs: int, batch_size: int) -> int:
    """Batches per epoch; a final single pair is dropped."""
    return -(-(n_pairs - 1) // min(batch_size, n_pairs))
