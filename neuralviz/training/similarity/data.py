"""Train, dev and test pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are first used

from neuralviz.errors import TextError
from neuralviz.reading.pairs import Scale
from neuralviz.words import many, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from neuralviz.reading.pairs import ScoredPairs

SHARES = (0.6, 0.2, 0.2)  # of train, dev and test pairs
FEWEST = 20  # pairs of a file that is split
FEWEST_OF_A_PART = 4


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
    """Train, dev and test pairs.

    Where dev or test pairs are not given they are split off: a fifth of the pairs each, in groups
    of pairs that share texts, so that no text is in two parts. Those that are given stay as they
    are; notes say how many train pairs share a text with them, and whether their scores seem to be
    on another scale.

    Args:
        pairs: the train pairs, and those that are to be split off.
        dev, test: that are there already.
        seed: of the split.

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
