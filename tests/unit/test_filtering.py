"""Texts are filtered, and told apart by their labels."""

from __future__ import annotations

import numpy as np

from neuralviz.maps.filtering import TextFilter, category_names
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore


def test_filters_combine_and_say_how_many_texts_are_shown() -> None:
    topics = np.array([0, 1, -1, 1, 2]), ("cooking", "music", "money")
    words = np.array([3, 9, 5, np.nan, 4.0])

    def shown(filtered: TextFilter) -> tuple[list[int], str]:
        within = filtered.within({"topic": topics}.__getitem__, {"words": words}.__getitem__, 5)
        return np.flatnonzero(within).tolist(), filtered.describe(int(within.sum()), 5)

    assert not TextFilter()
    assert shown(TextFilter())[0] == [0, 1, 2, 3, 4]
    assert shown(TextFilter({"topic": ("music", "")})) == (
        [1, 2, 3],
        "Showing 3 of 5 texts: topic is music or no value.",
    )
    assert shown(
        TextFilter({"topic": ("music", "cooking", "a", "b", "c")}, {"words": (-2, 5)})
    ) == (
        [0],
        "Showing 1 of 5 texts: topic is music or cooking or a or 2 more, and words is −2 to 5.",
    )
    assert shown(TextFilter(ranges={"words": (4, 9)}))[0] == [1, 2, 4]  # no number: out


def test_a_label_of_few_texts_is_one_and_a_name_is_not() -> None:
    store = CorpusStore()
    texts = tuple(f"Text {i} is about something." for i in range(10))
    labels = {
        "kind": ("sport", "sport", "sport", "food", "food", "food", "money", "money", "money", "x"),
        "author": tuple(f"writer {i // 2 if i < 4 else i}" for i in range(10)),
        "all": ("same",) * 10,
    }
    assert category_names(store, store.add("mine", ReadTexts(texts, labels=labels))) == ("kind",)
