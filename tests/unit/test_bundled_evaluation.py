"""The script that measures the bundled model."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bundled_model import evaluate
from bundled_model.passages import read_passages, split
from neuralviz.models import bundled
from tests.support.passages import write_passages


@pytest.mark.slow
def test_what_each_file_of_weights_costs(tmp_path: Path, monkeypatch, capsys) -> None:
    other = tmp_path / "other.safetensors"
    other.write_bytes(bundled.WEIGHTS.read_bytes())
    asked = ["evaluate.py", "--only", "cost", "--weights", str(bundled.WEIGHTS), str(other)]
    monkeypatch.setattr(sys, "argv", asked)
    monkeypatch.setattr(evaluate, "TURNS", 1)
    monkeypatch.delenv("NEURALVIZ_DATA", raising=False)  # not needed
    evaluate.main()
    _, head, _, size, *times = capsys.readouterr().out.splitlines()
    assert head == f"| cost | {bundled.WEIGHTS} | {other} |"
    megabytes = f"{bundled.WEIGHTS.stat().st_size / 1e6:.2f}"
    assert size == f"| MB of the file | {megabytes} | {megabytes} |"
    assert len(times) == 2
    for line in times:
        assert all(float(cell) > 0 for cell in line.split("|")[2:4])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a few passages, pairs and news."""
    for name in ("permissive", "stsb", "ag_news"):
        (tmp_path / name).mkdir()
    sources = {
        "openstax/rivers (rivers)": [f"Bridge {i} crosses the river." for i in range(400)],
        "x/wikinews (wikinews-2019-2020)": ["In 2019 nobody crossed the river."],
    }
    write_passages(tmp_path / "permissive", sources)
    pairs = "score,sentence1,sentence2\n5,A dog runs.,A dog is running.\n" + (
        "3,A dog runs.,A cat runs.\n0,A dog runs.,Prices fell on Monday.\n"
    )
    (tmp_path / "stsb" / "dev.csv").write_text(pairs)
    news = [f"Business,Prices fell by {i} per cent." for i in range(12)] + (
        [f"Sports,The team has won {i} matches." for i in range(12)]
    )
    (tmp_path / "ag_news" / "test.csv").write_text("label,text\n" + "\n".join(news))
    monkeypatch.setenv("NEURALVIZ_DATA", str(tmp_path))
    return tmp_path


def asked(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *map(str, words)])
    evaluate.main()


def test_masked_tokens_by_kind_of_text_and_agreement_with_people(data, monkeypatch, capsys) -> None:
    asked(monkeypatch, "--only", "masked", "sts", "--epochs", 1, "--precision", "fast")
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines()]
    cells = {tuple(row) for row in rows if row}
    n_held_out = len(split(read_passages(data / "permissive")).all_held_out())
    assert n_held_out
    names = [row[0] for row in rows if row]
    for kind in (
        f"held-out passages, {n_held_out}",
        f"held out: textbooks, {n_held_out}",
        "never trained on: Wikinews, 1",
        "never trained on: AG News, 24",
        "never trained on: AG News as prose, 24",
    ):
        assert names.count(kind) == len(evaluate.RATIOS)
    for row in rows:
        if row and row[0].startswith(("held", "never")):
            share, loss = re.fullmatch(r"([\d.]+)% \(([\d.]+) nats\)", row[1]).groups()
            assert 0 <= float(share) <= 100
            assert float(loss) > 0
    assert ("neural, fast, 1 epoch", "1.000") in cells
    assert ("mean pooling (avg), same model", "1.000") in cells


@pytest.mark.parametrize(
    ("article", "prose"),
    [
        (" LONDON (Reuters) - Shares of Arcelor #39;s rose.", "Shares of Arcelor's rose."),
        ("AP - Nobody won  #151; again.", "Nobody won — again."),
        ("BAGHDAD, Iraq -- &lt;b&gt;All&lt;/b&gt; said  quot;no. quot;", ' All  said "no."'),
        (
            "The first half-time show - and the last - cost  #36;5.",
            "The first half-time show - and the last - cost $5.",
        ),
        ("It was AT amp;T - and it was late.", "It was AT&T - and it was late."),
    ],
)
def test_news_as_prose(article: str, prose: str) -> None:
    assert evaluate.as_prose(article) == prose


@pytest.mark.slow
def test_neighbours_of_an_even_sample_of_news(data: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(evaluate, "NEWS", 23)
    monkeypatch.setattr(evaluate, "NEWS_EPOCHS", (1,))
    asked(monkeypatch, "--only", "news")
    _, head, _, neural, pooled = capsys.readouterr().out.splitlines()
    assert head.startswith("| AG News, 23 of 24 texts, 10-NN: class |")
    assert re.search(r"neural, fast, 1 epoch \| [\d.]+%; centred [\d.]+% \|", neural)
    assert pooled == "| mean pooling (avg), same model | 100.0% |"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--split", "test"], "test.csv"),
        (["--weights", "nowhere"], "Could not read weights from nowhere: No such file"),
        (["--epochs", 0], "must be at least 1"),
        (["--only", "masked"], "SOURCES.md"),
        ([], "set NEURALVIZ_DATA"),
    ],
)
def test_what_cannot_be_measured_is_said_at_once(words, said, data, monkeypatch, capsys) -> None:
    (data / "permissive" / "SOURCES.md").unlink()
    if not words:
        monkeypatch.setenv("NEURALVIZ_DATA", "")
    with pytest.raises(SystemExit) as ended:
        asked(monkeypatch, *words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
