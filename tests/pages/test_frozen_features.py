"""The page on frozen features without a browser: what opens, what is refused, what is kept."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.evaluation.ladder_results import best_rung
from neuralviz.reading.source import Source
from neuralviz.training.similarity.folder import similarity_models
from tests.support.models import save_causal
from tests.support.pages import page_at
from tests.support.waiting import wait_until

NOUNS = "harbour gull baker bread square market letter brother ship north child boat".split()
RUNGS = ["MLP over cosines", "Siamese encoders"]


def table(n: int = 40, score: str | None = None) -> bytes:
    """So many scored pairs of different texts, as CSV."""
    lines = ["sentence1,sentence2,score"]
    for at in range(n):
        noun, other = NOUNS[at % 12], NOUNS[(at * 5 + at // 12) % 12]
        lines.append(f"The {noun} is old {at}.,The {other} is new {at}.,{score or at % 6}")
    return "\n".join(lines).encode()


def page_of(content: bytes | None = None, name: str = "own.csv", **address) -> AppTest:
    """The page with the bundled model, and a file at once."""
    page = page_at("frozen_features", 120, frozen_model="Model in the sidebar", **address)
    if content is not None:
        page.session_state["frozen-source"] = "Upload"
        page.session_state["frozen-kept"] = Source(name, content)
    return page


def look(page: AppTest) -> AppTest:
    """Run the page until its layers are there."""
    page.run()
    wait_until(lambda: page.session_state["frozen-layers-runs"][-1].is_over)
    return page.run()


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


def train(page: AppTest) -> AppTest:
    """Press *Train*, wait for the end, and show the page after it."""
    press(page, "Train")
    wait_until(lambda: runs(page)[-1].is_over)
    return page.run()


def runs(page: AppTest) -> list:
    return page.session_state["frozen-runs"]


def said(page: AppTest) -> str:
    assert not page.exception
    kinds = (page.error, page.warning, page.info, page.success, page.caption, page.markdown)
    return " ".join(element.value for kind in kinds for element in kind)


def test_it_opens_with_the_recorded_ladder_and_trains_nothing_by_itself() -> None:
    page = page_at("frozen_features", 120).run()
    assert "Recorded run. Press “Train” to see it live." in said(page)
    assert "(the best rung on the dev pairs)" in said(page)
    assert "Spearman with people's scores is" in said(page)
    assert "is furthest off on" in said(page)
    assert "frozen-runs" not in page.session_state
    assert "frozen-layers-runs" not in page.session_state
    (two,) = page.session_state["frozen-two-runs"]
    wait_until(lambda: two.is_over)
    assert "The paper's model gives this pair 0.47 of 1" in said(page.run())
    page.segmented_control(key="frozen-seeds").set_value("Three").run()
    assert "The results below are of other pairs or settings" in said(page)
    page.pills(key="frozen-rung").set_value("siamese").run()
    assert "**Siamese encoders** is furthest off on" in said(page)


def test_pairs_of_ones_own_are_looked_at_trained_on_scored_and_kept(bundled) -> None:
    page = look(page_of(table(), frozen_rungs=RUNGS))
    assert "40 pairs from own.csv." in said(page)
    assert "Spearman with people's scores is" in said(page)
    assert "(the best rung" not in said(page)
    page = train(page)
    run = runs(page)[-1]
    assert run.status == "done", run.error
    assert list(run.result.results) == [("cosines", 42), ("siamese", 42)]
    assert "24 train pairs, 8 dev pairs, 8 test pairs." in said(page)
    wait_until(lambda: page.session_state["frozen-two-runs"][-1].is_over)
    page.run()
    page.text_input(key="frozen-two-2").set_value("A <b>brown</b> dog is jumping.").run()
    wait_until(lambda: page.session_state["frozen-two-runs"][-1].is_over)
    page.run()
    scores = page.session_state["frozen-two-runs"][-1].result
    assert all(scores.pair[rung] <= scores.equal[rung] for rung in scores.pair)
    assert "the highest score that there is" in said(page)
    assert "<b>" not in said(page)

    page.text_input(key="frozen-name").set_value("a b").run()
    assert "Name the similarity model with" in said(press(page, "Save"))
    page.text_input(key="frozen-name").set_value("mine").run()
    assert "Saved as “mine”" in said(press(page, "Save"))
    assert [one.name for one in similarity_models()] == ["mine"]
    assert "Saved as “mine”" in said(press(page, "Save"))  # the second click of two
    best = best_rung(run.result)
    assert page.pills(key="frozen-rung").value == best  # no longer the recorded ladder's
    assert page.pills(key="frozen-save-of").value == best
    (other,) = {*page.pills(key="frozen-save-of").options} - {
        page.pills(key="frozen-save-of").format_func(page.pills(key="frozen-save-of").value)
    }
    page.pills(key="frozen-save-of").set_value(
        "siamese" if other == "Siamese encoders" else "cosines"
    ).run()
    assert "already a model called" in said(press(page, "Save"))

    link = page.query_params["view"]
    view = link[0] if isinstance(link, list) else link
    again = look(page_at("frozen_features", 120, frozen_model="Model in the sidebar", view=view,
                         frozen_rungs=RUNGS))  # fmt: skip
    assert runs(again)[-1].is_reopened
    np.testing.assert_array_equal(
        runs(again)[-1].result.results["cosines", 42].predicted,
        run.result.results["cosines", 42].predicted,
    )


@pytest.mark.slow
def test_two_clicks_train_once_and_stop_keeps_what_there_is(bundled) -> None:
    page = look(page_of(table(60)))
    press(page, "Train")
    first = runs(page)[-1]
    press(page, "Train")
    assert runs(page) == [first]
    wait_until(lambda: first.result.curves or first.is_over)
    first.stop()
    wait_until(lambda: first.is_over)
    page.run()
    assert not page.exception
    assert first.status == "stopped"
    assert "Run again" in [button.label for button in page.button]


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (table(30, "3"), "All scores of the train pairs are 3."),
        (("sentence1,sentence2,score\n" + "a,b,1\n" * 30).encode(), "too many pairs share"),
    ],
    ids=["constant", "one text twice"],
)  # fmt: skip
def test_what_cannot_be_learnt_from_is_told_in_a_sentence(bundled, content, answer) -> None:
    page = train(look(page_of(content)))
    assert answer in said(page)
    assert not page.exception


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"", "own.csv"),
        (b"sentence1,sentence2,score\na,b,high\nc,d,\n,e,NaN\n", "has 0 pairs"),
        (b"text,label\na,b\n", "Choose columns for these roles: First text"),
    ],
    ids=["empty", "words for scores", "other columns"],
)
def test_what_is_no_table_of_pairs_is_told_in_a_sentence(bundled, content, answer) -> None:
    page = page_of(content).run()
    assert answer in said(page).replace("\\", "")
    assert "Recorded run." in said(page)  # what was seen before stays


def test_a_model_that_predicts_the_next_token_is_loaded_and_climbed(tmp_path) -> None:
    folder = save_causal(tmp_path / "small")
    page = page_of(table(), frozen_rungs=RUNGS[:1])
    page.query_params["frozen-model"] = "bundled"
    page.run()
    page.selectbox(key="frozen-model").set_value(str(folder)).run()
    assert "is not loaded yet" in said(page)
    press(page, "Load")
    page = train(look(page))
    run = runs(page)[-1]
    assert run.status == "done", run.error
    assert "neural embedding" not in run.result.baselines


def test_columns_of_any_name_are_guessed_and_can_be_assigned() -> None:
    rows = table(24).decode().splitlines()[1:]
    content = "\n".join(["left,right,gold", *rows]).encode()
    page = look(page_of(content))
    assert "guessed from their content" in said(page)
    boxes = {box.label: box for box in page.selectbox}
    assert (boxes["Score"].value, boxes["Header"].value) == ("gold", "detect automatically")
    assert "The table contains" not in boxes
    boxes["Score"].set_value("right").run()
    assert "The column “right” has two roles. Give it one." in said(page)
