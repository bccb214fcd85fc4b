"""Make the README's pictures: start the app, drive it in Chromium, photograph the pages.

python scripts/screenshots.py            # docs/screenshots/*.png, 1440 wide, light
python scripts/screenshots.py --all DIR  # every page, both widths, light and dark
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]
PAGES = {"micro_tuning": "", "blueprints": "blueprints", "how_it_works": "how_it_works"}
SIZES = {"desktop": (1440, 900), "phone": (390, 844)}
FIGURE = ".js-plotly-plot .main-svg"


@contextmanager
def running_app() -> Iterator[str]:
    """The app on a free port, as users start it; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    server = subprocess.Popen(
        [*command, "--server.headless", "true", "--server.port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://localhost:{port}"
    try:
        for _ in range(300):
            try:
                urlopen(f"{address}/_stcore/health", timeout=1).close()
                break
            except (URLError, OSError):
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(10)


def tune_live(page: Page) -> None:
    """Press *Tune* on the micro-tuning page and wait for the end of the run."""
    page.get_by_role("button", name="Tune", exact=True).click()
    page.get_by_text("Done in").wait_for(timeout=180_000)


def photograph(page: Page, path: Path, *, whole: bool) -> None:
    """Write the page as it is seen; ``whole`` makes the window as high as the page first."""
    page.locator(FIGURE).first.wait_for(timeout=90_000)
    page.wait_for_timeout(2500)
    if whole:
        main = "document.querySelector('[data-testid=stMain]')"
        height = page.evaluate(f"{main}.scrollHeight")
        width = page.viewport_size["width"]
        page.set_viewport_size({"width": width, "height": min(height + 40, 6000)})
        page.wait_for_timeout(1500)
    page.screenshot(path=str(path))
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", type=Path, help="folder for every page, width and theme")
    args = parser.parse_args()
    folder = args.all or ROOT / "docs" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    with running_app() as address, sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        browser = playwright.chromium.launch(
            executable_path=str(own) if own.exists() else shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        sizes = SIZES if args.all else {"desktop": (1440, 1300)}
        for size, (width, height) in sizes.items():
            for theme in ("light", "dark") if args.all else ("light",):
                for name, path in PAGES.items():
                    context = browser.new_context(
                        viewport={"width": width, "height": height},
                        color_scheme=theme,
                        device_scale_factor=1,
                    )
                    page = context.new_page()
                    page.goto(f"{address}/{path}")
                    if name == "micro_tuning":
                        page.locator(FIGURE).first.wait_for(timeout=90_000)
                        tune_live(page)
                    target = f"{name}-{size}-{theme}.png" if args.all else f"{name}.png"
                    photograph(page, folder / target, whole=bool(args.all))
                    context.close()
        browser.close()


if __name__ == "__main__":
    main()
