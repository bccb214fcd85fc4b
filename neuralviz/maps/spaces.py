"""Whether nearness in a space tells a label: raw, centred, whitened (crops paper, Table S2)."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from neuralviz.maps.neighbourhoods import K

METRICS = ("euclidean", "cosine")


def knn_by_space(
    vectors: np.ndarray, labels: np.ndarray, tested: np.ndarray, k: int = K
) -> dict[str, float]:
    """k-NN accuracy of some texts, whose neighbours are among all others, by space and metric.

    Means and principal components are those of all texts. Votes are uniform, as in the authors'
    program. ``tested`` is [text] whether a text is tested, and has no vote.
    """
    spaces = {
        "raw": vectors,
        "centred": vectors - vectors.mean(axis=0),
        "whitened": PCA(whiten=True).fit_transform(vectors),
    }
    k = min(k, int((~tested).sum()))
    return {
        f"{name} {metric}": float(
            KNeighborsClassifier(k, metric=metric, algorithm="brute")
            .fit(points[~tested], labels[~tested])
            .score(points[tested], labels[tested])
        )
        for name, points in spaces.items()
        for metric in METRICS
    }
