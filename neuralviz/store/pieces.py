"""Tables that many processes write at once: each writes pieces, and one puts them in by a commit.

A piece is a fragment of a Lance table: a file beside the table's others that nobody sees before it
is committed. So writers wait for nobody, and what they wrote is there as a whole or not at all.
A writer that ends half-way leaves files behind that belong to nothing; `sweep` deletes them.

The package ``pylance`` is needed, which comes with ``neuralviz[ray]``.
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
from neuralviz.store.vectors import KEY_BYTES, vector_rows, vectors_table

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder
    from neuralviz.store.database import Database
    from neuralviz.store.vectors import KeptEmbedder, KeptVectors, StoredVectors

ROWS_OF_FILE = 1 << 20
_WRITERS = "writers"  # folder of locked files, one for each process that has pieces written


@dataclass(frozen=True)
class Piece:
    """Vectors that are written and not yet committed.

    Attributes:
        embedder: id of whose they are.
        fragment: what Lance knows of it, as JSON.
        keys: of the texts, one after the other.
    """

    embedder: str
    fragment: str
    keys: bytes

    def to_json(self) -> str:
        """The piece as text, for going from one process to another."""
        return json.dumps([self.embedder, self.fragment, self.keys.hex()])

    @classmethod
    def from_json(cls, text: str) -> Piece:
        """The piece that `to_json` wrote."""
        embedder, fragment, keys = json.loads(text)
        return cls(embedder, fragment, bytes.fromhex(keys))


def write_piece(database: Database, table: str, rows: pa.Table, mode: str = "append") -> list[str]:
    """Write rows beside a table, and say what Lance knows of them, as JSON.

    Args:
        database: of the table.
        table: its name.
        rows: in memory: of what comes as a stream, a writer that tries again would lose rows.
        mode: ``append``, or ``create`` where the table is not there yet.

    Raises:
        StoreError: they cannot be written.
    """
    try:
        path = database.place(table)
        fragments = write_fragments(rows, path, mode=mode, max_rows_per_file=ROWS_OF_FILE)
    except (OSError, ValueError, RuntimeError) as error:
        raise database.refusal(str(error)) from error
    return [json.dumps(fragment.to_json()) for fragment in fragments]


def make_table(database: Database, table: str, schema: pa.Schema, fragments: Sequence[str]) -> None:
    """Make a table of what `write_piece` wrote beside it, within a `write`.

    Args:
        database: of the table.
        table: its name.
        schema: of its rows.
        fragments: in the order of the rows.
    """
    pieces = [lance.FragmentMetadata.from_json(fragment) for fragment in fragments]
    overwrite = lance.LanceOperation.Overwrite(schema, pieces)
    lance.LanceDataset.commit(database.place(table), overwrite)


class PieceVectors:
    """A `VectorStore` for one of many processes: looks in the store, and writes pieces.

    Attributes:
        pieces: written since they were last taken.

    Args:
        database: in which the embedders are registered.
        vectors: of the same database.
    """

    def __init__(self, database: Database, vectors: KeptVectors) -> None:
        self.pieces: list[Piece] = []
        self._database = database
        self._vectors = vectors

    def register(self, embedder: Embedder) -> KeptEmbedder:
        """The place of an embedder's vectors, which has been made before.

        Raises:
            StoreError: it has not.
        """
        kept = self._vectors.find_embedder(embedder)
        if kept is None:
            raise StoreError(f"No place was made for the embeddings by {embedder.name}.")
        return kept

    def has_vectors(self, embedder: KeptEmbedder, keys: np.ndarray) -> np.ndarray:
        """[text] whether there is a vector."""
        return self._vectors.find(embedder, keys, with_vectors=False).mask

    def find(
        self, embedder: KeptEmbedder, keys: np.ndarray, *, with_vectors: bool = True
    ) -> StoredVectors:
        """What is kept of these texts, without what is in pieces."""
        return self._vectors.find(embedder, keys, with_vectors=with_vectors)

    def put(
        self, embedder: KeptEmbedder, keys: np.ndarray, vectors: np.ndarray, loss: np.ndarray
    ) -> None:
        """Write vectors as a piece.

        Raises:
            StoreError: it cannot be written.
        """
        rows = vector_rows(keys, vectors, loss)
        (fragment,) = write_piece(self._database, vectors_table(embedder), rows)
        self.pieces.append(Piece(embedder.id, fragment, keys.tobytes()))

    def compact(self, embedder: KeptEmbedder) -> None:
        """Nothing: whoever commits does it."""


class Committer:
    """Puts pieces into the tables of some embedders, nothing twice, whoever else writes to them.

    Args:
        database: whose tables they are.
        vectors: of the same database.
        embedders: whose pieces come.
    """

    def __init__(
        self, database: Database, vectors: KeptVectors, embedders: Sequence[KeptEmbedder]
    ) -> None:
        self._database = database
        self._vectors = vectors
        self._embedders = {kept.id: kept for kept in embedders}
        self._version: dict[str, int] = {}  # of each table, when nobody else had written to it
        self._others: set[str] = set(self._embedders)  # whose tables somebody else has written to

    def look(self) -> None:
        """Before it is found out what is missing: what is put in from now on by others is minded.

        Without it, all that is committed is compared with what is there.
        """
        for embedder in self._embedders.values():
            self._version[embedder.id] = self._vectors.version(embedder)
        self._others.clear()

    def commit(self, pieces: Sequence[Piece]) -> None:
        """Put pieces in, by one commit a table.

        A piece whose file is gone is left out: its texts are missing as before.

        Raises:
            StoreError: they cannot be put in; what was there is still there.
        """
        for embedder in self._embedders.values():
            mine = [piece for piece in pieces if piece.embedder == embedder.id]
            if mine:
                self._database.write(partial(self._commit, embedder, mine), PATIENCE)

    def _commit(self, embedder: KeptEmbedder, pieces: Sequence[Piece]) -> None:
        """Within a write."""
        path = self._database.place(vectors_table(embedder))
        version = lance.dataset(path).version
        pieces = [
            piece for piece in pieces if all(file.exists() for file in _list_files(path, piece))
        ]
        new, mixed = pieces, list[Piece]()
        if version != self._version.get(embedder.id):
            self._others.add(embedder.id)
        if embedder.id in self._others:
            new, mixed = self._separate_new(embedder, pieces)
        if new:
            fragments = [lance.FragmentMetadata.from_json(piece.fragment) for piece in new]
            append = lance.LanceOperation.Append(fragments)
            version = lance.LanceDataset.commit(path, append, read_version=version).version
        for piece in mixed:
            self._merge(embedder, path, piece)
            version = lance.dataset(path).version
        self._version[embedder.id] = version

    def _separate_new(
        self, embedder: KeptEmbedder, pieces: Sequence[Piece]
    ) -> tuple[list[Piece], list[Piece]]:
        """Pieces that hold nothing that is there already, nor in one before, and the others."""
        of_pieces = list(map(_read_keys, pieces))
        keys = np.concatenate([np.zeros(0, f"S{KEY_BYTES}"), *of_pieces])
        is_new = ~self._vectors.find(embedder, keys, with_vectors=False).mask
        first = np.zeros(len(keys), dtype=bool)
        first[np.unique(keys, return_index=True)[1]] = True
        ends = np.cumsum(list(map(len, of_pieces)))[:-1]
        new: list[Piece] = []
        mixed: list[Piece] = []
        for piece, fresh in zip(pieces, np.split(is_new & first, ends), strict=True):
            (new if fresh.all() else mixed).append(piece)
        return new, mixed

    def _merge(self, embedder: KeptEmbedder, path: Path, piece: Piece) -> None:
        """Put those rows of a piece in that are not there; its own file is left to `sweep`."""
        table = self._database.open(vectors_table(embedder))
        for file in _list_files(path, piece):
            rows = LanceFileReader(str(file)).read_all().to_table()
            merge = table.merge_insert("key")
            merge.when_not_matched_insert_all().execute(rows)


@contextmanager
def writing(database: Database) -> Iterator[Path]:
    """For as long as pieces are written: nobody sweeps them away meanwhile.

    What others left behind is swept before and afterwards.

    Yields:
        A folder that is there as long, for what the processes of the run tell each other.

    Raises:
        StoreError: the folder cannot be written to.
    """
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
    """Delete what was written and never committed, unless somebody may still commit it.

    Args:
        database: to be swept.
        but: the name of a writer who has nothing under way.

    Raises:
        StoreError: it cannot be written to.
    """

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
    """Whether a writer is at work; the files of those that ended in any way are deleted."""
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
    """The files of a piece."""
    return [path / "data" / file["path"] for file in json.loads(piece.fragment)["files"]]


def _read_keys(piece: Piece) -> np.ndarray:
    return np.frombuffer(piece.keys, f"S{KEY_BYTES}")
