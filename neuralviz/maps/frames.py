"""Maps of the same texts by several embeddings, in one frame: what moves has changed its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.errors import NeuralvizError, ShouldStop, Stopped, never
from neuralviz.maps.distances import check_vectors
from neuralviz.maps.neighbours import find_neighbours
from neuralviz.maps.projecting import check_enough, find_distinct
from neuralviz.maps.settings import ProjectionSettings


def lay_out_snapshots(
    embeddings: Sequence[np.ndarray],
    *,
    after_epoch: Callable[[int, int], None] = lambda n_done, total: None,
    should_stop: ShouldStop = never,
) -> np.ndarray:
    """[snapshot, text, 2] maps by t-SNE of embeddings that follow each other, as in a training.

    Each map begins where the one before has its points, and is then laid upon it by rotation,
    reflection and shift (Procrustes), as large as that one, so that a point moves as little as it
    can.

    Args:
        embeddings: by snapshot, [text, dim] of the same texts.
        after_epoch: told how many epochs of all maps are done, of how many.
        should_stop: asked every few epochs.

    Raises:
        NeuralvizError: there is no embedding, or they are of different numbers of texts.
        TextError: fewer than 5 different vectors, or one holds something that is no usable number.
        Stopped: ``should_stop`` said so.
    """
    if not embeddings or len({len(embedding) for embedding in embeddings}) > 1:
        raise NeuralvizError("Maps in one frame need embeddings of the same texts.")
    settings = ProjectionSettings(reducer="tsne")
    maps: list[np.ndarray] = []
    for vectors in embeddings:

        def follow(n_done: int, total: int, before: int = len(maps)) -> None:
            after_epoch(before * total + n_done, len(embeddings) * total)
            if should_stop():
                raise Stopped

        start = maps[-1] if maps else None
        points = _lay_out(vectors, settings, start, follow)
        maps.append(align_points(points, maps[-1]) if maps else points)
    return np.stack(maps)


def align_points(points: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Points turned, reflected and shifted so that they lie as near to others as they can.

    They are as spread as the others: with the scale that is nearest, too, points that have changed
    their places would seem to shrink together (Schönemann 1966).
    """
    middle, target_centre = points.mean(axis=0), target.mean(axis=0)
    centred, aim = (points - middle).astype(np.float64), (target - target_centre).astype(np.float64)
    turn, _ = scipy.linalg.orthogonal_procrustes(centred, aim)
    size = float(np.linalg.norm(centred))
    scale = float(np.linalg.norm(aim)) / size if size else 1.0
    return (scale * centred @ turn + target_centre).astype(np.float32)


def _lay_out(
    vectors: np.ndarray,
    settings: ProjectionSettings,
    start: np.ndarray | None,
    after_epoch: Callable[[int, int], None],
) -> np.ndarray:
    from neuralviz.maps.tsne_layout import lay_out  # a library that takes its time to load

    vectors = check_vectors(vectors)
    check_enough(vectors)
    near = find_neighbours(vectors, settings.needed_neighbours(len(vectors)), settings.metric)
    rows, group, near = find_distinct(vectors, settings, near)
    begin = None if start is None else start[rows]
    points = lay_out(vectors[rows], settings, near, after_epoch, begin)
    return points[group].astype(np.float32)
