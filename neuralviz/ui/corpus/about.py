"""How maps of a corpus were made, for what is downloaded of them."""

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
    """Title and settings of one map or several of a corpus, of which some points are drawn."""
    n = corpus.corpus.n_texts
    settings = {"corpus": f"{corpus.corpus.name}, {many(n, 'text')}"}
    if n_drawn < n:
        settings["drawn"] = f"a random sample of {n_drawn:,}"
    for number, shown in enumerate(maps, 1):
        name = "map" if len(maps) == 1 else f"map {number}"
        models = list(dict.fromkeys(part.model_id for part in shown.spec.singles))
        of_models = f" ({', '.join(models)})" if models else ""
        settings[name] = f"{shown.label}{of_models}, {projection_in_words(shown)}"
    return About(f"{corpus.corpus.name}: {' and '.join(one.label for one in maps)}", settings)


def projection_in_words(shown: OpenMap) -> str:
    """``UMAP, dimensions 2, neighbours 15 …``."""
    relevant = dict(shown.kept.settings.relevant())
    reducer = REDUCERS[str(relevant.pop("reducer"))]
    if "n_neighbors" in relevant:  # as many as there were, where more are asked for
        relevant["n_neighbors"] = shown.kept.settings.possible_neighbors(shown.corpus.n_texts)
    return ", ".join([reducer, *(f"{_IN_WORDS.get(k, k)} {v}" for k, v in relevant.items())])
