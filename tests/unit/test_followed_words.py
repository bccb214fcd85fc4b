"""A word at all its places, and kinds of layers over all blocks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from neuralviz.layers.geometry import TokenStates, followed_words
from neuralviz.layers.marks import MarkGrid

# --- a text ------------------------------------------------------------------------------------


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


# --- a corpus ----------------------------------------------------------------------------------


# --- change by block ---------------------------------------------------------------------------

GRID = MarkGrid(
    kinds=("output.dense.bias", "output.LayerNorm.weight"),
    blocks=(0, 1),
    names=("a", "b", "c", "d"),
    rows=(0, 1, 0, 1),
    columns=(0, 0, 1, 1),
    sizes=(4, 4, 4, 4),
)


def test_kinds_add_up_over_the_blocks() -> None:
    norms = np.array([0.3, 1.0, 0.4, 0.0])
    np.testing.assert_allclose(GRID.totals_of_kinds(norms, per_value=False), [0.5, 1.0])
    np.testing.assert_allclose(
        GRID.totals_of_kinds(norms, per_value=True), [0.5 / 8**0.5, 1 / 8**0.5]
    )
