"""How the tokens of one text move through the layers. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from neuralviz.models import TokenizedText


@dataclass(frozen=True, eq=False)
class TokenStates:
    """The vectors of a text's tokens at every layer; of a text in several chunks, the first's."""

    text: TokenizedText  # the whole text
    tokens: tuple[str, ...]  # [token] special ones included, as the tokenizer writes them
    vectors: np.ndarray  # [layer, token, d_model] float32; layer 0 is the embedding output
    n_prefix: int  # special tokens before the text's own
    n_suffix: int  # and behind them

    @property
    def n_layers(self) -> int:
        """Layers of vectors: one more than the model has blocks."""
        return len(self.vectors)

    @property
    def n_counted(self) -> int:
        """Tokens that count for SBERT-WK: all but the special ones behind the text."""
        return len(self.tokens) - self.n_suffix

    @property
    def counted(self) -> tuple[str, ...]:
        """The tokens that count."""
        return self.tokens[: self.n_counted]

    @property
    def is_cut(self) -> bool:
        """Whether the text goes on behind these tokens."""
        return len(self.text.chunks) > 1


def cosine_maps(vectors: np.ndarray) -> np.ndarray:
    """[token, layer, layer] cosines between a token's vectors (SBERT-WK, Figure 1).

    ``vectors`` is [layer, token, d_model]; a vector of zeros has the cosine 0 with all.
    """
    token_vectors = np.asarray(vectors, dtype=np.float64).transpose(1, 0, 2)
    lengths = np.linalg.norm(token_vectors, axis=2, keepdims=True)
    unit = token_vectors / np.where(lengths > 0, lengths, 1)
    return np.clip(unit @ unit.transpose(0, 2, 1), -1, 1)


def mean_map(states: TokenStates) -> np.ndarray:
    """[layer, layer] mean of the cosine maps over the tokens that count."""
    return cosine_maps(states.vectors[:, : states.n_counted]).mean(axis=0)


def offset_diagonals(
    cosines: np.ndarray, offsets: Sequence[int] = (1, 2, 3, 4)
) -> dict[int, np.ndarray]:
    """By offset, [layer - offset] cosines of layers so far apart (SBERT-WK, Figure 1 e-h).

    Offsets that the [layer, layer] map does not have are left out.
    """
    return {
        offset: np.diagonal(cosines, offset).copy() for offset in offsets if offset < len(cosines)
    }


def word_importance(states: TokenStates, token_importance: np.ndarray) -> np.ndarray:
    """[word] sums of the importance of each word's tokens, of the words of the first chunk.

    ``token_importance`` is [token], of the tokens that count. The special tokens before the text
    have what the sums lack to 1.
    """
    text_importance = token_importance[states.n_prefix :]
    return np.bincount(states.text.words[: len(text_importance)], weights=text_importance)


@dataclass(frozen=True, eq=False)
class FollowedWord:
    """A word of a text, at all its places, on its way through the layers.

    Attributes:
        turns: [layer - 1] cosines of its tokens' vectors at consecutive layers, their mean.
    """

    word: str  # as it is written; in lower case where that differs from place to place
    times: int  # how often it occurs
    n_tokens: int  # of all its occurrences
    importance: float  # sum over its tokens
    turns: np.ndarray


def followed_words(states: TokenStates, importance: np.ndarray) -> list[FollowedWord]:
    """The words of the first chunk of a text, the most important first.

    ``importance`` is [token], of the tokens that count.
    """
    text_tokens = slice(states.n_prefix, states.n_counted)
    word_of_token = np.asarray(states.text.words[: states.n_counted - states.n_prefix])
    turns = np.diagonal(cosine_maps(states.vectors[:, text_tokens]), 1, axis1=1, axis2=2)
    spans = states.text.word_spans[: word_of_token.max(initial=-1) + 1]
    written = [states.text.text[start:end].strip() for start, end in spans]
    names = [word.lower() for word in written]
    words = []
    for name in dict.fromkeys(names):
        places = [place for place, candidate in enumerate(names) if candidate == name]
        chosen = np.isin(word_of_token, places)
        spellings = {written[place] for place in places}
        if chosen.any():
            words.append(
                FollowedWord(
                    name if len(spellings) > 1 else spellings.pop(),
                    len(places),
                    int(chosen.sum()),
                    float(importance[text_tokens][chosen].sum()),
                    turns[chosen].mean(axis=0),
                )
            )
    return sorted(words, key=lambda word: -word.importance)
