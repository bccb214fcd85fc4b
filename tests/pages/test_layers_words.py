"""Words of a corpus by variance, without a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.waiting import wait_until

FIGURES = 4  # the most and least uneven words, three groups
PAGE = Path(__file__).parents[2] / "pages" / "layers.py"


def runs(page: AppTest) -> list:
    return list(page.session_state["layers-words-runs"])


def finish(page: AppTest) -> AppTest:
    wait_until(lambda: runs(page)[-1].is_over)
    return page.run()


def new_page() -> AppTest:
    page = AppTest.from_file(str(PAGE), default_timeout=120)
    page.query_params["layers-view"] = "A corpus"
    page.query_params["layers-model"] = "Model in the sidebar"
    page.query_params["layers-more"] = "true"
    return page


def pasted(text: str) -> AppTest:
    """The page on which a text is pasted at once, so that no example is followed before it."""
    page = new_page()
    page.session_state["layers-words-source"] = "Paste"
    page.session_state["layers-words-pasted"] = text
    return page.run()


def figures(page: AppTest) -> int:
    return len(page.get("bidi_component"))


@pytest.mark.slow
def test_opens_with_the_sample_sentences_in_three_groups(bundled):
    page = finish(new_page().run())
    assert not page.exception
    assert not page.error
    assert figures(page) == FIGURES
    result = runs(page)[-1].result
    assert result.n_read == result.total > 600
    assert any(f"in {result.total:,} texts" in text.value for text in page.caption)
    assert len(page.dataframe[0].value) >= 60
    assert set(page.dataframe[0].value["group"]) == {"low", "middle", "high"}
    assert page.dataframe[0].value["occurrences"].min() >= page.number_input[0].value

    # rarer words on demand, without new work
    before, run = len(page.dataframe[0].value), runs(page)[-1]
    page.number_input[0].set_value(2).run()
    assert not page.exception
    assert len(page.dataframe[0].value) > before
    assert runs(page) == [run]
    page.number_input[0].set_value(page.number_input[0].max).run()
    assert "Lower this minimum" in page.error[0].value


@pytest.mark.parametrize(
    ("text", "says"),
    [("a", "corpus has 1"), ("🙂", "corpus has 0"), ("...", "corpus has 0")],
)
def test_too_few_words_get_a_sentence(bundled, text, says):
    page = finish(pasted(text))
    assert not page.exception
    assert says in page.error[0].value
    assert page.text_area[0].value == text


@pytest.mark.parametrize(
    "text",
    ["<script>alert(1)</script> one two", "The same text.\nThe same text.", "rain " * 1200 + "a b"],
    ids=["markup", "identical texts", "a long text"],
)
def test_odd_corpora_are_followed(bundled, text):
    page = finish(pasted(text))
    assert not page.exception
    assert not page.error
    assert figures(page) == FIGURES


def test_a_link_brings_pasted_texts_back(bundled):
    page = finish(pasted("one two three\nfour five six"))
    view = page.query_params["view"]
    other = AppTest.from_file(str(PAGE), default_timeout=120)
    other.query_params["layers-view"] = "A corpus"
    other.query_params["view"] = view
    finish(other.run())
    assert not other.exception
    assert other.text_area[0].value == "one two three\nfour five six"
    assert runs(other)[-1].result.total == 2
