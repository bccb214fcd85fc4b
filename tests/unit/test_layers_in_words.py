"""What is said of layers: exact sentences for clear, undecided and odd cases."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from neuralviz.layers.geometry import FollowedWord, TokenStates, followed_words
from neuralviz.layers.in_words import (
    of_blocks,
    of_corpus,
    of_epochs,
    of_groups,
    of_layer_weights,
    of_map,
    of_settings,
    of_text,
)
from neuralviz.layers.marks import MarkGrid
from neuralviz.layers.words import WordGroup

WHY = (
    "\n\nSBERT-WK gives most weight to words whose vectors turn unevenly from layer to layer, "
    "whatever they mean."
)


def word(name: str, importance: float, turns: Sequence[float], **more: int) -> FollowedWord:
    counts = {"times": 1, "n_tokens": 1} | more
    return FollowedWord(name, importance=importance, turns=np.array(turns), **counts)


def weights(importance: Sequence[float], first: int = 0, n_layers: int = 4) -> SimpleNamespace:
    return SimpleNamespace(
        importance=np.array(importance), layers=np.arange(first, first + n_layers)
    )


# --- a text ------------------------------------------------------------------------------------


def test_the_words_that_win_are_named_with_where_they_turn() -> None:
    words = [
        word("the", 0.4, [0.9, 0.8, 0.2], times=2, n_tokens=2),
        word(".", 0.3, [0.9, 0.9, 0.1]),
        word("cat", 0.2, [0.9, 0.9, 0.7]),
    ]
    assert of_text(words, weights([0.2, 0.2, 0.3, 0.2, 0.1])) == (
        "“the” (2 times) and “.” carry 70% of this embedding. From layer 2 to 3, their vectors "
        "turn further (cosine 0.20 and 0.10) than that of “cat” (0.70)." + WHY
    )


def test_words_that_turn_alike_are_not_told_apart() -> None:
    words = [
        word("jellyfish", 0.4, [0.9, 0.6, 0.9], n_tokens=2),
        word("cat", 0.2, [0.9, 0.62, 0.9]),
    ]
    assert of_text(words, weights([0.4, 0.2])) == (
        "“jellyfish” (2 tokens) carries 40% of this embedding. From layer 1 to 2, its vector "
        "turns furthest (cosine 0.60)." + WHY
    )


def test_layers_that_do_not_count_are_left_out() -> None:
    words = [word("cat", 0.8, [0.1, 0.9, 0.5, 0.9])]
    assert of_text(words, weights([0.2, 0.8], first=1)) == (
        "“cat” is the only word: 80% of this embedding. From layer 2 to 3, its vector turns "
        "furthest (cosine 0.50)."
    )


def test_what_decides_nothing_is_said() -> None:
    words = [word("cat", 0.5, [0.5, 0.5, 0.5]), word("dog", 0.5, [0.5, 0.5, 0.5])]
    assert of_text(words, weights([0.5, 0.5])) == (
        "All tokens count equally: no vector turns more unevenly than another."
    )
    assert of_text(words, weights([0.5, 0.5], n_layers=2)) == (
        "With two layers, no vector can turn unevenly: all tokens count equally."
    )
    assert of_text([], weights([1.0])) == ""


def test_long_words_are_cut() -> None:
    said = of_text([word("z" * 3000, 0.9, [0.5, 0.4, 0.3])], weights([0.1, 0.9]))
    assert said.startswith(f"“{'z' * 23}…” is the only word")


def test_a_word_is_followed_at_all_its_places() -> None:
    text = SimpleNamespace(
        text="The cat, the", words=(0, 1, 1, 2, 3), word_spans=((0, 3), (4, 7), (7, 8), (9, 12))
    )
    vectors = np.ones((3, 7, 2), dtype=np.float32)
    vectors[1, 1] = (1, -1)  # "The" turns by a right angle, twice
    states = TokenStates(text, ("[CLS]", *"abcde", "[SEP]"), vectors, 1, 1)  # type: ignore[arg-type]
    the, cat, comma = followed_words(states, np.array([0.1, 0.3, 0.1, 0.1, 0.15, 0.25]))
    assert (the.word, the.times, the.n_tokens, the.importance) == ("the", 2, 2, pytest.approx(0.55))
    assert (cat.word, cat.n_tokens, comma.word) == ("cat", 2, ",")
    np.testing.assert_allclose(the.turns, [0.5, 0.5])
    np.testing.assert_allclose(cat.turns, [1, 1])


# --- its other figures -------------------------------------------------------------------------


def test_layers_between_which_vectors_turn() -> None:
    cosines = np.eye(4)
    cosines[[0, 1, 2], [1, 2, 3]] = (0.9, 0.5, 0.8)
    assert of_map(cosines, "The vector of “cat”") == (
        "The vector of “cat” turns furthest from layer 1 to 2 (cosine 0.50), least from layer 0 "
        "to 1 (cosine 0.90)."
    )
    assert of_map(np.full((3, 3), 0.7), "A vector") == (
        "A vector turns about as far in every layer (cosine 0.70)."
    )
    assert of_map(np.eye(1), "A vector") == ""


def test_the_layer_that_weighs_most() -> None:
    combined = np.array([[0.2, 0.8], [0.4, 0.6], [0.9, 0.1]])
    assert of_layer_weights(SimpleNamespace(combined=combined, layers=np.array([5, 6]))) == (
        "Layer 6 weighs most for 2 of 3 tokens."
    )


def test_settings_that_matter_and_that_do_not() -> None:
    def said(lowest: float) -> str:
        by_window = np.array([[1.0, 0.99], [0.98, lowest]])
        settings = {"windows": np.array([1, 2]), "layer_starts": np.array([0, 1])}
        return of_settings(SimpleNamespace(by_window=by_window, **settings))

    assert said(0.97) == (
        "The settings hardly matter for this text: the cosine similarity to your embedding stays "
        "above 0.95."
    )
    assert said(-0.001) == (
        "First layer 1 with layer window 2 changes the embedding most: its cosine similarity to "
        "yours is 0.00."
    )


# --- a corpus ----------------------------------------------------------------------------------


def groups(words: Sequence[str], variance: Sequence[float]) -> list[WordGroup]:
    n = len(words) // 3
    return [
        WordGroup(name, tuple(words[i : i + n]), np.array(variance[i : i + n]), np.ones(n, int))
        for name, i in (("low", 0), ("middle", n), ("high", 2 * n))
    ]


def test_the_most_and_least_uneven_words() -> None:
    six = groups("fedcba", [0.001, 0.002, 0.003, 0.004, 0.005, 0.01])
    assert of_corpus(six) == (
        "“a”, “b” and “c” turn most unevenly from layer to layer, “f”, “e” and “d” most evenly."
        "\n\nThe variance of “a” is 10 times that of “f”. SBERT-WK gives words of high variance "
        "more weight."
    )
    assert of_groups(six) == (
        "In three groups of equal size, the variance is 0.0010 to 0.0020, 0.0030 to 0.0040 and "
        "0.0050 to 0.010."
    )


def test_few_words_and_words_that_do_not_differ() -> None:
    assert of_corpus(groups("cba", [0.2, 0.25, 0.3])) == (
        "“a” turns most unevenly from layer to layer, “c” most evenly."
    )
    assert of_corpus(groups("cba", [0.0, 0.0, 0.3])) == (
        "“a” turns most unevenly from layer to layer, “c” most evenly."
    )
    assert of_corpus(groups("cba", [0.0, 0.0, 0.0])) == "All 3 words turn equally evenly."


# --- change by block ---------------------------------------------------------------------------

GRID = MarkGrid(
    kinds=("output.dense.bias", "output.LayerNorm.weight"),
    blocks=(0, 1),
    names=("a", "b", "c", "d"),
    rows=(0, 1, 0, 1),
    columns=(0, 0, 1, 1),
    sizes=(4, 4, 4, 4),
)


def test_the_block_and_the_kind_that_change_most() -> None:
    norms = np.array([0.2, 0.4, 0.1, 0.2])
    assert of_blocks(GRID, norms, per_value=True, epoch=1) == (
        "After 1 epoch, block 0 has changed most (0.16), block 1 least (0.079). The output norm "
        "weight has changed most (0.16), the output bias least (0.079)."
    )
    assert of_blocks(GRID, norms, per_value=False, epoch=10) == (
        "After 10 epochs, block 0 has changed most (0.45), block 1 least (0.22). The output norm "
        "weight has changed most (0.45), the output bias least (0.22)."
    )


def test_blocks_that_change_about_equally() -> None:
    norms = np.array([0.1, 0.2, 0.1, 0.205])
    assert of_blocks(GRID, norms, per_value=True, epoch=3) == (
        "After 3 epochs, all blocks have changed about equally (0.079 to 0.081). The output norm "
        "weight has changed most (0.10), the output bias least (0.050)."
    )
    assert of_blocks(GRID, np.zeros(4), per_value=True, epoch=3) == (
        "After 3 epochs, all blocks have changed about equally (0.0 to 0.0). All kinds of layers "
        "have changed about equally (0.0 to 0.0)."
    )


def test_one_block_of_one_kind_and_a_run_that_diverged() -> None:
    one = MarkGrid(("output.dense.bias",), (5,), ("a",), (0,), (0,), (4,))
    assert of_blocks(one, np.array([24.0]), per_value=True, epoch=2) == (
        "After 2 epochs, block 5 has changed by 12."
    )
    assert of_blocks(one, np.array([np.nan]), per_value=True, epoch=2) == ""


def test_how_soon_blocks_move() -> None:
    totals = np.array([[1.0, 1.0], [1.5, 1.5], [1.8, 1.8], [2.0, 2.0]])
    assert of_epochs(totals) == "After 2 of 4 epochs, the blocks have come 75% of the way."
    assert of_epochs(totals[:1]) == ""
    assert of_epochs(np.zeros((4, 2))) == ""


def test_kinds_add_up_over_the_blocks() -> None:
    norms = np.array([0.3, 1.0, 0.4, 0.0])
    np.testing.assert_allclose(GRID.totals_of_kinds(norms, per_value=False), [0.5, 1.0])
    np.testing.assert_allclose(
        GRID.totals_of_kinds(norms, per_value=True), [0.5 / 8**0.5, 1 / 8**0.5]
    )
