"""Clusters on a map, and the words that characterise them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralviz.maps.neighbours import distinct_rows
from neuralviz.maps.nouns import Nouns
from neuralviz.maps.shares import LEAST_RATIO, compute_chance

SMALLEST_CLUSTER = 5  # texts
LARGEST_SMALLEST = 250  # texts; more would lose small topics of a large corpus
MOST_SAMPLES = 10  # neighbours for the density; more would blur the borders
MOST_POINTS = 30_000  # clustered in seconds; time grows quadratically
LARGEST_SHARE = 0.6  # of all texts in a cluster; larger ones are split
CLUSTER_WORDS, NAME_WORDS = 4, 2  # that distinguish a cluster; in its name, at least
UNNAMED = "no typical words"  # of a cluster
TELLING = 3  # words of a cluster that are tested together
BY_CHANCE = 4e-4  # product of their chances, which about 2% of clusters at random reach
LIKELY_NOUN = 1 / 3  # share of noun places from which a word may name a cluster
ENGLISH_FROM = 0.25  # share of stop words from which text counts as English (about half)

# Combining vowel signs and accents are part of words.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u109f"
_WORD = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}]|-(?=[^\W_]))*")
_PLURAL = re.compile(r"(?<=[^\W\d_]{3})(?:ies|(?<=[sx])es|(?<![su])s)$")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")  # Japanese and Chinese


@dataclass(frozen=True, eq=False)
class Clusters:
    labels: np.ndarray  # [text] int32, 0 for the largest cluster, 1 for the next …; -1 for none
    n: int  # number of clusters


def find_clusters(coordinates: np.ndarray, *, most_points: int = MOST_POINTS) -> Clusters:
    """Cluster [text, dimensions] points by HDBSCAN (Campello, Moulavi, Sander 2013).

    Clusters have at least 1% of the texts, bounded to 5–250; those over 60% are split. Enough
    identical points form their own cluster. Beyond ``most_points``, a fixed random sample is
    clustered, and the others join the cluster of their nearest sampled point.
    """
    n = len(coordinates)
    size = min(max(SMALLEST_CLUSTER, n // 100), LARGEST_SMALLEST)
    points = np.asarray(coordinates, dtype=np.float64)
    rows, place = distinct_rows(points)
    is_cluster = np.bincount(place) >= size
    raw_labels = np.where(is_cluster, np.cumsum(is_cluster) - 1, -1)[place]
    unclustered = np.flatnonzero(raw_labels < 0)
    among = _clusters_of_points(points[unclustered], size, most_points)
    place_labels = np.full(len(rows), -1)  # copies of a point share its cluster, even with ties
    np.maximum.at(place_labels, place[unclustered], among)
    numbered = place_labels[place[unclustered]]
    raw_labels[unclustered] = np.where(numbered < 0, -1, numbered + is_cluster.sum())
    sizes = np.bincount(raw_labels[raw_labels >= 0])
    number = np.full(len(sizes) + 1, -1, dtype=np.int32)  # the last is for -1
    number[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return Clusters(number[raw_labels], len(sizes))


def _clusters_of_points(points: np.ndarray, size: int, most_points: int) -> np.ndarray:
    n = len(points)
    if n <= size:
        return np.full(n, -1)
    if n <= most_points:
        return _hdbscan(points, size)
    from scipy.spatial import KDTree

    drawn = np.random.default_rng(0).choice(n, most_points, replace=False)
    drawn_labels = _hdbscan(points[drawn], max(2, round(size * most_points / n)))
    return drawn_labels[KDTree(points[drawn]).query(points)[1]]


def _hdbscan(points: np.ndarray, size: int) -> np.ndarray:
    """[point] unsorted labels, -1 for none."""
    from sklearn.cluster import HDBSCAN

    n = len(points)
    return HDBSCAN(
        min_cluster_size=size,
        min_samples=min(max(SMALLEST_CLUSTER, n // 40), MOST_SAMPLES, n),
        max_cluster_size=max(size, int(LARGEST_SHARE * n)),
        copy=True,
    ).fit_predict(points)


def cluster_centres(coordinates: np.ndarray, clusters: Clusters) -> np.ndarray:
    """[cluster, dimensions] the point nearest to the cluster's median."""
    centres = np.zeros((clusters.n, coordinates.shape[1]), dtype=coordinates.dtype)
    for cluster in range(clusters.n):
        points = coordinates[clusters.labels == cluster]
        distances = np.linalg.norm(points - np.median(points, axis=0), axis=1)
        centres[cluster] = points[distances.argmin()]
    return centres


