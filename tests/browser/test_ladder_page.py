"""The page on frozen features as a person meets it: train, stop, go on, come back, save."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.app import looks, problems

MINUTE = 60_000
CURVES = "[aria-label^='How the rungs learn']"
# epochs that are drawn, of all rungs
N_POINTS = "(figure => (figure?._fullData ?? []).reduce((n, c) => n + (c.x?.length ?? 0), 0))"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_ladder_is_watched_stopped_started_again_brought_back_and_saved(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/frozen_features")
    page.get_by_text("Recorded run.").wait_for()
    page.get_by_role("button", name="Train", exact=True).dblclick()
    stop = page.locator("[class*='st-key-frozen-state-']").get_by_role("button", name="Stop")
    stop.wait_for()  # in place of the recorded run
    page.wait_for_function(
        f"() => {N_POINTS}(document.querySelector(`{CURVES}`))", timeout=2 * MINUTE
    )
    stop.click()
    stopped = page.get_by_text(re.compile(r"Stopped |Done in"))
    stopped.wait_for()
    if "Stopped" in stopped.inner_text():  # it is quick on a quick machine
        page.wait_for_function(f"() => {N_POINTS}(document.querySelector(`{CURVES}`))")
        page.get_by_role("button", name="Run again").click()
    page.get_by_text("Done in").wait_for(timeout=3 * MINUTE)
    expect(page.get_by_text("(chosen on the dev pairs)")).to_be_visible()
    page.get_by_text("In the FREEZE paper, this pair gets 0.47").wait_for(timeout=MINUTE)
    for seen in looks(page):
        assert problems(page) == [], seen
    headline = page.locator("[class*='st-key-headline-frozen-ladder'] p").first.inner_text()
    page.reload()
    expect(page.locator("[class*='st-key-headline-frozen-ladder'] p").first).to_have_text(headline)
    page.get_by_text("Result of").wait_for()
