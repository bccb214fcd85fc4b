"""Tables from files of every kind, whatever stands in their cells."""

from __future__ import annotations

import io
import json
import tracemalloc
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from neuralviz.errors import TextError
from neuralviz.reading import arrow_tables, json_tables
from neuralviz.reading.delimited import read_delimited
from neuralviz.reading.source import Source
from neuralviz.reading.table import join_tables
from neuralviz.reading.tables import read_table
from tests.support.table_files import WRITERS, rows_of

# --- what is written comes back ------------------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(
        [
            "=cmd|' /C calc'!A0",
            'say "hi"',
            '"',
            '""',
            "a,b;c\td|e",
            "🙂\n👩‍👩‍👧",
            "NA",
            "null",
            "",
            " ",
            "-1",
        ]
    ),
    st.text(st.characters(exclude_categories=("Cc", "Cs"), include_characters="\n\t"), max_size=20),
)
COLUMNS = ("id", "text", "label")
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8)


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=20, deadline=None)
@given(rows=ROWS)
def test_what_is_written_comes_back(name: str, rows: list[tuple[str, ...]]) -> None:
    columns = [("texts", values) for values in zip(*rows, strict=True)]
    table = read_table(Source(name, WRITERS[name](COLUMNS, columns)))
    if name == "t.xlsx":  # in which a cell of blanks is an empty one
        rows = [tuple(cell if cell.strip() else "" for cell in row) for row in rows]
    kept = [row for row in rows if any(map(str.strip, row))]
    assert rows_of(table) == kept
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
    assert rows_of(table) == [
        ("1", "two\nlines"),
        ("4", "four"),
        ("5", "ok, five"),
        ("7", "three\n\nlines"),
        ("8", ""),
        ("9", "nine"),
        ("11", "eleven"),
    ]
    assert table.lines == [2, 7, 8, 10, 13, 14, 16]
    unmatched, too_long = table.notes
    assert "Skipped 3 rows with an unmatched quotation mark (lines 6, 9, 15)" in unmatched
    assert "Skipped 1 row with more fields than the header (line 5)" in too_long


def test_lines_are_right_however_they_end_and_wherever_a_portion_ends() -> None:
    content = b'id,text\r\n1,"a\r\nb"\r2,x,y\n3,z\r\n\r\n4,u\n'
    table = join_tables("t.csv", read_delimited("t.csv", io.BytesIO(content), at_once=10))
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


@pytest.mark.parametrize("name", ["zeros.csv", "zeros.json"])
def test_2_gb_without_text_are_refused_in_seconds(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(b"id,text\n")
        file.truncate(2_000_000_000)
    with pytest.raises(TextError, match="is not a text file"):
        read_table(Source(name, path))


# --- encodings -----------------------------------------------------------------------------------

POLISH = "Zażółć gęślą jaźń. Wieczorem poszliśmy nad rzekę, wiał już chłodny wiatr.\n"
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Večer jsme šli na procházku k řece.\n"
RUSSIAN = "Вчера вечером мы гуляли вдоль реки, было уже темно и дул холодный ветер.\n"
GREEK = "Χθες το βράδυ περπατήσαμε δίπλα στο ποτάμι και ήταν ήδη σκοτεινά.\n"
JAPANESE = "昨日の夜、川沿いを散歩しました。もう暗くて、冷たい風が吹いていました。\n"
CHINESE = "昨天晚上我们沿着河边散步,天已经黑了,吹着冷风。第二天早上天气很好。\n"
KOREAN = "어제 저녁 우리는 강을 따라 산책했다. 이미 어두웠고 찬 바람이 불었다.\n"
FRENCH = "Les élèves étaient à l’école où l’été s’achève. Ça va ? Bien sûr.\n"


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        (FRENCH, "cp1252", "Windows-1252"),
        ("naïve café\n", "cp1252", "Windows-1252"),
        ("“It’s”\n", "cp1252", "Windows-1252"),
        (POLISH, "cp1250", "Windows-1250"),
        (CZECH, "cp1250", "Windows-1250"),
        (POLISH, "iso8859_2", "ISO 8859-2"),
        (CZECH, "iso8859_2", "ISO 8859-2"),
        (RUSSIAN, "cp1251", "Windows-1251"),
        (RUSSIAN, "koi8_r", "KOI8-R"),
        (GREEK, "cp1253", "Windows-1253"),
        (JAPANESE, "shift_jis", "Shift-JIS"),
        (JAPANESE, "euc_jp", "EUC-JP"),
        (CHINESE, "gb18030", "GB18030"),
        (KOREAN, "euc_kr", "EUC-KR"),
        ("Acme™ is a cost–benefit firm that doesn’t sleep: 100€\n", "cp1252", "Windows-1252"),
    ],
)
def test_old_encodings_are_told_by_their_letters_and_named(text: str, encoding: str, said: str):
    content = f"id\ttext\n1\t{text}".encode(encoding)
    table = read_table(Source("t.tsv", content))
    assert table.column("text") == [text.rstrip("\n")]
    assert table.notes == (f"t.tsv is not UTF-8. It was read as {said}.",)


@pytest.mark.parametrize("text", [FRENCH, RUSSIAN, JAPANESE, CHINESE, "plain\n", "🙂🙂\n"])
@pytest.mark.parametrize("encoding", "utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32".split())
def test_unicode_is_known_with_and_without_a_mark(text: str, encoding: str) -> None:
    table = read_table(Source("t.tsv", f"id\ttext\n1\t{text}".encode(encoding)))
    assert (table.columns, table.column("text")) == (("id", "text"), [text.rstrip("\n")])
    assert table.notes == ()


def test_stray_bytes_do_not_spoil_a_file_in_utf_8() -> None:
    content = f"id\ttext\n1\t{RUSSIAN}".encode() + b"2\tcaf\xe9\n"
    table = read_table(Source("t.tsv", content))
    assert table.column("text") == [RUSSIAN.rstrip("\n"), "café"]
    assert table.notes == ("1 character is not valid UTF-8: read as Windows-1252 (line 3).",)


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


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
@pytest.mark.parametrize("rows", [["One", "Two"], [{"text": "One"}, {"text": "Two"}]])
def test_the_ending_of_json_does_not_matter(name: str, rows: list) -> None:
    lines = "\n\n" + "\n".join(map(json.dumps, rows))
    for content in (json.dumps(rows), json.dumps(rows, indent=2), lines):
        assert list(read_table(Source(name, content.encode())).column("text")) == ["One", "Two"]


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
    ],
)
def test_objects_one_after_the_other_are_rows(name: str, content: str) -> None:
    table = read_table(Source(name, content.encode()))
    frame = pd.read_json(io.StringIO(json.dumps(ROWS)))
    assert list(table.column("text")) == list(frame["text"])
    assert list(table.column("id")) == list(map(str, frame["id"]))


def test_a_json_file_that_is_too_large_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(json_tables, "MAX_WHOLE", 1000)
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
