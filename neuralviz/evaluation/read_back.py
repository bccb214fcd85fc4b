"""Read-back: which words of a text can be told from its embedding alone."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from neuralviz.embedders.base import ModelEmbedder
from neuralviz.embedders.neural import GradientEmbedder, NeuralEmbedder
from neuralviz.errors import NeuralvizError, ShouldStop, check_stop, never
from neuralviz.evaluation.broken import unit_rows
from neuralviz.evaluation.results import ReadBack
from neuralviz.micro_tuning.events import take_apart
from neuralviz.micro_tuning.predictions import compare_at_blank
from neuralviz.models import LanguageModel
from neuralviz.words import WORD

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

    from neuralviz.embedders import Embedder
    from neuralviz.models import TextModel

GUESSES, FIRST_GUESSES = 10, 5  # of words, from an embedding


def list_words(text: str) -> set[str]:
    """The different words of a text that begin with a letter, with case folded."""
    words = (match.group() for match in WORD.finditer(unicodedata.normalize("NFC", text)))
    return {word.casefold() for word in words if word[0].isalpha()}


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


def check_readable(embedder: Embedder) -> None:
    """Raise `NeuralvizError` if no words can be read from the embedder's vectors."""
    if not isinstance(embedder, ModelEmbedder):
        raise NeuralvizError(
            f"{embedder.name} cannot be read back: only vectors that one method takes from the "
            "layers or weights of a model can."
        )
    width = _find_table(embedder.model).shape[1]
    if not isinstance(embedder, NeuralEmbedder | GradientEmbedder) and width != embedder.dim:
        raise NeuralvizError(
            f"{embedder.name} cannot be read back: the model has {width:,} values for a word, and "
            f"the vectors have {embedder.dim:,}."
        )


def read_words(
    embedder: Embedder, vectors: ArrayLike, *, should_stop: ShouldStop = never
) -> list[list[str]]:
    """The 10 likeliest words of each text, from its [dim] vector alone; none from zeros.

    A neural embedding or gradient is put into the model, at the length that AdamW's steps can
    reach: the words whose probability rises most at a mask without context. Another vector: the
    nearest rows of the model's output layer, or without one of its embedding table, by cosine.
    Raises as `check_readable`, and Stopped.
    """
    check_readable(embedder)
    assert isinstance(embedder, ModelEmbedder)
    columns, words = _find_words(embedder.model)
    units = unit_rows(vectors)
    read = []
    for unit, scores in zip(units, _score_tokens(embedder, units), strict=True):
        check_stop(should_stop)
        of_word = np.full(len(words), -np.inf)
        np.maximum.at(of_word, columns[columns >= 0], scores[columns >= 0])
        best = np.argsort(-of_word, kind="stable")[:GUESSES]
        read.append([words[place] for place in best] if unit.any() else [])
    return read


def _score_tokens(embedder: ModelEmbedder, units: np.ndarray) -> Iterator[np.ndarray]:
    """[vocab] scores for each [dim] vector."""
    if isinstance(embedder, NeuralEmbedder | GradientEmbedder):
        model, settings = embedder.model, embedder.settings
        deltas = (take_apart(model, settings, unit).values for unit in units)
        yield from compare_at_blank(model, settings.layers, deltas)
    else:
        rows = unit_rows(_find_table(embedder.model).float().cpu().numpy())
        yield from (rows @ unit for unit in units)


def _find_table(model: TextModel) -> Tensor:
    """[vocab, width] weights of the output layer, or without one of the embedding table."""
    network, is_predicting = model.network, isinstance(model, LanguageModel)
    layer = network.get_output_embeddings() if is_predicting else network.get_input_embeddings()
    table: Tensor = layer.weight.detach()
    return table


_words_of: WeakKeyDictionary[TextModel, tuple[np.ndarray, list[str]]] = WeakKeyDictionary()


def _find_words(model: TextModel) -> tuple[np.ndarray, list[str]]:
    """[vocab] number of the word that a token is, −1 for none, and the words with case folded.

    A token is a word if the tokenizer reads that word as this token alone, at the beginning of a
    text or within.
    """
    if model not in _words_of:
        size, encoder = len(_find_table(model)), model.encoder
        spelt = enumerate(encoder.decode([token]).strip() for token in range(size))
        words = {token: word for token, word in spelt if list_words(word) == {word.casefold()}}
        read = partial(encoder.encode_batch, add_special_tokens=False)
        alone, within = read([*words.values()]), read([f"a {word}" for word in words.values()])
        before = read(["a"])[0].ids
        numbers: dict[str, int] = {}
        columns = np.full(size, -1)
        for (token, word), first, later in zip(words.items(), alone, within, strict=True):
            if first.ids == [token] or later.ids == [*before, token]:
                columns[token] = numbers.setdefault(word.casefold(), len(numbers))
        _words_of[model] = columns, list(numbers)
    return _words_of[model]
