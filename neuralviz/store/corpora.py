"""Corpora that are kept: texts with their ids and labels, and their vectors.

The place of a row in its table is the text's number. A row in ``corpora`` is written after a
corpus's texts and deleted before them, so that nothing half-done is ever seen.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import compute

from neuralviz.errors import StoreError
from neuralviz.paths import home
from neuralviz.reading.cells import cell_text
from neuralviz.store.database import PATIENCE, WAIT, Database, all_rows, current_time, key_in
from neuralviz.store.files import corpus_view, folder_error, forget_results
from neuralviz.store.vectors import KEY_BYTES, KeptVectors, key_array, keys_of, text_keys
from neuralviz.words import free_name, search_terms

if TYPE_CHECKING:
    from lancedb.table import Table

    from neuralviz.reading.texts import ReadTexts

FIRST_LOOK = 1000  # numbers
LARGEST_WHOLE = 2**53  # up to which every whole number has a double of its own; others are names
STRINGS = pa.large_string()  # in a column of others there is no room for more than 2 GiB of text
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")

ColumnKind = Literal["text", "number"]
Rows = Sequence[int] | np.ndarray
KEYS_AT_ONCE = 1 << 22  # that are counted in one pass
MAX_NAME = 80  # characters
_adding = threading.Lock()  # for the sessions that open the app together


@dataclass(frozen=True)
class Column:
    """A column of labels: its name in the file, and whether its values are numbers."""

    name: str
    kind: ColumnKind


def describe_deleted(corpus: Corpus) -> str:
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
    """Texts as rows of `texts_table`, with [column] arrays of labels."""
    return pa.table(
        {
            "id": pa.nulls(len(texts), STRINGS) if ids is None else pa.array(ids, STRINGS),
            "text": pa.array(texts, STRINGS),
            "key": key_array(text_keys(texts)),
            **{f"label_{place}": values for place, values in enumerate(labels)},
        }
    )


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


def row_ids(table: Table) -> np.ndarray:
    """[row] the database's own numbers of the rows of a table as it is now, rising."""
    rows = all_rows(table.search().select(["key"]).with_row_id(True))
    return np.sort(rows["_rowid"].to_numpy())


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
    stripped = compute.utf8_trim_whitespace(values)
    encoded = compute.if_else(compute.equal(stripped, ""), None, stripped).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return codes, tuple(encoded.dictionary.to_pylist())


def are_whole(numbers: np.ndarray) -> bool:
    """Whether all numbers are whole, those left out that are not finite."""
    for sample in (numbers[:FIRST_LOOK], numbers):  # the first ones mostly tell
        finite = sample[np.isfinite(sample)]
        if not (np.rint(finite) == finite).all():
            return False
    return True


def label_columns(read: ReadTexts) -> list[tuple[Column, pa.Array]]:
    """The columns beside text and id: numbers, where all that is not blank is one; else strings."""
    columns: list[tuple[Column, pa.Array]] = []
    for title, values in read.labels.items():
        filled = [value.strip() for value in values]
        if values == read.ids:
            continue
        if any(filled) and all(is_number(value) for value in filled if value):
            numbers = [float(value) if value else None for value in filled]
            columns.append((Column(title, "number"), pa.array(numbers, pa.float64())))
        else:
            columns.append((Column(title, "text"), pa.array(values, STRINGS)))
    return columns


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


@dataclass(frozen=True)
class Corpus:
    """A kept corpus; its texts stay on disk."""

    id: str  # our own, never changes
    name: str  # what people call it, no two alike
    n_texts: int  # rows, in the order they came in
    n_distinct: int  # different texts among them
    created: str  # ISO 8601, UTC
    columns: tuple[Column, ...]  # of labels
    owner: str = ""  # who alone sees it; empty for everybody
    # hash of the files it was read from, where they were too many to compare texts
    source: str = ""

    def column(self, name: str) -> Column:
        """The column of labels of this name; else a StoreError that names those there are."""
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(f"“{column.name}”" for column in self.columns) or "none"
        raise StoreError(f"“{self.name}” has no column “{name[:40]}”. Its columns are: {names}.")


