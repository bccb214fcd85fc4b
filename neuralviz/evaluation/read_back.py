"""Read-back: which words of a text can be told from its embedding alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.embedders.base import ModelEmbedder
from neuralviz.embedders.neural import GradientEmbedder, NeuralEmbedder
from neuralviz.errors import NeuralvizError, ShouldStop, check_stop, never
from neuralviz.evaluation.broken import unit_rows
from neuralviz.evaluation.results import ReadBack
from neuralviz.micro_tuning.events import take_apart
from neuralviz.micro_tuning.predictions import compare_at_blank
from neuralviz.models import LanguageModel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from neuralviz.embedders import Embedder
    from neuralviz.models import TextModel

GUESSES, FIRST_GUESSES = 10, 5  # of words, from an embedding
_WORD = re.compile(r"[^\W\d_]+")


def list_words(text: str) -> set[str]:
    """The different words of a text, runs of letters, with case folded."""
    return set(_WORD.findall(text.casefold()))


def count_read(
    texts: Sequence[str], guesses: Sequence[Sequence[str]]
) -> tuple[ReadBack, np.ndarray, np.ndarray]:
    """Count the words among ten guesses a text, likeliest first; also [text] hits and [text] words.

    `NeuralvizError` if no text has a word.
    """
    vocabularies = [list_words(text) for text in texts]
    counts = Counter(word for words in vocabularies for word in words)
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:GUESSES]
    n = np.array([len(words) for words in vocabularies])
    if not n.sum():
        raise NeuralvizError("The texts have no words that could be read back.")

    def count_hits(candidates: Iterable[Sequence[str]], top: int = GUESSES) -> np.ndarray:
        pairs = zip(vocabularies, candidates, strict=True)
        return np.array([len(words & set(guessed[:top])) for words, guessed in pairs])

    hits, total = count_hits(guesses), int(n.sum())
    counted = ReadBack(
        recall_at_10=float(hits.sum() / total),
        recall_at_5=float(count_hits(guesses, FIRST_GUESSES).sum() / total),
        baseline=float(count_hits([frequent] * len(n)).sum() / total),
        ceiling=float(np.minimum(n, GUESSES).sum() / total),
        n=total,
    )
    return counted, hits, n


def read_words(
    embedder: Embedder, vectors: ArrayLike, *, should_stop: ShouldStop = never
) -> list[list[str]]:
    """The 10 likeliest words of each text, from its [dim] vector alone.

    A neural embedding or gradient is put into the model, at the length that AdamW's steps can
    reach: the words whose probability rises most at a mask without context. Another vector: the
    nearest rows of the model's output layer, or without one of its embedding table, by cosine.
    `NeuralvizError` for vectors that are neither.
    """
    if not isinstance(embedder, ModelEmbedder):
        raise NeuralvizError(
            f"{embedder.name} cannot be read back: only vectors that one method takes from the "
            "layers or weights of a model can."
        )
    columns, words = _find_words(embedder.model)
    read = []
    for scores in _score_tokens(embedder, unit_rows(vectors)):
        check_stop(should_stop)
        of_word = np.full(len(words), -np.inf)
        np.maximum.at(of_word, columns[columns >= 0], scores[columns >= 0])
        read.append([words[place] for place in np.argsort(-of_word, kind="stable")[:GUESSES]])
    return read


def _score_tokens(embedder: ModelEmbedder, units: np.ndarray) -> Iterator[np.ndarray]:
    """[vocab] scores for each [dim] vector."""
    if isinstance(embedder, NeuralEmbedder | GradientEmbedder):
        model, settings = embedder.model, embedder.settings
        deltas = (take_apart(model, settings, unit).values for unit in units)
        yield from compare_at_blank(model, settings.layers, deltas)
        return
    rows = _word_vectors(embedder.model)
    if rows.shape[1] != units.shape[1]:
        raise NeuralvizError(
            f"The model has {rows.shape[1]:,} values for a word; the vectors have "
            f"{units.shape[1]:,}, so they cannot be compared."
        )
    yield from (rows @ unit for unit in units)


def _word_vectors(model: TextModel) -> np.ndarray:
    """[vocab, d_model] unit rows of the output layer, or without one of the embedding table."""
    is_predicting = isinstance(model, LanguageModel)
    network = model.network
    table = network.get_output_embeddings() if is_predicting else network.get_input_embeddings()
    return unit_rows(table.weight.detach().float().cpu().numpy())


@lru_cache(maxsize=4)
def _find_words(model: TextModel) -> tuple[np.ndarray, list[str]]:
    """[vocab] number of the word that a token is, −1 for none, and the words with case folded."""
    size = len(_word_vectors(model))
    tokens = [token or "" for token in model.tokenizer.convert_ids_to_tokens(list(range(size)))]
    begins = [token[:1] in {"Ġ", "▁"} for token in tokens]  # how vocabularies mark a word's start
    numbers: dict[str, int] = {}
    columns = np.full(size, -1)
    for place, is_marked in enumerate(begins):
        word = model.encoder.decode([place]).strip().casefold()
        if (is_marked or not any(begins)) and _WORD.fullmatch(word):
            columns[place] = numbers.setdefault(word, len(numbers))
    return columns, list(numbers)
