"""Figures keep node, zoom, hover and legend while their data move; points can be selected."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from pyarrow import parquet

from tests.browser.conftest import leave
from tests.support.app import drag, settled
from tests.support.downloads import (
    assert_pictures_are_whole,
    find_row,
    open_menu,
    opened_offline,
    save,
)

DRAWN = ".neuralviz-figure:has(.main-svg)"
LINE = "[aria-label='Waves on a line']"
# Heights of the bars in a picture, px.
BARS = """svg => {
    const picture = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement
    document.body.append(picture)
    const bars = [...picture.querySelectorAll(".bars .point")]
    const heights = bars.map(bar => bar.getBoundingClientRect().height)
    picture.remove()
    return heights
}"""


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("app")
    here = Path(__file__)
    shutil.copytree(here.parents[2] / ".streamlit", folder / ".streamlit")
    return serve(Path(shutil.copy(here.with_name("live_figure_app.py"), folder)))


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_open(tab: Page) -> Iterator[None]:
    yield
    leave(tab)


def wait_for_figures(page: Page, n: int) -> None:
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === {n}")
    settled(page)


@pytest.fixture
def figures(watched: Page, address: str) -> Page:
    """The app's first page, opened once for the tests in a row that look at it."""
    if watched.url != f"{address}/":
        watched.goto(address)
        wait_for_figures(watched, 3)
        watched.evaluate(f'window.line = document.querySelector("{LINE}")')
    return watched


def box(page: Page, selector: str) -> tuple[float, float, float, float]:
    area = page.locator(selector).first.bounding_box()
    return area["x"], area["y"], area["width"], area["height"]


def test_zoom_legend_hover_and_node_stay_while_the_data_move(figures: Page) -> None:
    drag(figures, figures.locator(LINE), (0.25, 0.5), (0.5, 0.99))
    figures.wait_for_function("window.line.layout.xaxis.range[0] > 3")
    ranges = "[window.line.layout.xaxis.range, window.line.layout.yaxis.range]"
    zoomed = figures.evaluate(ranges)
    figures.locator(f"{LINE} .legendtoggle").nth(1).click()
    figures.wait_for_function("window.line._fullData[1].visible === 'legendonly'")
    before = figures.evaluate("Array.from(window.line._fullData[0].y)")
    figures.mouse.move(*place(figures, 11, 11, LINE), steps=3)
    label = figures.locator(f"{LINE} .hoverlayer .hovertext")
    label.first.wait_for()

    tick = figures.evaluate("window.line.layout.meta.tick")
    figures.wait_for_function(f"window.line.layout.meta.tick >= {tick + 3}")
    assert label.count() > 0

    assert figures.evaluate(ranges) == zoomed
    assert figures.evaluate("window.line._fullData[1].visible") == "legendonly"
    assert figures.evaluate("Array.from(window.line._fullData[0].y)") != before
    assert figures.evaluate(f'window.line === document.querySelector("{LINE}")')


def test_a_click_on_a_cell_comes_back(figures: Page) -> None:
    x, y, width, height = box(figures, "[aria-label='heat'] .nsewdrag")
    figures.mouse.click(x + 0.625 * width, y + height / 6)
    cell = "'x': 'c', 'y': 'r', 'z': 4, 'curve': 0, 'point': [2, 2]"
    figures.get_by_text("'customdata': '2-2'").filter(has_text=cell).wait_for()


def test_pictures_numbers_and_the_page_can_be_taken_away(
    figures: Page, browser: Browser, tmp_path: Path
) -> None:
    with open_menu(figures) as menu:
        row = find_row(menu, "Two words & more")
        files = dict(save(figures, row.get_by_role("button", name=kind)) for kind in ("SVG", "CSV"))
        files |= [save(figures, row.get_by_role("button", name="Parquet"))]
        name, content = save(figures, menu.get_by_role("button", name="This page (HTML)"))
        menu.get_by_role("button", name="Copy link").click()
        menu.get_by_text("Copied.").wait_for()
    assert b"counted: by hand" in files["two-bars.svg"]
    heights = figures.evaluate(BARS, files["two-bars.svg"].decode())
    assert heights[1] / heights[0] == pytest.approx(2, rel=1e-2)
    assert files["two-bars.csv"] == b'\xef\xbb\xbf"word","n"\n"one",1\n"two",2\n'
    metadata = parquet.read_schema(io.BytesIO(files["two-bars.parquet"])).metadata
    assert (metadata[b"title"], metadata[b"counted"]) == (b"Two words & more", b"by hand")
    assert name == "figures.html"
    with opened_offline(browser, content, tmp_path) as page:
        page.locator(".js-plotly-plot .main-svg").last.wait_for()
        titles = page.evaluate(
            "[...document.querySelectorAll('.js-plotly-plot')].map(f => f.layout.title?.text ?? '')"
        )
        assert titles == ["Waves", "", ""]
        assert page.locator(".headline").inner_text() == "Two is more than one & <b>."
        for order in (["-3.5", "2", "10"], ["10", "2", "-3.5"]):
            page.get_by_role("columnheader", name="n", exact=True).click()
            cells = page.locator("td:last-child").all_inner_texts()
            assert [cell.replace("−", "-") for cell in cells] == order


