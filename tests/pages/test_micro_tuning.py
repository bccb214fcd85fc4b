"""The micro-tuning page without a browser: what opens, what is refused, what a run leaves."""

from __future__ import annotations

import re
import sys
from copy import copy
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from neuralviz.jobs import Run
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.jobs.results import REASONS, note_end, result_key
from neuralviz.micro_tuning.record import load_record
from neuralviz.models.shared import ModelRef
from neuralviz.ui.micro_tuning import main
from neuralviz.ui.micro_tuning.results import embeddings_table
from neuralviz.ui.micro_tuning.runs import recorded_run
from neuralviz.ui.page import plain
from tests.support.pages import page_at
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(bundled) -> AppTest:  # the model is loaded before the clock runs
    return page_at("micro_tuning").run()


def paste(page: AppTest, text: str) -> AppTest:
    page.segmented_control(key="micro-tuning-source").set_value("Paste").run()
    return page.text_area(key="micro-tuning-pasted").set_value(text).run()


def pasted(text: str, **address: str | list[str]) -> AppTest:
    """The page of an address, opened with a pasted text."""
    page = page_at("micro_tuning", **address)
    page.session_state["micro-tuning-source"] = "Paste"
    page.session_state["micro-tuning-pasted"] = text
    return page.run()


def tune(page: AppTest, *, wait: float = 60) -> AppTest:
    next(button for button in page.button if button.label == "Tune").click().run()
    wait_until(
        lambda: "micro-tuning-runs" not in page.session_state or last_run(page).is_over, wait
    )
    return page.run()


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


def last_run(page: AppTest):
    return page.session_state["micro-tuning-runs"][-1]


def messages(page: AppTest) -> str:
    return " ".join(element.value for element in [*page.error, *page.warning, *page.info])


def test_a_stopped_run_is_met_at_its_address_though_the_same_is_recorded(
    bundled,
) -> None:
    recorded = recorded_run()
    task = TuneTexts(ModelRef.from_id("bundled"), recorded.texts, recorded.settings)
    stopped = Run(task, work=result_key(task))
    stopped.stop()
    note_end(stopped)
    page = page_at("micro_tuning", run=stopped.id).run()
    assert messages(page) == plain(REASONS["stopped"])
    press(page, "Run again")
    wait_until(lambda: last_run(page).is_over, 60)
    assert last_run(page).task == task
    assert last_run(page).status == "done"


def test_tuning_leaves_losses_shares_predictions_and_products(bundled) -> None:
    page = pasted("The dog barks.\nA cat sleeps.")
    tune(page)
    assert not page.exception
    run = last_run(page)
    assert run.status == "done"
    assert (run.result.loss[-1] < run.result.loss[0]).all()
    report = run.result.reports[0]
    assert report.shares.sum() + report.decay_share == pytest.approx(1, abs=1e-6)
    assert report.loss_after < 1.1 * run.result.loss[-1, 0]  # once learnt, it goes to and fro
    assert len(page.dataframe) == 1
    assert "Done in" in captions(page)
    assert not page.get("progress")


def test_a_link_brings_the_run_on_ones_own_texts_back(bundled, tmp_path: Path) -> None:
    page = pasted("The dog barks.\nA cat sleeps.")
    tune(page)
    view = page.query_params["view"]
    wait_until(lambda: list((tmp_path / "results").glob(f"{view}.*")), 10)
    again = page_at("micro_tuning", view=view).run()
    assert not again.exception
    assert last_run(again).is_reopened
    assert last_run(again).result.texts == ("The dog barks.", "A cat sleeps.")
    np.testing.assert_array_equal(
        last_run(again).result.embeddings(), last_run(page).result.embeddings()
    )
    assert "Result of" in captions(again)
    assert not again.get("progress")
    other = page_at("micro_tuning", view=view, epochs="3").run()
    assert "micro-tuning-runs" not in other.session_state  # nothing of other settings


