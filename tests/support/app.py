"""The app on a free port as users start it, and a Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.request import urlopen

import psutil

from tests.support.waiting import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Playwright

ROOT = Path(__file__).parents[2]
APP = ROOT / "app.py"
START_SECONDS = 60
LOOKS: dict[int, Literal["light", "dark"]] = {1440: "light", 390: "dark"}
"""Theme by width of the page, px."""
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Labels of a figure beyond its sides, and labels of one axis, titles and legends on each other.
CLIPPED_OR_OVERLAPPING = """
() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
    const box = plot.getBoundingClientRect()
    const labels = names => [...plot.querySelectorAll(names)]
        .map(label => ({text: label.textContent, at: label.getBoundingClientRect()}))
        .filter(({at}) => at.width > 0)
    const ends = '.xtick text, .ytick text, .legendtext, .textpoint text'
    const clipped = labels(`.gtitle, .xtitle, .ytitle, ${ends}`)
        .filter(({at}) => at.left < box.left - 2 || at.right > box.right + 2 || at.top < box.top)
        .map(({text}) => `clipped: ${text}`)
    const overlapping = ['.ytick text', '.gtitle, .legendtext, .xtitle', '.legendtext']
        .map(labels)
        .flatMap(group => group.flatMap((a, i) => group.slice(i + 1)
            .filter(b => Math.min(a.at.right, b.at.right) - Math.max(a.at.left, b.at.left) > 2
                && Math.min(a.at.bottom, b.at.bottom) - Math.max(a.at.top, b.at.top) > 4)
            .map(b => `overlapping: ${a.text} | ${b.text}`)))
    return [...clipped, ...overlapping]
})"""
# Names of clusters on a map that lie on each other, on points or outside the frame.
CROWDED_NAMES = """
() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
    const {xaxis, yaxis} = plot._fullLayout
    if (!xaxis) return []
    const origin = plot.getBoundingClientRect()
    const [left, top] = [origin.left + xaxis._offset, origin.top + yaxis._offset]
    const names = [...plot.querySelectorAll('.annotation')]
        .filter(({dataset}) => plot.layout.annotations[dataset.index].name)
        .map(label => label.querySelector('.annotation-text'))
        .map(text => ({name: text.textContent, at: text.getBoundingClientRect()}))
    const points = plot._fullData
        .filter(({visible, mode, marker}) => visible === true && /markers/.test(mode)
            && marker.opacity !== 0)
        .flatMap(({x, y}) => Array.from(x, (value, i) => ({
            x: left + xaxis.d2p(value), y: top + yaxis.d2p(y[i])})))
    return names.flatMap(({name, at}, i) => [
        ...names.slice(i + 1)
            .filter(({at: other}) => at.left < other.right && other.left < at.right
                && at.top < other.bottom && other.top < at.bottom)
            .map(other => `${name} is on ${other.name}`),
        ...points.filter(({x, y}) => x > at.left && x < at.right && y > at.top && y < at.bottom)
            .map(() => `${name} is on a point`),
        ...(at.left < left || at.right > left + xaxis._length || at.top < top
            || at.bottom > top + yaxis._length ? [`${name} leaves the frame`] : []),
    ])
})"""

# What a click starts takes its way over the server: a moment without work is waited for.
_SETTLED = """
() => new Promise((resolve, reject) => {
    const start = performance.now()
    let calm = start
    const look = () => {
        const now = performance.now()
        const app = document.querySelector('[data-test-script-state]')
        const figures = [...document.querySelectorAll('.neuralviz-figure')]
        const busy = app?.dataset.testScriptState === 'running'
            || figures.some(figure => figure.stale || figure.drawing
                || (figure.clientWidth  // 0: it is not seen, off the stage or on it
                && Math.abs(figure._fullLayout?.width - figure.clientWidth) > 1))
        if (busy) calm = now
        if (now - calm > 400) resolve()
        else if (now - start > 60_000) reject(new Error('the page does not come to rest: '
            + figures.map(f => [f.stale, f.drawing, f._fullLayout?.width, f.clientWidth])))
        else setTimeout(look, 25)
    }
    look()
})"""


@contextmanager
def served(script: Path, folder: Path, workers: str = "1") -> Iterator[str]:
    """Serve a Streamlit script and give its address."""
    server = Server(script, folder, {"NEURALVIZ_WORKERS": workers})
    try:
        server.start()
        yield server.address
    finally:
        server.end()


class Server:
    """A Streamlit script on a free port, which can be killed and started again."""

    def __init__(
        self, script: Path, folder: Path, settings: Mapping[str, str], options: Sequence[str] = ()
    ) -> None:
        port = free_port()
        self.address = f"http://localhost:{port}"
        self.log = folder / "log"
        self._script = script
        self._folder = folder
        self._options = ("--server.port", str(port), *options)
        self._settings = {
            "PYTHONPATH": str(ROOT),
            "NEURALVIZ_HOME": str(folder),
            "NEURALVIZ_UNWATCHED_SECONDS": "10",  # what one test leaves does not slow the next
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "streamlit", "run", str(self._script)]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--server.headless", "true", *self._options],
                cwd=self._folder,
                env={**os.environ, **self._settings},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                with urlopen(f"{self.address}/_stcore/health", timeout=1):
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(self.log.read_text())

    def workers(self) -> list[int]:
        """Ids of its worker processes."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        return [one.pid for one in children if "neuralviz.jobs.workers" in one.cmdline()]

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        """Ask it to end, as who hosts it does; gives its exit code."""
        if self._process is None:
            return 0
        self._process.terminate()
        try:
            return self._process.wait(START_SECONDS)
        finally:
            self._process.kill()


