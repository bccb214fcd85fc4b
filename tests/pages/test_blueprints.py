"""The page of the masking blueprints, without a browser."""

from __future__ import annotations

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from neuralviz.ui import blueprints
from tests.support.pages import (
    count_figures,
    finish_run,
    last_run,
    page_at,
    press,
    read_captions,
    read_markdown,
)


@pytest.fixture
def page() -> AppTest:
    return page_at("blueprints").run()


def type_text(page: AppTest, text: str) -> AppTest:
    return page.text_area[0].set_value(text).run()


def test_links_bring_blueprints_and_the_last_text_back() -> None:
    page = page_at("blueprints", blueprints="(1, 2)").run()  # of an old link
    assert "over 3 rows, every token is hidden 2 times" in read_markdown(page)
    assert page.query_params == {"grid-blueprints": "(1, 2)"}
    type_text(page, "Сегодня поезд снова опоздал.")
    assert "reads English" in page.warning[0].value
    type_text(page, "Two cats.")
    assert not page.warning
    again = page_at("blueprints", view=page.query_params["view"]).run()
    assert again.text_area[0].value == "Two cats."


def test_tokens_are_masked_by_hand_and_the_model_guesses_them(bundled: object) -> None:
    page = page_at("blueprints", grid_masked="2").run()
    page.pills(key=blueprints.SHOWN_MASKED).set_value([2, 6]).run()
    finish_run(page, "grid-guesses")
    assert not page.exception
    predictions = last_run(page, "grid-guesses").result
    assert predictions.token.tolist() == [1, 5]
    assert "best guesses for the masked tokens are “" in read_markdown(page)
    linked = page.query_params["grid-masked"]
    page.pills(key=blueprints.SHOWN_MASKED).set_value([]).run()
    assert "best guess" not in read_markdown(page)
    again = page_at("blueprints", grid_masked=linked).run()
    assert again.pills(key=blueprints.SHOWN_MASKED).value == [2, 6]
    type_text(again, "A cat.")  # in another text, these are other tokens
    assert again.pills(key=blueprints.SHOWN_MASKED).value == []
    assert not again.exception


def test_micro_tuning_opens_with_the_text_and_the_blueprints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[dict[str, str]] = []
    monkeypatch.setattr(st, "switch_page", lambda _, query_params: opened.append(query_params))
    page = page_at("blueprints", blueprints="1 2; 3 1").run()
    type_text(page, "Two <b>cats</b> & a dog.\n\nOne text.")
    press(page, "Tune with these")
    assert not page.exception
    tuning = page_at("micro_tuning", **opened[0]).run()
    assert not tuning.exception
    assert tuning.text_area[0].value == "Two <b>cats</b> & a dog.\n\nOne text."
    assert "1 text." in read_captions(tuning)
    assert tuning.text_input(key="blueprints").value == "(1, 2), (3, 1)"


def test_mistakes_get_a_sentence_and_what_was_typed_stays(page: AppTest) -> None:
    for typed in ("(0,3)", "(-1,2)", "two one", "", "(2,1), (", "(9999,1)"):
        page.text_input[0].set_value(typed).run()
        assert page.error[0].value, typed
        assert page.text_input[0].value == typed
    page.text_input[0].set_value("(2, 1)").run()
    for text in ("   ", "\x00\x07"):
        assert "at least one word" in type_text(page, text).error[0].value, repr(text)
    assert not page.exception


def test_odd_and_long_texts_are_drawn(page: AppTest, bundled: object) -> None:
    for text in ("🙂", "שלום a\x00b\x1bc", "<script>alert(1)</script> & <b>x</b>"):
        type_text(page, text)
        assert count_figures(page) == 1
        assert not page.error, repr(text)
    type_text(page, "The cat sat on the mat. " * 90)  # 630 tokens
    assert "chunk 1 of 2" in read_captions(page)
    page.slider[0].set_value(page.slider[0].max).run()
    page.number_input[0].set_value(2).run()
    assert "over 12 rows" in read_markdown(page)
    type_text(page, "cat " * 60)
    assert page.slider[0].value <= page.slider[0].max == 21
    page.slider[0].set_value(1).run()
    page.pills(key=blueprints.SHOWN_MASKED).set_value([2, 30]).run()
    page.slider[0].set_value(21).run()  # a token beyond the window stays masked
    assert page.pills(key=blueprints.SHOWN_MASKED).value == [30]
    page.pills(key=blueprints.SHOWN_MASKED).set_value([30, 60]).run()
    assert page.query_params["grid-masked"] == "2,30,60"
    type_text(page, "A cat.")
    assert not page.slider
    assert not page.number_input
    assert not page.exception
