"""A text's vector as a sum of parts, one a token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from neuralviz.models import TokenizedText
from neuralviz.words import ShortRepr

SPECIAL_TOKENS = "special tokens"


class Part(NamedTuple):
    """What one layer adds to a vector."""

    layer: str  # its name
    block: int  # parts of a block are added up; the blocks stand side by side, in their order
    rows: np.ndarray  # [token + 1, dim of the block] float64; the last belongs to no token


@dataclass(frozen=True, eq=False, repr=False)
class SplitVector(ShortRepr):
    """The parts that add up to a text's vector."""

    text: str
    spans: np.ndarray  # [token, 2] first and past-the-last character
    word_spans: np.ndarray  # [token, 2] those of the word it belongs to
    parts: tuple[Part, ...]
    rest: str  # what belongs to no token, such as “weight decay”

    @classmethod
    def of_text(cls, text: TokenizedText, parts: Iterable[Part], rest: str) -> SplitVector:
        word_spans = np.array(text.word_spans)[text.words]
        return cls(text.text, text.spans, word_spans, tuple(parts), rest)

    @cached_property
    def blocks(self) -> list[np.ndarray]:
        """Each block's [token + 1, dim] rows, over all layers."""
        rows: dict[int, np.ndarray] = {}
        for part in self.parts:
            rows[part.block] = rows.get(part.block, 0.0) + part.rows
        return [rows[block] for block in sorted(rows)]

    @property
    def vector(self) -> np.ndarray:
        """[dim] the sum of the parts."""
        return np.concatenate([rows.sum(axis=0) for rows in self.blocks])

    def normalize(self, least: float = 0.0) -> SplitVector:
        """The parts of the unit vector; one of length ``least`` or shorter becomes zero."""
        length = float(np.linalg.norm(self.vector))
        factor = 1 / length if length > least else 0.0
        parts = [part._replace(rows=part.rows * factor) for part in self.parts]
        return replace(self, parts=tuple(parts))

    def name_layers(self, method: str) -> SplitVector:
        """With layers named as those of one method among several."""
        parts = [part._replace(layer=f"{part.layer} ({method})") for part in self.parts]
        return replace(self, parts=tuple(parts))

    def minus(self, vector: np.ndarray, name: str) -> SplitVector:
        """With a [dim] ``vector`` subtracted, as a part ``name`` that belongs to no token."""
        ends = np.cumsum([rows.shape[1] for rows in self.blocks])[:-1]
        added = []
        for block, values in enumerate(np.split(vector, ends)):
            rows = np.zeros_like(self.blocks[block])
            rows[-1] = -values
            added.append(Part(name, block, rows))
        return replace(self, parts=(*self.parts, *added), rest=_list_names([self.rest, name]))


def join_splits(splits: Sequence[SplitVector]) -> SplitVector:
    """The parts of the unit vector made of several unit vectors of one text, side by side.

    Where the methods cut the text into other tokens, each keeps its own.
    """
    first = splits[0]
    is_same = all(np.array_equal(split.spans, first.spans) for split in splits)
    kept = [first] if is_same else splits
    spans = np.concatenate([split.spans for split in kept])
    parts, n_blocks, start = [], 0, 0
    for split in splits:
        end = start + len(split.spans)
        for layer, block, rows in split.normalize().parts:
            all_rows = np.zeros((len(spans) + 1, rows.shape[1]))
            all_rows[start:end], all_rows[-1] = rows[:-1], rows[-1]
            parts.append(Part(layer, n_blocks + block, all_rows))
        n_blocks += len(split.blocks)
        start = 0 if is_same else end
    word_spans = np.concatenate([split.word_spans for split in kept])
    rest = _list_names([split.rest for split in splits])
    return SplitVector(first.text, spans, word_spans, tuple(parts), rest).normalize()


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))
