"""The corpus map of a large corpus, without a browser: "large" begins at a few hundred texts."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from neuralviz.lazy import Lazy
from neuralviz.maps import mapping, projection
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.models import shared
from neuralviz.plots import corpus_map
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.ui.corpus import main, show
from neuralviz.ui.corpus.opened import _open_corpus, _open_map, open_ahead
from tests.support.large_corpus import keep_large, points_of, topics_of
from tests.support.pages import finish_run, page_at, read_page

N, DRAWN, DRAWN_3D = 2500, 200, 300


class Kept(NamedTuple):
    store: CorpusStore
    corpus: Corpus
    map: KeptMap


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A corpus that is large already, of which few points are drawn."""
    for module in (projection, main):
        monkeypatch.setattr(module, "MOST_WHOLE", 1000)
    monkeypatch.setattr(show, "MOST_DRAWN", DRAWN)
    monkeypatch.setattr(corpus_map, "MOST_DRAWN", DRAWN_3D)
    # a loaded one would see that it made no vector here
    monkeypatch.setattr(shared, "_models", Lazy(freeze=False))
    _open_corpus.clear()
    _open_map.clear()
    store = CorpusStore()
    return Kept(store, *keep_large(store, N))


@pytest.fixture
def never_read_whole(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """All texts, ids and values of a column are never asked for at once."""
    for name in ("texts", "ids"):
        read = getattr(CorpusStore, name)

        def some(self: CorpusStore, corpus: Corpus, rows: Any = None, read: Any = read) -> list:
            assert rows is not None or corpus.n_texts < N
            return read(self, corpus, rows)

        monkeypatch.setattr(CorpusStore, name, some)


def open_page(kept: Kept, **query: str) -> AppTest:
    page = page_at("corpus_map", **{"corpus": kept.corpus.id, "map-b": "none", **query}).run()
    kind = f"corpus-sampling-{kept.map.id}"
    return finish_run(page, kind, 120) if f"{kind}-runs" in page.session_state else page.run()


def read_map(page: AppTest) -> tuple[dict, dict]:
    """Of the map: its spec and its figure."""
    (figure,) = (
        one.proto.bytes
        for one in page.get("bidi_component")
        if one.proto.component_name.endswith("live_figure")
        and one.proto.bytes.split(b"\n", 1)[0].count(b"Map by")
    )
    spec, content = map(json.loads, figure.split(b"\n", 1))
    return spec, content


def column(array: dict) -> np.ndarray:
    """An array of a figure's JSON."""
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"])


def rows_drawn(page: AppTest) -> np.ndarray:
    _, figure = read_map(page)
    rows = [column(trace["customdata"]) for trace in figure["data"] if "customdata" in trace]
    return np.concatenate(rows)


def test_what_was_read_ahead_is_not_read_again(kept: Kept, monkeypatch: pytest.MonkeyPatch):
    open_ahead()
    for store, name in ((KeptMaps, "points"), (CorpusStore, "label_codes")):
        monkeypatch.setattr(store, name, lambda *_: pytest.fail("read again"))
    page = open_page(kept)
    assert not page.exception
    assert not page.error
    assert len(rows_drawn(page)) == DRAWN


def test_a_sample_is_drawn_and_what_is_selected_is_added(kept: Kept, never_read_whole) -> None:
    page = open_page(kept)
    assert not page.exception
    spec, figure = read_map(page)
    rows = rows_drawn(page)
    assert len(np.unique(rows)) == DRAWN
    across = [column(trace["x"]) for trace in figure["data"] if "customdata" in trace]
    np.testing.assert_array_equal(np.concatenate(across), points_of(N)[rows, 0])
    assert spec["window"] is None
    ends = figure["layout"]["xaxis"]["range"], figure["layout"]["yaxis"]["range"]
    in_view = np.all([(points_of(N)[:, i] >= a) & (points_of(N)[:, i] <= b)
                      for i, (a, b) in enumerate(ends)], axis=0)  # fmt: skip
    assert in_view[rows].all()
    assert f"Points: 200 of the {in_view.sum():,} texts in this part, at random." in read_page(page)

    page.text_input(key="corpus-search").set_value('"text about" (7').run()
    assert "containing" in read_page(page)
    chosen = set(page.session_state["corpus-selected"].rows().tolist())
    assert set(rows_drawn(page).tolist()) == chosen | set(rows.tolist())
    _, figure = read_map(page)
    bright = {
        int(column(trace["customdata"])[place])
        for trace in figure["data"]
        if "customdata" in trace
        for place in trace["selectedpoints"]
    }
    assert bright == chosen


def test_every_control_works_without_reading_all_texts(kept: Kept, never_read_whole) -> None:
    page = open_page(kept, text="8", **{"corpus-list": "Text"})
    assert "Made-up text about topic <b>& (7)" in [one.value for one in page.text]
    assert "ID 8" in read_page(page)
    assert re.search(
        r"predict the topic correctly for \d+% of \d+ texts drawn at random", read_page(page)
    )
    assert page.selectbox(key="colour-a").options == ["topic", "Clusters", "score (number)"]
    for option in ("clusters", "number:score"):
        page.selectbox(key="colour-a").set_value(option).run()
        assert not page.exception
    for which in ("Selection", "Clusters"):
        page.segmented_control(key="corpus-list").set_value(which).run()
        assert not page.exception
    assert "To download it, use `neuralviz corpus export`." in read_page(page)


def test_a_filter_is_of_all_texts(kept: Kept, never_read_whole) -> None:
    page = open_page(kept)
    assert not page.multiselect  # what there is to choose from is found when somebody wants to
    page.session_state["corpus-filter"] = True  # the popover is open
    page.run()
    page.multiselect(key=f"only-0-{kept.corpus.id}").set_value(["topic 3", ""]).run()
    assert not page.exception
    missing = np.arange(N) % 50 == 7
    passed = missing | (topics_of(N) == 3)
    shown = f"Showing {passed.sum()} of 2,500 texts: topic is topic 3 or no value."
    assert shown in read_page(page)
    assert passed[rows_drawn(page)].all()
    page.slider(key=f"only-1-{kept.corpus.id}").set_range(0.0, 1.0).run()
    score = kept.store.labels(kept.corpus, "score")
    passed &= (score >= 0) & (score <= 1)
    assert f"Showing {passed.sum()} of 2,500 texts" in read_page(page)
    assert sorted(rows_drawn(page)) == np.flatnonzero(passed).tolist()
    linked = open_page(kept, **{f"only-0-{kept.corpus.id}": "topic 3"})
    n_linked = ((topics_of(N) == 3) & ~missing).sum()
    assert f"Showing {n_linked} of 2,500 texts" in read_page(linked)


def test_no_pointer_has_all_vectors_looked_at(
    kept: Kept, never_read_whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = mapping.sampled_rows(kept.corpus)
    clicked = int(np.setdiff1d(np.arange(N), sample)[5])
    without_index = replace(kept.map, n_fitted=200)
    monkeypatch.setattr(KeptMaps, "list_maps", lambda _self, _corpus: (without_index,))
    page = open_page(kept, text=str(clicked + 1), **{"corpus-list": "Text"})
    assert not page.exception
    work = "No index finds them: finding neighbours compares all 2,500 different texts."
    assert work in read_page(page)
    kind = f"corpus-near-{kept.map.id}"
    finish_run(page.button(key=f"corpus-find-{kept.map.id}").click().run(), kind)
    assert not page.exception
    assert "finding neighbours" not in read_page(page)
    near = _open_map(kept.store.folder, kept.corpus.id, kept.map.id).near(clicked)
    expected = [f"Made-up text about topic <b>& ({row})" for row in near.indices[0, :8]]
    tables = [frame.value for frame in page.dataframe]
    assert expected in [table["text"].tolist() for table in tables if "cosine" in table]
