"""The compare page without a browser: what opens, what is refused, what a comparison leaves."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from neuralviz.arrays import unit_vectors
from neuralviz.embedders import embedder_spec
from neuralviz.evaluation.similarity import MOST_PERMUTED, rank_correlations
from neuralviz.headlines.micro_tuning import list_unread
from neuralviz.headlines.similar_texts import describe_agreement, describe_similar_texts
from neuralviz.reading.source import Source
from neuralviz.ui.compare import MAX_TEXTS, PAIR, Panel, load_examples
from neuralviz.ui.page import plain
from neuralviz.words import number
from tests.support import pages
from tests.support.models import SENTENCES, save_family
from tests.support.pages import page_at, read_page
from tests.support.waiting import wait_until

last_run = partial(pages.last_run, kind="compare")
finish = partial(pages.finish_run, kind="compare", seconds=240)
press = partial(pages.press, label="Compare")
pytestmark = pytest.mark.usefixtures("bundled")  # it is there before the clock runs


@pytest.fixture
def quick() -> AppTest:
    """The example's comparison by two methods that learn nothing."""
    return finish(page_at("compare", m2="cls", m3="none").run())


def paste(text: str, **address: str) -> AppTest:
    """The page at an address with pasted texts, which wait for *Compare*: no example runs."""
    page = page_at("compare", **address)
    page.session_state["compare-source"] = "Paste"
    page.session_state["compare-pasted"] = text
    return page.run()


def test_opens_with_an_example_compared_by_three_methods() -> None:
    page = page_at("compare").run()
    by_itself = last_run(page)
    assert by_itself.task.specs[1] == embedder_spec("neural", {"precision": "fast"})
    by_itself.stop()
    assert by_itself.wait(60)
    later = page_at("compare", run=by_itself.id).run()  # as after Back from another example
    assert "was stopped" not in read_page(later)
    assert last_run(later) is not by_itself
    last_run(later).stop()
    assert page.text_input(key="m2-neural-epochs").value == "10"
    assert "m4" not in {box.key for box in page.selectbox}  # it is offered by a switch
    page.text_input(key="m2-neural-epochs").set_value("1").run()
    finish(page)
    assert not page.exception
    run = last_run(page)
    assert run.status == "done"
    assert run.task.methods == ("mean", "neural, fast, 1 epoch", "sbert-wk")
    assert page.segmented_control(key="compare-more").options == ["Disagreements", "Why?"]
    assert "the nearest text has the same topic for" in read_page(page)
    pairs = next(frame for frame in page.dataframe if "difference" in frame.value)
    ranks = [f"{method}: rank" for method in ("mean", "neural", "sbert-wk")]
    assert list(pairs.proto.column_order) == ["text A", "text B", *ranks, "difference"]
    results = [part.similarity for part in run.result]  # the two that agree least are drawn
    correlations = rank_correlations(results)
    methods = np.unravel_index(correlations.argmin(), correlations.shape)
    apart = np.abs(results[methods[0]].ranks - results[methods[1]].ranks)
    pair = page.selectbox(key="compare-first").value, page.selectbox(key="compare-second").value
    assert apart[pair] == np.nanmax(apart)
    panel, again = (Panel(run, run.result, "Original", {}) for _ in range(2))
    assert panel.results == again.results  # whose ranks are computed once
    assert panel.name_in_full(panel.results[1]) == "neural, fast, 1 epoch"  # in files
    assert MAX_TEXTS <= MOST_PERMUTED  # the test is of all texts that the sentence is of
    parts = describe_agreement(*(panel.results[place] for place in methods))
    assert set(map(plain, parts)) <= {element.value for element in page.markdown}
    page.text_input(key="m2-neural-epochs").set_value("many").run()
    assert not page.exception
    assert "epochs” must be a whole number" in read_page(page)
    assert "the nearest text has" in read_page(page), "what was compared before stays"


def test_pasted_texts_wait_for_the_button_and_the_text_of_an_error_is_named(quick: AppTest) -> None:
    page, before = quick, last_run(quick)
    page.segmented_control(key="compare-source").set_value("Paste").run()
    page.text_area(key="compare-pasted").set_value("Only one.").run()
    assert "at least two" in read_page(press(page))
    page.text_area(key="compare-pasted").set_value("A cat.\nA dog.\nRain again.").run()
    assert last_run(page) is before
    assert "Press **Compare** to see yours" in read_page(page)
    finish(press(page))
    assert last_run(page).task.texts == ("A cat.", "A dog.", "Rain again.")
    assert "view" in page.query_params
    page.text_area(key="compare-pasted").set_value("A cat.\nA dog.\nRain again.\n\ufffd").run()
    finish(press(page))
    assert "Text 4 has no character that the model can read" in read_page(page)


