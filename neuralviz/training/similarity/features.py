"""Features of scored pairs: a vector a layer of each text."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.pooled import LayerwiseEmbedder
from neuralviz.errors import TextError, never
from neuralviz.store.embedding import EmbeddingEvent, embed
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.reading.pairs import ScoredPairs
    from neuralviz.store.vectors import VectorStore

MOST_BYTES = 4 << 30  # of features in memory
PARTS = (
    8  # that texts are read in: a stop loses one, and within one texts of like length go together
)
FEWEST_AT_ONCE, MOST_AT_ONCE = 256, 2048  # texts of a part
KEPT_EVERY = 10.0  # seconds: a second's features are many bytes


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of pairs; a text that is in several pairs is there once.

    Attributes:
        vectors: [text, layer, d_model] of length 1, or of zeros.
        first, second: [pair] places of the texts.
    """

    vectors: np.ndarray
    first: np.ndarray
    second: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def n_layers(self) -> int:
        """Layers, the embedding output included."""
        return int(self.vectors.shape[1])

    @property
    def d_model(self) -> int:
        """Values of a vector at one layer."""
        return int(self.vectors.shape[2])

    @property
    def cosines(self) -> np.ndarray:
        """[pair, layer] -1 … 1; 0 for a vector of zeros."""
        return np.stack(
            [
                np.einsum(
                    "pd,pd->p", self.vectors[self.first, layer], self.vectors[self.second, layer]
                )
                for layer in range(self.n_layers)
            ],
            axis=1,
        )

    def select(self, places: np.ndarray) -> PairFeatures:
        """The features of some pairs; the vectors are shared."""
        return PairFeatures(
            self.vectors, self.first[places], self.second[places], self.scores[places]
        )


def different_texts(pairs: Sequence[ScoredPairs]) -> list[str]:
    """The texts of pairs, each once, in the order they come in."""
    texts = (text for part in pairs for text in (*part.sentences1, *part.sentences2))
    return list(dict.fromkeys(texts))


def look_up(
    embedder: LayerwiseEmbedder,
    texts: Sequence[str],
    store: VectorStore,
    *,
    should_stop: ShouldStop = never,
) -> Generator[EmbeddingEvent, None, np.ndarray]:
    """Features of texts, each once; those that the store has are not computed again.

    Yields:
        Progress events.

    Returns:
        [text, layer, d_model] vectors of length 1.

    Raises:
        TextError: their features would take more memory than `MOST_BYTES`, or a text has no token.
        ModelError: a vector holds what is no finite number.
        StoreError: they cannot be kept.
        Stopped: ``should_stop`` said so.
    """
    check_room(len(texts), embedder)
    vectors = np.zeros((len(texts), embedder.dim), np.float32)
    for event in embed(
        texts,
        embedder,
        store,
        batch_size=min(max(len(texts) // PARTS, FEWEST_AT_ONCE), MOST_AT_ONCE),
        keep_every=KEPT_EVERY,
        should_stop=should_stop,
    ):
        if event.vectors is not None:
            vectors[event.at] = event.vectors
        yield event
    return embedder.unfold(vectors)


def check_room(n_texts: int, embedder: LayerwiseEmbedder) -> None:
    """Refuse more texts than fit, before anything is computed; says how many do."""
    of_one = embedder.dim * 4
    if n_texts * of_one > MOST_BYTES:
        raise TextError(
            f"The features of {many(n_texts, 'text')} at {embedder.n_layers} layers would take "
            f"{n_texts * of_one / 1e9:.1f} GB of memory. At most "
            f"{MOST_BYTES // of_one:,} texts fit. Use fewer pairs."
        )


def pair_features(pairs: ScoredPairs, texts: Sequence[str], vectors: np.ndarray) -> PairFeatures:
    """The features of pairs, from [text, layer, d_model] vectors of different texts."""
    place = {text: index for index, text in enumerate(texts)}
    return PairFeatures(
        vectors,
        np.array([place[text] for text in pairs.sentences1]),
        np.array([place[text] for text in pairs.sentences2]),
        np.asarray(pairs.scores, np.float64),
    )
