"""The tour without a browser: its stops, in their order, on the pages that they name."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.ui.corpus.search import MEANING, WORDS
from neuralviz.ui.tour import STOPS

ROOT = Path(__file__).parents[2]


def card(script: str, number: str, **address: str) -> AppTest:
    page = AppTest.from_string(
        f"from neuralviz.ui.tour import is_tour_at, show_tour_card\nimport streamlit as st\n"
        f"st.text(show_tour_card({script!r}))\nst.text(is_tour_at({script!r}))"
    )
    page.query_params.update({"tour": number, **address})
    return page.run()


@pytest.mark.parametrize("number", range(1, len(STOPS) + 1))
def test_a_stop_shows_its_question_on_its_page_alone(number: int) -> None:
    stop = STOPS[number - 1]
    page = card(stop.title, str(number))
    assert not page.exception
    assert page.markdown[0].value == f"{number}\\. {stop.question}"
    assert page.text[0].value == "True"
    assert [button.label for button in page.button] == [
        *["Back"][: number - 1],
        f"Next: {STOPS[number].title}" if number < len(STOPS) else "How it works, step by step",
        "End the tour",
    ]
    assert f'"{stop.title}"' in (ROOT / stop.page).read_text("utf-8")
    elsewhere = card("Masking blueprints", str(number))
    assert elsewhere.text[0].value == "False"
    assert not elsewhere.button


def test_a_link_that_says_only_the_stop_opens_it_as_next_does() -> None:
    page = card("Compare", "2")
    assert not page.exception
    assert page.query_params == {"tour": "2", **STOPS[1].address}
    page = card("Corpus map", "3")
    assert page.session_state["corpus-how"] == MEANING
    page.session_state["corpus-how"] = WORDS  # what a visitor chooses there stays
    assert page.run().session_state["corpus-how"] == WORDS
