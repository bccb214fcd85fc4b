"""The page of the masking blueprints, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

PAGE = Path(__file__).parents[2] / "pages" / "blueprints.py"


@pytest.fixture
def page():
    return AppTest.from_file(str(PAGE), default_timeout=60).run()


def figures(page):
    return len(page.get("bidi_component"))


def counts(page):
    assert not page.exception
    return {metric.label: metric.value for metric in page.metric}


def open_example(page, name):
    return page.pills(key="grid-example").set_value(name).run()


def headline(page):
    (said,) = (text.value for text in page.markdown if "every token is masked" in text.value)
    return said


def type_text(page, text):
    return page.text_area[0].set_value(text).run()


def test_opens_with_an_example_on_it(page):
    assert counts(page) == {
        "Masked inputs": "12",
        "Masked positions": "91",
        "Times each token is masked": "7",
    }
    assert figures(page) == 1
    assert not page.error


def test_a_link_brings_the_blueprints():
    page = AppTest.from_file(str(PAGE), default_timeout=60)
    page.query_params["blueprints"] = "(1, 2)"
    assert headline(page.run()) == "In 3 masked inputs, every token is masked 2 times."
    assert page.query_params["blueprints"] == "(1, 2)"


def test_a_bad_blueprint_keeps_what_was_typed_and_the_last_grid(page):
    page.text_input[0].set_value("(3, 2)").run()
    before = counts(page)
    for typed in ("(0,3)", "(3,0)", "(-1,2)", "two one", "", "(2,1), (", "(9999,1)"):
        page.text_input[0].set_value(typed).run()
        assert page.error[0].value.endswith("Showing the last valid input."), typed
        assert page.text_input[0].value == typed
        assert counts(page) == before
        assert figures(page) == 1


def test_edits_write_over_one_file(page, tmp_path, monkeypatch):
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    for text in ("One cat.", "Two cats.", "Three cats."):
        type_text(page, text)
    assert len(list((tmp_path / "views").iterdir())) == 1
    again = AppTest.from_file(str(PAGE), default_timeout=60)
    again.query_params["view"] = page.query_params["view"]
    assert again.run().text_area[0].value == "Three cats."


def test_a_text_without_tokens_gets_a_sentence(page):
    for text in ("", "   ", "\x00\x07"):
        type_text(page, text)
        assert "at least one word" in page.error[0].value, repr(text)
        assert figures(page) == 1
        assert not page.exception


def test_odd_texts_are_drawn(page):
    script = "<script>alert(1)</script> & <b>x</b>"
    for text in ("cat", "🙂", "שלום עולם, מה שלומך?", "a\x00b\x1bc", script):
        type_text(page, text)
        assert counts(page)["Masked inputs"]
        assert figures(page) == 1
        assert not page.error, repr(text)


def test_long_texts_are_shown_in_chunks_and_windows(page):
    type_text(page, "The cat sat on the mat. " * 90)  # 630 tokens
    assert len(page.number_input) == 1
    assert "chunk 1 of 2" in " ".join(caption.value for caption in page.caption)
    page.slider[0].set_value(page.slider[0].max).run()
    page.number_input[0].set_value(2).run()
    assert counts(page)["Masked inputs"] == "12"
    type_text(page, "cat " * 60)
    assert page.slider[0].max == 21
    assert page.slider[0].value <= 21
    type_text(page, "A cat.")
    assert not page.slider
    assert not page.number_input
    assert not page.exception
