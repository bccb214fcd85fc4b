"""The micro-tuning page without a browser: what opens, what is refused, what a run leaves."""

from __future__ import annotations

import re
import sys
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.jobs import Run
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.jobs.queue import note_run, result_key
from neuralviz.micro_tuning.events import RUN_FORMAT
from neuralviz.models.shared import ModelRef
from neuralviz.ui import micro_tuning
from neuralviz.ui.micro_tuning import list_embeddings, recorded_run
from tests.support import pages
from tests.support.pages import (
    find_labelled,
    finish_run,
    page_at,
    press,
    read_captions,
    read_markdown,
    read_messages,
)
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(bundled: object) -> AppTest:  # the model is loaded before the clock runs
    return page_at("micro_tuning").run()


def paste(text: str, **address: str | list[str]) -> AppTest:
    """The page of an address, opened with a pasted text."""
    page = page_at("micro_tuning", **address)
    page.session_state["micro-tuning-source"] = "Paste"
    page.session_state["micro-tuning-pasted"] = text
    return page.run()


def scrolls(page: AppTest) -> bool:
    names = [one.proto.component_name for one in page.get("bidi_component")]
    return any(name.endswith("pointer") for name in names)


last_run = partial(pages.last_run, kind="micro-tuning")


def tune(page: AppTest) -> AppTest:
    return finish_run(press(page, "Tune"), "micro-tuning")


def test_links_bring_a_run_and_the_earlier_one_over_which_it_is_drawn_back(
    bundled: object, tmp_path: Path
) -> None:
    page = tune(paste("The dog barks.\nA cat sleeps.", epochs="2"))
    assert not page.exception
    first = last_run(page)
    assert first.status == "done"
    assert (first.result.loss[-1] < first.result.loss[0]).all()
    report = first.result.reports[0]
    assert report.shares.sum() + report.decay_share == pytest.approx(1, abs=1e-6)
    assert "precision: exact (float32)" in read_captions(page)
    page.number_input(key="epochs").set_value(3).run()
    assert "belong to other texts or settings" in read_captions(page)
    tune(page)
    assert "belong to other texts or settings" not in read_captions(page)
    comparison = "Run 2, compared with run 1 (wide line): epochs 3 instead of 2."
    assert comparison in read_markdown(page)
    page.pills(key="shown-runs").set_value([1]).run()
    assert [heading.value for heading in page.subheader if "Run" in heading.value] == ["Run 1"]
    alone = {**page.query_params, "epochs": "3"}  # which a browser writes
    page.pills(key="shown-runs").set_value([1, 2]).run()
    page.toggle(key="tune-more-1").set_value(True).run()
    page.session_state["sort-tune-predictions-1"] = 6  # a click on the head of the fourth column
    page.run()
    both = {**page.query_params, "epochs": "3", "tune-more-1": "true"}
    view, kept = page.query_params["view"], tmp_path / "results"
    wait_until(lambda: len(list(kept.glob(f"{view}.*"))) == 2, 10)

    again = page_at("micro_tuning", **both).run()
    assert not again.exception
    assert comparison in read_markdown(again)
    assert "Result of" in read_captions(again)
    assert last_run(again).is_reopened
    assert again.dataframe[0].value["probability after"].is_monotonic_increasing
    assert last_run(again).result.texts == ("The dog barks.", "A cat sleeps.")
    embeddings = last_run(again).result.embeddings()
    np.testing.assert_array_equal(embeddings, last_run(page).result.embeddings())
    faded = page_at("micro_tuning", **alone).run()  # the run of other settings that was looked at
    assert "epochs 3 instead" not in read_markdown(faded)
    assert "belong to other texts or settings" in read_captions(faded)
    assert "epochs: 2" in read_captions(faded)
    for shown in ("A" * 12, view, "../views"):
        lost = page_at("micro_tuning", **both | {"shown-runs": shown}).run()
        assert not lost.exception, shown
        assert "is not saved here" in lost.warning[0].value, shown
        assert "shown-runs" not in lost.query_params
    other = page_at("micro_tuning", view=view, epochs="4").run()
    assert "micro-tuning-runs" not in other.session_state  # nothing of other settings
    assert scrolls(page)
    page.session_state["visit"] = 7, "Micro-tuning", False  # coming back from another page
    assert not scrolls(page.run())


def test_stop_keeps_what_was_learnt_and_a_stopped_run_is_started_again(page: AppTest) -> None:
    page.number_input(key="epochs").set_value(1000).run()
    press(page, "Tune")
    run = last_run(page)
    wait_until(lambda: page.run() and run.result.epochs_done(0) > 2)
    press(page, "Stop")
    finish_run(page, "micro-tuning")
    assert not page.exception
    assert run.status == "stopped"
    assert 0 < run.result.epochs_done(0) < 1000
    assert "is known only once a run has finished" in read_captions(page)
    assert "so far" not in read_captions(page)  # the bar counts the epochs
    press(page, "Run again")
    second = last_run(page)
    assert (second.number, second.task) == (2, run.task)
    second.stop()
    assert second.wait(60)


def test_a_stopped_run_is_met_at_its_address_though_the_same_is_recorded(bundled: object) -> None:
    record = recorded_run()
    task = TuneTexts(ModelRef.from_id("bundled"), record.texts, record.settings)
    stopped = Run(task, work=result_key(task))
    stopped.stop()
    note_run(stopped)
    page = page_at("micro_tuning", run=stopped.id).run()
    assert "This run was stopped. Press “Run again” to start it." in read_messages(page)
    press(page, "Run again")
    assert last_run(page).task == task
    last_run(page).stop()


