"""Values that sessions share: made once, and never changed."""

from __future__ import annotations

import threading
import time
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore
from neuralviz.ui.corpus.kept import OpenCorpus
from neuralviz.ui.lazy import Lazy


def test_a_value_is_made_once_whoever_asks() -> None:
    lazy, made, found = Lazy(), [], []

    def make() -> object:
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    threads = [
        threading.Thread(target=lambda: found.append(lazy.get("it", make))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert found == made * 8


def test_a_slow_value_keeps_nobody_from_another() -> None:
    lazy, go_on, begun = Lazy(), threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(10)
        return "slow"

    thread = threading.Thread(target=lambda: lazy.get("slow", slow))
    thread.start()
    assert begun.wait(10)
    assert lazy.get("quick", lambda: "quick") == "quick"
    go_on.set()
    thread.join()


def test_what_cannot_be_made_is_tried_again() -> None:
    lazy = Lazy()
    with pytest.raises(ZeroDivisionError):
        lazy.get("it", lambda: 1 // 0)
    assert lazy.get("it", lambda: 2) == 2


def test_few_are_held_and_those_used_last() -> None:
    lazy = Lazy(kept=2)
    for name in ("a", "b", "a", "c"):
        lazy.get(name, lambda name=name: name)
    assert lazy.get("a", lambda: "anew") == "a"
    assert lazy.get("b", lambda: "anew") == "anew"


def test_an_open_corpus_cannot_be_changed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    labels = {"topic": tuple("ab" * 10), "year": tuple(map(str, range(20)))}
    kept = CorpusStore().add("c", ReadTexts(tuple(f"Text {i}." for i in range(20)), labels=labels))
    corpus = OpenCorpus(kept)
    with pytest.raises(FrozenInstanceError):
        corpus.corpus = None
    assert corpus.texts is corpus.texts
    for part in (corpus.texts, corpus.folded, corpus.ids, corpus.numbers):
        assert isinstance(part, tuple)
    with pytest.raises(TypeError):
        corpus.categories["new"] = corpus.lengths
    for array in (corpus.lengths, corpus.labels("year"), corpus.categories["topic"]):
        assert isinstance(array, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
