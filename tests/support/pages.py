"""Pages of the app without a browser."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from neuralviz.paths import home
from tests.support.waiting import wait_until

PAGES = Path(__file__).parents[2] / "pages"


def page_at(name: str, timeout: float = 90, **address: str | list[str]) -> AppTest:
    """The page ``pages/NAME.py`` at an address, before its first run."""
    page = AppTest.from_file(str(PAGES / f"{name}.py"), default_timeout=timeout)
    for key, value in address.items():
        page.query_params[key.replace("_", "-")] = value
    return page


def count_figures(page: AppTest) -> int:
    return len(page.get("bidi_component"))


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


def find_labelled(page: AppTest, label: str) -> Any:
    """The widget with a label."""
    kinds = (page.selectbox, page.number_input, page.slider, page.multiselect, page.text_input)
    return next(widget for kind in kinds for widget in kind if widget.label == label)


def read_captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption).replace("\\", "")


def read_markdown(page: AppTest) -> str:
    return " ".join(element.value for element in page.markdown).replace("\\", "")


def read_messages(page: AppTest) -> str:
    messages = [*page.error, *page.warning, *page.info]
    return " ".join(element.value for element in messages).replace("\\", "")


def read_page(page: AppTest) -> str:
    successes = " ".join(element.value for element in page.success).replace("\\", "")
    return f"{read_messages(page)} {successes} {read_captions(page)} {read_markdown(page)}"


def open_reasons(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Press the button that leads to *Why?*, and open where it leads in a second browser."""
    opened: list[dict[str, str]] = []
    monkeypatch.setattr(st, "switch_page", lambda _, query_params: opened.append({**query_params}))
    press(page, "Which words make these texts similar?")
    assert not page.exception
    run = last_run(page, "compare")
    assert run.wait(90)
    notes = partial((home() / "results").glob, f"{run.id}.*")
    wait_until(lambda: [path.read_text() for path in notes()] == ["done"], 10)
    compare = page_at("compare")
    compare.query_params.update(opened[0])
    compare.run()
    assert not compare.exception
    assert not compare.error
    assert compare.segmented_control(key="compare-more").value == "Why?"
    assert last_run(compare, "compare").task == run.task  # the settings of the page are those
    assert last_run(compare, "compare").is_reopened
    return compare


def last_run(page: AppTest, kind: str) -> Any:
    return page.session_state[f"{kind}-runs"][-1]


def finish_run(page: AppTest, kind: str, seconds: float = 60) -> AppTest:
    """Run the page again when its last run of a kind is over."""
    wait_until(lambda: last_run(page, kind).is_over, seconds)
    return page.run()