def test_a_half_learnt_text_is_not_compared_with_finished_ones(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = copy(recorded_run())
    record.loss, record.delta_norm = record.loss.copy(), record.delta_norm.copy()
    record.loss[4:, 2], record.delta_norm[4:, 2] = np.nan, np.nan
    record.reports = {i: record.reports[i] for i in (0, 1)}
    assert embeddings_table(record)["epochs"].tolist() == [10, 10, 4]
    monkeypatch.setattr(main, "recorded_run", lambda: record)
    page.run()
    assert not page.exception
    first, second = record.embeddings()[:2]
    cosine = f"{first @ second:.2f}"
    assert f"The embeddings of the two texts have a cosine similarity of {cosine}." in said(page)
    labelled(page.selectbox, "Look at text").set_value(2).run()
    assert not page.exception
    assert "cosine similarity of" not in said(page)


@pytest.mark.slow
def test_the_recorded_run_is_what_the_model_does(bundled) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from record_run import TARGET, record_run

    kept, anew = load_record(TARGET), record_run()
    assert kept.texts == anew.texts
    assert kept.settings == anew.settings
    assert kept.loss == pytest.approx(anew.loss, abs=1e-3)
    assert (kept.embeddings() * anew.embeddings()).sum(axis=1).min() > 0.9999
    for old, new in zip(kept.reports.values(), anew.reports.values(), strict=True):
        assert old.shares == pytest.approx(new.shares, abs=1e-3)
        assert old.text.tokens == new.text.tokens


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "text",
    [
        "😀",
        "Привет, как дела сегодня?",
        "<script>alert(1)</script> **bold** $x$ [link](http://localhost)",
        "bell \x07 and null \x00 inside",
    ],
)
def test_odd_texts_give_a_result(bundled, text: str) -> None:
    page = pasted(text, epochs="1")
    tune(page)
    assert not page.exception
    assert last_run(page).status == "done"
    if "Привет" in text:
        assert "another language" in messages(page)


def test_a_press_without_a_text_is_answered(page: AppTest) -> None:
    for text in ("", "   \n \n"):
        paste(page, text)
        assert "needs a text" not in messages(page)
        press(page, "Tune")
        assert not page.exception
        assert "Micro-tuning needs a text." in messages(page), text
    assert "micro-tuning-runs" not in page.session_state


@pytest.mark.parametrize(
    ("field", "refused"),
    [
        (
            "blueprints",
            {
                "(0,3)": "keep at least 1",
                "rubbish": "Write pairs such as",
                "": "at least one blueprint",
            },
        ),
        ("epochs", {0: "no weight changes", 5000: "from 1 to 1000, not 5000."}),
        ("learning_rate", {0.0: "above 0"}),
    ],
)
def test_settings_that_make_no_sense_are_refused_and_kept(page, field, refused) -> None:
    for value, said in refused.items():
        kind = "text_input" if field == "blueprints" else "number_input"
        getattr(page, kind)(key=field).set_value(value).run()
        assert not page.exception
        assert said in messages(page).replace("\\", "")
        press(page, "Tune")
        assert "Not started. Correct the settings first." in messages(page)
        assert "micro-tuning-runs" not in page.session_state
        assert getattr(page, kind)(key=field).value == value


def test_a_learning_rate_too_high_is_said_and_what_there_is_is_kept(bundled) -> None:
    page = pasted("The dog barks.", epochs="2")
    page.number_input(key="learning_rate").set_value(1e6).run()
    tune(page)
    assert not page.exception
    assert "Lower the learning rate" in messages(page)
    assert last_run(page).result.embeddings().shape[1] == 1152


def test_a_thousand_texts_and_twenty_thousand_words_are_announced(page: AppTest) -> None:
    paste(page, "\n".join(f"Line number {i} of many." for i in range(1200)))
    assert "Using the first 1,000 of 1,200" in " ".join(caption.value for caption in page.caption)
    paste(page, "word " * 20_000)
    assert "minutes on two cores" in messages(page)
    paste(page, "字" * 24_000)
    assert "minutes on two cores" in messages(page)


def test_stopping_keeps_what_was_learnt(page: AppTest) -> None:
    page.number_input(key="epochs").set_value(1000).run()
    next(button for button in page.button if button.label == "Tune").click().run()
    run = last_run(page)
    wait_until(lambda: page.run() and run.result.epochs_done(0) > 2)
    next(button for button in page.button if button.label == "Stop").click().run()
    assert run.wait(30)
    page.run()
    assert not page.exception
    assert run.status == "stopped"
    assert 0 < run.result.epochs_done(0) < 1000
    assert "appear only when micro-tuning is finished" in captions(page)
    told = messages(page).replace("\\", "")
    half = re.search(r"Stopped. Of 3 texts: 3 under way \(epoch (\d+) of", told)
    assert half
    last = int(half[1]) - 1  # whose loss is known
    assert f"After {last:,} of 1,000 epochs, the losses of 3 texts are" in said(page)


