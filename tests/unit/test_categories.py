"""Which columns texts can be told apart by."""

from __future__ import annotations

from neuralviz.maps.categories import category_names
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore


def test_a_label_of_few_texts_is_one_and_a_name_is_not() -> None:
    store = CorpusStore()
    texts = tuple(f"Text {i} is about something." for i in range(10))
    labels = {
        "kind": ("sport", "sport", "sport", "food", "food", "food", "money", "money", "money", "x"),
        "author": tuple(f"writer {i // 2 if i < 4 else i}" for i in range(10)),
        "all": ("same",) * 10,
    }
    assert category_names(store, store.add("mine", ReadTexts(texts, labels=labels))) == ("kind",)
