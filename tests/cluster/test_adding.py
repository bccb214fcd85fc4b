"""Files become a corpus by Ray: the same texts as from one process, whatever the files hold."""

from __future__ import annotations

import io
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from neuralviz.cluster.adding import (
    AddedCorpus,
    FilePart,
    add_on_cluster,
    find_layout,
    find_parts,
)
from neuralviz.cluster.connecting import Cluster
from neuralviz.errors import NeuralvizError, TextError, UnreadFileError
from neuralviz.reading.texts import read_folder
from neuralviz.store.corpora import CorpusStore

ROWS = 600


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    return CorpusStore(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of three kinds, one of them in a folder of its own."""
    path = tmp_path / "files"
    (path / "more").mkdir(parents=True)
    table = pa.table(
        {
            "text": [f"Parquet row {i}, with “signs”" for i in range(ROWS)],
            "topic": [f"t{i % 7}" for i in range(ROWS)],
            "year": [1990 + i % 30 for i in range(ROWS)],
        }
    )
    parquet.write_table(table, path / "a.parquet", row_group_size=250)
    lines = [
        json.dumps({"text": f"Line {i}", "topic": "lines", "year": i if i % 2 else None})
        for i in range(50)
    ]
    (path / "b.jsonl").write_text("\n".join([*lines[:20], "{broken", "", *lines[20:]]))
    rows = [f'"Row {i}, quoted\nover lines",csv,{i}' for i in range(30)]
    (path / "more" / "c.csv").write_text("\n".join(["text,topic,year", *rows, ',"",']))
    return path


def add(store: CorpusStore, *paths: object, name: str = "corpus", **options: object) -> AddedCorpus:
    limit = options.pop("limit", None)
    parts = find_parts([str(path) for path in paths])
    layout = find_layout(parts, options.pop("column", None), options.pop("id_column", None))
    return add_on_cluster(store, name, parts, layout, limit)


def test_a_folder_comes_in_as_by_one_process(store: CorpusStore, folder: Path, cluster: Cluster):
    added = add(store, folder)
    read = read_folder(folder)
    corpus = added.corpus
    assert (corpus.n_texts, added.is_new) == (len(read.texts), True)
    assert store.texts(corpus) == list(read.texts)
    assert corpus.n_distinct == len(set(read.texts))
    assert {column.name for column in corpus.columns} == read.labels.keys()
    for name in read.labels.keys() - {"year"}:
        assert store.labels(corpus, name).tolist() == list(read.labels[name])
    assert corpus.column("year").kind == "number"
    years = [float(year) if year else np.nan for year in read.labels["year"]]
    np.testing.assert_array_equal(store.labels(corpus, "year"), years)
    assert any("b.jsonl" in note and "line 21" in note for note in added.notes)
    assert store.ids(corpus, [0, ROWS + 50]) == ["1", f"{ROWS + 51}"]
    # the same files are found again, changed ones are not
    again = add(store, folder)
    assert (again.corpus, again.is_new) == (corpus, False)
    os.utime(folder / "b.jsonl", (1, 1))
    changed = add(store, folder, limit=3)
    assert (changed.is_new, changed.corpus.name) == (True, "corpus (2)")


def test_patterns_limits_columns_and_ids(store, folder, tmp_path, cluster):
    added = add(
        store, f"{folder}/*.parquet", limit=400, column="topic", id_column="text", name="topics"
    )
    corpus = added.corpus
    assert corpus.n_texts == 400
    assert store.texts(corpus, [0, 8, 399]) == ["t0", "t1", "t0"]
    assert store.ids(corpus, [8]) == ["Parquet row 8, with “signs”"]
    assert [column.name for column in corpus.columns] == ["year"]
    # of a file without the column no row is read, and a bracket may be part of a name
    (tmp_path / "a.csv").write_text("text,n\nfirst,1\n")
    (tmp_path / "b.csv").write_text("body,lang\nother,en\n")
    (tmp_path / "[d].csv").write_text("text,n\nthird,4\n")
    paths = [tmp_path / f"{name}.csv" for name in ("a", "b", "[d]")]
    added = add(store, *paths, f"{folder}/**/*.csv", (folder / "b.jsonl").as_uri(), limit=70)
    assert [c.name for c in added.corpus.columns] == ["n", "topic", "year", "file", "folder"]
    assert any(
        note.endswith("has no column “text”: its rows were skipped.") for note in added.notes
    )
    texts = store.texts(added.corpus)
    assert texts[:2] == ["first", "third"]
    assert (len(texts), texts[-1]) == (70, "Line 37")


def test_codes_are_told_by_the_files_that_have_them(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("neuralviz.reading.table._LOOKED_AT", 3)
    (tmp_path / "a.csv").write_text("text\nOne\nTwo\nThree\n")
    (tmp_path / "b.csv").write_text("text,land\nFour,NA\nFive,DE\nSix,FR\n")
    assert find_layout(find_parts([str(tmp_path)]), None, None).codes["land"] == {"NA"}


@pytest.mark.parametrize("ending", [NeuralvizError, KeyboardInterrupt])
def test_an_error_ends_the_look_at_files_that_wait(tmp_path: Path, monkeypatch, ending: type):
    for i in range(40):
        (tmp_path / f"{i:02}.csv").write_text("text\nOne\n")
    begun: list[str] = []

    def divide(part: FilePart) -> list[FilePart]:
        begun.append(part.name)
        if part.name == "00.csv":
            raise ending
        time.sleep(0.3)
        return [part]

    monkeypatch.setattr("neuralviz.cluster.adding.OPENED_AT_ONCE", 2)
    monkeypatch.setattr(FilePart, "divide", divide)
    with pytest.raises(ending):
        find_parts([str(tmp_path)])
    assert len(begun) < 10


def test_files_that_break_off_are_read_up_to_there_and_named(store, folder, cluster):
    whole = (folder / "a.parquet").read_bytes()
    half = len(whole) // 2
    (folder / "broken.parquet").write_bytes(whole[:half])
    spoilt = bytearray(whole)
    spoilt[half : half + 400] = os.urandom(400)
    (folder / "spoilt.parquet").write_bytes(bytes(spoilt))
    (folder / "cut.csv").write_text('text,topic,year\nfine,x,1\n"never closed,x,2\nfine too,x,3\n')
    added = add(store, folder)
    notes = " ".join(added.notes)
    assert "broken.parquet is damaged, or not a Parquet file" in notes
    assert "spoilt.parquet is damaged, or not a Parquet file" in notes
    assert "unmatched quotation mark" in notes
    texts = store.texts(added.corpus)
    assert {"fine", "fine too", "Line 49"} <= set(texts)
    assert sum(text.startswith("Parquet") for text in texts) > ROWS  # of the spoilt one, some


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("missing.csv", "No such file"),
        ("s3://bucket*/a.csv", "without wildcards"),
        ("{0}/none*.csv", "No file matches"),
        ("{0}/notes.txt", "only .parquet, .*are read"),
        ("https://example.org/x.csv", "cannot be read in pieces: .* Download the file"),
        ("nothing://there/a.csv", "Could not read nothing://there"),
        ("{0}/blank.csv", "no column with texts"),
    ],
)
def test_what_cannot_be_read_is_named(store: CorpusStore, tmp_path: Path, path: str, sentence: str):
    (tmp_path / "notes.txt").write_text("plain")
    (tmp_path / "blank.csv").write_text("text,n\n ,1\n ,2\n")
    with pytest.raises(TextError, match=sentence):
        add(store, path.format(tmp_path))
    assert store.corpora() == ()


class Flaky(io.BytesIO):
    """A file on a network whose connection is lost."""

    def read(self, *_: object) -> bytes:
        raise OSError("connection reset")

    readinto = read


@pytest.mark.parametrize("name", ["a.parquet", "b.jsonl", "more/c.csv"])
def test_a_lost_connection_is_no_damaged_file(folder: Path, name: str):
    flaky = SimpleNamespace(open_input_file=lambda path: Flaky(Path(path).read_bytes()))
    part = replace(find_parts([str(folder / name)]).parts[0], files=flaky)
    with pytest.raises(UnreadFileError, match=r"Could not read .*: connection reset"):
        list(part.blocks())


def test_files_that_cannot_be_opened_any_more_are_not_left_out(store, folder, cluster):
    with pytest.raises(TextError, match=r"no column “nope”. Their columns are: “text”"):
        add(store, folder, column="nope")
    parts = find_parts([str(folder)])
    layout = find_layout(parts, None, None)
    (folder / "b.jsonl").unlink()
    with pytest.raises(
        NeuralvizError, match=r"Could not read b.jsonl.*under the same path.*Nothing"
    ):
        add_on_cluster(store, "corpus", parts, layout)
    assert not store.corpora()
    assert not [table for table in store.database.tables() if table.startswith("texts-")]
