"""Maps, their settings and progress, and principal components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

import numpy as np

from neuralviz.errors import SettingsError
from neuralviz.maps.neighbours import METRICS, Neighbours
from neuralviz.words import short_repr

REDUCERS = {"umap": "UMAP", "pca": "PCA", "tsne": "t-SNE"}
SETTING_NAMES = {  # where the display name differs
    "reducer": "projection",
    "n_neighbors": "neighbours",
    "min_dist": "minimum distance",
    "metric": "distance",
}

FEWEST_TEXTS = 5  # distinct
SCORED_NEIGHBOURS = 15  # minimum per map, for scores and lists
MOST_NEIGHBORS = 200
MOST_WHOLE = 200_000  # texts; larger corpora use a sample and an index
LARGEST_PERPLEXITY = 100
PLACING_PERPLEXITY = 5.0  # openTSNE's default for new points
SEED = 42
SEEDS = 2**32

_RELEVANT = {
    "umap": ("reducer", "dimensions", "n_neighbors", "min_dist", "metric", "seed"),
    "tsne": ("reducer", "dimensions", "perplexity", "metric", "seed"),
    "pca": ("reducer", "dimensions", "metric"),
}
LIMITS: dict[str, tuple[type[int] | type[float], float, float]] = {  # type, minimum, maximum
    "dimensions": (int, 2, 3),
    "n_neighbors": (int, 2, MOST_NEIGHBORS),
    "min_dist": (float, 0, 0.99),
    "perplexity": (float, 1, LARGEST_PERPLEXITY),
    "seed": (int, 0, SEEDS - 1),
}
STAGES = {
    "waiting": "Waiting for another map to finish",
    "index": "Indexing the embeddings",
    "neighbours": "Finding neighbours",
    "layout": "Making the map",
    "placing": "Placing the other texts",
    "clusters": "Finding clusters",
}


@dataclass(frozen=True)
class ProjectionSettings:
    """Settings of a map. Raises SettingsError for values out of range."""

    reducer: str = "umap"  # ``umap``, ``pca`` or ``tsne``
    dimensions: int = 2  # 2 or 3; t-SNE has 2
    n_neighbors: int = 15  # UMAP; includes the text itself; few show detail, many the whole
    min_dist: float = 0.1  # UMAP; minimum distance of points, 0 … 0.99
    metric: str = "cosine"  # one of `METRICS`; PCA uses it only for neighbours
    perplexity: float = 30.0  # t-SNE; effective number of neighbours, 1 … 100
    seed: int = SEED  # 0 … 2³² − 1

    def __post_init__(self) -> None:
        _check_choice("projection", self.reducer, REDUCERS)
        _check_choice("metric", self.metric, METRICS)
        for name, (kind, low, high) in LIMITS.items():
            value = getattr(self, name)
            is_kind = isinstance(value, Integral if kind is int else Real)
            if not is_kind or isinstance(value, bool) or not low <= value <= high:
                whole = "whole " if kind is int else ""
                raise SettingsError(
                    f"{name} must be a {whole}number from {low:,} to {high:,}, not {value}."
                )
            relevant = name in _RELEVANT[self.reducer]  # irrelevant settings keep their default
            object.__setattr__(self, name, kind(value) if relevant else getattr(type(self), name))
        if self.reducer == "tsne" and self.dimensions != 2:
            raise SettingsError("t-SNE supports 2 dimensions only. Use UMAP or PCA for 3.")

    def relevant(self) -> dict[str, str | int | float]:
        """The settings that affect this reducer, for `from_dict`."""
        return {name: getattr(self, name) for name in _RELEVANT[self.reducer]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ProjectionSettings:
        """Raises SettingsError for unknown settings."""
        unknown = values.keys() - {setting.name for setting in fields(cls)}
        if unknown:
            raise SettingsError(f"Unknown map setting “{min(unknown)}”.")
        return cls(**values)

    def possible_neighbors(self, n: int) -> int:
        return min(self.n_neighbors, n - 1)

    def possible_perplexity(self, n: int) -> float:
        return min(self.perplexity, (n - 1) / 3)

    def placing_neighbours(self, n: int) -> int:
        if self.reducer == "tsne":
            return max(1, int(3 * min(PLACING_PERPLEXITY, self.possible_perplexity(n))))
        return self.possible_neighbors(n)

    def needed_neighbours(self, n: int) -> int:
        needed = {
            "umap": self.n_neighbors - 1,
            "tsne": int(3 * self.possible_perplexity(n)),
            "pca": 0,
        }
        return min(max(SCORED_NEIGHBOURS, needed[self.reducer]), n - 1)


def is_large(n_texts: int) -> bool:
    return n_texts > MOST_WHOLE


def _check_choice(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise SettingsError(f"Unknown {kind} “{name}”. Choose from: {', '.join(known)}.")


@dataclass(frozen=True)
class ProjectionEvent:
    __repr__ = short_repr

    stage: str  # one of `STAGES`
    n_done: int = 0  # epochs or placed texts
    total: int = 0
    span: tuple[float, float] = (0.0, 1.0)  # start and end of the stage within the whole work

    @property
    def share(self) -> float:
        """Share of the counted work that is done, 0–1."""
        begins, ends = self.span
        return begins + (ends - begins) * self.n_done / self.total if self.total else begins


@dataclass(frozen=True, eq=False)
class Projection:
    __repr__ = short_repr

    coordinates: np.ndarray  # [text, dimensions] float32, finite
    settings: ProjectionSettings  # as requested
    neighbours: Neighbours  # at least 15 per text, if there are as many
    notes: tuple[str, ...] = ()  # sentences on deviations from the settings
    # PCA: mean [dim], components [dimensions, dim], explained_variance_ratio [dimensions]
    fitted: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))


def principal_components(vectors: np.ndarray, dimensions: int) -> dict[str, np.ndarray]:
    """PCA as in `Projection.fitted`; each component's largest weight is positive."""
    from sklearn.decomposition import PCA  # slow to import

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
    """[text, dimensions] coordinates on the principal components."""
    mean = fitted["mean"].astype(np.float64)
    components = fitted["components"].astype(np.float64)
    return ((vectors - mean) @ components.T).astype(np.float32)
