"""Take the screenshots in the README: start the app, open its pages in Chromium, and save them.

python scripts/screenshots.py            # docs/screenshots/*.png, 1440 wide, light
python scripts/screenshots.py --all DIR  # every page, both widths, light and dark
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.support.app import APP, ROOT, launch_chromium, served

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES = {
    "micro_tuning": "",
    "compare": "compare",
    "corpus_map": "corpus_map",
    "training": "training",
    "frozen_features": "frozen_features",
    "evaluation": "evaluation",
    "layers": "layers",
    "blueprints": "blueprints",
    "how_it_works": "how_it_works",
}
SIZES = {"desktop": (1440, 900), "phone": (390, 844)}
MODEL_IS_LOADED = 8_000  # ms after opening, in the background
FIGURE = ".js-plotly-plot .main-svg:visible"  # not those of the stage


def tune_live(page: Page) -> None:
    """Press *Tune* on the micro-tuning page and wait for the end of the run."""
    page.wait_for_timeout(MODEL_IS_LOADED)
    page.get_by_role("button", name="Tune", exact=True).click()
    page.mouse.move(0, 0)
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
    parser.add_argument(
        "--all", type=Path, help="folder for screenshots of every page in every width and theme"
    )
    args = parser.parse_args()
    folder = args.all or ROOT / "docs" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory() as home,
        served(APP, Path(home)) as address,
        sync_playwright() as playwright,
    ):
        browser = launch_chromium(playwright)
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
                    elif name == "compare":
                        over = page.get_by_text(re.compile("Done in|Result of"))
                        over.first.wait_for(timeout=180_000)
                    target = f"{name}-{size}-{theme}.png" if args.all else f"{name}.png"
                    photograph(page, folder / target, whole=bool(args.all))
                    context.close()
        browser.close()


if __name__ == "__main__":
    main()
