"""The corpus map without a browser: what opens, what is refused, what work leaves behind."""

from __future__ import annotations

import copy
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from neuralviz.embedders import FOR_CORPORA, EmbedderSpec, embedder_spec, make_embedder
from neuralviz.errors import ModelError
from neuralviz.jobs.mapping import MakeMaps, MapChoice
from neuralviz.maps.example import NAME, add_example_once
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import make_map
from neuralviz.maps.opened import Selection
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.models import shared
from neuralviz.plots.theme import shorten
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.server_settings import server_settings
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.importing import import_vectors
from neuralviz.ui.corpus import answers, asking, findings
from neuralviz.ui.corpus.main import Saved, find_saved
from neuralviz.ui.corpus.opened import _open_corpus, _open_map
from neuralviz.ui.corpus.search import DIFFERENT
from neuralviz.ui.corpus.show import find_first_colour
from tests.support.pages import (
    count_figures,
    find_labelled,
    finish_run,
    last_run,
    open_reasons,
    page_at,
    press,
    read_page,
)
from tests.support.waiting import wait_until

MEAN = embedder_spec("mean", defaults=FOR_CORPORA)
PCA = ProjectionSettings("pca")
TEXTS = tuple(
    f"The **{kind}** {thing} was {state}."
    for kind in ("old", "new", "red")
    for thing in ("bridge", "market", "garden")
    for state in ("closed", "crowded")
)
READ = ReadTexts(TEXTS, labels={"kind*": tuple(text.split()[1] for text in TEXTS)})
SENTENCE = "The garden was full of people."


@pytest.fixture(scope="module")
def home(bundled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to copy: the example, and texts with a map by PCA, on which placing is quick."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURALVIZ_HOME", str(folder))
        store = CorpusStore()
        add_example_once(store)
        corpus = store.add("mine", READ)
        *_, embedded = embed_corpus(store, corpus, MEAN)
        make_map(store, corpus, embedded.embedder, PCA)
    return folder


@pytest.fixture(autouse=True)
def kept() -> CorpusStore:
    """An empty store, as before the first visit."""
    _open_corpus.clear()
    _open_map.clear()
    return CorpusStore()


@pytest.fixture
def example(home: Path, kept: CorpusStore, tmp_path: Path) -> Corpus:
    """The example, in a copy of the home."""
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    return kept.corpus(NAME)


@pytest.fixture
def mapped(example: Corpus) -> AppTest:
    """The page with a map of texts by PCA."""
    page = open_page(**{"map-a-reducer": "PCA"})
    assert not list_making(page)
    return page


def open_page(**address: str) -> AppTest:
    """The page at an address, with one map unless that says otherwise."""
    page = page_at("corpus_map", **{"map-b": "none", **address}).run()
    assert not page.exception
    return page


def search(page: AppTest, query: str) -> AppTest:
    page.text_input(key="corpus-search").set_value(query).run()
    assert not page.exception
    return page


def list_making(page: AppTest) -> list[str]:
    return [button.label for button in page.button if button.label.startswith("Make the")]


def test_the_example_is_there_at_the_first_visit_and_stays_away_when_deleted(kept: CorpusStore):
    page = open_page()
    (example,) = kept.corpora()
    assert example.name == NAME
    assert len(KeptMaps(kept).list_maps(example)) == 2
    assert not list_making(page)
    page.checkbox(key=f"corpus-sure-{example.id}").check().run()
    page.button(key="corpus-delete").click().run()
    assert kept.corpora() == ()
    page = open_page()
    assert "No corpora yet" in read_page(page)
    press(page, "Open the example")
    assert [corpus.name for corpus in kept.corpora()] == [NAME]


def test_a_map_is_made_when_asked_for_and_found_again(kept: CorpusStore, bundled):
    kept.add("few", ReadTexts(("the same",) * 30))
    page = open_page()
    assert "A map needs at least 5 different texts; “few” has 1." in read_page(page)
    assert not list_making(page)
    corpus = kept.add("mine", ReadTexts(TEXTS))
    page = open_page(**{"map-a-reducer": "PCA"})
    assert "Not made yet: mean (18 different texts to embed)" in read_page(page)
    assert "There is no map of **mine** (18 texts) by **mean** yet." in read_page(page)
    press(page, "Make the map by mean")
    assert not list_making(finish_run(page, "corpus-maps", 120).run())
    assert count_figures(page)
    (saved,) = KeptMaps(kept).list_maps(corpus)
    assert saved.settings.reducer == "pca"
    assert not list_making(open_page(**{"map-a-reducer": "PCA"}))