def test_a_link_brings_texts_labels_order_and_results_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuralviz.ui.compare.LISTED_PAIRS", 2)
    page = page_at("compare", m2="cls", m3="none")
    table = b"kind,said\nanimal,A cat sleeps.\nweather,It rains.\nanimal,A dog barks.\n"
    page.session_state["compare-source"] = "Upload"
    page.session_state["compare-kept"] = Source("kinds.csv", table)
    page.run().selectbox(key="order").set_value("By kind").run()
    page = finish(press(page))
    shared = {**page.query_params, "order": "By kind"}  # a browser's address has the order, too
    before = last_run(page)
    wait_until(lambda: list((tmp_path / "results").glob(f"{shared['view']}.*")), 10)

    other = page_at("compare", **shared).run()  # nothing is pressed in the second browser
    after = last_run(other)
    assert after.is_reopened
    assert after.task == before.task
    assert other.selectbox(key="order").value == "By kind"
    assert "the nearest text has the same kind for" in read_page(other)
    np.testing.assert_array_equal(after.result[0].vectors, before.result[0].vectors)
    assert f"Result of {datetime.now(UTC):%d %B %Y}" in read_page(other)
    assert "Press **Compare**" not in read_page(other)

    assert "The first 2 of 3 pairs." in read_page(other)
    other.session_state["sort-compare-pairs"] = 7  # two clicks on the head of cls's ranks
    cosines = sorted(after.result[1].similarity.of_pairs)  # of all pairs
    for sorted_page in (other.run(), page_at("compare", **other.query_params).run()):
        pairs = next(t.value for t in sorted_page.dataframe if "difference" in t.value)
        np.testing.assert_array_equal(pairs["cls"], cosines[:2])
        assert set(pairs["text A"]) <= {"1. A cat sleeps.", "2. It rains."}


CELLS = {
    "places": ["2. b", "10. a", "1. c", "", "11. d"],
    "numbers": ["−0.5", "0.25", "−0.125", "–", "1,200"],
    "ranks": ["10 of 66", "2 of 66", "66 of 66", "", "9 of 66"],
    "ranges": ["10.1 (9.0 … 11.0)", "9.5 (9.1 … 9.9)", "9.7", "–", "100.0"],
    "dates": ["2026-02-01", "2025-12-31", "2026-01-15", "", "2026-10-01"],
    "words": ["pear", "Apple", "plum 2", None, "plum 10"],
}
SORTED = {
    "places": [2, 0, 1, 4, 3],
    "numbers": [0, 2, 1, 4, 3],
    "ranks": [1, 4, 0, 2, 3],
    "ranges": [1, 2, 0, 4, 3],
    "dates": [1, 2, 0, 4, 3],
    "words": [1, 0, 2, 4, 3],
}


def show_cells(cells: dict[str, list[str]]) -> None:
    import pandas as pd

    from neuralviz.ui.figures import show_table

    table = pd.DataFrame(cells).assign(row=range(5))
    show_table(table, "t", limit=4, cells={"row": lambda rows: [f"row {i}" for i in rows]})


def test_many_texts_are_ordered_by_their_label_unless_a_link_has_another_order() -> None:
    def upload(page: AppTest, n: int) -> AppTest:
        rows = [f"{('animal', 'weather')[i % 2]},Text number {i}." for i in range(n)]
        page.session_state["compare-source"] = "Upload"
        page.session_state["compare-kept"] = Source(
            f"{n}.csv", "\n".join(["kind,said", *rows]).encode()
        )
        return page.run()

    def read_order(page: AppTest) -> str:
        return page.selectbox(key="order").value

    page = upload(page_at("compare", m2="cls", m3="none"), 4)
    assert read_order(page) == "Original"
    finish(press(upload(page, 18)))
    assert read_order(page) == "By kind"
    finish(press(upload(page, 4)))
    assert read_order(page) == "Original"
    for order in ("Original", "Clustered by the first method"):
        for name in ("order", "order-of-many"):  # the latter in old links
            page = upload(page_at("compare", m2="cls", m3="none", **{name: order}), 18)
            assert read_order(finish(press(page))) == order


def test_tables_sort_numbers_by_value_and_words_by_their_numbers() -> None:
    page = AppTest.from_function(show_cells, args=(CELLS,)).run()
    for place, rows in enumerate(SORTED.values()):
        for descends in (0, 1):  # blank cells stay last
            page.session_state["sort-t"] = 2 * place + descends
            order = rows[:4][::-1] if descends else rows[:4]
            assert page.run().dataframe[0].value["row"].tolist() == [f"row {i}" for i in order]


