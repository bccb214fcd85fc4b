"""Measure what saving a corpus costs, and how long opening a large one takes.

    NEURALVIZ_DATA=… python benchmarks/corpus.py [keeping | opening]

The texts are those of AG News if ``NEURALVIZ_DATA`` is set, otherwise made from the sample data.
**keeping**: `embed_corpus` reads texts from the store, embeds them and saves the vectors. It takes
turns with `SentenceTransformer.encode` called directly on the same texts; what counts is the ratio
within one run. **opening**: saves a corpus of 100,000 texts with random vectors and a random map,
starts the app and opens the corpus in Chromium. Measures the time until the map is drawn, responds
to the mouse and nothing is running any more, and then the time from clicks on points until their
texts appear. A corpus above 200,000 texts (``--points 10000000``) is written block by block, and
two more times are measured: from the end of a lasso until the number of the selected texts appears,
and from a press of *Zoom in* until the points of the window are drawn. Every visit is a new browser
session; the first is to a server that has imported the pages, and one more to another server that
has just started. Prints tables in markdown.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from neuralviz.maps.clusters import Clusters
from neuralviz.maps.example import add_example_once
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.projection import MOST_WHOLE, Projection, ProjectionSettings
from neuralviz.paths import sample_data
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.vectors import text_keys
from tests.support import large_corpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Browser, Page

    from neuralviz.store.corpora import Corpus

DIM, TOPICS, NEIGHBOURS = 384, 40, 15  # of the made-up vectors
SEED = 0
CLICKS, LASSOS, ZOOMS = 10, 5, 4  # of a visit
VIEWPORT = {"width": 1440, "height": 1400}
IMPORT_SECONDS = 12.0  # for a server that has drawn a page to import the others
PAUSE = 1.0  # seconds between them
PATIENCE = 120_000  # ms
GOALS = {"open": 5.0, "click": 300.0, "lasso": 1000.0, "zoom": 300.0}  # seconds, milliseconds
LARGE_DIM = 16  # of the made-up vectors of a large corpus
MAP = "document.querySelector(\"[aria-label='Map by mean']\")"
TEXT = "document.querySelector('[data-testid=stText]')"

# Drawn, listening, and the script's run over.
INTERACTIVE = f"""() => {MAP}?.observer && {MAP}._fullData?.length && !{MAP}.drawing
    && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'"""
# Of drawn points without close neighbours, the rows.
LONELY = f"""n => {{
    const map = {MAP}, {{xaxis, yaxis}} = map._fullLayout, crowd = {{}}
    const points = map._fullData.flatMap(trace => Array.from(trace.customdata ?? [], (row, i) =>
        ({{row, x: xaxis.d2p(trace.x[i]), y: yaxis.d2p(trace.y[i])}})))
    const cell = (x, y) => `${{Math.floor(x / 10)}} ${{Math.floor(y / 10)}}`
    for (const {{x, y}} of points) crowd[cell(x, y)] = (crowd[cell(x, y)] ?? 0) + 1
    const near = ({{x, y}}) => [-10, 0, 10].flatMap(dx => [-10, 0, 10].map(dy =>
        crowd[cell(x + dx, y + dy)] ?? 0)).reduce((a, b) => a + b)
    const inside = ({{x, y}}) =>
        Math.min(x, y, xaxis._length - x, yaxis._length - y) > 20
    return points.filter(inside).map(p => [near(p), p.row]).sort(([a], [b]) => a - b)
        .slice(0, n).map(([, row]) => row)
}}"""
# Where a row is on the screen now.
PLACE = f"""row => {{
    const map = {MAP}, {{xaxis, yaxis}} = map._fullLayout, box = map.getBoundingClientRect()
    const trace = map._fullData.find(trace => trace.customdata?.includes(row))
    const i = trace.customdata.indexOf(row)
    return [box.left + xaxis._offset + xaxis.d2p(trace.x[i]),
        box.top + yaxis._offset + yaxis.d2p(trace.y[i])]
}}"""
# Milliseconds from the press of the button to the text of the point that was clicked.
ANSWERED = f"""() => ({{promise: new Promise((resolve, reject) => {{
    let start, row
    const isThere = () => {TEXT}?.textContent.endsWith(`(${{row}})`)
    window.addEventListener('pointerdown', () => start = performance.now(),
        {{once: true, capture: true}})
    {MAP}.once('plotly_click', ({{points: [point]}}) => {{
        row = point.customdata
        if (isThere()) reject(new Error(`text ${{row}} is on the page already`))
    }})
    setTimeout(reject, 20000, new Error('the click was not answered'))
    const look = () => isThere() ? resolve(performance.now() - start) : requestAnimationFrame(look)
    look()
}})}})"""


