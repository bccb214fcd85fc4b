"""Tables from files of every kind: what is written comes back, and what people have is told."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from copy import copy
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from neuralviz.errors import TextError
from neuralviz.reading import arrow_tables, source, tables
from neuralviz.reading.delimited import read_delimited
from neuralviz.reading.source import Source
from neuralviz.reading.table import SkippedColumn, join_tables
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import read_texts
from tests.support.table_files import WRITERS, Column, as_excel, as_text, delimited, rows_of

ODD_CELLS = ["=cmd|' /C calc'!A0", 'say "hi"', '"', '""', "a,b;c\td|e", "🙂\n👩‍👩‍👧"]
ODD_CELLS += ["NA", "null", "", " ", "-1"]
CELLS = st.one_of(
    st.sampled_from(ODD_CELLS),
    st.text(st.characters(exclude_categories=("Cc", "Cs"), include_characters="\n\t"), max_size=20),
)
COLUMNS = ("key", "text", "label")  # a table of id and text may be one that neuralviz wrote
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8)


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=20, deadline=None)
@given(rows=ROWS)
def test_what_is_written_comes_back(name: str, rows: list[tuple[str, ...]]) -> None:
    columns = [("texts", values) for values in zip(*rows, strict=True)]
    table = read_table(Source(name, WRITERS[name](COLUMNS, columns)))
    stripped = [tuple(map(str.strip, row)) for row in rows]  # as texts and labels are
    kept = [row for row in stripped if any(row)]
    assert [tuple(map(str.strip, row)) for row in rows_of(table)] == kept
    assert table.notes == ()
    if kept:
        assert table.columns == COLUMNS


# --- delimited text ------------------------------------------------------------------------------


def test_broken_rows_are_named_by_their_lines_and_the_others_kept() -> None:
    content = (
        'id,text\n1,"two\nlines"\n\n2,too, many\n3,"never closed\n4,four\n5,"ok, five"\n'
        '6,"closed" too early\n7,"three\n\nlines"\n8\n9,nine,,\n10,"never closed\n11,eleven\n'
    )
    table = read_table(Source("t.csv", content.encode()))
    texts = ["two\nlines", "four", "ok, five", "three\n\nlines", "", "nine", "eleven"]
    assert rows_of(table) == list(zip("1 4 5 7 8 9 11".split(), texts, strict=True))
    assert table.lines == [2, 7, 8, 10, 13, 14, 16]
    unmatched, too_long = table.notes
    assert "Skipped 3 rows with an unmatched quotation mark (lines 6, 9, 15)" in unmatched
    assert "Skipped 1 row with more fields than the header (line 5)" in too_long


def test_lines_are_right_however_they_end_and_wherever_a_portion_ends(monkeypatch) -> None:
    monkeypatch.setattr("neuralviz.reading.delimited.AT_ONCE", 10)
    content = b'id,text\r\n1,"a\r\nb"\r2,x,y\n3,z\r\n\r\n4,u\n'
    table = join_tables("t.csv", read_delimited("t.csv", io.BytesIO(content)))
    assert rows_of(table) == [("1", "a\nb"), ("3", "z"), ("4", "u")]
    assert table.lines == [2, 5, 7]
    assert "(line 4)" in table.notes[0]


def test_a_quotation_mark_on_every_line_takes_no_long_time() -> None:
    with pytest.raises(TextError, match="20,000 rows with"):
        read_table(Source("t.csv", b"a,b\n" + b'1,"open\n' * 20_000))
    table = read_table(Source("t.csv", b'a,b\n1,"open\n' + b"1,2\n" * 20_000))
    assert len(table) == 20_000


def test_the_head_of_a_file_of_2_gb_is_read_in_seconds_and_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    line = b'1,"a text, of a few words"\n'
    with path.open("wb") as file:
        file.write(b"id,text\n" + line * (17_000_000 // len(line)))
        file.truncate(2_000_000_000)
    tracemalloc.start()
    table = read_table(Source("large.csv", path), max_rows=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table) == 100
    assert table.notes == ("Limited to the first 100 rows of large.csv.",)
    assert peak < 100e6


# --- encodings -----------------------------------------------------------------------------------

POLISH = "Zażółć gęślą jaźń. Wieczorem poszliśmy nad rzekę, wiał już chłodny wiatr.\n"
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Večer jsme šli na procházku k řece.\n"
RUSSIAN = "Вчера вечером мы гуляли вдоль реки, было уже темно и дул холодный ветер.\n"
GREEK = "Χθες το βράδυ περπατήσαμε δίπλα στο ποτάμι και ήταν ήδη σκοτεινά.\n"
JAPANESE = "昨日の夜、川沿いを散歩しました。もう暗くて、冷たい風が吹いていました。\n"
CHINESE = "昨天晚上我们沿着河边散步,天已经黑了,吹着冷风。第二天早上天气很好。\n"
KOREAN = "어제 저녁 우리는 강을 따라 산책했다. 이미 어두웠고 찬 바람이 불었다.\n"
FRENCH = "Les élèves étaient à l’école où l’été s’achève. Ça va ? Bien sûr.\n"


AMERICAN = "Acme™ is a cost–benefit firm that doesn’t sleep: 100€\n"
OLD_ENCODINGS = {
    ("cp1252", "Windows-1252"): (FRENCH, "naïve café\n", "“It’s”\n", AMERICAN),
    ("cp1250", "Windows-1250"): (POLISH, CZECH),
    ("iso8859_2", "ISO 8859-2"): (POLISH, CZECH),
    ("cp1251", "Windows-1251"): (RUSSIAN,),
    ("koi8_r", "KOI8-R"): (RUSSIAN,),
    ("cp1253", "Windows-1253"): (GREEK,),
    ("shift_jis", "Shift-JIS"): (JAPANESE,),
    ("euc_jp", "EUC-JP"): (JAPANESE,),
    ("gb18030", "GB18030"): (CHINESE,),
    ("euc_kr", "EUC-KR"): (KOREAN,),
}


@pytest.mark.parametrize(("encoding", "name"), OLD_ENCODINGS)
def test_old_encodings_are_told_by_their_letters_and_named(encoding: str, name: str) -> None:
    for text in OLD_ENCODINGS[encoding, name]:
        table = read_table(Source("t.tsv", f"id\ttext\n1\t{text}".encode(encoding)))
        assert table.column("text") == [text.rstrip("\n")]
        assert table.notes == (f"t.tsv is not UTF-8. It was read as {name}.",)


@pytest.mark.parametrize(
    "text", [FRENCH, RUSSIAN, JAPANESE, CHINESE, "plain\n", "🙂🙂\n", f"{'all that is ' * 9}∀x\n"]
)
@pytest.mark.parametrize("encoding", "utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32".split())
def test_unicode_is_known_with_and_without_a_mark(text: str, encoding: str) -> None:
    table = read_table(Source("t.tsv", f"id\ttext\n1\t{text}".encode(encoding)))
    assert (table.columns, table.column("text")) == (("id", "text"), [text.rstrip("\n")])
    assert table.notes == ()


def test_stray_bytes_do_not_spoil_a_file_in_utf_8() -> None:
    content = f"id\ttext\n1\t{RUSSIAN}".encode() + b"2\tcaf\xe9\n"
    table = read_table(Source("t.tsv", content))
    assert table.column("text") == [RUSSIAN.rstrip("\n"), "café"]
    assert table.notes == ("Not valid UTF-8: 1 character, read as Windows-1252 (line 3).",)


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("n_digits", [15, 4300, 4301, 100_000])
def test_a_number_of_json_keeps_every_digit(sign: str, n_digits: int) -> None:
    digits = sign + "7" * n_digits
    rows = [f'{{"text": "One", "label": {digits}, "more": [{digits}]}}', '{"text": "Two"}']
    for name, content in (("t.jsonl", "\n".join(rows)), ("t.json", f"[{', '.join(rows)}]")):
        table = read_table(Source(name, content.encode()))
        assert (table.column("text"), table.notes) == (["One", "Two"], ())
        assert table.column("label") == [digits, ""]
        assert digits in table.column("more")[0]


def test_json_lines_that_are_broken_are_named() -> None:
    lines = ['{"text": "One", "n": 1.0}', "", "{broken", '"Two"', "[1, 2]", "[" * 100_000]
    lines += ['{"n": ' + "9" * 5000 + "}", '{"text": "Three", "more": {"a": [true, null]}}', "null"]
    table = read_table(Source("t.jsonl", "\n".join(lines).encode()))
    assert table.columns == ("text", "n", "more")
    assert rows_of(table) == [
        ("One", "1", ""),
        ("Two", "", ""),
        ("", "9" * 5000, ""),
        ("Three", "", '{"a": [true, null]}'),
    ]
    assert table.lines == [1, 4, 7, 8]
    assert table.notes == ("Skipped 3 lines: not a JSON object (lines 3, 5, 6).",)


FRAME = pd.DataFrame({"text": ["The river rose.", "It fell."], "year": [1999, 2001]})


@pytest.mark.parametrize("orient", ["split", "tight", "records", "index", "columns", "table"])
@pytest.mark.parametrize("index", [None, ["a", "b"], [7, 9]])
def test_a_data_frame_of_any_orient_is_read_as_pandas_reads_it(orient: str, index: list) -> None:
    frame = FRAME if index is None else FRAME.set_index(pd.Index(index))
    is_tight = orient == "tight"  # which pandas gives as an object alone
    content = json.dumps(frame.to_dict(orient)) if is_tight else frame.to_json(orient=orient)
    table = read_table(Source("t.json", content.encode()))
    back = frame if is_tight else pd.read_json(io.StringIO(content), orient=orient)
    assert list(table.column("text")) == list(back["text"])
    assert list(table.column("year")) == list(map(str, back["year"]))


TWO = {"text": ["One", "Two"]}


@pytest.mark.parametrize(
    ("found", "rows", "says"),
    [
        ([{"text": "One"}, {"text": "Two"}], TWO, ""),
        (["One", "Two"], TWO, ""),
        (TWO, TWO, ""),
        ({**TWO, "n": [1, 2]}, {**TWO, "n": ["1", "2"]}, ""),
        ({"version": 1, "tags": ["a"], "data": [{"text": "One"}, {"text": "Two"}]}, TWO, ""),
        ({"version": 1, "text": ["One", "Two"]}, TWO, ""),
        ({"train": [{"text": "One"}], "test": []}, {"text": ["One"]}, "“train” (1) and “test” (0)"),
        ({"train": [], "test": ["One"], "v": 2}, {"text": ["One"]}, "“train” (0) and “test” (1)"),
        (
            {"train": {"text": ["One"]}, "dev": [{"text": "Two"}]},
            {**TWO, "split": ["train", "dev"]},
            "All are read; the column “split” says which",
        ),
        (
            {"positive": ["Very good", "Fine"], "negative": ["Bad"]},
            {"text": ["Very good", "Fine", "Bad"], "label": ["positive", "positive", "negative"]},
            "“positive” (2 values) and “negative” (1 value)",
        ),
    ],
)
def test_json_may_hold_its_rows_in_several_ways(found: object, rows: dict, says: str) -> None:
    table = read_table(Source("t.json", json.dumps(found, indent=2).encode()))
    assert {title: list(table.column(title)) for title in rows} == rows
    assert (table.lines, table.unit) == (list(range(1, len(rows["text"]) + 1)), "row")
    assert says in " ".join(table.notes)


@pytest.mark.parametrize(
    "found",
    [
        {"positive": ["Very good", "Not bad"], "negative": ["Quite bad", "So so"]},
        {"users": [{"name": "Ada"}], "posts": [{"text": "One two"}]},
        {"text": ["One", "Two"], "label": ["a"]},
        {"text": {"a": "One"}, "words": {"b": "Two"}},
        {"train": [["One", "a"]], "test": [["Two", "b"]]},
        {"columns": ["text", "label"], "data": [["One"]]},
        {"entities": [{"text": "Paris", "label": "LOC"}], "text": "She flew to Paris."},
    ],
)
def test_json_that_can_be_read_in_several_ways_is_refused(found: dict) -> None:
    with pytest.raises(
        TextError, match=r"it has “.*, of which the rows are unclear. Save the rows"
    ) as said:
        read_table(Source("t.json", json.dumps(found).encode()))
    lists = [key for key, value in found.items() if not isinstance(value, str)]
    assert all(f"“{key}”" in str(said.value) for key in lists)


ROWS = [{"id": n, "text": f"A text of {n} words.", "label": "ab"[n % 2]} for n in range(5)]


@pytest.mark.parametrize(
    ("found", "path"),
    [
        ({"data": ROWS, "meta": {"page": 1, "total": 5}}, ["data"]),
        ({"status": "ok", "data": {"items": ROWS, "total": 5}}, ["data", "items"]),
        ({"response": {"results": ROWS}}, ["response", "results"]),
        ({"took": 3, "hits": {"total": {"value": 5}, "hits": [{"_id": str(n), "_source": row}
          for n, row in enumerate(ROWS)]}}, ["hits", "hits"]),
        ({"kind": "Listing", "data": {"after": None, "children": [{"kind": "t1", "data": row}
          for row in ROWS]}}, ["data", "children"]),
        ({"features": [{"name": "text"}], "rows": [{"row_idx": n, "row": row}
          for n, row in enumerate(ROWS)]}, ["rows"]),
        ([{"tweet": row} for row in ROWS], None),
        ([{"id": 7, "annotations": [], "data": row} for row in ROWS], None),
    ],
)  # fmt: skip
def test_rows_in_the_answer_of_a_server_are_those_of_pandas(found: object, path: list) -> None:
    frame = pd.json_normalize(found, record_path=path)
    named = {title: title.rpartition(".")[2] for title in frame.columns}
    table = read_table(Source("t.json", json.dumps(found).encode()))
    for title in ("text", "label"):
        (column,) = [long for long, short in named.items() if short == title]
        assert list(table.column(title)) == list(frame[column])
    ids, *_ = [long for long, short in named.items() if short == "id"]  # the row's own
    assert list(table.column("id")) == list(map(str, frame[ids]))
    inner = {title.rpartition(".")[0] for title, short in named.items() if short == "text"} - {""}
    assert all(f"those under “{key}”" in " ".join(table.notes) for key in inner)


def test_json_on_one_line_may_be_longer_than_a_line_and_objects_may_follow_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "MAX_LINE", 100)
    rows = [{"text": f"Text {row}"} for row in range(50)]
    for content in (json.dumps(rows), json.dumps({"rows": rows})):
        assert len(read_table(Source("t.json", content.encode()))) == 50
    two = b'{"text": "one", "id": 1},\n{\n "text": "two",\n "id": 2\n}'
    assert read_table(Source("t.json", two)).column("text") == ["one", "two"]


@pytest.mark.parametrize("is_named", [True, False])
def test_lists_of_lists_are_rows(is_named: bool) -> None:
    frame = pd.DataFrame(ROWS)
    cells = frame.to_numpy().tolist()
    content = json.dumps([list(frame.columns), *cells] if is_named else cells)
    table = read_table(Source("t.json", content.encode()))
    assert table.columns == (tuple(frame) if is_named else ("column 1", "column 2", "column 3"))
    assert [list(values) for values in table.values] == frame.astype(str).T.to_numpy().tolist()
    assert ("the first names the columns" in " ".join(table.notes)) == is_named
    if is_named:
        sheet = json.dumps({"range": "A1:C6", "values": [list(frame.columns), *cells]})
        assert read_table(Source("t.json", sheet.encode())).values == table.values
    with pytest.raises(TextError, match="neither an object nor a string"):
        read_table(Source("t.json", b'[["One", "Two"], ["Three"]]'))


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
@pytest.mark.parametrize(
    "content",
    [
        "\n".join(json.dumps(row, indent=2) for row in ROWS),
        ",\n".join(json.dumps(row, indent=2) for row in ROWS),
        "".join(map(json.dumps, ROWS)),
        ",\n".join(map(json.dumps, ROWS)),
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        "\n\n" + "\n".join(map(json.dumps, ROWS)),
    ],
)
def test_objects_one_after_the_other_are_rows(name: str, content: str) -> None:
    table = read_table(Source(name, content.encode()))
    frame = pd.read_json(io.StringIO(json.dumps(ROWS)))
    assert list(table.column("text")) == list(frame["text"])
    assert list(table.column("id")) == list(map(str, frame["id"]))


def test_a_json_file_that_is_too_large_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(tables, "MAX_WHOLE", 1000)
    with pytest.raises(TextError, match=r"larger than 1,000 bytes\. Save it as JSON Lines"):
        read_table(Source("t.json", b'["' + b"a" * 1000 + b'"]'))


# --- parquet and Excel ---------------------------------------------------------------------------


def as_parquet(columns: dict[str, pa.Array | list], **options: bool) -> Source:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, **options)
    return Source("t.parquet", file.getvalue())


def test_parquet_values_are_written_as_a_person_would() -> None:
    moments = [datetime(2024, 5, 1, 12, 30), datetime(2024, 5, 1)]
    pairs = pa.map_(pa.string(), pa.string())
    prices = pa.array([[Decimal("1.50")], []], pa.list_(pa.decimal128(5, 2)))
    read = {  # by name, the values, and what is read
        "text": (["One", None], ("One", "")),
        "class": ([1.0, None], ("1", "")),
        "small": (pa.array([0.1, 2], pa.float32()), ("0.1", "2")),
        "number": ([3, -4], ("3", "-4")),
        "truth": ([True, None], ("true", "")),
        "day": ([date(2024, 5, 1), None], ("2024-05-01", "")),
        "moment": (moments, ("2024-05-01 12:30:00", "2024-05-01")),
        "kind": (pa.array(["a", "b"]).dictionary_encode(), ("a", "b")),
        "tags": ([["x", "y"], []], ('["x", "y"]', "[]")),
        "lists": ([[["x"], []], None], ('[["x"], []]', "")),
        "nested": ([{"a": 1}, None], ('{"a": 1}', "")),
        "map": (pa.array([[("a", "b")], []], pairs), ('[["a", "b"]]', "[]")),
        "price": (prices, ('["1.50"]', "[]")),
    }
    left_out = {
        "vector": pa.array([[0.1, 0.2]] * 2, pa.list_(pa.float32())),
        "tokens": [list(range(20))] * 2,
        "image": [b"\x00", b"\x01"],
    }
    columns = {title: values for title, (values, _) in read.items()}
    table = read_table(as_parquet(columns | left_out, store_decimal_as_integer=False))
    cells = dict(zip(table.columns, map(tuple, table.values), strict=True))
    assert cells == {title: values for title, (_, values) in read.items()}
    assert table.notes == (
        "Skipped the lists of numbers in the column “vector”.",
        "Skipped the binary data in the column “image”.",
        "Skipped the lists of numbers in the column “tokens”.",
    )
    long = "vector " * 20
    (note,) = read_table(as_parquet({"text": ["a", "b"], long: left_out["vector"]})).notes
    assert isinstance(copy(note), SkippedColumn)  # as caches keep it
    assert note.column == long


def test_columns_of_a_parquet_file_may_have_one_name() -> None:
    columns = [[{"x": "one"}], ["a text"], [b"bytes"], ["label"], [1]]
    file = io.BytesIO()
    parquet.write_table(pa.table(list(map(pa.array, columns)), ["a", "text", "a", "a", "a"]), file)
    table = read_table(Source("t.parquet", file.getvalue()))
    assert table.columns == ("a", "text", "a (3)", "a (4)")
    assert rows_of(table) == [('{"x": "one"}', "a text", "label", "1")]
    assert table.notes == ("Skipped the binary data in the column “a”.",)


@pytest.mark.parametrize("kind", ["list", "fixed list", "structure", "map"])
def test_a_long_text_in_every_list_of_a_small_parquet_file_is_refused(kind: str) -> None:
    n = 50_000
    codes, ends = pa.array([0] * n, pa.int32()), pa.array(range(n + 1), pa.int32())
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["a " * 500_000]))
    column = {
        "list": lambda: pa.ListArray.from_arrays(ends, texts),
        "fixed list": lambda: pa.FixedSizeListArray.from_arrays(texts, 1),
        "structure": lambda: pa.StructArray.from_arrays([texts], ["of"]),
        "map": lambda: pa.MapArray.from_arrays(ends, pa.array(["key"] * n), texts),
    }[kind]()
    source = as_parquet({"text": ["One"] * n, "more": column}, store_schema=False)
    assert len(source.content) < 1e5
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(TextError, match="more than 2,147,483,648 characters in its first 10,000"):
        read_table(source)
    assert pa.default_memory_pool().max_memory() < before + 2**28


@pytest.mark.parametrize("as_dictionary", [True, False])
def test_a_text_of_many_rows_is_in_memory_once(as_dictionary: bool, monkeypatch) -> None:
    codes = pa.array([0] * 1000, pa.int32())  # of a text that the file holds once
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["a " * 50_000]))
    source = as_parquet({"text": texts}, store_schema=as_dictionary)
    monkeypatch.setattr(arrow_tables, "MAX_TEXT", 100_000_000)
    read = read_table(source).column("text")
    assert read == ["a " * 50_000] * 1000
    assert len(set(map(id, read))) == 1
    monkeypatch.setattr(arrow_tables, "MAX_TEXT", 99_999_999)
    with pytest.raises(TextError, match="more than 99,999,999 characters"):
        read_table(source)


def test_a_parquet_file_with_millions_of_empty_rows_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "nothing.parquet"
    nothing = pa.table({"text": pa.nulls(1_000_000, pa.string())})
    with parquet.ParquetWriter(path, nothing.schema) as writer:
        for _ in range(11):
            writer.write_table(nothing)
    with pytest.raises(TextError, match=r"has 11,000,000 rows\. Up to 10,000,000 can be read"):
        read_table(Source.from_path(path))


HEADED = ("t.jsonl", "t.json", "t.parquet", "t.feather")
WORDS = "the a river bread rose fell slowly today near old house, salt; and we saw it again".split()
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=3, max_size=9).map(
    lambda words: " ".join(words).rstrip(",;").capitalize() + "."
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "texts": st.one_of(
        SENTENCES,
        SENTENCES.map(lambda text: f'He said: "{text}"'),
        SENTENCES.map(lambda text: f'"{text}" she said'),
        SENTENCES.map(lambda text: f"#{text}"),
    ),
    "category": st.sampled_from(["news", "sport", "arts"]),
    "number": st.integers(1, 500),
    "share": st.integers(1, 40).map(lambda value: value / 4 + 0.125),
    "truth": st.booleans(),
    "day": st.dates(date(2000, 1, 1), date(2030, 1, 1)).map(str),
    "duration": st.integers(1, 5000).map(lambda minutes: timedelta(minutes=minutes)),
}
NAMES = {
    "usual": dict(zip(VALUES, "text label n score flag date length".split(), strict=True)),
    "unusual": dict(zip(VALUES, "Kommentar Art Anzahl Anteil Wahr Tag Dauer".split(), strict=True)),
}


@st.composite
def draw_table(draw: st.DrawFn) -> tuple[list[Column], str]:
    others = draw(st.lists(st.sampled_from(list(VALUES)[1:]), unique=True, max_size=4))
    kinds = draw(st.permutations(["texts", *others]))
    n_rows = draw(st.integers(4, 12))
    columns = [(k, draw(st.lists(VALUES[k], min_size=n_rows, max_size=n_rows))) for k in kinds]
    return columns, draw(st.sampled_from(["usual", "unusual", "none"]))


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=20, deadline=None)
@given(made=draw_table())
def test_what_is_read_is_what_was_written_or_a_sentence_says_so(
    name: str, made: tuple[list[Column], str]
) -> None:
    columns, kind = made
    if name in HEADED and kind == "none":
        kind = "usual"
    names = None if kind == "none" else [NAMES[kind][what] for what, _ in columns]
    table = read_table(Source(name, WRITERS[name](names, columns)))
    rows = list(zip(*([as_text(v) for v in values] for _, values in columns), strict=True))
    read = rows_of(table)
    if names is not None and table.header != 0:
        assert (list(table.columns), read) == (names, rows)
    elif names is None and table.header == 0:
        assert read == rows
    elif names is None:  # the first row was taken for the header: that is said
        assert list(table.columns) == list(rows[0])
        assert any("If it is data, choose no header" in note for note in table.notes)
    else:  # the header was taken for a row: that is said, and nothing is lost
        assert kind == "unusual"
        assert read == [tuple(names), *rows]
        assert any("If it names the columns" in note for note in table.notes)


# --- without a header ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sentences",
    [
        ["I like tea.", "The cat sat on the mat.", "It rained."],
        ["Hello, you", "No comma", "One, two, three"],
        ["Hello, you", "Goodbye, me", "Well, well"],
        ["Good coffee", "The room was cold", "I shall come again"],
        ["404 people came to the party", "Nobody left"],
        ["What is it?", "A book; a good one", "A pen"],
        ["Yes", "No", "Maybe"],
        ["#blessed day", "#nofilter pic", "I like tea"],
        ["今日は雨が降っています。", "明日は晴れるでしょう。", "昨日は寒かったです。"],
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_the_first_of_a_column_of_sentences_is_kept(ending: str, sentences: list[str]) -> None:
    read = read_texts(Source(f"t{ending}", "\n".join(sentences).encode()))
    assert list(read.texts) == sentences
    assert not read.header_note
    (note,) = (note for note in read.notes if f"“{sentences[0]}”" in note)
    assert "choose line 1 as the header" in note


def test_a_person_may_choose_the_header() -> None:
    content = b"a note\nName,Words\nAda,Hello there\nBob,Good day\n"
    for header, columns, n_rows in ((2, ("Name", "Words"), 2), (3, ("Ada", "Hello there"), 1)):
        table = read_table(Source("t.csv", content, header))
        assert (table.columns, len(table), table.header) == (columns, n_rows, header)
        assert table.notes == ()
    table = read_table(Source("t.csv", b"text\nOne\nTwo\n", 0))
    assert (table.columns, rows_of(table)) == (("text",), [("text",), ("One",), ("Two",)])
    assert read_texts(Source("t.csv", b"Hello\nOne two three.\n", 1)).texts == ("One two three.",)
    workbook = as_excel(["a", "b"], [("texts", ["One", "Two"]), ("number", [1, 2])])
    assert rows_of(read_table(Source("t.xlsx", workbook, 0)))[0] == ("a", "b")
    assert read_table(Source("t.xlsx", workbook, 2)).columns == ("One", "1")
    for name, header, wrong, says in (
        ("t.csv", 9, content, "nothing in line 9"),
        ("t.csv", 2, b"a,b\n\n1,2\n", "nothing in line 2"),
        ("t.xlsx", 9, workbook, "nothing in row 9"),
        ("t.jsonl", 1, b'{"text": "One"}', "names its columns itself"),
    ):
        with pytest.raises(TextError, match=says):
            read_table(Source(name, wrong, header))
    with pytest.raises(TextError, match="plain text, not a table, so it has no header line"):
        read_texts(Source("t.txt", b"One\n", 1))


# --- lines before the header ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "separator", "line"),
    [
        ("sep=;\n", ";", 2),
        ("SEP=,\r\n", ",", 2),
        ('"sep=|"\n', "|", 2),
        ("sep=\t\n", "\t", 2),
        ("sep=^\n", "^", 2),
        ("sep=;\n\n", ";", 3),
        ("# exported on 1 May, by Ada, for Bob\n", ",", 2),
        ("# a comment\n#\n# another, with commas, in it\n", ";", 4),
        ("% written by a program\n", "\t", 2),
        ("Customer feedback\n\n", ",", 3),
        ("Customer feedback,,\nGenerated,2024-05-01,\n\n", ",", 4),
        ("Report: first, second\nQuarter 3\n", ";", 3),
        ("Report,Feedback\nCreated,2024-05-01\n\n", ",", 4),
        ("\n\n", ",", 3),
        ("\ufeffsep=;\n", ";", 2),
        ("#", "\t", 1),
        ("# ", ",", 1),
    ],
)
def test_lines_before_the_header_are_no_texts(before: str, separator: str, line: int) -> None:
    rows = [("id", "text", "kind"), ("1", "One; or more, so", "a"), ("2", "Two", "b")]
    rows.append(("3", "Three, and four", "a"))
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator).writerows(rows)
    table = read_table(Source("t.csv", (before + file.getvalue()).encode()))
    assert (table.columns, rows_of(table)) == (rows[0], rows[1:])
    assert table.header == line
    assert table.lines == [line + 1, line + 2, line + 3]
    is_known = before.strip("\ufeff\r\n#% ").lower().startswith(("sep", '"sep')) or line == 1
    assert bool(table.notes) == (not is_known and bool(before.strip()))


@pytest.mark.parametrize(
    "rows",
    [
        [*((f"#tag{n} word", "pos") for n in range(5)), ("normal", "neg"), ("other", "pos")],
        [("#tag word", "pos"), ("#day off", "neg"), ("normal", "neg"), ("value", "pos")],
        [("//cdn.x/y.png", "cat picture"), ("//cdn.x/z.png", "a dog"), ("http://x.y", "a cow")],
        [("% of people", "text"), ("10", "One river"), ("20", "Two houses"), ("30", "Three")],
        [("#1 fan", "3"), ("# 2 fan", "4"), ("a fan", "5")],
        [("#tag", "pos"), ("other", "neg"), ("more", "pos"), ("less", "neg")],
    ],
)
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_rows_that_begin_like_comments_are_rows(
    rows: list[tuple[str, str]], separator: str
) -> None:
    content = "\n".join(separator.join(row) for row in rows)
    table = read_table(Source("t.csv", content.encode()))
    read = rows_of(table) if table.header == 0 else [table.columns, *rows_of(table)]
    assert read == rows
    assert not any("comment" in note for note in table.notes)


@pytest.mark.parametrize(
    "cell", ["@." * 1500, "a@" * 1500 + ".", "a_" * 20_000 + "!", "[" + "1" * 20_000]
)
def test_long_cells_of_odd_signs_take_no_long_time(cell: str) -> None:
    content = f"my_name,my_text\n{cell},{cell} word\n{cell},{cell} word\n"
    assert read_texts(Source("t.csv", content.encode())).texts


@pytest.mark.parametrize("separator", [",", ";", "|"])
@pytest.mark.parametrize("names", [None, ("id", "text", "label")])
def test_blanks_before_quotation_marks_are_skipped_as_pandas_skips_them(
    separator: str, names: tuple[str, ...] | None
) -> None:
    s = separator
    lines = [f'1{s} "Hello{s} you"{s} a', f'2{s} "He said{s} ""so"""{s} b', f'3{s} "Bye"{s} a']
    content = "\n".join([*([f"{s} ".join(names)] if names else []), *lines])
    table = read_table(Source("t.csv", content.encode()))
    back = pd.read_csv(
        io.StringIO(content), sep=s, skipinitialspace=True, dtype=str, header=0 if names else None
    )
    cells = [tuple(cell.strip() for cell in row) for row in rows_of(table)]
    assert cells == list(back.itertuples(index=False, name=None))
    assert names is None or table.columns == names


