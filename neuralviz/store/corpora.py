"""Corpora that are kept: texts with their ids and labels, and their vectors.

A row in ``corpora`` is written after a corpus's texts and deleted before them, so that nothing
half-done is ever seen.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from neuralviz.errors import StoreError
from neuralviz.paths import home
from neuralviz.store.database import Database, now
from neuralviz.store.results import corpus_view, forget_results
from neuralviz.store.vectors import KeptVectors, key_array, keys_of, text_keys
from neuralviz.words import free_name

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.reading.texts import ReadTexts

MAX_NAME = 80  # characters
LARGEST_WHOLE = 2**53  # up to which every whole number has a double of its own; others are names
_ASKED_ONE_BY_ONE = 1000  # rows; above, the whole column is read
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?")

ColumnKind = Literal["text", "number"]
Rows = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Column:
    """A column of labels: its name in the file, and whether its values are numbers."""

    name: str
    kind: ColumnKind


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
    """

    id: str
    name: str
    n_texts: int
    n_distinct: int
    created: str
    columns: tuple[Column, ...]
    owner: str = ""

    def column(self, name: str) -> Column:
        """The column of labels of this name.

        Raises:
            StoreError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        has = ", ".join(f"“{column.name}”" for column in self.columns) or "none"
        raise StoreError(f"“{self.name}” has no column “{name[:40]}”. Its columns are: {has}.")


class CorpusStore:
    """Everything of corpora that is kept in one folder.

    Any thread may call any method; nothing is held open between calls.

    Attributes:
        folder: where it is kept.
        database: in which others keep what belongs to a corpus: its maps.
        vectors: by embedder and text, shared by the corpora.

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
        seen = ("", self.owner)
        return tuple(one for one in self._all() if self.owner is None or one.owner in seen)

    def _all(self) -> tuple[Corpus, ...]:
        return tuple(_corpus(row) for row in reversed(self.database.entries("corpora")))

    def corpus(self, name_or_id: str) -> Corpus:
        """A corpus by its name or id.

        Raises:
            StoreError: there is none; the message names those there are.
        """
        corpora = self.corpora()
        for corpus in corpora:
            if name_or_id in (corpus.name, corpus.id):
                return corpus
        known = [corpus for corpus in corpora if corpus.owner in ("", self.owner)]
        names = ", ".join(f"“{corpus.name}”" for corpus in known[:12]) or "none yet"
        raise StoreError(f"No corpus named “{name_or_id[:40]}”. Saved corpora: {names}.")

    def add(self, name: str, read: ReadTexts) -> Corpus:
        """Keep texts as a corpus; nothing is embedded yet.

        Args:
            name: one that is taken gets a number behind it.
            read: the texts with ids and labels; columns whose values are all numbers are kept as
                numbers.

        Raises:
            StoreError: the name is none, or it cannot be written; nothing is kept then.
        """
        name = _tidy(name)
        labels = _labels(read)
        keys = text_keys(read.texts)
        rows = pa.table(
            {
                "row": pa.array(np.arange(len(read.texts), dtype=np.int32)),
                "id": pa.array(_ids(read), pa.string()),
                "text": pa.array(read.texts, pa.large_string()),
                "key": key_array(keys),
                **{f"label_{place}": values for place, (_, values) in enumerate(labels)},
            }
        )
        corpus = Corpus(
            id=secrets.token_hex(6),
            name=free_name(name, [corpus.name for corpus in self.corpora()]),
            n_texts=len(read.texts),
            n_distinct=len(np.unique(keys)),
            created=now(),
            columns=tuple(column for column, _ in labels),
            owner=self.owner or "",
        )
        self.database.write(lambda: self.database.create(_table(corpus), rows))
        self.database.write(lambda: self.database.registry("corpora").add([_entry(corpus)]))
        return self._set_apart(corpus)

    def _set_apart(self, corpus: Corpus) -> Corpus:
        """Give a corpus another name when another process has kept one of its name meanwhile."""
        others = [other for other in self.corpora() if other.id != corpus.id]
        first = (corpus.created, corpus.id)
        if any(o.name == corpus.name and (o.created, o.id) < first for o in others):
            return self.rename(corpus, free_name(corpus.name, [other.name for other in others]))
        return corpus

    def check_kept(self, corpus: Corpus) -> None:
        """Find out whether a corpus is still there.

        Raises:
            StoreError: it was deleted.
        """
        if corpus.id not in {one.id for one in self.corpora()}:
            raise StoreError(_gone(corpus))

    def find(self, name: str, read: ReadTexts) -> Corpus | None:
        """The corpus that `add` made of just these texts, ids and labels under this name.

        One that got a number behind its name counts.

        Raises:
            StoreError: the name is none.
        """
        named = re.compile(rf"{re.escape(_tidy(name))}( \(\d+\))?")
        labels = _labels(read)
        columns = tuple(column for column, _ in labels)
        for corpus in self.corpora():
            if (
                named.fullmatch(corpus.name)
                and (corpus.n_texts, corpus.columns) == (len(read.texts), columns)
                and np.array_equal(self.keys(corpus), text_keys(read.texts))
                and tuple(self.ids(corpus)) == _ids(read)
                and all(
                    values.equals(self._column(corpus, f"label_{place}"))
                    for place, (_, values) in enumerate(labels)
                )
            ):
                return corpus
        return None

    def rename(self, corpus: Corpus, name: str) -> Corpus:
        """Give a corpus another name.

        Raises:
            StoreError: the name is none or taken, or the corpus is gone.
        """
        name = _tidy(name)
        if any(other.name == name and other.id != corpus.id for other in self.corpora()):
            raise StoreError(f"A corpus named “{name}” already exists. Choose another name.")
        where = f"id = '{corpus.id}'"
        registry = self.database.registry
        self.database.write(lambda: registry("corpora").update(where=where, values={"name": name}))
        return self.corpus(corpus.id)

    def delete(self, corpus: Corpus) -> None:
        """Forget a corpus, its maps and results, and the vectors of texts that no other corpus has.

        Raises:
            StoreError: it is gone already, or what is kept cannot be written.
        """
        mine = np.unique(self.keys(corpus))
        registry = self.database.registry
        self.database.write(lambda: registry("corpora").delete(f"id = '{corpus.id}'"))
        self.database.write(lambda: self.database.drop(_table(corpus)))
        self.database.forget("maps", corpus=corpus.id)
        self._forget_results(corpus)
        others = [self.keys(other) for other in self._all()]
        self.vectors.forget(np.setdiff1d(mine, np.concatenate(others)) if others else mine)

    def _forget_results(self, corpus: Corpus) -> None:
        try:
            forget_results(corpus_view(corpus.id))
        except OSError as error:
            raise StoreError(
                f"The results of “{corpus.name}” could not be deleted: {error}."
            ) from error

    def texts(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        """The texts of a corpus, or of some of its rows, in the order asked for."""
        return self._column(corpus, "text", rows).to_pylist()

    def ids(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        """The ids of a corpus, or of some of its rows, in the order asked for."""
        return self._column(corpus, "id", rows).to_pylist()

    def labels(self, corpus: Corpus, name: str) -> np.ndarray:
        """[text] the values of a column: strings, or float64 with NaN where there is none.

        Raises:
            StoreError: there is no such column.
        """
        column = corpus.column(name)
        values = self._column(corpus, f"label_{corpus.columns.index(column)}")
        if column.kind == "number":
            return values.to_numpy(zero_copy_only=False).astype(float)
        return np.array(values.to_pylist(), dtype=object)

    def label_names(self, corpus: Corpus, name: str) -> list[str]:
        """The values of a column as names of labels, a text each; ``""`` where there is none.

        Raises:
            StoreError: there is no such column.
        """
        values = self.labels(corpus, name)
        return ["" if value != value else str(value).strip() for value in values]  # NaN is no label

    def keys(self, corpus: Corpus) -> np.ndarray:
        """[text] hashes of the texts, by which their vectors are kept."""
        return keys_of(self._column(corpus, "key"))

    def _column(self, corpus: Corpus, name: str, rows: Rows | None = None) -> pa.Array:
        with self.database.reading(missing=_gone(corpus)):
            query = self.database.open(_table(corpus)).search().select(["row", name])
            if rows is not None and len(rows) <= _ASKED_ONE_BY_ONE:
                query = query.where(f"row IN ({', '.join(str(int(row)) for row in rows) or -1})")
            table = query.to_arrow()
            stored = table["row"].to_numpy()
            order = np.argsort(stored)
            if rows is not None:
                order = order[np.searchsorted(stored[order], np.asarray(rows, dtype=np.int64))]
            column = table[name].take(pa.array(order))
            return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([])


def _gone(corpus: Corpus) -> str:
    return f"The corpus “{corpus.name}” was deleted in the meantime."


def _table(corpus: Corpus) -> str:
    return f"texts-{corpus.id}"


def _corpus(row: Mapping[str, Any]) -> Corpus:
    about = json.loads(row["about"])
    about["columns"] = tuple(Column(name, kind) for name, kind in about["columns"])
    return Corpus(row["id"], row["name"], created=row["created"], **about)


def _entry(corpus: Corpus) -> dict[str, str]:
    about = {
        "n_texts": corpus.n_texts,
        "n_distinct": corpus.n_distinct,
        "columns": [[column.name, column.kind] for column in corpus.columns],
        **({"owner": corpus.owner} if corpus.owner else {}),
    }
    columns = {"id": corpus.id, "name": corpus.name, "created": corpus.created}
    return columns | {"about": json.dumps(about)}


def _tidy(name: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in name)
    tidied = " ".join(printable.split())[:MAX_NAME].strip()
    if not tidied:
        raise StoreError("Enter a name for the corpus.")
    return tidied


def _ids(read: ReadTexts) -> tuple[str, ...]:
    """Those of the file, else numbers from 1."""
    return read.ids or tuple(str(number) for number in range(1, len(read.texts) + 1))


def _labels(read: ReadTexts) -> list[tuple[Column, pa.Array]]:
    """The columns beside text and id."""
    given = read.labels.items()
    return [_label_column(title, values) for title, values in given if values != read.ids]


def _label_column(title: str, values: Sequence[str]) -> tuple[Column, pa.Array]:
    """A column as numbers, where all that is not blank is one; else as strings."""
    filled = [value.strip() for value in values]
    if any(filled) and all(_is_number(value) for value in filled if value):
        numbers = [float(value) if value else None for value in filled]
        return Column(title, "number"), pa.array(numbers, pa.float64())
    return Column(title, "text"), pa.array(values, pa.string())


def _is_number(value: str) -> bool:
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
