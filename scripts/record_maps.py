"""Remake the maps that the Corpus map page opens with: `sample_data/topics_maps.npz`.

python scripts/record_maps.py

To be run after a change of the texts, of the bundled weights, or of how vectors and maps are made;
a test says when. Learning every text takes minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from neuralviz.embedders import FOR_CORPORA, embedder_spec
from neuralviz.maps.example import NAME, RECORDED, TEXTS, record
from neuralviz.maps.mapping import make_map
from neuralviz.maps.settings import ProjectionSettings
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.embedding import embed_corpus

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


if __name__ == "__main__":
    main()
