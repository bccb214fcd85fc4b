"""Files as blocks of texts with labels, and the pieces made of them, on machines of a cluster."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute
from ray.data import DataContext, Datasource, ReadTask
from ray.data.block import BlockMetadata

from neuralviz.cluster.connecting import this_machine
from neuralviz.cluster.worker import open_store
from neuralviz.errors import NeuralvizError, TextError, UnreadFileError
from neuralviz.reading.cleaning import clean_texts
from neuralviz.reading.lines import tidy
from neuralviz.reading.missing import blank_missing
from neuralviz.reading.nested import flatten_texts
from neuralviz.reading.text_columns import guess_column
from neuralviz.reading.texts import ID_COLUMNS
from neuralviz.store.pieces import write_piece
from neuralviz.store.rows import Column, corpus_rows, corpus_schema, is_number
from neuralviz.words import free_name, many

if TYPE_CHECKING:
    from pathlib import Path

    from neuralviz.reading.blocks import FilePart, Parts
    from neuralviz.reading.table import Table

ROWS_OF_PIECE = 1 << 17  # at most
BYTES_OF_PIECE = 1 << 28  # about: of rows that are as long as the longest of the first ones
LOOKED_AT = 20  # files whose first rows say which columns there are
NOTE = "note"  # column of the notes on a block
_NOTES = ".note"


@dataclass(frozen=True)
class Layout:
    """Which columns of some files are read as what.

    Attributes:
        text: column of the texts.
        id: column of the ids; None where there is none.
        labels: the other columns, that of the ids among them.
        file: what the label that says the file is called; empty where there is one file.
        folder: the same of its folder; empty where no file is in a folder below the others.
        rows_of_piece: rows that one process holds at once; fewer where they are long.
    """

    text: str
    id: str | None
    labels: tuple[str, ...]
    file: str = ""
    folder: str = ""
    rows_of_piece: int = ROWS_OF_PIECE

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of all labels."""
        return (*self.labels, *(title for title in (self.file, self.folder) if title))

    @property
    def schema(self) -> pa.Schema:
        """Columns of a block: those of the store, labels as they are written, and a note."""
        columns = [Column(title, "text") for title in self.titles]
        return corpus_schema(columns).append(pa.field(NOTE, pa.string()))


