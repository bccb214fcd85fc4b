"""The table that an atlas draws, and the copy of its component that fetches nothing."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from neuralviz.errors import NeuralvizError
from neuralviz.maps.clusters import Clusters
from neuralviz.plots.point_colours import by_category, by_number
from neuralviz.store.corpora import Column
from neuralviz.ui.corpus import atlas

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = [
    "duckdb-eh-Ab1.wasm",
    "duckdb-mvp-Ab2.wasm",
    "duckdb-browser-eh.worker-Ab3.js",
    "duckdb-browser-mvp.worker-Ab4.js",
]
FETCHES = "let e=`https://cdn.jsdelivr.net/npm/${Ab}@${cD}/dist/`;return e"


class Given(SimpleNamespace):
    """Something with these attributes, equal to itself alone."""

    __hash__ = object.__hash__


def corpus(labels: dict[str, list[Any]]) -> Any:
    kinds = {name: "text" if isinstance(v[0], str) else "number" for name, v in labels.items()}
    return Given(
        texts=["One.", "Two.", "Three."],
        ids=["a", "b", "c"],
        corpus=SimpleNamespace(columns=tuple(Column(n, k) for n, k in kinds.items())),
        labels=lambda name: np.array(labels[name], dtype=object),
    )


def map_of(dimensions: int = 2) -> Any:
    return Given(
        coordinates=np.arange(3 * dimensions, dtype=np.float32).reshape(3, dimensions),
        clusters=Clusters(np.array([1, -1, 0]), 2, 2),
        kept=SimpleNamespace(id="kept"),
        label="mean",
    )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An embedding-atlas laid out as the real one, in place of any that is installed."""
    folder = tmp_path / "embedding_atlas"
    scripts, engine = (
        folder / "widget_static" / "streamlit" / "assets",
        folder / "static" / "assets",
    )
    scripts.mkdir(parents=True)
    engine.mkdir(parents=True)
    (scripts.parent / "index.html").write_text("<script src=./assets/index-Xy.js></script>")
    (scripts / "index-Xy.js").write_text(FETCHES)
    for name in ENGINE:
        (engine / name).write_text(name)
    (folder / "__init__.py").touch()
    monkeypatch.setattr(
        atlas, "find_spec", lambda name: SimpleNamespace(origin=str(folder / "__init__.py"))
    )
    monkeypatch.setenv("NEURALVIZ_HOME", str(tmp_path / "home"))
    return folder


def test_without_the_extra_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "embedding_atlas", raising=False)
    assert not atlas.is_available()
    with pytest.raises(NeuralvizError, match="not installed"):
        atlas.component_folder()


def test_all_texts_are_in_the_table_and_no_column_hides_another() -> None:
    labels = {"Text": ["p", "q", "r"], "x": [1.5, 2.5, 3.5], 'a"b': ["s", "t", "u"]}
    frame, place = atlas.atlas_frame(
        corpus(labels), map_of(), by_category("text", ["news", None, "sport"])
    )
    assert frame["text"].tolist() == ["One.", "Two.", "Three."]
    assert frame[["x", "y"]].to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert frame[atlas.ROW].tolist() == [0, 1, 2]
    assert frame["Text (label)"].tolist() == ["p", "q", "r"]
    assert frame["x (label)"].tolist() == [1.5, 2.5, 3.5]
    assert frame["a b"].tolist() == ["s", "t", "u"]
    assert frame["cluster"].fillna("").tolist() == ["2", "", "1"]
    assert frame[place].fillna("").tolist() == ["news", "", "sport"]
    assert len({name.casefold() for name in frame}) == len(frame.columns)


def test_numbers_are_colours_as_numbers() -> None:
    frame, place = atlas.atlas_frame(corpus({}), map_of(), by_number("loss", [0.5, np.nan, 2]))
    assert np.array_equal(frame[place], [0.5, np.nan, 2], equal_nan=True)


def test_a_map_in_three_dimensions_is_refused() -> None:
    with pytest.raises(NeuralvizError, match="two dimensions"):
        atlas.atlas_frame(corpus({}), map_of(3), None)


def test_the_component_takes_its_engine_from_beside_itself(package: Path) -> None:
    folder = atlas.component_folder()
    script = (folder / "assets" / "index-Xy.js").read_text()
    assert "https:" not in script
    assert 'new URL("../engine/",import.meta.url).href' in script
    engine = {path.name: path.read_text() for path in (folder / "engine").iterdir()}
    assert engine == dict(zip(atlas._ENGINE, ENGINE, strict=True))
    assert (
        package / "widget_static" / "streamlit" / "assets" / "index-Xy.js"
    ).read_text() == FETCHES
    assert atlas.component_folder() == folder


def test_a_component_laid_out_otherwise_is_refused_and_leaves_nothing(
    package: Path, tmp_path: Path
) -> None:
    (package / "widget_static" / "streamlit" / "assets" / "index-Xy.js").write_text("fetch(other)")
    with pytest.raises(NeuralvizError, match="not known"):
        atlas.component_folder()
    assert not list((tmp_path / "home" / "atlas").iterdir())


def test_the_component_is_given_the_table_and_the_colour(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ModuleType("embedding_atlas.options")
    options.make_embedding_atlas_props = lambda **given: given
    monkeypatch.setitem(sys.modules, "embedding_atlas", ModuleType("embedding_atlas"))
    monkeypatch.setitem(sys.modules, "embedding_atlas.options", options)
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(atlas, "_component", lambda: lambda **arguments: given.append(arguments))
    atlas.show_atlas(corpus({}), map_of(), by_number("loss", [1, 2, 3]), "here")
    (arguments,) = given
    frame, props = arguments["data_frame"], arguments["props"]
    chart = props["initial_state"]["charts"]["1"]["data"]
    assert set(chart.values()) <= set(frame)
    assert frame[chart["category"]].tolist() == [1, 2, 3]
    assert frame[props["row_id"]].tolist() == [0, 1, 2]
    assert arguments["key"].startswith("here")
