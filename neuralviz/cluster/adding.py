"""Files of any size become a corpus: read by Ray Data in blocks, written where the store is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray.data
from pyarrow import compute
from ray.data import DataContext, Datasource, ReadTask
from ray.data.block import BlockMetadata
from ray.exceptions import RayError

from neuralviz.cluster.embedding import lost_in_words
from neuralviz.cluster.worker import open_store
from neuralviz.errors import NeuralvizError, StoreError, TextError
from neuralviz.reading.cleaning import clean_texts
from neuralviz.reading.lines import tidy
from neuralviz.reading.texts import ID_COLUMNS, guess_column
from neuralviz.store.corpus_reader import texts_table
from neuralviz.store.database import PATIENCE
from neuralviz.store.pieces import make_table, write_piece, writing
from neuralviz.store.rows import Column, corpus_rows, corpus_schema, is_number
from neuralviz.words import free_name, many

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neuralviz.reading.blocks import FilePart, Parts
    from neuralviz.reading.table import Table
    from neuralviz.store.corpora import Corpus, CorpusStore

ROWS_OF_PIECE = 1 << 17
LOOKED_AT = 20  # files whose first rows say which columns there are
_MOST_NOTES = 20
_NOTE = "note"


@dataclass(frozen=True)
class Layout:
    """Which columns of some files are read as what.

    Attributes:
        text: column of the texts.
        id: column of the ids; None where there is none.
        labels: the other columns.
        file: what the label that says the file is called; empty where there is one file.
    """

    text: str
    id: str | None
    labels: tuple[str, ...]
    file: str = ""

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of all labels."""
        return (*self.labels, *([self.file] if self.file else []))

    @property
    def schema(self) -> pa.Schema:
        """Columns of a block: those of the store, labels as they are written, and a note."""
        columns = [Column(title, "text") for title in self.titles]
        return corpus_schema(columns).append(pa.field(_NOTE, pa.string()))


@dataclass(frozen=True)
class Added:
    """A corpus that is there now.

    Attributes:
        corpus: the corpus.
        notes: sentences on what was left out or changed.
        is_new: whether it was not there before.
    """

    corpus: Corpus
    notes: tuple[str, ...]
    is_new: bool


@dataclass(frozen=True)
class Reading:
    """How many texts have been read.

    Attributes:
        n_texts: so far.
    """

    n_texts: int


def layout_of(parts: Parts, column: str | None, id_column: str | None) -> Layout:
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
    for wanted in (column, id_column):
        if wanted is not None and wanted not in columns:
            named = ", ".join(f"“{one[:40]}”" for one in columns)
            raise TextError(f"The files have no column “{wanted}”. Their columns are: {named}.")
    text = column or guess_column(*heads[0])
    used = (head.columns for _, head in heads if text in head.columns)  # of others no row is
    labels = tuple(one for one in dict.fromkeys(chain(*used)) if one != text)
    if id_column is None:
        by_name = {one.strip().lower(): one for one in reversed(labels)}
        id_column = next((by_name[one] for one in ID_COLUMNS if one in by_name), None)
    labels = tuple(one for one in labels if one != id_column)
    return Layout(text, id_column, labels, free_name("file", columns) if len(files) > 1 else "")


