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