@pytest.mark.parametrize("is_open", [False, True])
def test_a_page_that_is_opened_again_meets_the_work_under_way(
    example: Corpus, monkeypatch, is_open: bool
):
    settings = replace(server_settings(), open=is_open)
    monkeypatch.setattr("neuralviz.ui.corpus.main.effective_settings", lambda: settings)

    def wait(task: MakeMaps, should_stop):
        wait_until(should_stop)
        yield from ()

    monkeypatch.setattr(MakeMaps, "events", wait)
    address = {"corpus": example.id, "map-a-reducer": "PCA"}
    page = press(open_page(**address), "Make the map by mean")
    (run,) = page.session_state["corpus-maps-runs"]
    run.owner = "another session"  # all of these tests have one id
    again = open_page(**address)
    if is_open:  # a visitor sees nothing of another's work
        assert "corpus-maps-runs" not in again.session_state
    else:
        assert again.session_state["corpus-maps-runs"] == [run]
        assert not list_making(again)
        again.segmented_control(key="map-a-dimensions").set_value(3).run()
        press(again, "Make the map by mean")  # another one, beside which the first goes on
        (own,) = again.session_state["corpus-maps-runs"]
        assert own is not run
        assert not own.is_over
        assert not run.is_over
        own.stop()
    run.stop()
    assert run.wait(30)


def test_the_page_opens_with_both_maps_of_the_example_and_its_point(
    kept: CorpusStore, example: Corpus
):
    page = open_page(corpus=example.id, **{"map-b": "neural"})
    assert not list_making(page)
    assert re.search(
        r"nearest texts predict the topic correctly for 93% of 480 texts, against \d+% with "
        r"\*\*neural\*\*.\n\nThe difference is significant",
        read_page(page),
    )
    assert "the most frequent topic of a text's nearest" in read_page(page)  # on the stage
    assert page.selectbox(key="colour-a").value == "label:topic"
    page.selectbox(key="colour-b").set_value("first-loss").run()
    assert "neighbouring texts have similar values of **loss, nats**" in read_page(page)
    page.selectbox(key="map-b-neural-precision").set_value("exact").run()
    assert "Not made yet: neural, exact, 5 epochs (480 different texts" in read_page(page)
    assert list_making(page) == ["Make the map by neural, exact, 5 epochs"]
    assert len(KeptMaps(kept).list_maps(example)) == 2  # nothing was computed


@pytest.mark.parametrize(("n_labels", "colour"), [(1, "label:0"), (4, "clusters")])
def test_the_first_colour_is_a_label_that_the_first_map_alone_decides(
    n_labels: int, colour: str
) -> None:
    """60 of 100 right votes are more than half, but not of the best of four labels."""
    sample = SimpleNamespace(rows=np.arange(100), near=SimpleNamespace(k=10))
    corpus = SimpleNamespace(
        label_names=list(map(str, range(n_labels))),
        is_large=False,
        sizes=lambda _: {"a": 50, "b": 50},
        codes=lambda _: (np.zeros(100),),
    )
    clusters, hits = SimpleNamespace(n=3), np.arange(100) < 60
    one = SimpleNamespace(
        corpus=corpus, clusters=clusters, sample=lambda: sample, hits=lambda *_: hits
    )
    assert find_first_colour(one) == colour


