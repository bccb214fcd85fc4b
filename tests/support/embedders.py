"""An embedder that needs no model: its vectors are known numbers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuralviz.embedders import Embedder
from neuralviz.embedders.base import missing_losses
from neuralviz.errors import ShouldStop, Stopped


class HashEmbedder(Embedder):
    """Vectors drawn from a generator that the text seeds; a batch takes so many ``seconds``."""

    def __init__(self, dim: int = 8, seconds: float = 0.0, name: str = "hash") -> None:
        self.name = name
        self.seconds = seconds
        self.calls: list[list[str]] = []
        self._dim = dim

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def depends_on(self) -> dict[str, Any]:
        return {"method": self.name, "dim": self._dim}

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        if should_stop():
            raise Stopped
        self.calls.append(list(read))
        time.sleep(self.seconds)
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in read]
        vectors = np.stack([np.random.default_rng(seed).normal(size=self._dim) for seed in seeds])
        return vectors, missing_losses(len(read))
