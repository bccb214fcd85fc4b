"""The ten questions without a browser: each has a page, a card on it, and a figure that answers."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.ui.questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
NUMBERS = range(1, len(QUESTIONS) + 1)
WAIT = 60.0  # seconds for what is computed first


def opened(number: int) -> AppTest:
    """The page that answers a question, as its link opens it."""
    question = QUESTIONS[number - 1]
    page = AppTest.from_file(str(ROOT / question.page[0]), default_timeout=180)
    page.query_params.update({"asked": str(number), **question.address})
    return page.run()


def keys(page: AppTest) -> set[str]:
    """Of all containers and widgets on a page."""

    def below(node: object) -> Iterator[str]:
        if key := getattr(node, "key", None):
            yield key
        for child in getattr(node, "children", {}).values():
            yield from below(child)

    return set(below(page.main))


def has(page: AppTest, selector: str) -> bool:
    """Whether a page has what a CSS selector selects by the classes that keys give."""
    parts = re.findall(r"\.([\w-]+)$|\[class\*='([\w-]+)'\]", selector)
    wanted = [exact or part for exact, part in parts]
    assert wanted
    if selector.startswith("."):
        return wanted[0].removeprefix("st-key-") in keys(page)
    return any(all(part in f"st-key-{key}" for part in wanted) for key in keys(page))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("number", NUMBERS)
def test_each_leads_to_its_answer(number: int, bundled: object) -> None:
    question, page = QUESTIONS[number - 1], opened(number)
    assert not page.exception
    assert f"**{question.sentence}** {question.answer}" in [one.value for one in page.markdown]
    end = time.monotonic() + WAIT
    while not has(page, question.selectors[0]) and time.monotonic() < end:
        page.run()
    assert has(page, question.selectors[0]), (
        f"{question.selectors[0]} is not among {sorted(keys(page))}"
    )
    for key, value in question.session.items():
        assert page.session_state[key] == value
    assert f'"{question.page[1]}"' in (ROOT / question.page[0]).read_text("utf-8")


def test_the_table_in_the_docs_has_them_all() -> None:
    rows = re.findall(
        r"^\| ([^|]+\?) \| ([^|]+) \|$", (ROOT / "docs/tour.md").read_text("utf-8"), re.M
    )
    assert [asked for asked, _ in rows] == [question.sentence for question in QUESTIONS]
    for (asked, clicks), question in zip(rows, QUESTIONS, strict=True):
        is_first = question.page[1] == "Micro-tuning"
        assert is_first or question.page[1] in clicks, asked
