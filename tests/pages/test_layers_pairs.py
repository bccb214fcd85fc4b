"""Layers measured on scored pairs, without a browser."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.reading.source import Source
from tests.support.pages import page_at
from tests.support.waiting import wait_until

FIGURES = 5  # layers, ablation, two sweeps, pairs


def finish(page: AppTest) -> AppTest:
    """Run the page until its newest work is over."""
    wait_until(lambda: runs(page)[-1].is_over)
    return page.run()


def runs(page: AppTest) -> list:
    return list(page.session_state["layers-pairs-runs"])


def new_page(**address: str) -> AppTest:
    view = {
        "layers_view": "Scored pairs",
        "layers_model": "Model in the sidebar",
        "layers_more": "true",
    }
    return page_at("layers", 120, **(view | address))


def opened(**address: str) -> AppTest:
    return new_page(**address).run()


@pytest.fixture
def page(bundled, monkeypatch) -> AppTest:  # the model is loaded before the clock runs
    from neuralviz.ui.layers import pairs

    monkeypatch.setattr(pairs, "MAX_PAIRS", 12)
    return finish(opened())


def upload(page: AppTest, content: bytes, name: str = "own.csv") -> AppTest:
    page.session_state["layers-pairs-kept"] = Source(name, content)  # as the uploader leaves it
    return page.segmented_control(key="layers-pairs-source").set_value("Upload").run()


def uploaded(content: bytes, name: str = "own.csv") -> AppTest:
    """The page with a file at once, so that no example is measured before it."""
    page = new_page()
    page.session_state["layers-pairs-source"] = "Upload"
    page.session_state["layers-pairs-kept"] = Source(name, content)
    return page.run()


def captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption)


def figures(page: AppTest) -> int:
    return len(page.get("bidi_component"))


def test_opens_with_the_example_measured(bundled, monkeypatch):
    from neuralviz.ui.layers import pairs

    page = opened()
    assert len(runs(page)[-1].task.pairs) == 300  # all of them
    assert "300 pairs written for neuralviz" in captions(page)
    runs(page)[-1].stop()
    monkeypatch.setattr(pairs, "MAX_PAIRS", 20)
    page = finish(opened())
    assert not page.exception
    assert not page.error
    assert figures(page) == FIGURES
    assert "20 pairs in " in captions(page)
    assert any("Spearman with people's scores is" in text.value for text in page.markdown)
    assert runs(page)[-1].status == "done"
    of_layers = [one for row in runs(page)[-1].result.by_layer.values() for one in row]
    for title, name in pairs.COEFFICIENTS.items():
        page.segmented_control(key="layers-coefficient").set_value(title).run()
        best = np.nanmax([getattr(one.correlation, name) for one in of_layers])
        headline = f"{title} with people's scores is {best:.2f} on 20 pairs, against"
        assert any(headline in text.value for text in page.markdown)


def test_pairs_of_ones_own(page):
    content = "a,b,score\n" + "".join(f"<b>dog {i}</b>,a cat {i},{i}\n" for i in range(5))
    page = finish(upload(page, content.encode()))
    assert not page.exception
    assert "5 pairs from own.csv" in captions(page)
    assert runs(page)[-1].result.pairs.sentences1[0] == "<b>dog 0</b>"
    assert figures(page) == FIGURES


def test_a_file_that_cannot_be_used_gets_a_sentence(page):
    for content, says in (
        (b'a,b,score\nA,B,1\n"C,D,2\n', "unmatched quotation mark \\(line 3"),
        (b"a,b,score\nA,B,x\n", "0 pairs"),
        (bytes(range(256)) * 4, "not a text file"),
    ):
        upload(page, content)
        assert not page.exception
        assert says in page.error[0].value
        page.segmented_control(key="layers-pairs-source").set_value("Example").run()
        assert not page.error
        assert figures(page) == FIGURES


@pytest.mark.slow
def test_what_was_finished_before_stop_is_kept(bundled, monkeypatch):
    from neuralviz.evaluation import layer_pairs
    from neuralviz.ui.layers import pairs

    measure = layer_pairs.measure_layers

    def held(model, pairs, *, should_stop):
        for number, result in enumerate(measure(model, pairs, should_stop=should_stop)):
            yield result
            if number == 0:
                wait_until(should_stop)

    monkeypatch.setattr(pairs, "MAX_PAIRS", 40)
    monkeypatch.setattr(layer_pairs, "measure_layers", held)
    page = opened()
    run = runs(page)[-1]
    wait_until(lambda: run.result is not None and len(run.result.pairs) >= 32)
    page.run()
    assert figures(page) == 1
    page.button(key=f"layers-pairs-stop-{run.id}").click().run()
    finish(page)
    assert runs(page)[-1].status == "stopped"
    assert "Stopped after 32 of 40 pairs" in page.info[0].value
    assert figures(page) == FIGURES
    monkeypatch.setattr(layer_pairs, "measure_layers", measure)
    page.button(key=f"layers-pairs-again-{run.id}").click().run()
    finish(page)
    assert not page.info
    assert len(runs(page)[-1].result.pairs) == 40


def test_a_link_brings_an_uploaded_table_back(bundled):
    content = "a,b,score\n" + "".join(f"dog {i},a cat {i},{i}\n" for i in range(5))
    page = finish(uploaded(content.encode()))
    view = page.query_params["view"]
    other = finish(opened(view=view))
    assert not other.exception
    assert other.segmented_control(key="layers-pairs-source").value == "Upload"
    assert runs(other)[-1].task == runs(page)[-1].task
    page = finish(upload(page, content.replace("dog", "gull").encode()))
    assert page.query_params["view"] != view  # a link keeps its table
    assert not page.run().toast
