"""What is said of layers: exact sentences for clear, undecided and odd cases."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from neuralviz.layers.geometry import FollowedWord, TokenStates, followed_words
from neuralviz.layers.in_words import (
    describe_blocks,
    describe_corpus,
    describe_epochs,
    describe_groups,
    describe_layer_weights,
    describe_map,
    describe_settings,
    describe_text,
)
from neuralviz.layers.marks import MarkGrid
from neuralviz.layers.words import WordGroup

WHY = (
    " (1: no change). SBERT-WK gives most weight to words that change in jumps from layer to "
    "layer, whatever they mean."
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
    assert describe_text(words, weights([0.2, 0.2, 0.3, 0.2, 0.1])) == (
        "70% of this embedding comes from “the” (2 times) and “.”: layer 3 changes them "
        "more than “cat”.\n\nThe cosine between a word's vectors before and after layer 3 is 0.20 "
        "and 0.10; for “cat” it is 0.70" + WHY
    )


def test_words_that_turn_alike_are_not_told_apart() -> None:
    words = [
        word("jellyfish", 0.4, [0.9, 0.6, 0.9], n_tokens=2),
        word("cat", 0.2, [0.9, 0.62, 0.9]),
    ]
    assert describe_text(words, weights([0.4, 0.2])) == (
        "40% of this embedding comes from “jellyfish” (2 tokens): layer 2 changes it most."
        "\n\nThe cosine between its vectors before and after layer 2 is 0.60" + WHY
    )


def test_layers_that_do_not_count_are_left_out() -> None:
    words = [word("cat", 0.8, [0.1, 0.9, 0.5, 0.9])]
    assert describe_text(words, weights([0.2, 0.8], first=1)) == (
        "80% of this embedding comes from “cat”: layer 3 changes it most.\n\nThe cosine "
        "between its vectors before and after layer 3 is 0.50" + WHY
    )


def test_what_decides_nothing_is_said() -> None:
    words = [word("cat", 0.5, [0.5, 0.5, 0.5]), word("dog", 0.5, [0.5, 0.5, 0.5])]
    assert describe_text(words, weights([0.5, 0.5])) == (
        "All words count equally: from layer to layer, all change alike."
    )
    assert describe_text(words, weights([0.5, 0.5], n_layers=2)) == (
        "With two layers, no word can change in jumps: all words count equally."
    )
    assert describe_text([], weights([1.0])) == ""


def test_long_words_are_cut() -> None:
    said = describe_text([word("z" * 3000, 0.9, [0.5, 0.4, 0.3])], weights([0.1, 0.9]))
    assert said.startswith(f"90% of this embedding comes from “{'z' * 23}…”: layer 3")


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
    assert describe_map(cosines, "“cat”") == (
        "Layer 2 changes “cat” most, layer 1 least.\n\nThe cosine between its vectors before and "
        "after these layers is 0.50 and 0.90 (1: no change)."
    )
    assert describe_map(np.full((3, 3), 0.7), "the average word") == (
        "All layers change the average word about equally.\n\nThe cosine between its vectors "
        "before and after a layer is 0.70 (1: no change)."
    )
    assert describe_map(np.eye(1), "“cat”") == ""


def test_the_layer_that_weighs_most() -> None:
    combined = np.array([[0.2, 0.8], [0.4, 0.6], [0.9, 0.1]])
    mix = "A word's final vector is a mix of the layers."

    def said(n_tokens: int) -> str:
        return describe_layer_weights(
            SimpleNamespace(combined=combined[:n_tokens], layers=np.array([5, 6]))
        )

    assert said(3) == f"{mix} For 2 of 3 tokens, layer 6 has the largest part."
    assert said(2) == f"{mix} For all 2 tokens, layer 6 has the largest part."
    assert said(1) == f"{mix} For 1 token, layer 6 has the largest part."


def test_settings_that_matter_and_that_do_not() -> None:
    def said(lowest: float) -> str:
        by_window = np.array([[1.0, 0.99], [0.98, lowest]])
        settings = {"windows": np.array([1, 2]), "layer_starts": np.array([0, 1])}
        return describe_settings(SimpleNamespace(by_window=by_window, **settings))

    assert said(0.97) == (
        "For this text, the settings hardly matter.\n\nWith every first layer and layer window, "
        "the cosine similarity to your embedding stays above 0.95."
    )
    assert said(-0.001) == (
        "For this text, the settings matter: first layer 1 with layer window 2 changes the "
        "embedding most.\n\nIts cosine similarity to yours is then 0.00."
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
    assert describe_corpus(six) == (
        "From layer to layer, “a”, “b” and “c” change most in jumps, “f”, “e” and “d” most "
        "steadily.\n\nThe variance of “a” is 10 times that of “f”. SBERT-WK gives more weight to "
        "words that change in jumps."
    )
    assert describe_groups(six) == (
        "A third of the words change steadily, a third in jumps, the rest in between.\n\nThe "
        "variance is 0.0010 to 0.0020 in the first third, 0.0030 to 0.0040 in the middle, 0.0050 "
        "to 0.010 in the last."
    )


def test_few_words_and_words_that_do_not_differ() -> None:
    one = "From layer to layer, “a” changes most in jumps, “c” most steadily."
    assert describe_corpus(groups("cba", [0.2, 0.25, 0.3])) == one
    assert describe_corpus(groups("cba", [0.0, 0.0, 0.3])) == one
    assert describe_corpus(groups("cba", [0.0, 0.0, 0.0])) == (
        "From layer to layer, all 3 words change equally steadily."
    )
    assert describe_groups(groups("cba", [0.2, 0.2, 0.2])) == (
        "All words change equally steadily.\n\nTheir variance is 0.20."
    )


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
    assert describe_blocks(GRID, norms, per_value=True, epoch=1) == (
        "After 1 epoch, the text has changed block 0 most, block 1 least; of the kinds of layers, "
        "the output norm weight most, the output bias least.\n\nRoot mean square change: 0.16 and "
        "0.079 by block, 0.16 and 0.079 by kind of layer."
    )
    assert describe_blocks(GRID, norms, per_value=False, epoch=10) == (
        "After 10 epochs, the text has changed block 0 most, block 1 least; of the kinds of "
        "layers, the output norm weight most, the output bias least.\n\nNorm of the delta: 0.45 "
        "and 0.22 by block, 0.45 and 0.22 by kind of layer."
    )


def test_blocks_that_change_about_equally() -> None:
    norms = np.array([0.1, 0.2, 0.1, 0.205])
    assert describe_blocks(GRID, norms, per_value=True, epoch=3) == (
        "After 3 epochs, the text has changed all blocks about equally; of the kinds of layers, "
        "the output norm weight most, the output bias least.\n\nRoot mean square change: 0.079 to "
        "0.081 by block, 0.10 and 0.050 by kind of layer."
    )
    assert describe_blocks(GRID, np.zeros(4), per_value=True, epoch=3) == (
        "After 3 epochs, the text has changed all blocks about equally; of the kinds of layers, "
        "all kinds about equally.\n\nRoot mean square change: 0.0 to 0.0 by block, 0.0 to 0.0 by "
        "kind of layer."
    )


def test_one_block_of_one_kind_and_a_run_that_diverged() -> None:
    one = MarkGrid(("output.dense.bias",), (5,), ("a",), (0,), (0,), (4,))
    assert describe_blocks(one, np.array([24.0]), per_value=True, epoch=2) == (
        "After 2 epochs, the text has changed block 5.\n\nRoot mean square change: 12."
    )
    assert describe_blocks(one, np.array([np.nan]), per_value=True, epoch=2) == ""


def test_how_soon_blocks_move() -> None:
    totals = np.array([[1.0, 1.0], [1.5, 1.5], [1.8, 1.8], [2.0, 2.0]])
    assert (
        describe_epochs(totals) == "After 2 of 4 epochs, the blocks have made 75% of their change."
    )
    assert describe_epochs(totals[:1]) == ""
    assert describe_epochs(np.zeros((4, 2))) == ""


def test_kinds_add_up_over_the_blocks() -> None:
    norms = np.array([0.3, 1.0, 0.4, 0.0])
    np.testing.assert_allclose(GRID.totals_of_kinds(norms, per_value=False), [0.5, 1.0])
    np.testing.assert_allclose(
        GRID.totals_of_kinds(norms, per_value=True), [0.5 / 8**0.5, 1 / 8**0.5]
    )
