"""Links show what was seen whatever others do; Back and Forward change one thing at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from neuralviz.embedders import embedder_spec
from neuralviz.embedders.specs import make_embedder
from neuralviz.models.shared import LOADERS
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.importing import import_vectors
from tests.support.app import drag, settled, tune

pytestmark = pytest.mark.browser

TEXTS = [f"A {kind} note on {thing}." for kind in ("short", "long") for thing in "abcdefghijkl"]
MINUTE = 60_000

# Headlines, warnings, what figures show of which data, values of widgets.
SEEN = """() => {
    const main = document.querySelector('[data-testid=stMain]')
    const texts = (names) => [...main.querySelectorAll(names)].map((node) => node.innerText.trim())
    const round = (value) => typeof value === 'number' ? Number(value.toPrecision(3)) : value
    const list = (values) => Array.from(values ?? [])
        .flatMap((value) => ArrayBuffer.isView(value) ? [...value] : value).map(round)
    const figures = [...main.querySelectorAll('.js-plotly-plot')].map((figure) => ({
        name: figure.getAttribute('aria-label'),
        data: figure._fullData.map(({x, y, z, visible}) => [visible, ...[x, y, z].map(list)]),
        selected: figure._fullData.map(({selectedpoints}) => list(selectedpoints)),
        seen: ['xaxis', 'yaxis'].map((axis) => {
            const {autorange, range} = figure._fullLayout[axis] ?? {}
            return autorange || !location.search.includes('zoom-') ? null : range?.map(round)
        }),
    }))
    const fields = [...main.querySelectorAll('input, textarea')]
        .filter(({type}) => type !== 'file')
        .map(({ariaLabel, type, checked, value}) =>
            [ariaLabel ?? type, type === 'checkbox' || type === 'radio' ? checked : value])
    const chosen = [...main.querySelectorAll('[role=radio][aria-checked=true]')]
    const tables = [...main.querySelectorAll('[data-testid=stDataFrame] table')]
    return {
        tables: tables.map((node) => node.innerText),
        headlines: texts('[class*=st-key-headline-]'), warnings: texts('[data-testid=stAlert]'),
        figures, fields, chosen: chosen.map((node) => node.innerText.trim()),
    }
}"""

RINGED = "() => document.querySelector('.js-plotly-plot')._fullData.length > 3"  # and two labels


@pytest.fixture(scope="module")
def store(home: Path) -> CorpusStore:
    return CorpusStore(home / "corpora")


def add_corpus(store: CorpusStore, name: str) -> Corpus:
    labels = {
        "kind": tuple(text.split()[1] for text in TEXTS),
        "half": tuple("first" if text[-2] < "g" else "second" for text in TEXTS),
    }
    return store.add(name, ReadTexts(tuple(TEXTS), labels=labels))


def import_noise(store: CorpusStore, corpus: Corpus, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(TEXTS), 4)).astype(np.float32)
    import_vectors(store, corpus, ReadVectors("own.npy", vectors))


def see(page: Page) -> dict[str, Any]:
    page.locator(".js-plotly-plot .main-svg:visible").first.wait_for()
    settled(page)
    seen: dict[str, Any] = page.evaluate(SEEN)
    return seen


def choose(page: Page, box: str, option: str) -> None:
    field = page.get_by_role("combobox", name=box).first
    field.scroll_into_view_if_needed()  # figures that come into view are drawn, and may move it
    settled(page)
    field.click()
    page.get_by_role("option", name=option).first.click()
    settled(page)


def zoom(page: Page) -> None:
    see(page)
    drag(page, page.locator(".js-plotly-plot").first, (0.3, 0.3), (0.6, 0.6))
    settled(page)


def click_first_table(page: Page, row: int, changes: str) -> None:
    """Click a row of a table, its head being row 0, which changes the address."""
    table = page.locator("[data-testid=stMain] [data-testid=stDataFrame]").first
    table.evaluate("node => node.scrollIntoView({block: 'center'})")
    settled(page)
    table.click(position={"x": 60, "y": 37 * row + 17})
    expect(page).to_have_url(re.compile(changes))
    settled(page)


def hide_a_label(page: Page) -> None:
    """Back shows it, and Forward hides it; so do colours by another column, and Back."""
    settled(page)
    map_ = page.locator(".js-plotly-plot").first
    count = "figure => figure._fullData.filter(({visible}) => visible === 'legendonly').length"

    def expect_hidden(n: int) -> None:
        address = expect(page)
        (address.to_have_url if n else address.not_to_have_url)(re.compile("hidden"))
        settled(page)
        assert map_.evaluate(count) == n

    map_.locator(".legendtoggle").nth(1).click()
    expect_hidden(1)
    page.go_back()
    expect_hidden(0)
    page.go_forward()
    expect_hidden(1)
    choose(page, "Colour by", "half")
    expect_hidden(0)
    page.go_back()
    expect_hidden(1)
    map_.evaluate("figure => figure.send('click', {customdata: 20})")
    page.wait_for_function(RINGED)
    expect_hidden(1)
    forget_old_entries(page)


def forget_old_entries(page: Page) -> None:
    """Of an earlier version's link, whose hidden entries were numbers, none stays."""
    hidden = r"(hidden%22%3A%5B)(%22\w+%22)(%5D)"
    other = page.context.new_page()
    other.goto(re.sub(hidden, r"\g<1>3%2C1\3", page.url))
    settled(other)
    other.locator(".js-plotly-plot").first.locator(".legendtoggle").nth(1).click()
    expect(other).to_have_url(re.compile(hidden))
    other.close()


