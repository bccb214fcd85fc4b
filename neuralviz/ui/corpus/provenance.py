"""Describes for downloads how the maps of a corpus were made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.maps.settings import REDUCERS
from neuralviz.plots.standalone import About
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

_IN_WORDS = {"n_neighbors": "neighbours", "min_dist": "minimum distance", "metric": "distance"}


def about_maps(corpus: OpenCorpus, maps: Sequence[OpenMap], n_drawn: int) -> About:
    """Title and settings of one or more maps of a corpus, ``n_drawn`` of whose points are drawn."""
    n = corpus.corpus.n_texts
    settings = {"corpus": f"{corpus.corpus.name}, {many(n, 'text')}"}
    if n_drawn < n:
        settings["drawn"] = f"a random sample of {n_drawn:,}"
    for number, open_map in enumerate(maps, 1):
        name = "map" if len(maps) == 1 else f"map {number}"
        models = list(dict.fromkeys(part.model_id for part in open_map.spec.singles))
        models_note = f" ({', '.join(models)})" if models else ""
        settings[name] = f"{open_map.label}{models_note}, {describe_projection(open_map)}"
    return About(
        f"{corpus.corpus.name}: {' and '.join(open_map.label for open_map in maps)}", settings
    )


def describe_projection(open_map: OpenMap) -> str:
    """The projection and its settings, such as ``UMAP, dimensions 2, neighbours 15``."""
    relevant = dict(open_map.kept.settings.relevant())
    reducer = REDUCERS[str(relevant.pop("reducer"))]
    if "n_neighbors" in relevant:  # the map used fewer where the corpus is small
        relevant["n_neighbors"] = open_map.kept.settings.possible_neighbors(open_map.corpus.n_texts)
    return ", ".join([reducer, *(f"{_IN_WORDS.get(k, k)} {v}" for k, v in relevant.items())])
