"""The texts of a large corpus are placed on its map by a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import ray.data
from ray.exceptions import RayError

from neuralviz.cluster.embedding import describe_loss
from neuralviz.cluster.rows import iterate_rows
from neuralviz.errors import NeuralvizError, Stopped

if TYPE_CHECKING:
    from neuralviz.errors import ShouldStop
    from neuralviz.maps.placing import Block, PlaceBlock, PlacedBlock


class _Place:
    """Places blocks for Ray; an error is returned as a sentence."""

    def __init__(self, place: PlaceBlock) -> None:
        self._place = place

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"placed": self._place(row["item"]), "failed": ""}
        except NeuralvizError as error:
            return {"placed": None, "failed": str(error)}


def place_on_cluster(
    place: PlaceBlock, blocks: Sequence[Block], should_stop: ShouldStop
) -> Iterator[PlacedBlock]:
    """A `Spread` over the cluster that is connected: each block on one core of some machine.

    Raises:
        Stopped: ``should_stop`` said so.
        NeuralvizError: the cluster is gone, or as of ``place``.
    """
    if not blocks:
        return
    placed = ray.data.from_items(list(blocks), override_num_blocks=len(blocks)).map(
        _Place(place), num_cpus=1
    )
    try:
        with closing(iterate_rows(placed)) as rows:
            for row in rows:
                if row["failed"]:
                    raise NeuralvizError(row["failed"])
                yield row["placed"]
                if should_stop():
                    raise Stopped
    except RayError as error:
        raise NeuralvizError(describe_loss(error, "Make the map again.")) from error
