"""Links show what was seen whatever others do; Back and Forward change one thing at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from neuralviz.maps.projection import ProjectionSettings
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.importing import import_vectors
from tests.support.app import drag, settled

pytestmark = pytest.mark.browser

TEXTS = [f"A {kind} note on {thing}." for kind in ("short", "long") for thing in "abcdefghijkl"]
FIGURE = ".js-plotly-plot .main-svg"

# What a person sees: headlines, warnings, the figures' data and what is visible of them, the values
# of widgets. What a figure is called differs with the run that drew it.
SEEN = """() => {
    const main = document.querySelector('[data-testid=stMain]')
    const texts = (names) => [...main.querySelectorAll(names)].map((node) => node.innerText.trim())
    const round = (value) => typeof value === 'number' ? Number(value.toPrecision(3)) : value
    const figures = [...main.querySelectorAll('.js-plotly-plot')].map((figure) => ({
        title: figure.getAttribute('aria-label'),
        data: figure._fullData.map(({type, x, y, z, text}) => [
            type, ...[x, y, z].map((values) => Array.from(values ?? [])
                .flatMap((value) => ArrayBuffer.isView(value) ? [...value] : value).map(round)),
        ]),
        zoom: ['xaxis', 'yaxis'].map((axis) => {
            const {autorange, range} = figure._fullLayout[axis] ?? {}
            return autorange ? null : range?.map(round)
        }),
    }))
    const fields = [...main.querySelectorAll('input, textarea')]
        .filter(({type}) => type !== 'file')
        .map((node) => [node.ariaLabel ?? node.name, node.type === 'checkbox' ? node.checked : node.value])
    const chosen = [...main.querySelectorAll('[role=radio][aria-checked=true], [aria-pressed=true]')]
    return {
        headlines: texts('[class*=st-key-headline-]'),
        warnings: texts('[data-testid=stAlert]'),
        figures, fields,
        chosen: chosen.map((node) => node.innerText.trim()),
    }
}"""


@pytest.fixture(scope="module")
def store(home: Path) -> CorpusStore:
    return CorpusStore(home / "corpora")


def add_corpus(store: CorpusStore, name: str) -> Corpus:
    labels = {"kind": tuple(text.split()[1] for text in TEXTS)}
    return store.add(name, ReadTexts(tuple(TEXTS), labels=labels))


def import_noise(store: CorpusStore, corpus: Corpus, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(TEXTS), 4)).astype(np.float32)
    import_vectors(store, corpus, ReadVectors("own.npy", vectors))


def see(page: Page) -> dict[str, Any]:
    page.locator(FIGURE).first.wait_for()
    settled(page)
    seen: dict[str, Any] = page.evaluate(SEEN)
    return seen


def choose(page: Page, box: str, option: str) -> None:
    page.get_by_role("combobox", name=box).first.click()
    page.get_by_role("option", name=option).first.click()
    settled(page)


def search_the_map(page: Page) -> None:
    page.get_by_role("textbox", name="Search").fill("long")
    page.keyboard.press("Enter")
    settled(page)
    drag(page, page.locator(".js-plotly-plot").first, (0.3, 0.3), (0.6, 0.6))  # a lasso
    settled(page)


def type_blueprints(page: Page) -> None:
    page.get_by_role("textbox", name="Blueprints").fill("(3, 1)")
    page.get_by_role("textbox", name="Text").fill("The ferry leaves at noon.")
    page.keyboard.press("Control+Enter")


def choose_a_pair(page: Page) -> None:
    choose(page, "Order of texts", "Clustered")
    choose(page, "Text A", "5.")


def zoom(page: Page) -> None:
    drag(page, page.locator(".js-plotly-plot").first, (0.2, 0.2), (0.7, 0.7))
