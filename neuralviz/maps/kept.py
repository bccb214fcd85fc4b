"""Saved maps; if two processes save the same map, the first to write its row in ``maps`` wins."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from neuralviz.errors import StoreError
from neuralviz.files import npz_bytes, read_npz
from neuralviz.maps.clusters import Clusters, cluster_names
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.projection import Projection, ProjectionSettings
from neuralviz.store.corpora import Column, Corpus, CorpusStore, are_whole
from neuralviz.store.database import PATIENCE, current_time, list_array, read_rows, rows_of
from neuralviz.store.vectors import LOSSES, KeptEmbedder
from neuralviz.store.writing import vector_lists
from neuralviz.words import free_name, printable_line

VERSION = 2  # of the method: changes the ID of maps with equal settings
LONGEST_NAME = 60  # characters of a cluster's own name
_ID_LENGTH = 24
_DELETED = "This map was deleted in the meantime. Make it again."
_ENTRY_COLUMNS = ("id", "corpus", "embedder", "created", "about")


@dataclass(frozen=True)
class KeptMap:
    """A saved map; its points stay on disk."""

    id: str  # see `map_id`
    corpus: str  # their ids
    embedder: str  # their ids
    table: str  # table of its points
    created: str  # ISO 8601, UTC
    settings: ProjectionSettings  # of the projection
    cluster_words: tuple[tuple[str, ...], ...]  # by cluster
    notes: tuple[str, ...]  # sentences on deviations from the settings
    n_fitted: int | None = None  # size of the fitted sample; None if all texts were fitted
    recall: float | None = None  # recall of the index, for a map fitted to a sample
    own_names: tuple[str, ...] = ()  # by cluster, as a person named it; "" for its words

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """What clusters are called: their own names, else their first words."""
        by_words = cluster_names(self.cluster_words)
        return tuple(a or b for a, b in zip(self._own_names, by_words, strict=True))

    @property
    def _own_names(self) -> tuple[str, ...]:
        return self.own_names or ("",) * len(self.cluster_words)

    def rename_cluster(self, cluster: int, name: str) -> KeptMap:
        names = list(self._own_names)
        names[cluster] = printable_line(name)[:LONGEST_NAME].strip()
        return replace(self, own_names=tuple(names))


class KeptMaps:
    """The maps in a store; deleting a corpus deletes its maps."""

    def __init__(self, store: CorpusStore) -> None:
        self._database = store.database

    def list_maps(self, corpus: Corpus) -> tuple[KeptMap, ...]:
        """List the maps of a corpus, newest first."""
        rows = reversed(self._database.entries("maps", _ENTRY_COLUMNS))
        return tuple({r["id"]: _read_entry(r) for r in rows if r["corpus"] == corpus.id}.values())

    def by_id(self, corpus: Corpus, map_id: str) -> KeptMap:
        """Find a map by ID. Raises StoreError if it is gone."""
        for kept in self.list_maps(corpus):
            if kept.id == map_id:
                return kept
        raise StoreError(_DELETED)

    def find(
        self, corpus: Corpus, embedder: KeptEmbedder, settings: ProjectionSettings
    ) -> KeptMap | None:
        wanted_id = map_id(corpus, embedder, settings)
        return next((kept for kept in self.list_maps(corpus) if kept.id == wanted_id), None)

    def put(
        self,
        corpus: Corpus,
        embedder: KeptEmbedder,
        projection: Projection,
        clusters: Clusters,
        cluster_words: Sequence[Sequence[str]],
        *,
        sample: np.ndarray | None = None,  # [fitted] ascending rows, if not all were fitted
        coordinates: np.ndarray | None = None,  # [text, dimensions], with a sample
        recall: float | None = None,
    ) -> KeptMap:
        """Save a map, or return the existing one. Raises StoreError, saving nothing, on failure."""
        new_id = map_id(corpus, embedder, projection.settings)
        kept = KeptMap(
            id=new_id,
            table=f"map-{new_id}-{secrets.token_hex(4)}",
            corpus=corpus.id,
            embedder=embedder.id,
            created=current_time(),
            settings=projection.settings,
            cluster_words=tuple(map(tuple, cluster_words)),
            notes=projection.notes,
            n_fitted=None if sample is None else len(sample),
            recall=recall,
        )
        if coordinates is None:
            coordinates = projection.coordinates
        fitted_rows = np.arange(len(coordinates)) if sample is None else sample
        tables = {
            _fit_table(kept): {
                "row": pa.array(fitted_rows.astype(np.int32)),
                "neighbours": list_array(projection.neighbours.indices),
                "distances": list_array(projection.neighbours.distances),
            },
            kept.table: {
                "point": list_array(coordinates.astype(np.float32, copy=False)),
                "cluster": pa.array(clusters.labels.astype(np.int32, copy=False)),
            },
        }
        with ExitStack() as unused:
            for name, columns in tables.items():
                unused.callback(self._drop, name)
                with self._database.lock(PATIENCE):
                    self._database.create(name, pa.table(columns))
            with self._database.lock(PATIENCE):
                entry = _entry(kept) | {"fitted": npz_bytes({}, projection.fitted)}
                merge = self._database.registry("maps").merge_insert("id")
                merge.when_not_matched_insert_all().execute([entry])
            undo = unused.pop_all()
        first = self.find(corpus, embedder, kept.settings) or kept
        if first.table != kept.table:  # another process was faster
            undo.close()
        return first

    def points(self, kept: KeptMap) -> tuple[np.ndarray, Clusters]:
        table = self._read(kept.table, ["point", "cluster"])
        clusters = Clusters(table["cluster"].to_numpy(), len(kept.cluster_words))
        return rows_of(table["point"]), clusters

    def points_of(self, kept: KeptMap, rows: np.ndarray) -> np.ndarray:
        """[row, dimensions] coordinates of some texts, in the order of ``rows``."""
        return rows_of(self._read(kept.table, ["point"], rows)["point"])

    def neighbours(self, kept: KeptMap, rows: np.ndarray | None = None) -> Neighbours:
        """Neighbours of all texts or of ``rows``. Raises StoreError if only a sample was fitted."""
        if kept.n_fitted is not None:
            raise StoreError("The neighbours of all texts are not saved with a map this large.")
        return self._read_neighbours(kept, rows)

    def sample(self, kept: KeptMap) -> np.ndarray:
        """[fitted] rows of the fitted texts, ascending."""
        return self._read(_fit_table(kept), ["row"])["row"].to_numpy()

    def projection(self, kept: KeptMap) -> Projection:
        coordinates = self.points(kept)[0]
        if kept.n_fitted is not None:
            coordinates = coordinates[self.sample(kept)]
        neighbours = self._read_neighbours(kept)
        return Projection(coordinates, kept.settings, neighbours, kept.notes, self.fitted(kept))

    def fitted(self, kept: KeptMap) -> dict[str, np.ndarray]:
        rows = self._database.entries("maps", ("id", "created", "fitted"))
        content = next((row["fitted"] for row in rows if row["id"] == kept.id), b"")
        return read_npz(content)[1] if content else {}

    def rename_cluster(self, corpus: Corpus, kept: KeptMap, cluster: int, name: str) -> KeptMap:
        """Name a cluster; without a name its words do. Raises StoreError if the map is gone."""
        with self._database.lock():
            renamed = self.by_id(corpus, kept.id).rename_cluster(cluster, name)
            values = {"about": _entry(renamed)["about"]}
            self._database.registry("maps").update(where=f"id = '{kept.id}'", values=values)
            return renamed

    def delete(self, kept: KeptMap) -> None:
        self._database.forget("maps", id=kept.id)

    def _drop(self, table: str) -> None:
        with suppress(StoreError), self._database.lock():
            self._database.drop(table)

    def _read_neighbours(self, kept: KeptMap, rows: np.ndarray | None = None) -> Neighbours:
        table = self._read(_fit_table(kept), ["neighbours", "distances"], rows)
        return Neighbours(rows_of(table["neighbours"]), rows_of(table["distances"]))

    def _read(self, name: str, columns: list[str], rows: np.ndarray | None = None) -> pa.Table:
        with self._database.reading(missing=_DELETED):
            return read_rows(self._database.open(name), columns, rows)


def map_id(corpus: Corpus, embedder: KeptEmbedder, settings: ProjectionSettings) -> str:
    """Hash of ``neuralviz-map/2:`` and canonical JSON of corpus and embedder ID and settings."""
    depends_on = {"corpus": corpus.id, "embedder": embedder.id, "settings": settings.relevant()}
    document = json.dumps(depends_on, sort_keys=True, separators=(",", ":"), allow_nan=False)
    key = f"neuralviz-map/{VERSION}:{document}"
    return hashlib.sha256(key.encode()).hexdigest()[:_ID_LENGTH]


def _read_entry(row: Mapping[str, Any]) -> KeptMap:
    columns = {name: row[name] for name in _ENTRY_COLUMNS[:-1]}
    details = json.loads(row["about"])
    del details["fit"]
    return KeptMap(
        **columns
        | details
        | {
            "settings": ProjectionSettings.from_dict(details["settings"]),
            "cluster_words": tuple(map(tuple, details["cluster_words"])),
            "notes": tuple(details["notes"]),
            "own_names": tuple(details.get("own_names", ())),
        }
    )


def _entry(kept: KeptMap) -> dict[str, Any]:
    details = asdict(kept) | {"settings": kept.settings.relevant(), "fit": _fit_table(kept)}
    columns = {name: details.pop(name) for name in _ENTRY_COLUMNS[:-1]}
    return columns | {"about": json.dumps(details)}


def _fit_table(kept: KeptMap) -> str:
    return f"{kept.table}-fit"


NO_CLUSTER = -1
PIECE = 20_000  # texts; about 100 MB with long vectors
AXES = ("x", "y", "z")
OWN_COLUMNS = ("id", "text", *AXES, "cluster", "cluster_name", *LOSSES, "vector")


def corpus_table(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder | None = None,
    kept: KeptMap | None = None,
    rows: np.ndarray | None = None,
) -> pa.Table:
    """Table of ``id``, ``text`` and labels, in the order of the corpus or of ``rows``.

    A map adds ``x``, ``y`` (``z``), ``cluster`` (1 is the largest, -1 none) and ``cluster_name``,
    an embedder ``vector``, and ``first_loss`` and ``last_loss`` if texts were learnt. Labels with
    such names get the suffix ``label``. Raises StoreError if the corpus, the map or a vector is
    missing.
    """
    return pa.concat_tables(corpus_pieces(store, corpus, embedder, kept, rows))


def corpus_pieces(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder | None = None,
    kept: KeptMap | None = None,
    rows: np.ndarray | None = None,
    size: int = PIECE,
) -> Iterator[pa.Table]:
    """`corpus_table` in pieces of ``size`` texts, to bound memory."""
    points = None if kept is None else KeptMaps(store).points(kept)
    vectors = store.vectors.locate(embedder, store.keys(corpus, rows)) if embedder else None
    kinds = {column.name: _label_type(store, corpus, column, rows) for column in corpus.columns}
    text_rows = np.arange(corpus.n_texts) if rows is None else np.asarray(rows, dtype=np.int64)
    for start in range(0, max(len(text_rows), 1), size):
        block_rows = text_rows[start : start + size]
        columns: dict[str, pa.Array] = {
            "id": pa.array(store.ids(corpus, block_rows), pa.string()),
            "text": pa.array(store.texts(corpus, block_rows), pa.large_string()),
        }
        for name, kind in kinds.items():
            title = free_name(name, (*OWN_COLUMNS, *columns), "label")
            columns[title] = pa.array(
                store.labels(corpus, name, block_rows), kind, from_pandas=True
            )
        if points is not None:
            coordinates, clusters = points
            columns |= dict(zip(AXES, map(pa.array, coordinates[block_rows].T), strict=False))
            labels = clusters.labels[block_rows]
            columns["cluster"] = pa.array(np.where(labels >= 0, labels + 1, NO_CLUSTER), pa.int32())
            names = pa.array([*kept.cluster_names, None] if kept else [], pa.string())
            columns["cluster_name"] = names.take(pa.array(labels % len(names)))
        if vectors is not None:
            numbers = np.arange(start, start + len(block_rows))
            if not np.isnan(vectors.loss).all():
                columns |= dict(zip(LOSSES, map(pa.array, vectors.loss[numbers].T), strict=True))
            columns["vector"] = vector_lists(vectors.read(numbers))
        yield pa.table(columns)


def _label_type(
    store: CorpusStore, corpus: Corpus, column: Column, rows: np.ndarray | None
) -> pa.DataType:
    if column.kind != "number":
        return pa.string()
    is_whole = are_whole(store.labels(corpus, column.name, rows))
    return pa.int64() if is_whole else pa.float64()
