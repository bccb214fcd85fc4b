"""The training page without a browser: what opens, what is refused, what a training leaves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from neuralviz import training
from neuralviz.errors import ShouldStop, WorkerEndedError
from neuralviz.jobs.training import LessonEvent, TrainOnCorpus, first_label
from neuralviz.models import load_text_model
from neuralviz.models.shared import encoders_folder, trained_encoders
from neuralviz.paths import home
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.ui import choices
from neuralviz.ui.page import plain
from tests.support.models import save_family
from tests.support.pages import finish_run, last_run, page_at, press, read_page
from tests.support.trained import CORPUS, train_briefly

LABELS = ["odd" if i % 2 else "even" for i in range(len(CORPUS))]
SHORT = {"training_sentences": "1", "training_shortest": "5", "training_rate_model": "0.03"}


@pytest.fixture(scope="module")
def saved_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small encoder, as a training leaves it."""
    folder = tmp_path_factory.mktemp("small")
    model = load_text_model(str(save_family("bert", folder / "model")))
    training.save_encoder(train_briefly(model), model, folder / "saved")
    return folder / "saved"


@pytest.fixture
def tiny(saved_encoder: Path) -> str:
    """The name of a small encoder: a page without a browser knows no folders."""
    shutil.copytree(saved_encoder, encoders_folder() / "tiny")
    return "tiny"


def kept(label: str = "kind") -> Corpus:
    labels = {label: tuple(LABELS)} if label else {}
    return CorpusStore().add("mine", ReadTexts(tuple(CORPUS), labels=labels))


def opened(corpus: Corpus, model: str, **address: str | list[str]) -> AppTest:
    """The page at an address: a corpus and a model of ours, all of which is trained."""
    whole = {"training_part": "Whole model", "pairs": ["Crops", "Dropout"]}
    given = {"training_corpus": corpus.id, "encoder": model, **whole, **address}
    return page_at("training", **given).run()


def train(page: AppTest) -> AppTest:
    """Press *Train*, wait for the end, and show the page after it."""
    return finish_run(press(page, "Train"), "training")


def headline(page: AppTest) -> str:
    return next(one.value for one in page.markdown if "ten nearest texts" in one.value)


def test_it_opens_with_the_recorded_training_and_trains_nothing_by_itself() -> None:
    page = page_at("training").run()
    assert "Recorded run" in read_page(page)
    assert "**Crops** helped: the ten nearest texts predict the chapter" in read_page(page)
    assert "Texts: textbook passages." in read_page(page)  # on the stage
    assert "Too short to train on: 56 texts of 824. They are still counted." in read_page(page)
    assert "Save the encoder" not in [one.value for one in page.subheader]
    assert "training-runs" not in page.session_state
    page.number_input(key="training-seed").set_value(7).run()
    assert "The results below are of other data or settings" in read_page(page)