def test_words_select_and_colours_change(example: Corpus):
    page = open_page(corpus=example.id)
    assert "With **mean**, the ten nearest texts predict the topic correctly for" in read_page(page)
    search(page, "telescope")
    n = len(page.session_state["corpus-selected"])
    assert 1 < n < 50
    assert f"{n} texts containing “telescope”." in read_page(page)
    assert f"**{n}** of 480 texts contain “telescope”" in read_page(page)
    assert page.segmented_control(key="corpus-list").value == "Selection"
    assert "Pale points are all other texts." in read_page(page)
    assert ("Words name dense groups" in read_page(page), "Grey" in read_page(page)) == (
        True,
        False,
    )
    page.toggle(key="names").set_value(False).run()
    assert "Words name dense groups" not in read_page(page)
    search(page, "e")  # all texts have one
    assert "**480** of 480 texts contain" in read_page(page)
    assert "Pale points" not in read_page(page)
    search(page, "")
    said = {}
    for option in list(page.selectbox(key="colour-a").options):
        page.selectbox(key="colour-a").set_value(option).run()
        assert not page.exception
        said[option] = read_page(page)
    assert "predict the form correctly for" in said["form"]
    assert re.search(r"texts form \d+ clusters: the largest are \*\w+ \w+\* \(", said["Clusters"])
    assert re.search(
        r"similar values of \*\*words\*\*.* they are highest in \*", said["words (number)"]
    )
    search(page, "telescope")
    search(page, "no such words")
    assert "No text contains “no”, “such” and “words”." in read_page(page)
    search(page, "telescope")
    search(page, "")
    assert "corpus-selected" not in page.session_state
    search(page, "telescope")
    page.segmented_control(key="corpus-how").set_value("By meaning").run()
    assert "corpus-selected" not in page.session_state
    for query in ("telescope", ""):  # as the words that were selected and are no more
        search(page, query)


