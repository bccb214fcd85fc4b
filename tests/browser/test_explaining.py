"""What every layer thinks of a word, and which words make two texts alike, as a person meets it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from tests.support.app import LOOKS, look, looks, problems, settled

MINUTE = 60_000
STAGE = {"width": 1920, "height": 1080}
BEYOND = """() => [...document.querySelectorAll('.js-plotly-plot')]
    .filter(plot => plot.checkVisibility({visibilityProperty: true}))
    .flatMap(plot => [...plot.querySelectorAll('.xtick text, .ytick text, .gtitle')]
        .filter(label => label.getBoundingClientRect().bottom
            > Math.min(innerHeight, plot.getBoundingClientRect().bottom) + 2)
        .map(label => label.textContent))"""

pytestmark = pytest.mark.browser


def check_on_stage(page: Page, slide: str, terms: str, n_steps: int = 0) -> None:
    """The slide alone, dark, with its terms, its headline and nothing cut off; then leave."""
    page.set_viewport_size(STAGE)
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Stage", exact=True).click()
    page.locator("html[data-stage]").wait_for(state="attached")
    for _ in range(n_steps):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(f"window.neuralvizStage?.shown === '{slide}'")
    settled(page)
    shown = page.locator(f".{slide}")
    expect(shown.get_by_text(terms)).to_be_visible()
    expect(shown.locator("[class*='st-key-headline-']").first).to_be_in_viewport()
    expect(shown.locator(".main-svg:visible").first).to_be_in_viewport()
    assert problems(page) == []
    assert page.evaluate(BEYOND) == []
    page.keyboard.press("Escape")
    look(page, max(LOOKS))


def test_the_lens_names_a_content_word_before_and_after_training(page: Page, address: str) -> None:
    page.goto(f"{address}/layers")
    headline = page.locator(".st-key-headline-layers-lens")
    expect(headline).to_contain_text("the hidden “bank” a probability of 1%, ")
    expect(headline).to_contain_text("after training on the text 70%.")
    assert {how: found for how in looks(page) if (found := problems(page))} == {}
    look(page, max(LOOKS))

    page.get_by_role("textbox", name="Text", exact=True).fill(
        "A customer opened a chargeback for order 6432."
    )
    page.keyboard.press("Control+Enter")
    expect(headline).to_contain_text(
        re.compile("hidden “(customer|opened|order)” .* after training on the text ")
    )
    settled(page)
    area = page.locator(".st-key-layers-lens-after .nsewdrag").first
    box = area.bounding_box()
    x, y = box["x"] + 5.5 * box["width"] / 11, box["y"] + box["height"] / 2  # the sixth of eleven
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.locator(".st-key-layers-lens-after .hoverlayer .hovertext").first.wait_for()
    page.mouse.click(x, y)
    expect(headline).to_contain_text("the hidden “##back”")
    expect(page).to_have_url(re.compile("layers-lens-token=5"))
    check_on_stage(page, "st-key-slide-layers-lens", "## continues a word or number")

    field = page.get_by_role("combobox", name="Model")
    field.click()
    page.get_by_role("option", name="all-MiniLM-L6-v2").click()
    expect(headline).to_contain_text("This model has no prediction head, but an embedding table")
    expect(page.get_by_text("Tuned on the text")).to_have_count(0)
    settled(page)
    assert problems(page) == []


def test_why_two_texts_are_alike_word_by_word_and_sentence_by_sentence(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/compare?m2=sbert-wk&m3=none&compare-more=Why%3F")
    headline = page.locator(".st-key-headline-compare-why")
    expect(headline).to_contain_text("most to", timeout=2 * MINUTE)
    words = page.locator(".st-key-compare-why-0 .js-plotly-plot")
    settled(page)
    assert problems(page) == []
    sums = words.evaluate(
        "figure => figure._fullData[0].customdata.map(row => [...row]"
        ".map(cell => +cell[1].replace('−', '-')))"
    )
    for *values, total in sums:
        assert sum(values) == pytest.approx(total, abs=0.02)  # rounded words

    passages = read_texts(Source.from_path(sample_data() / "textbooks.csv")).texts
    long_texts = [" ".join(" ".join(passages[k : k + 20]).split()[:300]) for k in (0, 200)]
    page.get_by_role("radio", name="Paste").click()
    page.get_by_role("textbox", name="Your texts").fill("\n".join(long_texts))
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(headline).to_contain_text(re.compile(r"sentence that adds most .*(“\d+\. |several)"))
    settled(page)
    names = words.evaluate("figure => figure.layout.xaxis.ticktext")
    assert names == [*map(str, range(1, len(names) - 1)), "no word", "sum"]
    assert 5 < len(names) < 40
    assert words.evaluate("figure => figure._fullData[0].texttemplate")  # a number in each cell
    look(page, min(LOOKS))
    assert problems(page) == []
    check_on_stage(page, "st-key-slide-compare-view", "A row adds up to its sum", 1)
