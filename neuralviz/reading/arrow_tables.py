"""Read Arrow and Parquet files, and folders saved by ``datasets``, as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet, types

from neuralviz.errors import TextError
from neuralviz.reading.table import Table, TableBuilder, check_width, column_names, describe_skipped
from neuralviz.words import joined

MAX_TEXT = 1 << 31  # characters of all columns
MAX_ROWS = 10_000_000  # a file of a few kilobytes can have a billion rows of nothing
MAX_UNPACKED = 1 << 28  # bytes of a batch of an Arrow file, as of an Excel workbook
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_ROWS_AT_ONCE = 10_000
_FILE = b"ARROW1\0\0"  # before the stream that is in a file
_USUAL = 20  # times smaller that texts become when they are packed, at most
_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list)
_VIEWS = (types.is_list_view, types.is_large_list_view)
_BINARY = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)


class Columns:
    """The columns of texts and labels, without binary data or lists of numbers."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        check_width(name, len(schema.names))
        unwanted = [_describe_unwanted(field.type) for field in schema]
        self.places = [place for place, kind in enumerate(unwanted) if not kind]  # in the schema
        self.names = column_names(schema.names[place] for place in self.places)
        kinds = zip(schema.names, unwanted, strict=True)
        self._notes = tuple(describe_skipped(title, kind) for title, kind in kinds if kind)

    def read_blocks(
        self, name: str, batches: Iterable[pa.RecordBatch], n_wanted: int | None
    ) -> Iterator[Table]:
        """A table per batch of some thousand rows; a last, empty one carries the notes."""
        n_rows = n_bytes = 0
        builder = TableBuilder(name, "row")
        for batch in batches:
            n_bytes += sum(map(count_bytes, batch.columns))
            if n_bytes > MAX_TEXT:
                raise TextError(
                    f"{name} has more than {MAX_TEXT:,} characters in its first "
                    f"{n_rows + len(batch):,} rows. Split it."
                )
            rows = zip(*map(_read_values, batch.columns), strict=True)
            for number, row in enumerate(rows, n_rows + 1):
                builder.add(number, dict(zip(self.names, row, strict=True)))
            n_rows += len(batch)
            _check_n_rows(name, n_rows)
            yield builder.take()
            if n_wanted is not None and builder.n_rows >= n_wanted:
                break
        yield builder.finish("", self._notes)


def read_rows(name: str, rows: pa.Table) -> Iterator[Table]:
    columns = Columns(name, rows.schema)
    batches = rows.select(columns.places).to_batches(_ROWS_AT_ONCE)
    return columns.read_blocks(name, batches, None)


