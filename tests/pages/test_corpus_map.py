"""The corpus map without a browser: what opens, what is refused, what work leaves behind."""

from __future__ import annotations

import re
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from neuralviz.embedders import FOR_CORPORA, EmbedderSpec, embedder_spec
from neuralviz.jobs.mapping import MakeMaps, MapChoice
from neuralviz.maps.example import NAME, add_example_once
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import make_map
from neuralviz.maps.projecting import ProjectionSettings
from neuralviz.models import shared
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.server_settings import server_settings
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.importing import import_vectors
from neuralviz.ui.corpus.kept import _open_corpus, _open_map, open_maps
from neuralviz.ui.corpus.labels import spoken_labels
from neuralviz.ui.corpus.lists import _show_nearest_texts
from neuralviz.ui.corpus.saved_maps import Saved, find_saved
from neuralviz.ui.page import plain
from tests.support.models import save_family
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
PAGE = str(ROOT / "pages" / "corpus_map.py")
MEAN = embedder_spec("mean", defaults=FOR_CORPORA)
TEXTS = tuple(
    f"The {kind} {thing} was {state}."
    for kind in ("old", "new", "red")
    for thing in ("bridge", "market", "garden")
    for state in ("closed", "crowded")
)


@pytest.fixture(scope="module")
def homes(bundled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders to copy: ``example`` after a first visit; ``mapped`` with a map by PCA as well.

    Placing texts on that map has nothing to compile.
    """
    folder = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("example", "mapped"):
            patch.setenv("NEURALVIZ_HOME", str(folder / name))
            store = CorpusStore()
            if name == "mapped":
                corpus = store.add("mine", ReadTexts(TEXTS))
                for event in embed_corpus(store, corpus, MEAN):
                    embedder = event.embedder
                make_map(store, corpus, embedder, ProjectionSettings("pca"))
            add_example_once(store)
    return folder


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusStore:
    """An empty store, as before the first visit."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    _open_corpus.clear()
    _open_map.clear()
    return CorpusStore()


@pytest.fixture
def visited(homes: Path, kept: CorpusStore, tmp_path: Path) -> CorpusStore:
    """The store after a first visit."""
    shutil.copytree(homes / "example", tmp_path, dirs_exist_ok=True)
    return kept


def opened() -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=90)
    page.query_params["map-b"] = "none"
    return page.run()


def finish(page: AppTest, wait: float = 120) -> AppTest:
    """Wait for the work that is under way, and show the page after it."""
    key = "corpus-maps-runs"
    wait_until(lambda: key not in page.session_state or page.session_state[key][-1].is_over, wait)
    return page.run().run()


def button(page: AppTest, label: str):
    return next(button for button in page.button if button.label == label)


def said(page: AppTest) -> str:
    elements = (*page.error, *page.info, *page.caption, *page.markdown, *page.warning)
    return "\n".join(str(element.value) for element in elements)


def has_map(page: AppTest) -> bool:
    return bool(page.get("bidi_component"))


def with_pca(page: AppTest) -> AppTest:
    """Choose PCA, which has nothing to compile."""
    return page.selectbox(key="map-a-reducer").set_value("pca").run()


def test_the_example_is_there_at_the_first_visit_and_stays_away_when_deleted(kept: CorpusStore):
    page = opened()
    assert not page.exception
    (example,) = kept.corpora()
    assert example.name == NAME
    assert len(KeptMaps(kept).list_maps(example)) == 2
    assert not [one for one in page.button if one.label.startswith("Make the")]
    page.checkbox(key=f"corpus-sure-{example.id}").check().run()
    page.button(key="corpus-delete").click().run()
    assert kept.corpora() == ()
    page = opened()
    assert "No corpora yet" in said(page)
    button(page, "Open the example").click().run()
    assert [one.name for one in kept.corpora()] == [NAME]


