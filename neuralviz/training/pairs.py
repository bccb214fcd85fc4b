"""Positive pairs from texts: crops, dropout and masking (crops paper, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sentencex import get_sentence_boundaries

from neuralviz.errors import NeuralvizError
from neuralviz.training.settings import TrainingSettings
from neuralviz.words import many

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
        sentence = (
            f"Left out as too short: {many(len(self.skipped), 'text')} of {len(self.texts):,}. A "
            f"pair needs {self._needed()}."
        )
        is_advised = len(self.skipped) > _MOST_SKIPPED * len(self.texts)
        return f"{sentence} {_ADVICE}" if is_advised else sentence

    def _needed(self) -> str:
        s = self.settings
        sentences = many(s.sentences + 1, "different sentence")
        return f"{sentences} of {s.shortest} to {s.longest} characters"


def steps_of_epoch(n_pairs: int, batch_size: int) -> int:
    """Batches per epoch; a final single pair is dropped."""
    return -(-(n_pairs - 1) // min(batch_size, n_pairs))
