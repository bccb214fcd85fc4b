"""`neuralviz evaluate`: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from neuralviz import cli
from neuralviz.embedders.specs import make_embedder
from neuralviz.evaluation.correlation import correlate
from neuralviz.evaluation.rows import experiment_rows
from neuralviz.evaluation.triplets import Grouping, count_triplets

SENTENCES = [
    ("A dog runs.", "The dog is running.", 5),
    ("A cat sleeps.", "The cat is asleep.", 4.5),
    ("Rates rose.", "Interest rates went up.", 4),
    ("A dog runs.", "Rates rose.", 0),
    ("The sun sets.", "A cat sleeps.", 1),
    ("It rains.", "Bread is baked.", 2),
    ("It rains.", "It is raining hard.", 3),
    ("The sun sets.", "The sun goes down.", 3.5),
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch) -> Callable[..., Result]:
    """Run the command in an empty folder."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with Path("pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "score"), *SENTENCES])
    Path("groups.csv").write_text(
        "text,group\nA dog runs.,d\nThe dog is running.,d\nRates rose.,r\nIt rains.,w\n"
        "Interest rates went up.,r\n",
        "utf-8",
    )
    return lambda *words: CliRunner().invoke(cli.app, ["evaluate", *words])


def found(result: Result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_json_has_the_documented_shape_and_the_numbers_of_python(run) -> None:
    printed = found(
        run("--data", "pairs.csv", "--method", "mean", "--method", "cls", "--measure", "all",
            "--json")
    )  # fmt: skip
    assert list(printed) == ["mean", "cls"]
    embedder = make_embedder("mean")
    texts = [text for a, b, _ in SENTENCES for text in (a, b)]
    vectors = embedder.encode(texts).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    scores = [score for *_, score in SENTENCES]
    expected = correlate((vectors[::2] * vectors[1::2]).sum(axis=1), scores)
    mean = printed["mean"]
    for name in ("spearman", "kendall_c", "kendall_b"):
        assert mean[name] == pytest.approx(getattr(expected, name), abs=1e-6)
    assert mean["pairs"]["total"] == 3 * 3
    triplets = count_triplets(vectors[:6], Grouping(np.array([0, 0, 1, 1, 2, 2]))).together
    assert mean["triplets"]["wrong"] == triplets.wrong
    assert mean["triplets"]["total"] == triplets.total == 6 * 4
    assert mean["triplets"]["same"] == pytest.approx(triplets.same, abs=1e-6)


def test_a_report_with_every_setting(run) -> None:
    evil = "<img src=x> & [red].csv"
    rows = "".join(
        f"o{i},g{i} {kind},{kind},{i},1,1\n" for kind in ("=x", "<i>[/red]x") for i in range(4)
    )
    Path(evil).write_text(f"original,generated,varies,value,fixed1,fixed2\n{rows}", "utf-8")
    result = run("--data", evil, "--data", "pairs.csv", "--method", "mean",
                 "--method", "neural", "--option", "neural.epochs=2", "--option",
                 "precision=fast", "-o", "out")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "<i>[/red]x varies" in result.stdout
    assert "↑ higher is better, ↓ lower is better" in result.stdout
    report = Path("out/report.html").read_text("utf-8")
    (said,) = re.findall("With mean, .* with neural\\.", re.sub("</?strong>", "", report))
    assert " ".join(said.split()) in " ".join(result.stdout.split())
    for said in ("learning_rate 0.01", "&lt;img src=x&gt; &amp; [red].csv"):
        assert said in report
    assert "<img src" not in report
    assert "<i>[" not in report
    record = json.loads(Path("out/results.json").read_text("utf-8"))
    assert [data["name"] for data in record["data"]] == [evil, "pairs.csv"]
    options = record["settings"]["rows"][1]["options"]["neural"]
    assert (options["epochs"], options["precision"]) == (2, "fast")
    assert options["blueprints"] == "(2, 1), (1, 1), (1, 2), (1, 3)"
    assert record["data"][1]["overlap"]["rows"] == ["mean", "neural"]
    with Path("out/results.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    spearman = [line for line in lines if line["measure"] == "spearman"]
    assert [line["method"] for line in spearman] == ["mean", "neural, fast, 2 epochs"]
    expected = record["data"][1]["results"]["mean"]["spearman"]
    assert float(spearman[0]["value"]) == pytest.approx(expected)
    names = {line["measure"] for line in lines}
    assert {"'=x.kendall_c at 1, 1", "intervals.spearman.low", "pairs.total"} <= names
    assert not [cell for line in lines for cell in line.values() if cell.startswith("=")]


def test_files_of_one_name_are_told_apart_and_sample_data_has_roles(run) -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "d.csv").write_text(f"text,form\n{folder},1\nb,1\nc,2\nd,2\n", "utf-8")
    words = ["--data", "a/d.csv", "--data", "b/d.csv", "--data", "topics.csv"]
    words += ["--role", "label=form", "--limit", "60", "--method", "mean", "--json"]
    printed = found(run(*words))
    assert list(printed) == ["a/d.csv", "b/d.csv", "topics.csv"]
    assert printed["topics.csv"]["mean"]["neighbours"]["n"] == 60


def test_a_loss_that_rose_is_said_again(run) -> None:
    words = ["--data", "groups.csv", "--method", "neural", "--option", "learning_rate=5", "--json"]
    words += ["--option", "epochs=2", "--option", "precision=fast"]
    for _ in range(2):  # the second time everything is found
        result = run(*words)
        assert json.loads(result.stdout)["neural"]["loss_rose"] == 5
        assert "The run diverged on 5 of 5 texts" in result.stderr


def test_an_undefined_correlation_is_said_and_no_number(run) -> None:
    Path("equal.csv").write_text("sentence1,sentence2,score\na,b,5\nc,d,5\ne,f,5\n", "utf-8")
    result = run("--data", "equal.csv", "--method", "mean", "--json")
    assert result.exit_code == 1  # triplets there are, a correlation there is none
    mean = json.loads(result.stdout)["mean"]
    assert "NaN" not in result.stdout
    assert mean.get("spearman") is None
    assert mean["triplets"]["total"] == 6 * 4
    assert "All scores are equal" in mean["failed"]["correlations"]
    assert "All scores are equal" in result.stderr
    result = run("--data", "equal.csv", "--method", "mean", "--measure", "correlations", "--json")
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--data", "pairs.csv", "--measure", "speed"], "Unknown measure “speed”"),
        (["--data", "groups.csv", "--measure", "pairs"], "cannot be used for pairs"),
        (["--data", "pairs.csv", "--similar", "nan"], "must be numbers"),
        (["--data", "pairs.csv", "--experiment", "wrong"], "Unknown experiment “wrong”"),
        (["--data", "pairs.csv", "--experiment", "layers", "--method", "mean"], "not both"),
        (["--data", "one.csv"], "All texts are in one group"),
        (["--data", "pairs.csv", "--resamples", "100"], "Intervals need 200 to 100,000 resamples"),
        (["--data", "groups.csv", "--task", "depth"], "Unknown task “depth”. Choose from"),
        (["--data", "groups.csv", "--task", "length", "--role", "group=group"],
         "made from the texts alone. Remove the role group."),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_before_anything_is_embedded(run, words, said, monkeypatch) -> None:
    Path("one.csv").write_text("text,group\na,x\nb,x\nc,x\n", "utf-8")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was embedded")

    monkeypatch.setattr("neuralviz.evaluation.measures.embed", never)
    result = run(*words, "--json")
    assert result.exit_code == 2, result.output
    assert said in result.stderr.replace("\n", " ")
    assert result.stdout == ""


def test_tasks_are_made_from_the_texts_of_any_file(run) -> None:
    lines = [f"The {'dog' if i % 2 else 'cat'} of house {'n' * (i + 1)}{' ran' * (i % 3 + 1)} home."
             for i in range(60)]  # fmt: skip
    Path("plain.txt").write_text("\n".join(lines), "utf-8")
    words = ["--data", "plain.txt", "--method", "mean", "--model", "bundled"]
    result = run(*words, "--task", "length", "--task", "bigram-shift", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "plain.txt, length: 60 texts, 20 of each of 3 labels (7 words, 8 words" in (
        result.stderr.replace("\n", " ")
    )
    assert "TF-IDF baseline" in result.stdout
    assert "tells how long a text is for" in " ".join(result.stdout.split())
    record = json.loads(Path("out/results.json").read_text("utf-8"))
    names = [one["name"] for one in record["data"]]
    assert names == ["plain.txt, length", "plain.txt, bigram shift"]
    of_length = record["data"][0]["results"]["mean"]["probe"]
    assert (of_length["n"], of_length["n_labels"], of_length["folds"]) == (60, 3, 5)
    assert of_length["baseline"] == 20 / 60
    assert 0 <= of_length["tfidf"] <= 1
    assert len(of_length["interval"]) == 2


def test_experiments_are_listed_and_run_with_options_of_their_own(run) -> None:
    assert "Tables 9 to 12" in run("--list").stdout
    words = ["--data", "groups.csv", "--option", "precision=fast", "--json"]
    printed = found(run(*words, "--experiment", "blueprints"))
    assert {f"neural-B{n}, fast" for n in range(4)} <= set(printed)
    neural, mean, *_ = experiment_rows("concatenated", {"neural.epochs": "1"}, None)
    assert dict(neural.spec.options) == {"epochs": 1}
    assert (neural.published, mean.published) == ("", "mean")  # not what the paper measured
    result = run("--data", "pairs.csv", "--experiment", "layers", "--option", "epochs=1")
    assert result.exit_code == 2
    assert "The experiment sets the option “epochs” itself" in result.stderr


def test_rare_labels_are_measured_alike_and_left_out_of_a_probe_by_name(run) -> None:
    rows = [f"{'A dog barked' if i % 2 else 'Rates rose'} {i} times.,{i % 2}" for i in range(24)]
    rows += ["It rained.,rare", "It snowed.,rare", "A = b.,odd"]
    Path("labels.csv").write_text("\n".join(["text,label", *rows]), "utf-8")
    words = ["--data", "labels.csv", "--method", "mean", "--model", "bundled", "--neighbours", "3"]
    result = run(*words, "--measure", "all")
    assert "fewer than 5 different texts: “rare” (2) and “odd” (1)" in " ".join(
        result.stderr.split()
    )
    printed = found(run(*words, "--measure", "all", "--json"))["mean"]
    assert printed["probe"]["left_out"] == ["rare", "odd"]
    assert printed["probe"]["confusion"] == {"labels": ["0", "1"], "counts": [[12, 0], [0, 12]]}
    votes = np.array(printed["neighbours"]["confusion"]["counts"])
    assert votes.sum(axis=1).tolist() == [12, 12, 2, 1]
    share = np.diag(votes).sum() / votes.sum()
    assert printed["neighbours"]["accuracy"] == pytest.approx(share)
    assert printed["neighbours"]["balanced_accuracy"] < share  # the rare ones are hardly found
