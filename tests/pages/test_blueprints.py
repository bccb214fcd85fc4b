"""The page of the masking blueprints, without a browser."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import count_figures, page_at, read_captions, read_markdown


@pytest.fixture
def page() -> AppTest:
    return page_at("blueprints").run()


def type_text(page: AppTest, text: str) -> AppTest:
    return page.text_area[0].set_value(text).run()


def test_links_bring_blueprints_and_the_last_text_back() -> None:
    page = page_at("blueprints", blueprints="(1, 2)").run()  # of an old link
    assert "In 3 masked inputs, every token is masked 2 times." in read_markdown(page)
    assert page.query_params == {"grid-blueprints": "(1, 2)"}
    for text in ("One cat.", "Two cats."):
        type_text(page, text)
    again = page_at("blueprints", view=page.query_params["view"]).run()
    assert again.text_area[0].value == "Two cats."


def test_mistakes_get_a_sentence_and_what_was_typed_stays(page: AppTest) -> None:
    for typed in ("(0,3)", "(-1,2)", "two one", "", "(2,1), (", "(9999,1)"):
        page.text_input[0].set_value(typed).run()
        assert page.error[0].value, typed
        assert page.text_input[0].value == typed
    page.text_input[0].set_value("(2, 1)").run()
    for text in ("   ", "\x00\x07"):
        assert "at least one word" in type_text(page, text).error[0].value, repr(text)
    assert not page.exception


def test_odd_and_long_texts_are_drawn(page: AppTest) -> None:
    for text in ("🙂", "שלום a\x00b\x1bc", "<script>alert(1)</script> & <b>x</b>"):
        type_text(page, text)
        assert count_figures(page) == 1
        assert not page.error, repr(text)
    type_text(page, "The cat sat on the mat. " * 90)  # 630 tokens
    assert "chunk 1 of 2" in read_captions(page)
    page.slider[0].set_value(page.slider[0].max).run()
    page.number_input[0].set_value(2).run()
    assert "In 12 masked inputs" in read_markdown(page)
    type_text(page, "cat " * 60)
    assert page.slider[0].value <= page.slider[0].max == 21
    type_text(page, "A cat.")
    assert not page.slider
    assert not page.number_input
    assert not page.exception
