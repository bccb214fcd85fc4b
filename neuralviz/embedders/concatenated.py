"""Several embeddings of a text, joined (neural paper, Appendix H)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuralviz.embedders.base import Embedder, nothing_learnt, rose, unit_vectors
from neuralviz.errors import SettingsError, ShouldStop


class ConcatenatedEmbedder(Embedder):
    """Joins the vectors of several embedders, each of length 1, and normalises the whole.

    Args:
        parts: at least two.

    Raises:
        SettingsError: there are fewer.
    """

    def __init__(self, parts: Sequence[Embedder]) -> None:
        if len(parts) < 2:
            raise SettingsError("Join at least two embeddings.")
        self.parts = tuple(parts)
        self.name = "+".join(part.name for part in self.parts)

    @property
    def dim(self) -> int:
        """Values of one vector: the parts' summed."""
        return sum(part.dim for part in self.parts)

    @property
    def identity(self) -> tuple[Any, ...]:
        return "concatenated", *(part.identity for part in self.parts)

    def _read(self, texts: Sequence[str]) -> Sequence[tuple[Any, ...]]:
        return list(zip(*(part._read(texts) for part in self.parts), strict=True))

    def _length(self, read: tuple[Any, ...]) -> int:
        return max(part._length(own) for part, own in zip(self.parts, read, strict=True))

    def _embed(
        self, read: Sequence[tuple[Any, ...]], should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        vectors, loss = [], nothing_learnt(len(read))
        for part, own in zip(self.parts, zip(*read, strict=True), strict=True):
            of_part, learnt = part._embed(own, should_stop)
            vectors.append(of_part)
            worse = rose(learnt) & ~rose(loss)
            loss = np.where((np.isnan(loss[:, 0]) | worse)[:, None], learnt, loss)
        return join(vectors), loss


def join(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """[text, dim] the [text, …] vectors of several embedders, each of length 1, then the whole."""
    return unit_vectors(np.concatenate([unit_vectors(part) for part in vectors], axis=1))
