"""Import vectors from files: stored by text, under an ID made of file name and content hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralviz.embedders.specs import EmbedderSpec, imported_spec
from neuralviz.errors import SettingsError, TextError
from neuralviz.reading.table import ID_COLUMNS, TEXT_COLUMNS, list_columns
from neuralviz.reading.vectors import ReadVectors
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.vectors import ID_LENGTH, KeptEmbedder, KeptVectors, text_keys
from neuralviz.words import free_name, joined, many

FILE = "file:"  # prefix of the label of imported vectors
VERSION = "neuralviz-imported/1"
_AT_ONCE = 8192  # rows
_WHOLE = re.compile(r"0*([0-9]+)(?:\.0+)?")
_Match = tuple[np.ndarray, str]  # [row] text keys, and a sentence on how rows were matched


@dataclass(frozen=True)
class Imported:
    kept: KeptEmbedder  # where they are
    matched: str  # sentences on how vectors were matched, and on conflicts


def import_vectors(
    store: CorpusStore, corpus: Corpus, read: ReadVectors, *, in_order: bool = False
) -> Imported:
    """Import a file's vectors for a corpus; every text needs one.

    Rows match by a column with the corpus's texts, else its IDs, whatever their names and order;
    arrays, and other files with ``in_order``, match by row. Equal texts use the first vector.
    Raises TextError if a vector is missing or the match is ambiguous, StoreError if storing fails.
    """
    keys, name = store.keys(corpus), f"“{corpus.name}”"
    columns = _hash_columns(read, keys)
    match = _match_by_text(read, columns, keys, name)
    if match is None and read.columns:
        match = _match_by_id(read, columns, keys, store.ids(corpus), name, in_order=in_order)
    if match is None and (in_order or read.name.lower().endswith(".npy")):
        if len(read.vectors) != len(keys):
            raise TextError(
                f"{read.name} has {many(len(read.vectors), 'row')}, but {name} has "
                f"{many(len(keys), 'text')}. It needs one row per text, in the same order."
            )
        match = keys, "Matched by row, in the order of the corpus."
    if match is None:
        raise _describe_mismatch(read, columns, keys, name)
    return _keep_vectors(store.vectors, read, keys, match)


def import_by_text(vectors: KeptVectors, read: ReadVectors, texts: Sequence[str]) -> Imported:
    """Import vectors for texts, matched by a column that contains all of them."""
    keys = text_keys(texts)
    columns = _hash_columns(read, keys)
    match = _match_by_text(read, columns, keys, "the data")
    if match is None:
        raise _describe_mismatch(read, columns, keys, "the data")
    return _keep_vectors(vectors, read, keys, match)


def _keep_vectors(
    vectors: KeptVectors, read: ReadVectors, keys: np.ndarray, match: _Match
) -> Imported:
    """Store the vectors of the texts in ``keys``."""
    of_rows, matched = match
    different, first, place = np.unique(of_rows, return_index=True, return_inverse=True)
    is_wanted = np.isin(different, keys)
    differ = np.zeros(len(different), dtype=bool)
    np.logical_or.at(differ, place, _find_differing(read.vectors, first[place]))
    if n_differ := int((differ & is_wanted).sum()):
        several = f"{many(n_differ, 'text')} with several different vectors"
        matched += f" Of {several}, the first is used."
    different, values = different[is_wanted], read.vectors[first[is_wanted]]
    digest = hashlib.sha256(different.tobytes() + values.tobytes()).hexdigest()[:ID_LENGTH]
    spec = imported_spec(read.name, digest)
    kept_id = hashlib.sha256(f"{VERSION}:{spec.to_json()}".encode()).hexdigest()[:ID_LENGTH]
    kept = vectors.restore(kept_id, spec.to_json(), values.shape[1])
    vectors.put(kept, different, values, np.full((len(different), 2), np.nan))
    return Imported(kept, matched)


# --- which row is of which text ------------------------------------------------------------------


def _hash_columns(read: ReadVectors, keys: np.ndarray) -> dict[str, np.ndarray]:
    """By column: [row] text keys; texts that are not wanted as they are get plain line breaks."""
    columns = {}
    for title in read.columns:
        texts = read.strings(title)
        row_keys = text_keys(texts)
        unmatched = np.flatnonzero(~np.isin(row_keys, keys))
        broken = [row for row in unmatched.tolist() if "\r" in texts[row]]
        if broken:
            row_keys = row_keys.copy()
            plain = (texts[row].replace("\r\n", "\n").replace("\r", "\n") for row in broken)
            row_keys[broken] = text_keys(plain)
        columns[title] = row_keys
    return columns


def _count_lacking(row_keys: np.ndarray, keys: np.ndarray) -> int:
    return int((~np.isin(np.unique(keys), row_keys)).sum())


def _match_by_text(
    read: ReadVectors, columns: Mapping[str, np.ndarray], keys: np.ndarray, name: str
) -> _Match | None:
    """By a column that holds all texts. Raises TextError if several do, in another order."""
    complete = {title: rows for title, rows in columns.items() if not _count_lacking(rows, keys)}
    titles = list(complete)
    if not titles:
        return None
    if any((complete[title] != complete[titles[0]]).any() for title in titles):
        called = [title for title in titles if _normalize(title) in TEXT_COLUMNS]
        titles = called if len(called) == 1 else [t for t in called if _normalize(t) == "text"]
    if not titles:
        listed = joined([f"“{title[:40]}”" for title in complete])
        raise TextError(
            f"{read.name} has the texts of {name} in the columns {listed}. Rename the one "
            "whose vectors these are to “text”."
        )
    return complete[titles[0]], f"Matched by the texts in the column “{titles[0][:40]}”."


def _describe_mismatch(
    read: ReadVectors, columns: Mapping[str, np.ndarray], keys: np.ndarray, name: str
) -> TextError:
    n = len(np.unique(keys))
    lacking = {title: _count_lacking(row_keys, keys) for title, row_keys in columns.items()}
    best = min(lacking, key=lacking.__getitem__, default="")
    if lacking.get(best, n) < n:
        return TextError(
            f"{read.name} has no vector for {lacking[best]:,} of the {n:,} different texts of "
            f"{name} (column “{best[:40]}”). Every text needs one."
        )
    return TextError(
        f"{read.name} has neither the texts of {name} nor IDs of a corpus. Its columns beside the "
        f"vectors are: {list_columns(list(columns))}. Add a column “text” or “id”. If its rows are "
        "in the order of a corpus, match by row."
    )


def _match_by_id(
    read: ReadVectors,
    columns: Mapping[str, np.ndarray],
    keys: np.ndarray,
    ids: Sequence[str],
    name: str,
    *,
    in_order: bool,
) -> _Match | None:
    """By a column with all IDs. Raises TextError if another holds other texts than they say."""
    text_columns = TEXT_COLUMNS if _are_numbers(ids) else ("text",)
    for title in columns:
        rows = _match_ids(ids, title, read.strings(title))
        if rows is None:
            continue
        of_rows = np.where(rows >= 0, keys[rows], np.zeros(1, keys.dtype))
        contradicting = [
            column
            for column, row_keys in columns.items()
            if column != title
            and (
                _normalize(column) in text_columns
                or _are_other_texts(row_keys[rows >= 0], of_rows[rows >= 0], keys)
            )
        ]
        if not contradicting:
            return of_rows, f"Matched by the IDs in the column “{title[:40]}”."
        if not in_order:  # equal IDs prove nothing if the texts differ
            raise TextError(
                f"The IDs in the column “{title[:40]}” of {read.name} are those of {name}, but the "
                f"texts in “{contradicting[0][:40]}” are not. If the IDs are right, remove that "
                "column from the file."
            )
    return None


def _are_other_texts(row_keys: np.ndarray, of_rows: np.ndarray, keys: np.ndarray) -> bool:
    """Whether a column has at least half of the texts, but not all in the matched rows."""
    n_texts = len(np.intersect1d(row_keys, keys))
    return 2 * n_texts >= len(np.unique(keys)) and bool((row_keys != of_rows).any())


def _match_ids(ids: Sequence[str], title: str, column: Sequence[str]) -> np.ndarray | None:
    """[row] corpus rows by ID, -1 for unknown IDs; None if the column does not match.

    Numbers may be something else: the column must be in `ID_COLUMNS` and have each ID once; if the
    corpus IDs only count the texts, it must have no others.
    """
    corpus_ids, written = _normalize_ids(ids), _normalize_ids(column)
    place_by_id = {text_id: place for place, text_id in enumerate(corpus_ids)}
    rows = np.array([place_by_id.get(text_id, -1) for text_id in written])
    counts = np.bincount(rows[rows >= 0], minlength=len(ids))
    if not counts.all():
        return None
    if _are_numbers(ids):
        are_counted = set(map(int, corpus_ids)) == set(range(1, len(corpus_ids) + 1))
        is_id = _normalize(title) in ID_COLUMNS and (counts == 1).all()
        if not is_id or (are_counted and (rows < 0).any()):
            return None
    return rows


def _normalize_ids(ids: Sequence[str]) -> Sequence[str]:
    """Strip leading zeros and ``.0`` if all IDs are whole numbers."""
    if not _are_numbers(ids):
        return ids
    plain = [_WHOLE.sub(r"\1", text_id) for text_id in ids]
    return plain if len(set(plain)) == len(set(ids)) else ids


def _are_numbers(ids: Sequence[str]) -> bool:
    return all(_WHOLE.fullmatch(text_id) for text_id in ids)


def _find_differing(vectors: np.ndarray, first_rows: np.ndarray) -> np.ndarray:
    """[row] whether the vector differs from that of the first row with the same text."""
    apart = np.zeros(len(vectors), dtype=bool)
    (moved,) = np.nonzero(first_rows != np.arange(len(vectors)))
    for rows in np.array_split(moved, len(moved) // _AT_ONCE + 1):
        near = np.isclose(vectors[rows], vectors[first_rows[rows]], rtol=1e-3, atol=1e-6)
        apart[rows] = ~near.all(axis=1)
    return apart


def _normalize(title: str) -> str:
    return title.strip().lower()


def kept_specs(
    vectors: KeptVectors, read_keys: Callable[[], np.ndarray], *, only_imported: bool = False
) -> tuple[EmbedderSpec, ...]:
    """Embedders with a vector for every text, oldest first; the texts' keys are read if needed."""
    specs: dict[EmbedderSpec, None] = {}
    keys: np.ndarray | None = None
    for kept in vectors.embedders():
        try:
            spec = EmbedderSpec.from_json(kept.spec)
        except SettingsError:  # another version or custom embedder
            continue
        if spec.is_imported or not only_imported:
            keys = np.unique(read_keys()) if keys is None else keys
            if vectors.has_vectors(kept, keys).all():
                specs[spec] = None
    return tuple(specs)


