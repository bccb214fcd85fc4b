"""A map, how far one is that is being made, and principal components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.words import short_repr

if TYPE_CHECKING:
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.maps.settings import ProjectionSettings

STAGES = {
    "waiting": "Waiting for another map to finish",
    "index": "Indexing the embeddings",
    "neighbours": "Finding neighbours",
    "layout": "Making the map",
    "placing": "Placing the other texts",
    "clusters": "Finding clusters",
}
"""What is done in each stage of making a map, in words."""


@dataclass(frozen=True)
class ProjectionEvent:
    """How far a map is.

    Attributes:
        stage: one of `STAGES`.
        n_done, total: epochs of the layout, or texts that are placed; 0 of 0 where nothing is
            counted.
        span: 0 … 1 where the stage begins and ends in all of the work.
    """

    __repr__ = short_repr

    stage: str
    n_done: int = 0
    total: int = 0
    span: tuple[float, float] = (0.0, 1.0)

    @property
    def share(self) -> float:
        """0 … 1 of all of the work that is done, as far as it is counted."""
        begins, ends = self.span
        return begins + (ends - begins) * self.n_done / self.total if self.total else begins


@dataclass(frozen=True, eq=False)
class Projection:
    """A map.

    Arrays and plain values alone: it can be kept in files and opened by another process.

    Attributes:
        coordinates: [text, dimensions] float32, finite.
        settings: as asked for.
        neighbours: of the texts by their vectors, at least 15 of each where there are as many.
        notes: sentences on what was done otherwise than asked for.
        fitted: for PCA the ``mean`` [dim], ``components`` [dimensions, dim] and
            ``explained_variance_ratio`` [dimensions]; else empty.
    """

    __repr__ = short_repr

    coordinates: np.ndarray
    settings: ProjectionSettings
    neighbours: Neighbours
    notes: tuple[str, ...] = ()
    fitted: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))


def principal_components(vectors: np.ndarray, dimensions: int) -> dict[str, np.ndarray]:
    """The arrays of PCA that `Projection.fitted` has, by scikit-learn.

    The largest weight of each component is positive. There are at most as many as texts and values.
    """
    from sklearn.decomposition import PCA  # takes its time to load

    data = vectors.astype(np.float64)
    mean = data.mean(axis=0)
    data -= mean
    n, dim = data.shape
    pca = PCA(dimensions, svd_solver="covariance_eigh" if n > dim else "full").fit(data)
    return {
        "mean": mean.astype(np.float32),
        "components": pca.components_.astype(np.float32),
        "explained_variance_ratio": pca.explained_variance_ratio_.astype(np.float32),
    }


def project_on_components(vectors: np.ndarray, fitted: Mapping[str, np.ndarray]) -> np.ndarray:
    """[text, dimensions] where vectors lie on what `principal_components` found."""
    mean = fitted["mean"].astype(np.float64)
    components = fitted["components"].astype(np.float64)
    return ((vectors - mean) @ components.T).astype(np.float32)
