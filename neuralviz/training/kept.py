"""Where trainings keep their checkpoints, and for how long: they are large."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.paths import home
from neuralviz.store.pruning import prune

if TYPE_CHECKING:
    from pathlib import Path

KEPT_BYTES = 16 << 30  # of all trainings; those that nobody went on with for longest go first
KEPT_DAYS = 30  # since a training's last step
_LOCK = "training.lock"


def training_folder(name: str) -> Path:
    """The folder of a training's checkpoints; old ones of others are deleted to make room."""
    folder = home() / "trainings"
    with suppress(OSError):  # there are none, or they are somebody else's
        prune(folder, n_bytes=KEPT_BYTES, days=KEPT_DAYS, spare=_is_under_way)
    return folder / name


@contextmanager
def hold_training(folder: Path) -> Iterator[None]:
    """Meanwhile nobody else trains in a folder, which is made.

    Raises:
        NeuralvizError: somebody does.
        StoreError: the folder cannot be written.
    """
    lock = FileLock(folder / _LOCK, thread_local=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout as error:
        raise NeuralvizError(
            "This very training is under way already, in another tab or program. Wait until it "
            "has ended, or stop it there."
        ) from error
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"Could not save the training to {folder}: {reason}.") from error
    try:
        yield
    finally:
        lock.release()


def _is_under_way(folder: Path) -> bool:
    if not (folder / _LOCK).exists():
        return False
    try:
        with FileLock(folder / _LOCK, blocking=False):
            return False
    except (Timeout, OSError):
        return True
