"""Figures keep node, zoom, hover and legend while their data move; points can be selected."""

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
    assert chart.locator("[data-title*='loud']").count() == 0  # nothing is sent anywhere

    figures.get_by_role("button", name="Download", exact=True).click()
    files = {}
    for label in ("Figure (HTML)", "Numbers (CSV)", "Numbers (Parquet)"):
        with figures.expect_download() as file:
            figures.get_by_role("button", name=label).click()
        files[file.value.suggested_filename] = content(file.value)
    assert b"Plotly.newPlot" in files["two bars.html"]
    assert files["two bars.csv"] == b"word,n\none,1\ntwo,2\n"
    assert pd.read_parquet(io.BytesIO(files["two bars.parquet"]))["n"].tolist() == [1, 2]


ONE, OTHER = "[aria-label='map one']", "[aria-label='map other']"
# A point of the grid, in px of the page.
PLACE = """([selector, x, y]) => {
    const node = document.querySelector(selector), {_size, xaxis, yaxis} = node._fullLayout
    const box = node.getBoundingClientRect()
    return [box.x + _size.l + xaxis.d2p(x), box.y + _size.t + yaxis.d2p(y)]
}"""


@pytest.fixture
def maps(page: Page, address: str) -> Page:
    """Two maps of a grid of 20 × 20 points with the rows 1000, 1001, … line by line."""
    page.goto(f"{address}/?maps=2")
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 2")
    page.wait_for_timeout(500)  # the legend's room is taken in a second draw
    return page


def place(page: Page, x: float, y: float, selector: str = ONE) -> tuple[float, float]:
    return tuple(page.evaluate(PLACE, [selector, x, y]))


def lasso(page: Page, corners: list[tuple[float, float]]) -> None:
    """Draw around the corners with the mouse, in coordinates of the grid."""
    page.mouse.move(*place(page, *corners[0]))
    page.mouse.down()
    for corner in [*corners[1:], corners[0]]:
        page.mouse.move(*place(page, *corner), steps=8)
    page.mouse.up()


def count_draws(page: Page) -> None:
    page.evaluate(
        f"""window.draws = 0
        document.querySelector("{ONE}").on("plotly_afterplot", () => {{ window.draws += 1 }})"""
    )


def test_a_lasso_gives_exactly_the_points_within_and_both_maps_show_them(maps: Page) -> None:
    lasso(maps, [(3.5, 2.5), (15.5, 2.5), (3.5, 14.5)])
    inside = [
        1000 + 20 * y + x
        for y in range(20)
        for x in range(20)
        if x > 3.5 and y > 2.5 and (x - 3.5) + (y - 2.5) < 12
    ]
    maps.get_by_text(f"selected {inside}", exact=True).wait_for()
    shown = """selector => document.querySelector(selector)._fullData.flatMap(trace =>
        (trace.selectedpoints ?? []).map(point => trace.customdata[point])).sort()"""
    for selector in (ONE, OTHER):
        maps.wait_for_function(f"({shown})(`{selector}`).length === {len(inside)}")
        assert maps.evaluate(shown, selector) == inside
    maps.wait_for_timeout(500)  # both clicks of a double click have to find the page at rest
    maps.mouse.dblclick(*place(maps, 17.5, 17.5))
    maps.get_by_text("selected []", exact=True).wait_for()


def test_the_row_on_which_the_pointer_rests_comes_back_and_nothing_is_redrawn(maps: Page) -> None:
    count_draws(maps)
    for x, y in ((4, 5), (12, 9)):
        maps.mouse.move(*place(maps, x - 0.5, y))
        maps.mouse.move(*place(maps, x, y), steps=3)
        maps.get_by_text(f"hovered {1000 + 20 * y + x}", exact=True).wait_for()
    assert maps.evaluate("window.draws") == 0


def test_a_lasso_is_not_ended_by_a_run_of_the_page(maps: Page) -> None:
    corners = [(3.5, 2.5), (6.5, 2.5), (6.5, 4.5), (3.5, 4.5)]
    maps.mouse.move(*place(maps, *corners[0]))
    maps.mouse.down()
    maps.mouse.move(*place(maps, *corners[1]), steps=8)
    maps.evaluate(f"document.querySelector(\"{OTHER}\").send('hover', 77)")
    maps.get_by_text("hovered 77", exact=True).wait_for()
    for corner in corners[2:]:
        maps.mouse.move(*place(maps, *corner), steps=8)
    maps.mouse.up()
    maps.get_by_text("selected [1064, 1065, 1066, 1084, 1085, 1086]", exact=True).wait_for()


def test_a_click_on_a_webgl_point_comes_back(maps: Page, address: str) -> None:
    maps.mouse.move(*place(maps, 7, 3), steps=3)
    maps.wait_for_timeout(500)  # a click goes to the point that is hovered
    maps.mouse.click(*place(maps, 7, 3))
    maps.get_by_text("clicked 1067", exact=True).wait_for()
    maps.goto(f"{address}/?maps=3")
    maps.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 1")
    maps.wait_for_timeout(500)
    x, y, width, height = box(maps, f"{ONE} canvas")
    maps.mouse.move(x + width / 2, y + height / 2, steps=3)
    maps.wait_for_timeout(1000)
    maps.mouse.click(x + width / 2, y + height / 2, delay=300)
    maps.get_by_text("clicked 1000", exact=True).wait_for()


def test_the_legend_stands_beside_the_points_where_there_is_room(maps: Page) -> None:
    legend = f"document.querySelector(`{ONE}`)._fullLayout.legend.orientation"
    assert maps.evaluate(legend) == "h"
    maps.set_viewport_size({"width": 2000, "height": 900})
    maps.wait_for_function(f"{legend} === 'v'")
    maps.set_viewport_size({"width": 390, "height": 800})
    maps.wait_for_function(f"{legend} === 'h'")


def test_maps_that_leave_give_their_webgl_contexts_back(maps: Page) -> None:
    contexts = """window.contexts = [...document.querySelectorAll(".neuralviz-figure canvas")]
        .map(canvas => canvas.getContext("webgl")).filter(context => context)"""
    assert maps.evaluate(f"({contexts}).length") >= 2
    assert not maps.evaluate("window.contexts.some(context => context.isContextLost())")
    maps.get_by_text("Away").click()
    maps.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 0")
    maps.wait_for_function("window.contexts.every(context => context.isContextLost())")
    maps.get_by_text("Away").click()
    maps.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 2")
