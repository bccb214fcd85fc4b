"""What is done on the machines of a cluster, by processes of Ray."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neuralviz.cluster.attempts import KILLED, Attempt
from neuralviz.cluster.connecting import this_machine
from neuralviz.embedders.base import has_risen
from neuralviz.errors import NeuralvizError, StoreError, never
from neuralviz.store.batches import (
    DifferentTexts,
    EmbeddingWork,
    UniqueTexts,
    embed_batches,
    keep_finished,
)
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.pieces import Piece, PieceVectors
from neuralviz.store.vectors import embedder_id

if TYPE_CHECKING:
    from neuralviz.embedders import Embedder
    from neuralviz.store.corpora import Corpus

_ANY_TEXT = "A sentence like any other."


@dataclass(frozen=True)
class Done:
    """What came of a unit of texts.

    Attributes:
        pieces: with their vectors, not yet committed.
        n_texts: that have a vector now.
        n_rose: of those, whose loss rose, or ceased to be a number.
        left_out: row, key in hexadecimal and reason of texts that cannot be embedded.
        failed: why nothing came of it, in a sentence; empty where something did.
        machine: where it may lie that nothing came of it, by Ray's id; empty where it does not.
    """

    pieces: tuple[Piece, ...] = ()
    n_texts: int = 0
    n_rose: int = 0
    left_out: tuple[tuple[int, str, str], ...] = ()
    failed: str = ""
    machine: str = ""

    def to_json(self) -> str:
        """As text, for going from one machine to another."""
        pieces = [piece.to_json() for piece in self.pieces]
        return json.dumps([pieces, self.n_texts, self.n_rose, self.left_out, self.failed,
                           self.machine])  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Done:
        """What `to_json` wrote."""
        pieces, n_texts, n_rose, left_out, failed, machine = json.loads(text)
        return cls(
            tuple(map(Piece.from_json, pieces)),
            n_texts,
            n_rose,
            tuple((row, key, reason) for row, key, reason in left_out),
            failed,
            machine,
        )


def open_store(folder: str, corpus: Corpus | None = None) -> CorpusStore:
    """The store, as this machine sees it.

    Raises:
        StoreError: it does not see it, or not the corpus in it.
    """
    path = Path(folder)
    store = CorpusStore(path)
    if not (path / "format.json").exists() or (
        corpus is not None and corpus.id not in {one.id for one in store.corpora()}
    ):
        raise StoreError(
            f"The machine {socket.gethostname()} does not see {folder}. Set NEURALVIZ_HOME to a "
            "folder on a file system that all machines of the cluster share."
        )
    return store


def plan_batches(
    store: CorpusStore, corpus: Corpus, start: int, wanted: np.ndarray, batch_size: int
) -> list[np.ndarray]:
    """The batches of a portion in which texts are embedded, as rows of the corpus.

    Args:
        store: that keeps the corpus.
        corpus: whose portion it is.
        start: its first row.
        wanted: [row of the portion] whether the text is to be embedded.
        batch_size: texts of a batch, at most.
    """
    different = DifferentTexts(store.texts(corpus, np.arange(start, start + len(wanted))))
    first = different.first_places(np.arange(len(different)))
    return [start + first[batch] for batch in different.batches(wanted[first], batch_size)]


class PlanPortions:
    """`plan_batches` for Ray: a table of portions in, the batches of each out."""

    def __init__(self, folder: str, corpus: Corpus, batch_size: int) -> None:
        self._folder, self._corpus, self._batch_size = folder, corpus, batch_size

    def __call__(self, portions: pa.Table) -> pa.Table:
        planned: list[list[list[int]]] = []
        failed = ""
        try:
            store = open_store(self._folder, self._corpus)
            planned = [self._plan(store, portion) for portion in portions.to_pylist()]
        except StoreError as error:
            planned, failed = [[]] * len(portions), str(error)
        return pa.table(
            {
                "start": portions["start"],
                "batches": pa.array(planned, pa.list_(pa.list_(pa.int64()))),
                "failed": [failed] * len(portions),
                "machine": [this_machine()] * len(portions),
            }
        )

    def _plan(self, store: CorpusStore, portion: Mapping[str, Any]) -> list[list[int]]:
        bits = np.frombuffer(portion["wanted"], np.uint8)
        wanted = np.unpackbits(bits, count=portion["rows"]).astype(bool)
        start = portion["start"]
        batches = plan_batches(store, self._corpus, start, wanted, self._batch_size)
        return [batch.tolist() for batch in batches]


class EmbedUnits:
    """Embeds units of texts, and writes their vectors as pieces; lives as long as an actor of Ray.

    Nothing that it meets ends the work of others: it is told in what it gives back.

    Args:
        folder: of the store.
        corpus: whose texts they are.
        make: makes the embedder, once.
        kept_id: under which its vectors are kept.
        threads: of torch.
        run_folder: that all machines see, of this run alone.
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
            self._pieces = PieceVectors(self._store.database, self._store.vectors)
            self._kept = self._pieces.register(self._embedder)
        except NeuralvizError as error:
            self._failed = str(error)
        except Exception as error:  # a device that is lost, say
            where = f"The machine {socket.gethostname()} cannot load the model"
            self._failed = f"{where}: {_in_a_line(error)}."

    def __call__(self, units: pa.Table) -> pa.Table:
        done = [
            self._embed(unit["rows"], unit["sizes"], unit["keys"]) for unit in units.to_pylist()
        ]
        return pa.table({"done": [one.to_json() for one in done]})

    def _embed(self, rows: Sequence[int], sizes: Sequence[int], keys: bytes) -> Done:
        """Embed batches of these sizes, the one after the other; the keys say of which texts."""
        if self._failed:
            return Done(failed=self._failed, machine=this_machine())
        n = n_rose = 0
        left_out: dict[int, str] = {}
        self._pieces.pieces.clear()
        try:
            of = np.asarray(rows, dtype=np.int64)
            texts = UniqueTexts(self._store.texts(self._corpus, of), of)
            if texts.keys.tobytes() != keys:
                raise StoreError(
                    f"Texts were removed from “{self._corpus.name}” in the meantime. Run the same "
                    "command again."
                )
            batches = np.split(np.arange(len(of)), np.cumsum(sizes)[:-1])
            at_work = EmbeddingWork(self._embedder, self._kept, self._pieces)
            attempt = Attempt(self._run_folder, keys, batches)
            left_out |= dict.fromkeys(attempt.deadly, KILLED)
            with closing(attempt), keep_finished(at_work.keepers):
                for some in attempt.parts():
                    for at, vectors, losses in self._results(texts, some, at_work, left_out):
                        _, loss = at_work.combine(texts.keys[at], vectors, losses)
                        n += len(at)
                        n_rose += int(has_risen(loss).sum())
        except (StoreError, _MachineError) as error:
            return Done(failed=str(error), machine=this_machine())
        except NeuralvizError as error:
            return Done(failed=str(error))
        hexadecimal = {place: _key_of(texts.keys, place).hex() for place in left_out}
        named = tuple((int(rows[i]), hexadecimal[i], why) for i, why in left_out.items())
        return Done(tuple(self._pieces.pieces), n, n_rose, named)

    def _results(
        self,
        texts: UniqueTexts,
        batches: Sequence[np.ndarray],
        at_work: EmbeddingWork,
        left_out: dict[int, str],
    ) -> Iterator[tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]]:
        """As `embed_batches`; a batch that fails goes text by text, and texts that fail stay out.

        Raises:
            StoreError: the store fails.
            _MachineError: it is not the texts that fail.
        """
        embed = partial(embed_batches, texts, parts=at_work.parts, should_stop=never,
                        left_out=left_out)  # fmt: skip
        done: set[int] = set()
        try:
            for result in embed(batches):
                done.update(result[0].tolist())
                yield result
            return
        except StoreError:
            raise
        except Exception as error:
            self._check_works(error)
        for batch in batches:
            left = [i for i in batch.tolist() if i not in done]
            if not left:
                continue
            try:
                yield from list(embed([batch]))
            except StoreError:
                raise
            except Exception:
                for i in left:
                    try:
                        yield from list(embed([np.array([i])]))
                    except StoreError:
                        raise
                    except Exception as error:
                        self._check_works(error)
                        left_out[i] = f"failed: {_in_a_line(error)}"

    def _check_works(self, failure: Exception) -> None:
        """Find out whether another text can be embedded.

        Raises:
            _MachineError: it cannot; the failure says why.
        """
        try:
            self._embedder.encode([_ANY_TEXT])
        except Exception as error:
            where = f"On the machine {socket.gethostname()} no text could be embedded"
            raise _MachineError(f"{where}: {_in_a_line(failure)}.") from error


class _MachineError(NeuralvizError):
    """No text at all can be embedded on this machine."""


def _in_a_line(error: Exception) -> str:
    """What an error says, short and without a point at its end."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said[:200].rstrip(".")


def _key_of(keys: np.ndarray, place: int) -> bytes:
    return keys[place : place + 1].tobytes()
