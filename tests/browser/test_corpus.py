"""The corpus map as a person meets it: upload, project, search, lasso, place, export."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect
from pyarrow import parquet

from neuralviz.plots.corpus_map import (
    FADED,
    PageMap,
    PointColour,
    colour_by_code,
    colour_by_number,
    draw_searchable,
)
from neuralviz.plots.report import About, page_html
from tests.support.app import CROWDED_NAMES, LOOKS, drag, look, looks, problems, settled
from tests.support.downloads import (
    assert_pictures_are_whole,
    find_row,
    open_menu,
    opened_offline,
    save,
)

MINUTE = 60_000
MEAN, NEURAL = "[aria-label='Map by mean']", "[aria-label='Map by neural, fast, 5 epochs']"
PLACES = ["harbour", "forest", "kitchen", "station"]
KINDS = ("A quiet", "The old", "My own", "That noisy", "Our new")
ENDINGS = (
    "wakes before sunrise.",
    "has a broken window.",
    "smells of rain today.",
    "was painted green last year.",
    "is full of people on Sundays.",
    "kept us waiting for hours.",
)
TEXTS = [f"{KINDS[i % 5]} {place} {ending}" for i, ending in enumerate(ENDINGS) for place in PLACES]

pytestmark = pytest.mark.browser


def opened(page: Page, address: str, query: str = "") -> Page:
    page.goto(f"{address}/corpus_map{query}")
    page.locator(MEAN).locator(".main-svg").first.wait_for(timeout=2 * MINUTE)
    return page


def traces(page: Page, figure: str, what: str) -> list:
    """What the expression ``what`` of a trace gives, of all traces with points of texts."""
    return page.locator(figure).evaluate(
        f"f => f._fullData.map((t, i) => [t, f.data[i]]).filter(([t]) => t.customdata)"
        f".flatMap(([t, d]) => Array.from({what}))"
    )


def point(page: Page, figure: str, row: int) -> tuple[float, float]:
    """Where the point of a text is on the screen."""
    node = page.locator(figure)
    node.scroll_into_view_if_needed()
    return tuple(
        node.evaluate(
            """(f, row) => {
                const box = f.getBoundingClientRect(), {xaxis, yaxis} = f._fullLayout
                for (const t of f._fullData.filter(t => t.customdata)) {
                    const at = Array.from(t.customdata).indexOf(row)
                    if (at >= 0) return [
                        box.left + xaxis._offset + xaxis.d2p(t.x[at]),
                        box.top + yaxis._offset + yaxis.d2p(t.y[at])]
                }
            }""",
            row,
        )
    )


def click_point(page: Page, figure: str, row: int) -> None:
    x, y = point(page, figure, row)
    page.mouse.move(x - 4, y)
    page.mouse.move(x, y)
    page.locator(figure).locator(".hoverlayer .hovertext").first.wait_for()
    page.mouse.click(x, y)
    settled(page)


def lasso(page: Page, figure: str, across: tuple[float, float], up: tuple[float, float]) -> list:
    """Draw around a part of a map; the corners, as shares of its width and height."""
    area = page.locator(figure).locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    corners = [(across[0], up[0]), (across[1], up[0]), (across[1], up[1]), (across[0], up[1])]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in [*places[1:], places[0]]:
        page.mouse.move(*place, steps=2)
    page.mouse.up()
    settled(page)
    return corners


def count_selected(page: Page) -> int:
    message = page.get_by_text(re.compile(r"[\d,]+ texts selected")).first
    message.wait_for(timeout=MINUTE)
    return int(re.search(r"([\d,]+) texts", message.inner_text())[1].replace(",", ""))


def search(page: Page, text: str) -> None:
    field = page.get_by_role("textbox", name="Search")
    field.fill(text)
    field.press("Enter")
    settled(page)


def download(page: Page, row: str, kind: str) -> io.BytesIO:
    with open_menu(page) as menu:
        button = find_row(menu, row).get_by_role("button", name=kind, exact=True)
        return io.BytesIO(save(page, button)[1])


@pytest.mark.slow
def test_a_lasso_selects_on_both_maps(
    page: Page, browser: Browser, address: str, tmp_path: Path
) -> None:
    opened(page, address)
    page.locator(NEURAL).locator(".main-svg").first.wait_for(timeout=MINUTE)
    assert {how: found for how in looks(page) if (found := problems(page))} == {}
    look(page, max(LOOKS))
    assert page.locator(MEAN).evaluate("f => f.clientWidth") >= 560
    for figure in (MEAN, NEURAL):
        page.locator(figure).locator(".main-svg").first.wait_for(timeout=MINUTE)
        assert sorted(traces(page, figure, "t.customdata")) == list(range(480))
    assert_pictures_are_whole(page)
    with open_menu(page) as menu:
        _, content = save(page, menu.get_by_role("button", name="This page (HTML)"))
    with opened_offline(browser, content, tmp_path) as copy:
        copy.locator("#map-1 .main-svg").first.wait_for()
        copy.get_by_label("Search").fill("moon")
        expect(copy.locator("#found")).to_have_text(re.compile(r"\d+ texts"))
    lasso(page, MEAN, (0.02, 0.5), (0.02, 0.98))
    n = count_selected(page)
    assert 30 < n < 450
    chosen = [
        sorted(traces(page, figure, "(t.selectedpoints ?? []).map(i => t.customdata[i])"))
        for figure in (MEAN, NEURAL)
    ]
    assert chosen[0] == chosen[1]
    assert len(chosen[0]) == n
    assert len(pd.read_csv(download(page, "Selected texts", "CSV"))) == n
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("Nothing is selected")).to_be_visible()
    settled(page)
    assert traces(page, NEURAL, "d.selectedpoints ?? []") == []


NAMED = "f => f.layout.annotations.filter(a => a.name && a.visible).map(a => a.text)"
RANGES = "f => [...f._fullLayout.xaxis.range, ...f._fullLayout.yaxis.range]"


def check_zoom_and_names(page: Page) -> None:
    """A zoom stays while other names appear, a button goes back, a click renames a cluster."""
    figure = page.locator(MEAN)
    home, names = figure.evaluate(RANGES), figure.evaluate(NAMED)
    figure.hover()
    page.locator(f'{MEAN} [data-title="Zoom in"]').click()
    settled(page)
    assert figure.evaluate(NAMED) != names
    assert problems(page) == []
    left, right, *_ = figure.evaluate(RANGES)
    assert right - left == pytest.approx((home[1] - home[0]) / 2, rel=0.01)
    figure.hover()
    page.locator(f'{MEAN} [data-title="Reset axes"]').click()
    settled(page)
    assert figure.evaluate(NAMED) == names
    assert figure.evaluate(RANGES) == pytest.approx(home, rel=0.05)
    figure.locator(".annotation-text-g").first.click(force=True)
    box = page.get_by_role("dialog").get_by_role("textbox")
    name = box.input_value()
    box.fill("Rails <b>&")
    box.press("Enter")
    renamed = "Rails &lt;b&gt;&amp;"
    page.wait_for_function(
        f"({NAMED})(document.querySelector(`{MEAN}`)).join().includes('{renamed}')"
    )
    settled(page)
    figure.locator(".annotation-text-g").first.click(force=True)
    box.fill("")  # other tests share the map
    box.press("Enter")
    page.wait_for_function(f"({NAMED})(document.querySelector(`{MEAN}`)).join().includes('{name}')")
    settled(page)


@pytest.mark.slow
def test_a_text_is_read_and_a_sentence_is_placed(page: Page, address: str) -> None:
    opened(page, address, "?map-b=none")
    table = pd.read_csv(Path(__file__).parents[2] / "sample_data" / "topics.csv", dtype=str)
    for row in (3, 258):  # no other point lies on them
        click_point(page, MEAN, row)
        expect(page.get_by_text(table["text"][row], exact=True).first).to_be_visible()
        expect(page.get_by_text(f"ID {table['id'][row]}")).to_be_visible()
    expect(page.get_by_text("Neighbours by mean")).to_be_visible()
    check_zoom_and_names(page)
    page.get_by_role("radio", name="By meaning").click()
    settled(page)
    search(page, "Tonight the moons of Jupiter can be seen. <b>5 %")
    page.get_by_text("By mean", exact=True).first.wait_for(timeout=3 * MINUTE)
    stars = "f => f._fullData.filter(t => t.marker?.symbol === 'star').map(t => [t.x[0], t.y[0]])"
    page.wait_for_function(f'({stars})(document.querySelector("{MEAN}")).length === 1')
    ((x, y),) = page.locator(MEAN).evaluate(stars)
    near = page.locator(MEAN).evaluate(
        "f => f._fullData.filter(t => t.customdata).flatMap(t => Array.from(t.x,"
        " (x, i) => [x, t.y[i], t.name]))"
    )
    closest = sorted(near, key=lambda one: (one[0] - x) ** 2 + (one[1] - y) ** 2)[:5]
    assert sum("astronomy" in one[2] for one in closest) >= 3
    page.wait_for_timeout(300)
    assert page.evaluate(CROWDED_NAMES) == []  # the sentence's among them
    page.keyboard.press("Escape")  # leaves the field
    page.locator("h1").click()
    page.keyboard.press("s")
    slide = page.locator(".st-key-slide-maps")
    lines = slide.get_by_text("Lines lead from the sentence (star) to its nearest texts (rings).")
    expect(lines).to_be_visible()
    expect(slide).to_have_css("position", "fixed")


@pytest.mark.slow
def test_an_upload_becomes_a_map_that_is_kept(page: Page, address: str, tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    table = pd.DataFrame({"=place": PLACES * 6, "text": TEXTS, "x": "=1+1", "mark": range(24)})
    table.to_csv(path, index=False)
    page.goto(f"{address}/corpus_map?map-b=none")
    page.get_by_role("combobox", name="Corpus").fill("Example")  # a first try has left others
    page.get_by_role("option", name=re.compile("Example")).click()
    page.locator(MEAN).locator(".main-svg").first.wait_for(timeout=2 * MINUTE)
    page.get_by_role("button", name="UMAP").click()
    page.get_by_role("combobox", name="Projection").click()
    page.get_by_role("option", name="PCA").click()
    page.get_by_role("button", name="PCA").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add a corpus").click()
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_text("24 texts").first.wait_for(timeout=MINUTE)
    page.get_by_role("textbox", name="Name").fill("Places <i>& more")
    page.get_by_role("button", name="Save and make a map").click()
    expect(page.get_by_role("combobox", name="Corpus")).to_have_value(
        "Places <i>& more · 24 texts", timeout=MINUTE
    )
    page.wait_for_function(
        f'() => document.querySelector("{MEAN}")?._fullData'
        "?.reduce((n, t) => n + (t.customdata?.length ?? 0), 0) === 24",
        timeout=3 * MINUTE,
    )
    table = parquet.read_table(download(page, "mean", "Embeddings (Parquet)"))
    assert table["text"].to_pylist() == TEXTS
    assert len(table["vector"][0]) == 384
    assert {"id", "x", "y", "cluster", "x (label)", "=place"} <= set(table.column_names)

    page.keyboard.press("Escape")
    own = tmp_path / "own.parquet"  # with vectors of its own
    pd.DataFrame({"text": TEXTS, "by_me": list(np.eye(len(TEXTS)))}).to_parquet(own)
    page.get_by_role("button", name="Add a corpus").click()
    page.locator("input[type=file]").set_input_files(own)
    expect(page.get_by_role("combobox", name="Embeddings")).to_have_value(
        "Column “by_me” of own.parquet"
    )
    expect(page.get_by_text("Skipped the lists")).to_have_count(0)  # they are offered
    page.get_by_role("button", name="Save and make a map").click()
    page.locator("[aria-label='Map by file: own.parquet'] .main-svg").first.wait_for()
    expect(page).to_have_url(re.compile("map-a=file"))


def test_names_of_tight_clusters_lie_neither_on_points_nor_on_each_other(page: Page) -> None:
    draw = np.random.default_rng(0)
    centres = draw.uniform(-1, 1, size=(27, 2)) * [9, 6]
    points = np.repeat(centres, 11, axis=0) + 0.15 * draw.normal(size=(297, 2))
    names = [(f"a problem {i}", centre) for i, centre in enumerate(centres)]
    labels = np.repeat(np.arange(27), 11)
    by_cluster = PointColour("cluster", tuple(map(str, range(27))), labels, are_clusters=True)
    maps = [PageMap(f"map {place}", points, {"cluster": by_cluster}, names) for place in range(2)]
    page.goto("about:blank")
    page.set_content(page_html(About("Tickets", {}), draw_searchable(maps, ["a text"] * 297)))
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length === 2")
    for width, fewest in ((1440, 24), (390, 12)):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        assert page.evaluate(CROWDED_NAMES) == []
        assert fewest <= page.locator("#map-0 .annotation-text").count() <= 27
    far = page.locator("#map-0").evaluate(NAMED)
    drag(page, page.locator("#map-0"), (0.1, 0.1), (0.5, 0.6))
    page.wait_for_function("document.getElementById('map-0')._fullLayout.xaxis.autorange === false")
    page.wait_for_timeout(300)
    assert page.evaluate(CROWDED_NAMES) == []
    assert set(page.locator("#map-0").evaluate(NAMED)) - set(far)  # closer up there is more room


def test_a_page_of_its_own_searches_and_colours_all_maps(page: Page) -> None:
    texts = [f"text {i} about {'rain' if i % 3 else 'SNOW <b>&'}" for i in range(30)]
    colours = {
        "<b>kind": colour_by_code("kind", np.arange(30) % 3, ["a", "b", "</script>"]),
        "number": colour_by_number("number", range(30)),
    }
    draw = np.random.default_rng(0)
    maps = [PageMap(f"map {d}", draw.normal(size=(30, d)), colours) for d in (2, 3)]
    page.goto("about:blank")
    page.set_content(page_html(About("A corpus", {"n": "30"}), draw_searchable(maps, texts)))
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length === 2")
    data = "place => document.getElementById(`map-${place}`).data"
    drag(page, page.locator("#map-0"), (0.2, 0.2), (0.5, 0.5))
    zoomed = "document.getElementById('map-0')._fullLayout.xaxis.autorange === false"
    page.wait_for_function(zoomed)
    page.get_by_label("Search").fill("snow <b>")
    expect(page.get_by_text("10 texts", exact=True)).to_be_visible()
    flat = page.evaluate(f"({data})(0).map(t => t.selectedpoints.map(i => t.text[i]))")
    assert sum(map(len, flat)) == 10
    assert all("SNOW &lt;b&gt;&amp;" in text for found in flat for text in found)
    in_space = page.evaluate(f"({data})(1).map(t => [t.marker.opacity, t.x.length])")
    assert sum(n for opacity, n in in_space if opacity == FADED) == 20
    page.get_by_label("Colour by").first.select_option("number")
    assert sorted(page.evaluate(f"({data})(0)[0].marker.color")) == list(range(30))
    page.get_by_label("Search").fill("")
    assert page.evaluate(f"({data})(0).every(t => t.selectedpoints === undefined)")
    assert page.evaluate(zoomed)