@pytest.mark.parametrize(
    ("text", "rate", "warning"),
    [
        ("Привет, как дела сегодня?", 0.01, "choose a model that knows its words"),
        ("😀 **bold** bell \x07 and null \x00 inside", 1e6, "Lower the learning rate"),
    ],
)
def test_odd_texts_and_rates_give_a_result(
    text: str, rate: float, warning: str, bundled: object
) -> None:
    page = paste(text, epochs="2")
    tune(page.number_input(key="learning_rate").set_value(rate).run())
    assert not page.exception
    assert last_run(page).status == "done"
    assert last_run(page).result.embeddings().shape[1] == 1152
    assert warning in read_messages(page)


def test_a_press_without_a_text_is_answered_and_many_texts_are_cut(bundled: object) -> None:
    page = paste("   \n \n")
    press(page, "Tune")
    assert not page.exception
    assert "Micro-tuning needs a text." in read_messages(page)
    assert "belong to other texts or settings" in read_captions(page)
    assert "micro-tuning-runs" not in page.session_state
    texts = page.text_area(key="micro-tuning-pasted")
    texts.set_value("\n".join(f"Line number {i} of many." for i in range(1200))).run()
    assert "Using the first 1,000 of 1,200" in read_captions(page)
    for text in ("word " * 20_000, "字" * 24_000):
        page.text_area(key="micro-tuning-pasted").set_value(text).run()
        assert re.search(r"about \d+ (min|h) on this machine", read_messages(page))
    page.text_area(key="micro-tuning-pasted").set_value("word" * 5000).run()
    assert "on this machine" not in read_messages(page)  # it is one token


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [("blueprints", "(0,3)", "keep at least 1"), ("epochs", 5000, "from 1 to 1000, not 5000.")],
)
def test_settings_that_make_no_sense_are_refused_and_kept(
    field: str, value: object, sentence: str, bundled: object
) -> None:
    page = page_at("micro_tuning", precision="fast").run()
    kind = page.text_input if field == "blueprints" else page.number_input
    kind(key=field).set_value(value).run()
    assert sentence in read_messages(page)
    press(page, "Tune")
    assert not page.exception
    assert "Not started. Correct the settings first." in read_messages(page)
    assert "micro-tuning-runs" not in page.session_state
    assert kind(key=field).value == value


def test_models_that_a_link_names_are_not_loaded_unasked() -> None:
    page = page_at("micro_tuning")
    page.session_state["model"] = "someone/huge-model"
    page.run()
    assert not page.exception
    assert "is not loaded yet" in read_messages(page)
    assert any(button.label == "Load" for button in page.button)
    assert "Recorded run" in read_captions(page)  # what was there stays
    assert "or to another model." in read_captions(page)
    assert "Press **Tune**" not in read_captions(page), "there is no such button"


def test_a_half_learnt_text_is_not_compared_with_finished_ones(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = copy(recorded_run())
    record.loss, record.delta_norm = record.loss.copy(), record.delta_norm.copy()
    record.loss[4:, 2], record.delta_norm[4:, 2] = np.nan, np.nan
    record.reports = {i: record.reports[i] for i in (0, 1)}
    assert list_embeddings(record)["epochs"].tolist() == [10, 10, 4]
    monkeypatch.setattr(micro_tuning, "recorded_run", lambda: record)
    page.run()
    assert not page.exception
    first, second = record.embeddings()[:2]
    assert f"cosine similarity of {first @ second:.2f}." in read_markdown(page)
    find_labelled(page, "Look at text").set_value(2).run()
    assert not page.exception
    assert "cosine similarity of" not in read_markdown(page)


@pytest.mark.slow
def test_the_recorded_run_is_what_the_model_does(bundled: object) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from record_run import TARGET, record_run

    kept, anew = RUN_FORMAT.unpack(TARGET.read_bytes()), record_run()
    assert kept.texts == anew.texts
    assert kept.settings == anew.settings
    assert kept.loss == pytest.approx(anew.loss, abs=1e-3)
    assert (kept.embeddings() * anew.embeddings()).sum(axis=1).min() > 0.9999
    for old, new in zip(kept.reports.values(), anew.reports.values(), strict=True):
        assert old.shares == pytest.approx(new.shares, abs=1e-3)
        assert old.text.tokens == new.text.tokens


def test_a_delta_is_tried_on_any_sentence(page: AppTest) -> None:
    def fill(sentence: str) -> str:
        find_labelled(page, "A sentence with a blank: ___").set_value(sentence).run()
        return read_markdown(finish_run(page, "try-delta"))

    assert "after micro-tuning on text 1 it is “boats”" in read_markdown(page)  # at once
    assert "try-delta-runs" not in page.session_state
    answer = fill("She sat on the ___ of the river.")
    before = re.search(
        r"best guess for the blank was (“\w+” \([\d.]+%\)); after micro-tuning on", answer
    )
    assert before is not None
    assert re.search(r"after micro-tuning on text 1 it is “banks” \(\d\d%\)\.", answer)
    page.slider(key="delta-scale").set_value(0.0).run()
    finish_run(page, "try-delta")
    still = f"after adding 0 × the delta of text 1 it is still {before[1]}."
    assert still in read_markdown(page)
    fill("No blank.")
    assert not page.exception
    assert "The sentence has no blank. Write ___ for the word" in read_messages(page)


def test_the_most_similar_texts_lead_to_what_makes_them_so(
    bundled: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_at("micro_tuning").run()
    for _ in range(2):
        task = pages.last_run(pages.open_reasons(page, monkeypatch), "compare").task
        assert [spec.method for spec in task.specs] == ["neural", "mean"]
        assert len(task.texts) == 2
