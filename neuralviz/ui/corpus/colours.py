"""The ways to colour the points of a map."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.maps.neighbourhoods import common_neighbours, label_agreement
from neuralviz.plots.corpus_map import drawn_rows
from neuralviz.plots.point_colours import (
    colour_by_category,
    colour_by_code,
    colour_by_number,
    scale_ends,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.plots.point_colours import PointColour
    from neuralviz.ui.corpus.kept import OpenMap
    from neuralviz.ui.corpus.opened import OpenCorpus

K = 10  # neighbours of a text that maps are compared and labels are guessed by
CLUSTERS, LENGTH, COMMON = "clusters", "length", "common"
LOSSES = {"first-loss": "Loss before micro-tuning", "last-loss": "Loss after micro-tuning"}


def colour_options(corpus: OpenCorpus, maps: Sequence[OpenMap]) -> dict[str, str]:
    """Ways to colour the points, by key, with their names; labels come first.

    A large corpus has none that needs all texts or the neighbours of all texts.
    """
    if corpus.is_large:
        options = {f"label:{name}": name for name in corpus.category_names}
        options[CLUSTERS] = "Clusters"
        return options | {f"number:{name}": f"{name} (number)" for name in corpus.numbers}
    k = min([K, *(open_map.neighbours.k for open_map in maps)])
    options = {f"label:{name}": name for name in corpus.categories}
    options[CLUSTERS] = "Clusters"
    options |= {f"number:{name}": f"{name} (number)" for name in corpus.numbers}
    options[LENGTH] = "Length (characters)"
    options |= {
        f"agreement:{name}": f"Share of {k} neighbours with the same {name}"
        for name in corpus.categories
    }
    if any(open_map.spec.learns and np.isfinite(open_map.losses).any() for open_map in maps):
        options |= LOSSES
    if len(maps) > 1:
        options[COMMON] = f"Neighbours shared by both maps (of {k})"
    return options


def find_colour(
    option: str, corpus: OpenCorpus, open_map: OpenMap, maps: Sequence[OpenMap]
) -> PointColour:
    """The colours of the points of one of ``maps``."""
    ids = " ".join(compared.kept.id for compared in maps)
    key = option if option != COMMON else f"{COMMON} {ids}"
    return open_map.colour(key, lambda: _make_colour(option, corpus, open_map, maps))


def _make_colour(
    option: str, corpus: OpenCorpus, open_map: OpenMap, maps: Sequence[OpenMap]
) -> PointColour:
    kind, _, name = option.partition(":")
    if corpus.is_large:
        return _make_large_colour(kind, name, corpus, open_map)
    if kind == "label":
        return colour_by_category(name, list(corpus.categories[name]))
    if kind == "number":
        return colour_by_number(name, corpus.labels(name))
    if kind == "agreement":
        shares = label_agreement(open_map.neighbours, list(corpus.categories[name]), K)
        return colour_by_number(f"neighbours with the same {name}", shares)
    if kind == LENGTH:
        return colour_by_number("length, characters", corpus.lengths)
    if kind in LOSSES:
        return colour_by_number("loss, nats", open_map.losses[:, list(LOSSES).index(kind)])
    if kind == COMMON:
        return colour_by_number("shared neighbours", common_share(maps))
    names = [name for name, _ in open_map.clusters_named]
    labels = [names[label] if label >= 0 else None for label in open_map.clusters.labels]
    return colour_by_category("cluster", labels, missing="no cluster")


def _make_large_colour(kind: str, name: str, corpus: OpenCorpus, open_map: OpenMap) -> PointColour:
    """The colours of a large map's points, from arrays alone, without the texts."""
    if kind == "label":
        return colour_by_code(name, *corpus.codes(name))
    if kind == "number":
        values = corpus.labels(name)
        sample = values[drawn_rows(len(values))]
        return replace(colour_by_number(name, values), ends=scale_ends(sample))
    names = [name for name, _ in open_map.clusters_named]
    return colour_by_code("cluster", open_map.clusters.labels, names, missing="no cluster")


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