# Milliseconds from the moment the button is let go to the number of selected texts.
LASSOED = """() => ({promise: new Promise((resolve, reject) => {
    let start
    window.addEventListener('pointerup', () => start = performance.now(),
        {once: true, capture: true})
    setTimeout(reject, 20000, new Error('the lasso was not answered'))
    const said = () => [...document.querySelectorAll('[data-testid=stMarkdown]')]
        .some(one => /[\\d,]+ texts? selected/.test(one.textContent))
    const look = () => start && said() ? resolve(performance.now() - start)
        : requestAnimationFrame(look)
    look()
})})"""
# Milliseconds from a press of a button to the points of the window.
ZOOMED = f"""() => ({{promise: new Promise((resolve, reject) => {{
    const map = {MAP}, before = map.columns
    let start
    window.addEventListener('pointerdown', () => start = performance.now(),
        {{once: true, capture: true}})
    setTimeout(reject, 20000, new Error('the zoom was not answered'))
    const look = () => start && map.columns !== before && !map.redrawn
        ? resolve(performance.now() - start) : requestAnimationFrame(look)
    look()
}})}})"""


def texts_of(n: int) -> list[str]:
    """``n`` different texts."""
    folder = os.environ.get("NEURALVIZ_DATA")
    path = Path(folder) / "ag_news" / "test.csv" if folder else sample_data() / "topics.csv"
    with path.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    copies = -(-n // len(texts))
    return [f"{text} {copy}" if copy else text for copy in range(copies) for text in texts][:n]


# --- keeping -------------------------------------------------------------------------------------


def measure_keeping(n_texts: int, rounds: int, threads: int | None) -> None:
    """Texts a second with the store and without it."""
    import torch

    from neuralviz.embedders import make_embedder
    from neuralviz.models import MINILM, load_sentence_transformer
    from neuralviz.store.embedding import BATCH_SIZE, embed_corpus

    if threads:
        torch.set_num_threads(threads)
    encoder, _ = load_sentence_transformer(MINILM)
    embedder = make_embedder("mean")
    ours, direct = [], []
    texts = texts_of(n_texts * rounds)
    encoder.encode(texts[:64])
    embedder.encode(texts[:64])
    for turn in range(rounds):
        part = texts[turn::rounds]
        with tempfile.TemporaryDirectory() as folder:
            store = CorpusStore(Path(folder))
            corpus = store.add("benchmark", ReadTexts(tuple(part)))
            start = time.perf_counter()
            for _ in embed_corpus(store, corpus, embedder):
                pass
            ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        encoder.encode(part, batch_size=BATCH_SIZE, show_progress_bar=False)
        direct.append(time.perf_counter() - start)
    n = len(texts) / rounds
    print(f"{n:,.0f} texts per round, {torch.get_num_threads()} PyTorch threads, medians\n")
    print("| | texts per second |")
    print("| --- | --- |")
    print(f"| `SentenceTransformer.encode` | {n / median(direct):,.0f} |")
    print(f"| `embed_corpus`, including saving | {n / median(ours):,.0f} |")
    ratio = median(d / o for d, o in zip(direct, ours, strict=True))
    print(f"\nThroughput including saving: {100 * ratio:.0f}% of the encoder's own.\n")


# --- opening -------------------------------------------------------------------------------------


def keep_large(store: CorpusStore, n: int) -> Corpus:
    """A corpus of ``n`` texts on a map by mean pooling of which nothing was computed.

    Points and vectors lie in clouds, by topic; neighbours are random ones of the topic. Every text
    ends with its row in brackets.
    """
    from neuralviz.embedders import embedder_spec

    rng = np.random.default_rng(SEED)
    topic = rng.integers(TOPICS, size=n)
    texts = tuple(f"{text} ({row})" for row, text in enumerate(texts_of(n)))
    labels = {
        "topic": tuple(f"topic {i}" for i in topic),
        "score": tuple(f"{score:.3f}" for score in rng.normal(size=n)),
    }
    corpus = store.add("large", ReadTexts(texts, labels=labels))

    vectors = rng.normal(size=(TOPICS, DIM))[topic] + rng.normal(size=(n, DIM))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    embedder = store.vectors.restore("made-up", embedder_spec("mean").to_json(), DIM)
    store.vectors.put(embedder, text_keys(texts), vectors, np.full((n, 2), np.nan))

    points = rng.uniform(-12, 12, size=(TOPICS, 2))[topic] + rng.normal(size=(n, 2))
    by_topic = [np.flatnonzero(topic == i) for i in range(TOPICS)]
    near = np.stack([rng.choice(by_topic[i], NEIGHBOURS) for i in topic]).astype(np.int32)
    far = np.sort(rng.random((n, NEIGHBOURS), dtype=np.float32))
    KeptMaps(store).put(
        corpus,
        embedder,
        Projection(points.astype(np.float32), ProjectionSettings(), Neighbours(near, far)),
        Clusters(topic, TOPICS),
        [(f"word{i}", f"other{i}") for i in range(TOPICS)],
    )
    return corpus


class Traffic:
    """Counts the bytes that a page is sent, scripts and styles of the app itself left out."""

    def __init__(self, page: Page) -> None:
        self.largest = self.all = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        page.on("response", self._count_response)

    def _count(self, frame: str | bytes) -> None:
        self.largest = max(self.largest, len(frame))
        self.all += len(frame)

    def _count_response(self, response: Any) -> None:
        if "/_stcore/message" in response.url:
            self._count(response.body())


@dataclass(frozen=True)
class Visit:
    """What was measured in a browser session.

    Attributes:
        seconds: until the map can be worked with.
        clicks, lassos, zooms: milliseconds of each.
        largest, sent: bytes of the largest message until then, and of all.
        a_click, a_lasso, a_zoom: bytes after one, on average.
    """

    seconds: float
    clicks: list[float]
    lassos: list[float]
    zooms: list[float]
    largest: int
    sent: int
    a_click: int
    a_lasso: int
    a_zoom: int


def visit(browser: Browser, address: str, *, large: bool) -> Visit:
    """Open a map, click on it, and where it is large, draw lassos and zoom in."""
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    traffic = Traffic(page)
    seconds = open_in(page, address)
    sent, largest = traffic.all, traffic.largest
    clicks = [click(page, row) for row in page.evaluate(LONELY, CLICKS)]
    a_click = (traffic.all - sent) // len(clicks)
    before = traffic.all
    lassos = [lasso(page, number / LASSOS) for number in range(LASSOS if large else 0)]
    a_lasso = (traffic.all - before) // LASSOS
    before = traffic.all
    zooms = [zoom(page) for _ in range(ZOOMS if large else 0)]
    a_zoom = (traffic.all - before) // ZOOMS
    context.close()
    return Visit(seconds, clicks, lassos, zooms, largest, sent, a_click, a_lasso, a_zoom)


def open_in(page: Page, address: str) -> float:
    """Seconds until the map of an address responds."""
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_function(INTERACTIVE, timeout=PATIENCE, polling=20)
    return time.perf_counter() - start


def seconds_to_open(browser: Browser, address: str) -> float:
    """`open_in` a page of its own, and nothing else."""
    context = browser.new_context(viewport=VIEWPORT)
    seconds = open_in(context.new_page(), address)
    context.close()
    return seconds


def import_pages(browser: Browser, address: str) -> None:
    """Look at the first page for as long as the server takes to import the others."""
    page = browser.new_page()
    page.goto(address)
    time.sleep(IMPORT_SECONDS)
    page.close()


def lasso(page: Page, share: float) -> float:
    """Milliseconds from a lasso around much of the map to the number of texts in it."""
    clear = page.get_by_role("button", name="Clear")
    if clear.count():
        clear.click()
        page.get_by_text("Nothing is selected").wait_for(timeout=PATIENCE)
    page.wait_for_function(INTERACTIVE, timeout=PATIENCE)
    area = page.locator(".nsewdrag").first.bounding_box()
    assert area is not None
    corners = [
        (area["x"] + area["width"] * (0.5 + 0.4 * np.cos(turn)),
         area["y"] + area["height"] * (0.5 + (0.45 - 0.2 * share) * np.sin(turn)))
        for turn in np.linspace(0, 2 * np.pi, 60)
    ]  # fmt: skip
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner)
    answer = page.evaluate_handle(LASSOED)
    page.mouse.up()
    milliseconds = answer.evaluate("answer => answer.promise")
    page.mouse.move(5, 5)
    time.sleep(PAUSE)
    return milliseconds


