"""The commands for corpora and their maps: what they keep, what they write, what they refuse."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from neuralviz import cli
from neuralviz.cli.console import interrupt
from neuralviz.embedders import PooledEmbedder, embedder_spec, make_embedder
from neuralviz.errors import Stopped
from neuralviz.maps.kept import KeptMaps
from neuralviz.models.shared import LOADERS
from neuralviz.reading.texts import ReadTexts
from neuralviz.reading.vectors import ReadVectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import import_vectors

PCA = ["--reducer", "pca"]
RIVER = "The river rose overnight and the lower meadows were under water."
ROWS = """\
id,text,topic,year,x,note
a,The river rose overnight 🙂,water,1999,1,=cmd|' /C calc'!A0
a,Bread needs <script>alert(1)</script> salt.,food,2001.5,2,+1+1
,"=cmd|' /C calc'!A0 and a word",town,,3,-5
d,Snow fell on the meadows.,water,2004,4,plain
e,A choir sang in the hall.,,2005,5,@SUM(A1)
f,The bakery opens at five.,food,2006,6,plain
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch) -> Callable[..., Result]:
    """Run a command in a folder with a few files; what is kept is kept in it."""
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS, "utf-8")
    Path("lines.txt").write_text("One text.\n\nAnother text.\nA third.\n", "utf-8")

    def run(*words: str, answer: str = "") -> Result:
        return CliRunner().invoke(cli.app, words, input=answer)

    return run


def done(result: Result) -> str:
    """What a command said that ended well."""
    assert result.exit_code == 0, result.stderr
    return result.stderr


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_header_that_was_taken_is_named_and_may_be_chosen(run):
    first, second = "3,Oil,Prices rose again today.", "1,Vote,They voted on Monday."
    Path("news.csv").write_text(f"{first}\n{second}\n2,Cup,They won the cup at last.\n")
    said = done(run("corpus", "add", "news.csv"))
    assert "Read line 1 of news.csv as data: “3”, “Oil”, “Prices rose again today.”" in said
    done(run("corpus", "export", "news.csv", "-o", "out.csv"))
    assert rows_of("out.csv")[0]["text"] == "Prices rose again today."
    said = done(run("embed", "rows.csv", "--method", "mean", "-o", "v.parquet"))
    assert "Line 1 of rows.csv names its columns: “id”, “text”, “topic”" in said
    assert "The first row is “a”, “The river rose overnight 🙂”" in said
    said = done(run("corpus", "add", "news.csv", "--header", "2", "--name", "from line 2"))
    assert "Line 2 of news.csv names its columns: “1”, “Vote”" in said
    assert "Saved 1 text as “from line 2”" in said
    said = done(run("corpus", "add", "rows.csv", "--no-header", "--name", "all lines"))
    assert "Read line 1 of rows.csv as data: “id”, “text”" in said
    assert "Saved 7 texts as" in said


def test_a_table_is_kept_listed_and_written_again(run):
    said = done(run("corpus", "add", "rows.csv"))
    assert "Added a number in brackets to 1 duplicate ID" in said
    assert "Saved 6 texts as “rows.csv”." in said
    assert "Embedded by mean: 6 embeddings of 384 values." in said
    (entry,) = json.loads(run("corpus", "list", "--json").stdout)
    assert (entry["name"], entry["texts"], entry["maps"]) == ("rows.csv", 6, [])
    assert entry["columns"] == ["id", "topic", "year", "x", "note"]
    assert entry["embedders"] == [{"method": "mean", "embedded": 6, "dim": 384}]
    done(run("corpus", "export", "rows.csv", "-o", "out.csv"))
    rows = rows_of("out.csv")
    assert list(rows[0]) == ["id", "text", "id (label)", "topic", "year", "x (label)", "note"]
    assert [row["id"] for row in rows] == ["a", "a (2)", "1", "d", "e", "f"]
    assert [row["year"] for row in rows[:3]] == ["1999", "2001.5", ""]
    inert = ["'=cmd|' /C calc'!A0", "'+1+1", "-5", "plain", "'@SUM(A1)", "plain"]
    assert [row["note"] for row in rows] == inert
    assert rows[0]["text"].endswith("🙂")
    assert rows[2]["text"] == "'=cmd|' /C calc'!A0 and a word"


