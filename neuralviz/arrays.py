"""Plain values and arrays as one file of bytes: nothing in it is ever unpickled."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

_ABOUT = "about"


def npz_bytes(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """A compressed ``npz`` file of arrays by name, with what JSON can hold beside them."""
    values: dict[str, Any] = {_ABOUT: np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **values, **dict[str, Any](arrays))
    return buffer.getvalue()


def read_npz(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `npz_bytes` made bytes of.

    Raises:
        ValueError: they are something else, or hold objects that would have to be unpickled.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return json.loads(arrays.pop(_ABOUT).tobytes()), arrays
    except Exception as error:  # a damaged file makes zipfile and numpy raise almost anything
        raise ValueError(f"This is no file of arrays ({type(error).__name__}).") from error