def test_a_map_is_made_when_asked_for_and_found_again(kept: CorpusStore, bundled):
    kept.add("mine", ReadTexts(TEXTS, labels={"n": tuple(str(i) for i in range(18))}))
    page = with_pca(opened())
    assert "mean: 18 different texts" in said(page).replace("\\", "")
    button(page, "Make the map").click().run()
    page = finish(page)
    assert not page.exception
    assert not [one for one in page.button if one.label.startswith("Make the")]
    (corpus,) = [one for one in kept.corpora() if one.name == "mine"]
    (one,) = KeptMaps(kept).list_maps(corpus)
    assert one.settings.reducer == "pca"
    before = KeptMaps(kept).points(one)[0]
    again = with_pca(opened())
    assert not [one for one in again.button if one.label.startswith("Make the")]
    np.testing.assert_array_equal(KeptMaps(kept).points(one)[0], before)


@pytest.mark.parametrize(
    ("others", "met"),
    [({}, True), ({"open": True}, False)],
)
def test_a_page_that_is_opened_again_meets_the_work_under_way(
    visited: CorpusStore, monkeypatch, others, met: bool
):
    settings = replace(server_settings(), **others)
    monkeypatch.setattr("neuralviz.ui.corpus.work.effective_settings", lambda: settings)
    may_end = threading.Event()

    def wait(task: MakeMaps, should_stop):
        while not (may_end.is_set() or should_stop()):
            time.sleep(0.01)
        yield from ()

    monkeypatch.setattr(MakeMaps, "events", wait)
    page = with_pca(opened())
    button(page, "Make the map").click().run()
    (run,) = page.session_state["corpus-maps-runs"]
    try:
        again = with_pca(opened())
        assert ("corpus-maps-runs" in again.session_state) == met
        if met:
            assert again.session_state["corpus-maps-runs"] == [run]
            assert not [one for one in again.button if one.label == "Make the map"]
            assert "Stop" in {one.label for one in again.button}
            again.segmented_control(key="map-a-dimensions").set_value(3).run()
            assert "Stop" not in {one.label for one in again.button}  # it makes another map
            button(again, "Make the map").click().run()
            (own,) = again.session_state["corpus-maps-runs"]
            assert own is not run
            assert not own.is_over
            assert not run.is_over  # another's, that goes on
            own.stop()
    finally:
        may_end.set()
        assert run.wait(30)


def test_too_few_texts_get_a_sentence(kept: CorpusStore):
    kept.add("few", ReadTexts(("the same",) * 30))
    page = opened()
    assert not page.exception
    assert "A map needs at least 5 different texts; “few” has 1." in said(page)
    assert not [one for one in page.button if one.label.startswith("Make the")]
    assert {one.name for one in kept.corpora()} == {"few", NAME}


def test_both_maps_of_the_example_open_at_once_and_say_how_they_learnt(visited: CorpusStore):
    page = AppTest.from_file(PAGE, default_timeout=90).run()
    assert not page.exception
    assert not [one for one in page.button if one.label.startswith("Make the")]
    assert page.selectbox(key="map-b-neural-precision").value == "fast"
    assert "neural, fast" in said(page)
    assert "mean, fast" not in said(page)
    page.selectbox(key="map-b-neural-precision").set_value("exact").run()
    assert "neural, exact, 5 epochs: 480 different texts" in said(page).replace("\\", "")
    assert [one for one in page.button if one.label == "Make the second map"]
    (example,) = visited.corpora()
    assert len(KeptMaps(visited).list_maps(example)) == 2  # nothing was computed


def test_words_select_and_colours_change(visited: CorpusStore):
    page = opened()
    page.text_input(key="corpus-search").set_value("telescope").run()
    n = len(page.session_state["corpus-selected"])
    assert 1 < n < 50
    found = f"Found {n} texts containing “telescope”; see “Selection” below the map."
    assert plain(found) in [one.value for one in page.caption]
    for option in list(page.selectbox(key="colour-a").options):
        page.selectbox(key="colour-a").set_value(option).run()
        assert not page.exception
    page.text_input(key="corpus-search").set_value("no such words").run()
    assert "Found no text containing “no”, “such” and “words”." in [
        one.value for one in page.caption
    ]
    page.text_input(key="corpus-search").set_value("telescope").run()
    assert "corpus-selected" in page.session_state
    page.text_input(key="corpus-search").set_value("").run()
    assert "corpus-selected" not in page.session_state


