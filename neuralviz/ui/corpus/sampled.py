"""What is measured of a large corpus: the neighbours of some of its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.near import SampleNeighbours
from neuralviz.maps.asking import SAMPLED
from neuralviz.ui.corpus.colours import K
from neuralviz.ui.run_panel import Words, run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.near import SampledNeighbours
    from neuralviz.ui.corpus.kept import OpenMap

PATIENCE = 0.05  # seconds


def samples_of(maps: Sequence[OpenMap]) -> list[SampledNeighbours] | None:
    """The neighbours of the same texts by each map; None until all are found.

    What was found is held with the map, for all sessions.
    """
    found = [_sample_of(one) for one in maps]
    return None if any(one is None for one in found) else [one for one in found if one is not None]


def _sample_of(shown: OpenMap) -> SampledNeighbours | None:
    run = _runs(shown).of(_task(shown)) if shown.sampled(None) is None else None
    return shown.sampled(run.result.neighbours if run is not None and run.result else None)


def find_samples(maps: Sequence[OpenMap]) -> None:
    """Start looking for the neighbours of some texts, and show how far that is.

    When they are found, the page runs again: what is above is made of them.
    """
    missing = [shown for shown in maps if _sample_of(shown) is None]
    for shown in missing:
        runs = _runs(shown)
        run_panel(
            runs,
            runs.start(_task(shown)),
            lambda _result, _live: None,
            words=Words(
                f"Finding the neighbours of {many(SAMPLED, 'text')} by {shown.label} …",
                done=lambda _: "",
            ),
            patience=PATIENCE,
        )
    if any(_sample_of(shown) is not None for shown in missing):
        st.rerun()


def _runs(shown: OpenMap) -> SessionRuns:
    return SessionRuns(f"corpus-sampling-{shown.kept.id}")


def _task(shown: OpenMap) -> SampleNeighbours:
    return SampleNeighbours(shown.corpus.id, shown.kept.id, K, SAMPLED)