def test_a_second_run_on_the_same_text_is_drawn_over_the_first(bundled) -> None:
    page = pasted("The dog barks.", epochs="2")
    tune(page)
    assert "compared with run" not in said(page)
    page.number_input(key="epochs").set_value(3).run()
    assert "belong to other texts or settings" in captions(page)
    tune(page)
    assert not page.exception
    assert "belong to other texts or settings" not in captions(page)
    assert [s.value for s in page.subheader if "Run" in s.value] == ["Run 2"]
    assert "Run 2, compared with run 1 (wide line): epochs 3 instead of 2." in said(page)
    page.pills(key="shown-runs").set_value([1]).run()
    assert [s.value for s in page.subheader if "Run" in s.value] == ["Run 1"]
    assert "compared with run" not in said(page)


def test_a_link_brings_the_earlier_run_back_with_the_newer_one(bundled, tmp_path: Path) -> None:
    page = pasted("The dog barks.", epochs="1")
    tune(page)
    assert "earlier" not in page.query_params
    page.number_input(key="epochs").set_value(2).run()
    tune(page)
    wait_until(lambda: len(list((tmp_path / "results").iterdir())) == 2, 10)
    views = sorted((tmp_path / "views").iterdir())
    again = page_at("micro_tuning")
    for name, value in page.query_params.items():
        again.query_params[name] = value
    again.query_params["epochs"] = "2"  # as a browser does
    again.run()
    assert not again.exception
    assert "Run 2, compared with run 1 (wide line): epochs 2 instead of 1." in said(again)
    assert again.query_params["earlier"] == page.query_params["earlier"]
    assert sorted((tmp_path / "views").iterdir()) == views  # no new one is made
    again.pills(key="shown-runs").set_value([2]).run()
    assert "earlier" not in again.query_params
    again.pills(key="shown-runs").set_value([1, 2]).run()
    assert again.query_params["earlier"] == page.query_params["earlier"]


def test_a_delta_is_tried_on_any_sentence(page: AppTest, bundled) -> None:
    def sentence():
        return labelled(page.text_input, "A sentence with a blank: ___")

    text = recorded_run().texts[0]
    start, end = sentence().value.split("___")
    assert text.startswith(start)
    assert text.endswith(end)
    word = text[len(start) : len(text) - len(end)].lower()
    if "Press **Predict**" in captions(page):  # the model is not loaded yet
        press(page, "Predict")
    tried(page)
    assert re.search(rf"after micro-tuning on text 1 it is “{word}” \(\d\d%\)\.", said(page))
    sentence().set_value("She sat on the ___ of the river.").run()
    tried(page)
    before = re.search(r"best guess was (“\w+” \([\d.]+%\)); after micro-tuning on", said(page))
    assert before is not None
    assert re.search(r"after micro-tuning on text 1 it is “banks” \(\d\d%\)\.", said(page))
    page.slider(key="delta-scale").set_value(0.0).run()
    tried(page)
    assert f"after adding 0 × the delta of text 1 it is still {before[1]}." in said(page)
    labelled(page.selectbox, "Add the delta of").set_value(2).run()
    page.slider(key="other-delta-scale").set_value(-1.5).run()
    tried(page)
    assert not page.exception
    assert "after adding −1.5 × the delta of text 3" in said(page)
    tune(page)  # the question stays
    tried(page)
    assert sentence().value == "She sat on the ___ of the river."
    assert "after adding −1.5 × the delta of text 3" in said(page)
    sentence().set_value("No blank.").run()
    tried(page)
    assert not page.exception
    assert "The sentence has no blank. Write ___ for the word" in messages(page).replace("\\", "")


def labelled(widgets, label: str):
    return next(widget for widget in widgets if widget.label == label)


def tried(page: AppTest) -> None:
    wait_until(lambda: page.session_state["try-delta-runs"][-1].is_over, 60)
    page.run()


def said(page: AppTest) -> str:
    return " ".join(one.value for one in page.markdown).replace("\\", "")


