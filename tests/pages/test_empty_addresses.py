"""What an address leaves empty is chosen as if it were not in it; what is chosen gets there."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pages import page_at


@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize(
    ("name", "key", "chosen"),
    [
        ("micro_tuning", "layers", "Head"),
        ("corpus_map", "map-a-dimensions", 2),
        ("corpus_map", "corpus-how", "By words"),
        ("corpus_map", "corpus-list", "Where the maps disagree"),
        ("evaluation", "example", "Forms"),
        ("how_it_works", "step", 1),
        ("layers", "layers-view", "Lens"),
    ],
)
def test_the_first_choice_of_a_page(name: str, key: str, chosen: object) -> None:
    page = page_at(name, **{key: ""}).run()
    assert not page.exception
    assert page.button_group(key=key).value == chosen
    assert key not in page.query_params


def test_what_an_interrupted_run_of_the_script_wrote_is_written_again() -> None:
    """The second click of two ends the first one's, whose messages are discarded."""

    def script() -> None:
        import streamlit as st
        from streamlit.runtime.scriptrunner import get_script_run_ctx

        from neuralviz.ui.address import write

        context = get_script_run_ctx()
        st.query_params["run"] = "a"
        context.query_string = ""
        write({"run": "a"})
        st.text(context.query_string)

    assert AppTest.from_function(script).run().text[0].value == "run=a"


def test_a_request_that_waits_is_answered_before_the_page_runs_again() -> None:
    """*Back* pressed during a run has the address that counts."""

    def script() -> None:
        import streamlit as st
        from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

        from neuralviz.ui.address import run_page_again

        context = get_script_run_ctx()
        addresses = st.session_state.setdefault("addresses", [])
        addresses.append(context.query_string)
        if len(addresses) == 1:
            back = RerunData(query_string="step=2", is_history_navigation=True)
            context.script_requests.request_rerun(back)
            run_page_again()
        elif len(addresses) == 2:
            run_page_again()

    page = AppTest.from_function(script).run()
    assert page.session_state["addresses"] == ["", "step=2", "step=2"]
