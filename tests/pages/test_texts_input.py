"""The text input that pages share: nothing typed is lost, and what is left out is said."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def app() -> None:
    import streamlit as st

    from neuralviz.ui.inputs import ask_texts, put_texts_in_address

    texts = ask_texts("t", {"One": ["a", "b"], "Two": ["<b>c</b>"]}, max_texts=3).texts
    st.json(list(texts))
    if st.button("keep"):
        put_texts_in_address("t", texts)


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_function(app, default_timeout=20).run()


def open_link(view: str) -> AppTest:
    page = AppTest.from_function(app, default_timeout=20)
    page.query_params["view"] = view
    return page.run()


def given(page: AppTest) -> str:
    assert not page.exception
    return page.json[0].value.replace(" ", "")


def choose(page: AppTest, source: str) -> AppTest:
    return page.segmented_control(key="t-source").set_value(source).run()


def upload(page: AppTest, name: str, content: bytes) -> None:
    choose(page, "Upload").file_uploader(key="t-file").set_value((name, content, "")).run()


def test_nothing_typed_is_lost(page: AppTest) -> None:
    choose(page, "Paste").text_area(key="t-pasted").set_value("one\ntwo").run()
    assert given(page) == '["one","two"]'
    choose(page, "Example")
    choose(page, "Upload")
    assert given(page) == "[]"
    choose(page, "Paste")
    assert given(page) == '["one","two"]'
    page.text_area(key="t-pasted").set_value(" ").run()
    assert [caption.value for caption in page.caption] == ["No text yet."]


def test_it_says_what_was_changed_and_left_out(page: AppTest) -> None:
    choose(page, "Paste").text_area(key="t-pasted").set_value("1\x00\n\n2\n3\n4").run()
    assert given(page) == '["1","2","3"]'
    assert [caption.value for caption in page.caption] == [
        "4 texts. Replaced 1 unreadable character with spaces. Using the first 3 of 4 texts."
    ]
    page.button[0].click().run()
    linked = open_link(page.query_params["view"])
    assert given(linked) == '["1","2","3"]'
    assert linked.caption[0].value == "3 texts. Using the first 3 of 4 texts."
    assert linked.text_area(key="t-pasted").set_value("1\n2").run().caption[0].value == "2 texts."


def test_a_table_is_read_and_its_column_can_be_changed(page: AppTest) -> None:
    upload(page, "a.csv", b"title,text\nA,first text\nB,second text\n")
    assert given(page) == '["firsttext","secondtext"]'
    page.selectbox[0].set_value("title").run()
    assert given(page) == '["A","B"]'


def test_the_header_is_named_and_can_be_changed(page: AppTest) -> None:
    upload(page, "a.csv", b"Hello there, you.\nGood day to you all.\nFine.\n")
    assert given(page) == '["Hellothere,you.","Gooddaytoyouall.","Fine."]'
    assert "“Hello there, you.”. If it names the columns" in page.caption[0].value
    header = page.selectbox(key="t-header-a.csv")
    assert header.value == "detect automatically"
    header.set_value("line 1").run()
    assert given(page) == '["Gooddaytoyouall.","Fine."]'
    assert "Line 1 of a.csv names its columns" in page.caption[0].value
    page.button[0].click().run()
    assert given(open_link(page.query_params["view"])) == '["Gooddaytoyouall.","Fine."]'
    page.selectbox(key="t-header-a.csv").set_value("line 9").run()
    assert "nothing in line 9" in page.error[0].value
    page.selectbox(key="t-header-a.csv").set_value("none").run()
    assert "Read line 1 of a.csv as data" in page.caption[0].value


def test_an_unusable_file_or_link_gives_a_sentence(page: AppTest) -> None:
    upload(page, "a.txt", b" ")
    assert [error.value for error in page.error] == ["a.txt is empty."]
    lost = open_link("../../etc/passwd")
    assert given(lost) == '["a","b"]'
    assert "not saved here" in lost.warning[0].value
