"""What is put into the address together becomes one entry of the browser's history."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def a_page() -> None:
    import streamlit as st

    from neuralviz.ui.links import one_history_entry, set_query_params

    def tune() -> None:
        with one_history_entry():
            set_query_params({"view": "texts"})
            st.session_state["during"] = dict(st.query_params)
            set_query_params({"run": "first"})
            if "broken" in st.session_state:
                raise ValueError("the run could not begin")

    if st.button("Mask"):
        set_query_params({"run": "second"})
    if st.button("Tune"):
        tune()


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_function(a_page).run()


def test_the_address_changes_once_at_the_end(page: AppTest) -> None:
    press(page, "Tune")
    assert page.session_state["during"] == {}
    assert page.query_params == {"view": "texts", "run": "first"}


def test_values_that_follow_what_was_cut_off_still_come_into_the_address(page: AppTest) -> None:
    page.session_state["broken"] = True
    press(page, "Tune")
    assert page.exception
    press(page, "Mask")
    assert not page.exception
    assert page.query_params["run"] == "second"
