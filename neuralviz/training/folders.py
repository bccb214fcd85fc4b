"""A folder of snapshots: somebody's own training, recorded so that it can be looked at here.

It holds numbers and words alone: ``training.npz`` as `neuralviz.training.record` writes lessons,
and ``texts.json`` with the texts that are watched. Both are written beside and moved into place, so
that a training can be looked at while it runs.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralviz.errors import NeuralvizError
from neuralviz.store.files import write_bytes_beside
from neuralviz.store.writing import explain_write_errors
from neuralviz.training.record import LESSONS_FORMAT, Lesson, read_lessons

MOST_BYTES = 1 << 29  # of a file, unpacked
SHOWN_CHARACTERS = 1000  # of a text
_TRAINING, _TEXTS = "training.npz", "texts.json"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class RecordedTraining:
    """A training in a folder of snapshots, and the beginnings of the texts that are watched.

    Attributes:
        labels: of each text, ``""`` for none; None where there are none at all.
        model: what was trained, in its owner's words; may be empty.
    """

    lesson: Lesson
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    model: str


def write_texts(
    folder: Path, texts: Sequence[str], labels: Sequence[str] | None, model: str
) -> None:
    """Write what stays the same while a training goes on; NeuralvizError where that cannot be."""
    header = {
        "format": _FORMAT,
        "model": model,
        "texts": [text[:SHOWN_CHARACTERS] for text in texts],
        "labels": None if labels is None else list(labels),
    }
    _write(folder / _TEXTS, json.dumps(header).encode())


def write_lesson(folder: Path, lesson: Lesson) -> None:
    """Write how far a training is. Raises as `write_texts`; what was there is kept then."""
    _write(folder / _TRAINING, LESSONS_FORMAT.pack([lesson]))


def has_snapshots(folder: Path) -> bool:
    return (folder / _TRAINING).exists()


def read_folder(folder: str | Path) -> RecordedTraining:
    """What `neuralviz.training.SnapshotCallback` has recorded so far.

    Raises:
        NeuralvizError: there is no such folder, it holds no snapshots, or they are damaged.
    """
    try:
        folder = Path(folder).expanduser()
        if not folder.is_dir():
            raise NeuralvizError(f"No such folder: {folder}. Check the path.")
        if not has_snapshots(folder):
            raise NeuralvizError(
                f"{folder} holds no snapshots yet. neuralviz.training.SnapshotCallback writes the "
                "first before the first step."
            )
        if max(_unpacked(folder / _TRAINING), (folder / _TEXTS).stat().st_size) > MOST_BYTES:
            raise NeuralvizError(f"The snapshots in {folder} are too large to be read.")
        (lesson,) = read_lessons((folder / _TRAINING).read_bytes())
        header = json.loads((folder / _TEXTS).read_text("utf-8"))
        texts, labels = tuple(map(str, header["texts"])), header["labels"]
        if labels is not None:
            labels = tuple(map(str, labels))
        if any(snapshot.nearest.shape[:1] != (len(texts),) for snapshot in lesson.snapshots):
            raise ValueError("These are the texts of another training.")
        return RecordedTraining(lesson, texts, labels, str(header["model"]))
    except (OSError, RuntimeError) as error:  # a name too long, no such home, no right to read
        reason = getattr(error, "strerror", None) or error
        raise NeuralvizError(f"Could not read {str(folder)[:80]}: {reason}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise NeuralvizError(
            f"The snapshots in {folder} are damaged, or of another version of neuralviz."
        ) from error


def _unpacked(path: Path) -> int:
    """Bytes of an archive's files."""
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def _write(path: Path, content: bytes) -> None:
    with explain_write_errors(path):
        write_bytes_beside(path, content)
