"""A link to another page that is pressed while a text is being typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.support.app import settled

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

TYPED = "My own sentence."


def test_a_tap_on_a_link_leads_there_and_the_text_is_still_there(
    browser: Browser, address: str
) -> None:
    with browser.new_context(has_touch=True, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto(address)
        page.get_by_role("radio", name="Paste").click()
        settled(page)
        page.get_by_role("textbox", name="Your texts").click()
        page.keyboard.type(TYPED)
        page.get_by_role("link", name="Compare").tap()
        expect(page.get_by_role("heading", name="Compare", level=1)).to_be_visible()
        page.get_by_role("link", name="Micro-tuning").tap()
        expect(page.get_by_role("textbox", name="Your texts")).to_have_value(TYPED)
