"""Tables in files come back as they were, and nothing in them comes alive in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from neuralviz.reading.source import Source
from neuralviz.reading.table import restore_formula
from neuralviz.reading.tables import read_table
from neuralviz.store.writing import escape_formula, frame_csv, table_bytes, vector_lists

FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "- a dialogue")
TABLE = pa.table(
    {
        "=id": ["a", "=1+1", "-5"],
        "n": pa.array([1, None, 10**12], pa.int64()),
        "x": pa.array([0.1, float("nan"), -2.5], pa.float32()),
        "vector": vector_lists(np.array([[0.1, 1], [2, 3], [1 / 3, -1e-30]], dtype=np.float32)),
    }
)


def test_formulas_begin_with_an_apostrophe_and_all_else_stays_as_it_is():
    assert [escape_formula(text) for text in FORMULAS] == [f"'{text}" for text in FORMULAS]
    others = ["", "a=b", "-5", "+1e3", "-.5", "5-3", "'tis", "naïve"]
    assert [escape_formula(text) for text in others] == others


def test_csv_is_inert_and_exact():
    rows = list(csv.reader(io.StringIO(table_bytes(".csv", TABLE).decode())))
    assert rows[0] == ["'=id", "n", "x", "vector"]
    assert [row[0] for row in rows[1:]] == ["a", "'=1+1", "-5"]
    assert [row[1] for row in rows[1:]] == ["1", "", str(10**12)]
    assert [row[2] for row in rows[1:]] == ["0.1", "", "-2.5"]
    vectors = np.array([json.loads(row[3]) for row in rows[1:]], dtype=np.float32)
    np.testing.assert_array_equal(vectors, np.array(TABLE["vector"].to_pylist(), np.float32))


def test_what_is_written_is_read_back_equal():
    texts = [*FORMULAS[:4], FORMULAS[-1], "'=1", "''+1 so", "-5", "'tis so", 'say "hi", you']
    columns = {"id": [f"d{n}" for n in range(len(texts))], "text": texts, "=label": texts[::-1]}
    content = table_bytes(".csv", pa.table(columns))
    table = read_table(Source("t.csv", content))
    assert dict(zip(table.columns, map(list, table.values), strict=True)) == columns
    assert "Removed the apostrophes before cells" in " ".join(table.notes)
    back = pd.read_csv(io.BytesIO(content), dtype=str)  # which keeps the mark
    assert list(back["text"]) == list(map(escape_formula, texts))
    assert list(map(restore_formula, back["text"])) == texts
    foreign = b"id,text\na,'-- so she said\nb,-- so he said\n"
    assert read_table(Source("t.csv", foreign)).column("text")[0] == "'-- so she said"


def test_jsonl_and_parquet_keep_everything():
    lines = table_bytes(".jsonl", TABLE).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["=id"] for row in rows] == ["a", "=1+1", "-5"]
    assert [row["n"] for row in rows] == [1, None, 10**12]
    assert rows[1]["x"] is None
    back = parquet.read_table(io.BytesIO(table_bytes(".parquet", TABLE)))
    assert repr(back.to_pylist()) == repr(TABLE.to_pylist())


def test_a_csv_file_of_a_data_frame_has_every_value_of_a_vector() -> None:
    vector = np.linspace(-1, 1, 3000, dtype=np.float32)
    content = frame_csv(pd.DataFrame({"id": ["a"], "vector": [vector]}))
    (row,) = csv.DictReader(io.StringIO(content.removeprefix("\ufeff")))
    np.testing.assert_array_equal(np.float32(json.loads(row["vector"])), vector)


def test_doubles_keep_all_of_their_digits():
    table = pa.table({"n": pa.array([1714567891.0, 1234567.891, 1e300, -0.0, 2.0**60])})
    rows = table_bytes(".csv", table).decode().splitlines()[1:]
    assert rows[:2] == ["1714567891", "1234567.891"]
    assert [float(row) for row in rows] == table["n"].to_pylist()