@contextmanager
def check_damage(name: str, kind: str = "an Arrow file or Feather of version 2") -> Iterator[None]:
    """Raise `TextError` for Arrow's errors on a file's content; let system errors pass."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TextError(f"{name} is damaged, or not {kind}.") from error


def _check_n_rows(name: str, n_rows: int) -> None:
    if n_rows > MAX_ROWS:
        raise TextError(
            f"{name} has {n_rows:,} rows. Up to {MAX_ROWS:,} can be read: split the file."
        )


def read_arrow(name: str, file: IO[bytes], n_wanted: int | None = None) -> Iterator[Table]:
    with check_damage(name):
        columns = Columns(name, pa.ipc.open_stream(_find_stream(file)).schema)
        yield from columns.read_blocks(name, _read_batches(name, file, columns), n_wanted)


def _find_stream(file: IO[bytes]) -> IO[bytes]:
    """The file, at the place where its stream of batches begins."""
    file.seek(0)
    if file.read(len(_FILE)) != _FILE:
        file.seek(0)
    return file


def _read_batches(name: str, file: IO[bytes], columns: Columns) -> Iterator[pa.RecordBatch]:
    """Batches with the columns of texts and labels alone."""
    if not columns.places:
        return
    check_unpacked(name, pa.ipc.MessageReader.open_stream(_find_stream(file)))
    options = pa.ipc.IpcReadOptions(included_fields=columns.places)
    for batch in pa.ipc.open_stream(_find_stream(file), options=options):
        batch.validate(full=True)
        for row in range(0, len(batch), _ROWS_AT_ONCE):
            yield batch.slice(row, _ROWS_AT_ONCE)


def check_unpacked(name: str, messages: Iterable[pa.ipc.Message]) -> None:
    """Refuse a small batch that unpacks to a very large one."""
    # a packed buffer begins with its length
    for message in messages:
        data = message.metadata.to_pybytes()
        header = _follow(data, _find_field(data, _follow(data, 0), 2))
        batch = header
        if message.type == "dictionary":
            batch = _follow(data, _find_field(data, header, 1))
        elif message.type != "record batch":
            continue
        if not _find_field(data, batch, 3):
            continue  # nothing is packed
        packed = unpacked = 0
        buffers = _follow(data, _find_field(data, batch, 2))
        for place in range(_read_number(data, buffers, 4)):
            offset, length = np.frombuffer(data, "<i8", 2, buffers + 4 + 16 * place).tolist()
            packed += length
            if length >= 8:  # an empty buffer has no length before it
                unpacked += max(length, _read_number(message.body[offset : offset + 8], 0, 8))
        if unpacked > max(MAX_UNPACKED, _USUAL * packed):
            raise TextError(
                f"{name} has a batch of {unpacked:,} bytes when unpacked. Save it in smaller "
                "batches, or as Parquet."
            )


def _find_field(data: bytes, table: int, field: int) -> int:
    """The position of a field in a FlatBuffers table; 0 if absent."""
    vtable, place = table - _read_number(data, table, 4), 4 + 2 * field
    offset = _read_number(data, vtable + place, 2) if place < _read_number(data, vtable, 2) else 0
    return table + offset if offset else 0


def _follow(data: bytes, position: int) -> int:
    return position + _read_number(data, position, 4)


def _read_number(data: bytes | pa.Buffer, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little", signed=size > 2)


# --- Parquet -------------------------------------------------------------------------------------


def read_parquet(
    name: str, file: IO[bytes], n_wanted: int | None = None, groups: Sequence[int] = ()
) -> Iterator[Table]:
    """Read a Parquet file, or some of its row groups."""
    # as dictionaries, since a long text may be stored once for a million rows; columns by number,
    # since names may repeat
    with check_damage(name, "a Parquet file"):
        source = parquet.ParquetFile(file, pre_buffer=False)
        columns = Columns(name, source.schema_arrow)
        if n_wanted is None and not groups:
            _check_n_rows(name, source.metadata.num_rows)
        leaves = [source.schema.column(place) for place in range(len(source.schema.names))]
        texts = [
            place
            for place, leaf in enumerate(leaves)
            if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
        ]
        reader = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=texts).reader
        ends = np.cumsum([0, *(_count_leaves(field.type) for field in source.schema_arrow)])
        leaf_columns = [
            leaf for place in columns.places for leaf in range(ends[place], ends[place + 1])
        ]
        n_at_once = min(_ROWS_AT_ONCE, n_wanted or _ROWS_AT_ONCE)
        batches = (  # group by group, so that all before a damaged one can be read
            batch
            for group in groups or range(source.num_row_groups)
            for batch in reader.iter_batches(
                n_at_once, row_groups=[group], column_indices=leaf_columns
            )
        )
        yield from columns.read_blocks(name, batches if leaf_columns else (), n_wanted)


def read_group_sizes(name: str, file: IO[bytes]) -> list[int]:
    with check_damage(name, "a Parquet file"):
        metadata = parquet.ParquetFile(file, pre_buffer=False).metadata
    return [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]


def _count_leaves(kind: pa.DataType) -> int:
    return sum(_count_leaves(kind.field(place).type) for place in range(kind.num_fields)) or 1


# --- values --------------------------------------------------------------------------------------


def count_bytes(column: pa.Array) -> int:
    """Bytes of a column's values, each stored by itself."""
    kind = column.type
    if types.is_map(kind):
        return count_bytes(column.keys) + count_bytes(column.items)
    if types.is_struct(kind):
        return sum(map(count_bytes, column.flatten()))
    if _is_dictionary(kind):
        lengths = _measure_texts(column.dictionary).take(column.indices)
    elif is_text(kind):
        lengths = _measure_texts(column)
    elif types.is_nested(kind):
        return count_bytes(column.flatten())
    else:
        return column.nbytes
    return compute.sum(lengths).as_py() or 0


