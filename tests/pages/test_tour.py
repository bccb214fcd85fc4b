"""The tour and the ten questions without a browser, on the pages that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.ui.corpus.search import MEANING, WORDS
from neuralviz.ui.page import QUESTIONS, STOPS, find_page
from tests.support.pages import page_at
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


def open_card(title: str, number: str) -> AppTest:
    page = AppTest.from_string(
        "from neuralviz.ui.page import show_card\n"
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
    assert len(page.button) == (2 if number == 1 else 3)  # back, next, end
    assert f'"{stop.page}"' in find_page(stop.page).read_text("utf-8")
    assert not open_card("Masking blueprints", str(number)).button


def test_a_link_with_the_stop_alone_opens_it_as_next_does() -> None:
    page = open_card("Compare", "2")
    assert not page.exception
    assert page.query_params == {"tour": "2", **STOPS[1].address}
    page = open_card("Corpus map", "3")
    assert page.query_params["corpus-how"] == MEANING
    page.query_params["corpus-how"] = WORDS  # what a visitor chooses there stays
    assert page.run().query_params["corpus-how"] == WORDS


def has_element(page: AppTest, selector: str) -> bool:
    """Whether a page has what a CSS selector selects by the classes that keys give."""

    def walk(node: object) -> Iterator[str]:
        if key := getattr(node, "key", None):
            yield f"st-key-{key}"
        for child in getattr(node, "children", {}).values():
            yield from walk(child)

    keys = set(walk(page.main))
    if selector.startswith("."):
        return selector.removeprefix(".") in keys
    parts = re.findall(r"\[class\*='([\w-]+)'\]", selector)
    return any(all(part in key for part in parts) for key in keys)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("number", range(1, len(QUESTIONS) + 1))
def test_each_question_leads_to_its_answer(number: int, bundled: object) -> None:
    question = QUESTIONS[number - 1]
    path = find_page(question.page)
    page = page_at(path.stem, 180, asked=str(number), **question.address).run()
    assert not page.exception
    assert f"**{question.question}** {question.text}" in [text.value for text in page.markdown]
    wait_until(lambda: has_element(page.run(), question.selectors[0]), 60)
    for key, value in question.session.items():
        assert page.session_state[key] == value
    assert f'"{question.page}"' in path.read_text("utf-8")


def test_the_docs_list_all_questions() -> None:
    text = (ROOT / "docs/tour.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+\?) \| ([^|]+) \|$", text, re.M)
    assert [sentence for sentence, _ in rows] == [question.question for question in QUESTIONS]
    assert all(f"| {stop.page} | {stop.question} |" in text for stop in STOPS)
    assert STOPS[1].question == "What is a neural embedding good for?"
