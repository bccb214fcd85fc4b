"""The command line: what it writes, what it refuses, and how it says so."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

import neuralviz
from neuralviz import cli
from neuralviz.embedders import METHODS, read_options
from neuralviz.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.models import LanguageModel

QUICK = ["--option", "epochs=1", "--option", "blueprints=(1,1)"]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: LanguageModel
) -> Callable[..., Result]:
    """Run a command in an empty folder, on the bundled model that all tests share."""
    real = neuralviz.models.load_model
    monkeypatch.setattr(
        "neuralviz.models.load_model", lambda name: bundled if name == "bundled" else real(name)
    )
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli.app, words)


def test_lines_become_parquet_with_the_vectors_that_python_gives(
    run: Callable[..., Result], bundled: LanguageModel
):
    Path("texts.txt").write_text("A first text.\n\nNaïve “quotes”.\n", "utf-8")
    result = run("embed", "texts.txt", "-o", "out.parquet", *QUICK)
    assert result.exit_code == 0, result.stderr
    table = parquet.read_table("out.parquet")
    assert [str(field.type) for field in table.schema] == [
        "string",
        "string",
        "list<element: float>",
    ]
    assert table["id"].to_pylist() == ["1", "2"]
    assert table["text"].to_pylist() == ["A first text.", "Naïve “quotes”."]
    expected = neuralviz.NeuralEmbedder(bundled, epochs=1, blueprints=[(1, 1)]).encode(
        table["text"].to_pylist()
    )
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), expected)
    assert "1 line without text left out." in result.stderr
    assert "2 vectors of 1,152 values in out.parquet." in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_column_of_a_csv_becomes_text_that_holds_every_digit(
    run: Callable[..., Result], ending: str
):
    Path("in.csv").write_text('id,body,note\na,"One, two.",x\nb,Three.,y\nc,,z\n', "utf-8")
    words = ["--column", "body", "--batch-size", "1", *QUICK]
    for name in (f"out.{ending}", "out.parquet"):
        result = run("embed", "in.csv", "-o", name, *words)
        assert result.exit_code == 0, result.stderr
    assert "1 row" in result.stderr  # the row without text is reported
    with Path(f"out.{ending}").open(encoding="utf-8", newline="") as file:
        if ending == "csv":
            rows = [row | {"vector": json.loads(row["vector"])} for row in csv.DictReader(file)]
        else:
            rows = [json.loads(line) for line in file]
    exact = parquet.read_table("out.parquet").to_pylist()
    assert [(row["id"], row["text"]) for row in rows] == [("a", "One, two."), ("b", "Three.")]
    for row, other in zip(rows, exact, strict=True):
        assert np.array_equal(np.float32(row["vector"]), np.float32(other["vector"]))


def test_limit_takes_the_first_texts(run: Callable[..., Result]):
    Path("texts.txt").write_text("One.\nTwo.\nThree.\n")
    assert run("embed", "texts.txt", "-o", "out.jsonl", "--limit", "2", *QUICK).exit_code == 0
    assert len(Path("out.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["missing.txt", "-o", "out.csv"], "missing.txt cannot be read"),
        (["blank.txt", "-o", "out.csv"], "blank.txt is empty"),
        (["texts.txt", "-o", "out.xlsx"], "has to end in .parquet, .csv, .jsonl"),
        (["texts.txt", "-o", "nowhere/out.csv"], "There is no folder nowhere"),
        (["texts.csv", "-o", "texts.csv"], "is the file that is read"),
        (["texts.csv", "-o", "out.csv", "--column", "nope"], "no column “nope”"),
        (["texts.txt", "-o", "out.csv", "--method", "magic"], "no method “magic”"),
        (["texts.txt", "-o", "out.csv", "--model", "./nowhere"], "no folder ./nowhere"),
        (["texts.txt", "-o", "out.csv", "--model", "no-such/model"], "use the bundled model"),
        (["texts.txt", "-o", "out.csv", "--option", "epochs"], "write NAME=VALUE"),
        (["texts.txt", "-o", "out.csv", "--option", "epochs=ten"], "a whole number"),
        (["texts.txt", "-o", "out.csv", "--option", "epochs=0"], "from 1 to 1000"),
        (["texts.txt", "-o", "out.csv", "--option", "colour=red"], "no option “colour”"),
        (["texts.txt", "-o", "out.csv", "--option", "learning_rate=0"], "above 0"),
        (["texts.txt", "-o", "out.csv", "--option", "learning_rate=nan"], "a number"),
        (["texts.txt", "-o", "out.csv", "--option", "blueprints=(0,3)"], "(0, 3)"),
        (["texts.txt", "-o", "out.csv", "--option", "layers=a,b"], "not a 1-D parameter"),
        (["texts.txt", "-o", "out.csv", "--option", "predict_unmasked=perhaps"], "yes or no"),
        (["texts.txt", "-o", "out.csv", *QUICK, "--option", "epochs=2"], "given twice"),
        (["texts.txt", "-o", "out.csv", "--batch-size", "0"], "batch-size"),
        (["texts.txt", "-o", "out.csv", "--limit", "-1"], "limit"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    run: Callable[..., Result], words: list[str], sentence: str
):
    Path("texts.txt").write_text("A text.\n")
    Path("texts.csv").write_text("text,score\nA text.,1\n")
    Path("blank.txt").write_text(" \n\n")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    result = run("embed", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_learning_rate_that_is_too_high_is_said(run: Callable[..., Result]):
    Path("texts.txt").write_text("The boats came back.\nNobody was there.\n")
    options = ["--option", "learning_rate=1e6", "--option", "epochs=3"]
    result = run("embed", "texts.txt", "-o", "out.parquet", "--batch-size", "1", *options)
    assert result.exit_code == 0
    assert "The loss of 2 of 2 texts rose" in result.stderr


def test_an_interrupted_run_keeps_the_finished_batches(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
):
    encode = neuralviz.NeuralEmbedder.encode

    def until_interrupted(self: object, texts: list[str], **settings: object) -> np.ndarray:
        if "Three." in texts:
            raise KeyboardInterrupt
        return encode(self, texts, **settings)

    monkeypatch.setattr(neuralviz.NeuralEmbedder, "encode", until_interrupted)
    Path("texts.txt").write_text("One.\nTwo.\nThree.\n")
    result = run("embed", "texts.txt", "-o", "out.jsonl", "--batch-size", "1", *QUICK)
    assert result.exit_code == 130
    assert "The first 2 of 3 texts are kept in out.jsonl." in result.stderr
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == ["One.", "Two."]

    Path("texts.txt").write_text("Three.\n")
    result = run("embed", "texts.txt", "-o", "none.jsonl", *QUICK)
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert not Path("none.jsonl").exists()


def test_tune_draws_the_run_without_control_codes(run: Callable[..., Result]):
    text = "A [bold]fox[/bold] and \x1b[31ma dog\u202e run."
    result = run("tune", text, "--epochs", "3")
    assert result.exit_code == 0, result.stderr
    assert "epoch 3/3" in result.stdout
    assert "which words wrote the embedding" in result.stdout
    assert "bold" in result.stdout  # the markup is text
    assert not any(c in result.stdout for c in "\x1b\u202e\r")
    curve = [line for line in result.stdout.splitlines() if "│" in line]
    assert any(0x2800 < ord(c) <= 0x28FF for line in curve for c in line)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["  "], "The text is empty"),
        (["A text.", "--epochs", "0"], "from 1 to 1000"),
        (["A text.", "--blueprints", "rubbish"], "not a blueprint"),
        (["A text.", "--layers", "nope"], "“nope” is not a 1-D parameter"),
        (["A text.", "--model", "../.."], "no config.json"),
    ],
)
def test_tune_refuses_what_makes_no_sense(
    run: Callable[..., Result], words: list[str], sentence: str
):
    result = run("tune", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_learning_rate_that_blows_up_is_said(run: Callable[..., Result]):
    result = run("tune", "A text.", "--learning-rate", "1e30", "--epochs", "3")
    assert result.exit_code == 0, result.stderr
    assert "lower the learning rate" in result.stderr.lower()


def test_layers_of_the_bundled_model(run: Callable[..., Result], bundled: LanguageModel):
    result = run("models", "layers")
    assert result.exit_code == 0
    for layer in bundled.layers:
        assert layer.name in result.stdout
    assert result.stdout.count("[head]") == len(bundled.head_layers) + 1  # and the legend
    assert "block 5" in result.stdout


def test_models_list_names_the_bundled_model(run: Callable[..., Result]):
    result = run("models", "list")
    assert result.exit_code == 0
    assert result.stdout.startswith("bundled")


def test_an_exported_model_is_a_plain_one_in_float32(
    run: Callable[..., Result], bundled: LanguageModel
):
    import torch
    from transformers import AutoTokenizer, BertForMaskedLM

    assert run("models", "export", "bundled", "out").exit_code == 0
    network, info = BertForMaskedLM.from_pretrained("out", output_loading_info=True)
    assert not info["missing_keys"]
    ids = AutoTokenizer.from_pretrained("out")("A [MASK] text.", return_tensors="pt")
    with torch.no_grad():
        logits = network.eval()(**ids).logits
        assert logits.dtype == torch.float32
        torch.testing.assert_close(logits, bundled.network(**ids).logits)
    again = run("models", "export", "bundled", "out")
    assert again.exit_code == 2
    assert "not an empty folder" in again.stderr


def test_the_app_is_started_from_anywhere(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
):
    started = []
    monkeypatch.setattr(os, "execv", lambda program, words: started.append(words))
    result = run("app", "--port", "8600", "--server.headless=true")
    assert result.exit_code == 0, result.stderr
    (words,) = started
    assert Path(words[4]).is_file()
    assert words[5:] == [
        "--server.address=localhost",
        "--server.port=8600",
        "--server.headless=true",
    ]
    assert run("app", "--port", "99999").exit_code == 2


def test_every_option_is_an_argument_of_its_embedder():
    import inspect

    for method in METHODS.values():
        arguments = set(inspect.signature(method.make).parameters) - {"model"}
        assert {option.name for option in method.options} <= arguments


def test_options_are_read_as_their_types():
    typed = {"epochs": "5", "learning_rate": "1e-3", "predict_unmasked": "yes", "layers": "a.b, c"}
    assert read_options("neural", typed) == {
        "epochs": 5,
        "learning_rate": 1e-3,
        "predict_unmasked": True,
        "layers": ("a.b", "c"),
    }
    assert read_options("neural", {"layers": "last_block"}) == {"layers": "last_block"}
    with pytest.raises(SettingsError, match="a number"):
        read_options("neural", {"weight_decay": ""})


def test_the_command_answers_without_torch(tmp_path: Path):
    script = (
        "import sys; from neuralviz.cli import app;app(standalone_mode=False); print(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    version, modules = result.stdout.splitlines()
    assert version == f"neuralviz {neuralviz.__version__}"
    assert not {"torch", "transformers", "streamlit", "pandas"} & set(modules.split())
