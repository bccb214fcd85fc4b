"""Corpora that are kept: texts with their ids and labels, and their vectors.

A row in ``corpora`` is written after a corpus's texts and deleted before them, so that nothing
half-done is ever seen.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.errors import StoreError
from neuralviz.paths import home
from neuralviz.reading.cells import cell_text
from neuralviz.store.database import PATIENCE, WAIT, Database, current_time, key_in
from neuralviz.store.results import corpus_view, forget_results
from neuralviz.store.rows import (
    Column,
    Rows,
    corpus_rows,
    corpus_schema,
    describe_deleted,
    encode_labels,
    find_rows_with,
    label_columns,
    read_column,
    split_batches,
    text_ids,
    texts_table,
    to_numbers,
)
from neuralviz.store.vectors import KeptVectors, keys_of, text_keys
from neuralviz.words import free_name, search_terms

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.reading.texts import ReadTexts

KEYS_AT_ONCE = 1 << 22  # that are counted in one pass
MAX_NAME = 80  # characters


@dataclass(frozen=True)
class Corpus:
    """A kept corpus; its texts stay on disk.

    Attributes:
        id: our own, never changes.
        name: what people call it, no two alike.
        n_texts: rows, in the order they came in.
        n_distinct: different texts among them.
        created: ISO 8601, UTC.
        columns: of labels.
        owner: who alone sees it; empty for everybody.
        source: hash of the files it was read from, where they were too many to compare texts.
    """

    id: str
    name: str
    n_texts: int
    n_distinct: int
    created: str
    columns: tuple[Column, ...]
    owner: str = ""
    source: str = ""

    def column(self, name: str) -> Column:
        """The column of labels of this name; else a StoreError that names those there are."""
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(f"“{column.name}”" for column in self.columns) or "none"
        raise StoreError(f"“{self.name}” has no column “{name[:40]}”. Its columns are: {names}.")


class CorpusStore:
    """Everything of corpora that is kept in one folder.

    Any thread may call any method; nothing is held open between calls. What is read of a corpus is
    in the order of its rows, or of the rows that are asked for.

    Args:
        folder: made when something is first kept in it; by default the user's own.
        owner: who looks: sees their own corpora and everybody's, and adds their own. By default
            all are seen, and what is added is everybody's.

    Raises:
        StoreError: a newer neuralviz wrote the folder, or it cannot be read.
    """

    def __init__(self, folder: Path | None = None, owner: str | None = None) -> None:
        self.folder = folder or home() / "corpora"
        self.owner = owner
        self.database = Database(self.folder)
        self.vectors = KeptVectors(self.database)

    def corpora(self) -> tuple[Corpus, ...]:
        """All that are kept and may be seen, those made last first."""
        owners = ("", self.owner)
        return tuple(
            corpus
            for corpus in self._list_corpora()
            if self.owner is None or corpus.owner in owners
        )

    def _list_corpora(self) -> tuple[Corpus, ...]:
        return tuple(_read_corpus(row) for row in reversed(self.database.entries("corpora")))

    def corpus(self, name_or_id: str) -> Corpus:
        """A corpus by its name or id; else a StoreError that names those there are."""
        corpora = self.corpora()
        for corpus in corpora:
            if name_or_id in (corpus.name, corpus.id):
                return corpus
        visible_corpora = [corpus for corpus in corpora if corpus.owner in ("", self.owner)]
        names = ", ".join(f"“{corpus.name}”" for corpus in visible_corpora[:12]) or "none yet"
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
        """A corpus that nothing is kept of yet: its rows go to `texts_table`, then `announce` it.

        A name that is taken gets a number behind it; ``source`` is as of `Corpus`.
        """
        return Corpus(
            id=secrets.token_hex(6),
            name=free_name(tidy_name(name), [corpus.name for corpus in self.corpora()]),
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
        keep: Callable[[], object] = lambda: None,
        wait: float = WAIT,
    ) -> Corpus:
        """Say that a corpus is there, unless another one was made of the same files meanwhile.

        Args:
            corpus: with its numbers of texts.
            keep: writes its rows, where they are not there yet.
            wait: seconds for others who write.

        Returns:
            The corpus that is there.
        """

        def write() -> Corpus:
            earlier = corpus.source and self.find_source(corpus.name, corpus.source)
            if earlier:
                self.database.drop(texts_table(corpus))
                return earlier
            keep()
            self.database.registry("corpora").add([_registry_row(corpus)])
            return corpus

        announced = self.database.write(write, wait)
        return announced if announced.id != corpus.id else self._rename_if_taken(corpus)

    def add_blocks(
        self, name: str, columns: Sequence[Column], blocks: Iterable[pa.Table]
    ) -> Corpus:
        """`add` for more texts than memory holds: blocks of `corpus_rows`, read one by one."""
        corpus = self.new(name, tuple(columns))
        keys_written: list[np.ndarray] = []

        def write() -> None:
            table = texts_table(corpus)
            rows = split_batches(blocks, keys_written)
            self.database.create(table, rows, corpus_schema(columns))
            keys = np.concatenate([np.zeros(0, "S16"), *keys_written])
            counted = replace(corpus, n_texts=len(keys), n_distinct=len(np.unique(keys)))
            self.database.registry("corpora").add([_registry_row(counted)])

        self.database.write(write)
        return self._rename_if_taken(self.corpus(corpus.id))

    def _rename_if_taken(self, corpus: Corpus) -> Corpus:
        """Give a corpus another name when another process has kept one of its name meanwhile."""
        rivals = [rival for rival in self.corpora() if rival.id != corpus.id]
        first = (corpus.created, corpus.id)
        if any(o.name == corpus.name and (o.created, o.id) < first for o in rivals):
            return self.rename(corpus, free_name(corpus.name, [rival.name for rival in rivals]))
        return corpus

    def check_kept(self, corpus: Corpus) -> None:
        """Raises StoreError where a corpus was deleted."""
        if corpus.id not in {kept_corpus.id for kept_corpus in self.corpora()}:
            raise StoreError(describe_deleted(corpus))

    def find(self, name: str, read: ReadTexts) -> Corpus | None:
        """The corpus that `add` made of just these texts, ids and labels under this name.

        One that got a number behind its name counts.
        """
        named = name_pattern(name)
        labels = label_columns(read)
        columns = tuple(column for column, _ in labels)
        for corpus in self.corpora():
            if (
                named.fullmatch(corpus.name)
                and (corpus.n_texts, corpus.columns) == (len(read.texts), columns)
                and np.array_equal(self.keys(corpus), text_keys(read.texts))
                and tuple(self.ids(corpus)) == text_ids(read)
                and all(values.equals(self._label(corpus, column)) for column, values in labels)
            ):
                return corpus
        return None

    def find_source(self, name: str, source: str) -> Corpus | None:
        """The corpus that was made of just these files under this name, as of `find`."""
        named = name_pattern(name)
        for corpus in self.corpora():
            if named.fullmatch(corpus.name) and corpus.source == source:
                return corpus
        return None

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
        self._forget_results(corpus)
        remaining_keys = [self.keys(kept_corpus) for kept_corpus in self._list_corpora()]
        self.vectors.forget(
            np.setdiff1d(mine, np.concatenate(remaining_keys)) if remaining_keys else mine
        )

    def _forget_results(self, corpus: Corpus) -> None:
        try:
            forget_results(corpus_view(corpus.id))
        except OSError as error:
            raise StoreError(
                f"The results of “{corpus.name}” could not be deleted: {error}."
            ) from error

    # --- rows ------------------------------------------------------------------------------------

    def texts(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        """The texts."""
        return self._column(corpus, "text", rows).to_pylist()

    def ids(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        """The ids."""
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
        """A column as numbers: of many millions of texts, too, it takes little room.

        Returns:
            [text] int32 which of the names each has, -1 where there is none; and the names, in the
            order in which they first come. Names of numbers are as in `label_names`.
        """
        return encode_labels(self._label(corpus, corpus.column(name)))

    def rows_with_words(self, corpus: Corpus, query: str) -> np.ndarray:
        """Rows of the texts that hold every word of a query, in their order.

        As `neuralviz.maps.filtering.find_words`, without reading the texts into memory.
        """
        terms = search_terms(query)
        if not terms:
            return np.zeros(0, dtype=np.int64)
        with self.database.reading(missing=describe_deleted(corpus)):
            return find_rows_with(self.database.open(texts_table(corpus)), terms)

    def label_names(self, corpus: Corpus, name: str) -> list[str]:
        """The values of a column as names of labels, a text each; ``""`` where there is none."""
        return [cell_text(value).strip() for value in self.labels(corpus, name).tolist()]

    def keys(self, corpus: Corpus, rows: Rows | None = None) -> np.ndarray:
        """[text] hashes of the texts, by which their vectors are kept."""
        return keys_of(self._column(corpus, "key", rows))

    def key_batches(self, corpus: Corpus) -> Iterator[np.ndarray]:
        """The same piece by piece, in the order of the rows."""
        for batch in self.database.batches(texts_table(corpus), ["key"]):
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
        return to_numbers(values) if column.kind == "number" else values

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


def name_pattern(name: str) -> re.Pattern[str]:
    """The names that something called like this may have got: a number behind it counts."""
    return re.compile(rf"{re.escape(tidy_name(name))}( \(\d+\))?")


def _read_corpus(row: Mapping[str, Any]) -> Corpus:
    content = json.loads(row["about"])
    content["columns"] = tuple(Column(name, kind) for name, kind in content["columns"])
    return Corpus(row["id"], row["name"], created=row["created"], **content)


def _registry_row(corpus: Corpus) -> dict[str, str]:
    content = {
        "n_texts": corpus.n_texts,
        "n_distinct": corpus.n_distinct,
        "columns": [[column.name, column.kind] for column in corpus.columns],
        **({"owner": corpus.owner} if corpus.owner else {}),
        **({"source": corpus.source} if corpus.source else {}),
    }
    columns = {"id": corpus.id, "name": corpus.name, "created": corpus.created}
    return columns | {"about": json.dumps(content)}
