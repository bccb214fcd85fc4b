"""Train, dev and test pairs, and their features: a vector a layer of each text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.errors import TextError, never
from neuralviz.reading.pairs import Scale
from neuralviz.store.embedding import embed
from neuralviz.words import many, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neuralviz.embedders.pooled import LayerwiseEmbedder
    from neuralviz.errors import ShouldStop
    from neuralviz.reading.pairs import ScoredPairs
    from neuralviz.store.embedding import EmbeddingEvent
    from neuralviz.store.vectors import VectorStore

SHARES = (0.6, 0.2, 0.2)  # of train, dev and test pairs
FEWEST = 20  # pairs of a file that is split
FEWEST_OF_A_PART = 4
MOST_BYTES = 4 << 30  # of features in memory
BATCHES = 8  # that texts are read in: a stop loses one, and within one like lengths go together
FEWEST_AT_ONCE, MOST_AT_ONCE = 256, 2048  # texts of a batch
KEPT_EVERY = 10.0  # seconds: a second's features are many bytes


@dataclass(frozen=True, eq=False)
class SplitPairs:
    """Pairs to learn from, to choose by, and to test on once; notes say what was left out."""

    train: ScoredPairs
    dev: ScoredPairs
    test: ScoredPairs
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[ScoredPairs, ScoredPairs, ScoredPairs]:
        return self.train, self.dev, self.test


def check_different(scores: np.ndarray, role: str) -> None:
    """Refuse scores of ``train`` or ``dev`` pairs that say nothing of similarity.

    Raises:
        TextError: they are all the same, or some pairs have none.
    """
    n_missing = int((~np.isfinite(scores)).sum())
    if n_missing:
        raise TextError(
            f"{n_missing:,} of {many(len(scores), f'{role} pair')} without a score. Leave such "
            "pairs out, or score them."
        )
    if np.ptp(scores) == 0:
        raise TextError(
            f"All scores of the {role} pairs are {number(float(scores[0]))}. To tell similar texts "
            "from others, some pairs must score higher than others."
        )


def split_pairs(
    pairs: ScoredPairs,
    dev: ScoredPairs | None = None,
    test: ScoredPairs | None = None,
    *,
    seed: int = 42,
) -> SplitPairs:
    """Train, dev and test pairs, from the train pairs and those that are to be split off.

    Where dev or test pairs are not given they are split off: a fifth of the pairs each, in groups
    of pairs that share texts, so that no text is in two parts. Those that are given stay as they
    are; notes say how many train pairs share a text with them, and whether their scores seem to be
    on another scale.

    Raises:
        TextError: there are too few pairs, or all are joined by texts that they share.
    """
    held_out = [part for part in (dev, test) if part is not None]
    notes = tuple(note for part in (pairs, *held_out) for note in part.notes)
    notes += tuple(_describe_scales(pairs, dev, test))
    if dev is not None and test is not None:
        _check_part(pairs, "train")
        return SplitPairs(pairs, dev, test, (*notes, *_shared(pairs, held_out)))
    if len(pairs) < FEWEST:
        raise TextError(
            f"There {'is' if len(pairs) == 1 else 'are'} {many(len(pairs), 'pair')}. To train on "
            f"some and test on others, at least {FEWEST} are needed."
        )
    shares = [SHARES[0], SHARES[1] if dev is None else 0.0, SHARES[2] if test is None else 0.0]
    places = _deal(_groups(pairs), shares, np.random.default_rng(seed))
    parts = [pairs.take(rows) for rows in places]
    for part, given_part, role in zip(
        parts, (None, dev, test), ("train", "dev", "test"), strict=True
    ):
        if given_part is None:
            _check_part(part, role)
    notes = (*notes, *_shared(parts[0], held_out))
    return SplitPairs(parts[0], dev or parts[1], test or parts[2], notes)


def _shared(train: ScoredPairs, held_out: Sequence[ScoredPairs]) -> list[str]:
    """How many train pairs share a text with the dev and test pairs that were given."""
    held_out_texts = {text for part in held_out for text in (*part.sentences1, *part.sentences2)}
    shared = sum(
        first in held_out_texts or second in held_out_texts
        for first, second in zip(train.sentences1, train.sentences2, strict=True)
    )
    if not shared:
        return []
    share = f"{many(shared, 'train pair')} share{'s' * (shared == 1)}"
    return [f"{share} a text with the dev or test pairs."]


def _describe_scales(
    train: ScoredPairs, dev: ScoredPairs | None, test: ScoredPairs | None
) -> Iterator[str]:
    """Sentences on dev and test pairs that seem to be on another scale than the train pairs."""
    if not np.isfinite(train.scores).all():
        return  # refused before they are learnt from
    scale = Scale.from_scores(train.scores)
    for part, role in ((dev, "dev pairs"), (test, "test pairs")):
        if part is not None and (sentence := scale.describe_other(part.scores, role)):
            yield sentence


def _check_part(part: ScoredPairs, role: str) -> None:
    if len(part) < FEWEST_OF_A_PART:
        raise TextError(
            f"Only {many(len(part), f'{role} pair')} would be left: too many pairs share a text "
            "with others. Use more pairs, or pairs of different texts."
        )


def _groups(pairs: ScoredPairs) -> np.ndarray:
    """[pair] the number of its group: pairs that share a text are in one."""
    place = {
        text: index
        for index, text in enumerate(dict.fromkeys((*pairs.sentences1, *pairs.sentences2)))
    }
    first = [place[text] for text in pairs.sentences1]
    second = [place[text] for text in pairs.sentences2]
    shape = len(place), len(place)
    joined = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=shape)
    _, of_text = scipy.sparse.csgraph.connected_components(joined, directed=False)
    return of_text[first]


def _deal(groups: np.ndarray, shares: list[float], rng: np.random.Generator) -> list[np.ndarray]:
    """Places of the pairs of each part: whole groups, each to the part that lacks most."""
    numbers, sizes = np.unique(groups, return_counts=True)
    order = rng.permutation(len(numbers))
    order = order[np.argsort(-sizes[order], kind="stable")]
    remaining = np.array(shares) / sum(shares) * len(groups)
    part_of = np.empty(numbers.max() + 1, dtype=np.int64)
    for index in order:
        part = int(np.argmax(remaining))
        part_of[numbers[index]] = part
        remaining[part] -= sizes[index]
    return [np.flatnonzero(part_of[groups] == part) for part in range(len(shares))]


# --- features ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of pairs: [text, layer, d_model] vectors of length 1, or of zeros.

    ``first`` and ``second`` are [pair] places of the texts: one that is in several pairs is there
    once.
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


def make_room(n_texts: int, embedder: LayerwiseEmbedder) -> np.ndarray:
    """[text, dim] of zeros for features; TextError where they take more than `MOST_BYTES`."""
    text_bytes = embedder.dim * 4
    if n_texts * text_bytes > MOST_BYTES:
        raise TextError(
            f"The features of {many(n_texts, 'text')} at {embedder.n_layers} layers would take "
            f"{n_texts * text_bytes / 1e9:.1f} GB of memory. At most "
            f"{MOST_BYTES // text_bytes:,} texts fit. Use fewer pairs."
        )
    return np.zeros((n_texts, embedder.dim), np.float32)


def look_up(
    vectors: np.ndarray,
    embedder: LayerwiseEmbedder,
    texts: Sequence[str],
    store: VectorStore,
    *,
    should_stop: ShouldStop = never,
) -> Iterator[EmbeddingEvent]:
    """Write the features of texts, each there once, to the [text, dim] ``vectors`` of `make_room`.

    Features that the store has are not computed again. Yields progress.

    Raises:
        TextError: a text has no token.
        ModelError: a vector holds what is no finite number.
        StoreError: they cannot be kept.
        Stopped: ``should_stop`` said so.
    """
    for event in embed(
        texts,
        embedder,
        store,
        batch_size=min(max(len(texts) // BATCHES, FEWEST_AT_ONCE), MOST_AT_ONCE),
        keep_every=KEPT_EVERY,
        should_stop=should_stop,
    ):
        if event.vectors is not None:
            vectors[event.at] = event.vectors
        yield event


def pair_features(pairs: ScoredPairs, texts: Sequence[str], vectors: np.ndarray) -> PairFeatures:
    """The features of pairs, from [text, layer, d_model] vectors of different texts."""
    place = {text: index for index, text in enumerate(texts)}
    return PairFeatures(
        vectors,
        np.array([place[text] for text in pairs.sentences1]),
        np.array([place[text] for text in pairs.sentences2]),
        np.asarray(pairs.scores, np.float64),
    )
