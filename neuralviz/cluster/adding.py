"""Make a corpus of files of any size: Ray Data reads blocks, and writes where the store is."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from neuralviz.cluster.connecting import open_store, receive
from neuralviz.errors import NeuralvizError, TextError, UnreadFileError, shorten_reason
from neuralviz.files import write_beside
from neuralviz.reading.arrow_tables import read_group_sizes, read_parquet
from neuralviz.reading.delimited import read_delimited, restore_cells
from neuralviz.reading.source import HEAD, check_is_content, tidy
from neuralviz.reading.table import (
    ID_COLUMNS,
    Table,
    blank_missing,
    drop_vectors,
    find_codes,
    guess_column,
    join_tables,
    list_columns,
    match_names,
)
from neuralviz.reading.tables import read_json_lines
from neuralviz.reading.texts import clean_column, prefix_name, shorten_list
from neuralviz.store.corpora import (
    Column,
    Corpus,
    CorpusStore,
    corpus_rows,
    find_kinds,
    name_kind,
    texts_table,
)
from neuralviz.store.database import PATIENCE
from neuralviz.store.pieces import make_table, shared_folder, write_piece
from neuralviz.words import free_name, joined

ENDINGS = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv")
OPENED_AT_ONCE = 16  # files
BYTES = 1 << 26  # of a part of a Parquet file, about
_FIXED = re.compile(r"(?:[^*?\[/]*(?:/|\Z))*")  # the steps of a path before its first wildcard
ROWS_OF_PIECE = 1 << 17  # at most
BYTES_OF_PIECE = 1 << 28  # about: of rows that are as long as the longest of the first ones
LOOKED_AT = 20  # files whose first rows say which columns there are
_MOST_NOTES = 20


# --- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FilePart:
    """A file, or some of its row groups, for one process."""

    name: str  # what people call the file: its path below what they named
    path: str  # in its file system
    files: FileSystem  # that file system, of pyarrow; it can be sent to another machine
    groups: tuple[int, ...] = ()  # numbers of the row groups; empty for the whole file
    header: int | None = None  # as of `Source`; of CSV and TSV files

    @property
    def ending(self) -> str:
        return "." + self.path.rpartition(".")[2].lower()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file; UnreadFileError if the connection fails, not the content."""
        try:
            with self.files.open_input_file(self.path) as file:
                try:
                    yield file
                except TextError as error:
                    if isinstance(error.__cause__, OSError):
                        file.seek(0)
                        file.read(1)  # an OSError where it is the connection, not the content
                    raise
        except OSError as error:
            reason = error.strerror or shorten_reason(error)
            raise UnreadFileError(f"Could not read {self.name}: {reason}.") from error

    def blocks(self) -> Iterator[Table]:
        """Blocks of some thousand rows; TextError if damaged, UnreadFileError if out of reach."""
        with self.opened() as file:
            if self.ending == ".parquet":
                yield from read_parquet(self.name, file, groups=self.groups)
            elif self.ending in (".csv", ".tsv"):
                blocks = read_delimited(self.name, file, header=self.header)
                yield from map(drop_vectors, map(restore_cells, blocks))
            else:
                yield from read_json_lines(self.name, file)

    def divide(self) -> list[FilePart]:
        with self.opened() as file:
            check_is_content(self.name, file.read(HEAD))
            if self.ending != ".parquet":
                return [self]
            file.seek(0)
            sizes = read_group_sizes(self.name, file)
        part_of_group = np.cumsum([0, *sizes])[:-1] // BYTES
        groups = [np.flatnonzero(part_of_group == part) for part in np.unique(part_of_group)]
        return [replace(self, groups=tuple(numbers.tolist())) for numbers in groups]


@dataclass(frozen=True)
class Parts:
    parts: tuple[FilePart, ...]  # in the order of their rows
    notes: tuple[str, ...]  # sentences on what was left out
    digest: str  # hash of the files as they are now: another one where a file has changed


