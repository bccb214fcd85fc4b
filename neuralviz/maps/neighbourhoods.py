"""Label agreement among nearest neighbours, and agreement between embeddings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.maps.neighbours import Neighbours
from neuralviz.maps.shares import wilson_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

K = 10
ROWS = 8192  # texts counted at once
SPACE_METRICS = ("euclidean", "cosine")


@dataclass(frozen=True)
class KnnAccuracy:
    accuracy: float  # share of the texts, 0 … 1
    k: int  # number of voters
    n: int  # labelled texts
    baseline: float  # share of the most frequent label, 0 … 1
    interval: tuple[float, float]  # 95% Wilson interval of the accuracy


@dataclass(frozen=True)
class Outvoted:
    text: int  # row of the vectors
    label: str  # the text's own
    voted: str  # winner of the vote
    agree: float  # share of voters with its own label, 0 … 1


def suggest_k(sizes: Iterable[ArrayLike]) -> int:
    """Suggest k: 10, or fewer if the median label has fewer other texts to vote for it."""
    medians = [int(np.median(counts)) - 1 for counts in map(np.asarray, sizes) if len(counts)]
    return max(1, min([K, *medians]))


def knn_accuracy(neighbours: Neighbours, labels: Sequence[str], k: int = K) -> KnnAccuracy:
    """Share of texts whose label wins the vote of their ``k`` nearest other texts.

    Ties go to the nearest voter. Unlabelled texts (``""``) neither vote nor count; the next known
    neighbours vote instead. Texts without voters are errors. Raises NeuralvizError with fewer than
    two labelled texts.
    """
    is_right = knn_right(neighbours, labels, k)
    right, n = int(is_right.sum()), len(is_right)
    n_most = Counter(filter(None, labels)).most_common(1)[0][1]
    return KnnAccuracy(right / n, min(k, neighbours.k), n, n_most / n, wilson_interval(right, n))


def why_no_votes(labels: Iterable[str]) -> str:
    """A sentence on why neighbours cannot vote on the labels; empty if they can."""
    n_texts = Counter(filter(None, labels))
    if len(n_texts) == 1:
        return "All texts have the same label. At least two different labels are needed."
    if n_texts and max(n_texts.values()) == 1:
        return (
            f"All {len(n_texts):,} labels are different, as ids or measurements are, so no other "
            "text can vote for a text's label. Choose a column whose labels several texts share."
        )
    return ""


def knn_right(neighbours: Neighbours, labels: Sequence[str], k: int = K) -> np.ndarray:
    """[labelled text] whether the vote is right, as in `knn_accuracy`."""
    _, codes, votes = _collect_votes(neighbours, labels, k)
    n = int((codes >= 0).sum())
    if n < 2:
        raise NeuralvizError(
            "The accuracy needs at least 2 texts with a label; "
            f"{'only 1' if n else 'none'} of {len(codes):,} has one."
        )
    return (_find_most_voted(votes) == codes)[codes >= 0]


def knn_voted(neighbours: Neighbours, labels: Sequence[str], k: int = K) -> list[str]:
    """[text] label that wins the vote, as in `knn_accuracy`; empty without votes."""
    names, _, votes = _collect_votes(neighbours, labels, k)
    return [names[code] for code in _find_most_voted(votes).tolist()]


def sampled_right(near: Neighbours, codes: np.ndarray, rows: np.ndarray, k: int = K) -> np.ndarray:
    """`knn_right` for ``rows`` with neighbours ``near``; ``codes`` is [text] int32, -1 for none."""
    _check_k(k)
    own_codes = codes[rows]
    winners = _find_most_voted(_select_voters(codes[near.indices], k))
    return (winners == own_codes)[own_codes >= 0]


def find_outvoted(
    neighbours: Neighbours, labels: Sequence[str], k: int, n: int
) -> tuple[Outvoted, ...]:
    """The ``n`` errors of `knn_accuracy` whose own label has the fewest votes."""
    names, codes, votes = _collect_votes(neighbours, labels, k)
    winners, agree = _find_most_voted(votes), _share_of_votes(codes, votes)
    missed = np.flatnonzero((codes >= 0) & (winners >= 0) & (winners != codes))
    return tuple(
        Outvoted(text, labels[text], names[winners[text]], float(agree[text]))
        for text in missed[np.argsort(agree[missed], kind="stable")][:n].tolist()
    )


def label_agreement(neighbours: Neighbours, labels: Sequence[str], k: int = K) -> np.ndarray:
    """[text] share of voters with the same label; NaN without a label or voters."""
    _, codes, votes = _collect_votes(neighbours, labels, k)
    return _share_of_votes(codes, votes)


def common_neighbours(first: Neighbours, second: Neighbours, k: int = K) -> np.ndarray:
    """[text] share of the ``k`` nearest texts that two embeddings share."""
    _check_k(k)
    if len(first) != len(second):
        raise NeuralvizError(
            f"Cannot compare the neighbours of {len(first):,} texts with those of "
            f"{len(second):,}. Use two embeddings of the same texts."
        )
    k = min(k, first.k, second.k)
    shares = np.zeros(len(first))
    for start in range(0, len(first), ROWS):
        rows = slice(start, start + ROWS)
        is_common = first.indices[rows, :k, None] == second.indices[rows, None, :k]
        shares[rows] = is_common.sum(axis=(1, 2)) / k
    return shares


def knn_by_space(vectors: np.ndarray, labels: np.ndarray, tested: np.ndarray) -> dict[str, float]:
    """k-NN accuracy of ``tested`` texts, by space and metric (crops paper, Table S2)."""
    # uniform votes of untested texts alone; centring and whitening use all texts
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier

    spaces = {
        "raw": vectors,
        "centred": vectors - vectors.mean(axis=0),
        "whitened": PCA(whiten=True).fit_transform(vectors),
    }
    k = min(K, int((~tested).sum()))
    return {
        f"{name} {metric}": float(
            KNeighborsClassifier(k, metric=metric, algorithm="brute")
            .fit(points[~tested], labels[~tested])
            .score(points[tested], labels[tested])
        )
        for name, points in spaces.items()
        for metric in SPACE_METRICS
    }


def _check_k(k: int) -> None:
    if k < 1:
        raise SettingsError("The number of neighbours must be at least 1.")


def _collect_votes(
    neighbours: Neighbours, labels: Sequence[str], k: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Distinct labels with "" last, [text] label codes (-1 for none), [text, k] votes."""
    _check_k(k)
    if len(labels) != len(neighbours):
        raise NeuralvizError(
            f"Got {len(labels):,} labels for {len(neighbours):,} texts; expected one per text."
        )
    names = list(dict.fromkeys(filter(None, labels)))
    number = {"": -1} | {name: code for code, name in enumerate(names)}
    codes = np.array([number[label] for label in labels], dtype=np.int32)
    votes = [
        _select_voters(codes[neighbours.indices[start : start + ROWS]], k)
        for start in range(0, len(codes), ROWS)
    ]
    return [*names, ""], codes, np.concatenate(votes) if votes else codes[:, None]


def _select_voters(votes: np.ndarray, k: int) -> np.ndarray:
    """[text, k] codes of the nearest labelled texts, -1 if there are too few."""
    if (votes >= 0).all():
        return votes[:, :k]
    order = np.argsort(votes < 0, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(votes, order, axis=1)


def _find_most_voted(votes: np.ndarray) -> np.ndarray:
    """[text] winning label, ties to the nearest voter; -1 without votes."""
    counts = np.zeros(votes.shape, dtype=np.int32)
    for column in votes.T:
        counts += votes == column[:, None]
    counts[votes < 0] = 0
    return votes[np.arange(len(votes)), counts.argmax(axis=1)]


def _share_of_votes(codes: np.ndarray, votes: np.ndarray) -> np.ndarray:
    n_votes = np.where(codes >= 0, (votes >= 0).sum(axis=1), 0)
    n_same = (votes == codes[:, None]).sum(axis=1)
    return np.divide(n_same, n_votes, out=np.full(len(codes), np.nan), where=n_votes > 0)
