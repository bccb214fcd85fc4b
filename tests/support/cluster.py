"""Embedders and commands for tests on clusters, which Ray's processes import by name."""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from neuralviz.errors import ShouldStop, UnreadableTextError
from tests.support.embedders import HashEmbedder

KILLS = "kill me"  # a text with it kills its process, once
FORBIDDEN = "cannot be read"


class OrderEmbedder(HashEmbedder):
    """Vectors that depend on the batch: on how many go together, and on which comes before.

    Two runs that put texts together in another way come to other vectors.
    """

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        vectors, loss = super()._embed(read, should_stop)
        return vectors + np.roll(vectors, 1, axis=0) / len(read), loss


class FragileEmbedder(OrderEmbedder):
    """Some texts kill the process that embeds them, once or always; others cannot be read.

    Args:
        folder: in which a mark is left for each that did.
        always: whether they do so again.
    """

    def __init__(self, folder: str, *, always: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self.folder, self.always = folder, always

    def _read(self, texts: Sequence[str]) -> Sequence[str]:
        for place, text in enumerate(texts):
            if FORBIDDEN in text:
                raise UnreadableTextError("has no token.", place, len(texts))
        return texts

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        for text in read:
            mark = Path(self.folder) / f"{abs(hash(text))}-{KILLS}"
            if KILLS in text and (self.always or not any(Path(self.folder).iterdir())):
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super()._embed(read, should_stop)


class PlacedEmbedder(OrderEmbedder):
    """Leaves in a folder which process embedded something, on which machine of the cluster.

    Args:
        folder: for its marks.
    """

    def __init__(self, folder: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.folder = folder

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        import ray

        node = ray.get_runtime_context().get_node_id()
        (Path(self.folder) / f"{node} {os.getpid()}").touch()
        return super()._embed(read, should_stop)


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    """Wait until something is true.

    Raises:
        TimeoutError: it is not, after so long.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


class FullDiskEmbedder(OrderEmbedder):
    """The first process that embeds something can write nothing more, as on a full disk.

    Args:
        folder: in which a mark is left.
    """

    def __init__(self, folder: str, *, always: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self.folder, self.always = folder, always

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        mark = Path(self.folder) / "full"
        if self.always or not mark.exists():
            mark.touch()
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        return super()._embed(read, should_stop)


class SickMachineEmbedder(OrderEmbedder):
    """On the machine of the cluster that embeds first, no process can ever write anything.

    Args:
        folder: in which that machine is named.
    """

    def __init__(self, folder: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.folder = folder

    def _embed(self, read: Sequence[str], should_stop: ShouldStop) -> tuple[np.ndarray, np.ndarray]:
        import ray

        node = ray.get_runtime_context().get_node_id()
        with suppress(FileExistsError), (Path(self.folder) / "sick").open("x") as file:
            file.write(node)
        if (Path(self.folder) / "sick").read_text() in (node, ""):
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        return super()._embed(read, should_stop)


class BrokenEmbedder(OrderEmbedder):
    """Texts with one phrase have a vector that is no number, those with another meet an error.

    Args:
        without_number, with_error: the phrases; the empty one is in every text.
    """

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
