"""Which words make two texts similar: a cosine as a sum over pairs of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sentencex import get_sentence_boundaries

from neuralviz.errors import SettingsError, ShouldStop, TextError, check_stop, never
from neuralviz.models.tokens import to_utf8
from neuralviz.words import WORD, ShortRepr

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder
    from neuralviz.embedders.splits import SplitVector

NOTHING_LEFT = 1e-6  # length of a centred vector that is rounding alone
TOGETHER = 4  # shorter texts that are embedded at once
CENTRE = "mean of all texts"
LONGEST_SENTENCE = 40  # words; a longer one is read in parts of equal length
LEFT_OUT = "all words together"  # of a cosine that is explained by leaving words out


class Passages(NamedTuple):
    """Words or sentences of both texts, and what each pair of them adds to the cosine."""

    spans: tuple[np.ndarray, np.ndarray]  # of each text, [passage, 2] characters
    contributions: np.ndarray  # [passage + 1, passage + 1]; the last belong to no token


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(ShortRepr):
    """A cosine similarity as a sum over pairs of tokens."""

    method: str
    texts: tuple[str, str]
    cosine: float
    is_exact: bool  # else words were left out, and the contributions are the changes
    spans: tuple[np.ndarray, np.ndarray]  # of each text, [token, 2] characters
    word_spans: tuple[np.ndarray, np.ndarray]  # of each text, [token, 2] those of the token's word
    contributions: (
        np.ndarray
    )  # [token + 1, token + 1] float64; the last row and column have no token
    rest: tuple[str, str]  # what these are, such as “weight decay”
    layers: tuple[tuple[str, ...], tuple[str, ...]]  # of each vector; empty if not exact
    by_layer: np.ndarray  # [layer, layer] sums of the contributions
    splits: tuple[SplitVector, SplitVector] | None = None  # whose products these are
    centre: np.ndarray | None = None  # [dim] that was subtracted from both unit vectors

    def drop_splits(self) -> Explanation:
        """The numbers alone, without what `try_deletions` needs."""
        return replace(self, splits=None, centre=None)

    @cached_property
    def words(self) -> Passages:
        return self.group([_merge_spans(spans) for spans in self.word_spans])

    @cached_property
    def sentences(self) -> Passages:
        return self.group([_sentence_spans(text) for text in self.texts])

    def group(self, passages: Sequence[np.ndarray]) -> Passages:
        """By passages of each text, [passage, 2] characters in text order."""
        rows = _sum_rows(self.contributions, self.word_spans[0], passages[0])
        grouped = _sum_rows(rows.T, self.word_spans[1], passages[1]).T
        return Passages((passages[0], passages[1]), grouped)


def explain(
    embedder: Embedder,
    a: str,
    b: str,
    *,
    centre: np.ndarray | None = None,
    most_words: int | None = None,
    should_stop: ShouldStop = never,
) -> Explanation:
    """Explain the cosine similarity of two texts by pairs of their tokens.

    The contributions sum to the cosine. They are exact where a vector is a sum over tokens: pooled
    token vectors, SBERT-WK, deltas, gradients, concatenations of these, and sentence encoders that
    are linear behind their transformer. Elsewhere, words are left out (`is_exact` is false).
    ``centre``, [dim], is subtracted from both unit vectors, as the mean of a corpus. Raises as
    `Embedder.encode`, `SettingsError` for a centre of another size, `TextError` where more than
    ``most_words`` would have to be left out, and `Stopped` if ``should_stop`` returns true.
    """
    if centre is not None and np.shape(centre) != (embedder.dim,):
        raise SettingsError(
            f"The vectors have {embedder.dim:,} values, the centre has the shape "
            f"{np.shape(centre)}."
        )
    splits = embedder.split([a, b], should_stop=should_stop)
    if splits is None:
        n_words = len(_word_spans(a)) + len(_word_spans(b))
        if most_words is not None and n_words > most_words:
            raise TextError(
                f"These texts can only be explained by leaving out each of their {n_words} words "
                f"in turn, which is done for up to {most_words} words."
            )
        return _explain_by_leaving_out(embedder, (to_utf8(a), to_utf8(b)), centre, should_stop)
    first, second = splits
    return explain_splits(embedder.name, first, second, centre)


def explain_splits(
    method: str, first: SplitVector, second: SplitVector, centre: np.ndarray | None = None
) -> Explanation:
    """The same from the parts of both unit vectors, as `Embedder.split` gives them."""
    if centre is not None:
        first, second = (
            split.minus(centre, CENTRE).normalize(NOTHING_LEFT) for split in (first, second)
        )
    pairs = zip(first.blocks, second.blocks, strict=True)
    layers = tuple(tuple(dict.fromkeys(p.layer for p in s.parts)) for s in (first, second))
    by_layer = np.zeros((len(layers[0]), len(layers[1])))
    for layer_a, block_a, rows_a in first.parts:
        for layer_b, block_b, rows_b in second.parts:
            if block_a == block_b:
                place = layers[0].index(layer_a), layers[1].index(layer_b)
                by_layer[place] += rows_a.sum(axis=0) @ rows_b.sum(axis=0)
    return Explanation(
        method,
        (first.text, second.text),
        cosine=float(first.vector @ second.vector),
        is_exact=True,
        spans=(first.spans, second.spans),
        word_spans=(first.word_spans, second.word_spans),
        contributions=np.sum([rows_a @ rows_b.T for rows_a, rows_b in pairs], axis=0),
        rest=(first.rest, second.rest),
        layers=(layers[0], layers[1]),
        by_layer=by_layer,
        splits=(first, second),
        centre=centre,
    )


def find_unknown_words(embedder: Embedder, explanation: Explanation) -> tuple[str, ...]:
    """The explained words that one of the embedder's tokenizers does not know."""
    sides = zip(explanation.texts, explanation.words.spans, strict=True)
    words = list(dict.fromkeys(text[slice(*span)] for text, spans in sides for span in spans))
    read = filter(None, (part.token_ids(words) for part in embedder.parts))
    return tuple(word for word, *ids in zip(words, *read, strict=True) if None in chain(*ids))


