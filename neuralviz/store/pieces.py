"""Tables that many processes write: each writes Lance fragments, one process commits them.

Uncommitted fragments are invisible; Lance deletes abandoned ones after a week. Needs
``neuralviz[ray]``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader
from lance.fragment import write_fragments

from neuralviz.embedders.base import Embedder
from neuralviz.errors import StoreError
from neuralviz.store.database import PATIENCE, Database
from neuralviz.store.vectors import KEY_BYTES, KeptEmbedder, KeptVectors, vector_rows, vectors_table

ROWS_OF_FILE = 1 << 20


@dataclass(frozen=True)
class Piece:
    """Vectors that are written but not committed."""

    embedder: str  # ID
    fragment: str  # Lance metadata, as JSON
    keys: bytes  # concatenated text keys


def write_piece(database: Database, table: str, rows: pa.Table, mode: str = "append") -> list[str]:
    """Write fragments, from memory so that Lance can retry; returns their metadata as JSON."""
    try:
        path = database.place(table)
        fragments = write_fragments(rows, path, mode=mode, max_rows_per_file=ROWS_OF_FILE)
    except (OSError, ValueError, RuntimeError) as error:
        raise database.refusal(str(error)) from error
    return [json.dumps(fragment.to_json()) for fragment in fragments]


def make_table(database: Database, table: str, schema: pa.Schema, fragments: Sequence[str]) -> None:
    """Create a table from fragments, in their order, within `Database.lock`; delete others."""
    pieces = [lance.FragmentMetadata.from_json(fragment) for fragment in fragments]
    overwrite = lance.LanceOperation.Overwrite(schema, pieces)
    dataset = lance.LanceDataset.commit(database.place(table), overwrite)
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)


class PieceVectors(KeptVectors):
    """Vectors of a database for a worker process, which collects its own as ``pieces``."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.pieces: list[Piece] = []

    def register(self, embedder: Embedder) -> KeptEmbedder:
        """Find the embedder, which must be registered already."""
        kept = self.find_embedder(embedder)
        if kept is None:
            raise StoreError(f"No place was made for the embeddings by {embedder.name}.")
        return kept

    def put(
        self, embedder: KeptEmbedder, keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray
    ) -> None:
        """Write vectors as a piece."""
        rows = vector_rows(keys, vectors, loss)
        (fragment,) = write_piece(self._database, vectors_table(embedder), rows)
        self.pieces.append(Piece(embedder.id, fragment, keys.tobytes()))

    def compact(self, embedder: KeptEmbedder) -> None:
        """Does nothing: the committing process compacts."""


def commit_pieces(
    database: Database,
    vectors: KeptVectors,
    embedders: Sequence[KeptEmbedder],
    pieces: Sequence[Piece],
) -> None:
    """Commit pieces, skipping duplicates and missing files. Raises StoreError."""
    for embedder in embedders:
        mine = [piece for piece in pieces if piece.embedder == embedder.id]
        if mine:
            with database.lock(PATIENCE):
                _commit(database, vectors, embedder, mine)


def _commit(
    database: Database, vectors: KeptVectors, embedder: KeptEmbedder, pieces: Sequence[Piece]
) -> None:
    """Append new texts and merge the others; must run within `Database.lock`."""
    path = database.place(vectors_table(embedder))
    version = lance.dataset(path).version
    pieces = [piece for piece in pieces if all(file.exists() for file in _list_files(path, piece))]
    if not pieces:
        return
    keys = np.frombuffer(b"".join(piece.keys for piece in pieces), f"S{KEY_BYTES}")
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[np.unique(keys, return_index=True)[1]] = True
    is_new = is_first & ~vectors.has_vectors(embedder, keys)
    ends = np.cumsum([len(piece.keys) // KEY_BYTES for piece in pieces])[:-1]
    is_whole = [part.all() for part in np.split(is_new, ends)]
    fragments = [
        lance.FragmentMetadata.from_json(piece.fragment)
        for piece, whole in zip(pieces, is_whole, strict=True)
        if whole
    ]
    if fragments:
        append = lance.LanceOperation.Append(fragments)
        lance.LanceDataset.commit(path, append, read_version=version)
    for piece, whole in zip(pieces, is_whole, strict=True):
        for file in [] if whole else _list_files(path, piece):
            merge = database.open(vectors_table(embedder)).merge_insert("key")
            rows = LanceFileReader(str(file)).read_all().to_table()
            merge.when_not_matched_insert_all().execute(rows)


@contextmanager
def shared_folder(database: Database) -> Iterator[Path]:
    """Yield a folder beside the tables, which all machines see, until the run ends."""
    place = database.folder.absolute()
    with database.lock():
        folder = TemporaryDirectory(prefix="run-", dir=place, ignore_cleanup_errors=True)
    with folder as name:
        yield Path(name)


def _list_files(path: Path, piece: Piece) -> list[Path]:
    return [path / "data" / file["path"] for file in json.loads(piece.fragment)["files"]]
