"""Count the words on each page as it opens, of this checkout or of several side by side.

python scripts/count_words.py                    # this checkout
python scripts/count_words.py PATH . --texts     # another one and this one; also what is read

A page is opened in a browser (1440 × 900) on a server with an empty home, and left until it has
been at rest for some seconds. Counted is every visible word with a letter in the sidebar and the
main area: sentences, captions, labels, buttons, titles and legends of figures. Not counted: the
axes and marks of figures, icons, numbers, cells of tables, what fields hold, and the texts of the
examples, wherever they stand (five or more words in a row of a file of the sample data).
"""

from __future__ import annotations

import argparse
import re
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from neuralviz.ui.page import ASSETS
from scripts.screenshots import PAGES
from tests.support.app import ROOT, Server, launch_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

IN_A_ROW = 5  # words that make a passage of an example
AT_REST = 4.0  # seconds
LONGEST_WAIT = 240.0  # seconds
WORD = re.compile(r"[^\W\d_][\w'’-]*")
VISIBLE_TEXTS = """
() => {
    const areas = ['stSidebar', 'stMain'].map(name => `[data-testid=${name}]`).join()
    const left = '[data-testid=stIconMaterial], [data-testid=stText], pre, td, style, script, '
        + '[class*=neuralviz-stage], textarea, input'
    const texts = []
    for (const area of document.querySelectorAll(areas)) {
        const walker = document.createTreeWalker(area, NodeFilter.SHOW_TEXT)
        while (walker.nextNode()) {
            const parent = walker.currentNode.parentElement
            const isMark = parent.closest('.neuralviz-figure')
                && !parent.closest('.gtitle, .legendtext')
            if (isMark || parent.closest(left)) continue
            const box = parent.getBoundingClientRect()
            const isSeen = box.width > 1 && box.height > 1 && parent.checkVisibility(
                {contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true})
            if (isSeen && walker.currentNode.data.trim()) texts.push(walker.currentNode.data.trim())
        }
    }
    return texts
}"""
BUSY = "[data-testid=stProgress], [data-testid=stSpinner], [data-test-script-state=running]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkouts", type=Path, nargs="*", default=[ROOT])
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=list(PAGES))
    parser.add_argument("--texts", action="store_true", help="print what is read, too")
    args = parser.parse_args()
    passages = read_passages()
    columns = []
    for checkout in args.checkouts:
        texts_by_page = dict(read_pages(checkout.resolve(), args.pages))
        words = {page: list_words(texts, passages) for page, texts in texts_by_page.items()}
        columns.append({page: len(found) for page, found in words.items()})
        if args.texts:
            for page, texts in texts_by_page.items():
                print(f"\n{checkout}, {page}: {columns[-1][page]}", *texts, sep="\n  ")
    rows = [(page, [column[page] for column in columns]) for page in args.pages]
    rows.append(("all", [sum(column.values()) for column in columns]))
    print(f"{'page':<17}", *(f"{checkout.resolve().name:>12}" for checkout in args.checkouts))
    for page, counts in rows:
        share = f"{counts[-1] / counts[0]:>8.0%}" if len(counts) > 1 else ""
        print(f"{page:<17}", *(f"{count:>12}" for count in counts), share)


def read_pages(checkout: Path, pages: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The visible texts of each page of a checkout's app, served from an empty home."""
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        server = Server(checkout / "app.py", Path(home), {"PYTHONPATH": str(checkout)})
        browser = launch_chromium(playwright)
        try:
            server.start()
            for name in pages:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.goto(f"{server.address}/{PAGES[name]}")
                yield name, read_at_rest(page)
                page.close()
        finally:
            server.end()
            browser.close()


def read_at_rest(page: Page) -> list[str]:
    """The visible texts of a page once they stay the same and nothing is under way."""
    page.locator("h1").first.wait_for(timeout=90_000)
    start = calm = time.monotonic()
    texts: list[str] = []
    while time.monotonic() - calm < AT_REST and time.monotonic() - start < LONGEST_WAIT:
        page.wait_for_timeout(500)
        before, texts = texts, page.evaluate(VISIBLE_TEXTS)
        if texts != before or page.locator(BUSY).count():
            calm = time.monotonic()
    return texts


def read_passages() -> set[tuple[str, ...]]:
    """Every five words in a row of the sample data and the examples."""
    files = [*ROOT.glob("sample_data/*.csv")]
    texts = [line for file in files for line in file.read_text("utf-8").splitlines()]
    examples = tomllib.loads((ASSETS / "examples.toml").read_text("utf-8"))
    texts += [str(texts) for page in examples.values() for texts in page.values()]
    return {passage for text in texts for passage in pass_over(WORD.findall(text.lower()))}


def pass_over(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - IN_A_ROW + 1):
        yield tuple(words[start : start + IN_A_ROW])


def list_words(texts: Sequence[str], passages: set[tuple[str, ...]]) -> list[str]:
    """The words of texts, without those of passages."""
    words = WORD.findall("\n".join(texts))
    is_example = [False] * len(words)
    for start, passage in enumerate(pass_over([word.lower() for word in words])):
        if passage in passages:
            is_example[start : start + IN_A_ROW] = [True] * IN_A_ROW
    return [word for word, is_left in zip(words, is_example, strict=True) if not is_left]


if __name__ == "__main__":
    main()