def find_layout(parts: Parts, column: str | None, id_column: str | None) -> Layout:
    """Find the columns of some files by the first rows of the first of them.

    Args:
        parts: the files.
        column: of the texts; guessed by default, as by `read_texts`.
        id_column: of the ids; by default the first that is called like one.

    Raises:
        TextError: there is no such column, or none of the files can be read.
    """
    columns: dict[str, None] = {}
    heads: list[tuple[str, Table]] = []
    reasons: list[str] = []
    files = list({(part.files.type_name, part.path): part for part in parts.parts}.values())
    for part in files[:LOOKED_AT]:
        try:
            head = next((block for block in part.blocks() if len(block)), None)
        except TextError as error:
            reasons.append(str(error))
            continue
        if head is not None:
            heads.append((part.name, head))
            columns.update(dict.fromkeys(head.columns))
    if not heads:
        raise TextError(" ".join(["No text was found in these files.", *reasons[:5]]))
    for name in (column, id_column):
        if name is not None and name not in columns:
            named = ", ".join(f"“{title[:40]}”" for title in columns)
            raise TextError(f"The files have no column “{name}”. Their columns are: {named}.")
    text = column or guess_column(*heads[0])
    used = (head.columns for _, head in heads if text in head.columns)  # of others no row is
    other_columns = tuple(title for title in dict.fromkeys(chain(*used)) if title != text)
    if id_column is None:
        by_name = {title.strip().lower(): title for title in reversed(other_columns)}
        id_column = next((by_name[name] for name in ID_COLUMNS if name in by_name), None)
    labels = tuple(title for title in other_columns if title != id_column)
    file = free_name("file", columns) if len(files) > 1 else ""
    folder = (
        free_name("folder", columns) if file and any("/" in part.name for part in files) else ""
    )
    row_bytes = max(_row_bytes(head) for _, head in heads)
    rows_of_piece = int(min(ROWS_OF_PIECE, max(1, BYTES_OF_PIECE // row_bytes)))
    return Layout(text, id_column, labels, file, folder, rows_of_piece)


def _row_bytes(table: Table) -> float:
    """Mean size of a row of a table in bytes, roughly."""
    return 1 + sum(len(value) for column in table.values for value in column) / len(table)


class KeepNotes:
    """Passes rows with a text on; writes the notes of the others to files for `kept_notes`.

    Args:
        folder: that all machines see.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, rows: pa.Table) -> pa.Table:
        has_text = compute.is_valid(rows["text"])
        for note in rows.filter(compute.invert(has_text))[NOTE].to_pylist():
            name = hashlib.blake2b(note.encode(), digest_size=16).hexdigest()
            with suppress(OSError):  # a machine that does not see the store says so as it writes
                (self._folder / f"{name}{_NOTES}").write_text(note)
        return rows.filter(has_text)


def kept_notes(folder: Path) -> list[dict[str, Any]]:
    """The notes that `KeepNotes` wrote, as pieces without a text."""
    return [
        _make_note_piece([json.loads(path.read_text())])
        for path in sorted(folder.glob(f"*{_NOTES}"))
    ]


class FilesOfTexts(Datasource):
    """Files as blocks of texts, for Ray Data.

    Args:
        parts: of the files, a task each.
        layout: their columns.
    """

    def __init__(self, parts: Sequence[FilePart], layout: Layout) -> None:
        super().__init__()
        self._parts, self._layout = parts, layout

    def get_name(self) -> str:
        """Its name in Ray's messages."""
        return "Texts"

    def estimate_inmemory_data_size(self) -> int | None:
        """None: the size is not known before the files are read."""
        return None

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: DataContext | None = None,
    ) -> list[ReadTask]:
        """A task a part."""
        nothing = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [
            ReadTask(_Read(part, self._layout), nothing, schema=self._layout.schema)
            for part in self._parts
        ]


class _Read:
    """The blocks of a part."""

    def __init__(self, part: FilePart, layout: Layout) -> None:
        self._part, self._layout = part, layout

    def __call__(self) -> Iterator[pa.Table]:
        n = 0
        try:
            for block in self._part.blocks():
                rows = block_rows(self._part.name, block, self._layout)
                n += rows.num_rows
                if rows.num_rows:
                    yield rows
        except UnreadFileError as error:  # the machine that was asked first could open it
            raise NeuralvizError(
                f"{error} It was to be read by the machine {socket.gethostname()}: all machines of "
                "a cluster must see the files under the same path. Nothing was saved."
            ) from error
        except TextError as error:
            read = f" {many(n, 'text')} could be read before that." if n else ""
            yield _make_note_row(self._layout, f"{error}{read}", broken=self._part.name)


def block_rows(name: str, block: Table, layout: Layout) -> pa.Table:
    """The texts of some rows of a file, in columns of `Layout.schema`.

    Args:
        name: of the file.
        block: the rows.
        layout: of all files; a column that this one lacks is blank.
    """
    block = blank_missing(block)
    blank = [""] * len(block)
    columns = dict(zip(block.columns, block.values, strict=True))
    notes = list(block.notes)
    if layout.text not in columns and len(block):
        notes.append(f"{name} has no column “{layout.text[:40]}”: its rows were skipped.")
    parts, nested_notes = flatten_texts(layout.text, columns.get(layout.text, blank))
    texts, cleaning_notes, used = clean_texts(parts, block.lines, blanks="row", unit=block.unit)
    if layout.text in columns:
        notes += [*cleaning_notes, *nested_notes]
    unknown = sorted(columns.keys() - {layout.text, layout.id, *layout.labels})
    if unknown and layout.text in columns:
        notes.append(
            f"{name}: skipped the column “{unknown[0][:40]}”, which the first rows do not have."
        )
    labels = [
        pa.array([tidy(columns.get(title, blank)[row]) for row in used], pa.string())
        for title in layout.labels
    ]
    if layout.file:
        labels.append(pa.array([name] * len(used), pa.string()))
    if layout.folder:
        labels.append(pa.array([name.rpartition("/")[0]] * len(used), pa.string()))
    rows = corpus_rows(texts, labels)
    if layout.id is not None:
        ids = [tidy(columns.get(layout.id, blank)[row]) or None for row in used]
        place = rows.schema.get_field_index("id")
        rows = rows.set_column(place, "id", pa.array(ids, pa.string()))
    if notes and not len(rows):
        return _make_note_row(layout, *(_prefix_name(name, note) for note in notes))
    first_notes = [_encode_notes(*(_prefix_name(name, note) for note in notes))] if notes else []
    note = pa.array([*first_notes, *[None] * (len(rows) - len(first_notes))], pa.string())
    return rows.append_column(NOTE, note).cast(layout.schema)


def _prefix_name(name: str, note: str) -> str:
    return note if name in note else f"{name}: {note}"


def _encode_notes(*notes: str, broken: str = "") -> str:
    """Sentences on what was left out, and the name of a file that broke off, for `NOTE`."""
    return json.dumps([notes, broken])


def _make_note_row(layout: Layout, *notes: str, broken: str = "") -> pa.Table:
    """A row without a text, which carries notes."""
    nothing: dict[str, pa.Array] = {field.name: pa.nulls(1, field.type) for field in layout.schema}
    nothing[NOTE] = pa.array([_encode_notes(*notes, broken=broken)], pa.string())
    return pa.table(nothing, schema=layout.schema)


def _make_note_piece(entries: Sequence[Any]) -> dict[str, Any]:
    """A piece without a text, of which there are notes alone."""
    return {
        "n": 0,
        "notes": [note for notes, _ in entries for note in notes],
        "broken": [name for _, name in entries if name],
        "fragments": [],
        "failed": "",
        "machine": "",
    }


class WriteTexts:
    """Writes blocks of texts as pieces of a table, and describes each piece.

    Args:
        folder: of the store.
        table: that they belong to.
    """

    def __init__(self, folder: str, table: str) -> None:
        self._folder, self._table = folder, table

    def __call__(self, rows: pa.Table) -> pa.Table:
        entries = [json.loads(note) for note in rows[NOTE].drop_null().to_pylist()]
        texts = rows.filter(compute.is_valid(rows["text"])).drop_columns([NOTE])
        piece = _make_note_piece(entries) | {
            "n": texts.num_rows,
            "labels": [_check_numbers(texts[name]) for name in texts.column_names[3:]],
        }
        try:
            if texts.num_rows:
                database = open_store(self._folder).database
                piece["fragments"] = write_piece(database, self._table, texts, "create")
        except NeuralvizError as error:
            piece["failed"], piece["machine"] = str(error), this_machine()
        return pa.table({"written": [json.dumps(piece)]})


def _check_numbers(values: pa.ChunkedArray) -> tuple[bool, bool]:
    """Whether there is a value in a label at all, and whether all that are there are numbers."""
    filled = [value for value in compute.unique(values).to_pylist() if value and value.strip()]
    return bool(filled), all(is_number(value.strip()) for value in filled)
