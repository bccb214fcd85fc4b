"""What the points of a map can be coloured by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.maps.neighbourhoods import common_neighbours, label_agreement
from neuralviz.plots.corpus_map import drawn_rows
from neuralviz.plots.point_colours import colour_by_category, colour_by_code, colour_by_number
from neuralviz.plots.point_groups import scale_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.plots.point_colours import PointColour
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

K = 10  # neighbours that are looked at
CLUSTERS, LENGTH, COMMON = "clusters", "length", "common"
LOSSES = {"first-loss": "Loss before micro-tuning", "last-loss": "Loss after micro-tuning"}


def colours_of(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> dict[str, str]:
    """What can be chosen, in words; the first is a label, where there is one.

    Of a large corpus, nothing that takes all texts or all their neighbours.
    """
    if corpus.is_large:
        options = {f"label:{name}": name for name in corpus.category_names}
        options[CLUSTERS] = "Clusters"
        return options | {f"number:{name}": f"{name} (number)" for name in corpus.numbers}
    k = min([K, *(one.neighbours.k for one in maps)])
    options = {f"label:{name}": name for name in corpus.categories}
    options[CLUSTERS] = "Clusters"
    options |= {f"number:{name}": f"{name} (number)" for name in corpus.numbers}
    options[LENGTH] = "Length (characters)"
    options |= {
        f"agreement:{name}": f"Share of {k} neighbours with the same {name}"
        for name in corpus.categories
    }
    if any(one.spec.learns and np.isfinite(one.losses).any() for one in maps):
        options |= LOSSES
    if len(maps) > 1:
        options[COMMON] = f"Neighbours shared by both maps (of {k})"
    return options


def colour_of(
    option: str, corpus: OpenCorpus, shown: OpenMap, maps: Sequence[OpenMap]
) -> PointColour:
    """The colours of one of the maps that are shown."""
    key = option if option != COMMON else f"{COMMON} {' '.join(one.kept.id for one in maps)}"
    return shown.colour(key, lambda: _make(option, corpus, shown, maps))


def _make(option: str, corpus: OpenCorpus, shown: OpenMap, maps: Sequence[OpenMap]) -> PointColour:
    kind, _, name = option.partition(":")
    if corpus.is_large:
        return _make_large(kind, name, corpus, shown)
    if kind == "label":
        return colour_by_category(name, list(corpus.categories[name]))
    if kind == "number":
        return colour_by_number(name, corpus.labels(name))
    if kind == "agreement":
        shares = label_agreement(shown.neighbours, list(corpus.categories[name]), K)
        return colour_by_number(f"neighbours with the same {name}", shares)
    if kind == LENGTH:
        return colour_by_number("length, characters", corpus.lengths)
    if kind in LOSSES:
        return colour_by_number("loss, nats", shown.losses[:, list(LOSSES).index(kind)])
    if kind == COMMON:
        return colour_by_number("shared neighbours", common_share(maps))
    names = [name for name, _ in shown.clusters_named]
    labels = [names[label] if label >= 0 else None for label in shown.clusters.labels]
    return colour_by_category("cluster", labels, missing="no cluster")


def _make_large(kind: str, name: str, corpus: OpenCorpus, shown: OpenMap) -> PointColour:
    """As of `_make`, from numbers alone."""
    if kind == "label":
        return colour_by_code(name, *corpus.codes(name))
    if kind == "number":
        values = corpus.labels(name)
        some = values[drawn_rows(len(values))]
        return replace(colour_by_number(name, values), ends=scale_ends(some))
    names = [name for name, _ in shown.clusters_named]
    return colour_by_code("cluster", shown.clusters.labels, names, missing="no cluster")


def common_share(maps: Sequence[OpenMap]) -> np.ndarray:
    """[text] share of the nearest texts that two maps have in common, 0 … 1."""
    return common_neighbours(*compared_neighbours(maps), K)


def compared_neighbours(maps: Sequence[OpenMap]) -> tuple[Neighbours, Neighbours]:
    """The neighbours by which two maps are compared.

    By the vectors, or, for two maps of the same vectors, on the maps.
    """
    first, second = maps
    if first.kept.embedder == second.kept.embedder:
        return first.neighbours_on_map, second.neighbours_on_map
    return first.neighbours, second.neighbours
