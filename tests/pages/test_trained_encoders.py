"""Encoders that were trained here, on the pages: offered by name, used at once, missed later."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from neuralviz.embedders import FOR_CORPORA, embedder_spec
from neuralviz.jobs.mapping import MapChoice
from neuralviz.lazy import Lazy
from neuralviz.maps.mapping import make_map
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.models import shared
from neuralviz.models.shared import delete_encoder, encoders_folder
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.ui.corpus.main import Saved, find_saved
from neuralviz.ui.corpus.opened import _open_corpus, _open_map
from tests.support.models import save_family
from tests.support.pages import finish_run, last_run, page_at, press, read_page
from tests.support.trained import CORPUS, save_trained

TABLE = "my-table"
MINE = "my-encoder"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two encoders, trained once: a whole model and a table."""
    from neuralviz.models import load_model

    model = load_model(save_family("bert", tmp_path_factory.mktemp("bert")), device="cpu")
    home = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURALVIZ_HOME", str(home))
        save_trained(MINE, model)
        save_trained(TABLE, model, part="table")
    return home / "encoders"


@pytest.fixture(autouse=True)
def home(trained: Path) -> None:
    shutil.copytree(trained, encoders_folder())
    _open_corpus.clear()
    _open_map.clear()


def test_texts_are_compared_by_a_model_and_a_table_from_a_link() -> None:
    page = page_at(
        "compare", m1="mean", m1_mean_model=MINE, m2="sentence-transformer",
        m2_sentence_transformer_model=TABLE, m3="none",
    ).run()  # fmt: skip
    assert not finish_run(page, "compare").exception
    parts = last_run(page, "compare").result
    assert [(part.error, part.vectors.shape[1]) for part in parts] == [("", 32), ("", 32)]


def test_the_corpus_map_and_the_evaluation_offer_them() -> None:
    page = page_at("corpus_map", map_b="none").run()
    assert MINE in page.selectbox(key="map-a-mean-model").options
    page = page_at("evaluation").run()
    assert page.selectbox(key="evaluation-model").options[-2:] == [MINE, TABLE]


def test_one_without_layers_or_that_was_deleted_is_missed_in_a_sentence() -> None:
    page = page_at("layers", 180, layers_model=TABLE, layers_view="A text").run()
    assert "has no transformer" in read_page(page)
    delete_encoder(MINE)
    page = page_at("layers", 180, layers_model=MINE, layers_view="A text").run()
    assert f"The model “{MINE}” is not loaded yet." in read_page(page)
    press(page, "Load")
    assert "No encoder that was trained here has this name." in read_page(page)
    assert not page.exception


def test_one_of_the_same_name_never_shows_the_map_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CorpusStore()
    corpus = store.add("mine", ReadTexts(tuple(CORPUS)))
    choice = MapChoice(
        embedder_spec("mean", {"model": MINE}, defaults=FOR_CORPORA), ProjectionSettings("pca")
    )

    def mapped() -> Saved:
        *_, last = embed_corpus(store, corpus, choice.spec)
        make_map(store, corpus, last.embedder, choice.settings)
        return find_saved(corpus, choice)

    monkeypatch.setattr(shared, "_models", Lazy(freeze=False))
    first = mapped()
    assert first.map is not None
    assert not first.may_be_outdated

    source = shared.shared_text_model(str(save_family("bert", tmp_path / "another", seed=7)))
    delete_encoder(MINE)
    assert find_saved(corpus, choice).map == first.map  # what was computed with it is kept
    save_trained(MINE, source)
    gone = find_saved(corpus, choice)  # nothing is loaded to find out
    assert gone.map is None
    assert gone.is_outdated
    again = mapped()
    assert again.map is not None
    assert again.map.embedder != first.map.embedder
    old, new = (
        store.vectors.get(embedder, store.keys(corpus))
        for embedder in store.vectors.embedders()
        if embedder.id in (first.map.embedder, again.map.embedder)
    )
    assert not np.allclose(old, new, atol=1e-3)