def zoom(page: Page) -> float:
    """Milliseconds from a press of *Zoom in* to the points of the window."""
    page.wait_for_function(INTERACTIVE, timeout=PATIENCE)
    page.locator(".nsewdrag").first.hover()
    answer = page.evaluate_handle(ZOOMED)
    page.locator('[data-title="Zoom in"]').first.click()
    milliseconds = answer.evaluate("answer => answer.promise")
    page.mouse.move(5, 5)
    time.sleep(PAUSE)
    return milliseconds


def click(page: Page, row: int) -> float:
    """Milliseconds from a click on a point to its text."""
    page.wait_for_function(INTERACTIVE, timeout=PATIENCE)
    x, y = page.evaluate(PLACE, row)
    answer = page.evaluate_handle(ANSWERED)  # a handle: the promise is waited for after the click
    page.mouse.click(x, y)
    milliseconds = answer.evaluate("answer => answer.promise")
    page.mouse.move(5, 5)  # no text is asked for by pointing at it
    time.sleep(PAUSE)
    return milliseconds


def measure_opening(n_texts: int, visits: int) -> None:
    """Seconds until a large corpus is open, milliseconds until a click is answered."""
    from playwright.sync_api import sync_playwright

    from tests.support.app import APP, launch_chromium, served

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = CorpusStore(home / "corpora")
        add_example_once(store)
        large = n_texts > MOST_WHOLE
        if large:
            some = texts_of(1000)
            corpus, _ = large_corpus.keep_large(
                store, n_texts, dim=LARGE_DIM, text=lambda row: f"{some[row % 1000]} ({row})"
            )
        else:
            corpus = keep_large(store, n_texts)
        query = f"corpus_map?corpus={corpus.id}&map-b=none"
        with sync_playwright() as playwright:
            browser = launch_chromium(playwright)
            with served(APP, home) as address:
                cold = seconds_to_open(browser, f"{address}/{query}")
            with served(APP, home) as address:
                import_pages(browser, address)
                first, *later = (
                    visit(browser, f"{address}/{query}", large=large) for _ in range(visits + 1)
                )
            browser.close()
    print(f"{platform.machine()}, {os.cpu_count()} cores; a saved corpus of {n_texts:,} texts\n")
    print(f"The first visit to a server that has just started took {cold:.1f} seconds.\n")
    print("| | first visit | median | longest | goal |\n| --- | --- | --- | --- | --- |")
    print(_row("seconds until the map responds", [first.seconds], [v.seconds for v in later],
               GOALS["open"], ".1f"))  # fmt: skip
    print(_row("milliseconds from a click to the text", first.clicks,
               [c for v in later for c in v.clicks], GOALS["click"], ",.0f"))  # fmt: skip
    if large:
        print(_row("milliseconds from a lasso to the number of its texts", first.lassos,
                   [one for v in later for one in v.lassos], GOALS["lasso"], ",.0f"))  # fmt: skip
        print(_row("milliseconds from a zoom to the points of the window", first.zooms,
                   [one for v in later for one in v.zooms], GOALS["zoom"], ",.0f"))  # fmt: skip
    one = later[0]
    print(
        f"\nSent to the browser: {one.largest:,} bytes for the points, {one.sent:,} with "
        f"everything of the visit except the app's own scripts; {one.a_click:,} bytes per click."
    )
    if large:
        print(f"{one.a_lasso:,} bytes per lasso, {one.a_zoom:,} per zoom.")
    print()


def _row(what: str, first: Sequence[float], later: Sequence[float], goal: float, how: str) -> str:
    numbers = (median(first), median(later), max(later))
    return f"| {what} | {' | '.join(f'{n:{how}}' for n in numbers)} | {goal:g} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", nargs="?", choices=["keeping", "opening"], help="default: both")
    parser.add_argument(
        "--texts", type=int, default=1500, help="number of texts per round of saving"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="number of rounds of saving, and of visits"
    )
    parser.add_argument("--threads", type=int, help="number of PyTorch threads")
    parser.add_argument(
        "--points", type=int, default=100_000, help="number of texts of the corpus that is opened"
    )
    args = parser.parse_args()
    if args.part != "opening":
        measure_keeping(args.texts, args.rounds, args.threads)
    if args.part != "keeping":
        measure_opening(args.points, args.rounds)


if __name__ == "__main__":
    main()
