"""Runs outlive the page, and say so where they could not outlive the server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from neuralviz.jobs.returning import REASONS
from neuralviz.ui.links import LATE_SECONDS
from tests.support.app import APP, Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

STEP = re.compile(r"[Ee]poch [\d,]+ of 1,000")
TEXT = "The baker waits for the ship."


def begin(page: Page, address: str) -> None:
    """Tune on a text of one's own, and wait for the first steps."""
    page.goto(f"{address}/?epochs=1000")
    page.get_by_role("radio", name="Paste").click()
    page.get_by_role("textbox", name="Your texts").fill(TEXT)
    page.get_by_role("button", name="Tune", exact=True).click()
    expect(page.get_by_text(STEP)).to_be_visible()
    expect(page).to_have_url(re.compile("run="))


def steps(page: Page) -> int:
    found = STEP.search(page.get_by_text(STEP).inner_text())
    assert found is not None
    return int(found[0].split()[1].replace(",", ""))


def test_a_run_goes_on_without_its_page_and_is_met_in_another_browser(
    browser: Browser, address: str
) -> None:
    with browser.new_context() as mine:
        page = mine.new_page()
        begin(page, address)
        link, before = page.url, steps(page)
    with browser.new_context() as another:
        page = another.new_page()
        page.goto(link)
        expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
        expect(page.get_by_text(STEP)).to_be_visible()
        assert steps(page) >= before
        expect(page.get_by_role("textbox", name="Your texts")).to_have_value(TEXT)
        page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
        expect(page.get_by_text(re.compile(r"^Stopped\."))).to_be_visible()
        expect(page.locator("[data-testid=stException]")).to_have_count(0)


def test_back_brings_the_run_before_with_its_text(page: Page, address: str) -> None:
    page.goto(f"{address}/?epochs=2")
    page.get_by_role("radio", name="Paste").click()
    field, button = page.get_by_role("textbox", name="Your texts"), page.get_by_role("button")
    links = []
    for number, text in enumerate((TEXT, "The harbour is quiet."), 1):
        field.fill(text)
        button.get_by_text("Tune", exact=True).click()
        expect(page.get_by_role("heading", name=f"Run {number}")).to_be_visible()
        expect(page.get_by_text(re.compile("^Done in"))).to_be_visible()
        links.append(page.url)
    assert links[0] != links[1]
    page.wait_for_timeout(1_000 * LATE_SECONDS)  # until then the address before is a late click's
    page.go_back()
    expect(page).to_have_url(links[0])
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
    expect(field).to_have_value(TEXT)


def test_a_run_that_a_crash_ended_says_so_and_is_started_again(
    browser: Browser, tmp_path: Path
) -> None:
    server = Server(APP, tmp_path, {"NEURALVIZ_WORKERS": "1"})
    try:
        server.start()
        with browser.new_context() as context:
            page = context.new_page()
            begin(page, server.address)
            link = page.url
            server.kill()
            server.start()
            page.goto(link)
            expect(page.get_by_text(REASONS["crashed"])).to_be_visible()
            page.get_by_role("button", name="Run again").click()
            expect(page.get_by_text(STEP)).to_be_visible()
            assert page.url != link
            page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
            expect(page.get_by_text(re.compile(r"^Stopped\."))).to_be_visible()
    finally:
        server.end()