class CorpusStore:
    """Everything of corpora that is kept in one folder, by default the user's own.

    Any thread may call any method; nothing is held open between calls. What is read of a corpus is
    in the order of its rows, or of the rows that are asked for. An owner sees their own corpora and
    everybody's, and adds their own; without one all are seen, and what is added is everybody's. A
    StoreError where a newer neuralviz wrote the folder, or it cannot be read.
    """

    def __init__(self, folder: Path | None = None, owner: str | None = None) -> None:
        self.folder = folder or home() / "corpora"
        self.owner = owner
        self.database = Database(self.folder)
        self.vectors = KeptVectors(self.database)

    def corpora(self) -> tuple[Corpus, ...]:
        """All that are kept and may be seen, those made last first."""
        corpora = self._list_corpora()
        return tuple(c for c in corpora if self.owner is None or c.owner in ("", self.owner))

    def _list_corpora(self) -> tuple[Corpus, ...]:
        return tuple(_read_corpus(row) for row in reversed(self.database.entries("corpora")))

    def corpus(self, name_or_id: str) -> Corpus:
        """A corpus by its name or id; else a StoreError that names those there are."""
        corpora = self.corpora()
        for corpus in corpora:
            if name_or_id in (corpus.name, corpus.id):
                return corpus
        visible = [f"“{corpus.name}”" for corpus in corpora if corpus.owner in ("", self.owner)]
        names = ", ".join(visible[:12]) or "none yet"
        raise StoreError(f"No corpus named “{name_or_id[:40]}”. Saved corpora: {names}.")

    def add(self, name: str, read: ReadTexts) -> Corpus:
        """Keep texts as a corpus; nothing is embedded yet.

        A name that is taken gets a number behind it. Columns whose values are all numbers are kept
        as numbers. Raises StoreError where the name is none or nothing can be written.
        """
        labels = label_columns(read)
        rows = corpus_rows(read.texts, [values for _, values in labels], read.ids)
        return self.add_blocks(name, [column for column, _ in labels], [rows])

    def new(self, name: str, columns: tuple[Column, ...], source: str = "") -> Corpus:
        """A corpus that nothing is kept of yet: write its rows to `texts_table`, `announce` it."""
        return Corpus(
            id=secrets.token_hex(6),
            name=tidy_name(name),
            n_texts=0,
            n_distinct=0,
            created=current_time(),
            columns=columns,
            owner=self.owner or "",
            source=source,
        )

    def announce(
        self,
        corpus: Corpus,
        keep: Callable[[Corpus], Corpus] = lambda corpus: corpus,
        wait: float = WAIT,
    ) -> Corpus:
        """Say that a corpus is there, unless another one was made of the same files meanwhile.

        ``keep`` writes its rows, and returns it with its numbers of texts.
        """

        def write() -> Corpus:
            earlier = corpus.source and self.find_source(corpus.name, corpus.source)
            if earlier:
                self.database.drop(texts_table(corpus))
                return earlier
            rival_names = [rival.name for rival in self.corpora()]
            kept = replace(keep(corpus), name=free_name(corpus.name, rival_names))
            self.database.registry("corpora").add([_registry_row(kept)])
            return kept

        return self.database.write(write, wait)

    def add_blocks(
        self, name: str, columns: Sequence[Column], blocks: Iterable[pa.Table]
    ) -> Corpus:
        """`add` for more texts than memory holds: blocks of `corpus_rows`, read one by one."""
        keys_written: list[np.ndarray] = []

        def split_batches() -> Iterator[pa.RecordBatch]:
            for block in blocks:
                keys_written.extend(keys_of(chunk) for chunk in block["key"].chunks)
                yield from block.to_batches()

        def write_rows(corpus: Corpus) -> Corpus:
            self.database.create(texts_table(corpus), split_batches(), corpus_schema(columns))
            keys = np.concatenate([np.zeros(0, "S16"), *keys_written])
            return replace(corpus, n_texts=len(keys), n_distinct=len(np.unique(keys)))

        return self.announce(self.new(name, tuple(columns)), write_rows)

    def check_kept(self, corpus: Corpus) -> None:
        """Raises StoreError where a corpus was deleted."""
        if corpus.id not in {kept_corpus.id for kept_corpus in self.corpora()}:
            raise StoreError(describe_deleted(corpus))

    def find(self, name: str, read: ReadTexts) -> Corpus | None:
        """The corpus that `add` made of just these, by this name or with a number behind it."""
        labels = label_columns(read)
        columns = tuple(column for column, _ in labels)
        for corpus in self._list_named(name):
            if (
                (corpus.n_texts, corpus.columns) == (len(read.texts), columns)
                and np.array_equal(self.keys(corpus), text_keys(read.texts))
                and self.ids(corpus) == list(read.ids or map(str, range(1, corpus.n_texts + 1)))
                and all(values.equals(self._label(corpus, column)) for column, values in labels)
            ):
                return corpus
        return None

    def find_source(self, name: str, source: str) -> Corpus | None:
        """The corpus that was made of just these files under this name, as of `find`."""
        return next((kept for kept in self._list_named(name) if kept.source == source), None)

    def _list_named(self, name: str) -> list[Corpus]:
        """Corpora that are called so, with a number behind it or without."""
        pattern = re.compile(rf"{re.escape(tidy_name(name))}( \(\d+\))?")
        return [corpus for corpus in self.corpora() if pattern.fullmatch(corpus.name)]

    def rename(self, corpus: Corpus, name: str) -> Corpus:
        """Give a corpus another name; a StoreError where it is none, or taken."""
        name = tidy_name(name)
        if any(rival.name == name and rival.id != corpus.id for rival in self.corpora()):
            raise StoreError(f"A corpus named “{name}” already exists. Choose another name.")
        condition = f"id = '{corpus.id}'"
        registry = self.database.registry
        self.database.write(
            lambda: registry("corpora").update(where=condition, values={"name": name})
        )
        return self.corpus(corpus.id)

    def leave_out(self, corpus: Corpus, keys: np.ndarray) -> Corpus | None:
        """Take texts out of a corpus by their keys; None where maps show them."""
        condition = key_in(keys)

        def write() -> Corpus | None:
            maps = self.database.entries("maps", ("id", "corpus", "created"))
            if any(row["corpus"] == corpus.id for row in maps):
                return None
            self.database.open(texts_table(corpus)).delete(condition)
            return self._update_counts(corpus)

        return self.database.write(write, PATIENCE)

    def recount(self, corpus: Corpus) -> Corpus:
        """The corpus with its numbers of texts, corrected where `leave_out` was cut off."""
        with self.database.reading(missing=describe_deleted(corpus)):
            n_texts = self.database.open(texts_table(corpus)).count_rows()
        if n_texts == corpus.n_texts:
            return corpus
        return self.database.write(lambda: self._update_counts(corpus), PATIENCE)

    def _update_counts(self, corpus: Corpus) -> Corpus:
        """Within a write."""
        n_texts = self.database.open(texts_table(corpus)).count_rows()
        counted = replace(corpus, n_texts=n_texts, n_distinct=self.n_distinct(corpus, n_texts))
        values = {"about": _registry_row(counted)["about"]}
        self.database.registry("corpora").update(where=f"id = '{corpus.id}'", values=values)
        return counted

    def delete(self, corpus: Corpus) -> None:
        """Forget a corpus, its maps and results, and vectors of texts no other corpus has."""
        mine, registry = np.unique(self.keys(corpus)), self.database.registry
        self.database.write(lambda: registry("corpora").delete(f"id = '{corpus.id}'"))
        self.database.write(lambda: self.database.drop(texts_table(corpus)))
        self.database.forget("maps", corpus=corpus.id)
        try:
            forget_results(corpus_view(corpus.id))
        except OSError as error:
            raise StoreError(
                f"The results of “{corpus.name}” could not be deleted: {error}."
            ) from error
        remaining_keys = [self.keys(kept_corpus) for kept_corpus in self._list_corpora()]
        self.vectors.forget(
            np.setdiff1d(mine, np.concatenate(remaining_keys)) if remaining_keys else mine
        )

    # --- rows ------------------------------------------------------------------------------------

    def texts(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        return self._column(corpus, "text", rows).to_pylist()

    def ids(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        ids = self._column(corpus, "id", rows)
        if not ids.null_count:
            return ids.to_pylist()
        positions = np.arange(len(ids)) if rows is None else np.asarray(rows)
        numbers = zip(ids.to_pylist(), positions.tolist(), strict=True)
        return [str(row + 1) if text_id is None else text_id for text_id, row in numbers]

    def labels(self, corpus: Corpus, name: str, rows: Rows | None = None) -> np.ndarray:
        """[text] the values of a column: strings, or float64 with NaN where there is none."""
        column = corpus.column(name)
        values = self._label(corpus, column, rows)
        if column.kind == "number":
            return values.to_numpy(zero_copy_only=False).astype(float)
        return np.array(values.to_pylist(), dtype=object)

    def label_codes(self, corpus: Corpus, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """[text] int32 which of some names each text has, -1 where there is none; and the names.

        They are as in `label_names`, in the order in which they first come.
        """
        return encode_labels(self._label(corpus, corpus.column(name)))

    def rows_with_words(self, corpus: Corpus, query: str) -> np.ndarray:
        """Rows whose texts hold every word of a query, in their order; none for a blank query.

        A word may be part of a longer one; what stands in quotation marks has to be there just so.
        """
        terms = search_terms(query)
        if not terms:
            return np.zeros(0, dtype=np.int64)
        quoted = [term.replace("'", "''") for term in terms]
        condition = " AND ".join(f"contains(lower(text), '{term}')" for term in quoted)
        with self.database.reading(missing=describe_deleted(corpus)):
            table = self.database.open(texts_table(corpus))
            matches = all_rows(table.search().where(condition).select(["key"]).with_row_id(True))
            return np.searchsorted(row_ids(table), np.sort(matches["_rowid"].to_numpy()))

    def label_names(self, corpus: Corpus, name: str) -> list[str]:
        """The values of a column as names of labels, a text each; ``""`` where there is none."""
        return [cell_text(value).strip() for value in self.labels(corpus, name).tolist()]

    def keys(self, corpus: Corpus, rows: Rows | None = None) -> np.ndarray:
        """[text] hashes of the texts, by which their vectors are kept."""
        return keys_of(self._column(corpus, "key", rows))

    def key_batches(self, corpus: Corpus) -> Iterator[np.ndarray]:
        """`keys` piece by piece, in the order of the rows."""
        with self.database.reading():
            table = self.database.open(texts_table(corpus))
            for batch in table.search().select(["key"]).to_batches():
                yield keys_of(batch["key"])

    def n_distinct(self, corpus: Corpus, n_texts: int) -> int:
        """Different texts of a corpus, counted by ranges of their keys: memory stays what it is."""
        passes = min(256, -(-n_texts // KEYS_AT_ONCE))
        edges = sorted({round(256 * step / max(passes, 1)) for step in range(passes + 1)})
        n = 0
        for low, high in pairwise(edges):
            within: list[np.ndarray] = [np.zeros(0, "S16")]
            for keys in self.key_batches(corpus):
                first = keys.view(np.uint8).reshape(-1, keys.itemsize)[:, 0]
                within.append(keys[(first >= low) & (first < high)])
            n += len(np.unique(np.concatenate(within)))
        return n

    def _label(self, corpus: Corpus, column: Column, rows: Rows | None = None) -> pa.Array:
        """A column of labels: strings, or doubles."""
        values = self._column(corpus, f"label_{corpus.columns.index(column)}", rows)
        if column.kind == "text" or pa.types.is_floating(values.type):
            return values
        # what is read in blocks is kept as written, and a blank is no number
        return compute.if_else(compute.equal(values, ""), None, values).cast(pa.float64())

    def _column(self, corpus: Corpus, name: str, rows: Rows | None = None) -> pa.Array:
        """A column in the order of the rows, which is that in which they were written."""
        with self.database.reading(missing=describe_deleted(corpus)):
            return read_column(self.database.open(texts_table(corpus)), name, rows)


def tidy_name(name: str) -> str:
    """A name without what cannot be printed, and not too long; a StoreError where it is empty."""
    printable = "".join(c if c.isprintable() else " " for c in name)
    tidied = " ".join(printable.split())[:MAX_NAME].strip()
    if not tidied:
        raise StoreError("Enter a name for the corpus.")
    return tidied


def _read_corpus(row: Mapping[str, Any]) -> Corpus:
    content = json.loads(row["about"])
    content["columns"] = tuple(Column(name, kind) for name, kind in content["columns"])
    return Corpus(row["id"], row["name"], created=row["created"], **content)


def _registry_row(corpus: Corpus) -> dict[str, str]:
    content = {
        "n_texts": corpus.n_texts,
        "n_distinct": corpus.n_distinct,
        "columns": [[column.name, column.kind] for column in corpus.columns],
        "owner": corpus.owner,
        "source": corpus.source,
    }
    columns = {"id": corpus.id, "name": corpus.name, "created": corpus.created}
    return columns | {"about": json.dumps(content)}


def add_once(store: CorpusStore, name: str, add: Callable[[], Corpus]) -> Corpus | None:
    """The corpus that ``add`` makes; None where that has been done before in this store.

    A mark of this name stays in its folder, also when somebody deletes the corpus.
    """
    mark = store.folder / f"{name}.added"
    with _adding:
        if mark.exists():
            return None
        corpus = add()
        try:
            mark.touch()
        except OSError as error:
            raise folder_error(f"Could not write {mark}: {error.strerror or error}.") from error
    return corpus
