"""Figures keep node, zoom, hover and legend while their data move; they can be taken away."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Download, Page

DRAWN = ".neuralviz-figure:has(.main-svg)"
LINE = "[aria-label='Waves on a line']"


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("app")
    here = Path(__file__)
    shutil.copytree(here.parents[2] / ".streamlit", folder / ".streamlit")
    return serve(Path(shutil.copy(here.with_name("live_figure_app.py"), folder)))


@pytest.fixture
def figures(page: Page, address: str) -> Page:
    page.goto(address)
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 3")
    page.evaluate(f'window.line = document.querySelector("{LINE}")')
    return page


def wait_for_updates(page: Page, n: int) -> None:
    tick = page.evaluate("window.line.layout.meta.tick")
    page.wait_for_function(f"window.line.layout.meta.tick >= {tick + n}")


def box(page: Page, selector: str) -> tuple[float, float, float, float]:
    area = page.locator(selector).first.bounding_box()
    return area["x"], area["y"], area["width"], area["height"]


def test_zoom_legend_and_node_stay_while_the_data_move(figures: Page) -> None:
    x, y, width, height = box(figures, f"{LINE} .nsewdrag")
    figures.mouse.move(x + 0.25 * width, y + 0.25 * height)
    figures.mouse.down()
    figures.mouse.move(x + 0.5 * width, y + 0.75 * height, steps=5)
    figures.mouse.up()
    figures.wait_for_function("window.line.layout.xaxis.range[0] > 3")
    zoomed = figures.evaluate("[window.line.layout.xaxis.range, window.line.layout.yaxis.range]")
    figures.locator(f"{LINE} .legendtoggle").nth(1).click()
    figures.wait_for_function("window.line._fullData[1].visible === 'legendonly'")
    before = figures.evaluate("Array.from(window.line._fullData[0].y)")

    wait_for_updates(figures, 6)

    after = "[window.line.layout.xaxis.range, window.line.layout.yaxis.range]"
    assert figures.evaluate(after) == zoomed
    assert figures.evaluate("window.line._fullData[1].visible") == "legendonly"
    assert figures.evaluate("Array.from(window.line._fullData[0].y)") != before
    assert figures.evaluate(f'window.line === document.querySelector("{LINE}")')


def test_hover_stays_while_the_data_move(figures: Page) -> None:
    x, y, width, height = box(figures, f"{LINE} .nsewdrag")
    figures.mouse.move(x + width / 2, y + height / 2, steps=3)
    label = figures.locator(f"{LINE} .hoverlayer .hovertext")
    label.first.wait_for()
    seen = []
    for _ in range(6):
        wait_for_updates(figures, 1)
        seen.append(label.count() > 0)
    assert all(seen)


def test_a_click_on_a_cell_comes_back(figures: Page) -> None:
    x, y, width, height = box(figures, "[aria-label='heat'] .nsewdrag")
    figures.mouse.click(x + 0.625 * width, y + height / 6)
    figures.get_by_text("'customdata': '2-2'").wait_for()
    said = figures.get_by_text("clicked {").inner_text()
    assert "'x': 'c', 'y': 'r', 'z': 4, 'curve': 0, 'point': [2, 2]" in said


def test_the_width_follows_the_page_and_the_height_stays(figures: Page) -> None:
    drawn = f"{LINE} .main-svg"
    wide = box(figures, drawn)
    figures.set_viewport_size({"width": 390, "height": 800})
    figures.wait_for_function(
        "window.line.querySelector('.main-svg').getBoundingClientRect().width < 390"
    )
    narrow = box(figures, drawn)
    assert (wide[3], narrow[3]) == (360, 360)
    assert figures.evaluate("document.documentElement.scrollWidth") <= 390


def test_plotly_is_loaded_once(page: Page, address: str) -> None:
    loaded = []
    page.on("request", lambda r: loaded.append(r.url) if "plotly.min.js" in r.url else None)
    page.goto(address)
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 3")
    assert len(loaded) == 1


def test_pictures_and_numbers_can_be_taken_away(figures: Page) -> None:
    def content(download: Download) -> bytes:
        return Path(download.path()).read_bytes()

    chart = figures.locator(DRAWN).last
    for title, name, start in [
        ("Download as PNG", "two bars.png", b"\x89PNG"),
        ("Download as SVG", "two bars.svg", b"<svg"),
    ]:
        chart.hover()
        with figures.expect_download() as picture:
            chart.locator(f"[data-title='{title}']").click()
        assert picture.value.suggested_filename == name
        assert content(picture.value).startswith(start)

    figures.get_by_role("button", name="Download", exact=True).click()
    files = {}
    for label in ("Figure (HTML)", "Numbers (CSV)", "Numbers (parquet)"):
        with figures.expect_download() as file:
            figures.get_by_role("button", name=label).click()
        files[file.value.suggested_filename] = content(file.value)
    assert b"Plotly.newPlot" in files["two bars.html"]
    assert files["two bars.csv"] == b"word,n\none,1\ntwo,2\n"
    assert pd.read_parquet(io.BytesIO(files["two bars.parquet"]))["n"].tolist() == [1, 2]
