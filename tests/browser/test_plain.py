"""Texts of users are shown as they are, by the renderer that users have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from neuralviz.ui.page import WORD_JOINER
from tests.browser.plain_app import TEXTS

pytestmark = pytest.mark.browser


def test_what_users_type_is_no_link_and_no_markdown(
    page: Page, serve: Callable[[Path], str]
) -> None:
    page.goto(serve(Path(__file__).with_name("plain_app.py")))
    page.locator(f".st-key-text-{len(TEXTS) - 1} p").wait_for()
    for number, text in enumerate(TEXTS):
        place = page.locator(f".st-key-text-{number}")
        shown = place.inner_text().replace(WORD_JOINER, "")
        assert " ".join(shown.split()) == " ".join(text.split())
        drawn = "a, ul, ol, hr, h1, h2, img, table, code, em, strong, del, span[role=img], .katex"
        assert place.locator(drawn).count() == 0, text
