"""The compare page as a person meets it: two methods, another order, a click, files to keep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from playwright.sync_api import expect

from tests.support.app import LOOKS, look, looks, problems, settled

if TYPE_CHECKING:
    from playwright.sync_api import Page

MINUTE = 60_000
MEAN, SBERT_WK = "[aria-label='mean']", "[aria-label='sbert-wk']"

pytestmark = pytest.mark.browser


def paste(page: Page, text: str) -> None:
    page.get_by_role("radio", name="Paste").click()
    page.get_by_role("textbox", name="Your texts").fill(text)
    # straight from the box: the first click counts
    page.get_by_role("button", name="Compare", exact=True).click()


def numbers(page: Page, figure: str, axis: str) -> list[int]:
    names = page.locator(figure).evaluate(f"figure => [...figure._fullData[0].{axis}]")
    return [int(name.partition(".")[0]) for name in names]


def click_cell(page: Page, figure: str, row: int, column: int) -> None:
    area = page.locator(figure).locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    n = len(numbers(page, figure, "x"))
    x, y = box["x"] + (column + 0.5) * box["width"] / n, box["y"] + (row + 0.5) * box["height"] / n
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    # a click is on what is pointed at, which plotly looks for at leisure
    page.locator(figure).locator(".hoverlayer .hovertext").first.wait_for()
    page.mouse.click(x, y)


def download(page: Page, label: str) -> Path:
    page.get_by_role("button", name="Download", exact=True).first.click()
    with page.expect_download() as file:
        page.get_by_role("button", name=label).click()
    return Path(file.value.path())


@pytest.mark.slow
def test_two_methods_reordered_clicked_and_taken_away_and_html_is_not_run(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/compare?m2=sbert-wk&m3=none")
    page.get_by_text("Where the methods disagree", exact=True).first.wait_for(timeout=2 * MINUTE)
    page.locator(SBERT_WK).locator(".main-svg").first.wait_for(timeout=MINUTE)
    assert numbers(page, MEAN, "x") == list(range(1, 13))
    page.get_by_role("combobox", name="Order of texts").click()
    page.get_by_role("option", name="Clustered by the first method").click()
    for figure in (MEAN, SBERT_WK):
        page.wait_for_function(
            f'() => {{ const {{x}} = document.querySelector("{figure}")._fullData[0];'
            " return !x[0].startsWith('1.') || !x[1].startsWith('2.') }"
        )
    order = numbers(page, MEAN, "x")
    assert sorted(order) == list(range(1, 13))
    assert order == numbers(page, SBERT_WK, "y")

    click_cell(page, SBERT_WK, 2, 7)
    one, other = (
        page.get_by_role("combobox", name="Text A"),
        page.get_by_role("combobox", name="Text B"),
    )
    starts = [re.compile(rf"^{order[place]}\. ") for place in (2, 7)]
    for field, start in zip((one, other), starts, strict=True):
        expect(field).to_have_value(start)

    table = pd.read_csv(download(page, "Numbers (CSV)"))
    shown = page.locator(MEAN).evaluate("figure => figure._fullData[0].z[0][1]")
    assert table.iloc[order[0] - 1, order[1]] == pytest.approx(shown, abs=1e-6)

    page.keyboard.press("Escape")  # what is to be downloaded
    paste(page, "<img src=x onerror=window.hacked=1>\n<script>window.hacked=1</script>\n& **bold**")
    page.wait_for_function(f'() => document.querySelector("{MEAN}")?._fullData?.[0].x.length === 3')
    page.locator(MEAN).locator(".nsewdrag").first.hover()
    settled(page)
    assert page.locator("img[src=x]").count() == 0
    assert page.evaluate("window.hacked") is None
    content = download(page, "Figure (HTML)").read_text("utf-8")
    assert "<img src=x" not in content
    assert "<script>window.hacked" not in content


@pytest.mark.slow
def test_nothing_is_clipped_and_cells_appear_while_texts_are_learnt(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/compare?m2-neural-epochs=1")
    page.get_by_text("Done in").wait_for(timeout=2 * MINUTE)
    page.locator("[aria-label='All pairs of texts'] .main-svg").first.wait_for()
    assert {how: found for how in looks(page) if (found := problems(page))} == {}
    look(page, max(LOOKS))
    lines = [f"The {n}th boat of the harbour left with {n + 3} men on board." for n in range(60)]
    paste(page, "\n".join(lines))
    page.get_by_text(re.compile(r"neural, fast, 1 epoch: \d+ of 60")).wait_for(timeout=2 * MINUTE)
    count = "f => f._fullData[0].z.flatMap(row => [...row]).filter(Number.isFinite).length"
    page.wait_for_function(
        f"() => {{ const f = document.querySelector(\"[aria-label='neural, fast, 1 epoch']\");"
        f" const n = f?._fullData ? ({count})(f) : 0; return n > 0 && n < 3600 }}",
        timeout=2 * MINUTE,
    )
    page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).click()
    page.get_by_text(re.compile(r"Stopped\. neural, fast, 1 epoch: \d+ of 60")).wait_for()