def find_parts(paths: Sequence[str], header: int | None = None) -> Parts:
    """Find files by paths, folders, patterns or URLs such as ``s3://…``.

    Folders are read recursively, by path, without hidden files and those not in `ENDINGS`. Raises
    TextError if one finds nothing, or no file can be read piece by piece.
    """
    parts_by_path: dict[tuple[str, str], FilePart] = {}
    notes: list[str] = []
    whole = hashlib.sha256(b"" if header is None else f"header {header}".encode())
    for path in paths:
        files, folder, infos = _list_files(path)
        for info in sorted(infos, key=lambda info: info.path.split("/")):
            inside = info.path.removeprefix(folder).lstrip("/")
            part = FilePart(tidy(inside), info.path, files, header=header)
            hidden = any(step.startswith(".") for step in part.name.split("/"))
            key = (files.type_name, info.path)
            if hidden or part.ending not in ENDINGS:
                reason = "hidden" if hidden else f"with --ray, only {joined(ENDINGS)} are read"
                notes.append(f"Skipped {part.name}: {reason}.")
            elif not info.size:
                notes.append(f"Skipped {part.name}: empty.")
            elif key not in parts_by_path:
                parts_by_path[key] = part
                state = repr((info.path, info.size, info.mtime_ns))
                whole.update(state.encode("utf-8", "surrogatepass"))
    found_parts = list(parts_by_path.values())
    if len({part.name for part in found_parts}) < len(found_parts):  # from several folders
        found_parts = [replace(part, name=tidy(part.path)) for part in found_parts]
    parts: list[FilePart] = []
    pool = ThreadPoolExecutor(OPENED_AT_ONCE)  # in an object store, each takes its time
    try:
        for divided in [pool.submit(part.divide) for part in found_parts]:
            try:
                parts += divided.result()
            except TextError as error:
                notes.append(str(error))
    finally:
        pool.shutdown(cancel_futures=True)
    if not parts:
        raise TextError(" ".join(["No file with texts was found.", *notes[:5]]))
    return Parts(tuple(parts), tuple(notes), whole.hexdigest())