def imported_specs(
    vectors: KeptVectors, read_keys: Callable[[], np.ndarray]
) -> dict[str, EmbedderSpec]:
    """Imported vectors with one for every text, oldest first, by label."""
    specs: dict[str, EmbedderSpec] = {}
    for spec in kept_specs(vectors, read_keys, only_imported=True):
        specs[free_name(spec.label, specs)] = spec
    return specs


def find_imported(
    stores: Iterable[KeptVectors], spec: EmbedderSpec, keys: np.ndarray
) -> tuple[KeptVectors, KeptEmbedder]:
    """Find the store whose imported vectors cover all keys. Raises TextError without one."""
    keys = np.unique(keys)
    fewest = len(keys)
    for store in stores:
        for kept in store.embedders():
            if kept.spec == spec.to_json():
                fewest = min(fewest, int((~store.has_vectors(kept, keys)).sum()))
                if not fewest:
                    return store, kept
    raise TextError(
        f"“{spec.label}” has no vector for {fewest:,} of the {many(len(keys), 'different text')}, "
        "or was deleted. Import a file with the texts of the data."
    )


def imported_label(store: CorpusStore, corpus: Corpus, kept: KeptEmbedder) -> str:
    """The label of imported vectors, numbered if several share it."""
    spec = EmbedderSpec.from_json(kept.spec)
    specs = imported_specs(store.vectors, lambda: store.keys(corpus))
    return next((label for label, imported in specs.items() if imported == spec), spec.label)
