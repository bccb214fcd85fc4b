"""Words of a corpus by how much their vectors vary across layers (SBERT-WK, Table I)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from neuralviz.errors import ModelError, SettingsError, Stopped, never
from neuralviz.layers.sbert_wk import gram_matrices, token_variance
from neuralviz.layers.states import layer_states
from neuralviz.models.language_model import TextModel, check_model
from neuralviz.models.tokens import batch_while, check_tokenized

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.models import TokenizedText

GROUPS = ("low", "middle", "high")
PAPERS_COUNT = 51  # the paper uses words that occur more than 50 times
WANTED_WORDS = 60  # twenty per group
TOKENS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class WordVariances:
    """The words of the texts read so far, lowest variance first.

    Special tokens, punctuation and words with unknown tokens are left out. Variance is that of the
    cosines of consecutive layers, averaged over the tokens of an occurrence, then over occurrences.
    """

    model_id: str
    fingerprint: str
    n_read: int  # number of texts read
    total: int  # number of texts; the result is final when n_read reaches it
    words: tuple[str, ...]  # distinct, in lower case
    variance: np.ndarray  # [word] of the cosines of consecutive layers
    occurrences: np.ndarray  # [word] in the texts read

    def default_min_count(self) -> int:
        """The paper's 51, or less if that leaves fewer than 60 words."""
        if not len(self.words):
            return 1
        most_frequent = np.sort(self.occurrences)[::-1]
        return int(min(PAPERS_COUNT, most_frequent[min(WANTED_WORDS, len(self.words)) - 1]))

    def rank(self, min_count: int) -> pd.DataFrame:
        """A row for every word that occurs so often, the steadiest first: ``word``, ``group``,
        ``variance`` and ``occurrences``.

        The three groups are of equal size (Table I); raises `SettingsError` for under three words.
        """
        frequent = np.flatnonzero(self.occurrences >= min_count)
        n = len(frequent)
        if n < len(GROUPS):
            raise SettingsError(
                f"Three groups need at least 3 words that occur {min_count:,} times or more; this "
                f"corpus has {n}. Lower this minimum, or add texts."
            )
        return pd.DataFrame(
            {
                "word": [self.words[place] for place in frequent],
                "group": np.array(GROUPS)[np.digitize(np.arange(n), [n // 3, 2 * n // 3])],
                "variance": self.variance[frequent],
                "occurrences": self.occurrences[frequent],
            }
        )


def word_variances(
    model: TextModel,
    texts: Sequence[TokenizedText],
    *,
    tokens_at_once: int = TOKENS_AT_ONCE,
    should_stop: ShouldStop = never,
) -> Iterator[WordVariances]:
    """Follow every word of a corpus; yields the result so far after every ``tokens_at_once``
    tokens.

    Raises `ModelError` if vectors are not finite, `Stopped` if ``should_stop`` returns true after a
    pass.
    """
    check_model(model, TextModel, "word_variances")
    check_tokenized(texts)
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    n_read = 0
    for batch in batch_while(texts, lambda batch, _: sum(map(len, batch)) < tokens_at_once):
        variances = _token_variances(model, batch, should_stop)
        for text, variance in zip(batch, variances, strict=True):
            word_values = np.bincount(text.words, weights=variance) / np.bincount(text.words)
            lacking = np.bincount(text.words, weights=text.unknown) > 0
            for place, (start, end) in enumerate(text.word_spans):
                word = text.text[start:end].strip().lower()
                if any(character.isalnum() for character in word) and not lacking[place]:
                    value = word_values[place]
                    sums[word] = sums.get(word, 0.0) + float(value)
                    counts[word] = counts.get(word, 0) + 1
        n_read += len(batch)
        words = sorted(sums, key=lambda word: (sums[word] / counts[word], word))
        occurrences = np.array([counts[word] for word in words], dtype=np.int64)
        yield WordVariances(
            model_id=model.id,
            fingerprint=model.fingerprint,
            n_read=n_read,
            total=len(texts),
            words=tuple(words),
            variance=np.array([sums[word] for word in words]) / occurrences,
            occurrences=occurrences,
        )


def _token_variances(
    model: TextModel, texts: Sequence[TokenizedText], should_stop: ShouldStop
) -> list[np.ndarray]:
    """For each text, [token] variance of the cosines of consecutive layers (Equation 11)."""
    variances = [np.zeros(len(text)) for text in texts]
    places = [(number, chunk) for number, text in enumerate(texts) for chunk in text.chunks]
    # Treat each chunk as a text, so that text_of_row identifies the chunk.
    chunk_texts = [
        replace(texts[number], ids=ids, chunks=(slice(0, len(ids)),))
        for number, chunk in places
        for ids in [texts[number].ids[chunk]]
    ]
    for states in layer_states(model, chunk_texts):
        if should_stop():
            raise Stopped
        rows, positions = states.text_tokens.nonzero(as_tuple=True)
        vectors = states.vectors[:, rows, positions].transpose(0, 1)
        if not vectors.isfinite().all():
            raise ModelError(
                f"The model “{model.id}” outputs infinite or NaN values. Choose another model."
            )
        token_variances = token_variance(gram_matrices(vectors)).cpu().numpy()
        row_variances = np.split(token_variances, np.cumsum(np.bincount(rows.cpu().numpy()))[:-1])
        for row, values in enumerate(row_variances):
            number, chunk = places[int(states.text_of_row[row])]
            variances[number][chunk] = values
    return variances
