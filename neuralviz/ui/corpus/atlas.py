"""Maps of more points than plotly draws, by embedding-atlas where that extra is installed.

The extra's own Streamlit component fetches its database engine from a server on the web. The same
engine lies in the package for its other faces; a copy of the component that takes it from there is
made once, so that nothing is fetched and nothing but the browser sees the texts.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit.components.v1

from neuralviz.errors import NeuralvizError
from neuralviz.paths import home
from neuralviz.words import free_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd

    from neuralviz.plots.point_colours import PointColour
    from neuralviz.ui.corpus.kept import OpenCorpus, OpenMap

EXTRA = "embedding_atlas"
ROW = "__row_index__"  # the component's own name for the number of a row
MOST_NAME = 60  # characters of a column
_ENGINE = {
    "duckdb-eh.wasm": "duckdb-eh-*.wasm",
    "duckdb-mvp.wasm": "duckdb-mvp-*.wasm",
    "duckdb-browser-eh.worker.js": "duckdb-browser-eh.worker-*.js",
    "duckdb-browser-mvp.worker.js": "duckdb-browser-mvp.worker-*.js",
}  # what the component asks for, and how the package names it
_ELSEWHERE = re.compile(r"`https://cdn\.jsdelivr\.net/npm/\$\{\w+\}@\$\{\w+\}/dist/`")
_HERE = '(new URL("../engine/",import.meta.url).href)'


def is_available() -> bool:
    """Whether the extra is installed; it is not imported."""
    return find_spec(EXTRA) is not None


def show_atlas(corpus: OpenCorpus, shown: OpenMap, colour: PointColour | None, key: str) -> None:
    """All points of a map in two dimensions, with their texts and labels, as an atlas.

    The browser draws it by WebGPU; one that has none says so in the map's place. All texts go to
    the browser. What is selected in the atlas stays there.

    Args:
        corpus: on the map.
        shown: the map.
        colour: what its points are coloured by at first.
        key: begins the name of the atlas on the page.

    Raises:
        NeuralvizError: the extra is not installed, or of a version that cannot be used offline.
    """
    component = _component()
    try:
        from embedding_atlas.options import make_embedding_atlas_props
    except ImportError as error:
        raise NeuralvizError(
            f"embedding-atlas {_version()} cannot be used; install the newest one."
        ) from error

    frame, place = atlas_frame(corpus, shown, colour)
    chart = {"x": "x", "y": "y", "text": "text", "category": place}
    props = make_embedding_atlas_props(
        row_id=ROW,
        x="x",
        y="y",
        text="text",
        initial_state={
            "charts": {
                "1": {"type": "embedding", "title": shown.label, "data": chart},
                "2": {"type": "instances", "title": "Texts"},
            }
        },
    )
    # It reads its table once: another map or colour has to be another component of the page.
    component(data_frame=frame, props=props, key=f"{key}-{shown.kept.id}-{place}", default={})


@lru_cache(maxsize=2)  # one table is megabytes, and the page runs again with every click
def atlas_frame(
    corpus: OpenCorpus, shown: OpenMap, colour: PointColour | None
) -> tuple[pd.DataFrame, str | None]:
    """The table that is drawn, one row a text in the corpus's order, and the column of its colours.

    The columns ``x``, ``y``, ``text``, ``id`` and ``cluster`` are ours; those of the corpus keep
    their names as far as no two are alike, capitals apart. Cluster is the number as the page
    counts, from 1, and missing where there is none.
    """
    import pandas as pd

    if shown.coordinates.shape[1] != 2:
        raise NeuralvizError("An atlas has two dimensions; choose a map in 2-D.")
    clusters = shown.clusters.labels
    table: dict[str, Any] = {
        ROW: np.arange(len(corpus.texts), dtype=np.int32),
        "x": shown.coordinates[:, 0],
        "y": shown.coordinates[:, 1],
        "text": corpus.texts,
        "id": corpus.ids,
        "cluster": [str(label + 1) if label >= 0 else None for label in clusters.tolist()],
    }
    for column in corpus.corpus.columns:
        table[_name_for(column.name, table)] = corpus.labels(column.name)
    if colour is None:
        return pd.DataFrame(table), None
    place = _name_for(f"colour: {colour.name}", table)
    if colour.values is not None:
        table[place] = colour.values
    elif colour.codes is not None:
        names = np.array([*colour.categories, None], dtype=object)
        table[place] = names[colour.codes]  # -1, for none, is the last
    return pd.DataFrame(table), place


def _name_for(column: str, taken: Iterable[str]) -> str:
    """A name of a column that the component's database tells from the others."""
    printable = "".join(c if c.isprintable() and c not in '"\\' else " " for c in column)
    tidied = " ".join(printable.split())[:MOST_NAME].strip("_ ") or "column"
    return free_name(tidied, taken, "label", same=str.casefold)


@cache
def _component() -> Callable[..., Any]:
    return streamlit.components.v1.declare_component("atlas", path=str(component_folder()))


def component_folder() -> Path:
    """Folder of the component as it works offline, made when it is missing.

    Raises:
        NeuralvizError: the extra is missing or laid out in another way, or it cannot be written.
    """
    found = find_spec(EXTRA)
    if found is None or found.origin is None:
        raise NeuralvizError(
            "embedding-atlas is not installed; “pip install neuralviz[atlas]” brings it."
        )
    package = Path(found.origin).parent
    folder = home() / "atlas" / _version()
    if folder.is_dir():
        return folder
    part = folder.with_name(f"{secrets.token_hex(6)}.part")
    try:
        shutil.copytree(package / "widget_static" / "streamlit", part)
        _bring_home(part, package / "static" / "assets")
        part.rename(folder)
    except (OSError, StopIteration) as error:
        shutil.rmtree(part, ignore_errors=True)
        if folder.is_dir():  # another process was faster
            return folder
        raise NeuralvizError(
            f"embedding-atlas {_version()} cannot be made ready in {folder.parent} ({error}); "
            "the map is drawn without it."
        ) from error
    return folder


def _bring_home(part: Path, engine: Path) -> None:
    """Have a copy of the component take its engine from beside itself."""
    (part / "engine").mkdir()
    for wanted, pattern in _ENGINE.items():
        source = next(engine.glob(pattern), None)
        if source is None:
            raise FileNotFoundError(f"there is no {pattern} in it")
        try:
            os.link(source, part / "engine" / wanted)
        except OSError:
            shutil.copyfile(source, part / "engine" / wanted)
    scripts = {path: path.read_text("utf-8") for path in (part / "assets").glob("index-*.js")}
    changed = 0
    for path, script in scripts.items():
        local, n = _ELSEWHERE.subn(_HERE, script)
        path.write_text(local, "utf-8")
        changed += n
    if not changed:
        raise FileNotFoundError("it gets its engine in a way that is not known")


def _version() -> str:
    try:
        return version("embedding-atlas")
    except PackageNotFoundError:
        return "unknown"
