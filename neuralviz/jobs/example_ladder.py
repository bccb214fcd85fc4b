"""The first view of the page on frozen features: the example's pairs and their recorded ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.evaluation.ladder_file import LADDER_FORMAT
from neuralviz.evaluation.ladder_settings import LadderSettings
from neuralviz.jobs.ladder import ClimbLadder, pair_rows
from neuralviz.models import MINILM
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_events import Ladder
    from neuralviz.reading.pairs import ScoredPairs

EXAMPLE = "scored_pairs.csv"
RECORDED = "recorded_ladder.npz"


def example_pairs() -> ScoredPairs:
    """The pairs that come with neuralviz."""
    return read_pairs(Source.from_path(sample_data() / EXAMPLE))


def example_ladder() -> ClimbLadder:
    """The task whose result is recorded: the example with the page's first settings."""
    return ClimbLadder(ModelRef.from_id(MINILM), pair_rows(example_pairs()), LadderSettings())


def recorded_ladder() -> Ladder | None:
    """The result of ``scripts/record_ladder.py``; None without its file, or if it is old."""
    path = sample_data() / RECORDED
    try:
        return LADDER_FORMAT.unpack(path.read_bytes())
    except (OSError, ValueError):
        return None
