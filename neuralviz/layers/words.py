"""The tokens of a text, and the words of a corpus, through all layers (SBERT-WK, Table I)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from neuralviz.errors import ModelError, SettingsError, ShouldStop, check_stop, never
from neuralviz.layers.geometry import TokenStates
from neuralviz.layers.sbert_wk import gram_matrices, importance, layer_weights, token_variance
from neuralviz.layers.states import layer_states
from neuralviz.models.language_model import TextModel, check_model
from neuralviz.models.tokens import batch_while, check_tokenized

if TYPE_CHECKING:
    from neuralviz.layers.settings import SbertWkSettings
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
    foreign: tuple[int, ...] = ()  # places of texts that look foreign to the model

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
    n_read, foreign = 0, []
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
        foreign += [place for place, text in enumerate(batch, n_read) if text.looks_foreign]
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
            foreign=tuple(foreign),
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
        check_stop(should_stop)
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


def follow_tokens(model: TextModel, text: TokenizedText) -> TokenStates:
    """Run a text, or the first chunk of a long one; `ModelError` if the vectors are not finite."""
    check_model(model, TextModel, "follow_tokens")
    check_tokenized([text])
    first = text.chunks[0]
    (states,) = layer_states(model, [replace(text, chunks=(first,))])
    vectors = states.vectors[:, 0].float().cpu().numpy()
    if not np.isfinite(vectors).all():
        raise ModelError(
            f"The model “{model.id}” outputs infinite or NaN values: its weights are damaged. "
            "Download it again, or choose another model."
        )
    special = model.tokenizer.convert_ids_to_tokens
    return TokenStates(
        text=text,
        tokens=(
            *special(list(model.prefix_ids)),
            *text.tokens[first],
            *special(list(model.suffix_ids)),
        ),
        vectors=vectors,
        n_prefix=len(model.prefix_ids),
        n_suffix=len(model.suffix_ids),
    )


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """SBERT-WK's weights of the tokens that count."""

    settings: SbertWkSettings
    layers: np.ndarray  # [layer] numbers of the layers that count
    alignment: np.ndarray  # [token, layer]; these three sum to 1 over the layers
    novelty: np.ndarray  # [token, layer]
    combined: np.ndarray  # [token, layer]
    importance: np.ndarray  # [token], summing to 1


def token_weights(states: TokenStates, settings: SbertWkSettings) -> TokenWeights:
    """SBERT-WK's weights of each token's layers, and of each token (section IV)."""
    counted = states.vectors[settings.layer_start :, : states.n_counted]
    gram = gram_matrices(torch.from_numpy(np.ascontiguousarray(counted.transpose(1, 0, 2))))
    weights = layer_weights(gram, settings.window, settings.variant, settings.omega)
    token_importance = importance(token_variance(gram))
    return TokenWeights(
        settings=settings,
        layers=np.arange(settings.layer_start, states.n_layers),
        alignment=weights.alignment.numpy(),
        novelty=weights.novelty.numpy(),
        combined=weights.combined.numpy(),
        importance=(token_importance / token_importance.sum()).numpy(),
    )
