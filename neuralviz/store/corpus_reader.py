"""What is read of the rows of corpora: texts, ids, labels and keys, all of them or some."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neuralviz.reading.cells import cell_text
from neuralviz.store.rows import Rows, encode_labels, find_rows_with, read_column, to_numbers
from neuralviz.store.vectors import keys_of
from neuralviz.words import search_terms

if TYPE_CHECKING:
    import pyarrow as pa

    from neuralviz.store.corpora import Corpus
    from neuralviz.store.database import Database
    from neuralviz.store.rows import Column


KEYS_AT_ONCE = 1 << 22  # that are counted in one pass


class CorpusReader:
    """Reads the rows of corpora.

    Attributes:
        database: that they are in.
    """

    database: Database

    def texts(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        """The texts of a corpus, or of some of its rows, in the order asked for."""
        return self._column(corpus, "text", rows).to_pylist()

    def ids(self, corpus: Corpus, rows: Rows | None = None) -> list[str]:
        """The ids of a corpus, or of some of its rows, in the order asked for."""
        ids = self._column(corpus, "id", rows)
        if not ids.null_count:
            return ids.to_pylist()
        positions = np.arange(len(ids)) if rows is None else np.asarray(rows)
        numbers = zip(ids.to_pylist(), positions.tolist(), strict=True)
        return [str(row + 1) if text_id is None else text_id for text_id, row in numbers]

    def labels(self, corpus: Corpus, name: str, rows: Rows | None = None) -> np.ndarray:
        """[text] the values of a column: strings, or float64 with NaN where there is none.

        Args:
            corpus: whose.
            name: of the column.
            rows: only these, in this order; all by default.

        Raises:
            StoreError: there is no such column.
        """
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

        Raises:
            StoreError: there is no such column.
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
        """The values of a column as names of labels, a text each; ``""`` where there is none.

        Raises:
            StoreError: there is no such column.
        """
        return [cell_text(value).strip() for value in self.labels(corpus, name).tolist()]

    def keys(self, corpus: Corpus, rows: Rows | None = None) -> np.ndarray:
        """[text] hashes of the texts, by which their vectors are kept."""
        return keys_of(self._column(corpus, "key", rows))

    def key_batches(self, corpus: Corpus) -> Iterator[np.ndarray]:
        """The same piece by piece, in the order of the rows."""
        for batch in self.database.batches(texts_table(corpus), ["key"]):
            yield keys_of(batch["key"])

    def n_distinct(self, corpus: Corpus, n_texts: int) -> int:
        """Different texts of a corpus, counted by ranges of their keys: memory stays what it is.

        Args:
            corpus: whose.
            n_texts: all of its texts.
        """
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


def describe_deleted(corpus: Corpus) -> str:
    """What is said when a corpus is not there any more."""
    return f"The corpus “{corpus.name}” was deleted in the meantime."


def texts_table(corpus: Corpus) -> str:
    """The name of the table of a corpus's rows, in their order."""
    return f"texts-{corpus.id}"
