"""Layer dynamics of a text, and its changes by block, without a browser."""

import pytest

from neuralviz.ui.layers import text as layers_text
from tests.support.pages import page_at
from tests.support.waiting import wait_until

FIGURES = 6  # of a text, with all that the switch shows


def opened(**address):
    return page_at("layers", 180, **({"layers_more": "true"} | address)).run()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(layers_text, "PATIENCE", 120)  # read before the page is looked at


@pytest.fixture
def page():
    return opened()


def figures(page):
    return len(page.get("bidi_component"))


def button(page, label):
    return next(b for b in page.button if b.label == label)


def field(page, label):
    kinds = (page.selectbox, page.number_input, page.slider, page.multiselect)
    return next(w for kind in kinds for w in kind if w.label == label)


def html(page):
    return " ".join(element.proto.body for element in page.get("html"))


def captions(page):
    return " ".join(caption.value for caption in page.caption)


# --- a text ------------------------------------------------------------------------------------


def test_opens_with_an_example_on_it(page):
    assert not page.exception
    assert not page.error
    assert figures(page) == FIGURES
    assert "river</span>" in html(page)
    assert "\\[CLS\\] has 6.6%; \\[SEP\\] is not used" in captions(page)


def test_the_headline_says_which_words_win_and_why():
    page = opened(layers_more="false")
    (headline,) = (text.value for text in page.markdown if "of this embedding" in text.value)
    assert headline.startswith(
        "71% of this embedding comes from “the” \\(2 times\\), “.” and “on”\\: layer 6 "
        "changes them most.\n\n"
    )
    assert "SBERT-WK gives most weight to words that change in jumps" in headline
    assert figures(page) == 1


def test_settings_change_the_importance_and_are_named(page):
    before = html(page)
    field(page, "First layer").select("4").run()
    assert not page.exception
    assert html(page) != before
    field(page, "Omega: weight of alignment").set_value(1.0).run()
    assert "100% alignment and 0% novelty" in captions(page)


def test_an_empty_text_gets_a_sentence_and_the_last_stays(page):
    for text in ("", " \n ", "\u200b"):
        page.text_area[0].set_value(text).run()
        assert not page.exception
        assert "at least one word" in page.error[0].value
        assert "Showing the last valid text." in page.error[0].value
        buttons = [button.label for button in page.button]
        assert "Run again" not in buttons  # it would fail again
        assert figures(page) == FIGURES
        assert page.text_area[0].value == text


def test_odd_texts_are_followed(page):
    for text in ("a", "\U0001f642", "שלום עולם", "a\x00b\x1bc", "word " * 20_000, "z" * 3000):
        page.text_area[0].set_value(text).run()
        assert not page.exception, text[:20]
        assert not page.error, text[:20]
        assert figures(page) == FIGURES, text[:20]


def test_a_long_text_says_that_it_is_cut(page):
    page.text_area[0].set_value("The lamp came on. " * 200).run()
    assert "Only the first one is shown" in page.info[0].value
    assert "Showing the first 60 of" in captions(page)


def test_user_text_is_never_html(page):
    evil = "<script>alert(1)</script> & <b title='\"'>bold</b>"
    page.text_area[0].set_value(evil).run()
    assert not page.exception
    assert "<script>" not in html(page)
    assert "<b " not in html(page)
    assert "&amp;</span>" in html(page)


# --- change by block ------------------------------------------------------------------------------


def tuned(**address):
    return until_over(opened(layers_view="Change by block", **address))


def until_over(page):
    wait_until(lambda: page.session_state["layers-marks-runs"][-1].is_over)
    return page.run()


def test_the_example_is_tuned_on_at_once():
    page = tuned()
    assert not page.exception
    assert not page.error
    assert figures(page) == 2
    run = page.session_state["layers-marks-runs"][-1]
    assert run.status == "done"
    assert run.result.epochs_known == run.task.settings.epochs == 10
    assert not any("key.bias" in name for name in run.task.settings.layers)
    assert run.task.grid.blocks == (0, 1, 2, 3, 4, 5)
    assert page.metric[0].label == "Loss at the masked positions, nats (lower is better)"
    assert run.result.loss[-1] < 0.2 * run.result.loss[0]


def test_no_kind_and_no_text_and_no_epoch_get_a_sentence_and_the_run_stays():
    page = tuned(layers_epochs="1")
    kinds = field(page, "Kinds of layers to tune in every block")
    before = kinds.value
    kinds.set_value([]).run()
    button(page, "Tune").click().run()
    assert "Choose at least one layer" in page.error[0].value
    assert figures(page) == 2
    field(page, "Kinds of layers to tune in every block").set_value(before).run()
    field(page, "Epochs").set_value(0).run()
    button(page, "Tune").click().run()
    assert "whole number from 1 to 1000" in page.error[0].value
    field(page, "Epochs").set_value(1).run()
    page.text_area[0].set_value(" ").run()
    button(page, "Tune").click().run()
    assert "The text is empty" in page.error[0].value
    assert not page.exception
    assert page.session_state["layers-marks-runs"][-1].number == 1


def test_stop_keeps_what_was_seen():
    page = opened(layers_view="Change by block", layers_epochs="1000")
    run = page.session_state["layers-marks-runs"][-1]
    wait_until(lambda: run.result.epochs_known >= 3)
    page.run()
    button(page, "Stop").click().run()
    page = until_over(page)
    assert run.status == "stopped"
    assert 3 <= run.result.epochs_known < 1000
    assert figures(page) == 2
    assert field(page, "Epoch shown in the heatmap").max == run.result.epochs_known
    assert not page.exception


@pytest.mark.parametrize(
    ("rate", "epochs", "says"),
    [("0.2", "2", "The loss rose"), ("1e30", "4", "The run diverged")],
)
def test_a_learning_rate_that_is_too_high_gets_a_warning(rate, epochs, says):
    page = tuned(layers_rate=rate, layers_epochs=epochs)
    assert not page.exception
    assert says in page.warning[0].value