@pytest.fixture
def mapped(homes: Path, kept: CorpusStore, tmp_path: Path) -> AppTest:
    """The page with a map of texts by PCA."""
    shutil.copytree(homes / "mapped", tmp_path, dirs_exist_ok=True)
    page = with_pca(opened())
    assert not [one for one in page.button if one.label == "Make the map"]
    return page


def place(page: AppTest, sentence: str) -> list:
    """Search by meaning, and wait until the sentence is on the map; its runs."""
    page.segmented_control(key="corpus-how").set_value("By meaning").run()
    page.text_input(key="corpus-search").set_value(sentence).run()
    (corpus,) = (one for one in CorpusStore().corpora() if one.name == "mine")
    keys = [f"corpus-placing-{one.id}-runs" for one in KeptMaps(CorpusStore()).list_maps(corpus)]
    (runs,) = (page.session_state[key] for key in keys if key in page.session_state)
    assert runs[-1].wait(120)
    page.run()
    assert not page.exception
    return runs


def test_a_sentence_is_placed_beside_the_page(mapped: AppTest):
    page = mapped
    (run,) = place(page, "The garden was full of people.")
    assert run.status == "done"
    assert run.result.position.shape == (1, 2)
    assert run.result.near.indices.shape == (1, 15)
    assert page.expander[0].label.startswith("All neighbours of “The garden")
    (read,) = page.table  # what the stage shows
    assert read.value["**Nearest by mean**"].tolist() == [
        TEXTS[row] for row in run.result.near.indices[0][:3]
    ]
    near = next(frame.value for frame in page.dataframe if "cosine" in frame.value)
    assert near["cosine"].tolist() == pytest.approx(1 - run.result.near.distances[0])
    assert place(page, run.task.sentence) == [run]  # not placed again


def test_the_texts_nearest_to_a_sentence_have_their_labels_and_are_never_markdown(monkeypatch):
    shown = SimpleNamespace(label="a*b")
    texts = np.array(["**one**", "two"], dtype=object)
    labels = {"topic": np.array(["x", "[y](z)"]), "form*": np.array(["c", "d"])}
    corpus = SimpleNamespace(
        texts_at=lambda rows: list(texts[rows]),
        category_names=tuple(labels),
        categories_at=lambda name, rows: labels[name][rows],
    )
    written, tables = [], []
    monkeypatch.setattr(st, "markdown", written.append)
    monkeypatch.setattr(st, "table", lambda table, **_: tables.append(table))
    _show_nearest_texts(corpus, shown, np.array([1, 0]), None)
    (table,) = tables
    assert list(table) == ["**Nearest by a\\*b**", "topic", "form\\*"]
    assert table.iloc[:, 0].tolist() == ["two", "\\*\\*one\\*\\*"]
    assert table["topic"].tolist() == [plain("[y](z)"), "x"]

    _show_nearest_texts(corpus, shown, np.array([1, 0]), np.array([False, False]))
    assert written == ["The filter shows no text that is nearest by a\\*b."]
    assert len(tables) == 1


def linked(page: AppTest, **address: str) -> AppTest:
    """The page with the map by PCA in another browser, at an address with more."""
    other = AppTest.from_file(PAGE, default_timeout=90)
    other.query_params["corpus"] = page.query_params["corpus"]
    for name, value in {"map-b": "none", "map-a-reducer": "PCA", **address}.items():
        other.query_params[name] = value
    return other.run()


def test_a_link_brings_a_placed_sentence_a_text_and_the_list_back(mapped: AppTest):
    place(mapped, "The garden was full of people.")
    mapped.session_state["corpus-row"] = 4  # as a click on a point leaves it
    mapped.run()
    assert mapped.segmented_control(key="corpus-list").value == "Text"

    link = {name: mapped.query_params[name] for name in ("search", "by", "text", "list")}
    sentence = "The garden was full of people."
    assert link == {"search": sentence, "by": "meaning", "text": "5", "list": "text"}
    again = linked(mapped, **link)
    assert not again.exception
    assert again.segmented_control(key="corpus-how").value == "By meaning"
    assert again.text_input(key="corpus-search").value == "The garden was full of people."
    assert again.session_state["corpus-sentence"] == "The garden was full of people."
    assert again.session_state["corpus-row"] == 4
    assert again.segmented_control(key="corpus-list").value == "Text"
    again.text_input(key="corpus-search").set_value("").run()  # what is done is not undone
    assert "corpus-sentence" not in again.session_state
    assert "search" not in again.query_params
    assert "by" not in again.query_params


