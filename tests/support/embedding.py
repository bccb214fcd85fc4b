"""A corpus that is embedded in a process of its own, which starts at once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import TYPE_CHECKING

from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus
from tests.support.embedders import HashEmbedder

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])


def embedding(folder: Path, seconds: float) -> tuple[ForkServerProcess, Connection]:
    """A process that embeds the one corpus of a folder, and what it says when texts are done.

    Args:
        folder: of the corpus.
        seconds: that it takes for a batch.
    """
    here, there = _context.Pipe(duplex=False)
    process = _context.Process(target=_embed, args=(folder, seconds, there), daemon=True)
    process.start()
    return process, here


def _embed(folder: Path, seconds: float, said: Connection) -> None:
    store = CorpusStore(folder)
    embedder = HashEmbedder(seconds=seconds)
    for event in embed_corpus(store, store.corpora()[0], embedder, keep_every=0.0):
        said.send(event.done)
