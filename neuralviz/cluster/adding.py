"""Files of any size become a corpus: read by Ray Data in blocks, written where the store is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ray.data
from ray.data import DataContext
from ray.exceptions import RayError

from neuralviz.cluster.connecting import AvoidedMachines
from neuralviz.cluster.embedding import TRIES, describe_loss
from neuralviz.cluster.rows import iterate_rows
from neuralviz.cluster.text_blocks import (
    NOTE,
    FilesOfTexts,
    KeepNotes,
    Layout,
    WriteTexts,
    kept_notes,
)
from neuralviz.errors import NeuralvizError, StoreError, TextError
from neuralviz.store.database import PATIENCE
from neuralviz.store.pieces import make_table, writing
from neuralviz.store.rows import Column, texts_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from neuralviz.reading.blocks import Parts
    from neuralviz.store.corpora import Corpus, CorpusStore

_MOST_NOTES = 20


@dataclass(frozen=True)
class AddedCorpus:
    """The outcome of adding a corpus.

    Attributes:
        corpus: the corpus.
        notes: sentences on what was left out or changed.
        is_new: whether it was not there before.
    """

    corpus: Corpus
    notes: tuple[str, ...]
    is_new: bool


@dataclass(frozen=True)
class ReadingProgress:
    """How many texts have been read.

    Attributes:
        n_texts: so far.
    """

    n_texts: int


def source_digest(parts: Parts, layout: Layout, limit: int | None) -> str:
    """Hash of all that a corpus is made of, as the files are now."""
    settings = json.dumps([parts.digest, layout.text, layout.id, layout.titles, limit])
    return hashlib.sha256(settings.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def add_on_cluster(
    store: CorpusStore,
    name: str,
    parts: Parts,
    layout: Layout,
    limit: int | None = None,
    *,
    report: Callable[[ReadingProgress], None] = lambda reading: None,
) -> AddedCorpus:
    """Keep the texts of files as a corpus, in their order, or find it where it is kept already.

    Rows without a text, and what cannot be read, are left out and named. A file that breaks off is
    read up to there. Ids are taken as they are.

    Args:
        store: in a folder that all machines see.
        name: of the corpus.
        parts: the files.
        layout: their columns.
        limit: so many texts and no more.
        report: called as texts have been read.

    Raises:
        TextError: there is no text in the files.
        StoreError: the corpus cannot be written; nothing of it is kept then.
        NeuralvizError: the cluster is gone, or has no room.
    """
    source = source_digest(parts, layout, limit)
    existing = store.find_source(name, source)
    if existing is not None:
        return AddedCorpus(existing, (), is_new=False)
    corpus = store.new(name, (), source)
    with writing(store.database) as run_folder:
        written = _write(store, corpus, parts, layout, limit, report, run_folder)
        n_texts = sum(piece["n"] for piece in written)
        notes = _shorten_notes(
            [*parts.notes, *(note for piece in written for note in piece["notes"])]
        )
        n_broken = parts.n_broken + len({name for piece in written for name in piece["broken"]})
        n_files = parts.n_broken + len({part.name for part in parts.parts})
        if n_broken and n_files > 1:
            notes += (f"{n_broken:,} of {n_files:,} files could not be read to the end.",)
        if not n_texts:
            raise TextError(" ".join(["These files contain no text.", *notes[:5]]))
        kinds = [_find_kind(piece["labels"][place] for piece in written if piece["n"])
                 for place in range(len(layout.titles))]  # fmt: skip
        columns = tuple(Column(t, kind) for t, kind in zip(layout.titles, kinds, strict=True))
        schema = layout.schema.remove(layout.schema.get_field_index(NOTE))
        fragments = [fragment for piece in written for fragment in piece["fragments"]]
        counted = replace(corpus, columns=columns, n_texts=n_texts, n_distinct=0)
        table = texts_table(corpus)
        make = partial(make_table, store.database, table, schema, fragments)
        store.database.write(make, PATIENCE)
        counted = replace(counted, n_distinct=store.n_distinct(counted, n_texts))
        announced = store.announce(counted, wait=PATIENCE)  # another driver may have been faster
        return AddedCorpus(announced, notes, is_new=announced.id == counted.id)


def _write(
    store: CorpusStore,
    corpus: Corpus,
    parts: Parts,
    layout: Layout,
    limit: int | None,
    report: Callable[[ReadingProgress], None],
    run_folder: Path,
) -> list[dict[str, Any]]:
    """Write the texts of the files; returns the pieces in the order of the files.

    Where a machine could not write, the others write everything anew.
    """
    avoided = AvoidedMachines()
    context = DataContext.get_current()
    before = context.execution_options.preserve_order
    context.execution_options.preserve_order = True
    try:
        for _ in range(TRIES):
            written: list[dict[str, Any]] = []
            for written_piece in _pieces(store, corpus, parts, layout, limit, avoided, run_folder):
                written.append(written_piece)
                if written_piece["failed"]:
                    break
                report(ReadingProgress(sum(piece["n"] for piece in written)))
            if not written or not written[-1]["failed"]:
                return [*written, *kept_notes(run_folder)]
            avoided.add([written[-1]["machine"]])
        raise StoreError(written[-1]["failed"])
    except RayError as error:
        raise NeuralvizError(describe_loss(error, "Nothing was saved.")) from error
    finally:
        context.execution_options.preserve_order = before


def _pieces(
    store: CorpusStore,
    corpus: Corpus,
    parts: Parts,
    layout: Layout,
    limit: int | None,
    avoided: AvoidedMachines,
    run_folder: Path,
) -> Iterator[dict[str, Any]]:
    """The pieces written, one by one, in the order of the files."""
    texts = ray.data.read_datasource(
        FilesOfTexts(parts.parts, layout),
        override_num_blocks=len(parts.parts),
        ray_remote_args=avoided.options,
    )
    options = {"batch_format": "pyarrow", **avoided.options}
    if limit is not None:  # rows that only say something do not count
        texts = texts.map_batches(KeepNotes(run_folder), batch_size=None, **options)
        texts = texts.limit(limit)
    write = WriteTexts(str(store.folder.absolute()), texts_table(corpus))
    for row in iterate_rows(texts.map_batches(write, batch_size=layout.rows_of_piece, **options)):
        yield json.loads(row["written"])


def _find_kind(flags: Iterable[tuple[bool, bool]]) -> Any:
    """``number``, where all pieces have numbers alone; else ``text``."""
    pieces = list(flags)
    return "number" if any(f for f, _ in pieces) and all(n for _, n in pieces) else "text"


def _shorten_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """The first of some sentences, each once, and how many more there are."""
    different = list(dict.fromkeys(notes))
    n_more = len(different) - _MOST_NOTES
    return (*different[:_MOST_NOTES], *([f"And {n_more:,} more like this."] if n_more > 0 else []))
