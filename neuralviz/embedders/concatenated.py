"""Several embeddings of a text, joined (neural paper, Appendix H)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.embedders.base import Embedder, has_risen, missing_losses
from neuralviz.errors import SettingsError, ShouldStop


class ConcatenatedEmbedder(Embedder):
    """Joins the unit vectors of several embedders, and normalises the whole."""

    def __init__(self, parts: Sequence[Embedder]) -> None:
        if not isinstance(parts, Sequence) or len(parts) < 2:
            raise SettingsError("Concatenate at least two methods.")
        for part in parts:
            if not isinstance(part, Embedder):
                raise SettingsError(f"Each part must be an embedder, not {part!r:.60}.")
        self._parts = tuple(parts)
        self.name = "+".join(part.name for part in parts)

    @property
    def parts(self) -> tuple[Embedder, ...]:
        return self._parts

    @property
    def device(self) -> str | None:
        devices = {part.device for part in self.parts}
        return devices.pop() if len(devices) == 1 else None

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def depends_on(self) -> Mapping[str, Any]:
        return {"method": "concatenated", "parts": [part.depends_on for part in self.parts]}

    def combine(
        self, vectors: Sequence[np.ndarray], losses: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """[text, dim] vectors, and [text, 2] losses, of a part whose loss rose if any did."""
        worst = missing_losses(len(vectors[0]))
        for loss in losses:
            worse = has_risen(loss) & ~has_risen(worst)
            worst = np.where((np.isnan(worst[:, 0]) | worse)[:, None], loss, worst)
        joined = np.concatenate([unit_vectors(part) for part in vectors], axis=1)
        return unit_vectors(joined), worst

    def _read(self, texts: Sequence[str]) -> Sequence[tuple[Any, ...]]:
        return list(zip(*(part._read_prompted(texts) for part in self.parts), strict=True))

    def _with_prompt(self, prompt: str | None, name: str | None, task: str | None) -> Self:
        prompted = copy.copy(self)
        prompted._parts = tuple(part._with_prompt(prompt, name, task) for part in self.parts)
        return prompted

    def _length(self, read: tuple[Any, ...]) -> int:
        return max(part._length(text) for part, text in zip(self.parts, read, strict=True))

    def _embed(
        self, read: Sequence[tuple[Any, ...]], should_stop: ShouldStop
    ) -> tuple[np.ndarray, np.ndarray]:
        pairs = zip(self.parts, zip(*read, strict=True), strict=True)
        embedded = [part._embed(texts, should_stop) for part, texts in pairs]
        return self.combine(*zip(*embedded, strict=True))