# --- leaving words out ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Deletions(ShortRepr):
    """How the cosine changes when a word of either text is left out, and what was foretold."""

    words: tuple[str, ...]  # of both texts, as far as the rest can still be read
    cosines: np.ndarray  # [word] without it
    expected: np.ndarray  # [word] without its parts of the vector

    @property
    def agreement(self) -> float | None:
        """Spearman correlation of the two, −1 … 1; None if a side is constant."""
        if len(self.words) < 3 or np.ptp(self.cosines) == 0 or np.ptp(self.expected) == 0:
            return None
        from scipy.stats import spearmanr

        return float(spearmanr(self.cosines, self.expected).statistic)


def try_deletions(
    embedder: Embedder, explanation: Explanation, *, should_stop: ShouldStop = never
) -> Deletions:
    """Embed both texts again without each word in turn, and compare with the exact split.

    `ValueError` for an explanation that is not exact.
    """
    if explanation.splits is None:
        raise ValueError("This explanation was made by leaving words out.")
    splits, centre = explanation.splits, explanation.centre
    words, cosines, expected = [], [], []
    vectors = [split.vector for split in splits]
    for side, text in enumerate(explanation.texts):
        spans = explanation.words.spans[side]
        shorter = _vectors_without(embedder, text, spans, should_stop)
        blocks = splits[side].blocks
        of_words = np.hstack([_sum_rows(b, splits[side].word_spans, spans) for b in blocks])
        for span, removed, vector in zip(spans, of_words, shorter, strict=False):
            if vector is None:
                continue
            words.append(text[slice(*span)])
            shifted = _unit(vector) - (0.0 if centre is None else centre)
            cosines.append(_cosine(shifted, vectors[1 - side]))
            expected.append(_cosine(vectors[side] - removed, vectors[1 - side]))
    return Deletions(tuple(words), np.array(cosines), np.array(expected))


