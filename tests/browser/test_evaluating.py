"""The evaluation page as a person meets it: every view, an upload, Stop, a report to keep."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.app import LOOKS, look, looks, problems
from tests.support.downloads import (
    assert_pictures_are_whole,
    find_row,
    open_menu,
    opened_offline,
    save,
)

MINUTE = 60_000
N_PAIRS = 22
MARKUP_NAME = "a **b** $x$ & c.csv"
PAIRS = [
    (f"The {i}th boat left.", f"A boat, number {i * 7 % N_PAIRS}, is gone.", i % 11 / 2)
    for i in range(N_PAIRS)
]
pytestmark = pytest.mark.browser


def look_at(page: Page, option: str, *figures: str) -> None:
    """Click on a measure or a view; its figures come, and fit at every width, in both themes."""
    page.get_by_role("radio", name=option, exact=True).click()
    for figure in figures:
        page.locator(f'[aria-label^="{figure}"] .main-svg').first.wait_for()
    found = {how: problems(page) for how in looks(page)}
    assert not any(found.values()), (option, found)


def assert_report_stands_alone(page: Page, browser: Browser, folder: Path) -> None:
    """Download the results of mean and cls on the pairs; the report needs nothing beside it."""
    with open_menu(page) as menu:
        row = find_row(menu, "All results")
        files = {}
        for label in ("Report (HTML)", "CSV", "JSON"):
            name, content = save(page, row.get_by_role("button", name=label))
            assert name.startswith("evaluation-")  # says what it is of
            assert "-mean-cls." in name
            files[Path(name).suffix] = content
        _, whole = save(page, menu.get_by_role("button", name="This page (HTML)"))
    n_figures = page.locator(".neuralviz-figure").count()
    for content, n in ((files[".html"], 9), (whole, n_figures)):
        with opened_offline(browser, content, folder) as report:
            report.locator(".js-plotly-plot .main-svg").last.wait_for()
            assert report.locator(".js-plotly-plot").count() == n
            assert MARKUP_NAME in report.locator("body").inner_text()
            first = report.locator("table:has(th:has-text('Spearman'))").first
            for _ in range(2):
                first.locator("th").nth(1).click()
            texts = first.locator("td:nth-child(2)").all_inner_texts()
            values = [float(text.replace("−", "-")) for text in texts]
            assert values == sorted(values, reverse=True)


@pytest.mark.slow
def test_every_view_fits_and_can_be_taken_away(
    page: Page, browser: Browser, address: str, tmp_path: Path
) -> None:
    table = tmp_path / MARKUP_NAME
    pd.DataFrame(PAIRS, columns=["a", "b", "score"]).to_csv(table, index=False)
    page.goto(f"{address}/evaluation?methods=mean&methods=cls&example=Scored+pairs")
    page.get_by_role("radio", name="Upload").click()
    page.locator("input[type=file]").set_input_files(table)
    page.get_by_text(MARKUP_NAME).first.wait_for()
    page.get_by_role("button", name="Evaluate", exact=True).click()
    page.get_by_text("Done in").wait_for(timeout=2 * MINUTE)
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    look_at(page, "Spearman", "Spearman correlation", "Lead of")
    look_at(page, "Pair error", "The dissimilar pair is rated as more similar", "Lead of")
    look_at(page, "Pair by pair", "Human scores and cosine similarities with mean")
    look(page, max(LOOKS))
    assert_report_stands_alone(page, browser, tmp_path)
    assert_pictures_are_whole(page)
    look_at(
        page,
        "Similar and dissimilar",
        "Cosine similarities with mean",
        "Cosine similarities with cls",
    )
    look_at(page, "Shared errors", "Shared errors: triplets", "Shared errors: pairs")
    assert "boat" not in page.url
    page.reload()  # the uploaded table and what was measured are there again
    expect(page.get_by_text(re.compile(r"Result of .* UTC"))).to_be_visible(timeout=MINUTE)
    expect(page.get_by_text(f"{MARKUP_NAME}: {N_PAIRS} scored pairs")).to_be_visible()
