"""One method with two models, or with two sets of options: read, measured, kept, told apart."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from scipy.stats import spearmanr
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner, Result

from neuralviz import cli
from neuralviz.embedders.specs import (
    EmbedderSpec,
    embedder_spec,
    embedder_specs,
    full_method_labels,
    method_labels,
    part_names,
    short_labels,
)
from neuralviz.errors import SettingsError
from neuralviz.plots.theme import method_colours
from tests.support.models import SENTENCES as TEXTS
from tests.support.models import save_family

PAIRS = [(TEXTS[i], TEXTS[(i * 3 + 1) % len(TEXTS)], i * 7 % 5) for i in range(len(TEXTS))]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two small models of random weights, in folders of the same name."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("first", "second")):
        save_family("bert", folder / name / "model", seed=seed)
    return str(folder / "first" / "model"), str(folder / "second" / "model")


@pytest.fixture
def run(tmp_path: Path, monkeypatch) -> Callable[..., Result]:
    """Run a command in a folder with scored pairs and the texts of these."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with Path("pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "score"), *PAIRS])
    Path("texts.txt").write_text("\n".join(dict.fromkeys(TEXTS)), "utf-8")
    return lambda *words: CliRunner().invoke(cli.app, words)


def done(result: Result) -> Result:
    assert result.exit_code == 0, result.output
    return result