def test_identical_texts_have_no_ranks_and_a_method_that_fails_leaves_the_others() -> None:
    page = paste("a\na\na", m2_neural_epochs="1", fourth="true", run="0" * 24)
    assert "The result in this link is not saved any more" in page.warning[0].value
    assert "run" not in page.query_params
    page.text_input(key="m3-sbert-wk-layer_start").set_value("40").run()
    finish(press(page))
    assert not page.exception
    assert not page.warning
    run = last_run(page)
    assert run.status == "done"
    for part in run.result[:2]:
        np.testing.assert_allclose(part.similarity.products, 1, atol=1e-4)
    assert run.result[2].similarity is None
    assert run.result[3].method == "cls"
    assert "the first layer must be a whole number from 0 to 6, not 40" in read_page(page)
    assert "put 3 pairs in the same order" in read_page(page)


def test_a_model_that_nobody_asked_for_is_not_loaded_and_a_broken_one_is_named(
    quick: AppTest, tmp_path: Path
) -> None:
    page, before = quick, last_run(quick)
    folder = save_family("bert", tmp_path / "broken")
    tensors = load_file(folder / "model.safetensors")
    name = next(name for name in tensors if name.endswith("layer.1.output.dense.bias"))
    tensors[name] = tensors[name] * float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    page.selectbox(key="m1-mean-model").set_value(str(folder)).run()
    assert last_run(page) is before
    finish(press(page))
    assert not page.exception
    assert "infinite or NaN values" in read_page(page)
    assert last_run(page).result[1].similarity is not None


def test_stopping_acts_within_a_batch_and_keeps_what_is_done() -> None:
    lines = "\n".join(f"{n}. {SENTENCES[n % len(SENTENCES)]}" for n in range(24))
    page = press(paste(lines, m2_neural_epochs="30", m3="none"))
    run = last_run(page)
    wait_until(lambda: run.result[1].n_done > 0, 60)
    page.run()
    page.button(key=f"compare-stop-{run.id}").click().run()
    assert run.wait(30), "still at work half a minute after Stop"
    page.run()
    assert run.status == "stopped"
    assert 0 < run.result[1].n_done < 24
    assert run.result[0].n_done == 24
    assert not page.exception
    finished = [part.similarity for part in run.result if part.n_done == 24]
    headline = plain(describe_similar_texts(finished))  # nothing of the one that is not finished
    assert headline in [element.value for element in page.markdown]


def test_words_of_a_pair_stand_for_the_chosen_texts() -> None:
    text = "<b>bold</b> claims\nquiet words\nsome more 😀"
    page = paste(text, m1="neural", m1_neural_epochs="2", m2="mean", m3="none")
    finish(press(page))
    assert sum("mean differ most on" in element.value for element in page.markdown) == 1
    assert sum("are most similar" in element.value for element in page.markdown) == 1
    page.selectbox(key="compare-first").set_value(0).run()
    page.selectbox(key="compare-second").set_value(1).run()
    assert not page.exception
    page.segmented_control(key="compare-more").set_value("Why?").run()
    pages.finish_run(page, "compare-why")
    pair = pages.last_run(page, "compare-why")
    assert pair.status == "done"
    for place, part in enumerate(last_run(page).result):
        units = unit_vectors(part.vectors.astype(float))
        explained = pair.result[place]
        assert explained.plain.texts == ("<b>bold</b> claims", "quiet words")
        for explanation, centre in ((explained.plain, 0), (explained.centred, units.mean(axis=0))):
            first, second = unit_vectors(units[:2] - centre)
            assert explanation.cosine == pytest.approx(first @ second, abs=1e-4)
            assert explanation.contributions.sum() == pytest.approx(explanation.cosine, abs=1e-9)
    assert "A row adds up to its *sum*, the cosine similarity" in read_page(page)
    assert "No word*: what comes from none, such as the marks" in read_page(page)
    assert re.search(r"word that adds most .* by mean, “\w+” in text [12]", read_page(page))
    for detail in ("All pairs", "Layers", "Words"):
        page.segmented_control(key="why-detail").set_value(detail).run()
        assert not page.exception
    page.segmented_control(key="why-reading").set_value("Minus the mean").run()
    assert not page.exception
    products = last_run(page).result[0].similarity.products
    table = next(frame.value for frame in page.dataframe if "rank" in frame.value)
    assert table["cosine"][0] == number(float(products[0, 1]), ".3f")
    assert "does not know" not in read_page(page)
    page.selectbox(key="compare-second").set_value(2).run()
    pages.finish_run(page, "compare-why")
    assert "The model does not know “😀”." in read_page(page)
    page.selectbox(key="compare-second").set_value(0).run()
    assert "Choose two different texts" in read_page(page)


