"""What is trained from the command line: its events, how it goes on, what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from neuralviz import cli
from neuralviz.cli import train as train_cli
from neuralviz.jobs.training import first_settings
from neuralviz.models.shared import RECORD_FILE, encoders_folder, trained_encoder, trained_encoders
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.training import record
from tests.support.trained import CORPUS, save_trained
from tests.support.waiting import run_command

if TYPE_CHECKING:
    from neuralviz.models import LanguageModel
    from neuralviz.training.settings import Part

ROOT = Path(__file__).parents[2]
CHUNKS = ["--sentences", "1", "--shortest", "5", "--longest", "400"]
FEW = ["--batch-size", "4", "--epochs", "2", "--learning-rate", "0.001", *CHUNKS]
LABELS = tuple("odd" if i % 2 else "even" for i in range(12))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch, tiny: LanguageModel) -> Path:
    """Where everything is kept; one small model stands for all ids."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    monkeypatch.setattr("neuralviz.models.load_text_model", lambda _: tiny)
    return tmp_path


@pytest.fixture
def corpus() -> str:
    CorpusStore().add("mine", ReadTexts(tuple(CORPUS), labels={"kind": LABELS}))
    return "mine"


def run(*words: str, answer: str = "") -> Result:
    return CliRunner().invoke(cli.app, words, input=answer)


def train(
    *words: str, kind: str = "crops", name: str = "my-encoder", corpus: str = "mine"
) -> Result:
    return run("train", kind, corpus, "-o", name, *FEW, *words)


def events_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def refused(result: Result) -> str:
    """The one sentence, or few, that a command ended with."""
    assert result.exit_code == 2, result.stdout + result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr.strip()


def test_events_are_lines_of_json_and_the_encoder_has_its_name(corpus: str) -> None:
    result = train("--json", "--labels", "kind", kind="masking")
    assert result.exit_code == 0, result.stderr
    start, *steps, end = events_of(result)
    assert (start["event"], start["steps"], start["texts"]) == ("start", 6, 12)
    assert [step["step"] for step in steps] == list(range(1, 7))
    assert np.isfinite([[one["loss"], one["alignment"], one["uniformity"]] for one in steps]).all()
    assert len(start["accuracy"]) == len(end["accuracy"]) == 4
    assert not end["diverged"]
    assert "Saved the encoder as “my-encoder”. Use it with --model my-encoder." in result.stderr
    about = json.loads((encoders_folder() / "my-encoder" / RECORD_FILE).read_text("utf-8"))
    assert about["settings"]["pairs"] == "masking"
    assert not any(record.home().joinpath("trainings").iterdir())


@pytest.mark.parametrize("part", ["model", "table"])
def test_the_rate_is_that_of_the_page_unless_one_is_given(corpus: str, part: Part) -> None:
    few = ["--part", part, "--batch-size", "4", "--epochs", "1", *CHUNKS]
    result = run("train", "crops", corpus, "-o", "my-encoder", *few)
    assert result.exit_code == 0, result.stderr
    about = json.loads((encoders_folder() / "my-encoder" / RECORD_FILE).read_text("utf-8"))
    assert about["settings"]["learning_rate"] == first_settings(part).peak_rate


def test_a_table_is_measured_beside_the_whole_model_as_it_is(corpus: str) -> None:
    given = ["--labels", "kind", "--part", "table"]
    words = " ".join(train(*given).output.split())
    assert "Training the embedding table: 12 texts" in words
    assert "Step 1 of 6: loss" in words  # where there is no terminal for a bar
    found = re.search(r"the whole model, untrained, reaches (\d+)%", words)
    assert found is not None
    start, *_, end = events_of(train(*given, "--json", name="other"))
    assert 100 * start["whole_model_untrained"] == pytest.approx(float(found[1]), abs=0.5)
    assert f"{end['accuracy'][-1]:.0%}" in words
    start, *_ = events_of(train("--labels", "kind", "--json", name="whole"))
    assert start["whole_model_untrained"] is None


