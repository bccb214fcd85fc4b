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
    expect(page.get_by_text(re.compile(r"[Ss]tep \d+ of 1,000, about .* left"))).to_be_visible()
    expect(page.get_by_role("heading", name="Run 2")).to_have_count(0)
    stop.click()
    expect(page.get_by_text("Stopped after")).to_be_visible()
    expect(page.get_by_text("The result so far is shown.")).to_be_visible()
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("heading", name="Run 2")).to_be_visible()
    expect(page.get_by_text("compared with run 1 (dashed, unfinished)")).to_be_visible()  # over it

    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.get_by_text("Waiting: 1 run ahead of this one.")).to_be_visible()
    page.get_by_role("link", name="Layer dynamics", exact=True).click()
    # a text is not kept waiting by the run
    expect(page.get_by_text("Which words shape the embedding")).to_be_visible()
    page.get_by_role("link", name="Micro-tuning", exact=True).click()
    expect(page.get_by_role("heading", name="Run 2")).to_be_visible()
    stop.click()
    page.get_by_role("link", name="Compare", exact=True).click()
    # its turn has come
    expect(page.locator("[aria-label='mean']")).to_be_visible()
    expect(page.get_by_text(re.compile("ahead of this one"))).to_have_count(0)
    expect(page.locator("[data-testid=stException]")).to_have_count(0)
