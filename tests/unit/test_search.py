"""Texts are found by the words in them."""

from __future__ import annotations

import pytest

from neuralviz.maps.search import find_words

TEXTS = [text.casefold() for text in (
    "The old bridge", "A bridge of old stone", "Straße im Regen", "42 % = half?", "",
)]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("bridge", [0, 1]),
        ("OLD Bridge", [0, 1]),
        ('"old bridge"', [0]),
        ("“old stone” a", [1]),
        ("strasse", [2]),
        ("idg", [0, 1]),
        ("% =", [3]),
        ("(.*", []),
        ('"', []),
        ("   ", []),
        ("bridge nowhere", []),
    ],
)
def test_words_are_found(query: str, rows: list[int]):
    assert find_words(TEXTS, query).tolist() == rows
