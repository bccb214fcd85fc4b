"""How the tokens of one text move through the layers. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from neuralviz.models import TokenizedText

MOST_OFFSET = 4  # layers apart, as in the paper's figure


@dataclass(frozen=True, eq=False)
class TokenStates:
    """The vectors of a text's tokens at every layer; only the first chunk of a long text."""

    text: TokenizedText  # the whole text
    tokens: tuple[str, ...]  # [token] as the tokenizer writes them, with special tokens
    vectors: np.ndarray  # [layer, token, d_model] float32; layer 0 is the embedding output
    n_prefix: int  # special tokens before the text
    n_suffix: int  # special tokens after it

    @property
    def n_layers(self) -> int:
        return len(self.vectors)

    @property
    def n_counted(self) -> int:
        """Number of tokens that count for SBERT-WK: all but the special tokens after the text."""
        return len(self.tokens) - self.n_suffix

    @property
    def counted(self) -> tuple[str, ...]:
        return self.tokens[: self.n_counted]

    @property
    def is_cut(self) -> bool:
        """Whether the text is longer than these tokens."""
        return len(self.text.chunks) > 1


def cosine_maps(vectors: np.ndarray) -> np.ndarray:
    """[token, layer, layer] cosines of [layer, token, d_model] vectors, 0 for zeros (Figure 1)."""
    token_vectors = np.asarray(vectors, dtype=np.float64).transpose(1, 0, 2)
    lengths = np.linalg.norm(token_vectors, axis=2, keepdims=True)
    unit = token_vectors / np.where(lengths > 0, lengths, 1)
    return np.clip(unit @ unit.transpose(0, 2, 1), -1, 1)


def mean_map(states: TokenStates) -> np.ndarray:
    """[layer, layer] cosine map averaged over the tokens that count."""
    return cosine_maps(states.vectors[:, : states.n_counted]).mean(axis=0)


def offset_diagonals(cosines: np.ndarray) -> dict[int, np.ndarray]:
    """Map each offset to the [layer - offset] cosines of layers that far apart (Figure 1 e-h)."""
    offsets = range(1, min(MOST_OFFSET + 1, len(cosines)))
    return {offset: np.diagonal(cosines, offset).copy() for offset in offsets}


def word_importance(states: TokenStates, token_importance: np.ndarray) -> np.ndarray:
    """[word] sums of token importance, first chunk only; with the prefix's share they sum to 1."""
    text_importance = token_importance[states.n_prefix :]
    return np.bincount(states.text.words[: len(text_importance)], weights=text_importance)


@dataclass(frozen=True, eq=False)
class FollowedWord:
    """A word of a text, at all its occurrences."""

    word: str  # as written; in lower case if occurrences differ in case
    importance: float  # summed over its tokens


def followed_words(states: TokenStates, importance: np.ndarray) -> list[FollowedWord]:
    """The first chunk's words, most important first, from the importance of the counted tokens.

    Punctuation is left out, unless there is nothing else.
    """
    text_tokens = slice(states.n_prefix, states.n_counted)
    word_of_token = np.asarray(states.text.words[: states.n_counted - states.n_prefix])
    spans = states.text.word_spans[: word_of_token.max(initial=-1) + 1]
    written = [states.text.text[start:end].strip() for start, end in spans]
    names = [word.lower() for word in written]
    words = []
    word_names = [name for name in names if any(map(str.isalnum, name))]
    for name in dict.fromkeys(word_names or names):
        places = [place for place, candidate in enumerate(names) if candidate == name]
        chosen = np.isin(word_of_token, places)
        spellings = {written[place] for place in places}
        if chosen.any():
            words.append(
                FollowedWord(
                    name if len(spellings) > 1 else spellings.pop(),
                    float(importance[text_tokens][chosen].sum()),
                )
            )
    return sorted(words, key=lambda word: -word.importance)
