"""Nearest texts, against brute force, and where vectors are no help."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from neuralviz.errors import SettingsError, Stopped, TextError
from neuralviz.maps import neighbours
from neuralviz.maps.neighbours import METRICS, find_neighbours, nearest, numba_turn

SCIPY = {"cosine": "cosine", "euclidean": "euclidean", "manhattan": "cityblock"}


def some_vectors(n: int, dim: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def in_groups(n: int, dim: int = 16, groups: int = 30) -> np.ndarray:
    rng = np.random.default_rng(1)
    centres = 3 * rng.normal(size=(groups, dim))
    return (centres[rng.integers(groups, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_of_texts_and_of_new_vectors_are_those_of_brute_force(metric):
    vectors = some_vectors(600)
    found = find_neighbours(vectors, 7, metric)
    distances = cdist(vectors, vectors, SCIPY[metric])
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1)[:, :7]
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_allclose(
        found.distances, np.take_along_axis(distances, order, axis=1), rtol=1e-5
    )
    assert (found.indices.dtype, found.distances.dtype) == (np.int32, np.float32)
    np.testing.assert_array_equal(found.first(3).indices, order[:, :3])
    queries = some_vectors(40, seed=1)
    queries[0] = vectors[123]
    found = nearest(vectors, queries, 9, metric)
    order = np.argsort(cdist(queries, vectors, SCIPY[metric]), axis=1)[:, :9]
    np.testing.assert_array_equal(found.indices, order)
    assert found.indices[0, 0] == 123
    assert found.distances[0, 0] == 0
    assert nearest(vectors[:4], queries, 9, metric).k == 4


@pytest.mark.parametrize("metric", METRICS)
def test_a_text_is_never_its_own_neighbour_however_many_equal_it(metric):
    few = find_neighbours(some_vectors(3)[np.arange(60) % 3], 5, metric)
    assert (few.indices % 3 == np.arange(60)[:, None] % 3).all()
    vectors = some_vectors(300)
    vectors[50:250] = vectors[7]
    vectors[260:280] = 0
    found = find_neighbours(vectors, 15, metric)
    assert (found.indices != np.arange(len(found))[:, None]).all()
    assert (found.distances[100] == 0).all()
    assert found.indices[100].tolist() == [7, *range(50, 64)]  # equally near: in their own order
    assert set(found.indices[270].tolist()) <= set(range(260, 280))
    assert (np.diff(found.distances, axis=1) >= 0).all()


@pytest.mark.slow
def test_among_many_texts_nearly_all_neighbours_are_found_and_equal_texts_surely(monkeypatch):
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 200)
    vectors = in_groups(1000)
    vectors[300:340] = vectors[0]
    vectors[400:403] = vectors[1]
    vectors[500:540] = 0
    found = find_neighbours(vectors, 15, seed=3)
    assert (found.indices != np.arange(len(found))[:, None]).all()
    assert found.indices[1, :3].tolist() == [400, 401, 402]
    assert found.indices[401, :3].tolist() == [1, 400, 402]
    assert (found.distances[301] == 0).all()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    some = np.setdiff1d(np.arange(2, 1000), [*range(300, 340), *range(400, 403), *range(500, 540)])
    exact = nearest(vectors, vectors[some], 16)
    assert (exact.indices[:, 0] == some).all()
    pairs = zip(found.indices[some].tolist(), exact.indices[:, 1:].tolist(), strict=True)
    assert np.mean([len(set(a) & set(b)) / 15 for a, b in pairs]) > 0.9
    apart = 1 - cdist(vectors[some[:1]], vectors[found.indices[some[0]]], "cosine")[0]
    np.testing.assert_allclose(1 - found.distances[some[0]], apart, rtol=1e-5)

    again = find_neighbours(vectors, 15, seed=3)
    np.testing.assert_array_equal(again.indices, found.indices)
    np.testing.assert_array_equal(again.distances, found.distances)


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e30])
def test_a_vector_that_is_no_vector_is_named(broken):
    vectors = some_vectors(10)
    vectors[4, 2] = broken
    with pytest.raises(TextError, match="vector of text 5 contains values that are infinite, NaN"):
        find_neighbours(vectors, 3)
    with pytest.raises(TextError, match="vector of query 5"):
        nearest(some_vectors(10), vectors, 3)


def test_what_cannot_be_searched_is_said():
    vectors = some_vectors(10)
    with pytest.raises(SettingsError, match=r"Unknown metric “hamming”\. Choose from: cosine"):
        find_neighbours(vectors, 3, "hamming")
    with pytest.raises(SettingsError, match="at least 1"):
        find_neighbours(vectors, 0)
    with pytest.raises(TextError, match="at least 2 texts"):
        find_neighbours(vectors[:1], 3)
    with pytest.raises(SettingsError, match="7 values, those of the corpus 12"):
        nearest(vectors, some_vectors(2, dim=7), 3)
    with pytest.raises(SettingsError, match="2-D array with one row per text"):
        find_neighbours(vectors[0], 3)


def test_who_waits_for_numba_is_told_and_may_leave():
    inside, done = threading.Event(), threading.Event()

    def occupy() -> None:
        with numba_turn():
            inside.set()
            done.wait(30)

    thread = threading.Thread(target=occupy)
    thread.start()
    inside.wait(30)
    try:
        with pytest.raises(Stopped), numba_turn(lambda: True):
            pytest.fail("two threads have their turn at once")
    finally:
        done.set()
        thread.join()
