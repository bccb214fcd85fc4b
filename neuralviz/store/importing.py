"""Import vectors from files: stored by text, under an ID made of file name and content hash."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.specs import EmbedderSpec, imported_spec
from neuralviz.errors import SettingsError, StoreError, TextError
from neuralviz.reading.texts import ID_COLUMNS, TEXT_COLUMNS
from neuralviz.store.vectors import ID_LENGTH, text_keys
from neuralviz.words import free_name, joined, many

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from neuralviz.reading.vectors import ReadVectors
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder, KeptVectors

FILE = "file:"  # prefix of the label of imported vectors
VERSION = "neuralviz-imported/1"
_AT_ONCE = 8192  # rows
_WHOLE = re.compile(r"0*([0-9]+)(?:\.0+)?")


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
    keys = store.keys(corpus)
    of_rows, matched = _match_rows(store, corpus, keys, read, in_order=in_order)
    return _keep_vectors(store.vectors, read, of_rows, keys, matched)


def import_by_text(vectors: KeptVectors, read: ReadVectors, texts: Sequence[str]) -> Imported:
    """Import vectors for texts, matched by a column that contains all of them."""
    keys = text_keys(texts)
    of_texts, n_found = _match_texts(read, keys)
    n = len(np.unique(keys))
    best = max(n_found, key=n_found.__getitem__, default="")
    if not best:
        raise TextError(
            f"{read.name} has vectors without texts, so nobody knows which is whose. Use a Parquet "
            "file with the columns “text” and “vector”."
        )
    if n_found[best] < n:
        raise TextError(
            f"{read.name} has no vector for {n - n_found[best]:,} of the {n:,} different texts of "
            f"the data (column “{best[:40]}”). Every text needs one."
        )
    complete = {title: row_keys for title, row_keys in of_texts.items() if n_found[title] == n}
    title = _choose_text_column(read, "the data", complete)
    matched = f"Matched by the texts in the column “{title[:40]}”."
    return _keep_vectors(vectors, read, of_texts[title], keys, matched)


def _keep_vectors(
    vectors: KeptVectors, read: ReadVectors, of_rows: np.ndarray, keys: np.ndarray, matched: str
) -> Imported:
    """Store the vectors of the texts in ``keys``; ``of_rows`` holds each row's text key."""
    different, first, place = np.unique(of_rows, return_index=True, return_inverse=True)
    is_wanted = np.isin(different, keys)
    differ = np.zeros(len(different), dtype=bool)
    np.logical_or.at(differ, place, _find_differing(read.vectors, first[place]))
    if n_differ := int((differ & is_wanted).sum()):
        with_several = "text has" if n_differ == 1 else "texts have"
        matched += f" {n_differ:,} {with_several} several different vectors; the first is used."
    different, values = different[is_wanted], read.vectors[first[is_wanted]]
    digest = hashlib.sha256(different.tobytes() + values.tobytes()).hexdigest()[:ID_LENGTH]
    spec = imported_spec(read.name, digest)
    kept_id = hashlib.sha256(f"{VERSION}:{spec.to_json()}".encode()).hexdigest()[:ID_LENGTH]
    kept = vectors.restore(kept_id, spec.to_json(), values.shape[1])
    vectors.put(kept, different, values, np.full((len(different), 2), np.nan))
    return Imported(kept, matched)


