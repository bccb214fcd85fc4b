"""The app as a person meets it: started as users start it, driven with mouse and keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.app import CLIPPED_OR_OVERLAPPING, LOOKS, drag, look, problems, settled, tune
from tests.support.downloads import assert_pictures_are_whole

LOSS = "[aria-label='Loss by epoch']"
MINUTE = 60_000

pytestmark = pytest.mark.browser


def watch_places(page: Page) -> None:
    """From the first three figures on, note where they are 20 times a second."""
    page.locator(LOSS).locator(".main-svg").first.wait_for(timeout=MINUTE)
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length >= 1")
    page.evaluate(
        """() => {
            window.places = {}
            const note = () => {
                const main = document.querySelector('[data-testid=stMain]')
                const top = main.querySelector('h1').getBoundingClientRect().top
                const tops = [...main.querySelectorAll('.js-plotly-plot')].slice(0, 3)
                    .map(figure => Math.round(figure.getBoundingClientRect().top - top))
                window.places[tops] = (window.places[tops] ?? 0) + 1
            }
            window.noting = setInterval(note, 50)
        }"""
    )


def assert_stayed(page: Page) -> None:
    """The first figure has been in one place since `watch_places`; others may come below it."""
    settled(page)
    seen = page.evaluate("() => { clearInterval(window.noting); return window.places }")
    tops = {places.partition(",")[0] for places in seen}
    assert len(tops) == 1, f"tops of the figures, and how often they were there: {seen}"
    assert sum(seen.values()) > 5


def test_every_page_fits_and_back_leads_back(page: Page, address: str) -> None:
    """Wide, one after the other by its link; narrow, by *Back*."""
    names = ("How it works", "Micro-tuning", "Layer dynamics", "Masking blueprints")
    page.goto(f"{address}/how_it_works")
    found = {}

    def note_problems(name: str, how: str) -> None:
        expect(page.get_by_role("heading", name=name, exact=True).first).to_be_visible()
        page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=MINUTE)
        settled(page)
        found[name, how] = problems(page)
        if how == "wide":
            assert_pictures_are_whole(page)

    note_problems(names[0], "wide")
    for name in names[1:]:
        page.get_by_role("link", name=name, exact=True).click()
        note_problems(name, "wide")
    narrow = look(page, min(LOOKS))
    for name in reversed(names):
        note_problems(name, narrow)
        if name != names[0]:
            page.go_back()
    assert {where: what for where, what in found.items() if what} == {}


def test_the_stage_shows_one_slide_and_the_arrow_keys_lead_through_the_steps(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/how_it_works?step=4&stage")
    page.locator("html[data-stage] .main-svg").first.wait_for(timeout=MINUTE)
    heading, sidebar = page.locator("h3").first, page.get_by_test_id("stSidebar")
    expect(heading).to_have_text("4. Loss")
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("button", name="Download", exact=True)).to_be_hidden()
    large = """() => {
        const {width, height, bottom} = document.querySelector('.main-svg').getBoundingClientRect()
        const letters = document.querySelector('.xtick text').style.fontSize
        return width > 1300 && height > 380 && bottom <= 900 && parseFloat(letters) >= 26
    }"""
    page.wait_for_function(large)
    place = page.locator(".neuralviz-stage-place")
    expect(place).to_have_text("How it works · 4 / 8 · 1 / 2")
    page.keyboard.press("ArrowRight")  # what more this step tells
    expect(heading).to_be_hidden()
    expect(place).to_have_text("How it works · 4 / 8 · 2 / 2")
    page.keyboard.press("PageDown")  # as the presenters' remote controls do
    expect(heading).to_have_text("5. Weights before and after")
    expect(place).to_have_text("How it works · 5 / 8 · 1 / 2")
    page.keyboard.press("ArrowLeft")
    expect(heading).to_have_text("4. Loss")
    page.keyboard.press("Escape")
    expect(sidebar).to_be_visible()
    page.get_by_role("button", name="Stage", exact=True).click()
    expect(sidebar).to_be_hidden()
    page.keyboard.press("s")
    expect(sidebar).to_be_visible()

    page.goto(f"{address}/evaluation?example=Scored+pairs&view-pairs=Pair+by+pair&stage")
    place, last = (
        page.locator(".neuralviz-stage-place"),
        page.locator("[data-testid=stMain] .st-key-slide-evaluation-view"),
    )
    last.locator(".main-svg").first.wait_for(state="attached", timeout=MINUTE)
    chosen = page.locator("[class*='st-key-views-'] [role=radio][aria-checked=true]")
    for number, name in ((2, "Errors"), (3, "Pair by pair")):  # all, though the second was chosen
        page.keyboard.press("ArrowRight")
        expect(chosen).to_have_text(name)
        expect(last).to_be_visible()
        expect(place).to_have_text(re.compile(rf"^Evaluation · {number} / \d"))
        settled(page)
    expect(last.locator(".main-svg").first).to_be_visible()
    page.keyboard.press("Escape")

    page.goto(f"{address}/frozen_features?frozen-more=All+numbers&stage")
    table = page.locator(".st-key-slide-frozen-view [data-testid=stDataFrame]")
    table.wait_for(state="attached", timeout=MINUTE)
    ladder = page.locator(".st-key-slide-frozen-ladder")
    expect(ladder.locator(".neuralviz-figure:visible")).to_have_count(1)
    expect(ladder.get_by_text("People scored how alike")).to_be_visible()  # what the terms mean
    page.keyboard.press("ArrowRight")  # the table and what one types in are no slides
    expect(chosen).to_have_text("Predictions")
    expect(place).to_have_text("Frozen features · 2 / 3")


@pytest.mark.slow
def test_what_a_stop_of_the_tour_asks_for_is_typed_on_the_stage(page: Page, address: str) -> None:
    page.goto(f"{address}/layers?tour=5&stage")
    headline = page.locator(".st-key-headline-layers-lens")
    headline.wait_for(state="attached", timeout=MINUTE)
    page.wait_for_function("window.neuralvizStage?.shown === 'st-key-slide-tour'")
    field = page.get_by_role("textbox", name="Text", exact=True)
    expect(field).to_be_hidden()  # the stop's own slide
    page.keyboard.press("ArrowRight")
    expect(field).to_be_visible()
    settled(page)
    field.fill("Interest rates hold steady.")
    page.keyboard.press("ArrowLeft")  # in the field
    page.wait_for_function("window.neuralvizStage.shown === 'st-key-slide-layers-lens'")
    page.keyboard.press("Control+Enter")
    expect(headline).to_contain_text(re.compile("“(interest|rates|hold|steady)”"))
    expect(field).not_to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("window.neuralvizStage.shown === 'st-key-slide-tour'")


def test_a_question_leads_to_the_figure_that_answers_it(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="How it works", exact=True).click()
    page.get_by_role("button", name="Ten questions").click()
    page.get_by_role("button", name="Which words changed the weights most?").click()
    answer = page.locator(".st-key-slide-recorded-words")
    answer.wait_for(timeout=MINUTE)
    card = page.locator(".st-key-asked")
    expect(card).to_contain_text("Which words changed the weights most?")
    expect(answer).to_be_in_viewport(ratio=0.9)
    page.wait_for_function(
        """() => {
            const [card, answer] = ['.st-key-asked', '.st-key-slide-recorded-words'].map(
                (one) => document.querySelector(one).getBoundingClientRect())
            return card.top >= 0 && card.bottom <= answer.top && answer.bottom <= 900
        }"""
    )
    expect(answer).to_have_css("outline-style", "solid")
    expect(card).to_have_attribute("role", "status")  # screen readers say it
    card.get_by_role("button", name="Close").click()
    expect(card).to_be_hidden()
    expect(answer).to_have_css("outline-style", "none")


def test_tuning_a_text_keeps_zoom_and_places_and_a_link_brings_the_text_back(
    page: Page, address: str
) -> None:
    """The text is never run as HTML."""
    text = "The old bridge <img src=x onerror=window.hacked=1> & <script>window.hacked=1</script>"
    page.goto(f"{address}/?epochs=90")
    expect(page.get_by_text("Recorded run")).to_be_visible(timeout=MINUTE)
    page.locator(LOSS).locator(".main-svg").first.wait_for(timeout=MINUTE)
    tune(page, text)
    page.get_by_text(re.compile(r"[Ee]poch \d+ of 90")).wait_for(timeout=2 * MINUTE)
    watch_places(page)
    figure = page.locator(LOSS)
    known = "figure => Array.from(figure._fullData[0].y).filter(Number.isFinite).length"
    page.wait_for_function(f'({known})(document.querySelector("{LOSS}")) >= 3', timeout=MINUTE)
    drag(page, figure, (0.1, 0.2), (0.6, 0.8))
    zoomed = figure.evaluate("figure => [...figure.layout.xaxis.range]")
    at_zoom = figure.evaluate(known)
    page.get_by_text("Done in").wait_for(timeout=2 * MINUTE)
    page.wait_for_function(f'({known})(document.querySelector("{LOSS}")) >= 90', timeout=MINUTE)
    assert at_zoom < 90, "the run was over before the zoom: nothing was shown"
    assert figure.evaluate("figure => [...figure.layout.xaxis.range]") == zoomed
    losses = figure.evaluate("figure => Array.from(figure._fullData[0].y).filter(Number.isFinite)")
    assert losses[-1] < 0.5 * losses[0]
    expect(page.get_by_text("Which words shaped the embedding").first).to_be_visible()
    assert_stayed(page)
    assert page.evaluate(CLIPPED_OR_OVERLAPPING) == []
    words = page.evaluate(
        "() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot =>"
        " [...plot.querySelectorAll('.ytick text, .xtick text')].map(tick => tick.textContent))"
    )
    assert {"<", "img", "script", ">", "/", "&", "bridge"} <= set(words)  # each word as it is
    link = page.url
    assert "bridge" not in link
    page.goto("about:blank")
    page.goto(link)
    field = page.get_by_role("textbox", name="Your texts")
    expect(field).to_have_value(text, timeout=MINUTE)
    assert page.locator("img[src=x]").count() == 0
    assert page.evaluate("window.hacked") is None
