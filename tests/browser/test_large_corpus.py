"""The map of a corpus too large to be drawn: density, zoom, a lasso over all points, clicks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from neuralviz.maps.projection import MOST_WHOLE
from neuralviz.plots.corpus_map import MOST_DRAWN
from neuralviz.store.corpora import CorpusStore
from tests.browser.test_corpus import MEAN, MINUTE, click_point, count_selected, lasso
from tests.support.app import APP, served, settled
from tests.support.large_corpus import keep_large, points_of

N = MOST_WHOLE + 1
# Of all points that are drawn: rows, places. Playwright takes long over so many numbers, not JSON.
DRAWN = """f => JSON.stringify(f._fullData.filter(t => t.customdata).flatMap(
    t => Array.from(t.customdata, (row, i) => [row, t.x[i], t.y[i]])))"""
SIDES = "f => [...f._fullLayout.xaxis.range, ...f._fullLayout.yaxis.range]"
DENSITY = """f => { const t = f._fullData.find(t => t.type === 'heatmap')
    return [t.z.length, Math.max(...t.z.map(row => Math.max(...row))), t.dx] }"""

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def opened(page: Page, tmp_path: Path) -> Iterator[Page]:
    """A page with a large corpus, whose made-up model no other test has loaded."""
    corpus, _ = keep_large(CorpusStore(tmp_path / "corpora"), N)
    with served(APP, tmp_path) as address:
        page.goto(f"{address}/corpus_map?corpus={corpus.id}&map-b=none")
        page.locator(MEAN).locator(".main-svg").first.wait_for(timeout=2 * MINUTE)
        settled(page)
        yield page


def find_drawn(page: Page) -> list[tuple[int, float, float]]:
    return json.loads(page.locator(MEAN).evaluate(DRAWN))


def zoom_in(page: Page) -> None:
    drawn = f"({DRAWN})(document.querySelector(`{MEAN}`))"
    page.evaluate(f"() => {{ window.before = {drawn} }}")
    page.locator(MEAN).hover()
    page.locator(f'{MEAN} [data-title="Zoom in"]').click()
    expect(page.get_by_text("texts in this part").first).to_be_visible()
    page.wait_for_function(f"{drawn} !== window.before")
    settled(page)


def test_a_lasso_selects_what_is_not_drawn_and_zoom_brings_it(opened: Page) -> None:
    page = opened
    expect(
        page.get_by_text(re.compile(rf"Points: {MOST_DRAWN:,} of the [\d,]+ texts in this part"))
    ).to_be_visible()
    drawn = find_drawn(page)
    assert len(drawn) == MOST_DRAWN
    points = points_of(N)
    rows, *places = np.array(drawn).T
    np.testing.assert_allclose(np.array(places).T, points[rows.astype(int)], rtol=1e-6)
    bins, densest, wide = page.locator(MEAN).evaluate(DENSITY)
    assert (bins > 32, densest) == (True, 255)

    shares = np.array(lasso(page, MEAN, (0.3, 0.6), (0.1, 0.9)))
    x0, x1, y0, y1 = page.locator(MEAN).evaluate(SIDES)
    (left, top), _, (right, bottom), _ = [x0, y1] + shares * [x1 - x0, y0 - y1]
    within = (points[:, 0] >= left) & (points[:, 0] <= right)
    within &= (points[:, 1] >= bottom) & (points[:, 1] <= top)
    n = count_selected(page)
    assert n > MOST_DRAWN  # more than can be drawn
    assert n == pytest.approx(within.sum(), rel=0.02)  # the lasso moves in whole pixels
    bright = json.loads(
        page.locator(MEAN).evaluate(
            "f => JSON.stringify(f._fullData.filter(t => t.customdata).flatMap(t =>"
            " t.selectedpoints.map(i => t.customdata[i])))"
        )
    )
    assert 0.97 < within[bright].mean() <= 1
    assert len(bright) == pytest.approx(n * MOST_DRAWN / N, rel=0.1)

    sides = page.locator(MEAN).evaluate(SIDES)
    zoom_in(page)
    zoom_in(page)
    nearer = page.locator(MEAN).evaluate(SIDES)
    assert nearer[1] - nearer[0] == pytest.approx((sides[1] - sides[0]) / 4, rel=0.01)
    now = find_drawn(page)
    assert {row for row, *_ in now} - {row for row, *_ in drawn}
    assert all(nearer[0] <= x <= nearer[1] and nearer[2] <= y <= nearer[3] for _, x, y in now)
    assert page.locator(MEAN).evaluate(DENSITY)[2] < wide
    assert count_selected(page) == n
    click_point(page, MEAN, now[3][0])
    expect(page.get_by_text(re.compile(r"topic <b>& \(\d+\)")).first).to_be_visible()
