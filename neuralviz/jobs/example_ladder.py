"""What the page on frozen features begins with: the example's pairs, and their recorded ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.evaluation.ladder_file import read_ladder
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
    """What is recorded: the example by what the page begins with."""
    return ClimbLadder(ModelRef.from_id(MINILM), pair_rows(example_pairs()), LadderSettings())


def recorded_ladder() -> Ladder | None:
    """What ``scripts/record_ladder.py`` saw; None without its file, or with an older one."""
    path = sample_data() / RECORDED
    try:
        return read_ladder(path.read_bytes())
    except (OSError, ValueError):
        return None