def test_the_button_names_the_projection_of_the_address(mapped: AppTest):
    page = linked(mapped)
    popovers = [block.proto.popover for block in page.get("popover")]
    (popover,) = [one for one in popovers if one.icon.endswith("scatter_plot:")]
    assert popover.label == page.selectbox(key="map-a-reducer").format_func("pca") == "PCA"


def test_a_model_that_is_not_loaded_waits_for_a_button(mapped: AppTest, monkeypatch):
    monkeypatch.setattr("neuralviz.ui.corpus.searching.needs_asking", lambda _: True)
    page = mapped
    page.segmented_control(key="corpus-how").set_value("By meaning").run()
    page.text_input(key="corpus-search").set_value("The telescope showed a planet.").run()
    assert "The model of “mean” is not loaded." in said(page)
    (key,) = (one.key for one in page.button if one.label == "Load the model")
    runs = key.replace("corpus-load", "corpus-placing") + "-runs"
    assert runs not in page.session_state
    page.button(key=key).click().run()
    (run,) = page.session_state[runs]
    assert run.wait(120)
    page.run()
    assert run.status == "done"
    assert "not loaded" not in said(page)


def test_a_map_by_a_model_that_has_changed_is_not_shown_for_one_of_now(
    mapped: AppTest, monkeypatch
):
    assert has_map(mapped)
    loaded = shared.shared_text_model(MEAN.model_id)
    key = (MEAN.model_id, shared.files_stamp(MEAN.model_id))
    monkeypatch.setitem(shared._models, key, replace(loaded, fingerprint="of other files"))
    mapped.run()
    assert not mapped.exception
    assert not has_map(mapped)
    assert "the model has changed since the saved map was made" in said(mapped)
    assert any(button.label == "Make the map" for button in mapped.button)
    monkeypatch.delitem(shared._models, key)  # nobody knows, and nothing is loaded to find out
    mapped.run()
    assert has_map(mapped)
    assert key not in shared._models
    assert "outdated" not in said(mapped)  # the bundled model changes with the program alone


def test_a_map_by_a_model_of_the_hub_that_is_not_loaded_may_be_outdated(kept: CorpusStore) -> None:
    corpus = kept.add("mine", ReadTexts(TEXTS))
    choice = MapChoice(embedder_spec("mean@someone/model"), ProjectionSettings("pca"))
    embedder = kept.vectors.restore("0" * 24, choice.spec.to_json(), 4)  # of a former commit
    keys = np.unique(kept.keys(corpus))
    vectors = np.random.default_rng(0).normal(size=(len(keys), 4)).astype(np.float32)
    kept.vectors.put(embedder, keys, vectors, np.full((len(keys), 2), np.nan))
    made = make_map(kept, corpus, embedder, choice.settings)
    assert find_saved(corpus, choice) == Saved(made, False, True, (embedder,))


def test_maps_of_one_method_with_two_models_are_told_apart(
    kept: CorpusStore, bundled, tmp_path: Path
) -> None:
    other = save_family("bert", tmp_path / "other", seed=1)
    labels = {"kind": tuple(text.split()[1] for text in TEXTS)}
    corpus = kept.add("mine", ReadTexts(TEXTS, labels=labels))
    choices = [
        MapChoice(embedder_spec(method), ProjectionSettings("pca"))
        for method in ("mean@bundled", f"mean@{other}")
    ]
    for choice in choices:
        for event in embed_corpus(kept, corpus, choice.spec):
            embedder = event.embedder
        make_map(kept, corpus, embedder, choice.settings)
    page = AppTest.from_file(PAGE, default_timeout=90)
    page.query_params.update({"corpus": corpus.id, "map-a": "mean@bundled"})
    page.query_params.update({"map-b": f"mean@{other}"})
    page.query_params.update({"map-a-reducer": "PCA", "map-b-reducer": "PCA"})
    page.run()
    assert not page.exception
    assert page.selectbox(key="map-b").value == f"mean@{other}"
    assert not any("Make the map" in button.label for button in page.button)
    maps = open_maps(corpus, KeptMaps(kept).list_maps(corpus))
    assert {one.label for one in maps} == {"mean (bundled)", "mean (other)"}
    assert {plain(one.label) for one in maps} == set(spoken_labels(maps))
    shown = " ".join(element.value for element in page.markdown)
    assert all(plain(one.label) in shown for one in maps)


