"""The tour and the ten questions without a browser, on the pages that they name."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.ui.corpus.search import MEANING, WORDS
from neuralviz.ui.tour import QUESTIONS, STOPS, find_page

ROOT = Path(__file__).parents[2]
WAIT = 60.0  # seconds for what is computed first


def open_card(title: str, number: str) -> AppTest:
    page = AppTest.from_string(
        "from neuralviz.ui.tour import show_card\n"
        f"import streamlit as st\nst.text(show_card({title!r}))"
    )
    page.query_params["tour"] = number
    return page.run()


@pytest.mark.parametrize("number", range(1, len(STOPS) + 1))
def test_a_stop_shows_its_question_on_its_page_alone(number: int) -> None:
    stop = STOPS[number - 1]
    page = open_card(stop.page, str(number))
    assert not page.exception
    assert page.markdown[0].value == f"{number}\\. {stop.question}"
    assert [button.label for button in page.button] == [
        *["Back"][: number - 1],
        f"Next: {STOPS[number].page}" if number < len(STOPS) else "How it works, step by step",
        "End the tour",
    ]
    assert f'"{stop.page}"' in find_page(stop.page).read_text("utf-8")
    elsewhere = open_card("Masking blueprints", str(number))
    assert elsewhere.text[0].value == "False"
    assert not elsewhere.button


def test_a_link_with_the_stop_alone_opens_it_as_next_does() -> None:
    page = open_card("Compare", "2")
    assert not page.exception
    assert page.query_params == {"tour": "2", **STOPS[1].address}
    page = open_card("Corpus map", "3")
    assert page.session_state["corpus-how"] == MEANING
    page.session_state["corpus-how"] = WORDS  # what a visitor chooses there stays
    assert page.run().session_state["corpus-how"] == WORDS


def list_keys(page: AppTest) -> set[str]:
    """Of all containers and widgets on a page."""

    def walk(node: object) -> Iterator[str]:
        if key := getattr(node, "key", None):
            yield key
        for child in getattr(node, "children", {}).values():
            yield from walk(child)

    return set(walk(page.main))


def has_element(page: AppTest, selector: str) -> bool:
    """Whether a page has what a CSS selector selects by the classes that keys give."""
    if selector.startswith("."):
        return selector.removeprefix(".st-key-") in list_keys(page)
    parts = re.findall(r"\[class\*='([\w-]+)'\]", selector)
    return any(all(part in f"st-key-{key}" for part in parts) for key in list_keys(page))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("number", range(1, len(QUESTIONS) + 1))
def test_each_question_leads_to_its_answer(number: int, bundled: object) -> None:
    question = QUESTIONS[number - 1]
    path = find_page(question.page)
    page = AppTest.from_file(str(path), default_timeout=180)
    page.query_params.update({"asked": str(number), **question.address})
    page.run()
    assert not page.exception
    assert f"**{question.question}** {question.text}" in [text.value for text in page.markdown]
    end = time.monotonic() + WAIT
    while not has_element(page, question.selectors[0]) and time.monotonic() < end:
        page.run()
    assert has_element(page, question.selectors[0]), sorted(list_keys(page))
    for key, value in question.session.items():
        assert page.session_state[key] == value
    assert f'"{question.page}"' in path.read_text("utf-8")


def test_the_docs_list_all_questions() -> None:
    text = (ROOT / "docs/tour.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+\?) \| ([^|]+) \|$", text, re.M)
    assert [sentence for sentence, _ in rows] == [question.question for question in QUESTIONS]
