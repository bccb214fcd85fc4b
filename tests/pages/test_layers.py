"""The views of layer dynamics, without a browser."""

from __future__ import annotations

import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.ui import layers
from tests.support.pages import (
    count_figures,
    find_labelled,
    finish_run,
    last_run,
    page_at,
    press,
    read_captions,
    read_markdown,
)
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def _read_before_the_page_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "PATIENCE", 120)


def open_view(**address: str) -> AppTest:
    view = {"layers_model": "bundled", "layers_more": "true"}
    return page_at("layers", 180, **(view | address))


def read_html(page: AppTest) -> str:
    return " ".join(element.proto.body for element in page.get("html"))


def test_a_text_says_which_words_win_and_why(bundled: object) -> None:
    page = open_view().run()
    assert not page.exception
    assert count_figures(page) == 4
    assert [box.key for box in page.selectbox if box.label == "Model"] == ["layers-model"]
    assert "of this text's embedding comes from" in read_markdown(page)
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
    page = open_view().run()
    markup = "<script>alert(1)</script> & <b title='\"'>bold</b>"
    german = "Der Zug nach Hamburg hatte wieder einmal eine Stunde Verspätung."
    for text in ("\U0001f642", "שלום a\x00b\x1bc", german, "The lamp came on. " * 200, markup):
        page.text_area[0].set_value(text).run()
        assert not page.exception, text[:20]
        assert not page.error, text[:20]
        assert count_figures(page) == 4, text[:20]
        is_foreign = text == german or "שלום" in text  # an emoji is of no language
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


def paste_corpus(text: str) -> AppTest:
    """The page on which a text is pasted at once, so that no example is followed before it."""
    page = open_view(layers_view="A corpus")
    page.session_state["layers-words-source"] = "Paste"
    page.session_state["layers-words-pasted"] = text
    return finish_run(page.run(), "layers-words")


@pytest.mark.parametrize(
    ("text", "sentence"), [("🙂", "corpus has 0"), ("<script>alert(1)</script> one two", "")]
)
def test_a_link_brings_a_pasted_corpus_back(bundled: object, text: str, sentence: str) -> None:
    page = paste_corpus(text)
    again = open_view(layers_view="A corpus", view=page.query_params["view"]).run()
    finish_run(again, "layers-words")
    for opened in (page, again):
        assert not opened.exception
        assert opened.text_area[0].value == text
        assert bool(opened.error) == bool(sentence)
        assert sentence in " ".join(error.value for error in opened.error)
        assert count_figures(opened) == (not sentence)


def upload_pairs(content: bytes) -> AppTest:
    """The page with a file at once, so that no example is measured before it."""
    page = open_view(layers_view="Scored pairs")
    page.session_state["layers-pairs-source"] = "Upload"
    page.session_state["layers-pairs-kept"] = Source("own.csv", content)
    return page.run()


def test_the_best_layer_of_the_example_by_each_coefficient(
    bundled: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "MAX_PAIRS", 20)
    page = finish_run(open_view(layers_view="Scored pairs").run(), "layers-pairs")
    assert not page.exception
    assert not page.error
    assert count_figures(page) == 5  # layers, ablation, two sweeps, pairs
    run = last_run(page, "layers-pairs")
    measured = [row for rows in run.result.by_layer.values() for row in rows]
    for title, name in layers.COEFFICIENTS.items():
        page.segmented_control(key="layers-coefficient").set_value(title).run()
        best = np.nanmax([getattr(row.correlation, name) for row in measured])
        sentence = (
            f"{title} correlation with people's scores is {best:.2f} on 20 sample sentence pairs"
        )
        assert sentence in read_markdown(page)


def test_a_link_brings_uploaded_pairs_back(bundled: object) -> None:
    content = b"a,b,score\n" + b"".join(
        b"<b>dog %d</b>,a cat %d,%d\n" % (i, i, i) for i in range(5)
    )
    page = finish_run(upload_pairs(content), "layers-pairs")
    assert "5 pairs from own.csv" in read_captions(page)
    assert "on 5 sentence pairs" in read_markdown(page)
    again = open_view(layers_view="Scored pairs", view=page.query_params["view"]).run()
    finish_run(again, "layers-pairs")
    assert not again.exception
    assert count_figures(again) == 5
    run = last_run(again, "layers-pairs")
    assert run.task == last_run(page, "layers-pairs").task
    assert run.result.pairs.sentences1[0] == "<b>dog 0</b>"


def test_samples_are_known_by_their_texts(bundled: object) -> None:
    lines = (sample_data() / "scored_pairs.csv").read_bytes().splitlines(keepends=True)
    page = finish_run(upload_pairs(b"".join(lines[:6])), "layers-pairs")
    assert "on 5 sample sentence pairs" in read_markdown(page)


def test_a_file_that_cannot_be_used_gets_a_sentence() -> None:
    page = upload_pairs(b'a,b,score\nA,B,1\n"C,D,2\n')
    assert not page.exception
    assert "unmatched quotation mark \\(line 3" in page.error[0].value


def tune_blocks(**address: str) -> AppTest:
    return finish_run(open_view(layers_view="Change by block", **address).run(), "layers-marks")


def test_mistakes_get_a_sentence_and_the_run_stays(bundled: object) -> None:
    page = tune_blocks(layers_epochs="2")
    run = last_run(page, "layers-marks")
    assert run.status == "done"
    assert [box.key for box in page.selectbox if box.label == "Model"] == ["model"]
    assert run.result.epochs_reached == 2
    assert run.result.loss[-1] < run.result.loss[0]
    assert not any("key.bias" in name for name in run.task.settings.layers)
    assert page.metric[0].delta.endswith("since epoch 0")
    kinds = find_labelled(page, "Kinds of layers to tune in every block")
    chosen = kinds.value
    kinds.set_value([]).run()
    press(page, "Tune")
    assert "Choose at least one layer" in page.error[0].value
    find_labelled(page, "Kinds of layers to tune in every block").set_value(chosen).run()
    find_labelled(page, "Epochs").set_value(0).run()
    press(page, "Tune")
    assert "whole number from 1 to 1000" in page.error[0].value
    find_labelled(page, "Epochs").set_value(1).run()
    page.text_area[0].set_value(" ").run()
    press(page, "Tune")
    assert "The text is empty" in page.error[0].value
    assert not page.exception
    assert count_figures(page) == 2
    assert last_run(page, "layers-marks") is run


def test_stop_keeps_the_epochs_so_far(bundled: object) -> None:
    page = open_view(layers_view="Change by block", layers_epochs="1000").run()
    run = last_run(page, "layers-marks")
    wait_until(lambda: run.result.epochs_reached >= 3)
    press(page.run(), "Stop")
    finish_run(page, "layers-marks")
    assert run.status == "stopped"
    assert 3 <= run.result.epochs_reached < 1000
    assert find_labelled(page, "Epoch shown").max == run.result.epochs_reached
    assert not page.exception


def test_a_learning_rate_that_is_too_high_gets_a_warning(bundled: object) -> None:
    page = tune_blocks(layers_rate="1e30", layers_epochs="4")
    assert not page.exception
    assert "The run diverged" in page.warning[0].value
