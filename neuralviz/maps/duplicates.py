"""Near-duplicates: texts whose cosine reaches a threshold, in groups of which one text is kept.

Chains are cut: every removed text reaches the threshold with the text that is kept for it, and no
two kept texts do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import scipy  # loads submodules lazily

from neuralviz.arrays import unit_vectors
from neuralviz.errors import SettingsError, ShouldStop, TextError, check_choice, check_stop, never
from neuralviz.maps.kept import corpus_table
from neuralviz.maps.neighbours import ROWS, check_vectors
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.vectors import KeptEmbedder
from neuralviz.words import free_name

RULES = ("longest", "shortest", "first")  # which text of a group is kept; the first on ties
MOST_TEXTS = 200_000  # different ones: each is compared with all others
COLUMNS = 2048  # vectors compared with `ROWS` others at once
HELD = 1_000_000  # pairs at once
LEVELS = 32  # cosines at which connections are known
_STARTS = (0, 64, 256)  # of blocks: small ones soon connect all texts
ROUNDING = 1e-6  # of cosines in float32
READ = 2000  # pairs whose wording is compared
LONGEST = 2000  # characters of a text whose wording is compared
SAME_WORDING = 0.8  # share of the three-letter sequences in common
LOWEST = 0.75  # cosine of a suggested threshold
NEARLY_ALL = 0.95  # share of the pairs

OnProgress = Callable[[float], None]  # gets the share of pairs that were compared
ReadTexts = Callable[[np.ndarray], Sequence[str]]  # the texts of some rows
ReadVectors = Callable[[np.ndarray], np.ndarray]  # [row, dim] vectors of some rows


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """The pairs of texts that connect groups at any threshold: a maximum spanning tree."""

    n_texts: int
    first: np.ndarray  # [pair] int32 rows, the most similar pair first
    second: np.ndarray  # [pair] int32 rows
    cosines: np.ndarray  # [pair] float32, descending
    is_copy: np.ndarray  # [text] bool: whether another text equals it
    suggested: float | None  # threshold that `suggest_threshold` found

    def count(self, threshold: float) -> int:
        """The number of pairs that reach a threshold."""
        return int(np.searchsorted(-self.cosines, ROUNDING - threshold, side="right"))

    def places_around(self, threshold: float, n: int = 4) -> np.ndarray:
        """The last ``n`` pairs that reach a threshold, and the first ``n`` that do not."""
        n_above = self.count(threshold)
        return np.arange(max(n_above - n, 0), min(n_above + n, len(self.cosines)))

    def has_duplicate(self, threshold: float) -> np.ndarray:
        """[text] bool: whether another text reaches a threshold with it."""
        mask = np.zeros(self.n_texts, dtype=bool)
        n_pairs = self.count(threshold)
        mask[self.first[:n_pairs]] = mask[self.second[:n_pairs]] = True
        return mask

    @property
    def first_threshold(self) -> float:
        """The suggested threshold; without one 1, which copies alone reach."""
        return 1.0 if self.suggested is None else self.suggested

    @cached_property
    def findings(self) -> np.ndarray:
        """[text] bool: `has_duplicate` at the suggested threshold; copies alone without one."""
        return self.is_copy if self.suggested is None else self.has_duplicate(self.suggested)


@dataclass(frozen=True, eq=False)
class KeptTexts:
    """Which text is kept for each."""

    kept: np.ndarray  # [text] int32 row of the text that is kept for it, or its own
    cosines: np.ndarray  # [text] float32 cosine with that text, 1 with itself

    @property
    def removed(self) -> np.ndarray:
        """Rows of the removed texts, ascending."""
        return np.flatnonzero(self.kept != np.arange(len(self.kept)))

    @property
    def remaining(self) -> np.ndarray:
        """Rows of all other texts, ascending."""
        return np.flatnonzero(self.kept == np.arange(len(self.kept)))

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The rows of each group of two texts or more, the kept first; the largest group first."""
        removed = self.removed
        removed = removed[np.argsort(self.kept[removed], kind="stable")]
        heads, starts = np.unique(self.kept[removed], return_index=True)
        parts = np.split(removed, starts)[1:]
        groups = [np.array([head, *rows]) for head, rows in zip(heads, parts, strict=True)]
        return sorted(groups, key=len, reverse=True)


# --- pairs ---------------------------------------------------------------------------------------