def test_selected_texts_are_asked_about_and_a_link_asks_again(
    example: Corpus, bundled, monkeypatch
):
    page = open_page(corpus=example.id, **{"map-a": "mean"})
    assert "With a map by **neural**, you can ask" in read_page(search(page, "telescope"))
    page = open_page(corpus=example.id, **{"map-a": "neural"})
    search(page, "telescope")
    finish_run(press(page, "Ask"), "corpus-asking", 120)
    ((blank,),) = [run.result for run in page.session_state["corpus-asking-runs"]]

    store, rows = CorpusStore(), page.session_state["corpus-selected"].rows()
    spec = embedder_spec("neural", defaults=FOR_CORPORA)
    kept = store.vectors.find_embedder(make_embedder(spec))
    mean = store.vectors.get(kept, store.keys(example, rows)).mean(axis=0)
    network, tokenizer = copy.deepcopy(bundled.network), bundled.tokenizer
    inputs = tokenizer("This is about [MASK].", return_tensors="pt")
    place = inputs.input_ids[0].tolist().index(bundled.mask_id)
    with torch.no_grad():
        before = network(**inputs).logits[0, place].softmax(0)
        parts = np.split(mean / np.linalg.norm(mean), 3)
        for name, part in zip(bundled.head_layers, parts, strict=True):
            length = 0.01 * 5 * (3 * len(part)) ** 0.5  # AdamW's longest, by each layer's share
            network.get_parameter(name).add_(torch.tensor(length * part))
        after = network(**inputs).logits[0, place].softmax(0)
    best = tokenizer.convert_ids_to_tokens(after.topk(5).indices.tolist())
    assert [candidate.token for candidate in blank.after] == best
    for candidate in blank.candidates:
        token = tokenizer.convert_tokens_to_ids(candidate.token)
        expected = before[token].item(), after[token].item()
        assert (candidate.before, candidate.after) == pytest.approx(expected, abs=1e-5)
    n = len(rows)
    answer = f"after adding the mean neural embedding of {n} texts containing “telescope” it is"
    assert f"{answer} “{best[0]}”" in read_page(page)

    again = open_page(**{**page.query_params, "corpus-search": "telescope"})
    finish_run(again, "corpus-asking", 120)
    assert answer in read_page(again)
    again.text_input(key="corpus-question").set_value("No blank here.").run()
    finish_run(again, "corpus-asking", 120)
    assert "The sentence has no blank." in read_page(again)
    monkeypatch.setattr(asking, "MOST_ASKED", 2)
    again.text_input(key="corpus-question").set_value("It is ___.").run()
    finish_run(again, "corpus-asking", 120)
    task = again.session_state["corpus-asking-runs"][-1].task
    assert task.rows.tolist() == rows[:: -(-n // 2)].tolist()
    other = replace(task, sentence="They are ___.", spec=embedder_spec("neural"))
    with pytest.raises(ModelError, match="has changed since this map was made"):
        list(other.events(lambda: False))

    alone = open_page(corpus=example.id)  # by mean
    assert "corpus-question" not in [box.key for box in search(alone, "telescope").text_input]


def test_a_cluster_is_renamed_for_everybody(example: Corpus):
    address = {"corpus": example.id, "corpus-list": "Clusters", "colour-a": "Clusters"}
    page = open_page(**address)
    kept = find_saved(example, MapChoice(MEAN, ProjectionSettings())).map
    page.session_state["corpus-named"] = kept.id, 0  # as a click on its name leaves it
    box = find_labelled(page.run(), "Name of cluster 1")
    box.set_value("Stars & <b>skies").run()
    assert not page.exception
    assert "the largest are *Stars & <b>skies* (" in read_page(open_page(**address))
    find_labelled(page, "Name of cluster 1").set_value("").run()
    assert f"the largest are *{kept.cluster_names[0]}* (" in read_page(page)


def place(page: AppTest, sentence: str) -> list:
    """Search by meaning, and wait until the sentence is on the map; its runs."""
    page.segmented_control(key="corpus-how").set_value("By meaning").run()
    search(page, sentence)
    (saved,) = KeptMaps(CorpusStore()).list_maps(CorpusStore().corpus("mine"))
    finish_run(page, f"corpus-placing-{saved.id}", 120)
    assert not page.exception
    return page.session_state[f"corpus-placing-{saved.id}-runs"]


def test_a_sentence_is_placed_and_a_link_brings_it_back_with_a_text_and_the_list(mapped: AppTest):
    (run,) = place(mapped, SENTENCE)
    assert run.result.position.shape == (1, 2)
    near = run.result.near
    table = next(frame.value for frame in mapped.dataframe if "cosine" in frame.value)
    assert table["cosine"].tolist() == pytest.approx(1 - near.distances[0])
    assert place(mapped, SENTENCE) == [run]  # not placed again

    mapped.session_state["corpus-row"] = 4  # as a click on a point leaves it
    mapped.session_state["corpus-list"] = "Text"
    mapped.run()
    assert mapped.query_params["text"] == "5"
    link = {"corpus-search": SENTENCE, "corpus-how": "By meaning", "corpus-list": "Text"}
    corpus = mapped.query_params["corpus"]
    again = open_page(corpus=corpus, text="5", **link, **{"map-a-reducer": "PCA"})
    assert again.session_state["corpus-sentence"] == SENTENCE
    assert again.session_state["corpus-row"] == 4
    assert again.segmented_control(key="corpus-list").value == "Text"
    gone = open_page(corpus="0" * len(corpus), text="5", **{"map-a-reducer": "PCA"})
    gone.selectbox(key="corpus").set_value(corpus).run()
    assert "corpus-row" not in gone.session_state  # the text of a corpus that is gone is no other's
    search(again, "")  # what is done is not undone
    assert "corpus-sentence" not in again.session_state


def test_titles_have_the_share_of_right_labels_and_crosses_mark_the_wrong_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hits = [np.array([True, True, True, False]), np.array([True, False, False, False])]
    monkeypatch.setattr(answers, "score_label", lambda *_: SimpleNamespace(hits=hits))
    monkeypatch.setattr(answers, "_describe_search", lambda _: "")
    codes = np.array([0, 1, -1, 1, 0])  # the third text has no label
    corpus = SimpleNamespace(codes=lambda _: (codes, ["a", "b"]), number_names=())
    methods = [SimpleNamespace(embedder=SimpleNamespace(id=name)) for name in "mn"]
    view: Any = SimpleNamespace(
        colours=["label:kind"] * 2, corpus=corpus, selection=None, methods=methods
    )
    accuracy = answers.note_accuracy(view)
    assert accuracy.notes == {"m": ": kind right for 75%", "n": ": kind right for 25%"}
    assert {name: rows.tolist() for name, rows in accuracy.wrong.items()} == {
        "m": [4], "n": [1, 3, 4]
    }  # fmt: skip


def test_a_text_and_its_nearest_open_with_the_cosine_of_the_list(
    example: Corpus, kept: CorpusStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, spec = kept.corpus("mine"), embedder_spec("neural", defaults=FOR_CORPORA)
    *_, embedded = embed_corpus(kept, corpus, spec)
    make_map(kept, corpus, embedded.embedder, PCA)
    page = open_page(corpus=corpus.id, **{"map-a": "neural", "map-a-reducer": "PCA"})
    page.session_state["corpus-row"] = 4
    page.session_state["corpus-list"] = "Text"
    page.run()
    near = next(frame.value for frame in page.dataframe if "cosine" in frame.value)
    first, _ = last_run(open_reasons(page, monkeypatch), "compare").result
    assert last_run(page, "compare").task.specs[0] == spec
    assert first.texts[0] == TEXTS[4]
    assert float(first.similarity.products[0, 1]) == pytest.approx(near["cosine"][0], abs=1e-4)


def test_two_maps_by_one_method_and_projection_each_have_a_column(mapped: AppTest):
    store = CorpusStore()
    corpus = store.corpus("mine")
    other = ProjectionSettings("pca", metric="euclidean")
    *_, embedded = embed_corpus(store, corpus, MEAN)
    make_map(store, corpus, embedded.embedder, other)
    names = {"map-b": "mean", "map-a-reducer": "PCA", "map-b-reducer": "PCA"}
    page = open_page(
        corpus=corpus.id, **names, **{"map-b-metric": "euclidean"}, **{"corpus-list": DIFFERENT}
    )
    assert not page.exception
    (table,) = (frame.value for frame in page.dataframe if "shared" in frame.value)
    near = [f"close only with mean · PCA{ending}" for ending in ("", ", distance euclidean")]
    assert list(table) == ["shared", "text", *near]
    assert "not among the other map's" in read_page(page)


def test_a_model_that_is_not_loaded_waits_for_a_button(mapped: AppTest, monkeypatch):
    monkeypatch.setattr("neuralviz.ui.corpus.search.needs_asking", lambda _: True)
    page = mapped
    page.segmented_control(key="corpus-how").set_value("By meaning").run()
    search(page, "The telescope showed a planet.")
    assert "The model of “mean” is not loaded." in read_page(page)
    (key,) = (button.key for button in page.button if button.label == "Load the model")
    kind = key.replace("corpus-load", "corpus-placing")
    assert f"{kind}-runs" not in page.session_state
    finish_run(page.button(key=key).click().run(), kind, 120)
    assert last_run(page, kind).status == "done"
    assert "not loaded" not in read_page(page)


def test_a_map_by_a_model_that_has_changed_is_not_shown_for_one_of_now(
    mapped: AppTest, monkeypatch
):
    assert count_figures(mapped)
    loaded = shared.shared_text_model(MEAN.model_id)
    key = (MEAN.model_id, shared.files_stamp(MEAN.model_id))
    monkeypatch.setitem(shared._models._values, key, replace(loaded, fingerprint="of other files"))
    mapped.run()
    assert not mapped.exception
    assert not count_figures(mapped)
    assert "the model has changed since the saved map was made" in read_page(mapped)
    assert list_making(mapped) == ["Make the map by mean"]
    # nobody knows, and nothing is loaded to find out
    monkeypatch.delitem(shared._models._values, key)
    mapped.run()
    assert count_figures(mapped)
    assert key not in shared._models._values
    assert "outdated" not in read_page(mapped)  # the bundled model changes with the program alone


def test_a_map_by_a_model_of_the_hub_that_is_not_loaded_may_be_outdated(kept: CorpusStore) -> None:
    corpus = kept.add("mine", ReadTexts(TEXTS))
    choice = MapChoice(embedder_spec("mean@someone/model"), PCA)
    embedder = kept.vectors.restore("0" * 24, choice.spec.to_json(), 4)  # of a former commit
    keys = np.unique(kept.keys(corpus))
    vectors = np.random.default_rng(0).normal(size=(len(keys), 4)).astype(np.float32)
    kept.vectors.put(embedder, keys, vectors, np.full((len(keys), 2), np.nan))
    made = make_map(kept, corpus, embedder, choice.settings)
    assert find_saved(corpus, choice) == Saved(made, may_be_outdated=True)


def test_filters_are_in_the_address_and_reach_maps_and_lists(example: Corpus) -> None:
    address = {"map-b": "neural", f"only-0-{example.id}": "music"}
    page = open_page(corpus=example.id, **address)
    assert "Showing 48 of 480 texts: topic is music." in read_page(page)
    entries = page.session_state["downloads"].list_entries(None).values()
    settings = [entry.about.settings for entry in entries]
    (of_map,) = {of["shown"]: of for of in settings if "shown" in of}.values()
    assert of_map["shown"] == "48 of 480 texts: topic is music"
    assert "On average over 48 texts that the filter shows" in read_page(page)
    assert "drawn" not in of_map  # what a filter leaves out is no sample
    (table,) = (frame.value for frame in page.dataframe if "shared" in frame.value)
    store = CorpusStore()
    is_music = store.labels(example, "topic") == "music"
    assert set(table["text"]) == {shorten(t, 240) for t in np.array(store.texts(example))[is_music]}
    page.slider(key=f"only-2-{example.id}").set_range(11, 14).run()
    shown = re.search(r"Showing (\d+) of .*is music, and words is 11 to 14", read_page(page))
    assert 0 < int(shown[1]) < 48
    search(page, "e")
    assert f"{shown[1]} texts containing" in read_page(page)
    search(page, "telescope")
    assert "No text contains “telescope”." in read_page(page)


def test_imported_vectors_are_a_method_of_their_corpus_and_have_no_model(
    kept: CorpusStore, example: Corpus
) -> None:
    corpus = kept.add("imported", ReadTexts(TEXTS))
    vectors = np.random.default_rng(0).normal(size=(len(TEXTS), 4)).astype(np.float32)
    imported = import_vectors(kept, corpus, ReadVectors("my file.npy", vectors)).kept
    make_map(kept, corpus, imported, PCA)
    spec = EmbedderSpec.from_json(imported.spec)
    page = open_page(**{"map-a-reducer": "PCA"})
    assert page.selectbox(key="map-a").value == spec.label
    assert page.query_params["map-a"] == spec.label == "file: my file.npy"
    assert count_figures(page)
    newer = ReadVectors("newer.npy", vectors + 1)
    import_vectors(kept, corpus, newer)  # in another window
    link = {"corpus": corpus.id, "map-a": spec.label, "map-a-reducer": "PCA"}
    assert open_page(**link).selectbox(key="map-a").value == spec.label
    again = open_page(**{"map-a-reducer": "PCA"})
    assert again.selectbox(key="map-a").value == spec.label  # a link without methods never changes
    gone = open_page(**link | {"map-a": "file: gone.npy"})
    assert "The vectors “gone.npy” are not saved for these texts any more" in read_page(gone)
    assert not page.warning
    page.segmented_control(key="corpus-how").set_value("By meaning").run()
    search(page, "A sentence.")
    assert "A new sentence cannot be placed on the map by “file" in read_page(page)
    assert page.segmented_control(key="corpus-list").value == "Clusters"  # no empty list
    page.selectbox(key="corpus").set_value(example.id).run()
    assert not page.exception
    assert not page.warning
    assert page.selectbox(key="map-a").value == "mean"  # another corpus's file is not asked for


def import_map(store: CorpusStore, corpus: Corpus, name: str, vectors: np.ndarray) -> None:
    read = ReadVectors(f"{name}.npy", vectors.astype(np.float32))
    make_map(store, corpus, import_vectors(store, corpus, read).kept, PCA)


def test_duplicates_and_a_group_of_one_method_are_linked_judged_and_brought_back(
    kept: CorpusStore,
) -> None:
    """Of 60 texts two are edits, and 12 of five kinds have a phrase that one method goes by."""
    draw = np.random.default_rng(0)
    kinds = np.arange(60) % 5
    words = [" ".join(draw.choice(list("bcdfghkl"), 9)) for _ in range(60)]
    texts = [f"{word} of kind {kind}" for word, kind in zip(words, kinds, strict=True)]
    texts[:12] = [f"Please do *not* reply to this: {text}" for text in texts[:12]]
    texts[40], texts[50] = f"{texts[30]} too", f"{texts[30]} as well"
    stars = {"stars": tuple(str(kind + 1) for kind in kinds)}
    labels = {"mood": tuple(draw.choice(["glad", "sad"], 60)), **stars}
    corpus = kept.add("mine", ReadTexts(tuple(texts), labels=labels))
    by_kind = np.eye(5)[kinds] + 0.2 * draw.normal(size=(60, 5))
    by_kind[[40, 50]] = by_kind[30] + 0.001 * draw.normal(size=(2, 5))
    by_phrase = np.hstack([by_kind, np.zeros((60, 1))])
    by_phrase[:12] = 0.2 * by_phrase[:12] + 3 * np.eye(6)[5]
    import_map(kept, corpus, "kind", by_kind)
    import_map(kept, corpus, "phrase", by_phrase)
    maps = {"map-a": "file: kind.npy", "map-b": "file: phrase.npy"}
    maps |= {"map-a-reducer": "PCA", "map-b-reducer": "PCA"}
    page = open_page(**maps, **{"corpus-list": "Near-duplicates"})  # before any are known
    kinds = [key[:-5] for key in page.session_state if re.match(r"corpus-(held|pairs).*runs", key)]
    for kind in kinds:
        finish_run(page, kind)
    assert page.segmented_control(key="corpus-list").value == "Near-duplicates"
    assert page.selectbox(key="colour-a").value == "label:stars"  # moods are at random
    assert page.query_params["colour-a"] == "label:stars"  # a link keeps it
    page.segmented_control(key="corpus-list").set_value("Clusters").run()
    assert "Neighbouring texts have similar values of **stars**" in read_page(page)
    held = "12 longer texts are closer together by file: phrase.npy than by file: kind.npy"
    assert read_page(page).replace("*", "").count(held) == 2  # once for the stage
    assert "they share “Please do not reply to this”" in read_page(page).replace("*", "")
    page.button(key="corpus-held-1").click().run()
    chosen = page.session_state["corpus-selected"]
    assert chosen.rows().tolist() == list(range(12))
    assert "similar values of **stars**" not in read_page(page)  # the group is the headline
    assert read_page(page).replace("*", "").count(held) == 1
    page.session_state["corpus-selected"] = Selection(~chosen.mask)  # kept when methods change
    assert "similar values of **stars**" in read_page(page.run())
    link = page.button(key="corpus-duplicates")
    assert link.label.endswith("kind.npy, **3 of 60 texts** have a near-duplicate")
    link.click().run()
    assert "By file: kind.npy, 3 of 60 texts" in read_page(page).replace("*", "")
    assert "**Cosine similarity** tells how similar two texts are" in read_page(page)
    pairs, groups, group = (table.value for table in page.dataframe)
    assert pairs["reaches it"].tolist()[:3] == ["yes", "yes", "no"]
    assert pairs["difference"][0] in ("– → too", "– → as well", "too → as well")
    assert groups["texts"].tolist() == [3]
    assert groups["removed: least similar"][0] in (texts[30], texts[40])
    assert group["text"][0] == texts[50]  # the longest
    link = open_page(
        **maps, **{"corpus-list": "Near-duplicates", "kept-" + corpus.id[:4]: "31,x,99"}
    )
    assert link.dataframe[2].value["text"][0] == texts[30]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "PATIENCE", -1)
        link.slider[0].set_value(0.5).run()
    assert "takes too long" in read_page(link.run())  # not at every click
    press(link, "Try again")
    assert "takes too long" not in read_page(link)
    link.slider[0].set_value(1.0).run()
    assert "no two texts have a cosine similarity of 1." in read_page(link)
    link.selectbox(key="duplicates-method").set_value("file: phrase.npy").run()
    assert not link.exception
    assert link.slider[0].value < 1  # each method has a threshold of its own
    other = open_page(**maps, **{"duplicates-method": "nonsense", "corpus-list": "Near-duplicates"})
    assert other.selectbox(key="duplicates-method").value == "file: kind.npy"