def launch_chromium(playwright: Playwright) -> Browser:
    """Playwright's own Chromium where it is installed, else the system's."""
    own = Path(playwright.chromium.executable_path)
    path = str(own) if own.exists() else shutil.which("chromium")
    return playwright.chromium.launch(executable_path=path, args=_FLAGS)


def settled(page: Page) -> None:
    """Wait until no script runs and no figure is drawn, and neither has begun for a moment."""
    page.evaluate(_SETTLED)


def tune(page: Page, text: str, clicks: int = 1) -> None:
    """Tune on a text of one's own; the first click after typing counts."""
    page.get_by_role("radio", name="Paste").click()
    page.get_by_role("textbox", name="Your texts").fill(text)
    page.get_by_role("button", name="Tune", exact=True).click(click_count=clicks)


def drag(page: Page, figure: Locator, start: Sequence[float], end: Sequence[float]) -> None:
    """Draw a rectangle in a figure, from and to shares of its width and height."""
    area = figure.locator(".nsewdrag").first.bounding_box()
    for (x, y), act in ((start, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(area["x"] + x * area["width"], area["y"] + y * area["height"], steps=5)
        act()


def looks(page: Page) -> Iterator[str]:
    """Give an open page each width and each theme, and say which when it is drawn so."""
    have = (page.viewport_size or {}).get("width")
    for width in sorted(LOOKS, key=lambda width: width != have):
        yield look(page, width)


def look(page: Page, width: int) -> str:
    """Give an open page a width and the theme that goes with it; gives both in words."""
    theme = LOOKS[width]
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    page.wait_for_function(
        "theme => getComputedStyle(document.querySelector('.stApp')).colorScheme === theme",
        arg=theme,
    )
    settled(page)
    return f"{width} px, {theme}"


def problems(page: Page) -> list[str]:
    """What is wider than the page, clipped, or on something else; names on points, too."""
    main = "document.querySelector('[data-testid=stMain]')"
    fits = page.evaluate(
        f"{main}.scrollWidth <= {main}.clientWidth"
        " && document.documentElement.scrollWidth <= window.innerWidth"
    )
    found = [*page.evaluate(CLIPPED_OR_OVERLAPPING), *page.evaluate(CROWDED_NAMES)]
    return [*([] if fits else ["wider than the page"]), *found]
