"""Principal components, by scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.decomposition import PCA


def principal_components(vectors: np.ndarray, dimensions: int) -> dict[str, np.ndarray]:
    """Mean, components and their shares of the variance; the largest weight of each is positive.

    Args:
        vectors: [text, dim].
        dimensions: number of components, at most texts and values.

    Returns:
        ``mean`` [dim], ``components`` [dimensions, dim] and ``explained_variance_ratio``
        [dimensions], float32.
    """
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
