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
    """k-NN accuracy of some texts, whose neighbours are among all others.

    Means and principal components are those of all texts. Votes are uniform, as in the authors'
    program.

    Args:
        vectors: [text, dim].
        labels: [text].
        tested: [text] whether the text is tested, and has no vote.
        k: voters; fewer where there are not so many.

    Returns:
        By space and metric, such as ``whitened cosine``: share of the tested texts, 0 … 1.
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
