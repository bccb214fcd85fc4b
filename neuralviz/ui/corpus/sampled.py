"""What is measured of a large corpus: the neighbours of some of its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.jobs.mapping import SampleNeighbours
from neuralviz.maps.asking import SAMPLED
from neuralviz.ui.corpus.colours import K
from neuralviz.ui.run_panel import Words, run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.mapping import SampledNear
    from neuralviz.ui.corpus.kept import OpenMap

PATIENCE = 0.05  # seconds


def samples_of(maps: Sequence[OpenMap]) -> list[SampledNear] | None:
    """The neighbours of the same texts by each map; None until all are found."""
    found = [one.sampled(None) for one in maps]
    return None if any(one is None for one in found) else [one for one in found if one is not None]


def find_samples(maps: Sequence[OpenMap]) -> None:
    """Start looking for the neighbours of some texts, and show how far that is.

    What was found is held with the map, for all sessions.
    """
    for shown in maps:
        if shown.sampled(None) is not None:
            continue
        runs = SessionRuns(f"corpus-sampling-{shown.kept.id}")
        run = runs.start(SampleNeighbours(shown.corpus.id, shown.kept.id, K, SAMPLED))
        run_panel(
            runs,
            run,
            lambda _result, _live: None,
            words=Words(
                f"Finding the neighbours of {many(SAMPLED, 'text')} by {shown.label} …",
                done=lambda _: "",
            ),
            patience=PATIENCE,
        )
        if run.result is not None:
            shown.sampled(run.result)