def test_two_ways_are_trained_and_one_encoder_is_saved_and_the_address_brings_them_back(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = kept()
    page = train(opened(corpus, tiny, **SHORT))
    assert last_run(page, "training").status == "done", last_run(page, "training").error
    assert "ten nearest texts predict the kind correctly for" in read_page(page)
    assert any("nearest before" in frame.value for frame in page.dataframe)
    assert all(caption.value for caption in page.caption)

    for name, answer in (("bundled", "already a model"), ("a b", "Name the encoder with")):
        page.text_input(key="training-name").set_value(name).run()
        assert answer in read_page(press(page, "Save"))
    page.text_input(key="training-name").set_value("mine").run()
    path = str(encoders_folder() / "mine")
    assert f"Saved as “mine” in {path}." in read_page(press(page, "Save"))
    with monkeypatch.context() as others:  # to whom the server's folders are nothing
        others.setattr(choices, "has_visitors", lambda: True)
        assert "Saved as “mine”." in read_page(page.run())
    assert [one.name for one in trained_encoders()] == ["mine", "tiny"]
    assert "Saved as “mine”" in read_page(press(page, "Save"))
    page.pills(key="training-save-of").set_value("dropout").run()
    assert "Saved as" not in read_page(page)  # that was the other one
    assert "already a model" in read_page(press(page, "Save"))

    again = opened(corpus, tiny, **SHORT, run=page.query_params["run"])
    assert last_run(again, "training").is_reopened
    assert not [*page.warning, *again.warning]
    gone = opened(corpus, tiny, **SHORT | {"training-seed": 5}, run="gone")
    assert "is not saved any more" in gone.warning[0].value
    assert headline(again) == headline(page)
    assert "mine" in again.selectbox(key="encoder").options


@pytest.mark.parametrize("n_read", [10_000, 30])
def test_texts_are_measured_by_the_finest_column_that_neighbours_share(
    monkeypatch: pytest.MonkeyPatch, n_read: int
) -> None:
    monkeypatch.setattr("neuralviz.jobs.training.LABELS_READ", n_read)
    columns = {
        "opened": [f"2025-01-{1 + i % 28:02}" for i in range(60)],
        "ticket": [f"T{i}" for i in range(60)],
        "area": [f"area {i // 30}" for i in range(60)],
        "product": [f"product {max(1, i // 15)}" for i in range(60)],
        "source": ["mail"] * 60,
    }
    texts = tuple(f"Text {i}." for i in range(60))
    found = []
    for names in (columns, ["opened", "ticket", "source"], ["opened"], ["source"], []):
        labels = {name: tuple(columns[name]) for name in names}
        found.append(first_label(CorpusStore().add("mine", ReadTexts(texts, labels=labels))))
    assert found == ["product", "ticket", "opened", "source", ""]


def test_a_corpus_without_labels_is_trained_on_and_the_loss_says_what_is_learnt(tiny: str) -> None:
    named = "![seen](https://example.org/seen.png)"  # a column's name is no markdown
    page = opened(kept(named), tiny, **SHORT)
    assert page.pills(key="training-label").options == [plain(named)]
    page = train(opened(kept(""), tiny, **SHORT, pairs=["Crops"]))
    assert "no labels, so accuracy cannot be measured" in read_page(page)
    assert "nats" in read_page(page)
    assert "nearest texts are new" in read_page(page)


def test_a_training_that_ended_suddenly_offers_what_is_saved_of_it_alone(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = TrainOnCorpus.events

    def cut_off(self: TrainOnCorpus, should_stop: ShouldStop) -> Iterator[LessonEvent]:
        with closing(whole(self, should_stop)) as events:
            for event in events:
                yield event
                if event[0] == 1 and isinstance(event[1].get("curves"), list):  # a step
                    raise WorkerEndedError

    monkeypatch.setattr(TrainOnCorpus, "events", cut_off)
    page = train(opened(kept(), tiny, **SHORT))
    assert last_run(page, "training").status == "failed"
    assert "“Run again” resumes." in read_page(page)
    assert "Save the encoder" in [one.value for one in page.subheader]
    for folder in home().glob("trainings/*"):
        shutil.rmtree(folder)
    assert "resumes" not in read_page(page.run())
    assert "The weights of this training are not saved" in read_page(page)
    assert "Save the encoder" not in [one.value for one in page.subheader]

    monkeypatch.setattr(TrainOnCorpus, "events", whole)
    finish_run(press(page, "Run again"), "training")
    assert "Save the encoder" in [one.value for one in page.subheader]


def test_what_cannot_be_trained_is_said_before_the_press(tiny: str) -> None:
    def can_train() -> bool:
        return not next(one for one in page.button if one.label == "Train").disabled

    corpus = kept()
    page = opened(corpus, tiny, **SHORT | {"training_longest": "1"})
    assert "must not be shorter than the shortest" in read_page(page)
    assert "Press **Train**" not in read_page(page)
    page = opened(corpus, tiny)
    assert "Too few of the 12 texts are long enough" in read_page(page)
    assert not can_train()
    page = press(page, "Use single sentences of any length")
    assert "Too few" not in read_page(page)
    assert can_train()
    page = train(opened(corpus, tiny, **SHORT, training_frozen_blocks="3"))
    assert "nothing is left to train" in read_page(page)
