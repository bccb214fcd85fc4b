"""Measure how long the Micro-tuning and Compare pages take to respond.

    python benchmarks/page.py

Starts the app, opens it in Chromium, micro-tunes on a text of 30 tokens with the default settings,
and compares 100 texts, different in every round, by mean pooling and SBERT-WK. Prints a table in
markdown: the first visit, and the median and the longest of several rounds, each in a new browser
session.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.models import bundled
from neuralviz.paths import sample_data
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from tests.support.app import APP, launch_chromium, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TEXT = (
    "The old bridge over the river was closed because of the flood last winter, and the whole "
    "village had to take the long way round through the hills."
)
LOSS = "[aria-label='Loss at the masked positions']"
DRAWN = f'document.querySelector("{LOSS}")?._fullData?.[0]'
PAIRS = sample_data() / "scored_pairs.csv"
N_TEXTS = 100
PATIENCE = 120_000  # ms
SETTLED = 5.0  # seconds after opening: the model is loaded in the background


def visit(browser: Browser, address: str) -> dict[str, float]:
    """Seconds of one visit, by what is waited for."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_function(f"{DRAWN}?.y?.length > 0", timeout=PATIENCE)
    seconds = {"first figure after opening": time.perf_counter() - start}
    page.get_by_role("radio", name="Paste").click()
    field = page.get_by_role("textbox", name="Your texts")
    field.fill(TEXT)
    field.press("Control+Enter")
    time.sleep(SETTLED)
    button = page.get_by_role("button", name="Tune", exact=True)
    start = time.perf_counter()
    button.click()
    page.wait_for_function(
        f"{DRAWN}?.name?.includes('The old bridge') && Array.from({DRAWN}.y).some(Number.isFinite)",
        timeout=PATIENCE,
        polling=20,
    )
    seconds["first point after Tune"] = time.perf_counter() - start
    page.get_by_text("Done in").wait_for(timeout=PATIENCE)
    seconds["10 epochs after Tune"] = time.perf_counter() - start
    context.close()
    return seconds


def compare(browser: Browser, address: str, number: int) -> dict[str, float]:
    """Seconds until two heatmaps of 100 texts that nobody has compared before are complete."""
    table = read_pairs(Source(PAIRS.name, PAIRS.read_bytes()))
    texts = [f"{number}: {sentence}" for sentence in table.sentences1[:N_TEXTS]]
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(f"{address}/compare?m2=sbert-wk&m3=none")
    page.get_by_text(re.compile("Done in|Result of")).wait_for(timeout=PATIENCE)  # of the example
    page.get_by_role("radio", name="Paste").click()
    field = page.get_by_role("textbox", name="Your texts")
    field.fill("\n".join(texts))
    field.press("Control+Enter")
    page.get_by_text("other data or settings").wait_for(timeout=PATIENCE)
    start = time.perf_counter()
    page.get_by_role("button", name="Compare", exact=True).click()
    whole = " && ".join(  # the diagonal is empty
        f"(document.querySelector(\"[aria-label='{method}']\")?._fullData?.[0].z"
        f".filter((row, i) => Array.from(row).every((one, j) => i === j || Number.isFinite(one)))"
        f".length === {N_TEXTS})"
        for method in ("mean", "sbert-wk")
    )
    page.wait_for_function(whole, timeout=PATIENCE, polling=50)
    seconds = time.perf_counter() - start
    context.close()
    return {f"two heatmaps of {N_TEXTS} texts after Compare": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds")
    args = parser.parse_args()
    n_tokens = len(bundled.text_reader().encoder.encode(TEXT, add_special_tokens=False).ids)
    with (
        TemporaryDirectory() as home,
        served(APP, Path(home)) as address,
        sync_playwright() as playwright,
    ):
        browser = launch_chromium(playwright)
        first, *visits = (
            visit(browser, address) | compare(browser, address, number)
            for number in range(args.rounds + 1)
        )
        browser.close()
    print(f"{platform.machine()}, {os.cpu_count()} cores; a text of {n_tokens} tokens, seconds\n")
    print("| | first visit | median | longest |\n| --- | --- | --- | --- |")
    for what in first:
        times = [seconds[what] for seconds in visits]
        print(f"| {what} | {first[what]:.1f} | {statistics.median(times):.1f} | {max(times):.1f} |")


if __name__ == "__main__":
    main()
