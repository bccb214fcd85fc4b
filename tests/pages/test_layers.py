"""The views of layer dynamics, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from transformers import AutoModel

from neuralviz.jobs import Run
from neuralviz.jobs.layers import ReadText
from neuralviz.ui import layers
from tests.support.models import save_causal, save_family
from tests.support.pages import (
    count_figures,
    find_labelled,
    finish_run,
    last_run,
    page_at,
    read_captions,
    read_markdown,
)


@pytest.fixture(autouse=True)
def _read_before_the_page_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "PATIENCE", 120)


def open_view(**address: str) -> AppTest:
    view = {"layers_model": "bundled", "layers_more": "true"}
    return page_at("layers", 180, **(view | address))


def read_html(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html"))


def test_a_text_says_which_words_win_and_why(bundled: object) -> None:
    page = open_view(layers_view="A text").run()
    assert not page.exception
    assert count_figures(page) == 4
    assert [box.key for box in page.selectbox if box.label == "Model"] == ["layers-model"]
    assert "most in the text's sbert-wk embedding." in read_markdown(page)
    before = read_html(page)
    assert "river</span>" in before
    find_labelled(page, "First layer").select("4").run()
    assert read_html(page) != before
    find_labelled(page, "Omega: weight of alignment").set_value(1.0).run()
    assert "100% alignment and 0% novelty" in read_captions(page)


def test_the_keys_of_the_stage_lead_through_all_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "TABS", {name: lambda: None for name in layers.TABS})
    page = open_view(view="abc").run()
    seen = [page.segmented_control(key="layers-view").value]
    while not page.button(key="stage-next").disabled:
        page.button(key="stage-next").click().run()
        seen.append(page.segmented_control(key="layers-view").value)
    assert seen == list(layers.TABS)
    assert "view" not in page.query_params  # each view has its own texts
    page.button(key="stage-back").click().run()
    assert page.segmented_control(key="layers-view").value == seen[-2]
    tour = open_view(tour="5").run()
    assert not [button for button in tour.button if button.key == "stage-next"]


def test_odd_texts_are_followed_and_user_text_is_never_html(bundled: object) -> None:
    page = open_view(layers_view="A text").run()
    markup = "<script>alert(1)</script> & <b title='\"'>bold</b>"
    german = "Der Zug nach Hamburg hatte wieder einmal eine Stunde Verspätung."
    for text in ("\U0001f642", "שלום a\x00b\x1bc", german, "The lamp came on. " * 200, markup):
        page.text_area[0].set_value(text).run()
        assert not page.exception, text[:20]
        assert not page.error, text[:20]
        assert count_figures(page) == 4, text[:20]
        is_foreign = text == german or "שלום" in text or len(text) == 1
        assert ["reads English" in w.value for w in page.warning] == [True] * is_foreign
        if "lamp" in text:
            assert "Only the first one is shown" in page.info[0].value
            assert "Showing the first 60 of" in read_captions(page)
    assert not re.search("<script>|<b ", read_html(page))
    assert "&amp;</span>" in read_html(page)
    page.text_area[0].set_value("\u200b").run()
    assert "at least one word" in page.error[0].value
    assert "Showing the last valid text." in page.error[0].value
    assert "Run again" not in [button.label for button in page.button]  # it would fail again
    assert count_figures(page) == 4


def test_the_lens_shows_what_every_layer_would_predict(bundled: object) -> None:
    page = finish_run(open_view(layers_view="Lens").run(), "layers-lens")
    assert not page.exception
    assert count_figures(page) == 3  # before, after, one token
    read = last_run(page, "layers-lens").result
    position = read.before.find_telling(read.after)
    word = read.before.names[position]
    assert f"the hidden “{word}” a probability of" in read_markdown(page)
    start, end = read.before.text.spans[read.before.tokens[position]]
    text = read.before.text.text
    assert f"Text: {text[:start]}___{text[end:]}" in read_markdown(page)
    assert read.after.values[position, -1] > read.before.values[position, -1]
    find_labelled(page, "Tuned on the text").set_value("None").run()
    finish_run(page, "layers-lens")
    assert last_run(page, "layers-lens").result.after is None
    assert count_figures(page) == 2
    find_labelled(page, "Tuned on the text").set_value("Block 2").run()
    finish_run(page, "layers-lens")
    assert all(".layer.1." in name for name in last_run(page, "layers-lens").task.settings.layers)
    assert not page.warning
    page.text_area[0].set_value("Der Zug nach Hamburg hatte eine Stunde Verspätung.").run()
    for model in ("all-MiniLM-L6-v2", "bundled"):
        find_labelled(page, "Model").set_value(model).run()
        finish_run(page, "layers-lens")
        (warning,) = page.warning
        assert "hardly reads this text" in warning.value
    page.text_area[0].set_value("Understandably everybody remembers photographs. " * 20).run()
    finish_run(page, "layers-lens").session_state["layers-lens-token"] = 39
    assert not page.run().exception
    assert "Only the first 40 of 120 tokens are read." in read_captions(page)
    page.text_area[0].set_value(" ").run()
    finish_run(page, "layers-lens")
    assert not page.exception
    assert "is empty" in page.error[0].value


def test_the_blank_of_a_long_text_is_on_the_stage() -> None:
    text = "The lamp came on. " * 50
    for start, begins in ((4, "The ___ came on. "), (724, "… ")):
        shown = layers._hide(text, slice(start, start + 4))
        assert "___ came on." in shown
        assert shown.startswith(begins)
        assert len(shown) <= layers.LONGEST_ON_STAGE + 2


def test_a_link_to_a_token_of_the_lens_opens_it_before_and_after_tuning(
    bundled: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = finish_run(open_view(layers_view="Lens").run(), "layers-lens")
    read = last_run(page, "layers-lens").result
    for token in {0, read.before.find_telling(), read.before.find_telling(read.after)}:
        page.session_state["layers-lens-token"] = token  # as a click leaves it
        link = page.run().query_params["layers-lens-token"]
        for result in (ReadText(read.before), read):  # while the model is tuned, and then
            monkeypatch.setattr(Run, "result", property(lambda _, result=result: result))
            again = open_view(layers_view="Lens", **{"layers-lens-token": link}).run()
            assert f"“{read.before.names[token]}”" in read_markdown(again)
            assert again.query_params["layers-lens-token"] == link
        monkeypatch.undo()


def test_the_lens_of_a_model_without_a_head_reads_its_embedding_table(bundled: object) -> None:
    page = finish_run(open_view(layers_view="Lens", model="all-MiniLM-L6-v2").run(), "layers-lens")
    assert not page.exception
    assert count_figures(page) == 2  # nothing is tuned
    assert "This model has no prediction head, but an embedding table: at" in read_markdown(page)
    labels = [box.label for box in page.selectbox]
    assert "Tuned on the text" not in labels
    for text in ("bank", "שלום 🙂", "The lamp came on. " * 200, "<script>alert(1)</script>"):
        page.text_area[0].set_value(text).run()
        finish_run(page, "layers-lens")
        assert not page.exception, text[:20]
        assert not page.error, text[:20]
        assert count_figures(page) == 2, text[:20]


@pytest.mark.parametrize("kind", ["albert", "next token"])
def test_models_that_the_lens_can_and_cannot_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "next token":  # without a mask token
        save_causal(tmp_path)
    else:
        save_family(kind, tmp_path)
        AutoModel.from_pretrained(tmp_path).save_pretrained(tmp_path)
    monkeypatch.setattr("neuralviz.ui.choices._is_available", lambda model_id: True)
    page = open_view(layers_view="Lens", model=str(tmp_path)).run()
    finish_run(page, "layers-lens")
    assert not page.exception
    if kind == "next token":
        assert not page.error
        assert "This model has no prediction head" in read_markdown(page)
    else:
        assert "its embedding table have 24 values, its vectors 32" in page.error[0].value