def cluster_names(cluster_words: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of clusters: those of their first two words that no other cluster has earlier.

    Where there are none, as many words as tell the cluster apart.
    """
    first: dict[str, tuple[int, int]] = {}  # where each word stands earliest
    for cluster, words in enumerate(cluster_words):
        for place, word in enumerate(words):
            first[word] = min(first.get(word, (place, cluster)), (place, cluster))
    names: list[str] = []
    for cluster, words in enumerate(cluster_words):
        short_name = " ".join(word for word in words[:NAME_WORDS] if first[word][1] == cluster)
        longer = (" ".join(words[:n]) for n in range(NAME_WORDS, len(words) + 1))
        every = filter(None, [short_name, *longer])
        names.append(next((name for name in every if name not in names), " ".join(words)))
    return tuple(name or UNNAMED for name in names)


def name_clusters(
    texts: Sequence[str], clusters: Clusters, n_words: int = CLUSTER_WORDS
) -> tuple[tuple[str, ...], ...]:
    """[cluster] characteristic words, best first, by class TF-IDF (Grootendorst 2022, section 3.3).

    A word must be in two texts and at least twice as frequent inside as outside, beyond chance;
    English stop words are excluded, and scores of English words multiplied by how likely they are
    nouns (`Nouns`): below a third, they are left out where there are others. Chinese and Japanese
    are split into pairs of characters. Of a singular and its plural, the better one stays. The
    first two words are in the order in which they follow each other most. A cluster whose words
    chance could have put there has none: the best three, by the texts that they are in.
    """
    within = [Counter[str]() for _ in range(clusters.n)]
    n_texts = [Counter[str]() for _ in range(clusters.n)]
    outside, in_texts = Counter[str](), Counter[str]()
    nouns = Nouns()
    for text, label in zip(texts, clusters.labels.tolist(), strict=True):
        in_order = split_words(text)
        nouns.count(in_order)
        words = list(naming_words(in_order))
        in_texts.update(set(words))
        if label < 0:
            outside.update(words)
        else:
            within[label].update(words)
            n_texts[label].update(set(words))
    in_clusters = Counter[str]()
    for counts in within:
        in_clusters.update(counts)
    everywhere = in_clusters + outside
    n_everywhere = everywhere.total()
    sizes = np.bincount(clusters.labels[clusters.labels >= 0], minlength=clusters.n)
    stop_words = _stop_words(everywhere)
    mean_size = in_clusters.total() / max(clusters.n, 1)
    names = []
    for counts, support, size in zip(within, n_texts, sizes.tolist(), strict=True):
        n_within = counts.total()
        n_rest = n_everywhere - n_within
        scores = {
            word: times / n_within * math.log1p(mean_size / in_clusters[word])
            for word, times in counts.items()
            if support[word] > 1
            and word not in stop_words
            and _is_marked_off(times, n_within, everywhere[word] - times, n_rest)
        }
        if stop_words:
            scores = _prefer_nouns(scores, nouns)
        best = sorted(scores, key=lambda word: (-scores[word], word))[: 2 * n_words]
        drawn = [compute_chance(support[word], size, in_texts[word], len(texts)) for word in best]
        if not _are_typical(drawn, sum(n > 1 for n in support.values())):
            best = []
        names.append(_drop_plurals(best)[:n_words])
    return _order_pairs(names, texts, clusters.labels)


def _are_typical(chances: Sequence[float], n_words: int) -> bool:
    """Whether the most telling of a cluster's words are more than chance finds in ``n_words``."""
    smallest = sorted(min(1.0, n_words * probability) for probability in chances)[:TELLING]
    return bool(smallest) and math.prod(smallest) <= BY_CHANCE


def _prefer_nouns(scores: Mapping[str, float], nouns: Nouns) -> dict[str, float]:
    shares = {word: nouns.share(word) for word in scores}
    likely = [word for word, share in shares.items() if share >= LIKELY_NOUN] or shares
    return {word: shares[word] * scores[word] for word in likely}


def _drop_plurals(words: Sequence[str]) -> list[str]:
    """Words whose singular or plural is not among those before them."""
    kept: dict[str, str] = {}
    for word in words:
        kept.setdefault(_PLURAL.sub(lambda end: "y" * (end[0] == "ies"), word), word)
    return list(kept.values())


def _order_pairs(
    names: Sequence[list[str]], texts: Sequence[str], labels: np.ndarray
) -> tuple[tuple[str, ...], ...]:
    """The names with their first two words as they follow each other most."""
    turned = Counter[int]()
    for text, label in zip(texts, labels.tolist(), strict=True):
        if label >= 0 and len(names[label]) > 1:
            first, second, *_ = names[label]
            folded = text.lower()
            turned[label] += folded.count(f"{second} {first}") - folded.count(f"{first} {second}")
    return tuple(
        (words[1], words[0], *words[2:]) if turned[label] > 0 else tuple(words)
        for label, words in enumerate(names)
    )


def _is_marked_off(times: int, n_within: int, times_outside: int, n_rest: int) -> bool:
    """Whether the frequency ratio holds with both counts shifted by one standard deviation."""
    lowest, highest = times - math.sqrt(times), times_outside + math.sqrt(times_outside)
    return lowest * n_rest >= LEAST_RATIO * highest * n_within


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, in order; of unspaced scripts, whole runs."""
    return _WORD.findall(text.lower())


def naming_words(words: Iterable[str]) -> Iterator[str]:
    """Words that may name a cluster: no numbers; of unspaced scripts, pairs of characters."""
    for word in words:
        if _UNSPACED.search(word):
            for run in _UNSPACED.findall(word):
                yield from (run[i : i + 2] for i in range(max(len(run) - 1, 1)))
        elif len(word) > 1 and not word.replace("-", "").isdigit():
            yield word


def _stop_words(words: Counter[str]) -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    n_stop_words = sum(words[word] for word in ENGLISH_STOP_WORDS)
    return ENGLISH_STOP_WORDS if n_stop_words > ENGLISH_FROM * words.total() else frozenset()
