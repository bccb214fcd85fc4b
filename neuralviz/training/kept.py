"""Where trainings keep their large checkpoints, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from neuralviz.errors import NeuralvizError
from neuralviz.paths import home
from neuralviz.store.files import folder_error, prune

if TYPE_CHECKING:
    from pathlib import Path

KEPT_BYTES = 16 << 30  # for all trainings; the longest unused are deleted first
KEPT_DAYS = 30  # since a training's last step
STEP = "step-"  # prefix of checkpoints, followed by the step
_LOCK = "training.lock"
_TABLES = "tables"


def training_folder(name: str) -> Path:
    """A training's checkpoint folder; old trainings are deleted first."""
    folder = _trainings()
    with suppress(OSError):  # none exist, or they belong to another user
        prune(folder, n_bytes=KEPT_BYTES, days=KEPT_DAYS, spare=_stays)
    return folder / name


def list_checkpoints(folder: Path) -> dict[int, Path]:
    names = {path: path.name.removeprefix(STEP) for path in folder.glob(f"{STEP}*")}
    return {int(step): path for path, step in names.items() if step.isdecimal()}


def tables_folder() -> Path:
    """The folder of finished table rows, which are never deleted."""
    return _trainings() / _TABLES


@contextmanager
def hold_training(folder: Path) -> Iterator[None]:
    """Make and lock a training's folder; `NeuralvizError` if in use, `StoreError` if unwritable."""
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
        raise folder_error(f"Could not save the training to {folder}: {reason}.") from error
    try:
        yield
    finally:
        lock.release()


def _trainings() -> Path:
    return home() / "trainings"


def _stays(folder: Path) -> bool:
    return folder.name == _TABLES or any(map(_is_held, folder.rglob(_LOCK)))


def _is_held(lock: Path) -> bool:
    try:
        with FileLock(lock, blocking=False):
            return False
    except (Timeout, OSError):
        return True
