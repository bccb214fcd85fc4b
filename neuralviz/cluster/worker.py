"""The work of Ray's processes on the machines of a cluster."""

from __future__ import annotations

import hashlib
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.cluster.connecting import this_machine
from neuralviz.embedders.base import has_risen
from neuralviz.errors import NeuralvizError, StoreError, never, shorten_reason
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import (
    DifferentTexts,
    EmbeddingWork,
    UniqueTexts,
)
from neuralviz.store.pieces import Piece, PieceVectors
from neuralviz.store.vectors import embedder_id

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder
    from neuralviz.store.corpora import Corpus

_ANY_TEXT = "A sentence like any other."
KILLED = "killed every process that embedded it."
TWICE = 2  # processes over one part, until the part is to blame, and not its machine
TRIES = 3  # at what was lost with a machine
LeftOut = dict[int, tuple[bytes, str]]
"""By row, as it was then, of texts that were left out: the key, and the reason."""


@dataclass(frozen=True)
class UnitResult:
    """The outcome of a unit of texts."""

    pieces: tuple[Piece, ...] = ()  # with their vectors, not yet committed
    n_texts: int = 0  # that have a vector now
    n_rose: int = 0  # of those, texts whose loss rose or became NaN
    left_out: LeftOut = field(default_factory=dict)  # texts that cannot be embedded
    failed: str = ""  # why the unit failed, in a sentence; empty where it did not
    machine: str = ""  # Ray's id of the one that may be the cause of the failure


def open_store(folder: str, corpus: Corpus | None = None) -> CorpusStore:
    """The store, as this machine sees it.

    Raises:
        StoreError: it does not see it, or not the corpus in it.
    """
    path = Path(folder)
    store = CorpusStore(path)
    if not (path / "format.json").exists() or (
        corpus is not None and corpus.id not in {saved.id for saved in store.corpora()}
    ):
        raise StoreError(
            f"The machine {socket.gethostname()} does not see {folder}. Set NEURALVIZ_HOME to a "
            "folder on a file system that all machines of the cluster share."
        )
    return store


def plan_batches(
    store: CorpusStore, corpus: Corpus, start: int, is_missing: np.ndarray, batch_size: int
) -> list[np.ndarray]:
    """The batches in which the missing texts of a portion are embedded, as rows of the corpus.

    The portion begins with the row ``start``, and ``is_missing`` is of its rows.
    """
    different = DifferentTexts(store.texts(corpus, np.arange(start, start + len(is_missing))))
    first = different.first_places(np.arange(len(different)))
    return [start + first[batch] for batch in different.batches(is_missing[first], batch_size)]


class Attempt:
    """One more process embeds a unit of texts, and notes in a file which part it is working on.

    Ray gives the unit of a process that was killed to another one, and that finds the file. It
    goes through the unit batch by batch. The texts of a batch over which two more were killed are
    embedded one by one, and a text over which two were killed is left out. All machines see the
    folder, which is of one run.
    """

    def __init__(self, folder: Path, unit: bytes, batches: Sequence[np.ndarray]) -> None:
        self._path = folder / hashlib.blake2b(unit, digest_size=16).hexdigest()
        self._batches = batches
        try:
            self._earlier_parts = self._path.read_text().splitlines()
        except OSError:  # the first one
            self._earlier_parts = []
        self._killed = {name for name, n in Counter(self._earlier_parts).items() if n >= TWICE}

    @property
    def deadly(self) -> list[int]:
        """Places of the texts that are left out."""
        places = chain(*(batch.tolist() for batch in self._batches))
        return [place for place in places if f"text {place}" in self._killed]

    def parts(self) -> Iterator[list[np.ndarray]]:
        """Batches to embed before the next ones are asked for."""
        if not self._earlier_parts:
            self._record("all")
            yield list(self._batches)
            return
        for number, batch in enumerate(self._batches):
            pieces = {f"batch {number}": batch}
            if f"batch {number}" in self._killed:
                pieces = {f"text {place}": np.array([place]) for place in batch.tolist()}
            for name, piece in pieces.items():
                if name not in self._killed:
                    self._record(name)
                    yield [piece]

    def close(self) -> None:
        """Forget the attempt: the unit is done, or has failed without killing a process."""
        with suppress(OSError):
            self._path.unlink()

    def _record(self, part: str) -> None:
        with suppress(OSError):  # the run is over
            self._path.write_text("\n".join([*self._earlier_parts, part]))


