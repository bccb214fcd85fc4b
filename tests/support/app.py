"""The app on a free port as users start it, and a Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.error import URLError
from urllib.request import urlopen

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playwright.sync_api import Browser, Page, Playwright

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
        .filter(({at}) => at.left < box.left - 2 || at.right > box.right + 2)
        .map(({text}) => `clipped: ${text}`)
    const overlapping = ['.ytick text', '.gtitle, .legendtext, .xtitle', '.legendtext']
        .map(labels)
        .flatMap(group => group.flatMap((a, i) => group.slice(i + 1)
            .filter(b => Math.min(a.at.right, b.at.right) - Math.max(a.at.left, b.at.left) > 2
                && Math.min(a.at.bottom, b.at.bottom) - Math.max(a.at.top, b.at.top) > 4)
            .map(b => `overlapping: ${a.text} | ${b.text}`)))
    return [...clipped, ...overlapping]
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
                || Math.abs(figure._fullLayout?.width - figure.clientWidth) > 1)
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
    """Serve a Streamlit script and give its address.

    Args:
        script: what is served.
        folder: an empty one, not the script's own: working folder, log, and where texts are kept.
        workers: processes that work; one, so that a second run waits, on any machine.

    Raises:
        TimeoutError: the server does not answer; the message is its log.
    """
    server = Server(script, folder, {"NEURALVIZ_WORKERS": workers})
    try:
        server.start()
        yield server.address
    finally:
        server.end()


class Server:
    """A Streamlit script on a free port, which can be killed and started again.

    Args:
        script, folder: as of `served`.
        settings: of the environment.
        options: of ``streamlit run``.
    """

    def __init__(
        self,
        script: Path,
        folder: Path,
        settings: Mapping[str, str],
        options: Sequence[str] = (),
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.address = f"http://localhost:{self._port}"
        self.log = folder / "log"
        self._script = script
        self._folder = folder
        self._options = options
        self._settings = {
            "PYTHONPATH": str(ROOT),
            "NEURALVIZ_HOME": str(folder),
            "NEURALVIZ_UNWATCHED_SECONDS": "20",  # what one test leaves does not slow the next
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            TimeoutError: it does not; the message is its log.
        """
        command = [sys.executable, "-m", "streamlit", "run", str(self._script)]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(*command, "--server.headless", "true", "--server.port", str(self._port)),
                    *self._options,
                ],
                cwd=self._folder,
                env={**os.environ, **self._settings},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        _wait_for(f"{self.address}/_stcore/health", self.log)

    def workers(self) -> list[int]:
        """Ids of its worker processes."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children(recursive=True)
        return [one.pid for one in children if "neuralviz.jobs.worker" in one.cmdline()]

    def kill(self) -> None:
        """End it at once, as a crash does."""
        assert self._process is not None
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


def _wait_for(address: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            with urlopen(address, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError(log.read_text())


def launch_chromium(playwright: Playwright) -> Browser:
    """Playwright's own Chromium where it is installed, else the system's.

    Raises:
        playwright.sync_api.Error: there is none.
    """
    own = Path(playwright.chromium.executable_path)
    path = str(own) if own.exists() else shutil.which("chromium")
    return playwright.chromium.launch(executable_path=path, args=_FLAGS)


def settled(page: Page) -> None:
    """Wait until no script runs and no figure is drawn, and neither has begun for a moment."""
    page.evaluate(_SETTLED)


def looks(page: Page) -> Iterator[str]:
    """Give an open page each width and each theme, and say which when it is drawn so.

    A theme changes colours, not places, so that each goes with one of the widths. The look that
    the page has comes first, and it keeps the last.
    """
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
    """What is wider than the page, clipped, or on something else."""
    main = "document.querySelector('[data-testid=stMain]')"
    fits = page.evaluate(
        f"{main}.scrollWidth <= {main}.clientWidth"
        " && document.documentElement.scrollWidth <= window.innerWidth"
    )
    return [*([] if fits else ["wider than the page"]), *page.evaluate(CLIPPED_OR_OVERLAPPING)]
