"""Values that sessions share: made once, and never changed."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from neuralviz.lazy import Lazy, frozen
from neuralviz.maps import projection as map_settings
from neuralviz.maps.opened import HELD, MOST_FILTERS, OpenCorpus
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore


def test_a_value_is_made_once_whoever_asks() -> None:
    lazy, made = Lazy(), []

    def make() -> object:
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: lazy.get("it", make), range(8)))
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


def test_few_columns_of_a_large_corpus_are_held(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(map_settings, "MOST_WHOLE", 10)
    n, many = 30, 20
    numbers = {f"n{at}": tuple(f"{at + row / 2}" for row in range(n)) for at in range(many)}
    topics = {f"t{at}": tuple("ab"[(row + at) % 2] for row in range(n)) for at in range(many)}
    store = CorpusStore(tmp_path)
    read = ReadTexts(tuple(f"Text {row}." for row in range(n)), labels={**numbers, **topics})
    corpus = OpenCorpus(store, store.add("c", read))
    n_read: Counter[str] = Counter()
    for method in ("labels", "label_codes"):
        whole = getattr(CorpusStore, method)

        def note(self, corpus, name, rows=None, whole=whole):
            n_read[name] += rows is None
            return whole(self, corpus, name) if rows is None else whole(self, corpus, name, rows)

        monkeypatch.setattr(CorpusStore, method, note)
    labels, numbers_offered = corpus.filters
    _ = [*map(corpus.sizes, labels), *map(corpus.span, numbers_offered)]
    offered = {name for names in corpus.filters for name in names}
    assert len(offered) == 2 * MOST_FILTERS
    assert +n_read == dict.fromkeys(offered, 1)
    assert corpus.span("n0") == (0.0, 14.5)
    assert corpus.sizes("t0") == {"a": 15, "b": 15}
    for name in (*numbers, *topics):
        _ = corpus.numbers(name) if name in numbers else corpus.codes(name)
    held = [value for lazy in (corpus.parts, corpus.columns) for value in lazy._values.values()]
    parts = [one for value in held for one in (value if isinstance(value, tuple) else (value,))]
    assert sum(isinstance(one, np.ndarray) and len(one) == n for one in parts) == HELD
    assert corpus.span("n3")[1] == 17.5 and n_read["n3"] == 2  # not read for its ends again


@dataclass(frozen=True)
class Pair:
    first: object
    second: object


@dataclass
class Loose:
    array: np.ndarray


def test_all_that_is_in_a_value_is_frozen() -> None:
    arrays = [np.zeros(2) for _ in range(3)]
    frozen(Pair((arrays[0], "a"), MappingProxyType({"b": Pair(arrays[1], (arrays[2],))})))
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, Loose(np.zeros(2))])
def test_what_can_be_changed_is_not_shared(value: object) -> None:
    with pytest.raises(TypeError, match="can be changed"):
        Lazy().get("it", lambda: (1, Pair(value, None)))


@pytest.mark.parametrize(
    "package",
    [
        "neuralviz",
        "neuralviz.embedders",
        "neuralviz.evaluation",
        "neuralviz.micro_tuning",
        "neuralviz.models",
        "neuralviz.training",
        "neuralviz.training.similarity",
    ],
)
def test_every_name_of_a_package_is_found_and_no_other(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_what_the_documentation_evaluates_works_as_it_stands(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path))
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    said, spearman = capsys.readouterr().out.strip().rsplit("\n", 1)
    assert "mean (all-MiniLM-L6-v2)" in said
    assert -1 <= float(spearman) <= 1