def search_and_select(page: Page) -> None:
    make = page.get_by_role("button", name="Make both maps")
    make.click()
    expect(make).to_have_count(0)
    hide_a_label(page)
    page.get_by_role("textbox", name="Search").fill("long")
    page.keyboard.press("Enter")
    answer = page.locator(".st-key-headline-maps").filter(has_text="contain “long”")
    expect(answer).to_be_visible()
    found, disagreement = (
        page.get_by_text("12 texts containing “long”"),
        page.get_by_role("radio", name="Where the maps disagree"),
    )
    disagreement.click()
    expect(found).to_be_hidden()
    click_first_table(page, 1, r"text=(?!21)\d")
    page.go_back()
    expect(page).to_have_url(re.compile("text=21"))
    page.go_back()
    expect(found).to_be_visible()
    expect(answer).to_be_visible()
    page.go_forward()
    expect(disagreement).to_be_checked()
    expect(found).to_be_hidden()
    click_first_table(page, 0, "sort-")


def evaluate(page: Page) -> None:
    page.get_by_role("button", name="Evaluate", exact=True).click()
    page.get_by_text("Done in").wait_for(timeout=2 * MINUTE)
    page.get_by_text("Show all columns").click()
    expect(page).to_have_url(re.compile("all-numbers"))


def type_blueprints(page: Page) -> None:
    page.get_by_role("textbox", name="Blueprints").fill("(3, 1)")
    page.keyboard.press("Enter")
    settled(page)
    page.get_by_role("textbox", name="Text", exact=True).fill("The ferry leaves at noon.")
    page.keyboard.press("Control+Enter")


def choose_pair(page: Page) -> None:
    page.get_by_role("combobox", name="Text A").wait_for(timeout=2 * MINUTE)
    choose(page, "Order of texts", "Clustered")
    choose(page, "Text A", "5.")
    click_first_table(page, 0, "sort-")


def tune_and_ask(page: Page) -> None:
    tune(page, "The ferry leaves at noon.\nA storm closed the harbour.")
    page.get_by_text("Done in").wait_for(timeout=2 * MINUTE)
    choose(page, "Look at text", "2.")
    page.get_by_role("textbox", name="A sentence with a blank").fill("The storm closed the ___.")
    page.keyboard.press("Enter")
    zoom(page)
    page.locator(".js-plotly-plot .legendtoggle").nth(1).click()  # hides a line


def type_two_texts(page: Page) -> None:
    page.get_by_role("textbox", name="Text 1").fill("A ferry leaves.")
    page.keyboard.press("Enter")


