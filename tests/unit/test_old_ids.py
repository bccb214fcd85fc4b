"""What versions before cache keys kept is still found."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders import EmbedderSpec, base, embedder_spec, make_embedder
from neuralviz.embedders.registry import LOADERS
from neuralviz.maps.kept import KeptMaps, map_ids
from neuralviz.maps.mapping import make_map
from neuralviz.maps.projecting import ProjectionSettings
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.old_ids import old_id
from neuralviz.store.vectors import embedder_ids

SUPPORT = Path(__file__).parents[1] / "support"

BUNDLED = "c5a3ecf2f4a8d64d"  # the fingerprint of the bundled model of that time

# By method and options, the id under which the last such version kept vectors of its models.
IDS = [
    ("mean", {}, "bb0792977134e412d95f14c1"),
    ("cls", {}, "8fd4d0d8b3c869b652b1518b"),
    ("sep", {}, "a08c161f1d99f7df234cd036"),
    ("last", {}, "fa9836c74681cb02dd1fd77b"),
    ("sbert-wk", {}, "6d7812f2d1bb484def86a631"),
    ("avg", {}, "01d1cec0fc8500b5afbac338"),
    ("sentence-transformer", {}, "0ccf344dcf8e531807f9f566"),
    ("mean", {"layer": "1,2", "special_tokens": "no"}, "cd1ac26d4fdd3d1857c84870"),
    ("cls", {"layer": "all"}, "60c54db7fc2559eb2c09ed30"),
    (
        "sbert-wk",
        {"layer_start": "3", "omega": "0.25", "variant": "paper", "window": "1"},
        "4755f3a722b62616435f875c",
    ),
    ("sbert-wk", {"part": "novelty"}, "8846dcc6591860edff7c606f"),
]


@pytest.fixture
def old_store(tmp_path: Path) -> CorpusStore:
    """Five texts by mean (with a map by PCA), neural-1 and both concatenated."""
    with zipfile.ZipFile(SUPPORT / "kept_before_cache_keys.zip") as kept:
        kept.extractall(tmp_path / "kept")
    return CorpusStore(tmp_path / "kept")


@pytest.fixture(scope="module")
def loaders() -> dict[str, Callable[[str], object]]:
    """Each model is loaded once."""
    return {kind: cache(load) for kind, load in LOADERS.items()}


@pytest.fixture(scope="module")
def loaders_of_then(loaders: dict) -> dict[str, Callable[[str], object]]:
    """The bundled model is taken for that of the version before."""

    def load(kind: str, name: str) -> object:
        model = loaders[kind](name)
        return replace(model, fingerprint=BUNDLED) if model.id == "bundled" else model

    return {**loaders, **{kind: partial(load, kind) for kind in ("masked", "text")}}


@pytest.mark.parametrize(("method", "typed", "kept_as"), IDS)
@pytest.mark.filterwarnings("ignore::neuralviz.errors.PrecisionWarning")
def test_ids_are_those_of_the_version_before(
    method: str, typed: dict, kept_as: str, loaders_of_then: dict
) -> None:
    new, old = embedder_ids(make_embedder(embedder_spec(method, typed), loaders_of_then))
    assert old == kept_as
    assert new not in {one for _, _, one in IDS}


@pytest.mark.parametrize(
    "method", ["neural", "neural-1", "cls-tuned", "avg-diff", "gradient", "neural+mean"]
)
def test_vectors_that_are_computed_in_another_way_since_have_no_old_id(
    method: str, loaders: dict
) -> None:
    """Texts of several chunks are learnt in another way since."""
    (new,) = embedder_ids(make_embedder(embedder_spec(method, {}), loaders))
    assert new


def test_another_version_of_cache_keys_computes_all_anew(
    old_store: CorpusStore, loaders: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "KEY_VERSION", base.KEY_VERSION + 1)
    (corpus,) = old_store.corpora()
    before = old_store.vectors.embedders()
    embedder = make_embedder(EmbedderSpec.from_json(before[0].spec), loaders)
    assert old_store.vectors.of(embedder) is None
    *_, event = embed_corpus(old_store, corpus, embedder)
    assert (event.found, event.done) == (0, 5)
    assert event.embedder not in before


def test_what_came_later_has_no_old_id() -> None:
    assert old_id({"method": "hash", "dim": 8}) is None
    assert old_id({"method": "concatenated", "parts": [{"method": "hash"}]}) is None
    assert old_id({"method": "pooled", "model": "m", "fingerprint": "f"}) is None


def test_vectors_and_maps_of_a_version_before_are_used(
    old_store: CorpusStore, loaders_of_then: dict
) -> None:
    (corpus,) = old_store.corpora()
    before = old_store.vectors.embedders()
    assert [EmbedderSpec.from_json(one.spec).method for one in before] == [
        "mean", "neural-1", "mean+neural-1",
    ]  # fmt: skip
    mean, *learnt = (make_embedder(EmbedderSpec.from_json(one.spec), loaders_of_then)
                     for one in before)  # fmt: skip
    assert [old_store.vectors.of(embedder) for embedder in learnt] == [None, None]
    assert old_store.vectors.of(mean) == before[0]
    (event,) = embed_corpus(old_store, corpus, mean)
    assert (event.found, event.done, event.total) == (5, 5, 5)
    assert event.embedder == before[0]
    vectors = old_store.vectors.get(before[0], old_store.keys(corpus))
    np.testing.assert_allclose(vectors, mean.encode(old_store.texts(corpus)), atol=1e-5)
    assert old_store.vectors.embedders() == before, "a table was made beside an old one"
    (kept_map,) = KeptMaps(old_store).of(corpus)
    found = make_map(old_store, corpus, before[0], ProjectionSettings("pca"))
    assert found == kept_map
    cache_key_id, old_map_id = map_ids(corpus, before[0], ProjectionSettings("pca"))
    assert kept_map.id == old_map_id != cache_key_id
