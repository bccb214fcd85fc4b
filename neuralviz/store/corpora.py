"""Saved corpora: texts with IDs and labels. A text's number is its row in the table."""

from __future__ import annotations

import json
import math
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute

from neuralviz.errors import StoreError
from neuralviz.files import corpus_view, forget_results
from neuralviz.paths import home
from neuralviz.reading.dates import date_forms, read_days
from neuralviz.reading.table import cell_text
from neuralviz.store.database import (
    PATIENCE,
    ROWS_AT_ONCE,
    WAIT,
    Database,
    Rows,
    all_rows,
    current_time,
    key_in,
    read_rows,
)
from neuralviz.store.vectors import KeptVectors, key_array, keys_of, text_keys
from neuralviz.words import free_name, printable_line, search_terms

if TYPE_CHECKING:
    from neuralviz.reading.texts import ReadTexts

LARGEST_WHOLE = 2**53  # from there on, float64 does not hold all integers; they are names
STRINGS = pa.large_string()  # plain strings are limited to 2 GiB per column
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

KEYS_AT_ONCE = 1 << 22  # counted in one pass
MAX_NAME = 80  # characters
_adding = threading.Lock()  # for sessions that start at the same time


class Column(NamedTuple):
    name: str
    kind: Literal["text", "number", "date"]


def describe_deleted(corpus: Corpus) -> str:
    return f"The corpus “{corpus.name}” was deleted in the meantime."


def texts_table(corpus: Corpus) -> str:
    return f"texts-{corpus.id}"


def corpus_rows(
    texts: Sequence[str],
    labels: Sequence[Sequence[str]],
    ids: Sequence[str | None] | None = None,  # a text without one goes by its number
) -> pa.Table:
    """Build rows of `texts_table`; labels stay as written, one list a column."""
    return pa.table(
        {
            "id": pa.nulls(len(texts), STRINGS) if ids is None else pa.array(ids, STRINGS),
            "text": pa.array(texts, STRINGS),
            "key": key_array(text_keys(texts)),
            **{f"label_{place}": pa.array(v, STRINGS) for place, v in enumerate(labels)},
        }
    )


@lru_cache(maxsize=2)
def read_row_ids(folder: Path, name: str, version: int) -> np.ndarray:
    """LanceDB's row IDs of one version of a table, ascending."""
    table = Database(folder).open(name)
    table.checkout(version)
    rows = all_rows(table.search().select(["key"]).with_row_id(True))
    return np.sort(rows["_rowid"].to_numpy())


def encode_labels(values: pa.Array) -> tuple[np.ndarray, tuple[str, ...]]:
    """Encode a column of labels, as `CorpusStore.label_codes` returns it."""
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(float)
        codes, is_filled = np.full(len(numbers), -1, np.int32), ~np.isnan(numbers)
        different, codes[is_filled] = np.unique(numbers[is_filled], return_inverse=True)
        return codes, tuple(map(cell_text, different.tolist()))
    encoded = _trim(values).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return codes, tuple(encoded.dictionary.to_pylist())


def _trim(values: pa.Array) -> pa.Array:
    """Strings without white space around them, null where nothing is left."""
    trimmed = compute.utf8_trim_whitespace(values)
    return compute.if_else(compute.equal(trimmed, ""), None, trimmed)


def are_whole(numbers: np.ndarray) -> bool:
    """Whether all finite numbers are whole."""
    finite = numbers[np.isfinite(numbers)]
    return bool((np.rint(finite) == finite).all())


def label_columns(read: ReadTexts) -> tuple[Column, ...]:
    """Label columns without the IDs; of numbers or dates if every filled cell is one."""
    columns = {name: values for name, values in read.labels.items() if values != read.ids}
    return tuple(Column(name, name_kind([find_kinds(v)])) for name, v in columns.items())


def find_kinds(values: Iterable[str]) -> list[str] | None:
    """What all filled cells may be, ``number`` or forms of dates; None if there are none."""
    filled = [trimmed for value in values if value and (trimmed := value.strip())]
    if not filled:
        return None
    return ["number"] if all(map(is_number, filled)) else sorted(date_forms(pa.array(filled)))