def _match_texts(
    read: ReadVectors, keys: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """By column: [row] keys of its cells, and how many distinct ``keys`` it contains."""
    distinct = np.unique(keys)
    of_texts = {title: _hash_texts(read.strings(title), distinct) for title in read.columns}
    return of_texts, {
        title: int(np.isin(distinct, row_keys).sum()) for title, row_keys in of_texts.items()
    }


def _match_rows(
    store: CorpusStore, corpus: Corpus, keys: np.ndarray, read: ReadVectors, *, in_order: bool
) -> tuple[np.ndarray, str]:
    """[row] text keys, and a sentence on how rows were matched."""
    of_texts, n_found = _match_texts(read, keys)
    distinct = np.unique(keys)
    complete = [title for title in of_texts if n_found[title] == len(distinct)]
    ids = store.ids(corpus) if read.columns else []
    if complete:
        title = _choose_text_column(
            read, f"“{corpus.name}”", {column: of_texts[column] for column in complete}
        )
        matched = f"Matched by the texts in the column “{title[:40]}”."
        return of_texts[title], matched + _describe_other_ids(
            read, ids, keys, title, of_texts[title]
        )
    for title in read.columns:
        rows = _match_ids(ids, title, read.strings(title))
        if rows is None:
            continue
        of_rows = np.where(rows >= 0, keys[rows], np.zeros(1, keys.dtype))
        text_columns = TEXT_COLUMNS if _are_numbers(ids) else ("text",)
        other_columns = [
            column
            for column, texts in of_texts.items()
            if column != title
            and (_normalize(column) in text_columns or _are_elsewhere(texts, of_rows, distinct))
        ]
        if not other_columns:
            matched = f"Matched by the IDs in the column “{title[:40]}”."
            return of_rows, matched + _describe_other_texts(read, title, of_rows, of_texts)
        if not in_order:  # equal IDs prove nothing if the texts differ
            raise TextError(
                f"The IDs in the column “{title[:40]}” of {read.name} are those of "
                f"“{corpus.name}”, but the texts in “{other_columns[0][:40]}” are not. If the IDs "
                "are right, remove that column from the file."
            )
    if read.is_array or in_order:
        if len(read.vectors) != len(keys):
            raise TextError(
                f"{read.name} has {many(len(read.vectors), 'row')}, but “{corpus.name}” has "
                f"{many(len(keys), 'text')}. It needs one row per text, in the same order."
            )
        return keys, "Matched by row, in the order of the corpus."
    best = max(n_found, key=n_found.__getitem__, default="")
    if n_found.get(best):
        raise TextError(
            f"{read.name} has no vector for {len(distinct) - n_found[best]:,} of the "
            f"{len(distinct):,} different texts of “{corpus.name}” (column “{best[:40]}”). Every "
            "text of the corpus needs one."
        )
    names = ", ".join(f"“{title[:40]}”" for title in list(read.columns)[:12])
    listed = f"the columns {names}" if names else "no column beside the vectors"
    raise TextError(
        f"{read.name} has neither the texts nor the IDs of “{corpus.name}”: it has {listed}. "
        "Add a column “text” or “id”. If its rows are in the order of the corpus, match by "
        "row."
    )


def _describe_other_ids(
    read: ReadVectors, ids: Sequence[str], keys: np.ndarray, text_column: str, of_rows: np.ndarray
) -> str:
    """A sentence on IDs that contradict the matched texts; empty if none do."""
    sentence = ""
    for title in read.columns:
        rows = _match_ids(ids, title, read.strings(title)) if title != text_column else None
        if rows is None:
            continue
        differ = (rows >= 0) & (keys[rows] != of_rows)
        if not differ.any():
            return ""  # this column has the right IDs
        sentence = sentence or (
            f" But the IDs in the column “{title[:40]}” are those of other texts in "
            f"{many(int(differ.sum()), 'row')}, first in row {differ.argmax() + 1:,}. "
            "The texts count."
        )
    return sentence


def _describe_other_texts(
    read: ReadVectors, id_column: str, of_rows: np.ndarray, of_texts: Mapping[str, np.ndarray]
) -> str:
    """A sentence on texts that contradict the matched IDs; empty if none do."""
    is_wanted = of_rows != np.zeros(1, of_rows.dtype)
    for title, texts in of_texts.items():
        differ = is_wanted & (texts != of_rows)
        holds_texts = title != id_column and (is_wanted & ~differ).any()
        if holds_texts and differ.any():
            return (
                f" But the column “{title[:40]}” has another text than the corpus in "
                f"{many(int(differ.sum()), 'row')}, first in row {differ.argmax() + 1:,}. The IDs "
                "count."
            )
    return ""


def _are_elsewhere(texts: np.ndarray, of_rows: np.ndarray, wanted_keys: np.ndarray) -> bool:
    """Whether a column has at least half of the texts, but not all in the matched rows."""
    is_wanted = np.isin(texts, wanted_keys)
    is_text_column = 2 * len(np.unique(texts[is_wanted])) >= len(wanted_keys)
    return is_text_column and bool((texts != of_rows)[is_wanted].any())


def _hash_texts(texts: Sequence[str], known_keys: np.ndarray) -> np.ndarray:
    """[row] text keys; unmatched texts are tried with normalised line breaks."""
    keys = text_keys(texts)
    unmatched = np.flatnonzero(~np.isin(keys, known_keys))
    broken = [index for index in unmatched.tolist() if "\r" in texts[index]]
    if broken:
        keys = keys.copy()
        plain = (texts[index].replace("\r\n", "\n").replace("\r", "\n") for index in broken)
        keys[broken] = text_keys(plain)
    return keys


def _choose_text_column(read: ReadVectors, name: str, complete: Mapping[str, np.ndarray]) -> str:
    """Choose among columns that hold all texts. Raises TextError if ambiguous."""
    titles = list(complete)
    if any((complete[title] != complete[titles[0]]).any() for title in titles):
        called = [title for title in titles if _normalize(title) in TEXT_COLUMNS]
        titles = called if len(called) == 1 else [t for t in called if _normalize(t) == "text"]
    if not titles:
        listed = joined([f"“{title[:40]}”" for title in complete])
        raise TextError(
            f"{read.name} has the texts of {name} in the columns {listed}. Rename the one "
            "whose vectors these are to “text”."
        )
    return titles[0]


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


def imported_specs(vectors: KeptVectors, keys: np.ndarray) -> dict[str, EmbedderSpec]:
    """Imported vectors that cover all texts, oldest first, by label."""
    specs: dict[str, EmbedderSpec] = {}
    for kept in vectors.embedders():
        try:
            spec = EmbedderSpec.from_json(kept.spec)
        except SettingsError:  # another version or custom embedder
            continue
        if spec.is_imported and vectors.has_vectors(kept, keys).all():
            specs[free_name(spec.label, specs)] = spec
    return specs


def find_imported(
    stores: Iterable[KeptVectors], spec: EmbedderSpec, keys: np.ndarray
) -> tuple[KeptVectors, KeptEmbedder]:
    """Find the store whose imported vectors cover all keys. Raises TextError or StoreError."""
    keys = np.unique(keys)
    spec_json, fewest = spec.to_json(), len(keys) + 1
    for store in stores:
        for kept in store.embedders():
            if kept.spec == spec_json:
                fewest = min(fewest, int((~store.has_vectors(kept, keys)).sum()))
                if not fewest:
                    return store, kept
    if fewest > len(keys):
        raise StoreError(f"The vectors of “{spec.label}” were deleted. Import the file again.")
    raise TextError(
        f"“{spec.label}” has no vector for {fewest:,} of the {many(len(keys), 'different text')}. "
        "Its texts must be those of the data."
    )


def imported_label(store: CorpusStore, corpus: Corpus, kept: KeptEmbedder) -> str:
    """The label of imported vectors, numbered if several share it."""
    spec = EmbedderSpec.from_json(kept.spec)
    specs = imported_specs(store.vectors, store.keys(corpus))
    return next((label for label, imported in specs.items() if imported == spec), spec.label)
