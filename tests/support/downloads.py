"""What people take away from a page, opened and looked at."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.app import CLIPPED_OR_OVERLAPPING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

WIDTH, HEIGHT = 1920, 1080
# What is written in a picture: its words, what is cut by a side, what lies on each other.
LOOK_AT = """svg => {
    const holder = document.body.appendChild(document.createElement('div'))
    holder.style.cssText = 'position: fixed; left: 0; top: 0; width: 1920px; z-index: -1'
    holder.innerHTML = svg
    const {width, height} = holder.firstElementChild.getBoundingClientRect()
    const texts = [...holder.querySelectorAll('text')].filter(text => {
        const {a, b} = text.getScreenCTM()
        return text.textContent.trim() && Math.abs(a * b) < 0.01
    }).map(text => ({words: text.textContent, at: text.getBoundingClientRect()}))
        .filter(({at}) => at.width)
    const cut = texts.filter(({at: {left, top, right, bottom}}) =>
        left < 0 || top < 0 || right > width || bottom > height).map(({words}) => `cut: ${words}`)
    const overlapping = texts.flatMap(({words, at}, i) => texts.slice(i + 1)
        .filter(({at: b}) => Math.min(at.right, b.right) - Math.max(at.left, b.left) > 4
            && Math.min(at.bottom, b.bottom) - Math.max(at.top, b.top) > 7)
        .map(other => `on each other: ${words} | ${other.words}`))
    const count = name => holder.querySelectorAll(name).length
    const marks = {bars: count('.bars .point'), dots: count('.scatterlayer .point')}
    holder.remove()
    return {size: [width, height], problems: [...cut, ...overlapping],
        words: texts.map(({words}) => words).join(' | '), marks}
}"""
# The marks of a figure on the page, from its data.
MARKS = """node => {
    const shown = node._fullData.filter(trace => trace.visible === true)
    const count = traces => traces.reduce((n, {x, y}) => n + Math.min(x.length, y.length), 0)
    return {bars: count(shown.filter(({type}) => type === 'bar')),
        dots: count(shown.filter(({type, mode}) => /^scatter(gl)?$/.test(type)
            && /markers/.test(mode)))}
}"""


@contextmanager
def open_menu(page: Page) -> Iterator[Locator]:
    """The menu of downloads, once it lists what the page shows."""
    page.get_by_role("button", name="Download", exact=True).click()
    menu = page.locator("[data-testid=stPopoverBody]:has(.st-key-download-row-page)")
    menu.get_by_role("button", name="Copy link").wait_for()
    page.wait_for_timeout(1_000)
    yield menu
    page.keyboard.press("Escape")
    menu.wait_for(state="hidden")


def save(page: Page, button: Locator) -> tuple[str, bytes]:
    """Press a button of the menu; gives the file's name and content."""
    with page.expect_download(timeout=120_000) as waiting:
        button.click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def find_row(menu: Locator, title: str) -> Locator:
    return menu.locator("[class*=st-key-download-row-]").filter(has_text=title).first


def assert_pictures_are_whole(page: Page, folder: Path | None = None) -> list[str]:
    """Save every figure of the page; gives the names of the files, kept in ``folder``."""
    names = []
    with open_menu(page) as menu:
        rows = menu.locator("[class*=st-key-download-row-]:has(button:text-is('SVG'))")
        n_figures = page.locator("[data-testid=stMain] .neuralviz-figure").count()
        assert rows.count() == n_figures
        for place in range(n_figures):
            row = rows.nth(place)
            key = re.search(r"st-key-download-row-(\S+)", row.get_attribute("class"))[1]
            for dark in (False, True):
                menu.get_by_label("Dark pictures").set_checked(dark)
                name, svg = save(page, row.get_by_role("button", name="SVG"))
                seen = page.evaluate(LOOK_AT, svg.decode())
                assert seen["size"] == [WIDTH, HEIGHT]
                assert seen["problems"] == [], name
                if not dark:
                    drawn = page.locator(f".st-key-{key} .neuralviz-figure").evaluate(MARKS)
                    assert seen["marks"]["bars"] == drawn["bars"], name
                    assert seen["marks"]["dots"] in (0, drawn["dots"]), name  # 0: a bitmap
                names.append(name)
                if folder is not None:
                    (folder / name).write_bytes(svg)
            name, png = save(page, row.get_by_role("button", name="PNG"))
            assert struct.unpack(">II", png[16:24]) == (WIDTH, HEIGHT)
            names.append(name)
            if folder is not None:
                (folder / name).write_bytes(png)
    assert len(set(names)) == len(names)
    return names


@contextmanager
def opened_offline(browser: Browser, content: bytes, folder: Path) -> Iterator[Page]:
    """A page as a file, in a browser without any network; asks for nothing beside itself."""
    file = folder / "page.html"
    file.write_bytes(content)
    context = browser.new_context(viewport={"width": 1300, "height": 900}, offline=True)
    page = context.new_page()
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    yield page
    assert page.evaluate(CLIPPED_OR_OVERLAPPING) == []
    assert errors == []
    assert asked == [file.as_uri()]
    context.close()