def _measure_texts(texts: pa.Array) -> pa.Array:
    """Bytes of each text; for views, which may share bytes, the size that each states."""
    if not types.is_string_view(texts.type):
        return compute.binary_length(texts)
    views = np.frombuffer(texts.buffers()[1], np.int32).reshape(-1, 4)
    return pa.array(views[texts.offset : texts.offset + len(texts), 0].astype(np.int64))


def _is_dictionary(kind: pa.DataType) -> bool:
    return types.is_dictionary(kind) and is_text(kind.value_type)


def is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _read_values(column: pa.Array) -> list[Any]:
    """The values of a column; floats without excess digits, equal texts as one object."""
    if types.is_float32(column.type) or types.is_float16(column.type):
        return [None if v is None else float(v) for v in column.cast(pa.string()).to_pylist()]
    if _is_dictionary(column.type):
        used = compute.unique(column.indices).drop_null().to_pylist()
        texts = {code: column.dictionary[code].as_py() for code in used}
        return [texts.get(code) for code in column.indices.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _describe_unwanted(kind: pa.DataType) -> str:
    """What a column contains instead of labels; empty if it may be one."""
    if types.is_run_end_encoded(kind) or types.is_union(kind) or any(t(kind) for t in _VIEWS):
        return "values of a rare type"
    if any(is_binary(kind) for is_binary in _BINARY):
        return "binary data"
    if any(is_list(kind) for is_list in _LISTS) and types.is_floating(kind.value_type):
        return "lists of numbers"
    inner = [_describe_unwanted(kind.field(place).type) for place in range(kind.num_fields)]
    if types.is_struct(kind):  # an image or a sound with its path
        return "binary data" if any(inner) else ""
    return next(filter(None, inner), "")


# --- folders of `datasets` -----------------------------------------------------------------------


def is_saved_data_set(folder: Path) -> bool:
    """Whether ``save_to_disk`` of ``datasets`` wrote the folder."""
    return (folder / STATE).is_file() or (folder / SPLITS).is_file()


def find_split(name: str, folder: Path, split: str | None = None) -> Path:
    if not (folder / SPLITS).is_file():
        return folder
    listed = _read_json(name, folder / SPLITS).get("splits", [])
    splits = [title for title in listed if _is_name(title)]
    if split in splits or (split is None and len(splits) == 1):
        return folder / (split or splits[0])
    named = joined([f"“{title}”" for title in splits]) if splits else "none"
    raise TextError(
        f"{name} is a saved data set whose splits are: {named}. Choose one of their folders, such "
        f"as {name}/{splits[0] if splits else 'train'}."
    )


def read_saved(name: str, folder: Path, n_wanted: int | None = None) -> Iterator[Table]:
    with check_damage(name):
        paths = _list_files(name, find_split(name, folder))
        schemas = [pa.ipc.open_stream(_find_stream(pa.OSFile(path))).schema for path in paths]
        if any(schema.names != schemas[0].names for schema in schemas):
            raise TextError(
                f"{name} is a damaged data set: its files have different columns. Save it again."
            )
        columns = Columns(name, schemas[0])
        batches = (_read_batches(name, pa.OSFile(path), columns) for path in paths)
        yield from columns.read_blocks(name, chain.from_iterable(batches), n_wanted)


def _list_files(name: str, folder: Path) -> list[str]:
    listed = _read_json(name, folder / STATE).get("_data_files") or []
    files = [str(part.get("filename")) for part in listed if isinstance(part, dict)]
    if not files or not all(_is_name(file) and (folder / file).is_file() for file in files):
        raise TextError(
            f"{name} is a damaged data set: {STATE} names no files, or some that are not there. "
            "Copy the folder again."
        )
    return [str(folder / file) for file in files]


def _read_json(name: str, path: Path) -> dict[str, Any]:
    with check_damage(name, "a data set"):
        content = json.loads(path.read_text("utf-8"))
    return content if isinstance(content, dict) else {}


def _is_name(name: object) -> bool:
    """Whether this names something inside a folder and nothing outside it."""
    return isinstance(name, str) and Path(name).name == name and name not in ("", ".", "..")