def test_vectors_are_exported_once_there_are_some(run):
    done(run("corpus", "add", "lines.txt"))
    neural = ["--method", "neural+mean", "--option", "epochs=1"]
    result = run("corpus", "export", "lines.txt", "-o", "out.parquet", *neural)
    assert result.exit_code == 2
    assert "has no embeddings by “neural+mean, fast, 1 epoch” with these options" in result.stderr
    assert not Path("out.parquet").exists()
    said = done(run("corpus", "embed", "lines.txt", *neural))
    assert "Embedded by neural+mean, fast, 1 epoch: 3 embeddings of 1,536 values." in said
    said = done(run("corpus", "export", "lines.txt", "-o", "out.parquet", *neural))
    assert "to out.parquet, with embeddings by neural+mean, fast, 1 epoch." in said
    table = parquet.read_table("out.parquet")
    assert table.column_names == ["id", "text", "first_loss", "last_loss", "vector"]
    typed = {"neural.epochs": "1", "precision": "fast"}
    embedder = make_embedder(embedder_spec("neural+mean", typed), LOADERS)
    expected = embedder.encode(table["text"].to_pylist())
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_the_same_file_goes_on_where_it_was_interrupted(run, monkeypatch):
    texts = [f"This is text {number}{' and more' * (number % 5)}." for number in range(40)]
    Path("texts.txt").write_text("\n".join(texts))
    embed, calls, is_interrupted = PooledEmbedder._embed, [], True

    def counted(self: PooledEmbedder, read: list, *rest: object) -> object:
        if calls and is_interrupted:
            raise KeyboardInterrupt
        calls.append(len(read))
        return embed(self, read, *rest)

    monkeypatch.setattr(PooledEmbedder, "_embed", counted)
    result = run("corpus", "add", "texts.txt")
    assert result.exit_code == 130
    assert "Finished work is saved; run the same command again to resume." in result.stderr
    assert "mean (32)" in run("corpus", "list").stdout
    is_interrupted = False
    said = done(run("corpus", "add", "texts.txt"))
    assert "already saved as “texts.txt”" in said
    assert "\n32 of 40 texts were already embedded by mean." in said
    assert "\nEmbedded by mean: 40 embeddings of 384 values." in said
    assert calls == [32, 8]
    said = done(run("corpus", "embed", "texts.txt"))
    assert "Already embedded by mean: 40 embeddings of 384 values." in said
    assert calls == [32, 8]
    assert len(CorpusStore().corpora()) == 1


def test_an_interrupt_that_others_swallow_ends_the_work_all_the_same(run, monkeypatch):
    Path("texts.txt").write_text("\n".join(f"This is text {number}." for number in range(200)))
    embed, calls = PooledEmbedder._embed, []

    def swallowing(self: PooledEmbedder, read: list, *rest: object) -> object:
        calls.append(len(read))
        with suppress(KeyboardInterrupt):
            interrupt()
        return embed(self, read, *rest)

    monkeypatch.setattr(PooledEmbedder, "_embed", swallowing)
    result = run("corpus", "add", "texts.txt")
    assert result.exit_code == 130
    assert "Finished work is saved; run the same command again to resume." in result.stderr
    assert 0 < sum(calls) < 200
    monkeypatch.setattr(PooledEmbedder, "_embed", embed)
    assert "Embedded by mean: 200 embeddings" in done(run("corpus", "add", "texts.txt"))


def test_other_texts_of_the_same_name_are_another_corpus_and_found_again(run):
    done(run("corpus", "add", "lines.txt"))
    by_paragraph = ("corpus", "add", "lines.txt", "--paragraphs")
    assert "Saved 2 texts as “lines.txt (2)”." in done(run(*by_paragraph))
    assert "already saved as “lines.txt (2)”" in done(run(*by_paragraph))
    done(run("corpus", "add", "rows.csv"))
    Path("rows.csv").write_text(ROWS.replace("2006", "2007"), "utf-8")  # only a label differs
    assert "Saved 6 texts as “rows.csv (2)”" in done(run("corpus", "add", "rows.csv"))
    assert len(CorpusStore().corpora()) == 4


