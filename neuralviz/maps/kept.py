"""Maps that are kept: the same picture whenever they are opened, and on any machine.

Points lie in a table of their own, ``map-ID-…``, which the row in ``maps`` names: of two processes
that make one map at once, the first to write its row is believed, and the other takes its own away.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neuralviz.errors import StoreError
from neuralviz.maps.clusters import Clusters
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.projection import Projection
from neuralviz.maps.settings import ProjectionSettings
from neuralviz.store.database import PATIENCE, all_rows, list_array, now, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

VERSION = 2  # of how maps are made: another one makes another map of the same settings
_ID_LENGTH = 24
_DELETED = "This map was deleted in the meantime. Make it again."
_ENTRY_COLUMNS = ("id", "corpus", "embedder", "created", "about")


@dataclass(frozen=True)
class KeptMap:
    """A kept map; its points stay on disk.

    Attributes:
        id: hash of its `cache_key`.
        corpus, embedder: their ids.
        table: of its points.
        created: ISO 8601, UTC.
        settings: how it was projected.
        min_cluster_size: texts that the smallest cluster may have.
        cluster_words: by cluster, the words that set it apart.
        notes: sentences on what was done otherwise than asked.
        n_fitted: texts of the random sample that the map was fitted to, where the other texts were
            placed on it; None for a map of all texts.
        recall: 0 … 1 share of the 10 nearest texts that the index finds, measured on a sample when
            the map was made; None where neighbours are kept, or searched for without an index.
    """

    id: str
    corpus: str
    embedder: str
    table: str
    created: str
    settings: ProjectionSettings
    min_cluster_size: int
    cluster_words: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    n_fitted: int | None = None
    recall: float | None = None


class KeptMaps:
    """The maps of the corpora in a store; a corpus that is deleted takes its maps with it.

    Args:
        store: that keeps the corpora.
    """

    def __init__(self, store: CorpusStore) -> None:
        self._database = store.database

    def list_maps(self, corpus: Corpus) -> tuple[KeptMap, ...]:
        """The maps of a corpus, those made last first."""
        rows = reversed(self._database.entries("maps", _ENTRY_COLUMNS))
        return tuple({r["id"]: _read_entry(r) for r in rows if r["corpus"] == corpus.id}.values())

    def by_id(self, corpus: Corpus, map_id: str) -> KeptMap:
        """A map of a corpus.

        Raises:
            StoreError: it is gone.
        """
        for kept in self.list_maps(corpus):
            if kept.id == map_id:
                return kept
        raise StoreError(_DELETED)

    def find(
        self, corpus: Corpus, embedder: KeptEmbedder, settings: ProjectionSettings
    ) -> KeptMap | None:
        """The map that was made of a corpus in just this way, if there is one."""
        wanted_id = map_id(corpus, embedder, settings)
        return next((kept for kept in self.list_maps(corpus) if kept.id == wanted_id), None)

    def put(
        self,
        corpus: Corpus,
        embedder: KeptEmbedder,
        projection: Projection,
        clusters: Clusters,
        cluster_words: Sequence[Sequence[str]],
    ) -> KeptMap:
        """Keep a map, unless one that was made in the same way is there already.

        Returns:
            The one that is kept.

        Raises:
            StoreError: it cannot be written; nothing of it is kept then.
        """
        neighbours = projection.neighbours
        lists = {
            "neighbours": list_array(neighbours.indices),
            "distances": list_array(neighbours.distances),
        }
        rows = _points(projection.coordinates, clusters, lists)
        kept = _make_entry(corpus, embedder, projection, clusters, cluster_words)
        return self._put(corpus, kept, projection, {kept.table: rows})

    def put_placed(
        self,
        corpus: Corpus,
        embedder: KeptEmbedder,
        sample: np.ndarray,
        projection: Projection,
        coordinates: np.ndarray,
        clusters: Clusters,
        cluster_words: Sequence[Sequence[str]],
        recall: float | None,
    ) -> KeptMap:
        """Keep a map that was fitted to a sample of the texts, as `put` does.

        Args:
            corpus: on the map.
            embedder: whose vectors were projected.
            sample: [fitted] rows of the sample, rising.
            projection: of the sample.
            coordinates: [text, dimensions] of all texts, those of the sample as in the projection.
            clusters: of all texts.
            cluster_words: by cluster.
            recall: as of `KeptMap`.

        Returns, Raises:
            As `put`.
        """
        neighbours = projection.neighbours
        kept = replace(
            _make_entry(corpus, embedder, projection, clusters, cluster_words),
            n_fitted=len(sample),
            recall=recall,
        )
        fit = pa.table(
            {
                "row": pa.array(sample.astype(np.int32)),
                "neighbours": list_array(neighbours.indices),
                "distances": list_array(neighbours.distances),
            }
        )
        rows = _points(coordinates, clusters, {})
        return self._put(corpus, kept, projection, {_fit_table(kept): fit, kept.table: rows})

    def _put(
        self,
        corpus: Corpus,
        kept: KeptMap,
        projection: Projection,
        tables: Mapping[str, pa.Table],
    ) -> KeptMap:
        """Write the tables of a map and its entry; the first of its kind is believed."""

        def register() -> None:
            entry = _entry(kept, projection.neighbours.metric)
            merge = self._database.registry("maps").merge_insert("id")
            packed = {"fitted": _pack(projection.fitted)}
            merge.when_not_matched_insert_all().execute([entry | packed])

        for name, rows in tables.items():
            self._database.write(partial(self._database.create, name, rows), PATIENCE)
        self._database.write(register, PATIENCE)
        first = next((entry for entry in self.list_maps(corpus) if entry.id == kept.id), kept)
        if first.table != kept.table:
            for name in tables:
                self._database.write(partial(self._database.drop, name), PATIENCE)
        return first

    def points(self, kept: KeptMap) -> tuple[np.ndarray, Clusters]:
        """[text, dimensions] float32 coordinates, and the clusters."""
        table = self._read(kept.table, "point", "cluster")
        labels = table["cluster"].to_numpy()
        return _read_lists(table["point"]), Clusters(
            labels, len(kept.cluster_words), kept.min_cluster_size
        )

    def neighbours(self, kept: KeptMap) -> Neighbours:
        """The neighbours of every text in the space that was projected.

        Raises:
            StoreError: they are not kept, for the map was fitted to a sample; or it was deleted.
        """
        if kept.n_fitted is not None:
            raise StoreError("The neighbours of all texts are not saved with a map this large.")
        return self._neighbours(kept, kept.table)

    def _neighbours(self, kept: KeptMap, name: str) -> Neighbours:
        table = self._read(name, "neighbours", "distances")
        metric = self._entry(kept)["metric"]
        return Neighbours(_read_lists(table["neighbours"]), _read_lists(table["distances"]), metric)

    def neighbours_of(self, kept: KeptMap, rows: np.ndarray) -> Neighbours:
        """`neighbours` of some texts alone, in the order asked for."""
        different, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        with self._database.reading(missing=_DELETED):
            query = self._database.open(kept.table).take_offsets(different.tolist())
            table = query.select(["row", "neighbours", "distances"]).to_arrow().sort_by("row")
        return Neighbours(
            _read_lists(table["neighbours"])[places],
            _read_lists(table["distances"])[places],
            kept.settings.metric,
        )

    def points_of(self, kept: KeptMap, rows: np.ndarray) -> np.ndarray:
        """[row, dimensions] coordinates of some texts alone, in the order asked for."""
        different, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        with self._database.reading(missing=_DELETED):
            query = self._database.open(kept.table).take_offsets(different.tolist())
            table = query.select(["row", "point"]).to_arrow().sort_by("row")
        return _read_lists(table["point"])[places]

    def sample(self, kept: KeptMap) -> np.ndarray:
        """[fitted] rows of the texts that the map was fitted to, rising; all, where it was so."""
        table = self._read(kept.table if kept.n_fitted is None else _fit_table(kept))
        return table["row"].to_numpy()

    def projection(self, kept: KeptMap) -> Projection:
        """The whole projection, as it was put in: of all texts, or of the `sample`."""
        fitted = self.fitted(kept)
        if kept.n_fitted is None:
            coordinates, neighbours = self.points(kept)[0], self.neighbours(kept)
        else:
            coordinates = self.points_of(kept, self.sample(kept))
            neighbours = self._neighbours(kept, _fit_table(kept))
        return Projection(coordinates, kept.settings, neighbours, kept.notes, fitted)

    def fitted(self, kept: KeptMap) -> dict[str, np.ndarray]:
        """Arrays that the reducer made beside the coordinates, as of `Projection`."""
        rows = self._database.entries("maps", ("id", "created", "fitted"))
        return _unpack(next((row["fitted"] for row in rows if row["id"] == kept.id), b""))

    def delete(self, kept: KeptMap) -> None:
        """Forget a map."""
        self._database.forget("maps", id=kept.id)

    def _entry(self, kept: KeptMap) -> dict[str, Any]:
        for row in self._database.entries("maps", _ENTRY_COLUMNS):
            if row["id"] == kept.id:
                return json.loads(row["about"])
        raise StoreError(_DELETED)

    def _read(self, name: str, *columns: str) -> pa.Table:
        with self._database.reading(missing=_DELETED):
            query = self._database.open(name).search().select(["row", *columns])
            table = all_rows(query)
            rows = table["row"].to_numpy()  # in their order, unless the database has moved some
            return table if (rows[1:] > rows[:-1]).all() else table.sort_by("row")


def cache_key(corpus: Corpus, embedder: KeptEmbedder, settings: ProjectionSettings) -> str:
    """All that a map depends on, equal for equal maps.

    ``neuralviz-map/2:`` and canonical JSON of ``corpus`` and ``embedder`` (their ids) and
    ``settings`` (those that matter for the reducer). The ``2`` is `VERSION`.
    """
    depends_on = {"corpus": corpus.id, "embedder": embedder.id, "settings": settings.relevant()}
    document = json.dumps(depends_on, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"neuralviz-map/{VERSION}:{document}"


def map_id(corpus: Corpus, embedder: KeptEmbedder, settings: ProjectionSettings) -> str:
    """The id of a map: the hash of its `cache_key`."""
    key = cache_key(corpus, embedder, settings)
    return hashlib.sha256(key.encode()).hexdigest()[:_ID_LENGTH]


def _read_entry(row: Mapping[str, Any]) -> KeptMap:
    details = json.loads(row["about"])
    return KeptMap(
        id=row["id"],
        corpus=row["corpus"],
        embedder=row["embedder"],
        table=details["table"],
        created=row["created"],
        settings=ProjectionSettings.from_dict(details["settings"]),
        min_cluster_size=details["min_cluster_size"],
        cluster_words=tuple(tuple(words) for words in details["cluster_words"]),
        notes=tuple(details["notes"]),
        n_fitted=details.get("n_fitted"),
        recall=details.get("recall"),
    )


def _make_entry(
    corpus: Corpus,
    embedder: KeptEmbedder,
    projection: Projection,
    clusters: Clusters,
    cluster_words: Sequence[Sequence[str]],
) -> KeptMap:
    """The entry of a new map."""
    new_id = map_id(corpus, embedder, projection.settings)
    return KeptMap(
        id=new_id,
        table=f"map-{new_id}-{secrets.token_hex(4)}",
        corpus=corpus.id,
        embedder=embedder.id,
        created=now(),
        settings=projection.settings,
        min_cluster_size=clusters.min_cluster_size,
        cluster_words=tuple(map(tuple, cluster_words)),
        notes=projection.notes,
    )


def _fit_table(kept: KeptMap) -> str:
    """The table of the sample that a map was fitted to."""
    return f"{kept.table}-fit"


def _points(
    coordinates: np.ndarray, clusters: Clusters, extra_columns: Mapping[str, pa.Array]
) -> pa.Table:
    """The rows of the table of a map's points."""
    return pa.table(
        {
            "row": pa.array(np.arange(len(coordinates), dtype=np.int32)),
            "point": list_array(coordinates.astype(np.float32, copy=False)),
            "cluster": pa.array(clusters.labels.astype(np.int32, copy=False)),
            **extra_columns,
        }
    )


def _entry(kept: KeptMap, metric: str) -> dict[str, Any]:
    details = {
        "table": kept.table,
        "settings": kept.settings.relevant(),
        "min_cluster_size": kept.min_cluster_size,
        "cluster_words": kept.cluster_words,
        "notes": kept.notes,
        "metric": metric,
    }
    if kept.n_fitted is not None:
        details |= {"n_fitted": kept.n_fitted, "recall": kept.recall, "fit": _fit_table(kept)}
    columns = {name: getattr(kept, name) for name in _ENTRY_COLUMNS[:-1]}
    return columns | {"about": json.dumps(details)}


def _read_lists(column: pa.ChunkedArray) -> np.ndarray:
    return np.concatenate([rows_of(chunk) for chunk in column.chunks])


def _pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _unpack(content: bytes) -> dict[str, np.ndarray]:
    if not content:
        return {}
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
