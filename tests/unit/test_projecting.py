"""Maps: the same every time, of whatever vectors; stopping; placing new texts; many at once."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from neuralviz.errors import NeuralvizError, SettingsError, Stopped, TextError
from neuralviz.maps.clusters import find_clusters
from neuralviz.maps.neighbours import find_neighbours, nearest, numba_turn
from neuralviz.maps.projection import (
    Projection,
    ProjectionEvent,
    ProjectionSettings,
    align_points,
    lay_out_snapshots,
    place,
    project,
)

UMAP = ProjectionSettings()
TSNE = ProjectionSettings(reducer="tsne", perplexity=15)
PCA = ProjectionSettings(reducer="pca")


def in_groups(n: int, groups: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """[text, 16] unit vectors around centres, and the group of each."""
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=n)
    centres = np.random.default_rng(99).normal(size=(groups, 16))
    vectors = centres[group] + 0.25 * rng.normal(size=(n, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), group


@cache
def some_map(settings: ProjectionSettings) -> tuple[np.ndarray, np.ndarray, Projection]:
    vectors, group = in_groups(300)
    return vectors, group, project(vectors, settings)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"reducer": "som"}, "Unknown projection “som”. Choose from: umap, pca, tsne"),
        ({"dimensions": 4}, "dimensions must be a whole number from 2 to 3, not 4"),
        ({"reducer": "tsne", "dimensions": 3}, "Use UMAP or PCA for 3"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number from 2 to 200"),
        ({"min_dist": float("nan")}, "from 0 to 0.99"),
        ({"metric": "hamming"}, "Unknown metric “hamming”"),
        ({"perplexity": 0.5}, "from 1 to 100"),
        ({"spread": 1}, "Unknown map setting “spread”"),
    ],
)
def test_settings_that_make_no_sense_are_said(values, said):
    with pytest.raises(SettingsError, match=said):
        ProjectionSettings.from_dict(values)


def test_only_what_matters_for_the_reducer_is_part_of_a_key():
    umap = ProjectionSettings(perplexity=7)
    assert umap.relevant() == ProjectionSettings().relevant()
    assert umap.relevant() != ProjectionSettings(min_dist=0.2).relevant()
    assert PCA.relevant() == {"reducer": "pca", "dimensions": 2, "metric": "cosine"}
    for settings in (ProjectionSettings(n_neighbors=np.int64(30), seed=np.uint32(3)), TSNE, PCA):
        again = ProjectionSettings.from_dict(settings.relevant())
        assert (again, hash(again)) == (settings, hash(settings))
        assert {type(value) for value in again.relevant().values()} <= {str, int, float}


def test_the_same_seed_gives_the_same_map_and_another_seed_another():
    for settings in (UMAP, TSNE):
        vectors, _, projection = some_map(settings)
        again = project(vectors, settings)
        np.testing.assert_array_equal(again.coordinates, projection.coordinates)
    other = project(vectors, replace(TSNE, seed=1))
    assert np.abs(other.coordinates - projection.coordinates).max() > 0.1


@pytest.mark.parametrize("settings", [UMAP, TSNE])
def test_a_layout_stops_within_a_second_and_the_next_is_undisturbed(settings):
    from tqdm import tqdm

    vectors, _, projection = some_map(settings)
    stopped_at = []

    def should_stop() -> bool:
        if events and events[-1].n_done >= 20:
            stopped_at.append(time.monotonic())
        return bool(stopped_at)

    events: list[ProjectionEvent] = []
    with pytest.raises(Stopped):
        project(vectors, settings, on_progress=events.append, should_stop=should_stop)
    assert time.monotonic() - stopped_at[0] < 1
    assert events[-1].n_done == 20
    assert events[0] == ProjectionEvent("neighbours")
    assert {(event.stage, event.total) for event in events[1:]} == {
        ("layout", 500 if settings is UMAP else 750)
    }

    # nothing is left locked for other threads: neither the turn, nor the bars of tqdm
    def on_another_thread() -> Projection:
        list(tqdm(range(3), file=io.StringIO(), mininterval=0))
        return project(vectors, settings)

    with ThreadPoolExecutor() as pool:
        after = pool.submit(on_another_thread).result(60)
    np.testing.assert_array_equal(after.coordinates, projection.coordinates)


def test_too_few_texts_that_differ_are_said():
    vectors = np.repeat(np.eye(8)[:3], 20, axis=0)
    with pytest.raises(TextError, match="5 different embeddings; the 60 texts here give 3"):
        project(vectors, TSNE)
    with pytest.raises(TextError, match="vector of text 2 contains values that are infinite, NaN"):
        project([[1, 2], [np.nan, 1], [0, 1], [1, 0], [2, 1], [3, 1]], TSNE)
    with pytest.raises(SettingsError, match="cannot be projected to 2 dimensions"):
        project(np.arange(9)[:, None], replace(TSNE, metric="euclidean"))


@pytest.mark.parametrize("reducer", ["umap", "pca", "tsne"])
def test_the_smallest_corpus_has_a_map_with_a_note(reducer):
    projection = project(in_groups(5)[0], ProjectionSettings(reducer=reducer))
    assert np.isfinite(projection.coordinates).all()
    assert len(np.unique(projection.coordinates, axis=0)) == 5
    assert projection.neighbours.k == 4
    reduced = {
        "umap": ("The number of neighbours was reduced from 15 to 4",),
        "tsne": ("The perplexity was reduced from 30 to 1.33",),
        "pca": (),
    }
    rest = ": there are 5 different texts."
    assert projection.notes == tuple(note + rest for note in reduced[reducer])
    assert np.isfinite(place(in_groups(5)[0], projection, in_groups(2, seed=3)[0])).all()


def test_pca_is_that_of_scikit_learn():
    from sklearn.decomposition import PCA as Theirs  # noqa: N811  ours is called the same

    for n, dim in ((200, 12), (8, 30)):
        vectors = np.random.default_rng(n).normal(size=(n, dim)) * np.arange(1, dim + 1)
        projection = project(vectors, ProjectionSettings(reducer="pca", dimensions=3))
        theirs = Theirs(3, svd_solver="full").fit(vectors)
        fitted = projection.fitted
        np.testing.assert_allclose(
            fitted["explained_variance_ratio"], theirs.explained_variance_ratio_, rtol=1e-4
        )
        signs = np.sign((fitted["components"] * theirs.components_).sum(axis=1))
        expected = theirs.transform(vectors) * signs
        np.testing.assert_allclose(projection.coordinates, expected, atol=1e-3)
        largest = np.abs(fitted["components"]).argmax(axis=1)
        assert (fitted["components"][np.arange(3), largest] > 0).all()
        placed = place(vectors, projection, vectors[:4])
        np.testing.assert_allclose(placed, projection.coordinates[:4], atol=1e-4)


def test_new_texts_land_in_their_group_and_nothing_moves():
    vectors, group, made = some_map(TSNE)
    projection = replace(made, coordinates=made.coordinates.copy())  # as another process has it
    new, new_group = in_groups(50, seed=5)
    placed = place(vectors, projection, new)
    assert placed.shape == (50, 2)
    beside = nearest(made.coordinates, placed, 1, "euclidean")
    assert (group[beside.indices[:, 0]] == new_group).mean() > 0.95
    extent = np.linalg.norm(np.ptp(made.coordinates, axis=0))
    assert np.median(beside.distances) < 0.02 * extent
    np.testing.assert_array_equal(projection.coordinates, made.coordinates)
    np.testing.assert_array_equal(place(vectors, projection, new), placed)

    known = place(vectors, projection, np.concatenate([vectors[30:40], 3 * vectors[40:50]]))
    np.testing.assert_array_equal(known, made.coordinates[30:50])


@pytest.mark.slow
def test_new_texts_land_where_umap_itself_puts_them():
    """About: `transform` takes steps at random."""
    import umap

    vectors, _ = in_groups(300)
    new, _ = in_groups(50, seed=5)
    theirs = umap.UMAP(n_components=3, metric="cosine", random_state=42, n_jobs=1)
    coordinates = theirs.fit_transform(vectors)
    settings = ProjectionSettings(dimensions=3)
    projection = Projection(coordinates, settings, find_neighbours(vectors, 15))
    apart = np.linalg.norm(place(vectors, projection, new) - theirs.transform(new), axis=1)
    extent = np.linalg.norm(np.ptp(coordinates, axis=0))
    assert np.median(apart) < 0.01 * extent
    assert apart.max() < 0.05 * extent


def test_numba_leaves_the_threads_of_torch_as_they_were() -> None:
    import torch

    with numba_turn():
        torch.set_num_threads(3)  # as numba's OpenMP layer does on this thread
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
@pytest.mark.parametrize("reducer", ["umap", "pca", "tsne"])
def test_equal_vectors_have_one_place_and_one_cluster(reducer: str, metric: str) -> None:
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(60, 16))
    vectors[:54] = vectors[0]
    exact = vectors.astype(np.float32)
    vectors[:54] *= 1 + draw.normal(scale=1e-7, size=(54, 16))  # as batches of a model round
    rounded = vectors.astype(np.float32)
    assert len(np.unique(rounded[:54], axis=0)) > 40
    for given in (exact, rounded):
        is_equal = np.abs(given - exact[0]).max(axis=1) < 1e-5
        projection = project(given, ProjectionSettings(reducer=reducer, metric=metric))
        assert len(np.unique(projection.coordinates[is_equal], axis=0)) == 1
        assert len(np.unique(projection.coordinates, axis=0)) == 7
        labels = find_clusters(projection.coordinates).labels
        assert set(labels[is_equal]) == {0}
        placed = place(given, projection, exact[:1])
        np.testing.assert_allclose(placed[0], projection.coordinates[is_equal][0], rtol=1e-5)
        assert len(projection.neighbours) == len(given)  # which scores and lists need


@hypothesis.settings(max_examples=50, deadline=None)
@hypothesis.given(
    st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(0.1, 20), st.booleans(),
    st.integers(3, 30),
)  # fmt: skip
def test_what_was_turned_reflected_shifted_and_scaled_is_laid_upon_itself(
    seed: int, angle: float, scale: float, reflected: bool, n: int
) -> None:
    target = np.random.default_rng(seed).normal(size=(n, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = scale * target @ turn * [1, -1 if reflected else 1] + [4, -7]
    np.testing.assert_allclose(align_points(moved, target), target, atol=1e-4)


def test_points_that_have_changed_their_places_do_not_shrink_together() -> None:
    draw = np.random.default_rng(0)
    target, others = draw.normal(size=(2, 200, 2))
    laid = align_points(3 * others, target)
    spread = np.linalg.norm(target - target.mean(axis=0))
    assert np.linalg.norm(laid - laid.mean(axis=0)) == pytest.approx(spread, rel=1e-5)


def test_the_same_vectors_hardly_move_and_those_that_changed_move_most() -> None:
    draw = np.random.default_rng(0)
    groups = np.repeat(np.eye(3) * 4, 20, axis=0)
    before = groups + draw.normal(scale=0.3, size=groups.shape)
    after = before.copy()
    after[:4] = before[20:24]  # four texts change sides
    maps = lay_out_snapshots([before, before, after])
    assert maps.shape == (3, 60, 2)
    spread = np.linalg.norm(maps[0] - maps[0].mean(0), axis=1).mean()
    assert np.linalg.norm(maps[1] - maps[0], axis=1).mean() < 0.25 * spread
    assert set(np.argsort(-np.linalg.norm(maps[2] - maps[1], axis=1))[:4]) == {0, 1, 2, 3}
    for snapshots in ([np.eye(6), np.eye(7)], []):
        with pytest.raises(NeuralvizError, match="same texts"):
            lay_out_snapshots(snapshots)
    with pytest.raises(Stopped):
        lay_out_snapshots([np.eye(6)], should_stop=lambda: True)
