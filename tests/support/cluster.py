"""Embedders for tests on clusters, which Ray's processes import by name."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from neuralviz.errors import ShouldStop, UnreadableTextError
from tests.support.embedders import HashEmbedder

KILLS = "kill me"  # a text with it kills its process
FORBIDDEN = "cannot be read"


class OrderEmbedder(HashEmbedder):
    """Vectors that depend on the batch: two runs with other batches come to other vectors."""

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        vectors, loss = super()._embed(read, should_stop)
        return vectors + np.roll(vectors, 1, axis=0) / len(read), loss


class FragileEmbedder(OrderEmbedder):
    """Some texts kill the first process that embeds them; others cannot be read."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.mark = Path(folder) / "killed"

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        for place, text in enumerate(texts):
            if FORBIDDEN in text:
                raise UnreadableTextError("has no token.", place, len(texts))
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        if any(KILLS in text for text in read) and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._embed(read, should_stop)


class PlacedEmbedder(OrderEmbedder):
    """Leaves in a folder which process embedded something, on which machine of the cluster."""

    def __init__(self, folder: str, seconds: float = 0.0) -> None:
        super().__init__(seconds=seconds)
        self.folder = folder

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        (Path(self.folder) / f"{_this_node()} {os.getpid()}").touch()
        return super()._embed(read, should_stop)


class SickMachineEmbedder(OrderEmbedder):
    """On the machine of the cluster that embeds first, no process can ever write anything."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.mark = Path(folder) / "sick"  # names the machine

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        with suppress(FileExistsError), self.mark.open("x") as file:
            file.write(_this_node())
        if self.mark.read_text() in (_this_node(), ""):
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        return super()._embed(read, should_stop)


class BrokenEmbedder(OrderEmbedder):
    """Texts with one phrase have a vector that is no number, those with another meet an error."""

    def __init__(self, without_number: str, with_error: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.without_number, self.with_error = without_number, with_error

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        vectors, loss = super()._embed(read, should_stop)
        for place, text in enumerate(read):
            if self.with_error in text:
                raise RuntimeError("CUDA error:\nout of memory.")
            if self.without_number in text:
                vectors[place] = np.nan
        return vectors, loss


def _this_node() -> str:
    import ray

    return ray.get_runtime_context().get_node_id()