def name_kind(parts: Iterable[Sequence[str] | None]) -> Literal["text", "number", "date"]:
    """The kind of a column whose parts may be so and so; see `find_kinds`."""
    possible = [set(kinds) for kinds in parts if kinds is not None]
    common = set.intersection(*possible) if possible else set()
    if len(common) != 1:  # neither, or day and month may be exchanged
        return "text"
    return "number" if "number" in common else "date"


def is_number(value: str) -> bool:
    """Whether a cell is a finite number; ``007`` is not."""
    if not _NUMBER.fullmatch(value):
        return False
    number = abs(float(value))
    return math.isfinite(number) and (number < LARGEST_WHOLE or not value.strip("+-").isdigit())


@dataclass(frozen=True)
class Corpus:
    id: str  # internal, permanent
    name: str  # unique
    n_texts: int  # rows
    n_distinct: int  # distinct texts
    created: str  # ISO 8601, UTC
    columns: tuple[Column, ...]  # of labels
    owner: str = ""  # the only user who sees it; empty for everyone
    source: str = ""  # hash of the source files, for corpora too large to compare by text

    def column(self, name: str) -> Column:
        """Find a label column by name. Raises StoreError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(f"“{column.name}”" for column in self.columns) or "none"
        raise StoreError(f"“{self.name}” has no column “{name[:40]}”. Its columns are: {names}.")


class CorpusStore:
    """The corpora saved in one folder, by default the user's own.

    All methods are thread-safe. Results follow the order of the corpus or of ``rows``. An owner
    sees their own and ownerless corpora; a store without an owner sees all. Raises StoreError if
    the folder is unreadable or was written by a newer neuralviz.
    """

    def __init__(self, folder: Path | None = None, owner: str | None = None) -> None:
        self.folder = folder or home() / "corpora"
        self.owner = owner
        self.database = Database(self.folder)
        self.vectors = KeptVectors(self.database)

    def corpora(self) -> tuple[Corpus, ...]:
        """List the visible corpora, newest first."""
        corpora = self._list_corpora()
        return tuple(c for c in corpora if self.owner is None or c.owner in ("", self.owner))

    def _list_corpora(self) -> tuple[Corpus, ...]:
        return tuple(_read_corpus(row) for row in reversed(self.database.entries("corpora")))

    def corpus(self, name_or_id: str) -> Corpus:
        """Find a corpus by name or ID. Raises StoreError if there is none."""
        corpora = self.corpora()
        for corpus in corpora:
            if name_or_id in (corpus.name, corpus.id):
                return corpus
        visible = [f"“{corpus.name}”" for corpus in corpora if corpus.owner in ("", self.owner)]
        names = ", ".join(visible[:12]) or "none yet"
        raise StoreError(f"No corpus named “{name_or_id[:40]}”. Saved corpora: {names}.")

    def add(self, name: str, read: ReadTexts) -> Corpus:
        """Save texts; a taken name gets a number. Raises StoreError, e.g. for an empty name."""
        columns = label_columns(read)
        rows = corpus_rows(read.texts, [read.labels[column.name] for column in columns], read.ids)
        n_distinct = len(np.unique(text_keys(read.texts)))
        corpus = replace(self.new(name, columns), n_texts=len(rows), n_distinct=n_distinct)
        return self.announce(corpus, rows)

    def new(self, name: str, columns: tuple[Column, ...], source: str = "") -> Corpus:
        """Describe a corpus whose rows are yet to be written and counted."""
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

    def announce(self, corpus: Corpus, rows: pa.Table | None = None, wait: float = WAIT) -> Corpus:
        """Register a corpus and write its rows, or return an earlier one of the same files."""
        with self.database.lock(wait):
            earlier = corpus.source and self.find_source(corpus.name, corpus.source)
            if earlier:
                self.database.drop(texts_table(corpus))
                return earlier
            rival_names = [rival.name for rival in self.corpora()]
            if rows is not None:
                self.database.create(texts_table(corpus), rows)
            kept = replace(corpus, name=free_name(corpus.name, rival_names))
            self.database.registry("corpora").add([_registry_row(kept)])
            return kept

    def check_kept(self, corpus: Corpus) -> None:
        """Raises StoreError if the corpus was deleted."""
        if corpus.id not in {kept_corpus.id for kept_corpus in self.corpora()}:
            raise StoreError(describe_deleted(corpus))

    def find(self, name: str, read: ReadTexts) -> Corpus | None:
        """Find a corpus that `add` made from the same texts, IDs and labels under this name."""
        columns = label_columns(read)
        for corpus in self._list_named(name):
            if (
                (corpus.n_texts, corpus.columns) == (len(read.texts), columns)
                and np.array_equal(self.keys(corpus), text_keys(read.texts))
                and self.ids(corpus) == list(read.ids or map(str, range(1, corpus.n_texts + 1)))
                and all(
                    self._written(corpus, column).to_pylist() == list(read.labels[column.name])
                    for column in columns
                )
            ):
                return corpus
        return None

    def find_source(self, name: str, source: str) -> Corpus | None:
        return next((kept for kept in self._list_named(name) if kept.source == source), None)

    def _list_named(self, name: str) -> list[Corpus]:
        """List corpora of this name, with or without a number appended."""
        pattern = re.compile(rf"{re.escape(tidy_name(name))}( \(\d+\))?")
        return [corpus for corpus in self.corpora() if pattern.fullmatch(corpus.name)]

    def rename(self, corpus: Corpus, name: str) -> Corpus:
        """Rename a corpus. Raises StoreError if the name is empty or taken."""
        name = tidy_name(name)
        if any(rival.name == name and rival.id != corpus.id for rival in self.corpora()):
            raise StoreError(f"A corpus named “{name}” already exists. Choose another name.")
        condition = f"id = '{corpus.id}'"
        with self.database.lock():
            self.database.registry("corpora").update(where=condition, values={"name": name})
        return self.corpus(corpus.id)

    def leave_out(self, corpus: Corpus, keys: np.ndarray) -> Corpus | None:
        """Remove texts by their keys; None, with nothing removed, if the corpus has maps."""
        condition = key_in(keys)
        with self.database.lock(PATIENCE):
            maps = self.database.entries("maps", ("id", "corpus", "created"))
            if any(row["corpus"] == corpus.id for row in maps):
                return None
            self.database.open(texts_table(corpus)).delete(condition)
            return self._update_counts(corpus)

    def recount(self, corpus: Corpus) -> Corpus:
        """Correct the text counts after an interrupted `leave_out`."""
        with self.database.reading(missing=describe_deleted(corpus)):
            n_texts = self.database.open(texts_table(corpus)).count_rows()
        if n_texts == corpus.n_texts:
            return corpus
        with self.database.lock(PATIENCE):
            return self._update_counts(corpus)

    def _update_counts(self, corpus: Corpus) -> Corpus:
        """Must run within `Database.lock`."""
        n_texts = self.database.open(texts_table(corpus)).count_rows()
        counted = replace(corpus, n_texts=n_texts, n_distinct=self.n_distinct(corpus, n_texts))
        values = {"about": _registry_row(counted)["about"]}
        self.database.registry("corpora").update(where=f"id = '{corpus.id}'", values=values)
        return counted

    def delete(self, corpus: Corpus) -> None:
        """Delete a corpus, its maps and results, and vectors that no other corpus uses."""
        mine = np.unique(self.keys(corpus))
        with self.database.lock():
            self.database.registry("corpora").delete(f"id = '{corpus.id}'")
            self.database.drop(texts_table(corpus))
            forget_results(corpus_view(corpus.id))
        self.database.forget("maps", corpus=corpus.id)
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
        """[text] values of a column: strings, or float64 with NaN for missing values."""
        column = corpus.column(name)
        values = self._label(corpus, column, rows)
        if column.kind == "number":
            return values.to_numpy(zero_copy_only=False).astype(float)
        return np.array(values.to_pylist(), dtype=object)

    def days(self, corpus: Corpus, name: str) -> np.ndarray:
        """[text] float64 days since 1970 of a column of dates, NaN for none."""
        return read_days(_trim(self._written(corpus, corpus.column(name))))

    def label_codes(self, corpus: Corpus, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """[text] int32 codes of a column's labels, -1 for none; and the label of each code."""
        return encode_labels(self._label(corpus, corpus.column(name)))

    def rows_with_words(self, corpus: Corpus, query: str) -> np.ndarray:
        """Rows that contain all words and quoted phrases; words match parts of longer words."""
        terms = search_terms(query)
        if not terms:
            return np.zeros(0, dtype=np.int64)
        quoted = [term.replace("'", "''") for term in terms]
        condition = " AND ".join(f"contains(lower(text), '{term}')" for term in quoted)
        with self.database.reading(missing=describe_deleted(corpus)):
            table = self.database.open(texts_table(corpus))
            matches = all_rows(table.search().where(condition).select(["key"]).with_row_id(True))
            row_ids = read_row_ids(self.folder, texts_table(corpus), table.version)
            return np.searchsorted(row_ids, np.sort(matches["_rowid"].to_numpy()))

    def label_names(self, corpus: Corpus, name: str) -> list[str]:
        """[text] labels of a column as strings, ``""`` for none."""
        return [cell_text(value).strip() for value in self.labels(corpus, name).tolist()]

    def keys(self, corpus: Corpus, rows: Rows | None = None) -> np.ndarray:
        """[text] keys: hashes of the texts, under which vectors are stored."""
        return keys_of(self._column(corpus, "key", rows))

    def key_batches(self, corpus: Corpus) -> Iterator[np.ndarray]:
        with self.database.reading():
            table = self.database.open(texts_table(corpus))
            for batch in table.search().select(["key"]).to_batches(ROWS_AT_ONCE):
                yield keys_of(batch["key"])

    def n_distinct(self, corpus: Corpus, n_texts: int) -> int:
        """Count the distinct texts, one range of keys at a time to bound memory."""
        width = max(1, 256 * KEYS_AT_ONCE // max(n_texts, 1))  # of a range of first bytes
        n = 0
        for low in range(0, 256, width):
            within: list[np.ndarray] = [np.zeros(0, "S16")]
            for keys in self.key_batches(corpus):
                first = keys.view(np.uint8).reshape(-1, keys.itemsize)[:, 0]
                within.append(keys[(first >= low) & (first < low + width)])
            n += len(np.unique(np.concatenate(within)))
        return n

    def _label(self, corpus: Corpus, column: Column, rows: Rows | None = None) -> pa.Array:
        values = self._written(corpus, column, rows)
        return _trim(values).cast(pa.float64()) if column.kind == "number" else values

    def _written(self, corpus: Corpus, column: Column, rows: Rows | None = None) -> pa.Array:
        return self._column(corpus, f"label_{corpus.columns.index(column)}", rows)

    def _column(self, corpus: Corpus, name: str, rows: Rows | None = None) -> pa.Array:
        with self.database.reading(missing=describe_deleted(corpus)):
            table = self.database.open(texts_table(corpus))
            return read_rows(table, [name], rows)[name].combine_chunks()


def tidy_name(name: str) -> str:
    """Drop unprintable characters and shorten. Raises StoreError if nothing is left."""
    tidied = printable_line(name)[:MAX_NAME].strip()
    if not tidied:
        raise StoreError("Enter a name for the corpus.")
    return tidied


def _read_corpus(row: Mapping[str, Any]) -> Corpus:
    content = json.loads(row["about"])
    content["columns"] = tuple(Column(*column) for column in content["columns"])
    return Corpus(row["id"], row["name"], created=row["created"], **content)


def _registry_row(corpus: Corpus) -> dict[str, str]:
    content = asdict(corpus)
    columns = {name: content.pop(name) for name in ("id", "name", "created")}
    return columns | {"about": json.dumps(content)}


def add_once(store: CorpusStore, name: str, add: Callable[[], Corpus]) -> Corpus | None:
    """Call ``add`` unless this store has done so before; its corpus may be deleted by now."""
    mark = store.folder / f"{name}.added"
    with _adding:
        if mark.exists():
            return None
        corpus = add()
        with store.database.lock():
            mark.touch()
    return corpus
