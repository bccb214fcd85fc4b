"""t-SNE maps (van der Maaten, Hinton 2008; openTSNE), and new texts on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from openTSNE import TSNE, TSNEEmbedding
from openTSNE.affinity import Affinities, PerplexityBasedNN, joint_probabilities_nn
from openTSNE.nearest_neighbors import PrecomputedNeighbors
from scipy.sparse import csr_matrix

if TYPE_CHECKING:
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.maps.projection import Projection, ProjectionSettings

EARLY_ITERATIONS, ITERATIONS = 250, 500


def lay_out(
    vectors: np.ndarray,
    settings: ProjectionSettings,
    neighbours: Neighbours,
    after_epoch: Callable[[int, int], None],  # gets epochs done and total; may raise
    start: np.ndarray,  # initial coordinates, rescaled
) -> np.ndarray:
    """[text, 2] coordinates of a map."""
    n = len(vectors)
    total = EARLY_ITERATIONS + ITERATIONS
    after_epoch(0, total)
    interval = 5 if n <= 20_000 else 1
    n_done = 0

    def after_some(iteration: int, error: float, embedding: np.ndarray) -> bool:
        nonlocal n_done
        n_done += interval
        after_epoch(n_done, total)
        return False

    start = np.array(start, dtype=np.float64)
    start *= 1e-4 / start[:, 0].std()
    start += np.random.default_rng(settings.seed).normal(0, 1e-6, start.shape)
    perplexity = settings.possible_perplexity(n)
    near = neighbours.first(max(1, int(3 * perplexity)))
    index = PrecomputedNeighbors(near.indices, near.distances.astype(np.float64))
    affinities = PerplexityBasedNN(knn_index=index, perplexity=perplexity, n_jobs=1)
    layout = TSNE(
        early_exaggeration_iter=EARLY_ITERATIONS,
        n_iter=ITERATIONS,
        random_state=settings.seed,
        n_jobs=1,
        callbacks=after_some,
        callbacks_every_iters=interval,
    ).fit(affinities=affinities, initialization=start)
    return np.asarray(layout)


def place(projection: Projection, near: Neighbours) -> np.ndarray:
    """[new, 2] coordinates, as by openTSNE's ``transform`` with given neighbours."""
    n = len(projection.coordinates)
    perplexity = projection.settings.placing_perplexity(n)

    class NewAffinities(Affinities):
        def __init__(self) -> None:
            super().__init__()
            self.P = csr_matrix((n, n))

        def to_new(
            self, data: Any, perplexity: float = perplexity, return_distances: bool = False
        ) -> Any:
            distances = near.distances.astype(np.float64)
            affinities = joint_probabilities_nn(
                near.indices,
                distances,
                [perplexity],
                symmetrize=False,
                normalization="point-wise",
                n_reference_samples=n,
            )
            return (affinities, near.indices, distances) if return_distances else affinities

    kept = projection.coordinates.astype(np.float64)
    middle = (kept.max(axis=0) + kept.min(axis=0)) / 2  # `transform` centres it at 0
    embedding = TSNEEmbedding(
        kept,
        NewAffinities(),
        negative_gradient_method="fft",
        random_state=projection.settings.seed,
        n_jobs=1,
    )
    placed = embedding.transform(np.zeros((len(near), 1)), perplexity=perplexity)
    return np.asarray(placed) + middle
