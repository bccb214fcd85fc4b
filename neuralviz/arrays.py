"""Unit vectors."""

from __future__ import annotations

import numpy as np


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """[text, dim] vectors scaled to length 1; zero vectors stay zero."""
    peak = np.abs(vectors).max(axis=1, keepdims=True, initial=0)  # keeps the squares in range
    scaled = vectors / np.where(peak > 0, peak, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled /= np.where(length > 0, length, 1)
    return scaled