def cosines(folder: str) -> np.ndarray:
    """[pair] by transformers alone: the mean of the last layer, one text at a time."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)

    def vector(text: str) -> np.ndarray:
        with torch.no_grad():
            states = model.eval()(**tokenizer(text, return_tensors="pt")).last_hidden_state
        mean = states[0].mean(0).double().numpy()
        return mean / np.linalg.norm(mean)

    return np.array([vector(a) @ vector(b) for a, b, _ in PAIRS])


# --- what is typed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "parts"),
    [
        ("mean@bundled", [("mean", "bundled", {})]),
        (" mean @ org/model ", [("mean", "org/model", {})]),
        ("mean@model=bundled", [("mean", "bundled", {})]),
        ("neural@epochs=5", [("neural", "bundled", {"epochs": 5})]),
        ("mean@bundled,layer=1,2", [("mean", "bundled", {"layer": (1, 2)})]),
        ("neural@precision=fast+bf16", [("neural", "bundled", {"precision": "fast+bf16"})]),
        ("mean@/runs/lr=0.1,b+c@d", [("mean", "/runs/lr=0.1,b+c@d", {})]),
        (
            "neural@precision=fast+bf16,epochs=2+mean@bundled+cls",
            [
                ("neural", "bundled", {"epochs": 2, "precision": "fast+bf16"}),
                ("mean", "bundled", {}),
                ("cls", "all-MiniLM-L6-v2", {}),
            ],
        ),
        ("mean@a+mean@b", [("mean", "a", {}), ("mean", "b", {})]),
    ],
)
def test_a_model_and_options_behind_an_at_belong_to_their_method(
    typed: str, parts: list[tuple]
) -> None:
    spec = embedder_spec(typed)
    assert [(one.method, one.model_id, dict(one.options)) for one in spec.singles] == parts
    assert EmbedderSpec.from_json(spec.to_json()) == spec


def test_what_stands_behind_an_at_goes_before_what_all_have() -> None:
    typed = {"layer": "0", "mean.special_tokens": "no"}
    own, other, cls = embedder_specs(["mean@bundled,layer=all", "mean", "cls"], typed, "org/model")
    assert dict(own.options) == {"layer": "all", "special_tokens": False}
    assert dict(other.options) == {"layer": (0,), "special_tokens": False}
    assert [own.model_id, other.model_id, cls.model_id] == ["bundled", "org/model", "org/model"]


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        (["magic@bundled"], "Unknown method “magic”"),
        (["mean@bundled+magic@x", "cls@window=2"], "“cls” has no option “window”"),
        (["mean@window=2"], "The method “mean” has no option “window”. Its options are: layer"),
        (["mean@bundled,layer=top"], "not “top”"),
        (["mean@layer=1,layer=2"], "“layer” is set twice"),
        (["mean", "mean@all-MiniLM-L6-v2"], "“mean@all-MiniLM-L6-v2” is named twice"),
        (["mean@layer=last", "mean"], "set the two apart: mean@bundled, neural@epochs=5"),
        (["mean@bundled+mean@bundled"], "concatenates a method with itself"),
    ],
)
def test_what_makes_no_sense_behind_an_at_is_refused(methods: list[str], sentence: str) -> None:
    with pytest.raises(SettingsError, match=r".") as caught:
        embedder_specs(methods)
    assert sentence in str(caught.value)


# --- labels and colours --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "labels"),
    [
        (["mean", "cls"], ("mean", "cls")),
        (["mean", "mean@bundled", "cls"], ("mean (all-MiniLM-L6-v2)", "mean (bundled)", "cls")),
        (["mean@a/x", "mean@b/x"], ("mean (a/x)", "mean (b/x)")),
        (["mean@x", "mean@b/x"], ("mean (x)", "mean (b/x)")),
        (["neural", "neural@epochs=5"], ("neural, exact", "neural, exact, 5 epochs")),
        (
            ["neural@precision=fast,tolerance=0.01", "neural@m/n"],
            ("neural, fast (tolerance 0.01, bundled)", "neural, exact (n)"),
        ),
        (
            ["mean@layer=0", "mean@layer=1,special_tokens=no"],
            ("mean (layer 0)", "mean (layer 1, special_tokens no)"),
        ),
        (["mean@a+mean@b"], ("mean+mean (a, b)",)),
        (["neural+mean@a", "neural+mean@b"], None),
    ],
)
def test_labels_name_what_sets_a_method_apart(
    methods: list[str], labels: tuple[str, ...] | None
) -> None:
    found = method_labels(embedder_specs(methods))
    assert labels is None or found == labels
    assert len(set(found)) == len(set(short_labels(found))) == len(methods)


def test_what_is_hardly_read_is_judged_by_the_models_that_are_loaded_in_any_order() -> None:
    for method, judges in (
        ("mean@org/x+sentence-transformer@org/x", ["org/x"]),
        ("sentence-transformer@org/x+mean@org/x", ["org/x"]),
        ("sentence-transformer@org/x+mean@org/y", ["org/y"]),
        ("sentence-transformer@org/x", []),
        ("sentence-transformer+mean+neural", ["bundled"]),  # of one vocabulary
        ("mean@org/x+neural", ["org/x", "bundled"]),
    ):
        assert embedder_spec(method).judges == judges


def test_of_a_concatenation_of_one_method_each_part_is_named() -> None:
    spec = embedder_spec("mean@x/m+mean@y/m+cls")
    assert list(part_names(spec)) == ["mean (x/m)", "mean (y/m)", "cls"]
    (in_full,) = full_method_labels([spec])
    assert in_full.startswith("mean (model x/m, layer last, special_tokens yes) + mean (model y/m,")


def test_two_models_by_one_method_are_measured_as_transformers_does(
    run, models: tuple[str, str]
) -> None:
    methods = [word for model in models for word in ("--method", f"mean@{model}")]
    done(run("evaluate", "--data", "pairs.csv", *methods, "-o", "out"))
    record = json.loads(Path("out/results.json").read_text("utf-8"))
    (data,) = record["data"]
    assert list(data["results"]) == ["mean (first/model)", "mean (second/model)"]
    scores = [score for *_, score in PAIRS]
    for found, model in zip(data["results"].values(), models, strict=True):
        assert found["model"] == model
        assert found["spearman"] == pytest.approx(spearmanr(cosines(model), scores)[0], abs=1e-9)
    with Path("out/results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], row["model"]) for row in rows} == {
        ("mean (first/model)", models[0]),
        ("mean (second/model)", models[1]),
    }
    report = Path("out/report.html").read_text("utf-8")
    assert method_colours(list(data["results"]))["mean (second/model)"] in report
    assert "95% interval" in report


# --- vectors of another program ------------------------------------------------------------------


def write_mine(path: str, texts: list[str]) -> np.ndarray:
    """Random vectors of some texts, in another order, as a file; [text, 6] as they were given."""
    vectors = np.random.default_rng(5).normal(size=(len(texts), 6)).astype(np.float32)
    order = np.random.default_rng(6).permutation(len(texts))
    rows = pa.table({"text": [texts[at] for at in order], "vector": vectors[order].tolist()})
    parquet.write_table(rows, path)
    return vectors


def test_vectors_of_another_program_are_measured_on_scored_pairs_by_their_texts(run) -> None:
    texts = list(dict.fromkeys([text for a, b, _ in PAIRS for text in (a, b)]))
    vectors = write_mine("mine.parquet", ["Another text.", *texts])[1:].astype(float)
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    products = [vectors[texts.index(a)] @ vectors[texts.index(b)] for a, b, _ in PAIRS]
    expected = spearmanr(products, [score for *_, score in PAIRS])[0]
    words = ["--method", "file:mine.parquet", "--method", "cls", "-o", "out"]
    said = done(run("evaluate", "--data", "pairs.csv", *words))
    record = json.loads(Path("out/results.json").read_text("utf-8"))
    found = record["data"][0]["results"]
    assert list(found) == ["file: mine.parquet", "cls"]
    assert found["file: mine.parquet"]["spearman"] == pytest.approx(expected, abs=1e-9)
    assert found["file: mine.parquet"]["model"] == "imported vectors"
    assert "file: mine.parquet" in said.stdout
    assert "95% interval" in Path("out/report.html").read_text("utf-8")


def test_imported_vectors_that_do_not_fit_are_refused(run) -> None:
    texts = list(dict.fromkeys([text for a, b, _ in PAIRS for text in (a, b)]))
    write_mine("few.parquet", texts[:-2])
    write_mine("mine.parquet", texts)
    np.save("mine.npy", np.ones((len(texts), 4), np.float32))
    for words, sentence in (
        (["file:few.parquet"], f"has no vector for 2 of the {len(texts)} different texts"),
        (["file:mine.npy"], "mine.npy has neither the texts of the data"),
        (["file:nowhere.parquet"], "There is no file “nowhere.parquet”"),
        (["file:mine.parquet", "--model", "bundled"], "have no options and no model"),
        (["file:mine.parquet", "--method", "file:mine.parquet"], "is named twice"),
    ):
        result = run("evaluate", "--data", "pairs.csv", "--method", *words)
        assert result.exit_code == 2, result.output
        assert sentence in result.stderr
