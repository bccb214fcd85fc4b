"""Files written whole or not at all, results of runs, and records that are never unpickled."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
import re
import secrets
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from neuralviz.errors import StoreError
from neuralviz.paths import home
from neuralviz.server_settings import server_settings

PROBE_BYTES = 4096  # minimum free space

_log = logging.getLogger(__name__)
KEPT_BYTES = 1 << 30  # of all results; the least recently used are deleted first
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]{1,24}")
_OF_CORPUS = "corpus-"
COMMON_VIEW = "common"  # view of examples and Hub data, open to everyone
_PLAIN = "about"
_SEQUENCES: dict[str, type] = {kind.__name__: kind for kind in (list, tuple, set)}

# --- writing and deleting ------------------------------------------------------------------------


def folder_error(sentence: str, cannot: Literal["read", "write to"] = "write to") -> StoreError:
    """Build the error for an unusable folder; on a server the message goes to the log only."""
    settings = server_settings()
    if not (settings.open or settings.demo):
        return StoreError(sentence)
    _log.error("%s", sentence)
    return StoreError(
        f"This server cannot {cannot} its data folder. Tell whoever runs it: its log says why. "
        "Nothing saved earlier was lost."
    )


def why_not_writable(folder: Path) -> str:
    """Why the folder, created if needed, or a subfolder is not writable; empty if it is."""
    place = folder
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in [folder, *(entry for entry in folder.iterdir() if entry.is_dir())]:
            with suppress(FileNotFoundError), tempfile.TemporaryFile(dir=place) as file:
                file.write(bytes(PROBE_BYTES))  # a folder may be deleted meanwhile
    except OSError as error:
        return f"Cannot write to {place}: {error.strerror or error}."
    return ""


def write_bytes_beside(path: Path, content: bytes) -> None:
    """Like `write_beside` for bytes; creates the folder."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with write_beside(path) as file:
        file.write(content)


@contextmanager
def write_beside(path: Path) -> Iterator[IO[bytes]]:
    """Write to a temporary file that replaces ``path`` once complete. Raises OSError."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()


def prune(
    folder: Path,
    *,
    days: float,
    n_bytes: float = math.inf,
    max_units: int | None = None,  # groups to keep
    unit: Callable[[Path], str] = attrgetter("name"),  # group of a path; deleted together
    spare: Callable[[Path], bool] = lambda _: False,  # paths to protect
) -> None:
    """Delete entries unused for ``days``, and the least recently used beyond ``n_bytes``."""
    paths_by_unit: dict[str, list[Path]] = defaultdict(list)
    for path in folder.iterdir():
        paths_by_unit[unit(path)].append(path)
    groups: list[tuple[float, int, list[Path]]] = []
    for paths in paths_by_unit.values():
        with suppress(FileNotFoundError):  # another session pruned it
            files = [file.stat() for path in paths for file in (path, *path.rglob("*"))]
            opened = max(status.st_mtime for status in files)
            groups.append((opened, sum(status.st_size for status in files), paths))
    oldest = time.time() - days * 86400
    for place, (opened, size, paths) in enumerate(sorted(groups, reverse=True)):
        n_bytes -= size
        if n_bytes < 0 or opened < oldest or (max_units is not None and place >= max_units):
            for path in paths:
                if not spare(path):
                    _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


# --- results of runs -----------------------------------------------------------------------------


def keep_result(view: str, key: str, content: bytes, *, prunes: bool = True) -> None:
    """Store or replace a result, then prune. Raises ValueError for an invalid view."""
    path = _path(view, key)
    write_bytes_beside(path, content)
    if prunes:
        prune(path.parent, n_bytes=KEPT_BYTES, days=server_settings().keep_days)


def find_result(view: str, key: str) -> bytes | None:
    try:
        path = _path(view, key)
        content = path.read_bytes()
        path.touch()
    except (OSError, ValueError):
        return None
    return content


def corpus_view(corpus_id: str) -> str:
    """The view ID for the results of a saved corpus."""
    return f"{_OF_CORPUS}{corpus_id}"


def is_of_corpus(view: str) -> bool:
    return view.startswith(_OF_CORPUS)


def is_shared(view: str) -> bool:
    """Whether everyone on this machine can open the view's results."""
    return view == COMMON_VIEW or is_of_corpus(view)