def find_pairs(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    *,
    on_progress: OnProgress = lambda share: None,
    should_stop: ShouldStop = never,
) -> SimilarPairs:
    """Compare all texts of an embedded corpus, equal ones once.

    Memory holds the vectors and about 64 pairs a text; time grows with the square of the number
    of different texts, of which `MOST_TEXTS` are allowed. Raises TextError for more, StoreError
    if one has no vector, Stopped.
    """
    keys = store.keys(corpus)
    _, rows, place = np.unique(keys, return_index=True, return_inverse=True)
    if len(rows) > MOST_TEXTS:
        raise TextError(
            f"Near-duplicates are found among up to {MOST_TEXTS:,} different texts; "
            f"“{corpus.name}” has {len(rows):,}."
        )
    vectors = store.vectors.get(embedder, keys[rows])
    first, second, cosines = span_texts(vectors, on_progress, should_stop)
    first, second = np.sort([rows[first], rows[second]], axis=0)
    suggested = suggest_threshold(
        first, second, cosines, lambda numbers: store.texts(corpus, numbers)
    )
    copies = np.flatnonzero(rows[place] != np.arange(corpus.n_texts))
    return SimilarPairs(
        corpus.n_texts,
        np.concatenate([rows[place[copies]], first]).astype(np.int32),
        np.concatenate([copies, second]).astype(np.int32),
        np.concatenate([np.ones(len(copies), np.float32), np.minimum(cosines, 1)]),
        np.bincount(place)[place] > 1,
        suggested,
    )


def span_texts(
    vectors: np.ndarray,
    on_progress: OnProgress = lambda share: None,
    should_stop: ShouldStop = never,
) -> _Pairs:
    """A maximum spanning tree of [text, dim] vectors by cosine.

    Returns [pair] rows, rows, and float32 cosines, descending. At any threshold, the pairs that
    reach it connect the same texts as all pairs would (Kruskal 1956). Pairs between texts that
    the pairs seen so far connect at no lower cosine are passed over.
    """
    units = _scale(check_vectors(vectors))
    n, parts, tree = len(units), [_NO_PAIRS], None
    starts = [start for start in _STARTS if start < min(n, ROWS)] + list(range(ROWS, n, ROWS))
    for start, end in zip(starts, [*starts[1:], n], strict=True):
        on_progress(1 - (1 - start / n) ** 2)
        for column in range(start, n, COLUMNS):
            check_stop(should_stop)
            products = units[start:end] @ units[column : column + COLUMNS].T
            parts.append(_select_pairs(products, start, column, tree))
        if start < ROWS or sum(len(part[0]) for part in parts) > HELD:
            parts = [_span(n, parts)]
            tree = _Levels(n, parts[0])
    first, second, cosines = _span(n, parts)
    order = np.lexsort((second, first, -cosines))
    return first[order], second[order], cosines[order]


_Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]
_NO_PAIRS: _Pairs = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)


class _Levels:
    """Which texts a spanning tree connects at evenly spaced cosines, from its lowest to 1."""

    def __init__(self, n: int, tree: _Pairs) -> None:
        first, second, cosines = tree
        self.floor = float(cosines.min(initial=1.0))
        self.levels = np.linspace(self.floor, 1 + ROUNDING, LEVELS + 1, dtype=np.float32)
        self.labels = np.empty((LEVELS + 1, n), np.int32)  # [level, text]
        for level, lowest in enumerate(self.levels):
            connects = cosines >= lowest
            self.labels[level] = _label_components(n, first[connects], second[connects])

    def connect(self, first: np.ndarray, second: np.ndarray, cosines: np.ndarray) -> np.ndarray:
        """[pair] bool: whether the tree connects two texts at a cosine that is not lower."""
        levels = np.searchsorted(self.levels[:-1], cosines)  # the lowest that is not below
        return self.labels[levels, first] == self.labels[levels, second]


def _select_pairs(products: np.ndarray, start: int, column: int, tree: _Levels | None) -> _Pairs:
    """The pairs of a block that a spanning tree may need, each once."""
    floor = -np.inf if tree is None else tree.floor
    places, columns = np.nonzero(products > floor)
    cosines, first, second = products[places, columns], places + start, columns + column
    is_needed = second > first
    if tree is not None:
        is_needed &= ~tree.connect(first, second, cosines)
    return first[is_needed], second[is_needed], cosines[is_needed]


