"""Unit vectors, and records stored as arrays in one file that is never unpickled."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN = "about"
_SEQUENCES: dict[str, type] = {kind.__name__: kind for kind in (list, tuple, set)}


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """[text, dim] vectors scaled to length 1; zero vectors stay zero."""
    peak = np.abs(vectors).max(axis=1, keepdims=True, initial=0)  # keeps the squares in range
    scaled = vectors / np.where(peak > 0, peak, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled /= np.where(length > 0, length, 1)
    return scaled


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
            raise ValueError(f"This is no file of {self.title}.") from error

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
        raise ValueError(f"This is no file of arrays ({type(error).__name__}).") from error