@pytest.mark.parametrize("name", ["#id", "# id"])
@pytest.mark.parametrize("first", ["1", "#1", "a"])
def test_a_header_may_begin_like_a_comment(name: str, first: str) -> None:
    rows = "".join(f"{first}{n},The river rose on day {n}.\n" for n in range(12))
    table = read_table(Source("t.csv", f"{name},Satz\n{rows}".encode()))
    assert [title.strip("# ") for title in table.columns] == ["id", "Satz"]
    assert (len(table), table.header) == (12, 1)


# --- quotation marks between tabs ----------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        [("1", '"Stand up'), ("2", "Sit down"), ("3", 'A screen of 15"')],
        [("1", '"Yes" and "No"'), ("2", '"Never closed'), ("3", 'x"')],
        [('"Open', "1"), ('closed"', "2")],
        [("1", '5" wide'), ("2", 'he said ""so""')],
        [("1", '"quoted" too early'), ("2", "Two")],
        [("1", '"'), ("2", '"""'), ("3", "Three")],
    ],
)
def test_a_mark_that_encloses_no_field_between_tabs_is_text(rows: list[tuple[str, str]]) -> None:
    content = "\n".join("\t".join(row) for row in [("id", "text"), *rows])
    assert rows_of(read_table(Source("t.tsv", content.encode()))) == rows
    assert rows_of(read_table(Source("t.csv", content.encode()))) == rows


