"""The evaluation page without a browser: what is measured by itself, uploads, refusals, Stop."""

from __future__ import annotations

import json
import re
from functools import partial
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from plotly.offline import get_plotlyjs
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest

from neuralviz.embedders import embedder_spec
from neuralviz.errors import ModelError, NeuralvizError
from neuralviz.evaluation import measures
from neuralviz.evaluation.data import DataSet, read_data
from neuralviz.evaluation.results import RESULTS_FORMAT, MeasureSettings, Table
from neuralviz.evaluation.yardsticks import worst_cases
from neuralviz.models.shared import LOADERS
from neuralviz.plots.report import report_html
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.importing import import_vectors
from neuralviz.ui import evaluation as evaluation_page
from tests.support.models import save_family
from tests.support.pages import find_labelled, finish_run, last_run, open_reasons, page_at, press
from tests.support.waiting import wait_until

SCORED = "a,b,score\n" + "".join(f"A dog {i},A cat {i * 7 % 5},{i / 2}\n" for i in range(10))
GROUPS = "text,group\nA dog.,d\nThe dog.,d\nIt rains.,r\nRain falls.,r\nIt is raining.,r\n"
ANCHORS = (
    "text,group,role\nA long text on a dog.,d,anchor\nA dog.,d,\nThe dog.,d,\n"
    "A long text on rain.,r,anchor\nIt rains.,r,\nRain falls.,r,\n"
)
LABELS = "text,topic\n" + "".join(f"{'dog' if i % 2 else 'rain'} {i},{i % 2}\n" for i in range(24))
PARAPHRASES = "original,generated,varies,value,fixed1,fixed2\n" + "".join(
    f"A dog {o},A dog {o} {value} {one},{quality},{value},{one},0.5\n"
    for o in "xy" for value in (0.1, 0.5, 0.9) for one in (0.2, 0.8)
    for quality in ("form", "meaning")
)  # fmt: skip
EVIL = "<script>window.x=1</script> **dog** $x$"

pytestmark = pytest.mark.usefixtures("bundled")  # it is there before the clock runs