def test_a_trained_encoder_is_listed_used_and_deleted(
    corpus: str, tiny: LanguageModel, monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    save_trained("mine-too", tiny)
    save_trained("table", tiny, part="table")
    assert "mine-too\n  trained here" in run("models", "list").stdout
    Path("texts.txt").write_text("One text.\nAnother text.\nA third one.\n", "utf-8")
    sentence = ["--method", "sentence-transformer", "--model"]
    for words in (
        ["embed", "texts.txt", "-o", "a.csv", "--method", "mean", "--model", "mine-too"],
        ["embed", "texts.txt", "-o", "b.csv", *sentence, "table"],
        ["project", "mine", "-o", "map.html", "--reducer", "pca", *sentence, "table"],
        ["train", "crops", "mine", "-o", "again", "--model", "mine-too", *FEW],
    ):
        result = run(*words)
        assert result.exit_code == 0, (words, result.stderr)
    said = refused(run("tune", "A text.", "--model", "mine-too"))
    assert "mine-too is a sentence encoder and cannot predict masked tokens" in said
    said = refused(run("embed", "texts.txt", "-o", "c.csv", "--method", "mean", "--model", "table"))
    assert "has no transformer" in said

    assert "Nothing deleted" in run("models", "delete", "mine-too", answer="n\n").stderr
    assert run("models", "delete", "mine-too", answer="y\n").exit_code == 0
    assert [one.name for one in trained_encoders()] == ["again", "table"]
    assert "No trained encoder is called" in refused(run("models", "delete", "mine-too", "--yes"))


@pytest.mark.slow
def test_a_training_that_is_killed_again_and_again_ends_with_the_same_weights(
    corpus: str, home: Path, bert_folder: Path
) -> None:
    env = os.environ | {"NEURALVIZ_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = run_command(sys.executable, "-m", "tests.support.killed_training", bert_folder, env=env)
    assert done.returncode == 0, done.stderr
    for moment, one in json.loads(done.stdout.splitlines()[-1]).items():
        assert one["code"] == one["expected"], (moment, one)
        assert f'"event": "start", "step": {one["start"]},' in one["said"], (moment, one)
        if one["expected"] == 2:
            assert "Could not save the " in one["said"], (moment, one)
            assert "File too large" in one["said"], (moment, one)
            assert "Traceback" not in one["said"], (moment, one)
    whole, killed = (
        (encoders_folder() / name / "model.safetensors").read_bytes()
        for name in ("undisturbed", "killed")
    )
    assert whole == killed
    assert not any((home / "trainings").iterdir())


def at_event(monkeypatch, number: int, act: Callable[[], object]) -> None:
    """Have something done while the so manieth event is shown."""
    shown, calls = train_cli.event_json, iter(range(1, 100))

    def show(*event: Any) -> dict[str, Any]:
        if next(calls) == number:
            act()
        return shown(*event)

    monkeypatch.setattr(train_cli, "event_json", show)


def test_ctrl_c_ends_it_after_the_step_and_the_same_command_goes_on(
    corpus: str, monkeypatch
) -> None:
    at_event(monkeypatch, 3, lambda: signal.raise_signal(signal.SIGINT))
    result = train("--json")
    assert result.exit_code == 130
    assert "Stopped after 3 steps. Run the same command again to resume." in result.stderr
    assert trained_encoder("my-encoder") is None
    start, *steps, _ = events_of(train("--json"))
    assert (start["step"], len(steps)) == (3, 3)
    assert trained_encoder("my-encoder") is not None


def test_another_training_meanwhile_is_refused_if_it_is_the_same_or_has_the_same_name(
    corpus: str, monkeypatch
) -> None:
    others: list[Result] = []

    def train_others() -> None:
        others.append(train(name="other"))
        others.append(train("--seed", "7"))

    at_event(monkeypatch, 1, train_others)
    first = train("--json")
    assert "already under way in another tab or program" in refused(others[0])
    assert others[1].exit_code == 0
    assert "The training is saved: run the command again with another --output" in refused(first)
    start, *steps, end = events_of(train("--json", name="another"))
    assert (start["step"], steps, end["step"]) == (6, [], 6)
    assert [one.name for one in trained_encoders()] == ["another", "my-encoder"]


def test_an_encoder_that_came_from_elsewhere_is_listed_safely_and_its_link_is_deleted(
    tiny: LanguageModel, tmp_path: Path
) -> None:
    save_trained("mine-too", tiny)
    elsewhere = (encoders_folder() / "mine-too").rename(tmp_path / "elsewhere")
    (elsewhere / RECORD_FILE).write_text(json.dumps({"model": "\x1b]0;title\x07"}))
    (encoders_folder() / "linked").symlink_to(elsewhere)
    listed = run("models", "list").stdout
    assert "linked\n  trained here, from" in listed
    assert "\x1b" not in listed
    assert run("models", "delete", "linked", "--yes").exit_code == 0
    assert trained_encoders() == []
    assert (elsewhere / RECORD_FILE).exists()


def test_a_name_that_is_taken_or_is_none_is_refused_before_anything_is_trained(
    corpus: str, tiny: LanguageModel
) -> None:
    save_trained("my-encoder", tiny)
    for name in ("my-encoder", "bundled", "all-MiniLM-L6-v2"):
        assert f"There is already a model called “{name}”" in refused(train(name=name))
    for name in ("", "..", "a/b", "x" * 65):
        assert "Name the encoder with letters" in refused(train(name=name))
    assert "nothing is left to train" in refused(train("--frozen-blocks", "3", name="new"))
    assert "cannot be saved" in refused(train("--pooling", "seventh", name="new"))
    assert [one.name for one in trained_encoders()] == ["my-encoder"]


def test_old_trainings_make_room_and_one_under_way_stays(home: Path, monkeypatch) -> None:
    def training(name: str, days: float) -> Path:
        folder = home / "trainings" / name
        folder.mkdir(parents=True)
        (folder / "step-3").write_bytes(b"x" * 1000)
        then = time.time() - days * 86400
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (then, then))
        return folder

    new, middle, old = training("new", 0), training("middle", 5), training("old", 40)
    held = training("held", 50)
    with record.hold_training(held):
        os.utime(held / "training.lock", (0, 0))
        os.utime(held, (0, 0))
        record.training_folder("next")
    assert [one.exists() for one in (new, middle, old, held)] == [True, True, False, True]
    monkeypatch.setattr(record, "KEPT_BYTES", 500)
    record.training_folder("next")
    assert not middle.exists()