def test_texts_in_another_language_are_named_and_are_not_the_pair_that_differs_most() -> None:
    texts = """The lighthouse keeper lit the lamp.
    El banco ha subido otra vez los tipos de interés.
    Rates rose again, said the bank.
    No funciona la aplicación desde ayer, por favor ayúdenme."""
    page = finish(press(paste(texts, m1="neural", m1_neural_epochs="1", m2="mean", m3="none")))
    assert not page.exception
    (warning,) = page.warning
    assert warning.value == plain(  # of one vocabulary
        "neural, fast, 1 epoch and mean: The model reads English and hardly reads texts 2 and 4: "
        "choose a model that knows their words."
    )
    assert [page.selectbox(key=key).value for key in PAIR] == [0, 2]
    page.segmented_control(key="compare-more").set_value("Why?").run()
    pages.finish_run(page, "compare-why")
    assert "hardly reads text 4" not in read_page(page)
    page.selectbox(key="compare-second").set_value(3).run()
    pages.finish_run(page, "compare-why")
    assert read_page(page).count("hardly reads text 4") == 1


def test_a_text_of_which_no_word_is_known_gets_one_warning_and_symbols_none() -> None:
    texts = "The keeper lit the lamp.\n🎉 😀\nRates rose again.\nok 👍"
    page = finish(press(paste(texts, m1="mean", m2="cls", m3="none")))
    (warning,) = page.warning
    assert "At least half of the words of text 2 are unknown" in warning.value
    assert "hardly reads" not in warning.value
    by_model = (("", (1,)), ("bundled", (1,)))
    assert [part.hardly_read for part in last_run(page).result] == [by_model] * 2


def test_a_text_is_in_one_warning_which_says_what_the_model_that_judged_it_reads() -> None:
    unread = "At least half of the words of text 1 are unknown to the model."
    read = [("", (0,)), ("org/german-bert", (2,)), ("bundled", (0, 1, 2))]
    assert list_unread(unread, read) == [
        unread,
        "The model hardly reads text 3: choose a model that knows its words.",
        "The model reads English and hardly reads text 2: choose a model that knows its words.",
    ]
    assert list_unread("", [("", ()), ("bundled", (0,))])[0].startswith("The model reads English")
    texts = "🎉 😀\nDie Bank hat ihre Zinsen wieder erhöht.\nRates rose again."
    page = finish(press(paste(texts, m1="mean", m2="none", m3="none")))
    unknown, german = (warning.value for warning in page.warning)
    assert "At least half of the words of text 1 are unknown" in unknown
    (sentence,) = list_unread("", [("bundled", (1,))])
    assert german == plain(f"mean: {sentence}")


def test_a_pair_of_another_page_opens_with_the_settings_of_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script() -> None:  # the part of a page that has the button
        import streamlit as st

        from neuralviz.ui.compare import offer_reasons

        offer_reasons(["A dog barks.", "A cat."], st.session_state["specs"], "pair")

    for method in (
        "neural@learning_rate=0.02,weight_decay=0,layers=last_block,blueprints=(2, 1), (1, 3)",
        "neural@precision=fast,epochs=3,tolerance=0.002,predict_unmasked=yes",
        "sbert-wk@bundled,variant=paper,layer_start=2,window=3",
        "neural@epochs=1+mean@bundled+mean@layer=2,3",
    ):
        page = AppTest.from_function(script, default_timeout=60)
        page.session_state["specs"] = [embedder_spec(method)]
        compare = pages.open_reasons(page.run(), monkeypatch)
        assert last_run(compare).task.specs[0] == embedder_spec(method)


@pytest.mark.slow
def test_the_tour_says_what_the_comparison_shows() -> None:
    """Its second stop: how many of the twelve texts lie next to one of their topic, or form."""
    page = page_at("compare", tour="2", compare_example="From the corpus", order="By topic").run()
    labels = load_examples()["From the corpus"].labels
    counts = []
    for method in last_run(finish(page)).result:
        products = method.similarity.products.copy()
        np.fill_diagonal(products, -np.inf)
        nearest = products.argmax(axis=1)
        by_label = map(np.array, labels.values())
        counts.append([int((values == values[nearest]).sum()) for values in by_label])
    assert counts[0] == [12, 0]  # "each next to one on the same topic, never … of the same form"
    tour = (Path(__file__).parents[2] / "docs" / "tour.md").read_text("utf-8")
    (topic, form), (other_topic, other_form) = counts[1:]
    assert f"Neural embedding: {topic} by topic, {form} by form." in tour
    assert f"SBERT-WK: {other_topic} and {other_form}." in tour