class EmbedUnits:
    """Embeds units of texts, and writes their vectors as pieces; lives as long as an actor of Ray.

    No error ends the work of others: the results report it. ``make`` makes the embedder, whose
    vectors are kept under ``kept_id``; all machines see the folder of the store, and that of this
    run alone.
    """

    def __init__(
        self,
        folder: str,
        corpus: Corpus,
        make: Callable[[], Embedder],
        kept_id: str,
        threads: int,
        run_folder: str,
    ) -> None:
        self._corpus = corpus
        self._run_folder = Path(run_folder)
        self._failed = ""
        try:
            self._store = open_store(folder, corpus)
            self._embedder = make()
            if "torch" in sys.modules:
                sys.modules["torch"].set_num_threads(threads)
            if kept_id != embedder_id(self._embedder):
                raise StoreError(
                    f"The model of {self._embedder.name} on {socket.gethostname()} is not the one "
                    "of this machine. Install the same neuralviz and the same model files on all."
                )
            self._pieces = PieceVectors(self._store.database)
            self._kept = self._pieces.register(self._embedder)
        except NeuralvizError as error:
            self._failed = str(error)
        except Exception as error:  # a device that is lost, say
            failure = f"The machine {socket.gethostname()} cannot load the model"
            self._failed = f"{failure}: {shorten_reason(error)}."

    def __call__(self, row: Mapping[str, Any]) -> dict[str, UnitResult]:
        """The result of a unit of texts: their rows, the sizes of its batches, and their keys."""
        return {"result": self._embed(*row["item"])}

    def _embed(self, rows: Sequence[int], sizes: Sequence[int], keys: bytes) -> UnitResult:
        """Embed batches of these sizes, the one after the other; the keys say of which texts."""
        if self._failed:
            return UnitResult(failed=self._failed, machine=this_machine())
        n = n_rose = 0
        left_out: dict[int, str] = {}  # by place
        self._pieces.pieces.clear()
        try:
            row_numbers = np.asarray(rows, dtype=np.int64)
            corpus_texts = self._store.texts(self._corpus, row_numbers)
            texts = UniqueTexts(corpus_texts, row_numbers, self._corpus.n_texts)
            if texts.keys.tobytes() != keys:
                raise StoreError(
                    f"Texts were removed from “{self._corpus.name}” in the meantime. Run the same "
                    "command again."
                )
            batches = np.split(np.arange(len(row_numbers)), np.cumsum(sizes)[:-1])
            at_work = EmbeddingWork(self._embedder, self._kept, self._pieces)
            attempt = Attempt(self._run_folder, keys, batches)
            left_out |= dict.fromkeys(attempt.deadly, KILLED)
            with closing(attempt), at_work.keep_finished():
                for group in attempt.parts():
                    for places, _, loss in self._results(texts, group, at_work, left_out):
                        n += len(places)
                        n_rose += int(has_risen(loss).sum())
        except (StoreError, _MachineError) as error:
            return UnitResult(failed=str(error), machine=this_machine())
        except NeuralvizError as error:
            return UnitResult(failed=str(error))
        named = {
            int(rows[place]): (texts.keys[place : place + 1].tobytes(), reason)
            for place, reason in left_out.items()
        }
        return UnitResult(tuple(self._pieces.pieces), n, n_rose, named)

    def _results(
        self,
        texts: UniqueTexts,
        batches: Sequence[np.ndarray],
        at_work: EmbeddingWork,
        left_out: dict[int, str],
        *,
        is_retry: bool = False,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """As `EmbeddingWork.embed`; what fails goes batch by batch, then text by text.

        Raises:
            StoreError: the store fails.
            _MachineError: it is not the texts that fail.
        """
        embedded: set[int] = set()
        try:
            for result in at_work.embed(texts, batches, never, left_out):
                embedded.update(result[0].tolist())
                yield result
            return
        except StoreError:
            raise
        except Exception as error:
            self._check_works(error)
            places = [i for batch in batches for i in batch.tolist()]
            if is_retry and len(places) == 1:
                left_out[places[0]] = f"failed: {shorten_reason(error)}"
        smaller = [np.array([place]) for place in places] if is_retry else batches
        for batch in smaller:
            if not embedded.union(left_out).issuperset(batch.tolist()):
                yield from self._results(texts, [batch], at_work, left_out, is_retry=True)

    def _check_works(self, failure: Exception) -> None:
        """Check that an ordinary text can still be embedded.

        Raises:
            _MachineError: it cannot; the failure says why.
        """
        try:
            self._embedder.encode([_ANY_TEXT])
        except Exception as error:
            sentence = f"On the machine {socket.gethostname()} no text could be embedded"
            raise _MachineError(f"{sentence}: {shorten_reason(failure)}.") from error


class _MachineError(NeuralvizError):
    """No text at all can be embedded on this machine."""