def test_a_comparison_with_one_step_is_started_and_shown(
    bundled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[dict[str, str]] = []
    monkeypatch.setattr(
        st, "switch_page", lambda _, query_params: opened.append(dict(query_params))
    )
    page = page_at("micro_tuning").run()
    for _ in range(2):
        press(page, "Compare with one step")
        assert not page.exception
    assert opened[0] == opened[1]
    assert len(list((tmp_path / "views").iterdir())) == 1
    (run,) = page.session_state["compare-runs"]
    assert run.wait(60)

    compare = page_at("compare")
    for name, value in opened[0].items():
        compare.query_params[name] = value
    wait_until(lambda: list((tmp_path / "results").glob("*")), 10)
    compare.run()  # a second browser
    assert not compare.exception
    assert compare.session_state["compare-runs"][-1].task == run.task
    assert compare.session_state["compare-runs"][-1].is_reopened
    assert "their rankings of 3 pairs" in said(compare)
    assert "of other texts or settings" not in captions(compare)


def test_a_diverged_text_is_never_drawn_as_a_perfect_loss(bundled) -> None:
    from neuralviz.micro_tuning import check_settings
    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.micro_tuning.watching import watch

    settings = check_settings(bundled, learning_rate=1e20, epochs=3)
    record = RunRecord("bundled", settings, ["A text."])
    record = record.having(list(watch(bundled, record.texts, settings)))
    assert record.diverged == {0}
    assert record.loss_rose(0)
    assert not (record.loss == 0).any()


def test_models_that_a_link_names_are_not_loaded_unasked() -> None:
    page = page_at("micro_tuning")
    page.session_state["model"] = "someone/huge-model"
    page.run()
    assert not page.exception
    assert "is not loaded yet" in messages(page)
    assert any(button.label == "Load" for button in page.button)
    assert "Recorded run" in captions(page)  # what was there stays
    assert "These figures belong to another model." in captions(page)


def test_the_precision_is_exact_at_first_and_said_of_every_run(bundled) -> None:
    page = pasted("The dog barks.", epochs="2")
    assert page.selectbox(key="precision").value == "exact"
    assert not [one for one in page.number_input if one.key == "tolerance"]
    tune(page)
    assert "bundled, exact (float32)" in captions(page)
    page.selectbox(key="precision").set_value("fast").run()
    page.number_input(key="tolerance").set_value(0.01).run()
    tune(page)
    assert not page.exception
    assert last_run(page).result.settings.precision == "fast"
    assert "bundled, fast (tolerance 0.01)" in captions(page)
    page.number_input(key="tolerance").set_value(0.0).run()
    assert "The tolerance must be above 0 and below 1" in messages(page)


def captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption).replace("\\", "")


def test_the_second_click_of_a_double_click_is_no_second_run(page: AppTest) -> None:
    def click() -> int:
        next(button for button in page.button if button.label == "Tune").click().run()
        assert not page.exception
        return len(page.session_state["micro-tuning-runs"])

    page.number_input(key="epochs").set_value(1000).run()
    assert (click(), click()) == (1, 1)
    page.number_input(key="epochs").set_value(999).run()
    assert click() == 2
    runs = page.session_state["micro-tuning-runs"]
    for run in runs:
        run.stop()
        assert run.wait(60)
    assert click() == 3  # what is over can be run again
    page.session_state["micro-tuning-runs"][-1].stop()


def test_a_fifth_run_at_once_is_refused(page: AppTest) -> None:
    for epochs in (996, 997, 998, 999, 1000):
        page.number_input(key="epochs").set_value(epochs).run()
        next(button for button in page.button if button.label == "Tune").click().run()
    assert "You already have 4 unfinished runs" in messages(page)
    runs = page.session_state["micro-tuning-runs"]
    assert len(runs) == 4
    for run in runs:
        run.stop()
    assert all(run.wait(60) for run in runs)


def stopped_and_run_again(page: AppTest):
    """Tune, stop, and press *Run again*; the run that was stopped."""
    press(page, "Tune")
    first = last_run(page)
    first.stop()
    assert first.wait(60)
    press(page.run(), "Run again")
    return first


def test_a_stopped_run_can_be_started_again(page: AppTest) -> None:
    page.number_input(key="epochs").set_value(1000).run()
    first = stopped_and_run_again(page)
    assert not page.exception
    second = last_run(page)
    assert (first.status, second.number, second.task) == ("stopped", 2, first.task)
    assert "Run 2" in {heading.value for heading in page.subheader}
    second.stop()
    assert second.wait(60)