def _label_components(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    graph = scipy.sparse.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return scipy.sparse.csgraph.connected_components(graph, directed=False)[1]


def _scale(vectors: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(unit_vectors(vectors), dtype=np.float32)


def _span(n: int, parts: Sequence[_Pairs]) -> _Pairs:
    """The maximum spanning forest of distinct pairs."""
    first, second, cosines = map(np.concatenate, zip(*parts, strict=True))
    weights = 3 - cosines.astype(np.float64)  # above 0, which would mean no pair
    graph = scipy.sparse.csr_array((weights, (first, second)), shape=(n, n))
    forest = scipy.sparse.csgraph.minimum_spanning_tree(graph).tocoo()
    return forest.row, forest.col, (3 - forest.data).astype(np.float32)


# --- the threshold -------------------------------------------------------------------------------


def suggest_threshold(
    first: np.ndarray, second: np.ndarray, cosines: np.ndarray, read_texts: ReadTexts
) -> float | None:
    """The cosine that best separates pairs of nearly the same wording from all others.

    Of the pairs, the most similar first, up to 2,000 are read, at ranks spaced like powers. The
    threshold puts the fewest of them on the wrong side, each with the number of pairs that it
    stands for; of equal ones it is the highest. It is raised to `LOWEST`, and until it is an
    outlier above the cosines below it, if one is or not nearly all pairs reach it. It has three
    decimals, or four where three would let more pairs reach it. None where no pair reaches it, or
    no threshold is better.
    """
    n, cosines = len(cosines), _cut(cosines.astype(np.float64), 10_000)
    if not n:
        return None
    ranks = np.unique(np.geomspace(1, n, READ).astype(int)) - 1
    texts = [read_texts(rows[ranks]) for rows in (first, second)]
    shares = [share_wording(a, b) for a, b in zip(*texts, strict=True)]
    weights = np.diff(ranks, append=n)
    gains = np.cumsum(np.where(np.array(shares) >= SAME_WORDING, weights, -weights))
    gains[np.diff(cosines[ranks], append=-2) == 0] = 0  # equal cosines are on one side
    best = int(gains.argmax())
    if gains[best] <= 0:
        return None
    lowest = max(cosines[ranks[best]], LOWEST)
    top = cosines[cosines >= _raise_to_outlier(lowest, cosines) - ROUNDING]
    if not len(top) and (cosines >= lowest).mean() >= NEARLY_ALL:
        top = cosines[cosines >= lowest]
    if not len(top):
        return None
    short = _cut(top[-1], 1000)
    return float(short if (cosines >= short - ROUNDING).sum() == len(top) else top[-1])


def _cut(cosines: np.ndarray, scale: int) -> np.ndarray:
    return np.floor(scale * (cosines + ROUNDING)) / scale


def _raise_to_outlier(threshold: float, cosines: np.ndarray) -> float:
    """The lowest cosine from a threshold on that is an outlier above the ``cosines`` below it.

    It is beyond Tukey's (1977) fence of the logarithms of 1 minus these cosines, which are a
    quarter of all at least.
    """
    limit = np.log(max(1 - threshold, ROUNDING))
    gaps = np.log(np.maximum(1 - cosines, ROUNDING))[::-1]  # the least similar pair first
    while True:
        n_below = max(int((gaps > limit).sum()), -(-len(gaps) // 4))
        low, high = np.quantile(gaps[:n_below], (0.25, 0.75))
        fence = low - 1.5 * (high - low)
        if fence >= limit:
            return float(1 - np.exp(limit))
        limit = fence


def share_wording(text: str, other_text: str) -> float:
    """The share, 0 … 1, of three-letter sequences in common (Dice 1945), in lower case.

    Their order does not count; white space does once. Only the first 2,000 characters are read.
    """
    counts = [_count_sequences(t[:LONGEST]) for t in (text, other_text)]
    total = sum(count.total() for count in counts)
    return 2 * (counts[0] & counts[1]).total() / total


def _count_sequences(text: str) -> Counter[str]:
    padded = f" {' '.join(text.lower().split())} "
    return Counter(padded[i : i + 3] for i in range(max(len(padded) - 2, 1)))


# --- groups --------------------------------------------------------------------------------------


def group_texts(
    pairs: SimilarPairs,
    threshold: float,
    read_vectors: ReadVectors,
    read_texts: ReadTexts,
    rule: str = "longest",
    chosen: Sequence[int] = (),
    *,
    should_stop: ShouldStop = never,
) -> KeptTexts:
    """Choose the texts to keep so that each removed one reaches the threshold with a kept one.

    Texts are gone through in an order: first the rows ``chosen``, then by the ``rule``. A text is
    kept unless it reaches the threshold with one that is kept already; a removed text belongs to
    the most similar kept one. Raises SettingsError for an unknown rule or threshold; Stopped.
    """
    check_choice("rule", rule, RULES)
    check_threshold(threshold)
    n_pairs = pairs.count(threshold)
    kept = np.arange(pairs.n_texts, dtype=np.int32)
    cosines = np.ones(pairs.n_texts, dtype=np.float32)
    rows = np.flatnonzero(pairs.has_duplicate(threshold))
    if not len(rows):
        return KeptTexts(kept, cosines)
    rows = rows[_order(rows, read_texts, rule, chosen)]
    place = np.zeros(pairs.n_texts, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    ends = place[pairs.first[:n_pairs]], place[pairs.second[:n_pairs]]
    group = _label_components(len(rows), *ends)
    units = _scale(read_vectors(rows))
    order = np.argsort(group, kind="stable")
    for places in np.split(order, np.cumsum(np.bincount(group))[:-1]):
        heads, products = _keep(units[places], threshold - ROUNDING, should_stop)
        kept[rows[places]] = rows[places[heads]]
        cosines[rows[places]] = np.minimum(products, 1)
    cosines[kept == np.arange(len(kept))] = 1
    return KeptTexts(kept, cosines)


def group_duplicates(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    pairs: SimilarPairs,
    threshold: float | None = None,
    rule: str = "longest",
    chosen: Sequence[int] = (),
    *,
    should_stop: ShouldStop = never,
) -> KeptTexts:
    """`group_texts` of an embedded corpus, by default at the suggested threshold."""

    def read_vectors(rows: np.ndarray) -> np.ndarray:
        return store.vectors.get(embedder, store.keys(corpus, rows))

    return group_texts(
        pairs,
        pairs.first_threshold if threshold is None else threshold,
        read_vectors,
        partial(store.texts, corpus),
        rule,
        chosen,
        should_stop=should_stop,
    )


def check_threshold(threshold: float) -> None:
    """Raise SettingsError unless a threshold is a cosine."""
    if not -1 <= threshold <= 1:
        raise SettingsError(f"The threshold must be between -1 and 1, not {threshold:g}.")


def _order(rows: np.ndarray, read_texts: ReadTexts, rule: str, chosen: Sequence[int]) -> np.ndarray:
    """The places of ascending rows in the order in which they are kept."""
    lengths = np.zeros(len(rows))
    if rule != "first":
        sign = -1 if rule == "longest" else 1
        lengths = sign * np.array([len(text) for text in read_texts(rows)])
    return np.lexsort((lengths, ~np.isin(rows, chosen)))


def _keep(
    units: np.ndarray, threshold: float, should_stop: ShouldStop
) -> tuple[np.ndarray, np.ndarray]:
    """[text] place of the kept text that is most similar to it, and their cosine."""
    kept = np.zeros(0, dtype=np.int64)
    for start in range(0, len(units), ROWS):
        check_stop(should_stop)
        block = units[start : start + ROWS]
        is_free = ~(block @ units[kept].T >= threshold).any(axis=1)
        near = block @ block.T >= threshold
        for place in range(len(block)):
            if is_free[place]:
                is_free &= ~near[place]
                kept = np.append(kept, start + place)
    heads, cosines = np.zeros(len(units), np.int64), np.zeros(len(units), np.float32)
    for start in range(0, len(units), ROWS):
        check_stop(should_stop)
        products = units[start : start + ROWS] @ units[kept].T
        best = products.argmax(axis=1)
        heads[start : start + ROWS] = kept[best]
        cosines[start : start + ROWS] = products[np.arange(len(best)), best]
    heads[kept] = kept
    return heads, cosines


# --- tables --------------------------------------------------------------------------------------


def removed_table(store: CorpusStore, corpus: Corpus, kept: KeptTexts) -> pa.Table:
    """The removed texts as of `corpus_table`, with the ID of the kept text and the cosine."""
    rows = kept.removed
    table = corpus_table(store, corpus, rows=rows)
    kept_ids = store.ids(corpus, kept.kept[rows])
    columns = {"kept_id": pa.array(kept_ids, pa.string()), "cosine": pa.array(kept.cosines[rows])}
    for name, values in columns.items():
        table = table.append_column(free_name(name, table.column_names), values)
    return table


_WORDS = re.compile(r"\w+|[^\w\s]")


def name_difference(text: str, other_text: str) -> str:
    """What differs between two texts, in words: ``blue → red``; empty if only white space does."""
    from difflib import SequenceMatcher

    words, other_words = (_WORDS.findall(t[:LONGEST]) for t in (text, other_text))
    parts = []
    for kind, a, b, c, d in SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes():
        if kind != "equal":
            parts.append(f"{' '.join(words[a:b]) or '–'} → {' '.join(other_words[c:d]) or '–'}")
    return "; ".join(parts)
