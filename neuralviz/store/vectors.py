"""Vectors stored by text key and embedder."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neuralviz.embedders.base import Embedder
from neuralviz.errors import StoreError
from neuralviz.store.database import (
    PATIENCE,
    SUPERSEDED_FOR,
    Database,
    current_time,
    list_array,
    rows_of,
    rows_with_keys,
)

KEY_BYTES = 16
ID_LENGTH = 24
_KEY = f"S{KEY_BYTES}"
LOSSES = ("first_loss", "last_loss")
_DELETED_AT_ONCE = 100_000  # rows in one condition
MAX_BYTES = 1 << 28  # of the vectors in memory, some of which have 100,000 values


@dataclass(frozen=True)
class KeptEmbedder:
    id: str  # hash of the `cache_key`, or of the file for imported vectors
    spec: str  # `EmbedderSpec.to_json`; empty for custom embedders
    dim: int  # values of a vector


@dataclass(frozen=True, eq=False)
class StoredVectors:
    mask: np.ndarray  # [text] whether there is a vector
    # [found, dim] float32, for true values of `mask`; None if not requested
    vectors: np.ndarray | None
    loss: np.ndarray  # [found, 2] as of `EmbeddedBatch`


class KeptVectors:
    """Vectors in a database, one table per embedder, shared by all corpora."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def embedders(self) -> tuple[KeptEmbedder, ...]:
        """List the embedders with stored vectors, oldest first."""
        return tuple(self._by_id().values())

    def _by_id(self) -> dict[str, KeptEmbedder]:
        rows = self._database.entries("embedders")
        return {row["id"]: KeptEmbedder(row["id"], row["spec"], row["dim"]) for row in rows}

    def find_embedder(self, embedder: Embedder) -> KeptEmbedder | None:
        return self._by_id().get(embedder_id(embedder))

    def register(self, embedder: Embedder) -> KeptEmbedder:
        """Register an embedder, or return its existing entry."""
        described = describe_embedder(embedder)
        return self.restore(described.id, described.spec, described.dim)

    def restore(self, kept_id: str, spec: str, dim: int) -> KeptEmbedder:
        """Like `register`, for vectors computed elsewhere."""
        before = self._by_id().get(kept_id)
        if before is not None:
            return before
        kept = KeptEmbedder(kept_id, spec, dim)
        schema = vector_rows(np.zeros(0, _KEY), np.zeros((0, dim)), np.zeros((0, 2))).schema
        row = {"id": kept.id, "created": current_time(), "spec": spec, "dim": kept.dim}
        with self._database.lock():
            self._database.create(vectors_table(kept), schema=schema)
            merge = self._database.registry("embedders").merge_insert("id")
            merge.when_not_matched_insert_all().execute([row])
        return kept

    def has_vectors(self, embedder: KeptEmbedder, keys: np.ndarray) -> np.ndarray:
        return self.find(embedder, keys, with_vectors=False).mask

    def put(
        self, embedder: KeptEmbedder, keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray
    ) -> None:
        """Store all or none; existing vectors stay. Distinct ``keys``; ``loss`` is [text, 2]."""
        rows = vector_rows(keys, vectors, loss)
        with self._database.lock(PATIENCE):
            merge = self._database.open(vectors_table(embedder)).merge_insert("key")
            merge.when_not_matched_insert_all().execute(rows)

    def get(self, embedder: KeptEmbedder, keys: np.ndarray) -> np.ndarray:
        """[text, dim] float32 vectors. Raises StoreError if one is missing."""
        return self.locate(embedder, keys).read(np.arange(len(keys)))

    def locate(self, embedder: KeptEmbedder, keys: np.ndarray) -> LocatedVectors:
        """Find where the vectors are. Raises StoreError if one is missing."""
        located = LocatedVectors(self._database, embedder, keys)
        if not located.mask.all():
            n_missing = len(np.unique(keys[~located.mask]))
            raise not_embedded_error(n_missing, len(np.unique(keys)))
        return located

    def losses(self, embedder: KeptEmbedder, keys: np.ndarray) -> np.ndarray:
        """[text, 2] first and last loss, NaN where nothing was learnt or stored."""
        return LocatedVectors(self._database, embedder, keys).loss

    def find(
        self, embedder: KeptEmbedder, keys: np.ndarray, *, with_vectors: bool = True
    ) -> StoredVectors:
        located = LocatedVectors(self._database, embedder, keys)
        texts = np.flatnonzero(located.mask)
        vectors = located.read(texts) if with_vectors else None
        return StoredVectors(located.mask, vectors, located.loss[texts])

    def compact(self, embedder: KeptEmbedder) -> None:
        """Merge small fragments, unless someone is writing; open readers keep their version."""
        with suppress(StoreError), self._database.lock():
            table = self._database.open(vectors_table(embedder))
            table.optimize(cleanup_older_than=SUPERSEDED_FOR)

    def forget(self, keys: np.ndarray) -> None:
        """Delete the vectors of these texts for all embedders."""
        distinct = np.unique(keys)
        for embedder in self.embedders():
            with self._database.lock(PATIENCE):
                is_deleted = self._delete(embedder, distinct)
            if is_deleted:
                self.compact(embedder)

    def _delete(self, embedder: KeptEmbedder, distinct: np.ndarray) -> bool:
        """Delete by row ID, far faster than by key; whether anything was deleted."""
        located = LocatedVectors(self._database, embedder, distinct)
        row_ids = located.row_ids[located.mask]
        table = self._database.open(vectors_table(embedder))
        for start in range(0, len(row_ids), _DELETED_AT_ONCE):
            part = map(str, row_ids[start : start + _DELETED_AT_ONCE].tolist())
            table.delete(f"_rowid IN ({', '.join(part)})")
        return len(row_ids) > 0


