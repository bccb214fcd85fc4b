"""Vectors of length 1; and records as one file of arrays, of which nothing is ever unpickled."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

_PLAIN = "about"
_SEQUENCES: dict[str, type] = {kind.__name__: kind for kind in (list, tuple, set)}


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """[text, dim] vectors of length 1; those of zeros stay so."""
    peak = np.abs(vectors).max(axis=1, keepdims=True, initial=0)  # keeps the squares in range
    scaled = vectors / np.where(peak > 0, peak, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(length > 0, length, 1)


@dataclass(frozen=True)
class RecordFormat:
    """How records of a kind are written to a file and read again, exactly.

    A record is built of plain values, arrays, lists, tuples, sets, maps, slices, bytes, and the
    dataclasses and named tuples listed here. Nothing else is made from a file.
    """

    title: str  # what a file holds, for errors: ``results``
    version: int  # raised where the same settings give other records, or older files lack something
    classes: tuple[type, ...]  # dataclasses and named tuples that may be in a record

    def pack(self, record: object) -> bytes:
        """The content of a file from which `unpack` makes the same record.

        Raises:
            TypeError: the record holds something that has no place in such a file.
        """
        arrays: dict[str, np.ndarray] = {}
        plain = self._to_plain(record, arrays)
        return npz_bytes({"format": self.version, "record": plain}, arrays)

    def unpack(self, content: bytes) -> Any:
        """The record that `pack` wrote.

        Raises:
            ValueError: the content is damaged, of another version, or something else.
        """
        metadata, arrays = read_npz(content)
        try:
            if metadata["format"] != self.version:
                raise ValueError(f"Another version of neuralviz saved this file of {self.title}.")
            return self._from_plain(metadata["record"], arrays)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"This is no file of {self.title}.") from error

    def _to_plain(self, value: Any, arrays: dict[str, np.ndarray]) -> Any:
        """A value as JSON; one that JSON lacks is a pair of its kind and its content."""
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
        """The value that `_to_plain` wrote."""
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
    """Read the bytes of `npz_bytes`: the plain values, and the arrays by name.

    Raises:
        ValueError: the bytes are something else, or hold objects that would have to be unpickled.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return json.loads(arrays.pop(_PLAIN).tobytes()), arrays
    except Exception as error:  # a damaged file makes zipfile and numpy raise almost anything
        raise ValueError(f"This is no file of arrays ({type(error).__name__}).") from error
