"""Plain values and arrays as one file of bytes: nothing in it is ever unpickled."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

_PLAIN = "about"


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
