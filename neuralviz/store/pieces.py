"""Tables that many processes write: each writes Lance fragments, one process commits them.

Uncommitted fragments are invisible; `sweep` deletes abandoned ones. Needs ``neuralviz[ray]``.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
from filelock import FileLock, Timeout
from lance.file import LanceFileReader
from lance.fragment import write_fragments

from neuralviz.errors import StoreError
from neuralviz.store.database import PATIENCE, SUPERSEDED_FOR
from neuralviz.store.vectors import KEY_BYTES, KeptVectors, vector_rows, vectors_table

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder
    from neuralviz.store.database import Database
    from neuralviz.store.vectors import KeptEmbedder

ROWS_OF_FILE = 1 << 20
_WRITERS = "writers"  # folder with a lock file per run


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
    """Create a table from fragments, in their order, within `Database.write`."""
    pieces = [lance.FragmentMetadata.from_json(fragment) for fragment in fragments]
    overwrite = lance.LanceOperation.Overwrite(schema, pieces)
    lance.LanceDataset.commit(database.place(table), overwrite)


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
            database.write(partial(_commit, database, vectors, embedder, mine), PATIENCE)


def _commit(
    database: Database, vectors: KeptVectors, embedder: KeptEmbedder, pieces: Sequence[Piece]
) -> None:
    """Append new texts and merge the others; must run within `Database.write`."""
    path = database.place(vectors_table(embedder))
    version = lance.dataset(path).version
    pieces = [piece for piece in pieces if all(file.exists() for file in _list_files(path, piece))]
    of_pieces = [np.frombuffer(piece.keys, f"S{KEY_BYTES}") for piece in pieces]
    keys = np.concatenate([np.zeros(0, f"S{KEY_BYTES}"), *of_pieces])
    is_new = ~vectors.has_vectors(embedder, keys)
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[np.unique(keys, return_index=True)[1]] = True
    ends = np.cumsum(list(map(len, of_pieces)))[:-1]
    is_whole = [part.all() for part in np.split(is_new & is_first, ends)]
    fragments = [
        lance.FragmentMetadata.from_json(piece.fragment)
        for piece, whole in zip(pieces, is_whole, strict=False)
        if whole
    ]
    if fragments:
        append = lance.LanceOperation.Append(fragments)
        lance.LanceDataset.commit(path, append, read_version=version)
    for piece, whole in zip(pieces, is_whole, strict=False):
        for file in [] if whole else _list_files(path, piece):  # left to `sweep`
            merge = database.open(vectors_table(embedder)).merge_insert("key")
            rows = LanceFileReader(str(file)).read_all().to_table()
            merge.when_not_matched_insert_all().execute(rows)


@contextmanager
def writing(database: Database) -> Iterator[Path]:
    """Protect pieces from `sweep`, run on entry and exit; yields a folder shared by the run."""
    token = secrets.token_hex(6)
    folder = database.folder / _WRITERS
    lock = FileLock(folder / f"{token}.lock")

    def begin() -> None:
        (folder / token).mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)

    database.write(begin, PATIENCE)
    try:
        sweep(database, but=token)
        yield folder / token
    finally:
        with suppress(StoreError):
            sweep(database, but=token)
        lock.release()
        _delete_writer(Path(lock.lock_file))


def sweep(database: Database, but: str = "") -> None:
    """Delete uncommitted pieces unless another writer is active."""

    def clean() -> None:
        if _has_other_writers(database.folder / _WRITERS, but):
            return
        announced = {f"texts-{row['id']}" for row in database.entries("corpora", ("id", "created"))}
        for table in database.tables():
            path = database.place(table)
            if table.startswith("texts-") and table not in announced:
                shutil.rmtree(path, ignore_errors=True)
            elif table.startswith(("texts-", "vectors-")) and any(
                (path / "_versions").glob("*.manifest")
            ):
                dataset = lance.dataset(path)
                if len(list((path / "data").glob("*.lance"))) > _count_files(dataset):
                    dataset.cleanup_old_versions(SUPERSEDED_FOR, delete_unverified=True)

    database.write(clean, PATIENCE)


def _has_other_writers(folder: Path, but: str) -> bool:
    """Whether a writer is active; deletes the marks of ended ones."""
    at_work = False
    for path in folder.glob("*.lock"):
        if path.stem == but:
            continue
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            at_work = True
        else:
            lock.release()
            _delete_writer(path)
    return at_work


def _delete_writer(lock: Path) -> None:
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    with suppress(OSError):
        lock.unlink()


def _count_files(dataset: Any) -> int:
    return sum(len(fragment.data_files()) for fragment in dataset.get_fragments())


def _list_files(path: Path, piece: Piece) -> list[Path]:
    return [path / "data" / file["path"] for file in json.loads(piece.fragment)["files"]]