def forget_results(view: str) -> None:
    for path in (home() / "results").glob(f"{view}.*"):
        path.unlink(missing_ok=True)


def _path(view: str, key: str) -> Path:
    if not _VIEW_ID.fullmatch(view):
        raise ValueError(f"{view} is not a valid view ID")
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return home() / "results" / f"{view}.{digest}"


# --- records -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordFormat:
    """Packs plain values, containers, arrays and the listed classes as bytes, without loss."""

    title: str  # what a file holds, for errors: ``results``
    version: int  # raise when equal settings give other records, or older files lack a field
    classes: tuple[type, ...]  # dataclasses and named tuples that a record may contain

    def pack(self, record: object) -> bytes:
        """The record as the bytes of a file; `TypeError` if it contains an unsupported type."""
        arrays: dict[str, np.ndarray] = {}
        plain = self._to_plain(record, arrays)
        return npz_bytes({"format": self.version, "record": plain}, arrays)

    def unpack(self, content: bytes) -> Any:
        """Read what `pack` wrote; `ValueError` for damaged content or another version."""
        metadata, arrays = read_npz(content)
        try:
            if metadata["format"] != self.version:
                raise ValueError(f"Another version of neuralviz saved this file of {self.title}.")
            return self._from_plain(metadata["record"], arrays)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"This is not a file of {self.title}.") from error

    def read(self, path: Path) -> Any:
        """The record in a file; None without the file, or if another version wrote it."""
        try:
            return self.unpack(path.read_bytes())
        except (OSError, ValueError):
            return None

    def _to_plain(self, value: Any, arrays: dict[str, np.ndarray]) -> Any:
        """Convert a value to JSON types; others become a pair of kind and content."""
        if isinstance(value, np.generic):
            value = value.item()
        kind = type(value).__name__
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else [kind, str(value)]
        if isinstance(value, np.ndarray | bytes):
            array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
            arrays[name := f"array-{len(arrays)}"] = array
            return [kind, name]
        if isinstance(value, slice):
            return [kind, [value.start, value.stop]]
        if kind in _SEQUENCES:
            return [kind, [self._to_plain(entry, arrays) for entry in value]]
        if isinstance(value, Mapping):
            return ["dict", [self._to_plain(pair, arrays) for pair in value.items()]]
        if type(value) not in self.classes:
            raise TypeError(f"{kind} cannot be kept in a file of {self.title}")
        names = (field.name for field in fields(value)) if is_dataclass(value) else value._fields
        return [kind, {name: self._to_plain(getattr(value, name), arrays) for name in names}]

    def _from_plain(self, value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
        if not isinstance(value, list):
            return value
        kind, content = value
        if kind == "float":
            return float(content)
        if kind in ("ndarray", "bytes"):
            return arrays[content] if kind == "ndarray" else arrays[content].tobytes()
        if kind == "slice":
            return slice(*content)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](self._from_plain(entry, arrays) for entry in content)
        if kind == "dict":
            return dict(self._from_plain(pair, arrays) for pair in content)
        restored = {name: self._from_plain(entry, arrays) for name, entry in content.items()}
        return {kind_class.__name__: kind_class for kind_class in self.classes}[kind](**restored)


def npz_bytes(metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """A compressed ``npz`` file of arrays by name, with plain values as JSON beside them."""
    values: dict[str, Any] = {_PLAIN: np.frombuffer(json.dumps(metadata).encode(), dtype=np.uint8)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **values, **dict[str, Any](arrays))
    return buffer.getvalue()


def read_npz(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `npz_bytes` wrote; `ValueError` for other bytes and for pickled objects."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return json.loads(arrays.pop(_PLAIN).tobytes()), arrays
    except Exception as error:  # a damaged file makes zipfile and numpy raise almost anything
        raise ValueError(f"This is not a file of arrays ({type(error).__name__}).") from error
