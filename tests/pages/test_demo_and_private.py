"""Pages of a server that many people use: what a demo keeps back, whose corpora are seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from neuralviz.errors import StoreError
from neuralviz.evaluation.data import read_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import import_vectors
from neuralviz.ui import choices, evaluation
from neuralviz.ui.limits import describe_limits, effective_settings, n_within_limits, row_limit
from tests.support.pages import page_at

ROOT = Path(__file__).parents[2]
TEXTS = ReadTexts(("The river rose.", "The bridge fell.", "The baker waited."))
PAIRS = "sentence1,sentence2,score\nA dog.,A cat.,1\nRain.,Snow.,2\nBread.,Salt.,4\n"


@pytest.fixture(autouse=True)
def _settings_are_read_anew() -> Iterator[None]:
    effective_settings.cache_clear()
    yield
    effective_settings.cache_clear()


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURALVIZ_DEMO", "1")


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURALVIZ_PRIVATE", "1")


def come_as(monkeypatch: pytest.MonkeyPatch, cookie: str) -> None:
    cookies = {choices.BROWSER: cookie}
    monkeypatch.setattr(choices, "st", SimpleNamespace(context=SimpleNamespace(cookies=cookies)))


def test_texts_and_characters_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert n_within_limits(["word"] * 100_000) == 100_000
    effective_settings.cache_clear()
    monkeypatch.setenv("NEURALVIZ_MAX_TEXTS", "3")
    monkeypatch.setenv("NEURALVIZ_MAX_CHARACTERS", "10")
    many = (["a"] * 4, ["12345", "12345", ""], ["12345", "123456"], ["x" * 11])
    assert [n_within_limits(texts) for texts in many] == [3, 3, 1, 0]
    assert row_limit(1000, texts_in_row=2) == 1
    assert describe_limits() == "This server takes up to 3 texts and 10 characters at once."


@pytest.mark.parametrize(
    ("is_open", "sentence"),
    [("0", "The file stays on this machine."), ("1", "The file goes to this server.")],
)
def test_where_an_uploaded_file_goes(
    is_open: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def app() -> None:
        import streamlit as st

        from neuralviz.ui.evaluation import choose_upload
        from neuralviz.ui.inputs import ask_texts, choose_pairs

        for key in ("t", "layers-pairs", "frozen"):
            st.session_state[f"{key}-source"] = "Upload"
        choose_upload()
        for key in ("layers-pairs", "frozen"):
            choose_pairs(key)
        ask_texts("t", {"One": ["a"]})

    monkeypatch.setenv("NEURALVIZ_OPEN", is_open)
    page = AppTest.from_function(app, default_timeout=20).run()
    assert not page.exception
    said = [caption.value for caption in page.caption]
    said += [uploader.help or "" for uploader in page.file_uploader]
    assert sum(sentence in one for one in said) == 4, said


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize(
    ("name", "address"),
    [("evaluation", {"methods": ["mean", "mean@/etc"]}), ("compare", {"m1": "mean@org/model"})],
)
def test_a_demo_takes_no_model_from_the_address(name: str, address: dict) -> None:
    page = page_at(name, **address).run()
    assert not page.exception
    assert "This demo only uses the models that come with it" in page.error[0].value


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "pages").glob("*.py")))
def test_no_page_of_a_demo_takes_a_path_or_a_model_or_saves(name: str) -> None:
    page = page_at(name, evaluation_model="/etc", layers_model="/etc").run()
    assert not page.exception
    assert not {button.label for button in page.button} & {"Save", "Open", "Delete"}
    assert "Folder" not in {field.label for field in page.text_input}
    boxes = {box.key: box for box in page.selectbox if "model" in (box.key or "")}
    assert not [key for key, box in boxes.items() if box.proto.accept_new_options]
    assert "/etc" not in {box.value for box in boxes.values()}
    assert not any("Hub" in group.options for group in page.segmented_control)


@pytest.mark.usefixtures("private")
def test_a_browser_sees_its_own_corpora_and_everybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    everybodys = CorpusStore().add("everybody's", TEXTS)
    come_as(monkeypatch, "one browser")
    mine = choices.corpus_store().add("notes", TEXTS)
    assert choices.may_change(mine)
    assert not choices.may_change(everybodys)
    come_as(monkeypatch, "another browser")
    theirs = choices.corpus_store().add("notes", TEXTS)
    assert [one.id for one in choices.corpus_store().corpora()] == [theirs.id, everybodys.id]
    assert theirs.name == mine.name == "notes"
    assert not choices.may_change(mine)
    with pytest.raises(StoreError):
        choices.corpus_store().corpus(mine.id)
    assert "browser" not in mine.owner  # the cookie cannot be told from it
    come_as(monkeypatch, "one browser")
    choices.corpus_store().delete(mine)
    assert {one.id for one in CorpusStore().corpora()} == {theirs.id, everybodys.id}
    assert CorpusStore().texts(theirs) == list(TEXTS.texts)


@pytest.mark.usefixtures("private")
def test_vectors_imported_for_somebody_elses_corpus_are_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    come_as(monkeypatch, "one browser")
    store = choices.corpus_store()
    data = read_data(Source("pairs.csv", PAIRS.encode()))
    corpus = store.add("notes", ReadTexts(data.texts))
    vectors = np.eye(len(data.texts), dtype=np.float32)
    import_vectors(store, corpus, ReadVectors("mine.npy", vectors))
    for browser, is_offered in (("one browser", True), ("another browser", False)):
        come_as(monkeypatch, browser)
        assert ("file: mine.npy" in evaluation.find_imported(data)) == is_offered


@pytest.mark.usefixtures("private")
def test_a_browser_without_cookies_is_known_while_its_page_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ContextProxy, "cookies", {})

    def app() -> None:
        import streamlit as st

        from neuralviz.ui.choices import corpus_store

        st.text(corpus_store().owner)

    page = AppTest.from_function(app, default_timeout=20).run()
    owner = page.text[0].value
    assert len(owner) == 24
    assert page.run().text[0].value == owner
    assert AppTest.from_function(app, default_timeout=20).run().text[0].value != owner
