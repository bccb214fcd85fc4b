"""Tables in files of every kind, as other programs write them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import openpyxl
import pyarrow as pa
from pyarrow import parquet

from neuralviz.reading.table import Table

Column = tuple[str, Sequence[Any]]  # what it holds, and its values


def rows_of(table: Table) -> list[tuple[str, ...]]:
    return list(zip(*table.values, strict=True))


def as_text(value: Any) -> str:
    """A value as the test expects to read it, by the rules of the documentation."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        minutes = int(value.total_seconds()) // 60
        return f"{minutes // 60:02}:{minutes % 60:02}:00"
    return str(value)


def delimited(separator: str) -> Callable[[Sequence[str] | None, Sequence[Column]], bytes]:
    def write(names: Sequence[str] | None, columns: Sequence[Column]) -> bytes:
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=separator)
        if names is not None:
            writer.writerow(names)
        writer.writerows(zip(*([as_text(v) for v in values] for _, values in columns), strict=True))
        return file.getvalue().encode()

    return write


def as_excel(names: Sequence[str] | None, columns: Sequence[Column]) -> bytes:
    workbook = openpyxl.Workbook()
    if names is not None:
        workbook.active.append(list(names))
    for row in zip(*(values for _, values in columns), strict=True):
        workbook.active.append(list(row))
    for cell in (cell for row in workbook.active for cell in row):
        if isinstance(cell.value, str):
            cell.data_type = "s"  # no formula
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def as_json_lines(names: Sequence[str] | None, columns: Sequence[Column]) -> bytes:
    values = [[v if isinstance(v, int | float) else as_text(v) for v in c] for _, c in columns]
    rows = [dict(zip(names or (), row, strict=True)) for row in zip(*values, strict=True)]
    return "\n".join(map(json.dumps, rows)).encode()


def as_json(names: Sequence[str] | None, columns: Sequence[Column]) -> bytes:
    return b"[" + as_json_lines(names, columns).replace(b"\n", b",") + b"]"


def as_arrow_table(names: Sequence[str] | None, columns: Sequence[Column]) -> pa.Table:
    arrays = []
    for what, values in columns:
        array = pa.array(values)
        arrays.append(array.dictionary_encode() if what == "category" else array)
    return pa.table(arrays, names=list(names or ()))


def as_parquet(names: Sequence[str] | None, columns: Sequence[Column]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(as_arrow_table(names, columns), file)
    return file.getvalue()


def as_arrow(names: Sequence[str] | None, columns: Sequence[Column]) -> bytes:
    table, sink = as_arrow_table(names, columns), io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return sink.getvalue()


WRITERS = {
    "t.csv": delimited(","),
    "semicolons.csv": delimited(";"),
    "bars.csv": delimited("|"),
    "t.tsv": delimited("\t"),
    "t.xlsx": as_excel,
    "t.jsonl": as_json_lines,
    "t.json": as_json,
    "t.parquet": as_parquet,
    "t.feather": as_arrow,
}