def test_a_corpus_is_deleted_only_when_someone_says_yes(run):
    done(run("corpus", "add", "lines.txt", "--name", "mine 🙂"))
    nobody = run("corpus", "delete", "mine 🙂")
    assert nobody.exit_code == 1
    assert "Aborted" in nobody.stderr
    assert "Nothing deleted." in done(run("corpus", "delete", "mine 🙂", answer="n\n"))
    done(run("corpus", "rename", "mine 🙂", "yours"))
    assert [corpus.name for corpus in CorpusStore().corpora()] == ["yours"]
    assert "Deleted “yours”." in done(run("corpus", "delete", "yours", answer="y\n"))
    assert "No corpora yet" in done(run("corpus", "list"))


def test_a_page_needs_no_network_and_runs_nothing_of_a_text(run):
    done(run("corpus", "add", "rows.csv", "--name", "</title><script>alert(2)</script>"))
    (corpus,) = CorpusStore().corpora()
    for colour in ("--colour", "--color"):
        done(run("project", corpus.id, "-o", "map.html", *PCA, colour, "note"))
        page = Path("map.html").read_text("utf-8")
        assert "plotly.js v" in page
        assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=(?!'data:)", page)
        assert "alert(1)" in page and "alert(2)" in page
        assert "<script>alert" not in page
        assert page.count("</script>") == page.count("<script")


def test_a_map_that_is_stopped_leaves_the_vectors_and_no_map(run, monkeypatch):
    done(run("corpus", "add", "rows.csv"))

    def stopped(*_: object, **__: object) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr("neuralviz.maps.mapping.project", stopped)
        result = run("project", "rows.csv", "-o", "map.html", *PCA)
    assert result.exit_code == 130
    assert "Stopped before the map was finished. The embeddings are saved." in result.stderr
    assert not Path("map.html").exists()
    assert KeptMaps(CorpusStore()).list_maps(CorpusStore().corpus("rows.csv")) == ()
    done(run("project", "rows.csv", "-o", "map.html", *PCA))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["corpus", "add", "rows.csv", "--paragraphs"], "Use --paragraphs only with plain text"),
        (["corpus", "add", "rows.csv", "--header", "1", "--no-header"], "either --header or"),
        (["corpus", "add", "lines.txt", "--no-header"], "plain text, not a table"),
        (["corpus", "add", "rows.csv", "--header", "99"], "nothing in line 99"),
        (["corpus", "add", ".", "--id-column", "id"], "--id-column works with a single table only"),
        (["corpus", "export", "kept", "-o", "out.csv", "--model", "bundled"], "need --method"),
        (["corpus", "rename", "kept", "rows.csv"], "“rows.csv” already"),
        (["corpus", "delete", "gone", "--yes"], "Saved corpora: “kept”, “rows.csv”"),
        (["project", "lines.txt", "-o", "out.html"], "Add a file with `neuralviz corpus add FILE`"),
        (["project", "kept", "-o", "out.html"], "at least 5 different texts; “kept” has 3"),
        (["project", "rows.csv", "-o", "out.png"], "must end in .html, .parquet"),
        (["project", "rows.csv", "-o", "out.csv", "--colour", "topic"], "works only with .html"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_changes(run, words: list[str], sentence: str):
    for name, texts in (("rows.csv", "abcdef"), ("kept", "abc")):
        CorpusStore().add(name, ReadTexts(tuple(texts)))

    def everything() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}

    before = everything()
    result = run(*words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert everything() == before


def test_a_file_brings_its_own_vectors(run):
    """As DuckDB and Lance (arrays) or pandas (lists) write them, under any name."""
    texts, vectors = [f"text {i}" for i in range(6)], np.eye(6, dtype=np.float32)
    arrays = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 6)
    own = pa.table({"text": texts, "minilm": arrays, "bad": [[0.5] * (i + 1) for i in range(6)]})
    parquet.write_table(own, "own.parquet")
    said = done(run("corpus", "add", "own.parquet", "--vectors", "minilm"))
    assert "Imported 6 embeddings of 6 values as “file: own.parquet”" in said
    assert "Embedded" not in said  # nothing but what the file brings
    (corpus,) = CorpusStore().corpora()
    kept = CorpusStore().vectors.embedders()[0]
    np.testing.assert_array_equal(
        CorpusStore().vectors.get(kept, CorpusStore().keys(corpus)), vectors
    )
    refused = run("corpus", "add", "own.parquet", "--name", "other", "--vectors", "bad")
    assert "different lengths" in refused.stderr
    assert [saved.name for saved in CorpusStore().corpora()] == [corpus.name]
    refused = run("corpus", "add", "rows.csv", "--vectors", "x")
    assert "Use --vectors only with a single Parquet file" in refused.stderr
    said = done(run("corpus", "add", "own.parquet", "--name", "hinted", "--method", "mean"))
    assert 'To use them, add the corpus with --vectors "minilm".' in said