def test_the_page_opens_with_its_point_and_both_maps_coloured_alike(visited: CorpusStore) -> None:
    page = AppTest.from_file(PAGE, default_timeout=90).run()
    assert page.selectbox(key="colour-a").value == "label:topic"
    assert page.selectbox(key="colour-b").value == "label:topic"
    assert re.search(
        r"\*\*mean\*\* is ahead of \*\*neural\*\* by .* the ten nearest texts vote for the right "
        r"topic of 93\.1% of 480 texts, against",
        said(page),
    )
    assert re.search(r"The data do not decide between .* for the right form of", said(page))
    page.selectbox(key="colour-b").set_value("label:form").run()
    page.selectbox(key="map-a").set_value("cls").run()  # there is no such map yet
    assert page.selectbox(key="colour-b").value == "label:form"
    one = opened()
    assert "With **mean**, the ten nearest texts vote for the right topic of 93.1%" in said(one)
    assert "; always guessing the most frequent topic reaches 10.0%." in said(one)


def test_filters_are_in_the_address_and_reach_maps_and_lists(visited: CorpusStore) -> None:
    (corpus,) = visited.corpora()
    page = AppTest.from_file(PAGE, default_timeout=90)
    page.query_params[f"only-0-{corpus.id}"] = "music"
    page.run()
    assert not page.exception
    assert "Showing 48 of 480 texts: topic is music." in said(page).replace("\\", "")
    assert "**mean** is ahead of **neural** by" in said(page)
    assert "of all 480 texts" in said(page)
    (table,) = (frame.value for frame in page.dataframe if "shared" in frame.value)
    assert set(table["topic"]) == {"music"}
    assert len(table) == 48
    page.slider(key=f"only-2-{corpus.id}").set_range(11, 14).run()
    shown = re.search(r"Showing (\d+) of .*is music, and words is 11 to 14", said(page))
    assert 0 < int(shown[1]) < 48
    page.text_input(key="corpus-search").set_value(" ").run()
    page.text_input(key="corpus-search").set_value("e").run()
    assert f"{shown[1]} texts containing" in said(page)
    page.text_input(key="corpus-search").set_value("telescope").run()
    assert "The filter shows no text containing “telescope”." in said(page)


def test_imported_vectors_are_the_first_map_of_their_corpus_and_have_no_model(
    visited: CorpusStore,
) -> None:
    corpus = visited.add("mine", ReadTexts(TEXTS))
    vectors = np.random.default_rng(0).normal(size=(len(TEXTS), 4)).astype(np.float32)
    kept = import_vectors(visited, corpus, ReadVectors("my file.npy", vectors)).kept
    spec = EmbedderSpec.from_json(kept.spec)
    make_map(visited, corpus, kept, ProjectionSettings("pca"))
    page = with_pca(opened())
    assert page.selectbox(key="map-a").value == spec.label == "file: my file.npy"
    assert has_map(page)
    assert not page.warning
    page.segmented_control(key="corpus-how").set_value("By meaning").run()
    page.text_input(key="corpus-search").set_value("A sentence.").run()
    assert "A new sentence cannot be placed on the map by “file" in said(page)
    (example,) = (one for one in visited.corpora() if one.name == NAME)
    page.selectbox(key="corpus").set_value(example.id).run()
    assert not page.exception
    assert not page.warning
    assert page.selectbox(key="map-a").value == "mean"  # another corpus's file is not asked for
