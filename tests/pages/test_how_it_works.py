"""The way from two texts to their cosine similarity, without a browser."""

from __future__ import annotations

import math
import re

import pytest

from neuralviz.ui import how_it_works
from tests.support.pages import count_figures, page_at, press


@pytest.fixture(autouse=True)
def _each_walk_is_over_before_the_page_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(how_it_works, "PATIENCE", 120)


@pytest.mark.parametrize(
    "texts",
    [
        ("A dog chased the ball across the park.", "The dog ran after a ball in the park."),
        pytest.param(("<script>alert(1)</script>", "🙂"), marks=pytest.mark.slow),
    ],
    ids=["example", "markup and an emoji"],
)
def test_next_leads_through_every_step(texts: tuple[str, str]) -> None:
    page = page_at("how_it_works", 180).run()
    page.text_area[0].set_value(texts[0])
    page.text_area[1].set_value(texts[1]).run()
    for length, n_steps in (("In two minutes", 4), ("Step by step", 8)):
        page.segmented_control(key="length").set_value(length).run()
        for number in range(1, n_steps + 1):
            assert not page.exception
            assert not page.error
            assert page.subheader[0].value.startswith(f"{number}. ")
            assert count_figures(page) or (n_steps, number) == (8, 2)  # whose tokens are words
            shows_numbers = any("(1,152 changes)" in e.proto.body for e in page.get("html"))
            assert shows_numbers is ((n_steps, number) == (4, 4))
            if number < n_steps:
                press(page, "Next")
    press(page, "Back")
    assert page.subheader[0].value == "7. Embedding"


def test_a_link_opens_its_step_and_texts_that_cannot_be_walked_get_a_sentence() -> None:
    page = page_at("how_it_works", 180, step="8").run()
    assert page.subheader[0].value == "8. Cosine similarity"
    for text, sentence in ((" \n ", "Text 1 is empty"), ("cat " * 600, "Text 1 has 600 tokens")):
        page.text_area[0].set_value(text).run()
        assert sentence in page.error[0].value
        assert page.text_area[0].value == text
        assert count_figures(page) == 1  # of the last valid texts
    page.segmented_control(key="length").set_value("In two minutes")
    page.text_area[0].set_value("Ein Hund jagte gestern den Ball quer durch den Stadtpark.").run()
    assert "hardly reads text 1" in page.warning[0].value
    assert not page.exception


def test_the_numbers_shown_give_the_results_shown() -> None:
    page = page_at("how_it_works", 180, step="4").run()
    for position in (1, 5, 9):
        page.selectbox[0].select_index(position).run()
        loss = next(element.value for element in page.markdown if "ln(" in element.value)
        shown = re.search(r"ln\((.+?)\) = (\S+?)\$", loss)
        assert shown is not None
        assert -math.log(read_tex(shown[1])) == pytest.approx(float(shown[2]), abs=0.006)
    press(page, "Next")
    for neuron in range(4):
        page.selectbox[0].select_index(neuron).run()
        lines = page.latex[0].value.split(r" \end{aligned}")[0].split(r"\\")
        gradient, first, second = (read_tex(line.split("= ")[-1]) for line in lines[:3])
        assert first == pytest.approx(0.1 * gradient, rel=1e-5)
        assert second == pytest.approx(0.001 * gradient**2, rel=1e-3)
        weight, decay, step = map(float, re.findall(r"-?\d+\.\d+", lines[4]))
        assert len(lines[5].split(".")[1].strip()) == 7  # the decay shows in the result
        assert read_tex(lines[5].strip("&= ")) == pytest.approx(weight - decay - step, abs=2e-7)


def read_tex(tex: str) -> float:
    return float(tex.replace(r"\cdot 10^{", "e").replace("}", ""))
