"""Remake the maps that the Corpus map page opens with: `sample_data/topics_maps.npz`.

python scripts/record_maps.py

To be run after a change of the texts, of the bundled weights, or of how vectors and maps are made;
a test says when. Learning every text takes minutes.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from neuralviz.embedders import FOR_CORPORA, embedder_spec
from neuralviz.maps.example import NAME, RECORDED, TEXTS
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import make_map
from neuralviz.maps.projection import ProjectionSettings
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.embedding import embed_corpus
from neuralviz.store.vectors import KeptEmbedder

METHODS = ("neural", "mean")  # the last one is the newest: the first to be found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--store", type=Path, help="folder to save the embeddings in for another run"
    )
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        store = CorpusStore(args.store or Path(folder))
        corpus = store.add(NAME, read_texts(Source(TEXTS, (sample_data() / TEXTS).read_bytes())))
        maps = []
        for method in METHODS:
            spec = embedder_spec(method, defaults=FOR_CORPORA)
            for progress in embed_corpus(store, corpus, spec):
                print(f"\r{method}: {progress.done} of {progress.total}", end="", flush=True)
            kept = make_map(store, corpus, progress.embedder, ProjectionSettings())
            print(f", {len(kept.cluster_words)} clusters")
            maps.append((progress.embedder, kept))
        path = sample_data() / RECORDED
        path.write_bytes(record(store, corpus, maps))
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def record(store: CorpusStore, corpus: Corpus, maps: list[tuple[KeptEmbedder, KeptMap]]) -> bytes:
    """The content of the recorded file, from maps by UMAP of the example in a store.

    Its vectors are rounded to 16 bits.
    """
    arrays: dict[str, Any] = {}
    descriptions = []
    keys = store.keys(corpus)
    for place, (embedder, kept) in enumerate(maps):
        projection = KeptMaps(store).projection(kept)
        _, clusters = KeptMaps(store).points(kept)
        arrays |= {
            f"vectors-{place}": _round_to_16_bits(store.vectors.get(embedder, keys)),
            f"loss-{place}": store.vectors.losses(embedder, keys).astype(np.float32),
            f"points-{place}": projection.coordinates,
            f"neighbours-{place}": projection.neighbours.indices,
            f"distances-{place}": projection.neighbours.distances,
            f"clusters-{place}": clusters.labels,
        }
        descriptions.append(
            {
                "embedder": embedder.id,
                "spec": embedder.spec,
                "settings": kept.settings.relevant(),
                "words": kept.cluster_words,
            }
        )
    file = io.BytesIO()
    np.savez_compressed(file, about=np.array(json.dumps(descriptions)), **arrays)
    return file.getvalue()


def _round_to_16_bits(vectors: np.ndarray) -> np.ndarray:
    """float32 values rounded to 16 significant bits, 0.002%; they compress to three quarters."""
    bits = np.ascontiguousarray(vectors, np.float32).view(np.uint32)
    return ((bits + 0x80) & np.uint32(0xFFFFFF00)).view(np.float32)


if __name__ == "__main__":
    main()