class LocatedVectors:
    """Where the vectors of texts are, as of one version of the table."""

    def __init__(self, database: Database, embedder: KeptEmbedder, keys: np.ndarray) -> None:
        distinct, places = np.unique(keys, return_inverse=True)
        row_ids = np.zeros(len(distinct), dtype=np.uint64)
        mask = np.zeros(len(distinct), dtype=bool)
        loss = np.full((len(distinct), 2), np.nan)
        self._database, self._dim = database, embedder.dim
        with database.reading():
            self._table = database.open(vectors_table(embedder))
            self._table.checkout(self._table.version)  # row IDs change with the next write
            for batch in rows_with_keys(self._table, distinct, LOSSES, with_places=True):
                positions, matched = match_keys(distinct, keys_of(batch["key"]))
                row_ids[positions] = batch["_rowid"].to_numpy()[matched]
                mask[positions] = True
                losses = [batch[name].to_numpy(zero_copy_only=False) for name in LOSSES]
                loss[positions] = np.stack(losses, axis=1)[matched]
        self.row_ids = row_ids[places]  # [text]
        self.mask = mask[places]  # [text] whether there is a vector
        self.loss = loss[places]  # [text, 2] as of `EmbeddedBatch`

    def read(self, texts: np.ndarray) -> np.ndarray:
        """[text, dim] float32 vectors of the texts with these numbers."""
        distinct, places = np.unique(self.row_ids[texts], return_inverse=True)
        vectors = np.empty((len(distinct), self._dim), dtype=np.float32)
        with self._database.reading():
            query = self._table.take_row_ids(distinct.tolist()).select(["vector"])
            for batch in query.with_row_id().to_arrow().to_batches():
                rows = np.searchsorted(distinct, batch["_rowid"].to_numpy())
                vectors[rows] = rows_of(batch["vector"])
        return vectors[places]


def vector_rows(keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray) -> pa.Table:
    return pa.table(
        {
            "key": key_array(keys),
            "vector": list_array(vectors.astype(np.float32, copy=False)),
            "first_loss": pa.array(loss[:, 0].astype(np.float32), from_pandas=False),
            "last_loss": pa.array(loss[:, 1].astype(np.float32), from_pandas=False),
        }
    )


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """[text] first 16 bytes of each text's SHA-256."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    keys = [hashlib.sha256(content).digest()[:KEY_BYTES] for content in encoded]
    return np.frombuffer(b"".join(keys), dtype=_KEY)


def embedder_id(embedder: Embedder) -> str:
    """Hash of the embedder's cache key."""
    return hashlib.sha256(embedder.cache_key().encode()).hexdigest()[:ID_LENGTH]


def describe_embedder(embedder: Embedder) -> KeptEmbedder:
    spec = embedder.spec.to_json() if embedder.spec else ""
    return KeptEmbedder(embedder_id(embedder), spec, embedder.dim)


def key_array(keys: np.ndarray) -> pa.Array:
    buffers = [None, pa.py_buffer(keys.tobytes())]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(KEY_BYTES), len(keys), buffers)


def keys_of(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    start = column.offset * KEY_BYTES
    content = memoryview(column.buffers()[1] or b"")[start : start + len(column) * KEY_BYTES]
    return np.frombuffer(content, dtype=_KEY)


def not_embedded_error(n: int, n_texts: int) -> StoreError:
    return StoreError(f"{n:,} of {n_texts:,} texts are not embedded yet. Embed the corpus first.")


def vectors_table(embedder: KeptEmbedder) -> str:
    return f"vectors-{embedder.id}"


def match_keys(sorted_keys: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions in ``sorted_keys`` of the matches, and a mask of ``stored``."""
    positions = np.searchsorted(sorted_keys, stored)
    matched = positions < len(sorted_keys)
    matched[matched] = sorted_keys[positions[matched]] == stored[matched]
    return positions[matched], matched


class MemoryVectors:
    """A thread-safe `VectorStore` in memory that drops the least recently used vectors."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._vectors: OrderedDict[tuple[str, bytes], tuple[np.ndarray, np.ndarray]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def register(self, embedder: Embedder) -> KeptEmbedder:
        return describe_embedder(embedder)

    def has_vectors(self, embedder: KeptEmbedder, keys: np.ndarray) -> np.ndarray:
        return self.find(embedder, keys, with_vectors=False).mask

    def find(
        self, embedder: KeptEmbedder, keys: np.ndarray, *, with_vectors: bool = True
    ) -> StoredVectors:
        with self._lock:
            places = [(embedder.id, key) for key in keys.tolist()]
            for place in filter(self._vectors.__contains__, places):
                self._vectors.move_to_end(place)
            rows = [self._vectors.get(place) for place in places]
        kept = [row for row in rows if row is not None]
        vectors = np.array([vector for vector, _ in kept], np.float32).reshape(-1, embedder.dim)
        loss = np.array([loss for _, loss in kept], float).reshape(-1, 2)
        mask = np.array([row is not None for row in rows], bool)
        return StoredVectors(mask, vectors if with_vectors else None, loss)

    def put(
        self, embedder: KeptEmbedder, keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray
    ) -> None:
        with self._lock:
            for key, vector, its_loss in zip(keys.tolist(), vectors, loss, strict=True):
                place = (embedder.id, key)
                if place not in self._vectors:
                    self._vectors[place] = (vector.astype(np.float32), its_loss.copy())
                    self._bytes += self._vectors[place][0].nbytes
            while self._bytes > self.max_bytes:
                _, (dropped, _loss) = self._vectors.popitem(last=False)
                self._bytes -= dropped.nbytes

    def compact(self, embedder: KeptEmbedder) -> None:
        """Does nothing."""


VectorStore = KeptVectors | MemoryVectors