def test_a_corpus_is_written_without_its_duplicates(run):
    texts = [RIVER, RIVER.replace("rose", "roes"), "Bread needs salt.", RIVER]
    corpus = CorpusStore().add("few.csv", ReadTexts(tuple(texts), ids=tuple("abcd")))
    angles = np.radians([0, 5, 90, 0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    import_vectors(CorpusStore(), corpus, ReadVectors("mine.npy", vectors))
    command = ("corpus", "duplicates", "few.csv", "--method", "file: mine.npy")
    output = ("-o", "kept.csv", "--removed", "removed.parquet")
    result = run(*command, *output)
    said = done(result)
    assert "3 of 4 texts have a near-duplicate (a cosine similarity of 0.996 or more)" in said
    assert "Wrote 2 kept texts to kept.csv" in said
    assert [row["id"] for row in rows_of("kept.csv")] == ["a", "c"]
    table = parquet.read_table("removed.parquet")
    assert table["kept_id"].to_pylist() == ["a", "a"]
    assert np.allclose(table["cosine"], [np.cos(angles[1]), 1])
    (pair,) = [line for line in result.stdout.splitlines() if "rose → roes" in line]
    assert "yes" in pair
    assert "0.996" in pair
    done(run(*command, *output, "--keep-id", "d", "--threshold", "1"))
    assert [row["id"] for row in rows_of("kept.csv")] == ["b", "c", "d"]
    for wrong, sentence in (
        (("--keep", "best"), "Unknown rule “best”. Choose from: longest, shortest, first."),
        (("--threshold", "1.2"), "The threshold must be between -1 and 1, not 1.2."),
        (("-o", "x.csv", "--removed", "x.csv"), "Kept and removed texts need a file each."),
        (("--keep-id", "z"), "“few.csv” has no text with the ID “z”."),
    ):
        refused = run(*command, *wrong)
        assert refused.exit_code == 2
        assert sentence in refused.stderr


def test_imported_vectors_are_projected_exported_and_listed(run):
    done(run("corpus", "add", "rows.csv"))
    np.save("mine.npy", np.random.default_rng(0).normal(size=(6, 4)))
    said = done(run("corpus", "import", "rows.csv", "mine.npy"))
    assert "Imported 6 embeddings of 4 values as “file: mine.npy”." in said
    method = ("--method", "file: mine.npy")
    done(run("project", "rows.csv", "-o", "map.html", *method, *PCA))
    assert "<dd>file: mine.npy, PCA, dimensions 2" in Path("map.html").read_text("utf-8")
    done(run("corpus", "export", "rows.csv", "-o", "out.parquet", *method))
    np.testing.assert_allclose(
        parquet.read_table("out.parquet")["vector"].to_pylist(), np.load("mine.npy"), rtol=1e-6
    )
    assert "6 embeddings" in done(run("corpus", "import", "rows.csv", "out.parquet"))
    unknown = run("project", "rows.csv", "-o", "map.html", "--method", "file: x.npy", *PCA)
    assert unknown.exit_code == 2
    assert "Imported: file: mine.npy; file: out.parquet." in unknown.stderr
    np.save("short.npy", np.ones((5, 4)))
    short = run("corpus", "import", "rows.csv", "short.npy")
    assert "has 5 rows, but “rows.csv” has 6 texts." in short.stderr
