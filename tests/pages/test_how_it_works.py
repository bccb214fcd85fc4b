"""The way from two texts to their cosine similarity, without a browser."""

import math
import re
import threading
from functools import cache
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.micro_tuning import walkthrough
from neuralviz.ui.how_it_works import main
from neuralviz.ui.how_it_works.steps import STEPS

PAGE = Path(__file__).parents[2] / "pages" / "how_it_works.py"


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(main, "PATIENCE", 120)  # each walk is over before the page is looked at


@pytest.fixture(scope="module", autouse=True)
def each_pair_is_walked_once():
    once = cache(walkthrough.walk_through)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walkthrough, "walk_through", lambda *words, should_stop: once(*words))
        yield


@pytest.fixture
def page():
    return AppTest.from_file(str(PAGE), default_timeout=180).run()


def figures(page):
    return len(page.get("bidi_component"))


def button(page, label):
    return next(b for b in page.button if b.label == label)


def test_next_leads_through_every_step_and_back_again(page):
    assert button(page, "Back").disabled
    seen = [page.subheader[0].value]
    for _ in range(9):
        button(page, "Next").click().run()
        assert not page.exception
        assert not page.error
        seen.append(page.subheader[0].value)
        assert figures(page) or page.dataframe  # tokens are shown as words and a table
    assert [title.split(".")[0] for title in seen] == [str(i) for i in range(1, 11)]
    assert button(page, "Next").disabled
    button(page, "Back").click().run()
    assert page.subheader[0].value == "9. Embedding"


def test_the_first_visit_reads_what_happens_while_the_model_trains(monkeypatch):
    may_end = threading.Event()
    monkeypatch.setattr(main, "PATIENCE", 0)
    monkeypatch.setattr(walkthrough, "walk_through", lambda *_words, **_: may_end.wait(60))
    page = AppTest.from_file(str(PAGE), default_timeout=60)
    page.query_params["step"] = "9"
    page.run()
    may_end.set()
    assert page.subheader[0].value == "9. Embedding"
    said = [one.value for one in page.markdown]
    assert STEPS[8].sentence in said
    assert said[-2].startswith(f"2. **Tokens.** {STEPS[1].sentence}\n3. **Masked inputs.**")
    assert "park." in page.get("html")[0].proto.body
    assert figures(page) == 0


def test_a_link_opens_its_step():
    page = AppTest.from_file(str(PAGE), default_timeout=180)
    page.query_params["step"] = "10"
    page.run()
    assert not page.exception
    assert page.subheader[0].value == "10. Cosine similarity"
    assert figures(page) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "Text 1 is empty"), (" \n ", "Text 1 is empty"), ("cat " * 600, "Text 1 has 600 tokens")],
    ids=["empty", "blank", "long"],
)
def test_a_text_that_cannot_be_walked_gets_a_sentence_and_is_kept(page, text, says):
    page.text_area[0].set_value(text).run()
    assert says in page.error[0].value
    assert page.text_area[0].value == text
    assert figures(page) == 1
    assert not page.exception


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("cat", "🙂"),
        ("שלום עולם", "a\x00b\x1bc"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
    ids=["one token and an emoji", "right to left and control characters", "script, twice"],
)
def test_odd_texts_walk_the_whole_way(page, first, second):
    page.text_area[0].set_value(first)
    page.text_area[1].set_value(second).run()
    for _ in range(9):
        assert not page.exception
        assert not page.error
        button(page, "Next").click().run()
    assert page.subheader[0].value == "10. Cosine similarity"
    assert not page.exception


def test_the_numbers_shown_give_the_results_shown(page):
    for _ in range(3):
        button(page, "Next").click().run()
    for position in (1, 5, 9):
        page.selectbox[0].select_index(position).run()
        loss = next(one.value for one in page.markdown if "ln(" in one.value)
        shown = re.search(r"ln\((.+?)\) = (\S+?)\$", loss)
        assert -math.log(value(shown[1])) == pytest.approx(float(shown[2]), abs=0.006)
    button(page, "Next").click().run()
    for neuron in range(4):
        page.selectbox[0].select_index(neuron).run()
        lines = page.latex[0].value.split(r" \end{aligned}")[0].split(r"\\")
        gradient, first, second = (value(line.split("= ")[-1]) for line in lines[:3])
        assert first == pytest.approx(0.1 * gradient, rel=1e-5)
        assert second == pytest.approx(0.001 * gradient**2, rel=1e-3)
        weight, decay, step = map(float, re.findall(r"-?\d+\.\d+", lines[4]))
        assert len(lines[5].split(".")[1].strip()) == 7  # the decay shows in the result
        assert value(lines[5].strip("&= ")) == pytest.approx(weight - decay - step, abs=2e-7)


def value(tex):
    return float(tex.replace(r"\cdot 10^{", "e").replace("}", ""))