@pytest.fixture(autouse=True)
def _no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bootstrap intervals would take most of the time of these tests; few ask about them."""
    monkeypatch.setattr(evaluation_page, "MeasureSettings", partial(MeasureSettings, resamples=0))


@pytest.fixture
def intervals(monkeypatch: pytest.MonkeyPatch, _no_intervals: None) -> None:
    """Intervals as they are usually drawn."""
    monkeypatch.setattr(evaluation_page, "MeasureSettings", MeasureSettings)


@pytest.fixture
def opened():
    """``opened(methods=["mean"])``: the page at an address; its work ends with the test."""
    pages: list[AppTest] = []

    def at(**query: str | list[str]) -> AppTest:
        page = page_at("evaluation", **({"example": "Scored pairs"} | query))
        pages.append(page)
        return page.run()

    yield at
    for page in pages:
        for run in runs(page):
            run.stop()
            assert run.wait(60)


@pytest.fixture
def page(opened) -> AppTest:
    return opened(methods=["mean", "cls"])


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """By method, how many of the texts whose vectors were last asked for were found."""
    found: dict[str, int] = {}
    embed = measures.embed

    def watched(texts, embedder, *more, **others):
        for progress in embed(texts, embedder, *more, **others):
            found[embedder.name] = progress.found
            yield progress

    monkeypatch.setattr(measures, "embed", watched)
    return found


def runs(page: AppTest) -> list:
    known = "evaluation-runs" in page.session_state
    return list(page.session_state["evaluation-runs"]) if known else []


def results(page: AppTest):
    return runs(page)[-1].result.results


def upload(page: AppTest, content: str | bytes, name: str = "own.csv") -> AppTest:
    content = content.encode() if isinstance(content, str) else content
    page.session_state["evaluation-kept"] = Source(name, content)  # as the uploader leaves it
    return page.segmented_control(key="evaluation-source").set_value("Upload").run()


def evaluate(page: AppTest) -> AppTest:
    press(page, "Evaluate")
    assert not page.info, said(page)
    return finish_run(page, "evaluation", 90)


def refuses(page: AppTest) -> bool:
    """Whether the button answers with a sentence, and starts nothing."""
    before = len(runs(page))
    press(page, "Evaluate")
    assert not page.exception
    return len(runs(page)) == before and "Choose data and at least one method" in said(page)


def said(page: AppTest) -> str:
    """Errors, warnings and captions, without the backslashes that keep markup from working."""
    kinds = (page.error, page.warning, page.info, page.caption)
    bars = [bar.proto.text for bar in page.get("progress")]
    return " ".join([one.value for kind in kinds for one in kind] + bars).replace("\\", "")


def views(page: AppTest) -> list[str]:
    known = [one for one in page.segmented_control if one.label == "View"]
    return list(known[0].options) if known else []


def click(page: AppTest, control: str, option: str) -> None:
    """Click on one of the options of a control."""
    known = [one for one in page.segmented_control if one.label == control]
    if known:  # not where there is one option alone
        known[0].set_value(option).run()
        assert not page.exception


def drawn(page: AppTest) -> list[dict]:
    """All figures, those below the verdict first."""
    parts = [element.proto.bytes.split(b"\n", 1)[1] for element in page.get("bidi_component")]
    return [json.loads(part) for part in parts]


def title(figure: dict) -> str:
    return figure["layout"]["title"]["text"]


def proof(page: AppTest, measure: str = "") -> dict:
    """The figure below the verdict, of a measure if it is named."""
    if measure:
        click(page, "Measure", measure)
    return drawn(page)[0]


def of_view(page: AppTest, view: str) -> list[dict]:
    """The figures of a view."""
    click(page, "View", view)
    proofs = ("Lead of", "Spearman", "Kendall", "Pearson", "Pair error", "Triplet error")
    figures = drawn(page)
    return [one for one in figures if not title(one).startswith(proofs) and "-NN" not in title(one)]


def headline(page: AppTest) -> str:
    """The sentence above the figures."""
    value = re.compile(r" −?[\d.]+%? (?:on|of) [\d,]+ ")
    return next(one.value for one in page.markdown if value.search(one.value))


def table(page: AppTest) -> pd.DataFrame:
    """The first table in HTML, without the arrows in its heads."""
    bodies = [one.proto.body for one in page.get("html")]
    body = next(body for body in bodies if "class='results'" in body).partition("</table>")[0]
    rows = re.sub(r" <span.*?</span>", "", body).split("<tr>")[1:]
    heads, *lines = [
        [unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows
    ]
    return pd.DataFrame(lines, columns=heads).set_index("method")


def test_opens_with_what_was_recorded(opened, intervals: None) -> None:
    page = opened(example="Forms")
    assert not page.exception
    assert "480 texts in six forms" in said(page)
    assert "Recorded run. Press “Evaluate” to see it live." in said(page)
    assert list(table(page).index) == ["mean", "sbert-wk", "neural, exact"]
    assert headline(page).startswith("With **sbert-wk**, the ten nearest texts predict the form")
    assert title(proof(page)) == "The ten nearest texts predict the form correctly"
    terms = (
        "ways to turn a text into numbers. Language models",
        "2 others. **Predicted**: the most",
    )
    assert any(all(term in one.value for term in terms) for one in page.markdown)
    cases = next(one.value for one in page.table if "nearest with its label" in one.value)
    assert cases["nearest with its label"].iloc[0] == "0 of 10"
    assert find_labelled(page, "Errors of").value == "sbert-wk"
    page.pills(key="example").set_value("Topics").run()
    assert find_labelled(page, "Errors of").value == "mean"  # the best one here
    assert headline(page).startswith("With **mean**, the ten nearest texts predict the topic")
    assert not runs(page)


@pytest.mark.parametrize(
    ("content", "about", "column", "found"),
    [
        (SCORED, "10 scored pairs, 2 of them similar (≥ 4), 5 dissimilar (≤ 2)",
         "Spearman, 95% interval", ["Pair by pair", "Similar and dissimilar", "Shared errors"]),
        (ANCHORS, "6 texts in 2 groups, 2 of them anchors; 8 triplets", "triplet error",
         ["Similar and dissimilar"]),
        (LABELS, "24 texts with 2 labels", "10-NN accuracy",
         ["Similar and dissimilar", "Confused labels"]),
        (PARAPHRASES, "24 generated phrases, varying in form, meaning", "mean tau-c form varies",
         ["Controlled paraphrases"]),
    ],
    ids=["scored pairs", "anchors", "labels", "paraphrases"],
)  # fmt: skip
def test_a_table_of_ones_own(
    page: AppTest, intervals: None, content: str, about: str, column: str, found: list[str]
) -> None:
    upload(page, content)
    assert f"own.csv: {about}." in said(page)
    assert not runs(page)
    evaluate(page)
    assert not page.exception
    assert not page.error
    assert not page.warning
    assert list(table(page).index) == ["mean", "cls"]
    assert table(page)[column].ne("–").all()
    assert [view for view in views(page) if view != "Errors"] == found
    for view in found:
        assert of_view(page, view)
    assert headline(page)
    page.session_state["download"] = True  # opens the menu
    page.run()
    assert {"This page (HTML)", "Report (HTML)", "CSV", "JSON"} <= {
        one.label for one in page.get("download_button")
    }


def test_labels_that_are_not_confused_are_no_slide(
    page: AppTest, intervals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    off_stage: list[str] = []

    show_views = evaluation_page.show_views

    def record(page_key: str, views: dict[str, Any], *, key: str, n_on_stage: int) -> None:
        off_stage[:] = [*views][n_on_stage:]
        show_views(page_key, views, key=key, n_on_stage=n_on_stage)

    monkeypatch.setattr(evaluation_page, "show_views", record)
    monkeypatch.setattr(evaluation_page.headlines, "describe_confusion", lambda *_: "")
    upload(page, LABELS)
    evaluate(page)
    assert off_stage == ["Confused labels"]
    monkeypatch.setattr(
        evaluation_page.headlines,
        "describe_confusion",
        lambda _, method, __: f"{method} confuses." * ("cls" in method),
    )
    page.run()
    assert off_stage == ["Confused labels"]  # it is not of the best method
    click(page, "View", "Confused labels")
    assert find_labelled(page, "Method").value == "cls"
    assert any("**cls** confuses" in one.value for one in page.markdown)


@pytest.mark.parametrize(("columns", "explained"), [([0], ""), ([0, 1], " –: undefined.")])
def test_dashes_of_hidden_columns_are_not_explained(columns: list[int], explained: str) -> None:
    results: Any = SimpleNamespace(finished=lambda data: [(data, "mean", None)])
    numbers = Table(["method", "tau-b"], [["mean", "–"]], ["", ""])
    assert evaluation_page._explain_gaps(results, numbers, columns) == explained


def test_columns_are_guessed_from_what_is_in_them_and_can_be_corrected(page: AppTest) -> None:
    lines = "".join(f"{i},A brown dog {i},A grey cat {9 - i},{i % 6}\n" for i in range(10))
    upload(page, "nr,question,answer,rating\n" + lines)
    assert "(first text: question, second text: answer, score: rating)" in said(page)
    find_labelled(page, "Score").set_value("nr").run()
    assert "10 scored pairs, 2 of them similar (≥ 8)" in said(page)
    page.number_input(key="similar-of-0-10").set_value(7.0).run()
    assert "10 scored pairs, 3 of them similar (≥ 7)" in said(page)
    evaluate(page)
    assert results(page).measured(0, 0).pairs.total == 3 * results(page).data[0].is_dissimilar.sum()
    upload(page, "text,group,topic,role\nA.,1,x,anchor\nB.,1,y,\nC.,2,y,\nD.,2,x,anchor\n")
    assert "The results below are of other data or settings." in said(page)
    find_labelled(page, "Role").set_value("").run()
    assert "4 texts in 2 groups; 8 triplets" in said(page)
    find_labelled(page, "The table contains").set_value("labels").run()
    assert find_labelled(page, "Label").value == "topic"
    assert "4 texts with 2 labels" in said(page)


def test_a_data_set_of_the_hub(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, max_rows: int) -> DataSet:
        if name == "no/such":
            raise NeuralvizError(f"The data set no/such is not available: {EVIL}")
        return read_data(Source(name, SCORED.encode()), max_rows=max_rows)

    monkeypatch.setattr(evaluation_page, "load_hub_data", load)
    page.segmented_control(key="evaluation-source").set_value("Hub").run()
    assert refuses(page)
    page.text_input(key="evaluation-hub").set_value("no/such").run()
    assert f"The data set no/such is not available: {EVIL}" in said(page)
    page.text_input(key="evaluation-hub").set_value(" some/pairs.csv ").run()
    assert not page.error
    evaluate(page)
    assert results(page).data[0].name == "some/pairs.csv"


def test_a_saved_corpus_is_evaluated_with_the_embeddings_it_has(
    opened, embedded: dict[str, int], tmp_path: Path
) -> None:
    store = CorpusStore()
    texts = tuple(f"{'A dog' if i % 2 else 'The rain'} number {i} is here." for i in range(24))
    corpus = store.add("my <b>corpus</b>", ReadTexts(texts, labels={"kind": ("dog", "rain") * 12}))
    for method in ("mean", "cls"):
        list(embed_corpus(store, corpus, embedder_spec(method)))
    page = opened()
    page.segmented_control(key="evaluation-source").set_value("Saved corpus").run()
    assert "my <b>corpus</b>, kind: 24 texts with 2 labels." in said(page)
    evaluate(page)
    assert embedded == {"mean": 24, "cls": 24}  # nothing was embedded anew
    assert "predict the kind correctly" in headline(page)
    page.segmented_control(key="evaluation-corpus-by").set_value("Triplets").run()
    page.selectbox(key="experiment-of-corpus").set_value("Methods").run()
    page.multiselect(key="methods").set_value(["mean", "sep"]).run()
    evaluate(page)
    assert embedded == {"mean": 24, "cls": 24, "sep": 0}
    assert "triplets" in headline(page)
    kept = tmp_path / "results"
    wait_until(lambda: len(list(kept.glob(f"corpus-{corpus.id}.*"))) == 2, 10)
    store.delete(corpus)  # and with it what holds its texts
    assert not list(kept.glob("corpus-*"))


def test_a_file_that_cannot_be_used_gets_a_sentence(page: AppTest) -> None:
    for content, says in (
        ("", "own.csv is empty"),
        ("a,b,score\nA,B,much\nC,D,little\nE,F,none\n", "“score” is not a number"),
        (bytes(range(256)) * 4, "not a text file"),
    ):
        upload(page, content)
        assert not page.exception
        assert len(page.error) == 1
        assert says in said(page)
    assert refuses(page)
    assert page.multiselect(key="methods").value == ["mean", "cls"]


def test_what_cannot_be_measured_is_said_beside_what_can(page: AppTest) -> None:
    rows = "".join(f"dog {i},cat {i},5\n" for i in range(4))
    evaluate(upload(page, "a,b,score\n" + rows))
    assert not page.exception
    assert not page.error
    assert "scores are equal" in page.warning[0].value
    assert page.warning[0].value.startswith("mean; cls")  # once for both
    assert all(of_view(page, view) for view in views(page) if view != "Errors")  # a table


def test_methods_and_options_that_make_no_sense(page: AppTest) -> None:
    for methods, options, says in (
        ([], "", "Choose at least one method"),
        (["mean", f"no {EVIL}"], "", f"Unknown method “no {EVIL}"[:50]),
        (["mean", "mean "], "", "named twice"),
        (["mean"], "window=3", "The method “mean” has no option “window”"),
        (["mean"], "layer", "NAME=VALUE"),
    ):
        page.text_input(key="options").set_value(options)
        page.multiselect(key="methods").set_value(methods).run()
        assert not page.exception
        assert says in said(page)
    assert refuses(page)
    assert page.multiselect(key="methods").value == methods
    assert page.text_input(key="options").value == options


def test_two_models_by_one_method_and_a_link_brings_them_back(opened, tmp_path, intervals) -> None:
    other = save_family("bert", tmp_path / "other")
    methods = ["mean@bundled", f"mean@{other}", "cls@layer=1,2"]
    page = opened(methods=methods)
    assert page.multiselect(key="methods").value == methods
    evaluate(upload(page, SCORED))
    assert not page.exception
    labels = ["mean (bundled)", "mean (other)", "cls"]
    assert list(table(page).index) == labels
    bars = proof(page)["data"][:3]
    assert [one["name"] for one in bars] == labels
    assert bars[0]["marker"]["color"] != bars[1]["marker"]["color"]
    assert all(results(page).measured(0, at).resampled for at in range(3))


def test_vectors_that_were_imported_are_offered_where_all_texts_have_one(opened) -> None:
    data = read_data(Source("a.csv", SCORED.encode()))
    store = CorpusStore()
    corpus = store.add("mine", ReadTexts(data.texts))
    vectors = np.random.default_rng(0).normal(size=(len(data.texts), 5))
    import_vectors(store, corpus, ReadVectors("mine.npy", vectors.astype(np.float32)))
    page = opened(methods=["file: mine.npy"])
    upload(page, SCORED)
    evaluate(page)
    assert not page.exception
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit[data.first] * unit[data.second]).sum(axis=1)
    measured = results(page).measured(0, 0)
    expected = pytest.approx(spearmanr(cosines, data.scores)[0], abs=1e-9)
    assert measured.correlations.spearman == expected
    upload(page, GROUPS)  # other texts
    assert "file: mine.npy" not in page.multiselect(key="methods").options
    assert not page.exception


def test_a_method_that_fails_leaves_the_others(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> NoReturn:
        raise ModelError(f"The model “{name}” is <b>nowhere</b>.")

    monkeypatch.setitem(LOADERS, "masked", fail)
    page = opened(methods=["neural", "mean", "cls"], options="epochs=1")
    evaluate(upload(page, SCORED))
    assert not page.exception
    (warning,) = page.warning
    assert (
        warning.value == "neural, exact, 1 epoch\\: The model “bundled” is \\<b\\>nowhere\\</b\\>."
    )
    assert table(page)["failed"]["neural, exact, 1 epoch"] == "yes"
    assert table(page)["triplet error"]["mean"].endswith("%")
    cosines = [title(one) for one in of_view(page, "Similar and dissimilar")]
    assert cosines == ["Cosine similarities with mean", "Cosine similarities with cls"]
    assert "&lt;b&gt;nowhere&lt;/b&gt;" in report_html(results(page))


def test_the_worst_pair_opens_with_the_cosine_of_the_page(
    opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = ["sbert-wk@variant=paper,window=1", "neural+cls"]
    page = opened(methods=methods, options="epochs=1", precision="fast")
    evaluate(upload(page, SCORED))
    click(page, "View", "Errors")
    for _, label, measured in results(page).finished(0):
        find_labelled(page, "Errors of").set_value(label).run()
        (cases, *_) = worst_cases(results(page).data[0], measured).values()
        compare = open_reasons(page, monkeypatch)
        first = last_run(compare, "compare").result[0]
        assert first.texts == tuple(cases.iloc[0][["text 1", "text 2"]])
        cosine = float(first.similarity.products[0, 1])
        assert cosine == pytest.approx(cases["cosine similarity"][0], abs=1e-4)


def test_no_model_of_an_address_is_loaded_without_being_asked_for(
    opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setitem(LOADERS, "masked", asked.append)
    opened(experiment="layers", evaluation_model="someone/else")
    assert asked == []


def test_a_link_brings_methods_settings_an_uploaded_table_and_its_results_back(
    opened, tmp_path: Path
) -> None:
    address = {
        "methods": ["neural", "neural+cls"], "options": "epochs=1, cls.layer=all",
        "precision": "fast", "similar": "3", "dissimilar": "1", "measure_pairs": "Pearson",
    }  # fmt: skip
    page = upload(opened(**address), SCORED, "mine.csv")
    assert "similar (≥ 3), 3 dissimilar (≤ 1)" in said(page)
    evaluate(page)
    neural, joined = results(page).rows
    assert dict(neural.spec.options) == {"epochs": 1, "precision": "fast"}
    assert dict(joined.spec.parts[1].options) == {"layer": "all"}
    assert list(table(page).index) == ["neural, fast, 1 epoch", "neural+cls, fast, 1 epoch"]
    assert proof(page)["layout"]["xaxis"]["title"]["text"] == "Pearson ↑"
    before, view = results(page), page.query_params["view"]
    wait_until(lambda: list((tmp_path / "results").glob(f"{view}.*")), 10)

    again = opened(**address, view=view)  # in a second browser, nothing is pressed
    assert not again.exception
    assert runs(again)[0].is_reopened
    assert results(again).data[0].name == "mine.csv"
    assert RESULTS_FORMAT.pack(results(again)) == RESULTS_FORMAT.pack(before)
    other = opened(methods=["mean"], view=view)  # other settings: the table, and no results
    assert not runs(other)
    assert "mine.csv" in said(other)


def test_what_was_finished_before_stop_is_kept_and_goes_on(
    page: AppTest, embedded: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = measures.embed

    def held(texts, embedder, *more, should_stop, **others):
        for progress in embed(texts, embedder, *more, should_stop=should_stop, **others):
            yield progress
            if embedder.name == "cls" and progress.done == 32:
                wait_until(should_stop, 60)

    monkeypatch.setattr(measures, "embed", held)
    upload(page, "text,group\n" + "".join(f"Dog number {i}.,{i % 8}\n" for i in range(40)))
    press(page, "Evaluate")
    (run,) = runs(page)
    wait_until(
        lambda: (doing := run.result.doing) is not None and (doing.row, doing.done) == (1, 32)
    )
    page.run()
    assert table(page)["triplets broken"]["mean"] != "–"
    assert table(page)["triplets broken"]["cls"] == "–"
    assert not drawn(page)
    page.button(key=f"evaluation-stop-{run.id}").click().run()
    finish_run(page, "evaluation", 90)
    assert run.status == "stopped"
    assert "Stopped: 72 of 80 embeddings" in said(page)
    bars = proof(page)
    assert title(bars) == "The text of another group is nearer"
    assert "–: not measured." in said(page)
    assert headline(page).endswith("Left out: **cls**.")
    assert bars["data"][0]["y"] == ["mean"]

    monkeypatch.setattr(measures, "embed", embed)
    press(page, "Run again")
    finish_run(page, "evaluation", 90)
    assert not page.info
    assert runs(page)[-1].status == "done"
    assert embedded == {"mean": 40, "cls": 32}
    assert [dot["y"] for dot in proof(page)["data"]] == [["mean"], ["cls"]]


def test_markup_in_texts_and_names_is_never_live(page: AppTest) -> None:
    rows = [(f"{EVIL} {i}", f"[a](b) :red[{i * 7 % 5}]", i / 2) for i in range(10)]
    content = pd.DataFrame(rows, columns=["a", "b", "score"]).to_csv(index=False)
    name = "**evil** <script>1<b> $x$.csv"
    evaluate(upload(page, content, name))
    assert not page.exception
    shown = next(one.value for one in page.caption if "scored pairs" in one.value)
    assert shown.startswith(r"\*\*evil\*\* \<script\>1\<b\> \$x\$.csv")
    (scatter,) = of_view(page, "Pair by pair")
    hover = scatter["data"][0]["customdata"][0]
    assert hover.startswith("“&lt;script&gt;window.x=1&lt;/script&gt; **dog** $x$ 0”<br>")
    assert "<script" not in json.dumps(scatter)
    click(page, "View", "Errors")
    assert page.table[0].value["text 1"].str.startswith("\\<script\\>").all()  # the first three
    assert "\\<script\\>" in next(
        one.value for one in page.markdown if "disagree most" in one.value
    )
    live = [one.value for one in page.markdown if one.allow_html]
    assert not any("script" in one for one in live)
    report = report_html(results(page)).replace(get_plotlyjs(), "")
    assert "**evil** &lt;script&gt;1&lt;b&gt; $x$.csv" in report
    assert "<script>1" not in report
    assert "<script>window.x" not in report


def test_labels_are_probed_beside_their_neighbours(opened) -> None:
    page = upload(opened(methods=["mean"], evaluation_model="bundled"), LABELS)
    page.selectbox(key="probe-of-labels").set_value("labels").run()
    evaluate(page)
    assert not page.exception
    assert {"probe accuracy", "probe TF-IDF baseline"} <= set(table(page).columns)
    assert title(proof(page, "Probe")) == "A probe tells which topic a text has"
    assert headline(page).startswith("With **mean**, a probe tells which topic a text has for")


def test_words_are_read_back_beside_the_most_frequent_ones(opened) -> None:
    page = upload(opened(methods=["mean"], evaluation_model="bundled"), LABELS)
    page.selectbox(key="probe-of-labels").set_value("words").run()
    evaluate(page)
    assert not page.exception
    assert {"read-back recall at 10", "read-back frequent words"} <= set(table(page).columns)
    click(page, "Measure", "Read-back")
    assert headline(page).startswith("With **mean**, ten guesses from each embedding find")
    assert "The ten most frequent words find" in headline(page)
