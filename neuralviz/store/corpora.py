"""Corpora that are kept: texts with their ids and labels, and their vectors.

A row in ``corpora`` is written after a corpus's texts and deleted before them, so that nothing
half-done is ever seen.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neuralviz.errors import StoreError
from neuralviz.paths import home
from neuralviz.store.corpus_reader import CorpusReader, describe_deleted, texts_table
from neuralviz.store.database import PATIENCE, WAIT, Database, current_time, key_in
from neuralviz.store.names import name_pattern, tidy_name
from neuralviz.store.results import corpus_view, forget_results
from neuralviz.store.rows import (
    Column,
    corpus_rows,
    corpus_schema,
    label_columns,
    split_batches,
    text_ids,
)
from neuralviz.store.vectors import KeptVectors, text_keys
from neuralviz.words import free_name

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.reading.texts import ReadTexts


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
        """The column of labels of this name.

        Raises:
            StoreError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(f"“{column.name}”" for column in self.columns) or "none"
        raise StoreError(f"“{self.name}” has no column “{name[:40]}”. Its columns are: {names}.")


class CorpusStore(CorpusReader):
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
        owners = ("", self.owner)
        return tuple(
            corpus
            for corpus in self._list_corpora()
            if self.owner is None or corpus.owner in owners
        )

    def _list_corpora(self) -> tuple[Corpus, ...]:
        return tuple(_read_corpus(row) for row in reversed(self.database.entries("corpora")))

    def corpus(self, name_or_id: str) -> Corpus:
        """A corpus by its name or id.

        Raises:
            StoreError: there is none; the message names those there are.
        """
        corpora = self.corpora()
        for corpus in corpora:
            if name_or_id in (corpus.name, corpus.id):
                return corpus
        visible_corpora = [corpus for corpus in corpora if corpus.owner in ("", self.owner)]
        names = ", ".join(f"“{corpus.name}”" for corpus in visible_corpora[:12]) or "none yet"
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
        labels = label_columns(read)
        rows = corpus_rows(read.texts, [values for _, values in labels], read.ids)
        return self.add_blocks(name, [column for column, _ in labels], [rows])

    def new(self, name: str, columns: tuple[Column, ...], source: str = "") -> Corpus:
        """A corpus that nothing is kept of yet: its rows go to `texts_table`, then `announce` it.

        Args:
            name: one that is taken gets a number behind it.
            columns: of labels.
            source: as of `Corpus`.

        Raises:
            StoreError: the name is none.
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

        Raises:
            StoreError: it cannot be written; nothing is kept then.
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
        """`add` for more texts than memory holds.

        Args:
            name: one that is taken gets a number behind it.
            columns: of labels.
            blocks: of `corpus_rows`, in the order of the rows; read one by one.

        Raises:
            StoreError: the name is none, or it cannot be written; nothing is kept then.
        """
        corpus = self.new(name, tuple(columns))
        keys_written: list[np.ndarray] = []

        def write() -> None:
            table = texts_table(corpus)
            self.database.create_from(
                table, corpus_schema(columns), split_batches(blocks, keys_written)
            )
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
        """Find out whether a corpus is still there.

        Raises:
            StoreError: it was deleted.
        """
        if corpus.id not in {kept_corpus.id for kept_corpus in self.corpora()}:
            raise StoreError(describe_deleted(corpus))

    def find(self, name: str, read: ReadTexts) -> Corpus | None:
        """The corpus that `add` made of just these texts, ids and labels under this name.

        One that got a number behind its name counts.

        Raises:
            StoreError: the name is none.
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
        """The corpus that was made of just these files under this name, as of `find`.

        Raises:
            StoreError: the name is none.
        """
        named = name_pattern(name)
        for corpus in self.corpora():
            if named.fullmatch(corpus.name) and corpus.source == source:
                return corpus
        return None

    def rename(self, corpus: Corpus, name: str) -> Corpus:
        """Give a corpus another name.

        Raises:
            StoreError: the name is none or taken, or the corpus is gone.
        """
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
        """Take the texts of some keys out of a corpus; None where it has maps, which show them.

        Raises:
            StoreError: it cannot be written.
        """
        condition = key_in(keys)

        def write() -> Corpus | None:
            maps = self.database.entries("maps", ("id", "corpus", "created"))
            if any(row["corpus"] == corpus.id for row in maps):
                return None
            self.database.open(texts_table(corpus)).delete(condition)
            return self._update_counts(corpus)

        return self.database.write(write, PATIENCE)

    def recount(self, corpus: Corpus) -> Corpus:
        """The corpus with its numbers of texts, corrected where `leave_out` was cut off.

        Raises:
            StoreError: the corpus is gone, or cannot be written.
        """
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
        """Forget a corpus, its maps and results, and the vectors of texts that no other corpus has.

        Raises:
            StoreError: it is gone already, or what is kept cannot be written.
        """
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
