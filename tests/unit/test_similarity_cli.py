"""`train similarity`, `score`, and what `models` says of similarity models."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner, Result

from neuralviz import cli
from neuralviz.errors import SettingsError, StoreError
from neuralviz.models import shared
from neuralviz.paths import similarity_models_folder
from neuralviz.reading.pairs import ScoredPairs
from neuralviz.training.similarity import load_similarity_model, save_similarity_model
from neuralviz.training.similarity.kept import FORMAT, similarity_models

NOUNS = ("gulls", "harbour", "baker", "bread", "letter", "dog", "boats", "rain", "nets", "lamps")
NAME = "tone"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*words: object) -> Result:
    return CliRunner().invoke(cli.commands.app, [str(word) for word in words])


def made_rows() -> list[tuple[str, str, str]]:
    return [
        (f"The {one} and the {two} wait.", f"A {two} is not a {one}.", f"{number % 6}")
        for number, (one, two) in enumerate(combinations(NOUNS, 2))
    ]


def written(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    out = io.StringIO()
    csv.writer(out).writerows([("sentence1", "sentence2", "score"), *rows])
    path.write_text(out.getvalue(), "utf-8")
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return written(tmp_path / "pairs.csv", made_rows())


def trained(pairs: Path, folder: Path, *words: object) -> Result:
    return run(
        "train", "similarity", pairs, "--model", folder, "--epochs", 1, "--rung", "cosines", *words
    )


@pytest.fixture(scope="module")
def trained_home(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    """A home in which a model of the pairs was saved."""
    folder = tmp_path_factory.mktemp("trained")
    pairs = written(tmp_path_factory.mktemp("table") / "pairs.csv", made_rows())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURALVIZ_HOME", str(folder))
        assert trained(pairs, bert_folder, "-o", NAME).exit_code == 0
    return folder


@pytest.fixture
def kept(home: Path, trained_home: Path) -> None:
    shutil.copytree(trained_home, home)


@pytest.mark.slow
def test_the_ladder_is_printed_and_the_best_rung_is_saved(pairs: Path, bert_folder: Path) -> None:
    words = ["train", "similarity", pairs, "--model", bert_folder, "--epochs", 1, "-o", NAME]
    result = run(*words, "--seeds", 2)
    assert result.exit_code == 0, result.output
    for name in ("mean pooling", "linear regression", "neural embedding", "Siamese encoders"):
        assert name in result.stdout
    assert len(re.findall(r" \* +[−\d]", result.stdout)) == 1
    assert "27 train pairs, 9 dev pairs, 9 test pairs." in result.stderr
    assert f"as “{NAME}”. Score pairs with: neuralviz score PAIRS --model {NAME}" in result.stderr
    (kept,) = similarity_models()
    assert (kept.name, kept.model) == (NAME, str(bert_folder))
    listed = run("models", "list").stdout
    assert f"{NAME}\n  similarity model over" in listed


def test_a_rung_that_has_learnt_nothing_is_not_saved_without_a_word(
    tmp_path: Path, bert_folder: Path
) -> None:
    """Scores that are drawn without a look at the texts, which no model can know."""
    drawn = np.random.default_rng(1).integers(0, 6, len(made_rows()))
    rows = [(*row[:2], str(score)) for row, score in zip(made_rows(), drawn, strict=True)]
    result = trained(written(tmp_path / "noise.csv", rows), bert_folder, "-o", NAME)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stderr.split())
    assert "“MLP over cosines” is not significantly better than chance" in words
    assert words.index("than chance") < words.index("Saved “MLP over cosines”")


@pytest.mark.usefixtures("kept")
def test_pairs_are_scored_with_and_without_scores(
    pairs: Path, bert_folder: Path, tmp_path: Path
) -> None:
    result = run("score", pairs, "--model", NAME)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(io.StringIO(result.stdout))
    assert [*table] == ["sentence1", "sentence2", "predicted", "score"]
    read = ScoredPairs(tuple(table["sentence1"]), tuple(table["sentence2"]))
    expected = load_similarity_model(NAME).score(read)
    assert table["predicted"].tolist() == pytest.approx(expected, abs=6e-5)
    assert "Spearman with the scores of the table" in result.stderr
    output, table = tmp_path / "scores.csv", tmp_path / "own.csv"
    table.write_text("text1,text2\nA boat.,A boat.\n=1+1,A boat.\n,A boat.\n", "utf-8")
    result = run("score", table, "--model", NAME, "-o", output)
    assert result.exit_code == 0, result.output
    head, same, formula = csv.reader(output.read_text("utf-8").splitlines())
    assert head[2:] == ["predicted"]
    assert formula[:2] == ["'=1+1", "A boat."]
    assert float(same[2]) > float(formula[2])
    assert "Skipped 1 row" in result.stderr
    assert "Spearman" not in result.stderr


def test_columns_with_other_names_have_roles_as_in_evaluate(
    pairs: Path, bert_folder: Path, tmp_path: Path
) -> None:
    named = tmp_path / "named.csv"
    _, *rows = pairs.read_text("utf-8").splitlines()
    rows[3] = rows[3].rpartition(",")[0] + ",n/a"
    named.write_text("\n".join(["of,many,raters", "left,right,gold", *rows]), "utf-8")
    roles = ("--header", "2", "--role", "text1=left", "--role", "text2=Right",
             "--role", "score=gold")  # fmt: skip
    assert run("train", "similarity", named, "--model", bert_folder).exit_code == 2
    result = trained(named, bert_folder, "-o", NAME, *roles)
    assert result.exit_code == 0, result.output
    assert "26 train pairs, 9 dev pairs, 9 test pairs." in result.stderr
    scored = run("score", named, "--model", NAME, *roles)
    assert scored.exit_code == 0, scored.output
    read = list(csv.DictReader(io.StringIO(scored.stdout.lstrip("\ufeff"))))
    assert [one["score"] for one in read[2:5]] == ["2", "", "4"]
    refused = trained(named, bert_folder, *roles[:6])
    assert refused.exit_code == 2
    assert "needs a column for score" in " ".join(refused.stderr.split())


@pytest.mark.usefixtures("kept")
def test_a_saved_model_is_the_same_bit_for_bit(pairs: Path, bert_folder: Path) -> None:
    model = load_similarity_model(NAME)
    save_similarity_model(model, "again")
    again = load_similarity_model("again")
    assert (again.scale, again.fingerprint) == (model.scale, model.fingerprint)
    assert again.trained.settings == model.trained.settings
    files = [similarity_models_folder() / f"{name}.safetensors" for name in ("again", NAME)]
    first, second = map(load_file, files)
    assert all((first[name] == second[name]).all() for name in first)
    assert sorted(similarity_models_folder().iterdir()) == files
    shutil.rmtree(similarity_models_folder())
    similarity_models_folder().write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="Could not save the similarity model:"):
        save_similarity_model(model, "again")


def test_given_parts_are_used(pairs: Path, bert_folder: Path, tmp_path: Path) -> None:
    dev = written(tmp_path / "dev.csv", made_rows()[:9])
    test = written(tmp_path / "test.csv", made_rows()[9:20])
    result = trained(pairs, bert_folder, "--dev", dev, "--test", test)
    assert "45 train pairs, 9 dev pairs, 11 test pairs." in result.stderr
    assert "Texts of the dev or test pairs are in 20 train pairs, too" in result.stderr


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words", "said"),
    [
        ([(a, b, "3") for a, b, _ in made_rows()], [], "All scores of the train pairs are 3."),
        ([("The dog.", b, c) for _, b, c in made_rows()], [], "too many pairs share a text"),
        (made_rows(), ["--rung", "stairs"], "The rung must be one of: cosines"),
        (made_rows(), ["-o", "../x"], "Name the similarity model with letters"),
    ],
)
def test_what_makes_no_sense_is_refused(
    rows: list[tuple[str, str, str]], words: list[str], said: str, bert_folder: Path, tmp_path: Path
) -> None:
    result = trained(written(tmp_path / "bad.csv", rows), bert_folder, "-o", NAME, *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert not similarity_models()


@pytest.mark.usefixtures("kept")
def test_a_name_is_given_once_and_a_similarity_model_is_deleted_but_not_exported(
    pairs: Path, bert_folder: Path
) -> None:
    for taken in ("bundled", NAME):
        result = trained(pairs, bert_folder, "-o", taken)
        assert result.exit_code == 2
        assert f"There is already a model called “{taken}”" in result.stderr
    with pytest.raises(SettingsError, match="already a model called “tone”"):
        shared.check_free_name(NAME)
    shared.encoders_folder().joinpath("mine").mkdir(parents=True)
    (shared.encoders_folder() / "mine" / shared.RECORD_FILE).write_text("{}")
    with pytest.raises(SettingsError, match="already a model called “mine”"):
        save_similarity_model(load_similarity_model(NAME), "mine")
    assert "is a similarity model" in run("models", "export", NAME, "out").stderr
    assert "“tune”. Saved: tone." in run("score", pairs, "--model", "tune").stderr
    deleted = run("models", "delete", NAME, "--yes")
    assert "Deleted the similarity model “tone”." in deleted.stderr
    gone = run("score", pairs, "--model", NAME)
    assert (gone.exit_code, similarity_models()) == (2, [])
    assert "No similarity model is called “tone”. None is saved yet" in gone.stderr


@pytest.mark.sweep(2)
@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("spoilt", ["cut", "newer", "settings", "shapes"])
def test_a_damaged_file_says_so(spoilt: str, pairs: Path, bert_folder: Path) -> None:
    path = similarity_models_folder() / f"{NAME}.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    about = json.loads(header["__metadata__"]["neuralviz"])
    changed = {
        "cut": {},
        "newer": {"format": FORMAT + 1},
        "settings": {"settings": {**about["settings"], "rung": "stairs"}},
        "shapes": {"n_layers": 99},
    }[spoilt]
    save_file(load_file(path), path, {"neuralviz": json.dumps({**about, **changed})})
    if spoilt == "cut":
        path.write_bytes(content[:-10])
    result = run("score", pairs, "--model", NAME)
    assert result.exit_code == 2
    said = "Update neuralviz" if spoilt == "newer" else "is damaged. Train it again."
    assert said in " ".join(result.stderr.split())
