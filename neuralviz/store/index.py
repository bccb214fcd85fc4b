"""Approximate search (IVF, with RaBitQ for long vectors; Gao and Long 2024) and key lookup.

Fewer than 100,000 vectors are searched exactly. The search effort is the least with recall of 97%
of the 10 nearest, measured on a sample.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.arrays import unit_vectors
from neuralviz.store.corpora import Corpus, CorpusStore, describe_deleted, read_row_ids, texts_table
from neuralviz.store.database import (
    PATIENCE,
    Database,
    current_time,
    has_index,
    rows_of,
    rows_with_keys,
)
from neuralviz.store.vectors import KeptEmbedder, keys_of, match_keys, vectors_table

if TYPE_CHECKING:
    from lancedb.table import Table

INDEXED_FROM = 100_000  # rows
CODED_FROM = 128  # values of a vector; shorter ones lose too much at one bit per value
GROWTH = 2.0  # rebuild the groups once vectors have grown by this factor
UNINDEXED = 0.05  # share of unindexed vectors that a query scans
MEASURED_AT = 10  # neighbours
QUERIES = 200  # sampled vectors for measuring recall
GOOD_RECALL = 0.97
# (groups searched, vectors compared as a multiple of those wanted)
EFFORTS = ((20, 10), (40, 10), (40, 20), (80, 20), (80, 40), (160, 40), (320, 80))
ROUNDING = 1e-6  # tolerance for inner products of unit vectors
SCANNED = 4096  # rows compared at once
_VECTOR, _KEY = "vector", "key"


@dataclass(frozen=True)
class VectorIndex:
    """How to search an index, and its measured recall."""

    n_rows: int  # vectors when it was built
    n_groups: int  # that they were divided into
    probes: int  # groups searched per query
    refine: int  # vectors compared exactly, as a multiple of those wanted
    recall: float  # share of the 10 nearest found, 0 … 1, over 200 vectors


def read_index(database: Database, embedder: KeptEmbedder) -> VectorIndex | None:
    """Read the index of an embedder's vectors; None if search is exact."""
    entries = [row for row in database.entries("indexes") if row["id"] == embedder.id]
    return VectorIndex(**json.loads(entries[-1]["about"])) if entries else None


def build_index(database: Database, embedder: KeptEmbedder) -> VectorIndex | None:
    """Build or update an index; None for few vectors. Readers never wait."""
    with database.lock(PATIENCE):
        return _update_index(database, embedder)


def index_texts(store: CorpusStore, corpus: Corpus) -> None:
    """Build the index that finds rows of a large corpus by text key."""
    store.check_kept(corpus)
    if corpus.n_texts < INDEXED_FROM:
        return
    with store.database.lock(PATIENCE):
        table = store.database.open(texts_table(corpus))
        if not has_index(table, _KEY):
            _index_keys(table)


