"""The page on frozen features without a browser: what opens, what is refused, what is kept."""

from __future__ import annotations

import json

import numpy as np
from streamlit.testing.v1 import AppTest

from neuralviz.reading.source import Source
from neuralviz.training.similarity.kept import similarity_models
from tests.support.models import save_causal
from tests.support.pages import finish_run, last_run, page_at, press, read_page

NOUNS = "harbour gull baker bread square market letter brother ship north child boat".split()
RUNGS = ["MLP over cosines", "Siamese encoders"]
MODEL = "bundled"


def table(n: int = 40, score: str | None = None) -> bytes:
    """So many scored pairs of different texts, as CSV."""
    lines = ["sentence1,sentence2,score"]
    for at in range(n):
        noun, other = NOUNS[at % 12], NOUNS[(at * 5 + at // 12) % 12]
        lines.append(f"The {noun} is old {at}.,The {other} is new {at}.,{score or at % 6}")
    return "\n".join(lines).encode()


def page_of(content: bytes, **address) -> AppTest:
    """The page with an uploaded file, by default of the bundled model."""
    page = page_at("frozen_features", 120, **{"frozen_model": MODEL} | address)
    page.session_state["frozen-source"] = "Upload"
    page.session_state["frozen-kept"] = Source("own.csv", content)
    return page


def look(page: AppTest) -> AppTest:
    """Run the page until its layers are there."""
    return finish_run(page.run(), "frozen-layers")


def test_it_opens_with_the_recorded_ladder_and_trains_nothing_by_itself() -> None:
    page = page_at("frozen_features", 120).run()
    assert not page.exception
    assert "Recorded run. Press “Train” to see it live." in read_page(page)
    assert (
        "The network **Log-variance loss** does not beat linear regression, a simple formula"
        in read_page(page)
    )
    assert "Spearman correlation with people's scores is" in read_page(page)
    assert "frozen-runs" not in page.session_state
    assert "frozen-layers-runs" not in page.session_state
    page.segmented_control(key="frozen-more").set_value("Two texts").run()
    assert "In the FREEZE paper, this pair gets 0.47" in read_page(finish_run(page, "frozen-two"))
    page.segmented_control(key="frozen-seeds").set_value("Three").run()
    assert "The results below are of other data or settings" in read_page(page)
    page.segmented_control(key="frozen-more").set_value("Predictions").run()
    rung = next(group for group in page.get("button_group") if group.label == "Rung")
    rung.set_value("siamese").run()
    assert "The worst of 60 predictions of **Siamese encoders** is" in read_page(page)


def test_pairs_of_ones_own_are_trained_on_scored_saved_and_brought_back(bundled) -> None:
    page = look(page_of(table(), frozen_rungs=RUNGS))
    assert "40 pairs from own.csv." in read_page(page)
    page = finish_run(press(page, "Train"), "frozen")
    run = last_run(page, "frozen")
    assert run.status == "done", run.error
    assert list(run.result.results) == [("cosines", 42), ("siamese", 42)]
    page.segmented_control(key="frozen-more").set_value("All numbers").run()
    assert "24 train pairs, 8 dev pairs, 8 test pairs." in read_page(page)
    assert list(page.dataframe[0].value)[3:5] == ["95% from", "to"]
    formats = {config.get("type_config", {}).get("format") for config in
               json.loads(page.dataframe[0].proto.columns).values()}  # fmt: skip
    assert "%.3f" in formats
    page.segmented_control(key="frozen-more").set_value("Two texts").run()
    page = finish_run(page, "frozen-two")
    page.text_input(key="frozen-two-2").set_value("A <b>brown</b> dog is jumping.").run()
    page = finish_run(page, "frozen-two")
    scores = last_run(page, "frozen-two").result
    assert all(scores.pair[rung] <= scores.equal[rung] for rung in scores.pair)
    assert "two identical texts score" in read_page(page)
    assert "<b>" not in " ".join(element.value for element in page.markdown)

    page.segmented_control(key="frozen-more").set_value("One rung").run()
    page.text_input(key="frozen-name").set_value("a b").run()
    assert "Name the similarity model with" in read_page(press(page, "Save"))
    page.text_input(key="frozen-name").set_value("mine").run()
    assert "Saved as “mine”" in read_page(press(page, "Save"))
    assert [one.name for one in similarity_models()] == ["mine"]
    assert "Saved as “mine”" in read_page(press(page, "Save"))  # the second click of two
    rung = next(group for group in page.get("button_group") if group.label == "Rung")
    rung.set_value("siamese" if rung.value == "cosines" else "cosines").run()
    assert "already a model called" in read_page(press(page, "Save"))

    address = {"view": page.query_params["view"], "frozen_rungs": RUNGS}
    again = look(page_at("frozen_features", 120, frozen_model=MODEL, **address))
    reopened = last_run(again, "frozen")
    assert reopened.is_reopened
    np.testing.assert_array_equal(
        reopened.result.results["cosines", 42].measured.cosines,
        run.result.results["cosines", 42].measured.cosines,
    )


def test_what_cannot_be_learnt_from_is_told_in_a_sentence(bundled) -> None:
    page = press(look(page_of(table(30, "3"))), "Train")
    assert "All scores of the train pairs are 3." in read_page(finish_run(page, "frozen"))


def test_what_is_no_table_of_pairs_is_told_in_a_sentence(bundled) -> None:
    page = page_of(b"text,label\na,b\n").run()
    assert "Choose columns for these roles: First text" in read_page(page)
    assert "Recorded run." in read_page(page)  # what was seen before stays


def test_a_model_that_predicts_the_next_token_is_loaded_and_climbed(tmp_path) -> None:
    folder = save_causal(tmp_path / "small")
    page = page_of(table(), frozen_rungs=RUNGS[:1], frozen_model="bundled").run()
    page.selectbox(key="frozen-model").set_value(str(folder)).run()
    assert "is not loaded yet" in read_page(page)
    page = look(press(page, "Load"))
    run = last_run(finish_run(press(page, "Train"), "frozen"), "frozen")
    assert run.status == "done", run.error
    assert "neural embedding" not in run.result.baselines
