"""Runs as a person drives them: double clicks, Stop, Run again, other pages meanwhile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_a_run_is_started_once_stopped_started_again_and_met_again(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/?epochs=1000")
    tune = page.get_by_role("button", name="Tune", exact=True)
    expect(tune).to_be_enabled()
    stop = page.get_by_test_id("stMain").get_by_role("button", name="Stop")
    tune.dblclick()
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
    expect(page.get_by_text(re.compile(r"[Ee]poch \d+ of 1,000, about .* left"))).to_be_visible()
    expect(page.get_by_role("heading", name="Run 2")).to_have_count(0)
    stop.click()
    half = re.compile(r"Stopped\. Texts 1 to 3 have reached epoch \d+ of 1,000\.")
    expect(page.get_by_text(half)).to_be_visible()
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("heading", name="Run 2")).to_be_visible()
    expect(
        page.get_by_text("compared with run 1 (wide line, unfinished)")
    ).to_be_visible()  # over it

    page.get_by_role("link", name="Compare", exact=True).click()
    # a comparison is not kept waiting by a run that goes through the network with others'
    expect(page.locator("[aria-label='mean']")).to_be_visible()
    page.get_by_role("link", name="Layer dynamics", exact=True).click()
    # a text is not kept waiting by the run
    expect(page.get_by_text("SBERT-WK gives most weight")).to_be_visible()
    page.get_by_role("link", name="Micro-tuning", exact=True).click()
    expect(page.get_by_role("heading", name="Run 2")).to_be_visible()
    stop.click()
    expect(page.get_by_text(half)).to_be_visible()
    expect(page.locator("[data-testid=stException]")).to_have_count(0)


def test_the_first_click_after_typing_counts_and_a_reload_brings_the_run_back(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/?epochs=3")
    page.get_by_role("radio", name="Paste").click()
    box = page.get_by_role("textbox", name="Your texts")
    box.fill("A cat sleeps on the mat.")
    page.get_by_role("button", name="Tune", exact=True).click()
    point = page.get_by_text(re.compile(r"; after 3 epochs it is \d+% sure\.")).first
    expect(point).to_be_visible()
    said = point.inner_text()
    expect(page.get_by_text(re.compile(r"^Done in"))).to_be_visible()
    expect(page).to_have_url(re.compile("view="))
    page.reload()
    expect(page.get_by_text(re.compile(r"Result of .* UTC"))).to_be_visible()
    expect(box).to_have_value("A cat sleeps on the mat.")
    expect(point).to_have_text(said)
    page.get_by_role("button", name="Stage", exact=True).click()
    expect(point).to_be_visible()
    expect(box).to_be_hidden()
    page.keyboard.press("Escape")