def nearest_keys(
    table: Table, index: VectorIndex, query: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys and [found, dim] vectors of up to ``n`` nearest by cosine, nearest first."""
    compared = max(index.refine * MEASURED_AT, 2 * n)  # constant effort for small ``n``
    search: Any = table.search(query.astype(np.float32))
    matches = (
        search.distance_type("cosine")
        .limit(n)
        .nprobes(index.probes)
        .refine_factor(math.ceil(compared / n))
        .select([_KEY, _VECTOR])
        .to_arrow()
    )
    return keys_of(matches[_KEY]), rows_of(matches[_VECTOR])


def vectors_of_keys(
    database: Database, embedder: KeptEmbedder, keys: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield keys and [piece, dim] vectors; may include others than the distinct ``keys``."""
    with database.reading():
        table = database.open(vectors_table(embedder))
        for batch in rows_with_keys(table, keys, [_VECTOR]):
            for start in range(0, len(batch), SCANNED):
                piece = batch.slice(start, SCANNED)
                yield keys_of(piece[_KEY]), rows_of(piece[_VECTOR])


def rows_of_keys(
    store: CorpusStore, corpus: Corpus, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[found] positions in the distinct ``keys``, ascending, and [found] rows with these texts."""
    order = np.argsort(keys)
    places, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    with store.database.reading(missing=describe_deleted(corpus)):
        table = store.database.open(texts_table(corpus))
        row_ids = read_row_ids(store.folder, texts_table(corpus), table.version)
        for batch in rows_with_keys(table, keys[order], [], with_places=True):
            positions, matched = match_keys(keys[order], keys_of(batch[_KEY]))
            places.append(order[positions])
            rows.append(np.searchsorted(row_ids, batch["_rowid"].to_numpy()[matched]))
    key_places, row_numbers = np.concatenate(places), np.concatenate(rows)
    by_place = np.lexsort((row_numbers, key_places))
    return key_places[by_place], row_numbers[by_place]


# --- making and measuring ------------------------------------------------------------------------


def _update_index(database: Database, embedder: KeptEmbedder) -> VectorIndex | None:
    """`build_index` within `Database.lock`."""
    table = database.open(vectors_table(embedder))
    n_rows = table.count_rows()
    if n_rows < INDEXED_FROM:
        return None
    current = read_index(database, embedder)
    if current is None or n_rows > GROWTH * current.n_rows:
        n_groups = round(math.sqrt(n_rows))
        _build(database, vectors_table(embedder), n_groups, embedder.dim)
    elif _count_unindexed(table) > UNINDEXED * n_rows:
        table.optimize()
        n_groups, n_rows = current.n_groups, current.n_rows
    else:
        return current
    index = _measure(database, embedder, n_groups, n_rows)
    row = {"id": embedder.id, "created": current_time(), "about": json.dumps(asdict(index))}
    merge = database.registry("indexes").merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute([row])
    return index


def _build(database: Database, name: str, n_groups: int, dim: int) -> None:
    from lancedb.index import IvfFlat, IvfRq

    table = database.open(name)
    _index_keys(table)
    is_coded = dim >= CODED_FROM and dim % 8 == 0  # codes are whole bytes
    kind = IvfRq if is_coded else IvfFlat
    table.create_index(_VECTOR, config=kind(distance_type="cosine", num_partitions=n_groups))


def _index_keys(table: Table) -> None:
    from lancedb.index import BTree

    table.create_index(_KEY, config=BTree())


def _count_unindexed(table: Table) -> int:
    names = [index.name for index in table.list_indices() if index.columns == [_VECTOR]]
    stats = table.index_stats(names[0])
    return 0 if stats is None else stats.num_unindexed_rows


def _measure(database: Database, embedder: KeptEmbedder, n_groups: int, n_rows: int) -> VectorIndex:
    """The least effort that reaches the recall, else the best."""
    tried: list[VectorIndex] = []
    with database.reading():
        table = database.open(vectors_table(embedder))
        n = table.count_rows()
        drawn = np.random.default_rng(0).choice(n, min(QUERIES, n), replace=False)
        sample = table.take_offsets(np.sort(drawn).tolist()).select([_KEY, _VECTOR]).to_arrow()
        keys, vectors = keys_of(sample[_KEY]), rows_of(sample[_VECTOR])
        has_direction = np.abs(vectors).max(axis=1) > 0
        keys, vectors = keys[has_direction], unit_vectors(vectors[has_direction])
        least = _find_tenth_product(database, embedder, keys, vectors)
        for probes, refine in EFFORTS:
            index = VectorIndex(n_rows, n_groups, min(probes, n_groups), refine, 0.0)
            recall = _measure_recall(table, index, keys, vectors, least)
            tried.append(replace(index, recall=recall))
            if recall >= GOOD_RECALL:
                break
    return max(tried, key=lambda index: index.recall)


def _find_tenth_product(
    database: Database, embedder: KeptEmbedder, keys: np.ndarray, vectors: np.ndarray
) -> np.ndarray:
    """[query, 10] largest inner products with the other vectors, by exact search."""
    best = np.full((len(vectors), 0), -np.inf, dtype=np.float32)
    queries = vectors.astype(np.float32)
    for stored, stored_vectors in vectors_of_keys(database, embedder):
        products = queries @ unit_vectors(stored_vectors).astype(np.float32).T
        products[keys[:, None] == stored] = -np.inf  # itself
        best = np.concatenate([best, products], axis=1)
        best = -np.partition(-best, MEASURED_AT - 1, axis=1)[:, :MEASURED_AT]
    return best


def _measure_recall(
    table: Table, index: VectorIndex, keys: np.ndarray, vectors: np.ndarray, exact: np.ndarray
) -> float:
    """Share of the true nearest that are found; ties count as found."""
    n_found = n_wanted = 0
    for key, vector, products in zip(keys, vectors, exact, strict=True):
        real = products[np.isfinite(products)]
        near_keys, near = nearest_keys(table, index, vector, MEASURED_AT + 1)
        scores = unit_vectors(near[near_keys != key][: len(real)]) @ vector
        n_found += int((scores >= real.min(initial=np.inf) - ROUNDING).sum())
        n_wanted += len(real)
    return n_found / max(n_wanted, 1)
