"""The rows of a corpus: texts with their keys, ids and labels, in a table of the database.

The place of a row in its table is the text's number; nothing is put between rows, or moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pyarrow import compute

from neuralviz.errors import StoreError
from neuralviz.reading.cells import cell_text
from neuralviz.store.database import all_rows
from neuralviz.store.vectors import KEY_BYTES, key_array, keys_of, text_keys

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

    from neuralviz.reading.texts import ReadTexts
    from neuralviz.store.corpora import Corpus

FIRST_LOOK = 1000  # numbers
LARGEST_WHOLE = 2**53  # up to which every whole number has a double of its own; others are names
STRINGS = pa.large_string()  # in a column of others there is no room for more than 2 GiB of text
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")

ColumnKind = Literal["text", "number"]
Rows = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Column:
    """A column of labels: its name in the file, and whether its values are numbers."""

    name: str
    kind: ColumnKind


def describe_deleted(corpus: Corpus) -> str:
    """What is said when a corpus is not there any more."""
    return f"The corpus “{corpus.name}” was deleted in the meantime."


def texts_table(corpus: Corpus) -> str:
    """The name of the table of a corpus's rows, in their order."""
    return f"texts-{corpus.id}"


def corpus_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns of `texts_table`."""
    types = {"text": STRINGS, "number": pa.float64()}
    return pa.schema(
        [
            ("id", STRINGS),
            ("text", STRINGS),
            ("key", pa.binary(KEY_BYTES)),
            *((f"label_{place}", types[column.kind]) for place, column in enumerate(columns)),
        ]
    )


def corpus_rows(
    texts: Sequence[str],
    labels: Sequence[pa.Array],
    ids: Sequence[str] | None = None,
) -> pa.Table:
    """Texts as rows of `texts_table`.

    Args:
        texts: none of them blank.
        labels: [column] an array of strings or doubles, a value a text.
        ids: no two alike; by default texts are numbered from 1.
    """
    return pa.table(
        {
            "id": pa.nulls(len(texts), STRINGS) if ids is None else pa.array(ids, STRINGS),
            "text": pa.array(texts, STRINGS),
            "key": key_array(text_keys(texts)),
            **{f"label_{place}": values for place, values in enumerate(labels)},
        }
    )


def split_batches(blocks: Iterable[pa.Table], keys: list[np.ndarray]) -> Iterator[pa.RecordBatch]:
    """The batches of some tables; their keys are put on ``keys`` as they go by."""
    for block in blocks:
        keys.extend(keys_of(chunk) for chunk in block["key"].chunks)
        yield from block.to_batches()


def read_column(table: Table, name: str, rows: Rows | None = None) -> pa.Array:
    """A column of a table in the order of the rows, or of some alone; strings are `STRINGS`."""
    if rows is None:
        rows_read = all_rows(table.search().select([name]).with_row_id(True))
        place = rows_read["_rowid"].to_numpy()
        values = rows_read[name]
        if len(place) and (place[1:] < place[:-1]).any():
            values = values.take(pa.array(np.argsort(place)))
    else:
        values = _read_rows(table, name, np.asarray(rows, dtype=np.int64))
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


def _read_rows(table: Table, name: str, rows: np.ndarray) -> pa.ChunkedArray:
    """A column of some rows; the database has them in their own order."""
    different, places = np.unique(rows, return_inverse=True)
    if not len(different):
        return table.schema.empty_table()[name]
    values = table.take_offsets(different.tolist()).select([name]).to_arrow()[name]
    if len(values) < len(different):
        raise StoreError("A text was deleted in the meantime. Open the corpus again.")
    return values.take(pa.array(places))


def find_rows_with(table: Table, terms: Sequence[str]) -> np.ndarray:
    """Rows of a table whose texts hold all of some terms in lower case, in their order."""
    quoted = [term.replace("'", "''") for term in terms]
    condition = " AND ".join(f"contains(lower(text), '{term}')" for term in quoted)
    matches = all_rows(table.search().where(condition).select(["key"]).with_row_id(True))
    return np.searchsorted(row_ids(table), np.sort(matches["_rowid"].to_numpy()))


def row_ids(table: Table) -> np.ndarray:
    """[row] the database's own numbers of the rows of a table as it is now, rising."""
    rows = all_rows(table.search().select(["key"]).with_row_id(True))
    return np.sort(rows["_rowid"].to_numpy())


def to_numbers(values: pa.Array) -> pa.Array:
    """Doubles; what is read in blocks is kept as written, and a blank is no number."""
    if pa.types.is_floating(values.type):
        return values
    return compute.if_else(compute.equal(values, ""), None, values).cast(pa.float64())


def encode_labels(values: pa.Array) -> tuple[np.ndarray, tuple[str, ...]]:
    """A column of labels as numbers, as of `CorpusStore.label_codes`."""
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(float)
        different, codes = np.unique(numbers, return_inverse=True)
        names = [cell_text(value) for value in different.tolist()]
        if len(different) and different[-1] != different[-1]:  # NaN comes last
            codes[codes == len(different) - 1] = -1
            names.pop()
        return codes.astype(np.int32), tuple(names)
    encoded = values.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    stripped = [value.strip() for value in encoded.dictionary.to_pylist()]
    names = list(dict.fromkeys(value for value in stripped if value))
    place = {value: code for code, value in enumerate(names)}
    renamed = np.array([*(place.get(value, -1) for value in stripped), -1], dtype=np.int32)
    return renamed[codes], tuple(names)


def are_whole(numbers: np.ndarray) -> bool:
    """Whether all numbers are whole, those left out that are not finite."""
    for sample in (numbers[:FIRST_LOOK], numbers):  # the first ones mostly tell
        finite = sample[np.isfinite(sample)]
        if not (np.rint(finite) == finite).all():
            return False
    return True


def text_ids(read: ReadTexts) -> tuple[str, ...]:
    """Those of the file, else numbers from 1."""
    return read.ids or tuple(str(number) for number in range(1, len(read.texts) + 1))


def label_columns(read: ReadTexts) -> list[tuple[Column, pa.Array]]:
    """The columns beside text and id."""
    columns = read.labels.items()
    return [_read_label(title, values) for title, values in columns if values != read.ids]


def _read_label(title: str, values: Sequence[str]) -> tuple[Column, pa.Array]:
    """A column as numbers, where all that is not blank is one; else as strings."""
    filled = [value.strip() for value in values]
    if any(filled) and all(is_number(value) for value in filled if value):
        numbers = [float(value) if value else None for value in filled]
        return Column(title, "number"), pa.array(numbers, pa.float64())
    return Column(title, "text"), pa.array(values, STRINGS)


def is_number(value: str) -> bool:
    """Whether it is a finite number as programs write it; 007 is a name."""
    if not _NUMBER.fullmatch(value):
        return False
    digits = value.lstrip("+-")
    if digits.isdigit():
        return len(digits) <= len(str(LARGEST_WHOLE)) and int(digits) <= LARGEST_WHOLE
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False
