"""Train, dev and test pairs, and their features: a vector a layer of each text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.errors import ShouldStop, TextError, never
from neuralviz.reading.pairs import Scale, ScoredPairs
from neuralviz.store.embedding import EmbeddingEvent, embed
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.embedders.pooled import LayerwiseEmbedder
    from neuralviz.store.vectors import VectorStore

SHARES = {"train": 0.6, "dev": 0.2, "test": 0.2}  # of the pairs
# the first with which mean pooling follows the scores of all parts of the example about alike
SPLIT_SEED = 1
FEWEST = 20  # pairs of a file that is split
FEWEST_OF_A_PART = 4
TIE = 1e-9  # of shares
MOST_BYTES = 4 << 30  # of features in memory
BATCHES = 8  # that texts are read in: a stop loses one, and within one like lengths go together
FEWEST_AT_ONCE, MOST_AT_ONCE = 256, 2048  # texts of a batch
KEPT_EVERY = 10.0  # seconds: a second's features are many bytes


@dataclass(frozen=True, eq=False)
class SplitPairs:
    """Pairs to train on, to choose by, and to test on once; notes name what is left out."""

    train: ScoredPairs
    dev: ScoredPairs
    test: ScoredPairs
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[ScoredPairs, ScoredPairs, ScoredPairs]:
        return self.train, self.dev, self.test


def check_different(scores: np.ndarray, role: str) -> None:
    """Raise `TextError` if scores of ``train`` or ``dev`` pairs are missing or all the same."""
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
    seed: int = SPLIT_SEED,
) -> SplitPairs:
    """Train, dev and test pairs; each of dev and test, unless given, is a fifth of the pairs.

    The parts have scores of all heights, and pairs that share a text stay together. Notes name
    train pairs that share a text with given ones, and unusual scales. `TextError` if there are too
    few pairs, or shared texts join all.
    """
    given = {role: part for role, part in (("dev", dev), ("test", test)) if part is not None}
    notes = [note for part in (pairs, *given.values()) for note in part.notes]
    notes += _describe_scales(pairs, given)
    parts = {"train": pairs}
    if len(given) < 2:
        if len(pairs) < FEWEST:
            raise TextError(
                f"There {'is' if len(pairs) == 1 else 'are'} {many(len(pairs), 'pair')}. To train "
                f"on some and test on others, at least {FEWEST} are needed."
            )
        shares = {role: SHARES[role] for role in SHARES if role not in given}
        scores = np.nan_to_num(np.asarray(pairs.scores, float))
        places = _deal(_groups(pairs), scores, [*shares.values()], np.random.default_rng(seed))
        parts = {role: pairs.take(rows) for role, rows in zip(shares, places, strict=True)}
    for role, part in parts.items():
        if len(part) < FEWEST_OF_A_PART:
            raise TextError(
                f"Only {many(len(part), f'{role} pair')} would be left: too many pairs share a "
                "text with others. Use more pairs, or pairs of different texts."
            )
    texts = set(different_texts([*given.values()]))
    n_shared = sum(
        not texts.isdisjoint(pair)
        for pair in zip(parts["train"].sentences1, parts["train"].sentences2, strict=True)
    )
    if n_shared:
        notes.append(f"Texts of the dev or test pairs are in {many(n_shared, 'train pair')}, too.")
    parts |= given
    return SplitPairs(parts["train"], parts["dev"], parts["test"], tuple(notes))


def _describe_scales(train: ScoredPairs, held_out: Mapping[str, ScoredPairs]) -> Iterator[str]:
    """Notes on dev and test pairs that seem to have another scale than the train pairs."""
    if not np.isfinite(train.scores).all():
        return  # refused before they are learnt from
    scale = Scale.from_scores(train.scores)
    for role, part in held_out.items():
        if sentence := scale.describe_other(part.scores, f"{role} pairs"):
            yield sentence


def _groups(pairs: ScoredPairs) -> np.ndarray:
    """[pair] group number; pairs that share a text are in one group."""
    place = {text: index for index, text in enumerate(different_texts([pairs]))}
    first = [place[text] for text in pairs.sentences1]
    second = [place[text] for text in pairs.sentences2]
    shape = len(place), len(place)
    joined = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=shape)
    _, of_text = scipy.sparse.csgraph.connected_components(joined, directed=False)
    return of_text[first]


def _deal(
    groups: np.ndarray, scores: np.ndarray, shares: list[float], rng: np.random.Generator
) -> list[np.ndarray]:
    """Places of the pairs of each part: whole groups, each to the part that lacks most of its own.

    The largest come first, those of one size by their mean score, equals in random order: so all
    parts have scores of all heights.
    """
    numbers, sizes = np.unique(groups, return_counts=True)
    means = np.bincount(groups, scores)[numbers] / sizes
    order = np.lexsort((rng.random(len(numbers)), means, -sizes))
    sizes_of_parts = np.array(shares) / sum(shares) * len(groups)
    remaining = sizes_of_parts.copy()
    part_of = np.empty(numbers.max() + 1, dtype=np.int64)
    for index in order:
        lacking = remaining / sizes_of_parts
        part = rng.choice(np.flatnonzero(lacking > lacking.max() - TIE))
        part_of[numbers[index]] = part
        remaining[part] -= sizes[index]
    return [np.flatnonzero(part_of[groups] == part) for part in range(len(shares))]


# --- features ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of pairs; each text is stored once."""

    vectors: np.ndarray  # [text, layer, d_model] of length 1, or of zeros
    first: np.ndarray  # [pair] places of the texts
    second: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def n_layers(self) -> int:
        """Number of layers, the embedding output included."""
        return int(self.vectors.shape[1])

    @property
    def d_model(self) -> int:
        return int(self.vectors.shape[2])

    @property
    def cosines(self) -> np.ndarray:
        """[pair, layer] -1 … 1; 0 for a vector of zeros."""
        layers = self.vectors.transpose(1, 0, 2)  # one at a time, to save memory
        columns = [np.einsum("pd,pd->p", at[self.first], at[self.second]) for at in layers]
        return np.stack(columns, axis=1)

    def select(self, places: np.ndarray) -> PairFeatures:
        return PairFeatures(
            self.vectors, self.first[places], self.second[places], self.scores[places]
        )


def different_texts(pairs: Sequence[ScoredPairs]) -> list[str]:
    texts = (text for part in pairs for text in (*part.sentences1, *part.sentences2))
    return list(dict.fromkeys(texts))


def make_room(n_texts: int, embedder: LayerwiseEmbedder) -> np.ndarray:
    """[text, dim] zeros for features; TextError if over `MOST_BYTES`."""
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
    """Write the features of distinct texts to [text, dim] ``vectors``; cached in ``store``.

    `TextError` for a text without tokens, `ModelError` for vectors that are not finite,
    `StoreError`, `Stopped`.
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
    """The features of pairs, from [text, layer, d_model] vectors of distinct texts."""
    place = {text: index for index, text in enumerate(texts)}
    first, second = (
        np.array([place[text] for text in side]) for side in (pairs.sentences1, pairs.sentences2)
    )
    return PairFeatures(vectors, first, second, np.asarray(pairs.scores, np.float64))