def source_digest(parts: Parts, layout: Layout, limit: int | None) -> str:
    """Hash of all that a corpus is made of, as the files are now."""
    asked = json.dumps([parts.digest, layout.text, layout.id, layout.titles, limit])
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def add_on_cluster(
    store: CorpusStore,
    name: str,
    parts: Parts,
    layout: Layout,
    limit: int | None = None,
    *,
    tell: Callable[[Reading], None] = lambda reading: None,
) -> Added:
    """Keep the texts of files as a corpus, in their order, or find it where it is kept already.

    Rows without a text, and what cannot be read, are left out and named. A file that breaks off is
    read up to there. Ids are taken as they are.

    Args:
        store: in a folder that all machines see.
        name: of the corpus.
        parts: the files.
        layout: their columns.
        limit: so many texts and no more.
        tell: called as texts have been read.

    Raises:
        TextError: there is no text in the files.
        StoreError: the corpus cannot be written; nothing of it is kept then.
        NeuralvizError: the cluster is gone, or has no room.
    """
    source = source_digest(parts, layout, limit)
    found = store.find_source(name, source)
    if found is not None:
        return Added(found, (), is_new=False)
    corpus = store.new(name, (), source)
    with writing(store.database):
        written = _write(store, corpus, parts, layout, limit, tell)
        n_texts = sum(one["n"] for one in written)
        notes = _few([*parts.notes, *(note for one in written for note in one["notes"])])
        n_broken = parts.n_broken + len({name for one in written for name in one["broken"]})
        n_files = parts.n_broken + len({part.name for part in parts.parts})
        if n_broken and n_files > 1:
            notes += (f"{n_broken:,} of {n_files:,} files could not be read to the end.",)
        if not n_texts:
            raise TextError(" ".join(["These files contain no text.", *notes[:5]]))
        kinds = [_kind([one["labels"][place] for one in written])
                 for place in range(len(layout.titles))]  # fmt: skip
        columns = tuple(Column(t, kind) for t, kind in zip(layout.titles, kinds, strict=True))
        schema = layout.schema.remove(layout.schema.get_field_index(_NOTE))
        fragments = [fragment for one in written for fragment in one["fragments"]]
        counted = replace(corpus, columns=columns, n_texts=n_texts, n_distinct=0)
        table = texts_table(corpus)
        make = partial(make_table, store.database, table, schema, fragments)
        store.database.write(make, PATIENCE)
        counted = replace(counted, n_distinct=store.n_distinct(counted, n_texts))
        there = store.announce(counted, wait=PATIENCE)  # another driver may have been faster
        return Added(there, notes, is_new=there.id == counted.id)


def _write(
    store: CorpusStore,
    corpus: Corpus,
    parts: Parts,
    layout: Layout,
    limit: int | None,
    tell: Callable[[Reading], None],
) -> list[dict[str, Any]]:
    """What was written of the files, piece by piece, in their order."""
    context = DataContext.get_current()
    before = context.execution_options.preserve_order
    context.execution_options.preserve_order = True
    written: list[dict[str, Any]] = []
    try:
        texts = ray.data.read_datasource(
            FilesOfTexts(parts.parts, layout), override_num_blocks=len(parts.parts)
        )
        if limit is not None:  # rows that only say something do not count
            texts = texts.map_batches(with_text, batch_size=None, batch_format="pyarrow")
            texts = texts.limit(limit)
        pieces = texts.map_batches(
            WriteTexts(str(store.folder.absolute()), texts_table(corpus)),
            batch_size=ROWS_OF_PIECE,
            batch_format="pyarrow",
        )
        for row in pieces.iter_rows():
            one = json.loads(row["written"])
            if one["failed"]:
                raise StoreError(one["failed"])
            written.append(one)
            tell(Reading(sum(piece["n"] for piece in written)))
    except RayError as error:
        raise NeuralvizError(lost_in_words(error, "Nothing was saved.")) from error
    finally:
        context.execution_options.preserve_order = before
    return written


def with_text(rows: pa.Table) -> pa.Table:
    """The rows that have a text."""
    return rows.filter(compute.is_valid(rows["text"]))


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
        """What Ray calls it."""
        return "Texts"

    def estimate_inmemory_data_size(self) -> int | None:
        """Not known before they are read."""
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
        except TextError as error:
            read = f" {many(n, 'text')} could be read before that." if n else ""
            yield _only_note(self._layout, f"{error}{read}", broken=self._part.name)