def _explain_by_leaving_out(
    embedder: Embedder, texts: tuple[str, str], centre: np.ndarray | None, should_stop: ShouldStop
) -> Explanation:
    """Contributions of pairs of words: the change of the cosine that needs both.

    A word's sum is the change when it alone is left out; what is left of the cosine belongs to no
    word.
    """
    spans = [_word_spans(text) for text in texts]
    whole = np.asarray(embedder.encode(list(texts)), dtype=np.float64)
    shift = 0.0 if centre is None else centre
    sides = []
    for text, words, vector in zip(texts, spans, whole, strict=True):
        shorter = _vectors_without(embedder, text, words, should_stop)
        rows = [np.zeros_like(vector) if part is None else _unit(part) - shift for part in shorter]
        sides.append(np.array([*map(_unit, rows), _unit(_unit(vector) - shift)]))
    cosines = sides[0] @ sides[1].T  # [word + 1, word + 1]; the last are of whole texts
    changes = cosines[-1, -1] - cosines
    shared = changes[:-1, -1:] + changes[-1:, :-1] - changes[:-1, :-1]
    contributions = np.zeros_like(cosines)
    contributions[:-1, :-1] = shared
    contributions[:-1, -1] = changes[:-1, -1] - shared.sum(axis=1)
    contributions[-1, :-1] = changes[-1, :-1] - shared.sum(axis=0)
    contributions[-1, -1] = cosines[-1, -1] - contributions.sum()
    return Explanation(
        embedder.name,
        texts,
        cosine=float(cosines[-1, -1]),
        is_exact=False,
        spans=(spans[0], spans[1]),
        word_spans=(spans[0], spans[1]),
        contributions=contributions,
        rest=(LEFT_OUT, LEFT_OUT),
        layers=((), ()),
        by_layer=np.zeros((0, 0)),
        centre=centre,
    )


def _vectors_without(
    embedder: Embedder, text: str, spans: np.ndarray, should_stop: ShouldStop
) -> list[np.ndarray | None]:
    """[dim] vectors of the text without each of its words; None where nothing readable is left."""
    shorter = [" ".join(f"{text[:start]} {text[end:]}".split()) for start, end in spans]
    vectors: list[np.ndarray | None] = []
    for start in range(0, len(shorter), TOGETHER):
        check_stop(should_stop)
        batch = shorter[start : start + TOGETHER]
        try:
            vectors += list(np.asarray(embedder.encode(batch), dtype=np.float64))
        except TextError:
            vectors += [_encode_readable(embedder, part) for part in batch]
    return vectors


def _encode_readable(embedder: Embedder, text: str) -> np.ndarray | None:
    try:
        return np.asarray(embedder.encode([text]), dtype=np.float64)[0]
    except TextError:
        return None


# --- passages of a text ---------------------------------------------------------------------------


def _word_spans(text: str) -> np.ndarray:
    return np.array([match.span() for match in WORD.finditer(text)] or [(0, len(text))])


def _sentence_spans(text: str) -> np.ndarray:
    spans: list[tuple[int, int]] = []
    for bound in get_sentence_boundaries("en", text):
        start, end = bound["start_index"], bound["end_index"]
        words = [match.start() for match in WORD.finditer(text, start, end)]
        n_parts = -(-len(words) // LONGEST_SENTENCE)
        cuts = [words[len(words) * part // n_parts] for part in range(1, n_parts)]
        spans += zip([start, *cuts], [*cuts, end], strict=True)
    return np.array([span for span in spans if text[slice(*span)].strip()])  # not empty lines


def _merge_spans(spans: np.ndarray) -> np.ndarray:
    """[passage, 2] spans in text order; those that overlap, of several tokenizers, are one."""
    merged: list[list[int]] = []
    for start, end in np.unique(spans, axis=0).tolist():
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return np.array(merged).reshape(-1, 2)


def _sum_rows(rows: np.ndarray, spans: np.ndarray, passages: np.ndarray) -> np.ndarray:
    """[passage + 1, …] sums of [token + 1, …] rows by passage; the last belongs to no token."""
    number = np.searchsorted(passages[:, 0], spans[:, 0], side="right") - 1
    sums = np.zeros((len(passages) + 1, *rows.shape[1:]))
    np.add.at(sums, np.append(np.maximum(number, 0), len(passages)), rows)
    return sums


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(_unit(a) @ _unit(b))