STATES: dict[str, Callable[[Page], None]] = {
    "how_it_works?length=Step+by+step&step=4": lambda page: choose(
        page, "Masked token", "input 2 "
    ),
    "blueprints": type_blueprints,
    "compare?compare-example=Word+order&m2=cls&m3=none": choose_pair,
    "corpus_map?corpus={corpus}&map-b=cls&map-a-reducer=PCA&map-b-reducer=PCA": search_and_select,
    "evaluation?evaluation-source=Saved+corpus&evaluation-corpus={corpus}": evaluate,
    "layers?layers-view=A+text&layers-more=true": lambda page: choose(page, "Token", "3."),
    "training": zoom,
    "frozen_features?frozen-more=Two+texts": type_two_texts,
    "?epochs=2": tune_and_ask,
}


@pytest.mark.slow
def test_a_link_shows_what_was_seen_whatever_others_did(
    page: Page, browser: Browser, address: str, store: CorpusStore
) -> None:
    corpus = add_corpus(store, "notes")
    links, before = {}, {}
    for state, act in STATES.items():
        page.goto(f"{address}/{state.format(corpus=corpus.id)}")
        see(page) if "corpus={corpus}" not in state else settled(page)
        act(page)
        before[state], links[state] = see(page), page.url
        assert "ferry" not in page.url

    for seed in (1, 2):
        import_noise(store, corpus, seed)
        add_corpus(store, f"newer {seed}")
    spec = embedder_spec("sep")
    list(embed_corpus(store, corpus, make_embedder(spec, LOADERS)))
    with browser.new_context(reduced_motion="reduce") as context:
        other = context.new_page()
        other.set_default_timeout(MINUTE)
        other.goto(f"{address}/corpus_map?corpus={corpus.id}")
        expect(other.get_by_role("combobox", name="Map", exact=True)).to_have_value(
            "mean"  # not what was imported last
        )

    for state, link in links.items():
        with browser.new_context(viewport=page.viewport_size, reduced_motion="reduce") as context:
            visitor = context.new_page()
            visitor.set_default_timeout(MINUTE)
            visitor.goto(link)
            assert see(visitor) == before[state], state

    store.delete(corpus)
    for state in STATES:
        if "{corpus}" in state:
            page.goto("about:blank")
            page.goto(links[state])
            expect(page.get_by_text("The corpus of this link was deleted")).to_be_visible()
            expect(page.locator(".js-plotly-plot")).to_have_count(0)


def test_back_and_forward_change_one_thing_at_a_time(page: Page, address: str) -> None:
    page.goto(f"{address}/micro_tuning?epochs=3")  # the first page by its name
    expect(page.get_by_role("heading", name="Micro-tuning", level=1)).to_be_visible()
    expect(page).to_have_url(f"{address}/?epochs=3")
    page.get_by_role("link", name="Masking blueprints", exact=True).click()
    blueprints = page.get_by_role("textbox", name="Blueprints")
    seen = [see(page)]
    values = [blueprints.input_value(), "(3, 1)", "(1, 4)"]
    for value in values[1:]:
        blueprints.fill(value)
        page.keyboard.press("Enter")
        seen.append(see(page))
    page.get_by_role("link", name="How it works", exact=True).click()
    page.locator("[aria-label='What the model puts into the blank'] .main-svg").first.wait_for()
    story = see(page)
    page.get_by_role("button", name="Next").click()
    expect(page).to_have_url(re.compile("moment=2"))
    next_moment = see(page)

    page.go_back()
    expect(page).not_to_have_url(re.compile("moment"))
    assert see(page) == story
    for place in (2, 1, 0):
        page.go_back()
        expect(blueprints).to_have_value(values[place])
        assert see(page) == seen[place]
        expect(page.get_by_test_id("stAlert")).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("heading", name="Micro-tuning", level=1)).to_be_visible()
    for place in (0, 1, 2):
        page.go_forward()
        expect(blueprints).to_have_value(values[place])
        assert see(page) == seen[place]
    page.go_forward()
    page.go_forward()
    expect(page).to_have_url(re.compile("moment=2"))
    assert see(page) == next_moment
