"""The command line: what it writes, what it refuses, and how it says so."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

import neuralviz
from neuralviz import cli
from neuralviz.cli.commands import COMMANDS, load_command
from neuralviz.embedders import FOR_CORPORA, METHODS, NeuralEmbedder, make_embedder
from neuralviz.jobs.comparing import memory_vectors
from neuralviz.models import LanguageModel
from neuralviz.paths import app_folder
from neuralviz.ui import server
from tests.support.waiting import free_port, wait_until

QUICK = ["--option", "epochs=1", "--option", "blueprints=(1,1)"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch) -> Callable[..., Result]:
    """Run a command in an empty folder; no vectors are known from tests before."""
    memory_vectors.cache_clear()
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli.app, words)


def test_lines_become_parquet_with_the_vectors_that_python_gives(run, bundled: LanguageModel):
    Path("texts.txt").write_text("A first text.\n\nNaïve “quotes”.\n", "utf-8")
    result = run("embed", "texts.txt", "-o", "out.parquet", *QUICK)
    assert result.exit_code == 0, result.stderr
    table = parquet.read_table("out.parquet")
    assert [str(field.type) for field in table.schema][2:] == ["list<element: float>"]
    assert table["id"].to_pylist() == ["1", "2"]
    assert table["text"].to_pylist() == ["A first text.", "Naïve “quotes”."]
    expected = neuralviz.NeuralEmbedder(bundled, epochs=1, blueprints=[(1, 1)]).encode(
        table["text"].to_pylist()
    )
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), expected)
    assert "Skipped 1 line without a text." in result.stderr
    assert "2 embeddings of 1,152 values to out.parquet (neural, exact, 1 epoch)." in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_column_of_a_csv_becomes_text_that_holds_every_digit(run, ending: str):
    rows = ["id,body,note", 'a,"One, two.",x', "c,,z", "b,Three.,y", "d,Four.,y"]
    Path("in.csv").write_text("\n".join(rows), "utf-8")
    words = ["--column", "body", "--batch-size", "1", "--limit", "3", *QUICK]
    for name in (f"out.{ending}", "out.parquet"):
        result = run("embed", "in.csv", "-o", name, *words)
        assert result.exit_code == 0, result.stderr
    assert "Skipped 1 row without a text." in result.stderr  # the row without text is reported
    with Path(f"out.{ending}").open(encoding="utf-8", newline="") as file:
        if ending == "csv":
            rows = [row | {"vector": json.loads(row["vector"])} for row in csv.DictReader(file)]
        else:
            rows = [json.loads(line) for line in file]
    exact = parquet.read_table("out.parquet").to_pylist()
    assert [(row["id"], row["text"]) for row in rows] == [("a", "One, two."), ("b", "Three.")]
    for row, other in zip(rows, exact, strict=True):
        assert np.array_equal(np.float32(row["vector"]), np.float32(other["vector"]))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("embed missing.txt -o out.csv", "No such file: missing.txt."),
        ("embed two.txt -o out.xlsx", "must end in .parquet, .csv or .jsonl"),
        ("embed texts.csv -o texts.csv", "output file is the input file"),
        ("embed two.txt -o out.csv --method magic", "Unknown method “magic”"),
        ("embed two.txt -o out.csv --model ./nowhere", "no folder “./nowhere”"),
        ("embed two.txt -o out.csv --option colour=red", "no option “colour”"),
        ("embed two.txt -o out.csv --option layers=a,b", "not a layer (1-D"),
        ("embed two.txt -o out.csv --option epochs=1 --option epochs=2", "set twice"),
        ("similarity one.txt -o out", "The file contains only one text"),
        ("similarity many.txt -o out", "5,000 texts make 12,497,500 pairs"),
        ("similarity two.txt -o one.txt", "is not a folder that you can write to"),
        ("similarity two.txt -o out" + 5 * " --method cls", "Too many methods (5)"),
        ("similarity two.txt -o out --option cls.layer=1", "“cls”, which is not selected"),
        ("explain a ' '", "Text 2 is empty"),
        ("explain a b --method magic", "Unknown method “magic”"),
        ("explain a b --corpus nothing", "Add a file with `neuralviz corpus add FILE`"),
        ("tune '  '", "The text is empty"),
        ("tune a --blueprints rubbish", "not a blueprint"),
        ("tune a --precision fast --tolerance 0", "above 0 and below 1, not 0"),
        ("tune a --layers nope", "“nope” is not a layer (1-D parameter)"),
        ("tune a --model .", "config.json is missing"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(run, words: str, sentence: str):
    Path("one.txt").write_text("A text.\n")
    Path("two.txt").write_text("A text.\nAnother.\n")
    Path("many.txt").write_text("".join(f"{i}\n" for i in range(5000)))
    Path("texts.csv").write_text("text,score\nA text.,1\n")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    result = run(*shlex.split(words))
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def interrupt_at(monkeypatch, text: str):
    """Press Ctrl-C when texts are tuned and ``text`` is among them."""
    embed = NeuralEmbedder._embed

    def until_interrupted(self: object, read: list, *rest: object) -> tuple[np.ndarray, np.ndarray]:
        if any(entry.text == text for entry in read):
            raise KeyboardInterrupt
        return embed(self, read, *rest)

    monkeypatch.setattr(NeuralEmbedder, "_embed", until_interrupted)


def test_an_interrupted_run_keeps_what_is_finished_in_the_order_of_the_file(run, monkeypatch):
    interrupt_at(monkeypatch, "Two.")
    Path("texts.txt").write_text("Three and four.\nTwo.\nFive, six and seven.\n")
    result = run("embed", "texts.txt", "-o", "out.jsonl", "--batch-size", "1", *QUICK)
    assert result.exit_code == 130
    assert "Stopped. Wrote the 2 of 3 embeddings that were finished" in result.stderr
    assert "to out.jsonl (neural, exact, 1 epoch)." in result.stderr
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [(row["id"], row["text"]) for row in rows] == [
        ("1", "Three and four."),
        ("3", "Five, six and seven."),
    ]
    Path("texts.txt").write_text("Two.\n")
    result = run("embed", "texts.txt", "-o", "none.jsonl", *QUICK)
    assert (result.exit_code, Path("none.jsonl").exists()) == (130, False)
    assert "nothing was written" in result.stderr


def test_methods_lists_every_method_and_option(run):
    said = run("methods").stdout
    for name, method in METHODS.items():
        assert f"{name}\n  {method.line}\n  model: {method.model_id}\n" in said
        for option in method.options:
            assert f"{option.name}={option.default}" in said
            assert said.count(f"{option.line}:") == 1  # once, however many methods have it
    assert "neural+mean" in said
    for name, value in FOR_CORPORA.items():
        assert f"{name}={value}" in said


def test_similarity_writes_every_pair_by_every_method(run):
    import pandas as pd

    texts = ["A <b>dog</b> barks.", 'A "dog", barking.', "Rates & prices rose."]
    pd.DataFrame({"id": ["x", "y", "z"], "text": texts}).to_csv("texts.csv", index=False)
    Path("out").mkdir()
    Path("out/products.csv").write_text("old")
    words = ["--method", "neural", "--method", "mean", "--method", "neural+mean", *QUICK]
    result = run("similarity", "texts.csv", "-o", "out", *words, "--option", "mean.layer=-1")
    assert result.exit_code == 0, result.stderr
    methods = "neural, exact, 1 epoch; mean; neural+mean, exact, 1 epoch"
    assert f"Wrote the cosine similarities of 3 pairs to out ({methods})." in result.stderr
    table = pd.read_parquet("out/products.parquet")
    other = pd.read_csv("out/products.csv")
    assert list(table.columns) == ["method", "id1", "id2", "text1", "text2", "product", "rank"]
    assert (table.drop(columns="product") == other.drop(columns="product")).all(axis=None)
    np.testing.assert_allclose(table["product"], other["product"], rtol=1e-6)
    assert table["method"].tolist()[::3] == methods.split("; ")
    assert table["id1"].tolist() == ["x", "x", "y"] * 3
    assert table["text2"].tolist() == [texts[1], texts[2], texts[2]] * 3
    products = table["product"].to_numpy().reshape(3, 3)
    np.testing.assert_allclose(products[2], products[:2].mean(axis=0), atol=1e-5)
    for of_method, ranks in zip(products, table["rank"].to_numpy().reshape(3, 3), strict=True):
        assert sorted(ranks) == [1, 2, 3]
        assert (np.argsort(-of_method) == np.argsort(ranks)).all()
    page = Path("out/similarity.html").read_text("utf-8")
    assert "<b>dog" not in page and "plotly" in page
    assert not list(Path("out").glob(".*"))
    of_mean = products[1]
    spread = [of_mean.mean(), of_mean.std(), of_mean.min(), of_mean.max()]
    line = ["mean", *(f"{value:.3f}" for value in spread)]
    assert line in [printed.split() for printed in result.stdout.splitlines()]


def test_an_interrupted_comparison_keeps_what_is_finished(run, monkeypatch):
    interrupt_at(monkeypatch, "Two.")
    Path("texts.txt").write_text("Three and four.\nTwo.\nFive, six and seven.\n")
    words = ["similarity", "texts.txt", "-o", "out", "--batch-size", "1", *QUICK]
    result = run(*words, "--method", "neural", "--method", "mean")
    assert result.exit_code == 130
    wrote = "Stopped. Wrote the cosine similarities of 3 pairs to out (mean)."
    assert f"{wrote} Not finished: neural, exact, 1 epoch." in result.stderr
    assert set(parquet.read_table("out/products.parquet")["method"].to_pylist()) == {"mean"}


def test_tune_draws_the_run_without_control_codes(run):
    text = "A [bold]fox[/bold] and \x1b[31ma dog\u202e run."
    result = run("tune", text, "--epochs", "3")
    assert result.exit_code == 0, result.stderr
    epochs = [line[:9] for line in result.stdout.splitlines() if line.startswith("epoch")]
    assert epochs == ["epoch 0/3", "epoch 1/3", "epoch 2/3", "epoch 3/3"]  # as on the page
    (bars,) = re.findall(r"^loss by epoch.* (\S+)$", result.stdout, re.MULTILINE)
    assert len(bars) == 4 and bars[0] == "█" and list(bars) == sorted(bars, reverse=True)
    assert "words that shaped the embedding" in result.stdout
    assert "bold" in result.stdout  # the markup is text
    assert not any(c in result.stdout for c in "\x1b\u202e\r")
    assert re.search(r"After 3 epochs .* loss, has fallen", " ".join(result.stdout.split()))


RATES = "The central bank raised interest rates again."
DECISION = "Borrowing became more expensive after the bank's [bold]decision."


def test_explain_prints_numbers_where_there_are_no_colours(run):
    words = ["--method", "mean", "--method", "neural@epochs=2", "--method", "gradient"]
    result = run("explain", RATES, DECISION, *words)
    assert result.exit_code == 0, result.stderr
    of_mean, of_neural, of_gradient, rest = re.split(r"\n\n", result.stdout)
    assert rest == ""
    printed = " ".join(of_mean.split())
    first, second = make_embedder("mean").encode([RATES, DECISION])
    assert printed.startswith(f"mean: cosine similarity {first @ second:.4f} The (+0.")
    assert "[ (" in printed and "bold" in printed  # the markup is text
    assert re.search(r"“bank” with “bank's” adds 0\.\d+\n", of_mean)
    assert re.search(r"  special tokens: [+−]0\.\d+\n", of_mean)
    of_rest = re.findall(r"special tokens: ([+−]0\.\d+)", printed)
    lines = of_mean.split("\n  special tokens")[:2]
    for line, rest_sum in zip(lines, of_rest, strict=True):
        by_word = re.findall(r"\(([+−]\d\.\d\d)\)", line)
        total = sum(float(value.replace("−", "-")) for value in [*by_word, rest_sum])
        assert total == pytest.approx(first @ second, abs=0.06)  # each is rounded
    assert "cancel" not in of_mean
    assert of_neural.startswith("neural, exact, 2 epochs: cosine similarity ")
    assert re.search(r"“\w+” with “[\w']+” subtracts \d+\.\d+\n", of_neural)
    assert "weight decay: " in of_neural
    claim = "of the second text cancel: they add 2.4 and take away "
    assert claim in " ".join(of_neural.split())
    assert "that adds most" not in of_neural
    claim = "text and the second text: by mean, “bank's” in the second text ("
    assert claim in " ".join(of_mean.split())
    assert of_gradient.startswith("gradient: cosine")
    assert "weight decay" not in of_gradient
    assert not any(c in result.stdout for c in "\x1b\r")


def test_explain_colours_words(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    result = run("explain", RATES, DECISION, "--method", "gradient")
    assert result.exit_code == 0, result.stderr
    orange, purple = "38;2;224;123;0m", "38;2;143;111;223m"
    assert f"\x1b[1;{orange}bank's" in result.stdout
    assert f"\x1b[{purple}" in result.stdout
    assert "bank's (" not in re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = run("explain", RATES, DECISION, "--method", "gradient")
    assert "bank's (+" in re.sub(r"\x1b\[1?0?m", "", plain.stdout)
    assert orange not in plain.stdout


def test_explain_writes_every_number(run, bundled: LanguageModel):
    words = ["--method", "neural", "--method", "cls", "--option", "epochs=2", "--json"]
    result = run("explain", RATES, DECISION, *words)
    assert result.exit_code == 0, result.stderr
    neural, cls = json.loads(result.stdout)
    expected = neuralviz.explain(NeuralEmbedder(bundled, epochs=2), RATES, DECISION)
    assert (neural["method"], neural["texts"]) == ("neural, exact, 2 epochs", [RATES, DECISION])
    assert neural["cosine"] == pytest.approx(expected.cosine, abs=1e-9)
    np.testing.assert_allclose(neural["contributions"], expected.words.contributions, atol=1e-9)
    assert neural["spans"][0][2] == [RATES.index("bank"), RATES.index(" raised")]
    assert neural["is_exact"]
    assert np.sum(cls["contributions"]) == pytest.approx(cls["cosine"], abs=1e-9)
    said = run("explain", RATES, DECISION, "--method", "cls").stdout
    assert "with" not in said  # no word has a part of [CLS]


def test_explain_subtracts_the_mean_of_a_corpus(run):
    Path("few.txt").write_text("A dog barks.\nRates rose.\nThe bank lends.\n")
    assert run("corpus", "add", "few.txt", "--method", "mean").exit_code == 0
    words = ["explain", RATES, DECISION, "--method", "mean", "--corpus", "few.txt"]
    (numbers,) = json.loads(run(*words, "--json").stdout)
    vectors = make_embedder("mean").encode(["A dog barks.", "Rates rose.", "The bank lends."])
    x, y = make_embedder("mean").encode([RATES, DECISION]) - vectors.mean(axis=0)
    expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
    assert numbers["cosine"] == pytest.approx(float(expected), abs=1e-5)
    assert numbers["rest"] == ["special tokens, mean of all texts"] * 2
    assert "mean, centred on “few.txt”: cosine" in run(*words).stdout
    refused = run("explain", RATES, DECISION, "--method", "cls", "--corpus", "few.txt")
    assert refused.exit_code == 2
    assert "has no embeddings by “cls”" in refused.stderr


def test_explain_says_that_a_run_diverged(run):
    method = "neural@epochs=3,learning_rate=1e30"
    result = run("explain", "A dog barks.", "Rates rose.", "--method", method)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("The run diverged on ")
    assert len(result.stderr.splitlines()) == 1


def test_explain_warns_of_what_the_model_cannot_read_as_the_page_does(run):
    german = "Die Bank hat ihre Zinsen wieder erhöht 😀."
    result = run("explain", RATES, german, *("--method", "mean", "--method", "neural@epochs=1"))
    notes = " ".join(result.stderr.split())
    for method in ("mean", "neural, exact, 1 epoch"):
        assert f"{method}: The model does not know “😀”." in notes
        assert f"{method}: The model reads English and hardly reads text 2: choose" in notes
    assert run("explain", RATES, DECISION, "--method", "mean").stderr == ""
    symbols = run("explain", RATES, "🎉 😀", "--method", "mean", "--json")
    assert "At least half of the words of text 2 are unknown" in symbols.stderr
    assert "hardly reads" not in symbols.stderr


def test_explain_says_where_words_were_left_out(run):
    result = run("explain", "A dog barks.", "Rates rose.", "--method", "avg-diff@epochs=1")
    assert result.exit_code == 0, result.stderr
    printed = " ".join(result.stdout.split())
    assert "These vectors are no sums of parts. Words were left out in turn." in printed
    assert "all words together: " in printed


def test_a_learning_rate_that_blows_up_is_said(run):
    result = run("tune", "A text.", "--learning-rate", "1e30", "--epochs", "3")
    assert result.exit_code == 0, result.stderr
    assert "lower the learning rate" in result.stderr.lower()
    assert "diverged at a learning rate of 1e+30.\n" in result.stdout


def test_a_sentence_encoder_is_exported_with_its_pooling(run):
    from sentence_transformers import SentenceTransformer

    assert run("models", "export", "all-MiniLM-L6-v2", "out").exit_code == 0
    theirs = SentenceTransformer("out", device="cpu").encode(["A dog barks.", "Rain."])
    ours = make_embedder("sentence-transformer").encode(["A dog barks.", "Rain."])
    np.testing.assert_allclose(theirs, ours, atol=1e-6)


def test_the_app_is_started_from_anywhere(run, monkeypatch):
    started = []
    monkeypatch.setattr(os, "execv", lambda program, words: started.append(words))
    result = run("app", "--port", "8600", "--server.headless=true")
    assert result.exit_code == 0, result.stderr
    ((_, *words),) = started
    assert words[:3] == ["-m", "streamlit", "run"]
    assert words[3:] == [
        str(app_folder() / "app.py"),
        "--server.address=localhost", "--server.port=8600", "--server.headless=true"
    ]  # fmt: skip


def test_a_word_that_is_no_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "topics.csv"])
    with pytest.raises(SystemExit, match=r"what “topics\.csv” means"):
        server.check_settings()


@pytest.mark.slow
def test_the_command_serves_the_app(tmp_path: Path):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, *f"-m neuralviz app --port {port} --server.headless true".split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "NEURALVIZ_WORKERS": "0"},
    )

    def is_alive() -> bool:
        with suppress(OSError), urlopen(f"http://localhost:{port}/livez") as answer:
            return answer.read() == b"ok"
        return False

    try:
        wait_until(is_alive, 60)
        process.terminate()
        assert process.wait(30) in (0, -15)
    finally:
        process.kill()


def test_every_command_has_a_line_and_a_help(run):
    overview = run("--help").stdout
    for name, (_, line) in COMMANDS.items():
        assert f" {name} " in overview
        command = load_command(name)
        assert command.help.split("\n\n")[0].replace("\n", " ").strip() == line
        printed = run(name, "--help").stdout
        assert f"neuralviz {name}" in printed or "Usage:" in printed
        assert "bool" not in printed  # flags have no type


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("tune a --epochs ten", "“epochs” must be a whole number from 1 to 1000, not “ten”.\n"),
        ("train crops c -o a --epochs ten", "--epochs: Input should be a valid integer"),
        ("project a -o b.html --perplexity slow", "--perplexity: Input should be a valid number"),
        ("embed a.txt -o b.csv --limit 0", "--limit: Input should be greater than or equal to 1"),
        ("embed a.txt", "--output is missing. See --help."),
        ("tune", "text is missing. See --help."),
    ],
)
def test_a_value_of_another_kind_is_refused_in_a_sentence(run, words: str, sentence: str):
    result = run(*words.split())
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