def test_a_field_of_several_lines_between_tabs_is_one_in_quotation_marks() -> None:
    rows = [("1", "One\nand two", "a"), ("2", 'He said "so"', "b"), ("3", "Three\t\nx", "c")]
    content = delimited("\t")(["id", "text", "kind"], [("", c) for c in zip(*rows, strict=True)])
    table = read_table(Source("t.tsv", content))
    assert (rows_of(table), table.notes) == (rows, ())


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (['"Hello she said', "plain row\t2", 'Good bye sir"', "last\t4"], ""),
        (['"Hello she said', "plain row", 'Good bye sir"', "last"], ""),
        (["plain row", '"Hello she said', '"Yes" and no', "last"], '\n"So, ""it"" is"'),
    ],
)
def test_rows_between_marks_that_enclose_no_field_are_not_joined(
    lines: list[str], more: str
) -> None:
    has_labels = any("\t" in line for line in lines)
    content = "\n".join(["text\tlabel" if has_labels else "text", *lines]) + more
    table = read_table(Source("t.tsv", content.encode()))
    cells = [tuple([*line.split("\t"), ""][: 1 + has_labels]) for line in lines]
    assert rows_of(table) == [*cells, *([('So, "it" is',)] if more else [])]
    assert not table.notes


# --- small files as people have them -------------------------------------------------------------