def block_rows(name: str, block: Table, layout: Layout) -> pa.Table:
    """The texts of some rows of a file, in columns of `Layout.schema`.

    Args:
        name: of the file.
        block: the rows.
        layout: of all files; a column that this one lacks is blank.
    """
    blank = [""] * len(block)
    columns = dict(zip(block.columns, block.values, strict=True))
    notes = list(block.notes)
    if layout.text not in columns and len(block):
        notes.append(f"{name} has no column “{layout.text[:40]}”: its rows were skipped.")
    parts = columns.get(layout.text, blank)
    texts, said, used = clean_texts(parts, block.lines, blanks="row", unit=block.unit)
    if layout.text in columns:
        notes += said
    unknown = sorted(columns.keys() - {layout.text, layout.id, *layout.labels})
    if unknown and layout.text in columns:
        notes.append(
            f"{name}: skipped the column “{unknown[0][:40]}”, which the first rows do not have."
        )
    labels = [
        pa.array([tidy(columns.get(title, blank)[at]) for at in used], pa.string())
        for title in layout.labels
    ]
    if layout.file:
        labels.append(pa.array([name] * len(used), pa.string()))
    rows = corpus_rows(texts, labels)
    if layout.id is not None:
        ids = [tidy(columns.get(layout.id, blank)[at]) or None for at in used]
        place = rows.schema.get_field_index("id")
        rows = rows.set_column(place, "id", pa.array(ids, pa.string()))
    if notes and not len(rows):
        return _only_note(layout, *(_named(name, note) for note in notes))
    said_at_first = [_as_note(*(_named(name, note) for note in notes))] if notes else []
    note = pa.array([*said_at_first, *[None] * (len(rows) - len(said_at_first))], pa.string())
    return rows.append_column(_NOTE, note).cast(layout.schema)


def _named(name: str, note: str) -> str:
    return note if name in note else f"{name}: {note}"


def _as_note(*notes: str, broken: str = "") -> str:
    """Sentences on what was left out, and the name of a file that broke off, for `_NOTE`."""
    return json.dumps([notes, broken])


def _only_note(layout: Layout, *notes: str, broken: str = "") -> pa.Table:
    """A row without a text that says something."""
    nothing: dict[str, pa.Array] = {field.name: pa.nulls(1, field.type) for field in layout.schema}
    nothing[_NOTE] = pa.array([_as_note(*notes, broken=broken)], pa.string())
    return pa.table(nothing, schema=layout.schema)


class WriteTexts:
    """Writes blocks of texts as pieces of a table, and says what is in them.

    Args:
        folder: of the store.
        table: that they belong to.
    """

    def __init__(self, folder: str, table: str) -> None:
        self._folder, self._table = folder, table

    def __call__(self, rows: pa.Table) -> pa.Table:
        said = [json.loads(note) for note in rows[_NOTE].drop_null().to_pylist()]
        texts = rows.filter(compute.is_valid(rows["text"])).drop_columns([_NOTE])
        about: dict[str, Any] = {
            "n": texts.num_rows,
            "notes": [note for notes, _ in said for note in notes],
            "broken": [name for _, name in said if name],
            "labels": [_numbers(texts[name]) for name in texts.column_names[3:]],
            "fragments": [],
            "failed": "",
        }
        try:
            if texts.num_rows:
                database = open_store(self._folder).database
                about["fragments"] = write_piece(database, self._table, texts, "create")
        except NeuralvizError as error:
            about["failed"] = str(error)
        return pa.table({"written": [json.dumps(about)]})


def _numbers(values: pa.ChunkedArray) -> tuple[bool, bool]:
    """Whether there is a value in a label at all, and whether all that are there are numbers."""
    filled = [value for value in compute.unique(values).to_pylist() if value and value.strip()]
    return bool(filled), all(is_number(value.strip()) for value in filled)


def _kind(found: Iterable[tuple[bool, bool]]) -> Any:
    """``number``, where all pieces have numbers alone; else ``text``."""
    pieces = list(found)
    return "number" if any(f for f, _ in pieces) and all(n for _, n in pieces) else "text"


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    """The first of some sentences, each once, and how many more there are."""
    different = list(dict.fromkeys(notes))
    more = len(different) - _MOST_NOTES
    return (*different[:_MOST_NOTES], *([f"And {more:,} more like this."] if more > 0 else []))
