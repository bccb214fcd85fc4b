"""The corpus map without a browser: what opens, what is refused, what work leaves behind."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from neuralviz.embedders import FOR_CORPORA, EmbedderSpec, embedder_spec
from neuralviz.errors import StoreError
from neuralviz.jobs import mapping
from neuralviz.jobs.mapping import MakeMaps, MapChoice, MapEvent
from neuralviz.maps.example import NAME, add_example_once
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import make_map
from neuralviz.maps.projecting import ProjectionSettings
from neuralviz.maps.projection import ProjectionEvent
from neuralviz.maps.selection import Selection
from neuralviz.models import export_model, shared
from neuralviz.plots.corpus_map import Standout, map_figure
from neuralviz.reading.table import MAX_CHARACTERS
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.server_settings import server_settings
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import EmbeddingEvent, embed_corpus
from neuralviz.store.importing import import_vectors
from neuralviz.store.vectors import KeptEmbedder, KeptVectors
from neuralviz.training.example import add_textbooks
from neuralviz.ui import precision
from neuralviz.ui.corpus import choose, main
from neuralviz.ui.corpus.cluster_list import LIST_HEIGHT, table_height
from neuralviz.ui.corpus.kept import _open_corpus, _open_map, open_maps
from neuralviz.ui.corpus.labels import describe_maps, spoken_labels
from neuralviz.ui.corpus.lists import _show_nearest_texts
from neuralviz.ui.corpus.opened import OpenCorpus
from neuralviz.ui.corpus.saved_maps import Saved, count_embedded, find_saved
from neuralviz.ui.corpus.settings import Place
from neuralviz.ui.corpus.work import describe_stopped
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


def test_the_example_with_maps_comes_before_that_of_the_training_page(visited: CorpusStore) -> None:
    textbooks = add_textbooks(visited)
    assert visited.corpora()[0] == textbooks  # the newest
    page = opened()
    assert page.selectbox(key="corpus").value != textbooks.id
    assert visited.corpus(page.selectbox(key="corpus").value).name == NAME


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
    [({}, True), ({"open": True}, False), ({"open": True, "private": True}, True)],
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


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (("one text",), "“few” has 1"),
        (("one", "two", "three"), "“few” has 3"),
        (("the same",) * 30, "“few” has 1"),
    ],
)
def test_too_few_texts_get_a_sentence(kept: CorpusStore, texts, sentence: str):
    kept.add("few", ReadTexts(texts))
    page = opened()
    assert not page.exception
    assert f"A map needs at least 5 different texts; {sentence}." in said(page)
    assert not [one for one in page.button if one.label.startswith("Make the")]
    assert {one.name for one in kept.corpora()} == {"few", NAME}


def test_settings_that_make_no_sense_are_refused(visited: CorpusStore):
    page = opened()
    page.selectbox(key="map-a").set_value("neural").run()
    page.text_input(key="map-a-neural-epochs").set_value("many").run()
    assert not page.exception
    assert "The option “epochs” must be a whole number" in said(page).replace("\\", "")


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


def test_what_was_embedded_by_the_command_is_found_by_the_page(kept: CorpusStore, bundled):
    corpus = kept.add("mine", ReadTexts(TEXTS))
    spec = embedder_spec("neural", {"epochs": "1"}, defaults=FOR_CORPORA)
    for _ in embed_corpus(kept, corpus, spec):
        pass
    page = opened()
    page.selectbox(key="map-a").set_value("neural").run()
    page.text_input(key="map-a-neural-epochs").set_value("1").run()
    assert "neural, fast, 1 epoch: 18 different texts, all embedded" in said(page).replace("\\", "")


@pytest.mark.parametrize(("typed", "chosen"), [("exact", "exact"), ("rough", "fast")])
def test_an_address_with_a_precision(visited: CorpusStore, typed: str, chosen: str):
    page = AppTest.from_file(PAGE, default_timeout=90)
    page.query_params["map-b-neural-precision"] = typed
    page.run()
    assert not page.exception
    assert page.selectbox(key="map-b-neural-precision").value == chosen


def test_bf16_is_offered_where_the_machine_has_it(visited: CorpusStore, monkeypatch):
    monkeypatch.setattr(shared, "is_loaded", lambda _: True)
    for native in (True, False):
        monkeypatch.setattr(precision, "_native_bf16", lambda native=native: native)
        page = AppTest.from_file(PAGE, default_timeout=90)
        page.query_params["map-b-neural-precision"] = "fast+bf16"
        choice = page.run().selectbox(key="map-b-neural-precision")
        assert choice.options == ["exact", "fast", *["bf16", "fast+bf16"] * native]
        assert choice.value == ("fast+bf16" if native else "fast")


def test_a_store_of_a_newer_version_is_said(kept: CorpusStore):
    kept.folder.mkdir(parents=True)
    (kept.folder / "format.json").write_text('{"format": 99}')
    page = opened()
    assert not page.exception
    assert "a newer version of neuralviz" in said(page)


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


def test_what_is_nearest_to_a_sentence_stands_by_the_search_and_a_selection_stays(mapped: AppTest):
    lassoed = Selection.from_rows(np.array([3, 5]), len(TEXTS))
    mapped.session_state["corpus-selected"] = lassoed
    mapped.session_state["corpus-selected-by"] = "in cluster containing, people"
    (run,) = place(mapped, "The garden was full of people.")
    nearest = TEXTS[run.result.near.indices[0][0]]
    said_of_it = [one.value for one in mapped.caption if one.value.startswith("The nearest")]
    more = "See “Neighbours of your sentence” below the map."
    assert said_of_it == [f"The nearest text is “{nearest}”. {more}"]
    assert mapped.session_state["corpus-selected"] is lassoed
    mapped.text_input(key="corpus-search").set_value("").run()
    assert mapped.session_state["corpus-selected"] is lassoed
    assert "The nearest text" not in said(mapped)
    mapped.segmented_control(key="corpus-how").set_value("By words").run()
    mapped.text_input(key="corpus-search").set_value("mistypd").run()
    assert "Found no text containing “mistypd”." in said(mapped)
    assert mapped.session_state["corpus-selected"] is lassoed


def test_a_search_that_was_cut_off_is_made_again(mapped: AppTest, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> NoReturn:
        raise StoreError("The corpus cannot be read just now.")

    with monkeypatch.context() as for_a_while:
        for_a_while.setattr("neuralviz.ui.corpus.opened.OpenCorpus.find", fail)
        mapped.text_input(key="corpus-search").set_value("garden").run()
        assert "cannot be read just now" in said(mapped)
    mapped.run()
    assert "Found 6 texts containing “garden”" in said(mapped)
    mapped.text_input(key="corpus-search").set_value("").run()
    assert mapped.text_input(key="corpus-search").value == ""


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


def test_a_placed_sentence_has_the_only_lines(mapped: AppTest, monkeypatch):
    drawn = []

    def draw(*args, standout: Standout, **rest):
        drawn.append(standout)
        return map_figure(*args, standout=standout, **rest)

    monkeypatch.setattr("neuralviz.ui.corpus.maps.map_figure", draw)
    mapped.session_state["corpus-row"] = 4  # as a click on a point leaves it
    mapped.run()
    assert drawn[-1].near is not None
    place(mapped, "The garden was full of people.")
    assert drawn[-1].near_placed
    assert drawn[-1].highlighted == 4  # its ring stays
    assert drawn[-1].near is None


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


def test_the_search_of_a_link_outlives_a_page_that_was_not_drawn_to_its_end(
    mapped: AppTest, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as cut_off:
        cut_off.setattr("neuralviz.ui.corpus.main.forget_linked_search", lambda: None)
        page = linked(mapped, search="garden")
    page.text_input(key="corpus-search").set_value("").run()  # the browser never had it
    assert page.text_input(key="corpus-search").value == "garden"
    assert page.query_params["search"] == "garden"
    page.text_input(key="corpus-search").set_value("").run()  # now it had it
    assert page.text_input(key="corpus-search").value == ""
    assert "search" not in page.query_params


def test_the_search_of_a_link_is_for_its_corpus(mapped: AppTest, monkeypatch: pytest.MonkeyPatch):
    another = CorpusStore().add("another", ReadTexts(TEXTS))
    with monkeypatch.context() as cut_off:
        cut_off.setattr("neuralviz.ui.corpus.main.forget_linked_search", lambda: None)
        page = linked(mapped, search="garden")
    first = page.selectbox(key="corpus").value
    page.selectbox(key="corpus").set_value(another.id).run()
    page.selectbox(key="corpus").set_value(first).run()
    assert page.text_input(key="corpus-search").value == ""
    assert "search" not in page.query_params


def test_who_types_while_a_link_opens_is_heard(mapped: AppTest, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as cut_off:
        cut_off.setattr("neuralviz.ui.corpus.main.forget_linked_search", lambda: None)
        page = linked(mapped, search="garden")
    page.text_input(key="corpus-search").set_value("river").run()
    assert page.text_input(key="corpus-search").value == "river"
    assert page.query_params["search"] == "river"


def test_a_click_is_followed_though_another_one_comes_before_the_browser_knows(
    mapped: AppTest, monkeypatch: pytest.MonkeyPatch
):
    lists = mapped.segmented_control(key="corpus-list")
    assert lists.value == "Clusters"
    mapped.session_state["corpus-row"] = 4  # as a click on a point leaves it
    with monkeypatch.context() as cut_off:  # a run that did not come to its end
        cut_off.setattr("neuralviz.ui.corpus.main.finish_following", lambda: None)
        mapped.run()
    mapped.segmented_control(key="corpus-list").set_value("Clusters").run()  # what it still shows
    assert mapped.segmented_control(key="corpus-list").value == "Text"
    mapped.segmented_control(key="corpus-list").set_value("Clusters").run()  # what one asks for
    assert mapped.segmented_control(key="corpus-list").value == "Clusters"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search", "x" * 301),
        ("text", "0"),
        ("text", "19"),
        ("text", "-1"),
        ("text", "²"),
        ("text", "9" * 5000),
        ("list", "<b>no such list</b>"),
        ("list", "disagree"),  # of one map
        ("by", "magic"),
    ],
)
def test_an_address_that_says_nothing_sensible_opens_the_page_as_it_is(
    mapped: AppTest, name: str, value: str
):
    page = linked(mapped, **{name: value})
    assert not page.exception
    assert page.text_input(key="corpus-search").value == ""
    assert "corpus-row" not in page.session_state
    assert page.segmented_control(key="corpus-list").value == "Clusters"


def test_a_word_search_is_in_the_address_unless_it_is_long(mapped: AppTest):
    page = mapped
    page.text_input(key="corpus-search").set_value("garden").run()
    assert page.query_params["search"] == "garden"
    assert "by" not in page.query_params
    page.text_input(key="corpus-search").set_value("garden " * 60).run()
    assert not page.exception
    assert "search" not in page.query_params
    assert "texts containing “garden”" in said(page)


@pytest.mark.parametrize("labels", [{}, {"kind": ("a", "b") * 3}])
def test_a_map_of_few_texts_says_once_that_it_has_no_clusters_and_counts_neighbours(
    kept: CorpusStore, bundled, labels
):
    corpus = kept.add("few", ReadTexts(TEXTS[:6], labels=labels))
    for event in embed_corpus(kept, corpus, MEAN):
        embedder = event.embedder
    make_map(kept, corpus, embedder, ProjectionSettings("pca"))
    page = with_pca(opened())
    text = said(page)
    assert "There are no clusters to list." in text
    assert "no clusters found" not in text
    assert text.count("form no clusters") == (not labels)
    if not labels:
        return
    assert "Share of 5 neighbours with the same kind" in page.selectbox(key="colour-a").options
    assert "With **mean**, the two nearest texts vote for the right kind of" in text
    assert "Dense groups" not in text


def test_a_star_away_from_its_nearest_texts_is_explained(mapped: AppTest, monkeypatch):
    place(mapped, "The garden was full of people.")
    assert "The star lies away" not in said(mapped)
    monkeypatch.setattr("neuralviz.ui.corpus.maps.is_apart", lambda *_: True)
    mapped.run()
    assert "The star lies away from the sentence's nearest texts" in said(mapped)


def test_a_sentence_waits_for_another_map_and_says_so(mapped: AppTest, monkeypatch):
    from neuralviz.errors import Stopped
    from neuralviz.maps.mapping import Placer

    def never_its_turn(self, vectors, *, should_stop):
        while not should_stop():
            time.sleep(0.01)
        raise Stopped

    monkeypatch.setattr(Placer, "land", never_its_turn)
    monkeypatch.setattr("neuralviz.ui.corpus.searching.WAIT", 0.1)
    page = mapped
    (run,) = place(page, "A sentence that nobody has placed.")
    assert run.status == "failed"
    assert "Another map is being made. Search again" in said(page)
    assert run.result.near.indices.shape == (1, 15)  # what is near is known all the same


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


def test_what_is_embedded_is_counted_anew_only_when_vectors_change(
    kept: CorpusStore, bundled, monkeypatch
):
    corpus = kept.add("mine", ReadTexts(TEXTS))
    choice = MapChoice(MEAN, ProjectionSettings("pca"))
    counted = []

    def count() -> int:
        return count_embedded(corpus, find_saved(corpus, choice).embedders)

    has = KeptVectors.has_vectors
    monkeypatch.setattr(KeptVectors, "has_vectors", lambda *of: counted.append(1) or has(*of))
    assert count() == 0
    for _ in embed_corpus(kept, corpus, MEAN):
        pass
    counted.clear()
    assert [count() for _ in range(3)] == [len(TEXTS)] * 3
    assert len(counted) == 1
    kept.vectors.forget(kept.keys(corpus)[:4])
    assert count() == len(TEXTS) - 4


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


def test_a_map_by_a_folder_that_is_not_loaded_may_be_outdated(
    visited: CorpusStore, bundled, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(shared, "_models", {})
    folder = tmp_path / "model"
    export_model(bundled, folder)
    corpus = visited.add("mine", ReadTexts(TEXTS))
    choice = MapChoice(embedder_spec("mean", {"model": str(folder)}), ProjectionSettings("pca"))
    for event in embed_corpus(visited, corpus, choice.spec):
        embedder = event.embedder
    kept = make_map(visited, corpus, embedder, choice.settings)
    shared.shared_text_model(str(folder))
    assert find_saved(corpus, choice) == Saved(kept, False, False, (embedder,))
    shared._models.clear()
    assert find_saved(corpus, choice) == Saved(kept, False, True, (embedder,))
    monkeypatch.setattr(main, "choose_maps", lambda _: (Place("a", choice, st.container()),))
    assert "the model is not loaded. If its files have changed" in said(opened())


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


def test_columns_of_labels_are_told_from_those_of_names_and_numbers(kept: CorpusStore):
    n = 60
    corpus = kept.add(
        "c",
        ReadTexts(
            tuple(f"text {i}" for i in range(n)),
            labels={
                "class": tuple(str(i % 3) for i in range(n)),
                "year": tuple(str(1950 + i) for i in range(n)),
                "name": tuple(f"name {i}" for i in range(n)),
                "same": ("x",) * n,
                "topic": tuple("ab"[i % 2] if i else "" for i in range(n)),
                "share": tuple(f"{i % 4}.5" for i in range(n)),
            },
        ),
    )
    opened_corpus = OpenCorpus(kept, corpus)
    assert list(opened_corpus.categories) == ["class", "topic"]
    assert set(opened_corpus.categories["class"]) == {"0", "1", "2"}
    assert opened_corpus.numbers == ("class", "year", "share")


def test_what_is_said_of_a_map_that_was_stopped() -> None:
    task = MakeMaps("c", (MapChoice(embedder_spec("mean"), ProjectionSettings("pca")),), ())
    kept, none = KeptEmbedder("e", "", 8), np.zeros(0)

    def said_of(*events: EmbeddingEvent | ProjectionEvent) -> str:
        result = task.fold(task.start(), [MapEvent(0, event) for event in events])
        return describe_stopped(task, result)

    begun, half, whole = (EmbeddingEvent(kept, none, None, none, n, 6, 0, 0) for n in (0, 3, 6))
    assert said_of() == "Stopped before the first text was embedded."
    assert said_of(begun) == "Stopped before the first text was embedded by mean."
    assert said_of(half) == (
        "Stopped. 3 of 6 different texts are embedded by mean and saved. Press “Run again” to "
        "resume."
    )
    for events in ((half, whole), (half, whole, ProjectionEvent("layout"))):
        assert said_of(*events) == "Stopped before the map was finished. The embeddings are saved."


@pytest.mark.parametrize(
    ("texts", "label"),
    [("A cat.\nA dog.\nRain.\nRain.\nA cat.", "Save"), ("a\nb\nc\nd\ne", "Save and make a map")],
)
def test_few_texts_can_be_saved_without_a_map(visited: CorpusStore, texts: str, label: str):
    page = AppTest.from_file(PAGE, default_timeout=90).run()
    page.session_state["corpus-add-source"] = "Paste"
    page.session_state["corpus-paste"] = texts
    next(one for one in page.button if one.label == "Add a corpus").click().run()
    assert not page.exception
    assert label in [one.label for one in page.button]
    assert ("at least 5 different texts" in said(page)) == (label == "Save")


def test_neural_takes_five_epochs_unless_another_number_is_typed(visited: CorpusStore) -> None:
    page = AppTest.from_file(PAGE, default_timeout=90).run()
    field = page.text_input(key="map-b-neural-epochs")
    assert field.value == "5"
    assert "Make" not in " ".join(one.label for one in page.button)
    field.set_value("10").run()
    assert "Make the second map" in [one.label for one in page.button]
    assert not page.exception


def test_what_was_left_out_is_said_where_no_text_is_left(visited: CorpusStore) -> None:
    page = AppTest.from_file(PAGE, default_timeout=90).run()
    page.session_state["corpus-add-source"] = "Paste"
    page.session_state["corpus-paste"] = "x" * (MAX_CHARACTERS + 1)
    next(one for one in page.button if one.label == "Add a corpus").click().run()
    assert not page.exception
    assert "Skipped 1 text with more than 1,000,000 characters" in said(page)
    assert not any(one.label.startswith("Save") for one in page.button)


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


@pytest.mark.parametrize(
    ("last", "counted"), [("b", "all 8 texts"), ("", "all texts with a label")]
)
def test_a_share_is_of_the_texts_that_have_a_label(last: str, counted: str) -> None:
    topics = np.array(["a"] * 4 + ["b"] * 3 + [last])
    corpus = SimpleNamespace(
        corpus=SimpleNamespace(n_texts=8),
        categories={"topic": topics},
        sizes=lambda _: Counter(filter(None, topics)),
    )
    shown = SimpleNamespace(
        spec=MEAN,
        kept=SimpleNamespace(embedder="mean"),
        neighbours=SimpleNamespace(k=3),
        hits=lambda *_: np.array([True, False]),
        accuracy=lambda *_: SimpleNamespace(baseline=0.5),
    )
    said = describe_maps(corpus, [shown], is_filtered=True)  # type: ignore[arg-type, list-item]
    assert f"a text's topic is right for **50%** of {counted}." in said


def test_filters_are_in_the_address_and_reach_maps_and_lists(visited: CorpusStore) -> None:
    (corpus,) = visited.corpora()
    page = AppTest.from_file(PAGE, default_timeout=90)
    page.query_params[f"only-0-{corpus.id}"] = "music"
    page.run()
    assert not page.exception
    assert "Showing 48 of 480 texts: topic is music." in said(page).replace("\\", "")
    assert "**mean** sorts all 480 texts better by topic" in said(page)
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


def test_a_table_has_no_empty_rows() -> None:
    assert table_height(3) < table_height(4) < LIST_HEIGHT
    assert table_height(500) == LIST_HEIGHT


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


def test_import_without_a_file_and_delete_without_a_tick_say_what_is_missing(
    visited: CorpusStore,
) -> None:
    page = opened()
    page.button(key="corpus-import").click().run()
    assert "Choose a .npy or .parquet file first." in said(page)
    page.button(key="corpus-delete").click().run()
    assert "Tick “Delete the corpus with its maps and embeddings” first." in said(page)
    assert len(visited.corpora()) == 1


def test_how_long_micro_tuning_takes_is_said_once_it_was_measured(
    visited: CorpusStore, monkeypatch
) -> None:
    monkeypatch.setattr(mapping, "_seconds_per_text", {})
    corpus = visited.add("mine", ReadTexts(TEXTS))
    page = opened()
    page.selectbox(key="map-a").set_value("neural").run()
    page.text_input(key="map-a-neural-epochs").set_value("1").run()
    texts = f"neural, fast, 1 epoch: {len(TEXTS)} different texts; "
    assert texts + "the time left is shown once the first" in said(page).replace("\\", "")
    monkeypatch.setattr(mapping, "LEAST_MEASURED", 0.0)
    spec = embedder_spec("neural", {"epochs": "1"}, defaults=FOR_CORPORA)
    task = MakeMaps.for_current_models(corpus.id, [MapChoice(spec, ProjectionSettings("pca"))])
    list(task.events(lambda: False))
    assert (
        0
        < mapping.seconds_to_embed(spec, 10)
        == pytest.approx(10 * mapping._seconds_per_text[spec])
    )
    mapping._seconds_per_text[spec] = 4.0
    visited.add("more", ReadTexts(tuple(f"{text} Again." for text in TEXTS)))
    page = opened()
    page.selectbox(key="map-a").set_value("neural").run()
    page.text_input(key="map-a-neural-epochs").set_value("1").run()
    assert f"{texts}about 72 s" in said(page).replace("\\", "")


def test_an_upload_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Upload:
        file_id: str
        name: str = "a.csv"
        n_copied: int = 0

        def getvalue(self) -> bytes:
            self.n_copied += 1
            return b"text\none\n"

    monkeypatch.setattr(choose.st, "session_state", {})
    first, second = Upload("1"), Upload("2")
    (before,) = choose._copy_uploads([first])
    again, other = choose._copy_uploads([first, second])
    assert again is before
    assert (other.name, other.content) == ("a.csv", b"text\none\n")
    choose._copy_uploads([second])
    assert (first.n_copied, second.n_copied) == (1, 1)
    assert list(choose.st.session_state[choose._SOURCES_OF_FILES]) == ["2"]
