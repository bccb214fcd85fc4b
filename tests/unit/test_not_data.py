"""Files that hold no data, Arrow files, and the folders that ``datasets`` saves."""

from __future__ import annotations

import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.evaluation.data import load_hub_data, read_data
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import read_files, read_folder, read_texts
from neuralviz.reading.vectors import read_vectors

POINTER = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
"""
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Sign in</body></html>"


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        (
            [
                POINTER,
                POINTER.replace(b"git-lfs", b"hawser"),
                b"version https://example.org/v2\next-0-x sha256:0a\noid sha256:0a\n",
                b"version https://xethub.com/spec/v1\nhash 0a\n",
                b"# xet version 0\nfilesize = 12\nhash = '0a'\n",
                b"../../.git/annex/objects/Xx/4k/MD5E-s1--ab.csv/MD5E-s1--ab.csv\n",
                b"outs:\n- md5: a304afb96060aad90176268345e10355\n  path: t.csv\n",
            ],
            "is a pointer of Git LFS, .*git lfs pull",
        ),
        (
            [
                PAGE,
                b"\n <html>\n<body>404</body></html>",
                b"<!-- saved -->\n<HTML lang=en><body>",
                b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
                b"<Error><Code>AccessDenied</Code></Error>",
                b"<table><tr><td>One</td></tr></table>\n",
                b"<div class=x>Access Denied</div>",
                b"<p>One</p>\n<p>Two</p>\n",
                b"<TABLE>\n" + b"<tr><td>One</td></tr>\n" * 200,
                b"<p>" + b"One <b>two</b> three. " * 200,
            ],
            "is a web page",
        ),
        (
            [
                b"404: Not Found",
                b"502 Bad Gateway",
                b"410 Gone",
                b"Entry not found",
                b'{"error":"Repository not found"}',
                b'{"message": "Not Found", "documentation_url": "https://x.org"}',
                b'{\n  "detail": "Too many requests"\n}',
                b'{"error": {"code": 404, "message": "No such file"}}',
            ],
            "holds a server's message, not data: “",
        ),
    ],
)
def test_what_stands_for_another_file_is_named(contents: list[bytes], says: str) -> None:
    for content in contents:
        for ending in ("csv", "jsonl", "json", "parquet", "xlsx", "txt"):
            with pytest.raises(TextError, match=says):
                read_texts(Source(f"t.{ending}", content))


def test_pointers_are_named_wherever_files_are_read(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs neuralviz[ray]")
    from neuralviz.cluster.adding import find_parts

    with pytest.raises(TextError, match="a pointer of Git LFS"):
        read_vectors(Source("t.npy", POINTER))
    (tmp_path / "t.csv").write_bytes(POINTER)
    (tmp_path / "u.csv").write_bytes(b"text\nOne\n")
    for notes in (find_parts([str(tmp_path)]).notes, read_folder(tmp_path).notes):
        assert any("Git LFS" in note for note in notes)


@pytest.mark.parametrize(
    "content",
    [
        b"404 people came to the party\n",
        b"Not found in the attic: a hat.\n",
        b'{"text": "One", "error": "a slip"}\n',
        b"version control is a habit\n",
        b"text\n<html>\n",
        b"<p> opens a paragraph, </p> closes it.\n",
        b"<table> stands above <td>.\n",
        b"# xet is a tool\nand so on\n",
        b"version https://example.org is out\nAnd so on.\n",
        b"An RTF file begins with {\\rtf1.\n",
        b"Gone.\n",
        b"<html> is a tag\n",
        "\uf0b7 Milk\n\uf0b7 Eggs\n".encode() * 30,  # a list that comes from Word
        b"<body> stands within <html>.\n",
        b'{"detail": "Great room", "rating": 5}\n',
        b'{"errors": "three", "review": "Too many slips."}\n',
        b'{"detail": ["Great room", "Cold soup"], "rating": [5, 1]}\n',
        b'{"detail": ["Great room", "Cold soup"]}\n',
    ],
)
def test_texts_on_such_things_are_texts(content: bytes) -> None:
    for ending in ("jsonl",) if content.startswith(b"{") else ("txt", "csv"):
        assert read_texts(Source(f"t.{ending}", content)).texts


def test_texts_in_html_and_markdown_with_html_are_texts() -> None:
    for n in (2, 200):
        rows = b"".join(b"<p>Text %d <b>so</b></p>,a\n" % place for place in range(n))
        assert len(read_texts(Source("t.csv", rows)).texts) == n
    page = b"<p align=center><img src=x></p>\n\n# Title\n\n" + b"<b>Text</b> with words.\n" * 100
    assert read_texts(Source("README.md", page)).texts


BINARY = bytes(range(256)) * 20
REFUSED = [
    *((name, b"", "is empty") for name in ("a.txt", "t.json", "t.jsonl", "t.parquet", "t.xlsx")),
    ("a.txt", b"\n \n", "is empty"),
    ("a.csv", b"\xef\xbb\xbf\n", "is empty"),
    ("a.csv", b"text\n \n", r"no text: it has columns \(“text”\) but no rows"),
    ("a.txt", b"\xff\xfe" + bytes(range(256)) * 4, "is not a text file"),
    ("a.csv", b"a,b\n1,2,3,4\n", "as a table.* Put texts that contain “,” in quotation"),
    ("a.csv", b'a,b\n1,2\n1,"open\n3,4\n', r"no word.* quotation mark \(line 3\)"),
    ("a.csv", b'"a,b\n1,two\n', "as a table.* starts at line 1"),
    ("a.csv", b'a,b\n1,"two\n', r"as a table.* quotation mark \(line 2\)"),
    ("a.csv", b"x,y\n1,2.5\n3,1e5\n", "no column with texts: no words.*“x”, “y”"),
    ("a.csv", b"a\n" + BINARY, "is not a text file"),
    ("a.txt", BINARY, "is not a text file"),
    ("t.csv", b",".join([b"a"] * 3000), "more than 2,000 columns"),
    ("t.csv", b"# Rivers\n\n| text | n |\n| :-- | --- |\n| One | 1 |\n", "a Markdown table"),
    ("t.csv", b"text|label\n:--|--:\nOne|a\n", "a Markdown table"),
    ("t.csv", b'[{"text": "One"}, {"text": "Two"}]', r"holds JSON.*\.jsonl"),
    ("t.csv", b'{"text": "One"}\n{"text": "Two"}\n', r"holds JSON.*\.jsonl"),
    ("t.csv", b'[\n{"a": 1}]', r"holds JSON.*\.jsonl"),
    ("t.json", b'[{"text": "One"}', "incomplete or has an error in line 1"),
    ("t.json", b'{\n "text": "One"\n}\n{\n "text": Two\n}\n', "has an error in line 5"),
    ("t.json", b'{"text": "One"}', "does not contain a table"),
    ("t.json", b'{"a": [1], "b": [1, 2]}', "does not contain a table"),
    ("t.json", b"5", "does not contain a table"),
    ("t.json", b"[[1, 2]]", "neither an object nor a string"),
    ("t.json", b"[" * 100_000, "nested too deeply"),
    ("t.json", json.dumps([dict.fromkeys(map(str, range(3000)), 1)]).encode(), "more than 2,0"),
    ("t.json", b'{"data": [{"paragraphs": [{"context": "A", "qas": []}]}]}', "as SQuAD has"),
    ("t.jsonl", b"One\nTwo\n", "Skipped 2 lines"),
    ("t.parquet", b"PAR1 and so on PAR1", "damaged, or not a Parquet file"),
    ("t.parquet", b"a,b\n1,2\n", "damaged, or not a Parquet file"),
    ("t.xlsx", b"PK\x03\x04 and so on", "damaged, or not an Excel workbook"),
    ("t.xlsx", b"a,b\n1,2\n", "damaged, or not an Excel workbook"),
    *(
        (f"t.{ending}", content, "is not a text file, but perhaps a document")
        for ending in ("txt", "csv", "json")
        for content in (
            b"{\\rtf1\\ansi One}",
            pickle.dumps(["The river rose.", "Bread needs salt."]),
            b"PK\x03\x04 word/x.xml",
            b"%PDF-1.7",
        )
    ),
]
OTHER_TEXTS = [  # which are read as one text each
    ("a.txt", "id\ttext\n1\tOne\n2\tTwo\n", "fields between tabs. Give it the ending"),
    ("a.txt", "#separator:tab\nA\tEin\nB\tZwei\nC\tDrei\n", "fields between tabs"),
    ("a.txt", "id;text\n1;One\n", "with the columns id;text. Give it"),
    ("a.txt", '{"text": "One"}\n{"text": "Two"}\n', "but JSON"),
    ("a.conllu", "# text = It.\n1\tIt\tit\tP\tPRP\t_\t2\tn\t_\t_\n" * 3, "treebank or CoNLL"),
    ("a.txt", "EU NNP B-ORG\nis VBZ O\n. . O\n", "treebank or CoNLL"),
    ("a.txt", "__label__a One\n__label__b Two\n", "as fastText has them"),
    ("tweets.js", "window.YTD.tweets.part0 = [ {", "but JSON"),
    ("a.ipynb", '{\n "cells": [],\n "nbformat": 4\n}', "but a notebook"),
]


@pytest.mark.parametrize(("name", "content", "says"), REFUSED)
def test_what_cannot_be_read_is_refused_with_a_sentence(
    name: str, content: bytes, says: str
) -> None:
    with pytest.raises(TextError, match=says):
        read_texts(Source(name, content))


@pytest.mark.parametrize(("name", "content", "says"), OTHER_TEXTS)
def test_tables_and_json_called_plain_text_are_refused(name: str, content: str, says: str) -> None:
    source = Source(name, content.encode())
    with pytest.raises(TextError, match=says):
        read_texts(source)
    if not name.endswith(".ipynb"):
        assert read_texts(source, mode="one").texts == (content.strip(),)


def test_files_that_are_not_there_or_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("a.csv", r"^No such file: a\.csv\.$"), ("pipe", "not a regular file")):
        with pytest.raises(TextError, match=says):
            read_texts(Source(name, tmp_path / name))
    with pytest.raises(TextError, match="is not a regular file"):
        read_texts(Source("a.csv", tmp_path))


def test_the_digest_of_a_source_is_of_its_name_and_what_it_holds_now(tmp_path: Path) -> None:
    sources = [Source("a", b"One"), Source("a", b"Two"), Source("b", b"One"), Source("a\0O", b"ne")]
    assert len({source.digest for source in [*sources, Source("a", b"One")]}) == 4
    path = tmp_path / "a.txt"
    path.write_text("One")
    before = Source.from_path(path).digest
    assert Source.from_path(path).digest == before
    path.write_text("One more")
    assert Source.from_path(path).digest != before
    with pytest.raises(TextError, match=r"^No such file: nothing\.txt\.$"):
        _ = Source.from_path(tmp_path / "nothing.txt").digest


# --- Arrow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather_files_are_read_as_arrow_reads_them(compression: str) -> None:
    kinds = {
        "text": pa.array(["One", None, "Three"]),
        "category": pa.array(["a", "b", "a"]).dictionary_encode(),
        "large": pa.array(["x", "y", "z"], pa.large_string()),
        "view": pa.array(["x", "y", "z"], pa.string_view()),
        "n": pa.array([1, 2, None]),
        "length": pa.array([60, 86_400, None], pa.duration("s")),
        "vector": pa.array([[0.5, 1.0]] * 3),
        "image": pa.array([{"bytes": b"x", "path": "a.png"}] * 3),
    }
    file = io.BytesIO()
    feather.write_feather(pa.table(kinds), file, compression=compression)
    table = read_table(Source("t.feather", file.getvalue()))
    assert dict(zip(table.columns, map(list, table.values), strict=True)) == {
        "text": ["One", "", "Three"],
        "category": ["a", "b", "a"],
        "large": ["x", "y", "z"],
        "view": ["x", "y", "z"],
        "n": ["1", "2", ""],
        "length": ["00:01:00", "24:00:00", ""],
    }
    assert table.notes == (
        "Skipped the lists of numbers in the column “vector”.",
        "Skipped the binary data in the column “image”.",
    )
    assert len(read_table(Source("t.arrow", file.getvalue()), max_rows=2)) == 2


def write_arrow(
    columns: dict[str, pa.Array], compression: str | None = None, new: Any = pa.ipc.new_stream
) -> bytes:
    batch, file = pa.RecordBatch.from_pydict(columns), io.BytesIO()
    with new(file, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    return file.getvalue()


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_small_batch_that_becomes_large_is_refused_before_it_is_unpacked(new) -> None:
    many = pa.array([0] * 300)
    columns = {
        "text": pa.array(["One"] * 300),
        "blob": pa.array([bytes(200_000)]).take(many),
        "copies": pa.array(["x" * 1_000_000]).take(many),
    }
    for titles, is_read in ((["blob", "text"], True), (["text", "copies"], False)):
        content = write_arrow({title: columns[title] for title in titles}, "zstd", new)
        before = pa.total_allocated_bytes()
        table, error = None, ""
        try:
            table = read_table(Source("t.arrow", content))
        except TextError as raised:
            error = str(raised)
        assert pa.total_allocated_bytes() - before < 1 << 20
        assert (table is not None and table.columns == ("text",)) == is_read
        assert ("a batch of 300,00" in error) != is_read


def test_damaged_arrow_files_are_refused() -> None:
    content = write_arrow({"text": pa.array(["One"] * 100)}, new=pa.ipc.new_file)
    cut = (content[:50], content[: len(content) // 2])
    for broken in (*cut, b"ARROW1" + b"\0" * 200, b"no Arrow at all"):
        with pytest.raises(TextError, match=r"damaged, or not an Arrow file"):
            read_table(Source("t.arrow", broken))


@pytest.mark.parametrize("as_dictionary", [False, True])
def test_views_of_one_long_text_are_refused(as_dictionary: bool) -> None:
    text = b"x" * (1 << 20)
    view = np.frombuffer(np.int32(len(text)).tobytes() + text[:4] + bytes(8), np.int32)
    n_rows = 1 if as_dictionary else 4000
    buffers = [None, pa.py_buffer(np.tile(view, n_rows)), pa.py_buffer(text)]
    views = pa.Array.from_buffers(pa.string_view(), n_rows, buffers)
    if as_dictionary:
        views = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), views)
    content = write_arrow({"text": views})
    assert len(content) < 1 << 21
    with pytest.raises(TextError, match="more than 2,147,483,648 characters"):
        read_table(Source("t.arrow", content))


def test_columns_of_kinds_that_are_not_read_are_named() -> None:
    texts = pa.array(["One", "Two"])
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [texts, pa.array([1, 2])])
    columns = {
        "text": texts,
        "union": union,
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), texts),
        "views": pa.array([["a"], ["b"]], pa.list_view(pa.string())),
        "length": pa.array([86_400_000_000_001, 60_000_000_000], pa.duration("ns")),
    }
    table = read_table(Source("t.arrow", write_arrow(columns)))
    assert table.columns == ("text", "length")
    assert table.column("length") == ["24:00:00.000000001", "00:01:00"]
    skipped = [
        f"Skipped the values of a rare type in the column “{t}”." for t in list(columns)[1:4]
    ]
    assert list(table.notes) == skipped


# --- folders of `datasets` -----------------------------------------------------------------------

TEXTS = ["One river.", "Two houses.", "Three old trees.", "Four roads."]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    rows = datasets.Dataset.from_dict({"text": TEXTS, "label": [0, 1, 0, 1]})
    rows.save_to_disk(tmp_path / "plain", num_shards=2)
    splits = {"train": rows, "test": rows.select([3, 1])}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "splits")
    return tmp_path


def test_a_saved_data_set_is_read_in_its_order(saved: Path) -> None:
    expected = datasets.load_from_disk(str(saved / "plain"))
    read = read_folder(saved / "plain")
    assert (list(read.texts), read.column) == (expected["text"][:], "text")
    assert read.labels["label"] == ("0", "1", "0", "1")
    assert set(read.columns) == {"text", "label"}
    source = Source.from_path(saved / "plain")
    assert read_table(source).column("text") == TEXTS
    assert len(read_table(source, max_rows=3)) == 3
    splits = read_folder(saved / "splits")
    assert splits.texts == (TEXTS[3], TEXTS[1], *TEXTS)
    assert splits.labels["folder"] == ("test", "test", *["train"] * 4)
    everything = read_folder(saved)
    assert len(everything.texts) == 10
    assert not any(".arrow" in text for text in everything.texts)


def test_caches_beside_a_saved_data_set_are_no_data(saved: Path) -> None:
    shard = next((saved / "plain").glob("data-00000*.arrow"))
    (saved / "plain" / "cache-0123456789abcdef.arrow").write_bytes(shard.read_bytes())
    assert list(read_folder(saved / "plain").texts) == TEXTS
    files = sorted((saved / "plain").iterdir())
    uploaded = [Source(f"plain/{file.name}", file.read_bytes()) for file in files]
    assert list(read_files(uploaded).texts) == TEXTS


def test_a_split_is_asked_for_where_there_are_several(saved: Path) -> None:
    with pytest.raises(TextError, match=r"splits are: “train” and “test”.*splits/train"):
        read_table(Source.from_path(saved / "splits"))
    assert len(read_table(Source.from_path(saved / "splits" / "train"))) == 4
    with pytest.raises(TextError, match="splits are: “train” and “test”"):
        load_hub_data(f"hf:{saved / 'splits'}:dev")


def test_saved_data_sets_are_evaluated_without_their_package(tmp_path: Path, monkeypatch) -> None:
    pairs = {"sentence1": TEXTS, "sentence2": TEXTS[::-1], "score": [1.0, 2.5, 3.0, 5.0]}
    datasets.Dataset.from_dict(pairs).save_to_disk(tmp_path / "pairs")
    groups = {"original": TEXTS[:2], "simplifications": [["River.", "A river."], ["Houses."]]}
    splits = {"test": datasets.Dataset.from_dict(groups)}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "groups")
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    data = load_hub_data(f"hf:{tmp_path / 'pairs'}")
    assert np.array_equal(data.scores, pairs["score"])
    assert data.name == str(tmp_path / "pairs")
    assert np.array_equal(read_data(Source.from_path(tmp_path / "pairs")).scores, pairs["score"])
    assert len(load_hub_data(f"hf:{tmp_path / 'groups'}").texts) == 5


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("{", "is damaged, or not a data set"),
        ("{}", "names no files"),
        (json.dumps({"_data_files": [{"filename": "../x.arrow"}]}), "names no files"),
        (json.dumps({"_data_files": [{"filename": "gone.arrow"}]}), "or some that are not there"),
    ],
)
def test_damaged_folders_are_refused(saved: Path, state: str, says: str) -> None:
    (saved / "plain" / "state.json").write_text(state)
    with pytest.raises(NeuralvizError, match=says):
        read_table(Source.from_path(saved / "plain"))


def test_files_with_other_columns_are_refused(saved: Path) -> None:
    first, last = sorted((saved / "plain").glob("*.arrow"))
    rows = pa.ipc.open_stream(first).read_all().select(["label", "text"])
    with pa.ipc.new_stream(str(last), rows.schema) as stream:
        stream.write_table(rows)
    with pytest.raises(NeuralvizError, match="its files have different columns"):
        read_table(Source.from_path(saved / "plain"))


# --- nested texts --------------------------------------------------------------------------------

CHAT = [{"role": "user", "content": "Hi there."}, {"role": "assistant", "content": "Hello."}]
NESTED = [
    (["One river.", "Two houses."], "One river. Two houses."),
    (["the", "cat", "sat"], "the cat sat"),
    ({"text": "One river.", "id": 7}, "One river."),
    (CHAT, "Hi there.\nHello."),
    (
        [{"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image"}]}],
        "Look:",
    ),
    ([{"from": "human", "value": "Who?"}, {"from": "gpt", "value": "She."}], "Who?\nShe."),
    ({"role": "user", "content": "Hi there."}, "Hi there."),
    ([["One."], ["Two.", "Three."]], "One. Two. Three."),
]


@pytest.mark.parametrize(("value", "text"), NESTED)
@pytest.mark.parametrize("form", ["jsonl", "json in csv", "printed in csv", "parquet"])
def test_the_text_of_nested_values_is_read(form: str, value: object, text: str) -> None:
    if form == "parquet":
        if isinstance(value, list) and {type(part) for part in value} == {str, dict}:
            pytest.skip("Arrow has no such lists")
        file = io.BytesIO()
        parquet.write_table(pa.Table.from_pylist([{"n": 1, "text": value}] * 2), file)
        source = Source("t.parquet", file.getvalue())
    elif form == "jsonl":
        source = Source("t.jsonl", "\n".join([json.dumps({"n": 1, "text": value})] * 2).encode())
    else:
        cell = json.dumps(value) if form.startswith("json") else repr(value)
        quoted = cell.replace('"', '""')
        source = Source("t.csv", f'n,text\n1,"{quoted}"\n2,"{quoted}"\n'.encode())
    read = read_texts(source)
    assert read.texts == (text, text)
    assert "Took the text out of 2 of 2 nested values in the column “text”" in read.notes[0]


def test_vectors_and_objects_are_not_taken_for_the_texts() -> None:
    meta = json.dumps({"source": "a long description of where it came from", "n": 3})
    for vector in (", ".join(["2e-05"] * 50), "  -2.5\n".join(["1.e-05"] * 50)):
        rows = [
            {"said": said, "vector": f"[{vector}]", "meta": meta} for said in ("Hello.", "Bye.")
        ]
        content = "\n".join(map(json.dumps, rows))
        assert read_texts(Source("t.jsonl", content.encode())).column == "said"
