"""Which texts of a corpus are selected, a bit a text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Selection:
    """Some texts of a corpus: 10 million take 1.25 MB.

    Attributes:
        bits: [⌈text / 8⌉] uint8, the first text's bit the lowest of the first byte.
        n_texts: of the corpus.
        n: of the selected ones.
    """

    bits: np.ndarray
    n_texts: int
    n: int

    @classmethod
    def from_mask(cls, mask: np.ndarray) -> Selection:
        """The texts for which [text] ``mask`` is true."""
        return cls(pack_bits(mask), len(mask), int(np.count_nonzero(mask)))

    @classmethod
    def from_rows(cls, rows: np.ndarray, n_texts: int) -> Selection:
        """The texts of some row numbers; those that the corpus does not have are left out."""
        mask = np.zeros(n_texts, dtype=bool)
        mask[rows[rows < n_texts]] = True
        return cls.from_mask(mask)

    def __len__(self) -> int:
        return self.n

    @cached_property
    def digest(self) -> str:
        """Differs from that of any other selection."""
        return hashlib.blake2b(self.bits.tobytes(), digest_size=12).hexdigest()

    def mask(self) -> np.ndarray:
        """[text] whether a text is selected."""
        return np.unpackbits(self.bits, count=self.n_texts, bitorder="little").view(bool)

    def rows(self) -> np.ndarray:
        """[selected] row numbers in their order."""
        return np.flatnonzero(self.mask())

    def is_selected(self, rows: np.ndarray) -> np.ndarray:
        """[row] whether the texts of some rows are selected."""
        return (self.bits[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(bool)


def pack_bits(mask: np.ndarray) -> np.ndarray:
    """[⌈text / 8⌉] uint8 of [text] whether something is so."""
    return np.packbits(mask, bitorder="little")