def _list_files(path: str) -> tuple[FileSystem, str, list[FileInfo]]:
    """The file system, the base folder for names, and the files of a path."""
    if path.startswith(("http://", "https://")):
        raise TextError(
            f"Web addresses cannot be read in pieces: {path}. Download the file, or put it into an "
            "object store (s3://, gs://, …)."
        )
    try:
        local = Path(path).expanduser().absolute()
        whole = path if "://" in path else str(local)
        fixed = whole if local.exists() else _FIXED.findall(whole)[0]
        if fixed.endswith("://"):  # a listing of all buckets
            raise TextError(f"Write the bucket's name without wildcards: {path}.")
        files, inner = FileSystem.from_uri(fixed)
        inner = inner.rstrip("/") or inner  # Azure leaves the slash there
        info = files.get_file_info(inner)
        if info.type == FileType.NotFound:
            raise TextError(f"No such file or folder: {path}.")
        if info.is_file:
            return files, inner.rpartition("/")[0], [info]
        entries = files.get_file_info(FileSelector(inner, recursive=True))
    except (OSError, ValueError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or shorten_reason(error)
        raise TextError(f"Could not read {path}: {reason}.") from error
    infos = [entry for entry in entries if entry.is_file]
    if pattern := whole.removeprefix(fixed):
        steps = [*inner.rstrip("/").split("/"), *pattern.split("/")]
        infos = [entry for entry in infos if _steps_match(entry.path.split("/"), steps)]
        if not infos:
            raise TextError(f"No file matches {path}.")
    return files, inner, infos


def _steps_match(steps: list[str], patterns: list[str]) -> bool:
    """Match as shells do: ``*`` within a step, ``**`` across steps."""
    if not patterns:
        return not steps
    if patterns[0] == "**":
        return any(_steps_match(steps[start:], patterns[1:]) for start in range(len(steps) + 1))
    return bool(steps) and fnmatch(steps[0], patterns[0]) and _steps_match(steps[1:], patterns[1:])


# --- columns -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    text: str  # column of the texts
    id: str | None  # column of the ids; None where there is none
    labels: tuple[str, ...]  # the other columns, that of the ids among them
    file: str = ""  # what the label that says the file is called; empty where there is one file
    folder: str = ""  # the same of its folder; empty where no file is in a folder below the others
    rows_of_piece: int = ROWS_OF_PIECE  # that one process holds at once
    codes: Mapping[str, frozenset[str]] = field(default_factory=dict)  # as of `blank_missing`

    @property
    def titles(self) -> tuple[str, ...]:
        return (*self.labels, *(title for title in (self.file, self.folder) if title))


def find_layout(parts: Parts, column: str | None, id_column: str | None) -> Layout:
    """Find columns by the first rows, as `read_texts`; TextError if missing or unreadable."""
    heads: list[tuple[str, Table]] = []
    reasons: list[str] = []
    files = list({(part.files.type_name, part.path): part for part in parts.parts}.values())
    for part in files[:LOOKED_AT]:
        try:
            first_blocks = (block for block in part.blocks() if len(block))
            heads += [(part.name, block) for block in islice(first_blocks, 1)]
        except TextError as error:
            reasons.append(str(error))
    if not heads:
        raise TextError(" ".join(["No text was found in these files.", *reasons[:5]]))
    whole = join_tables("This set of files", (head for _, head in heads))
    for title in (column, id_column):
        if title is not None and title not in whole.columns:
            listed = list_columns(whole.columns)
            raise TextError(f"The files have no column “{title}”. Their columns are: {listed}.")
    name, head = heads[0]
    text = column or guess_column(name, blank_missing(head))
    used = (head.columns for _, head in heads if text in head.columns)  # of others no row is
    other_columns = tuple(title for title in dict.fromkeys(chain(*used)) if title != text)
    if id_column is None:
        id_column = next(iter(match_names(other_columns, ID_COLUMNS)), None)
    labels = tuple(title for title in other_columns if title != id_column)
    file = free_name("file", whole.columns) if len(files) > 1 else ""
    has_folders = file and any("/" in part.name for part in files)
    folder = free_name("folder", whole.columns) if has_folders else ""
    # characters of a row
    longest = max(1 + sum(map(len, chain(*head.values))) / len(head) for _, head in heads)
    rows_of_piece = int(min(ROWS_OF_PIECE, max(1, BYTES_OF_PIECE // longest)))
    filled = {title: list(filter(None, whole.column(title))) for title in (text, *labels)}
    codes = {title: find_codes(values) for title, values in filled.items()}
    return Layout(text, id_column, labels, file, folder, rows_of_piece, codes)


def block_rows(name: str, block: Table, layout: Layout) -> tuple[pa.Table, list[str]]:
    """A block's texts as `corpus_rows`, blank where the column is missing, and notes."""
    block = blank_missing(block, codes=layout.codes)
    notes, used = list(block.notes), list[int]()
    texts: Sequence[str] = ()
    if layout.text in block.columns:
        texts, text_notes, used = clean_column(block, layout.text)
        notes += text_notes
        unknown = sorted({*block.columns} - {layout.text, layout.id, *layout.labels})
        if unknown:
            first = unknown[0][:40]
            notes.append(f"{name}: skipped the column “{first}”, which the first rows do not have.")
    elif len(block):
        notes.append(f"{name} has no column “{layout.text[:40]}”: its rows were skipped.")

    def take_labels(title: str) -> list[str]:
        values = block.column(title) if title in block.columns else [""] * len(block)
        return [tidy(values[row]) for row in used]

    labels = [take_labels(title) for title in layout.labels]
    labels += [[name] * len(used)] * bool(layout.file)
    labels += [[name.rpartition("/")[0]] * len(used)] * bool(layout.folder)
    ids = None if layout.id is None else [text_id or None for text_id in take_labels(layout.id)]
    return corpus_rows(texts, labels, ids), [prefix_name(name, note) for note in notes]


# --- on the machines -----------------------------------------------------------------------------


def _read_part(row: Mapping[str, Any], layout: Layout, run_folder: Path) -> Iterator[pa.Table]:
    """The blocks of a part; notes go to a file."""
    part: FilePart = row["part"][0]
    notes_file = run_folder / f"{row['number'][0]:09}.json"
    notes: list[str] = []
    try:
        for block in part.blocks():
            rows, block_notes = block_rows(part.name, block, layout)
            notes += block_notes
            if rows.num_rows:
                yield rows
    except UnreadFileError as error:  # the machine that was asked first could open it
        raise NeuralvizError(
            f"{error} It was to be read by the machine {socket.gethostname()}: all machines of "
            "a cluster must see the files under the same path. Nothing was saved."
        ) from error
    except TextError as error:
        notes.append(str(error))
    if notes:
        # a machine that does not see the store says so as it writes
        with suppress(OSError), write_beside(notes_file) as file:
            file.write(json.dumps(notes).encode())


def _write_texts(texts: pa.Table, folder: str, table: str) -> pa.Table:
    piece: dict[str, Any] = {
        "n": texts.num_rows,
        "labels": [
            find_kinds(compute.unique(texts[name]).to_pylist()) for name in texts.column_names[3:]
        ],
    }
    if texts.num_rows:
        piece["fragments"] = write_piece(open_store(folder).database, table, texts, "create")
    return pa.table({"written": [json.dumps(piece)]})


# --- from here -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AddedCorpus:
    corpus: Corpus
    notes: tuple[str, ...]  # sentences on what was left out or changed
    is_new: bool  # whether it was not there before


def add_on_cluster(
    store: CorpusStore,
    name: str,
    parts: Parts,
    layout: Layout,
    limit: int | None = None,
    *,
    report: Callable[[int], None] = lambda n_texts: None,
) -> AddedCorpus:
    """Make a corpus of files, in their order, or find it if it exists.

    Unreadable parts are left out and named; ``report`` gets the number of texts read. All machines
    must see the store's folder. Raises TextError without texts, StoreError if the corpus cannot be
    written, NeuralvizError if the cluster fails or is full; then nothing is kept.
    """
    settings = json.dumps([parts.digest, layout.text, layout.id, layout.titles, limit])
    source = hashlib.sha256(settings.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    existing = store.find_source(name, source)
    if existing is not None:
        return AddedCorpus(existing, (), is_new=False)
    corpus = store.new(name, (), source)
    database, table = store.database, texts_table(corpus)
    with shared_folder(database) as run_folder, ExitStack() as failure:
        failure.callback(shutil.rmtree, database.place(table), ignore_errors=True)
        pieces = _write(store, corpus, parts, layout, limit, report, run_folder)
        files = sorted(run_folder.glob("*.json"))
        read_notes = (json.loads(path.read_text("utf-8")) for path in files)
        different = list(dict.fromkeys(chain(parts.notes, *read_notes)))
        notes = tuple(shorten_list(different, _MOST_NOTES))
        n_texts = sum(piece["n"] for piece in pieces)
        if not n_texts:
            raise TextError(" ".join(["These files contain no text.", *notes[:5]]))
        kinds = zip(*(piece["labels"] for piece in pieces if piece["n"]), strict=True)
        columns = tuple(
            Column(title, name_kind(parts))
            for title, parts in zip(layout.titles, kinds, strict=True)
        )
        fragments = [fragment for piece in pieces for fragment in piece.get("fragments", [])]
        schema = corpus_rows([], [[]] * len(columns)).schema
        with database.lock(PATIENCE):
            make_table(database, table, schema, fragments)
        counted = replace(corpus, columns=columns, n_texts=n_texts, n_distinct=0)
        counted = replace(counted, n_distinct=store.n_distinct(counted, n_texts))
        announced = store.announce(counted, wait=PATIENCE)  # another driver may have been faster
        failure.pop_all()
        return AddedCorpus(announced, notes, is_new=announced.id == counted.id)


def _write(
    store: CorpusStore,
    corpus: Corpus,
    parts: Parts,
    layout: Layout,
    limit: int | None,
    report: Callable[[int], None],
    run_folder: Path,
) -> list[dict[str, Any]]:
    """Write the texts and return the pieces in order."""
    import ray.data  # seconds of start, on every machine

    items = [{"part": part, "number": number} for number, part in enumerate(parts.parts)]
    read = partial(_read_part, layout=layout, run_folder=run_folder)
    write = partial(_write_texts, folder=str(store.folder.absolute()), table=texts_table(corpus))
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.raise_original_map_exception = True  # the one that `receive` looks for
    context.execution_options.preserve_order = True
    texts = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        read, batch_size=1
    )
    if limit is not None:
        texts = texts.limit(limit)
    written = texts.map_batches(write, batch_size=layout.rows_of_piece, batch_format="pyarrow")
    pieces: list[dict[str, Any]] = []
    for row in receive((row for row in written.iter_rows()), "Nothing was saved."):
        pieces.append(json.loads(row["written"]))
        report(sum(piece["n"] for piece in pieces))
    return pieces