@pytest.mark.slow
def test_what_is_hard_to_draw_leaves_whole(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/?pictures")
    wait_for_figures(page, 5)
    assert len(assert_pictures_are_whole(page, tmp_path)) == 15
    for label in ("a label of two", "words, of 3"):
        assert label in (tmp_path / "map-by-labels.svg").read_text()


ONE, OTHER = "[aria-label='map one']", "[aria-label='map other']"
# A point of the grid, in px of the page.
PLACE = """([selector, x, y]) => {
    const node = document.querySelector(selector), {_size, xaxis, yaxis} = node._fullLayout
    const box = node.getBoundingClientRect()
    return [box.x + _size.l + xaxis.d2p(x), box.y + _size.t + yaxis.d2p(y)]
}"""


@pytest.fixture
def maps(watched: Page, address: str) -> Page:
    """Two maps of a grid of 20 × 20 points with the rows 1000, 1001, … line by line."""
    if watched.url != f"{address}/?maps=2":
        watched.goto(f"{address}/?maps=2")
    wait_for_figures(watched, 2)
    return watched


def place(page: Page, x: float, y: float, selector: str = ONE) -> tuple[float, float]:
    return tuple(page.evaluate(PLACE, [selector, x, y]))


def test_a_lasso_gives_exactly_the_points_within_and_both_maps_show_them(maps: Page) -> None:
    corners = [(3.5, 2.5), (15, 2.5), (3.5, 14)]  # no point lies on its lines
    maps.mouse.move(*place(maps, *corners[0]))
    maps.mouse.down()
    maps.mouse.move(*place(maps, *corners[1]), steps=8)
    maps.evaluate(f"document.querySelector(\"{OTHER}\").send('hover', 77)")
    maps.get_by_text("hovered 77", exact=True).wait_for()  # a run of the page does not end it
    for corner in (corners[2], corners[0]):
        maps.mouse.move(*place(maps, *corner), steps=8)
    maps.mouse.up()
    inside = [
        1000 + 20 * y + x
        for y in range(20)
        for x in range(20)
        if x > 3.5 and y > 2.5 and (x - 3.5) + (y - 2.5) < 11.5
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


def test_the_row_that_is_pointed_at_or_clicked_comes_back_and_nothing_is_redrawn(
    maps: Page,
) -> None:
    maps.evaluate(
        f"""window.draws = 0
        document.querySelector("{ONE}").on("plotly_afterplot", () => {{ window.draws += 1 }})"""
    )
    for x, y in ((4, 5), (12, 9)):
        maps.mouse.move(*place(maps, x - 0.5, y))
        maps.mouse.move(*place(maps, x, y), steps=3)
        maps.get_by_text(f"hovered {1000 + 20 * y + x}", exact=True).wait_for()
    assert maps.evaluate("window.draws") == 0
    maps.mouse.click(*place(maps, 12, 9))
    maps.get_by_text("clicked 1192", exact=True).wait_for()


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


def test_a_click_on_a_point_in_three_dimensions_comes_back(page: Page, address: str) -> None:
    page.goto(f"{address}/?maps=3")
    wait_for_figures(page, 1)
    x, y, width, height = box(page, f"{ONE} canvas")
    page.mouse.move(x + width / 2, y + height / 2, steps=3)
    page.get_by_text("hovered 1000", exact=True).wait_for()
    page.mouse.click(x + width / 2, y + height / 2, delay=300)
    page.get_by_text("clicked 1000", exact=True).wait_for()