# content, rows with the names of the columns first (None where no line names them), part of a note
TABLES: dict[str, tuple[str, list[Any], str]] = {
    "marks inside a field": (
        'a,b\n5" wide,he said "no"\n "x",y\n',
        [("a", "b"), ('5" wide', 'he said "no"'), ("x", "y")],
        "If it is data",
    ),
    "no word means something else": (
        "1,007,1e3\nNA,null,2024-01-01\nTRUE,nan,1_000\n",
        [("1", "007", "1e3"), ("NA", "null", "2024-01-01"), ("TRUE", "nan", "1_000")],
        "If it is data",
    ),
    "empty marks at the end": ('id,text\n1,One,""\n', [("id", "text"), ("1", "One")], ""),
    "names are made unique": (
        "a (3),a,a,\nOne,2,3,4\n",
        [("a (3)", "a", "a (3) (3)", "column 4"), ("One", "2", "3", "4")],
        "",
    ),
    "a separator named, no header": (
        "sep=;\n1;Oil, and gas\n2;A vote, and so on\n",
        [None, ("1", "Oil, and gas"), ("2", "A vote, and so on")],
        "as data",
    ),
    "commas of numbers": (
        "1,5;gut\n2,5;schlecht\n3,1;gut\n",
        [None, ("1,5", "gut"), ("2,5", "schlecht"), ("3,1", "gut")],
        "as data",
    ),
    "blanks behind separators": (
        "1, One river, a\n2, Two, b\n3, Three, a\n",
        [None, ("1", "One river", "a"), ("2", "Two", "b"), ("3", "Three", "a")],
        "as data",
    ),
    "marks that may enclose rows": (
        'id\ttext\n1\t"Stand up\n2\tSit down\n3\tA screen of 15"\n',
        [("id", "text"), ("1", '"Stand up'), ("2", "Sit down"), ("3", 'A screen of 15"')],
        "",
    ),
    "comments above rows like them": (
        "# written on 1 May\n#tag word,pos\n#day off,neg\na fan,neg\na foe,pos\n",
        [None, ("#tag word", "pos"), ("#day off", "neg"), ("a fan", "neg"), ("a foe", "pos")],
        "Read line 2 of t.csv as data",
    ),
    "fields missing or empty at the end": (
        "text,label,,label\r\none,x,,,\r\ntwo\r\n",
        [("text", "label", "column 3", "label (4)"), ("one", "x", "", ""), ("two", "", "", "")],
        "",
    ),
    "numbers of rows as R writes them": (
        '"text","label"\n"1","One river","a"\n"2","Two, or so","b"\n',
        [("column 1", "text", "label"), ("1", "One river", "a"), ("2", "Two, or so", "b")],
        "",
    ),
    "files put together": (
        "text,label\nOne river,a\ntext,label\nTwo rivers,b\n",
        [("text", "label"), ("One river", "a"), ("Two rivers", "b")],
        "Skipped 1 row of t.csv like the header (line 3).",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_read_as_it_was_meant(case: str) -> None:
    content, (titles, *rows), note = TABLES[case]
    table = read_table(Source("t.csv", content.encode()))
    read = [tuple(map(str.strip, row)) for row in zip(*table.values, strict=True)]
    assert read == [tuple(map(str.strip, row)) for row in rows]
    if titles is None:
        assert table.header == 0
    else:
        assert table.columns == titles
    assert (note in " ".join(table.notes)) if note else table.notes == ()


# name, content, texts, labels (None for any), part of a note
TEXTS: dict[str, tuple[str, str, list[str], dict[str, tuple[str, ...]] | None, str]] = {
    "no header": (
        "a.csv",
        '3,"Oil rises","Prices rose, again."\n1,"Vote","They voted."\n2,"Cup","They won."\n',
        ["Prices rose, again.", "They voted.", "They won."],
        {"column 1": ("3", "1", "2"), "column 2": ("Oil rises", "Vote", "Cup")},
        "choose line 1 as the header",
    ),
    "no header, between tabs": (
        "a.tsv",
        "ham\tGo until jurong point\nspam\tFree entry in 2 a wkly comp\nham\tU dun say so\n",
        ["Go until jurong point", "Free entry in 2 a wkly comp", "U dun say so"],
        {"column 1": ("ham", "spam", "ham")},
        "as data",
    ),
    "questions for names": (
        "a.csv",
        "Timestamp,What did you like about it?,How old are you?\n"
        "2024-05-01 10:00,The pictures.,20\n2024-05-01 11:00,I liked the talks a lot.,30\n"
        "2024-05-02 09:30,Everything!,20\n",
        ["The pictures.", "I liked the talks a lot.", "Everything!"],
        None,
        "",
    ),
    "one column with commas": (
        "a.csv",
        "Review\n" + "".join(f"The river rose,it fell on day {day}\n" for day in range(9)),
        [f"The river rose,it fell on day {day}" for day in range(9)],
        {},
        "",
    ),
    "a title above rows without names": (
        "a.csv",
        "Report\n" + "".join(f"{n},Prices rose on day {n}.\n" for n in range(1, 7)),
        [f"Prices rose on day {n}." for n in range(1, 7)],
        {"column 1": tuple("123456")},
        "Read line 1 of a.csv as data: “Report”",
    ),
    "sentences with quotations": (
        "a.csv",
        'He said, "Hello, you", and left\nShe said, "Bye", and went\nI, "So, so", stayed\n',
        ['He said, "Hello, you", and left', 'She said, "Bye", and went', 'I, "So, so", stayed'],
        {},
        "as data",
    ),
    "a single line": ("a.csv", "Hello, and so on.", ["Hello, and so on."], {}, "as data"),
    "descriptions, not titles": (
        "a.csv",
        "Class Index,Title,Description\n3,Oil,Prices rose.\n1,Vote,They voted.\n",
        ["Prices rose.", "They voted."],
        {"Class Index": ("3", "1"), "Title": ("Oil", "Vote")},
        "",
    ),
    "columns named like ours": (
        "a.csv",
        "text,vector,x,cluster\nOne,1,2,4\nTwo,,,\n",
        ["One", "Two"],
        {"vector": ("1", ""), "x": ("2", ""), "cluster": ("4", "")},
        "",
    ),
    "a blank column of a usual name": (
        "a.csv",
        "text,body\n,One\n,Two\n",
        ["One", "Two"],
        None,
        "",
    ),
    "characters without width": (
        "a.csv",
        "id,text\na,\u200b\nb,fine\nc,e\u0301\u200d\n",
        ["fine", "e\u0301\u200d"],
        {"id": ("b", "c")},
        "Skipped 1 row without a text.",
    ),
    "a text of half a million characters": (
        "a.csv",
        'id,text\n1,"' + "a, b " * 100_000 + '"\n',
        [("a, b " * 100_000).strip()],
        None,
        "The longest text has 499,999 characters.",
    ),
    "remarks below a table": (
        "a.csv",
        "label,text\na,The text of one.\nb,The text of two.\n\nSource: the office,\n",
        ["The text of one.", "The text of two."],
        {"label": ("a", "b")},
        "Skipped 1 row without a text.",
    ),
    "deleted on Reddit": (
        "a.jsonl",
        '{"body": "[deleted]"}\n{"body": "I like this river."}\n{"body": "[removed]"}\n',
        ["I like this river."],
        {},
        "Read “[deleted]” or “[removed]” as no text (2 rows).",
    ),
    "unreadable labels": (
        "a.jsonl",
        '{"text": "One", "label": " a\\u0000\\ud800b "}\n',
        ["One"],
        {"label": ("a  b",)},
        "",
    ),
    "pieces of formatted text": (
        "a.jsonl",
        '{"text": ["See ", {"type": "link", "text": "this page"}, " there."]}\n',
        ["See this page there."],
        {},
        "",
    ),
    "years above shares": (
        "a.csv",
        "text,2019,2020\nThe text of one.,0.1,0.2\nThe text of two.,0.3,0.4\n",
        ["The text of one.", "The text of two."],
        {"2019": ("0.1", "0.3"), "2020": ("0.2", "0.4")},
        "",
    ),
    "speech behind a blank": (
        "a.csv",
        'id,text\na1,Hello there.\na2, "Stop!" he cried.\n',
        ["Hello there.", '"Stop!" he cried.'],
        {"id": ("a1", "a2")},
        "",
    ),
    "no clear text in a value": (
        "a.jsonl",
        '{"text": {"en": "One", "de": "Eins"}}\n{"text": "Two"}\n',
        ['{"en": "One", "de": "Eins"}', "Two"],
        {},
        "Found no text inside 1 nested value in the column “text”",
    ),
    "brackets that are no lists": (
        "a.jsonl",
        '"[Music] Hello."\n"{sic}"\n"[1"\n"[laughs]"\n',
        ["[Music] Hello.", "{sic}", "[1", "[laughs]"],
        {},
        "",
    ),
    "lists as numpy prints them": (
        "a.csv",
        f'text\n"{np.array(["One river.", "Two, they said."], dtype=object)}"\n',
        ["One river. Two, they said."],
        {},
        "",
    ),
    "short lists of whole numbers": (
        "a.csv",
        "text,hot\n" + "".join(f"The text {n} of all.,[{n % 2} {1 - n % 2}]\n" for n in range(8)),
        [f"The text {n} of all." for n in range(8)],
        {"hot": ("[0 1]", "[1 0]") * 4},
        "",
    ),
    "a replacement character": (
        "a.txt",
        "lost: \ufffd\nfound\n",
        ["lost: \ufffd", "found"],
        {},
        "",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_and_labels_are_told(case: str) -> None:
    name, content, texts, labels, note = TEXTS[case]
    read = read_texts(Source(name, content.encode()))
    assert list(read.texts) == texts
    assert labels is None or dict(read.labels) == labels
    notes = " ".join(read.notes)
    assert note in notes if note else not read.notes or "Took the text" in notes


def test_ids_and_chosen_columns() -> None:
    content = b'id,key,Text\n1,k1,"Hello, you"\n2,k2, \n3,k3,N. A.\n'
    read = read_texts(Source("a.csv", content))
    assert (read.texts, read.ids, read.column) == (("Hello, you", "N. A."), ("1", "3"), "Text")
    assert read_texts(Source("a.csv", content), id_column="key").ids == ("k1", "k3")
    with pytest.raises(TextError, match=r"no column “nr”\. Its columns are: “id”, “key”, “Text”"):
        read_texts(Source("a.csv", content), id_column="nr")
    with pytest.raises(TextError, match="not a table, so it has no column “key”"):
        read_texts(Source("a.txt", b"a"), id_column="key")


def test_lines_before_the_header_are_counted_from_the_first() -> None:
    table = read_table(Source("t.csv", b'#\n"""",""text\n x y z1'))
    assert table.notes[0].startswith("Skipped 2 lines before the header of t.csv, line 3")
