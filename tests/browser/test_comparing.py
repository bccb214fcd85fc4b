"""The compare page as a person meets it: two methods, another order, a click, files to keep."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.app import LOOKS, look, looks, problems, settled
from tests.support.downloads import (
    assert_pictures_are_whole,
    find_row,
    open_menu,
    opened_offline,
    save,
)

MINUTE = 60_000
MEAN, SBERT_WK = "[aria-label^='mean']", "[aria-label^='sbert-wk']"

pytestmark = pytest.mark.browser


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


@pytest.mark.slow
def test_two_methods_reordered_clicked_and_taken_away_and_html_is_not_run(
    page: Page, browser: Browser, address: str, tmp_path: Path
) -> None:
    page.goto(f"{address}/compare?m2=sbert-wk&m3=none")
    page.locator(".st-key-slide-compare-view").wait_for(timeout=2 * MINUTE)
    page.locator(SBERT_WK).locator(".main-svg").first.wait_for(timeout=MINUTE)
    assert {how: found for how in looks(page) if (found := problems(page))} == {}
    look(page, max(LOOKS))
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
    for name, place in (("Text A", 2), ("Text B", 7)):
        field = page.get_by_role("combobox", name=name)
        expect(field).to_have_value(re.compile(rf"^{order[place]}\. "))
    expect(page.get_by_role("radio", name="Why?")).to_be_checked()
    page.get_by_role("radio", name="Disagreements").click()

    with open_menu(page) as menu:
        _, content = save(page, find_row(menu, "mean").get_by_role("button", name="CSV"))
    table = pd.read_csv(io.BytesIO(content))
    shown = page.locator(MEAN).evaluate("figure => figure._fullData[0].z[0][1]")
    assert table.iloc[order[0] - 1, order[1]] == pytest.approx(shown, abs=1e-6)

    assert_pictures_are_whole(page)
    page.get_by_role("radio", name="Paste").click()
    page.get_by_role("textbox", name="Your texts").fill(
        "<img src=x onerror=window.hacked=1>\n<script>window.hacked=1</script>\n& **bold**"
    )
    page.get_by_role("button", name="Compare", exact=True).click()  # straight from the box
    page.wait_for_function(f'() => document.querySelector("{MEAN}")?._fullData?.[0].x.length === 3')
    page.locator(MEAN).locator(".nsewdrag").first.hover()
    settled(page)
    assert page.locator("img[src=x]").count() == 0
    assert page.evaluate("window.hacked") is None
    n_figures = page.locator(".neuralviz-figure").count()
    with open_menu(page) as menu:
        _, content = save(page, menu.get_by_role("button", name="This page (HTML)"))
    with opened_offline(browser, content, tmp_path) as copy:
        copy.locator(".js-plotly-plot .main-svg").last.wait_for()
        assert copy.locator(".js-plotly-plot").count() == n_figures
        assert copy.locator("img[src=x]").count() == 0
        assert copy.evaluate("window.hacked") is None
        assert "**bold**" in copy.locator("body").inner_text()
