"""The neighbours of a sample of a large corpus's texts, on which maps are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.mapping import FindNeighbours
from neuralviz.maps.searching import SAMPLED
from neuralviz.ui.corpus.colours import K
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs.mapping import SampledNeighbours
    from neuralviz.ui.corpus.kept import OpenMap

PATIENCE = 0.05  # seconds


def known_samples(maps: Sequence[OpenMap]) -> list[SampledNeighbours] | None:
    """The neighbours of the same texts by each map; None until all are found.

    The open maps keep them for all sessions.
    """
    candidates = map(_known_sample, maps)
    samples = [sample for sample in candidates if sample is not None]
    return samples if len(samples) == len(maps) else None


def _known_sample(open_map: OpenMap) -> SampledNeighbours | None:
    run = _runs(open_map).find(_task(open_map)) if open_map.sampled(None) is None else None
    return open_map.sampled(run.result.neighbours if run is not None and run.result else None)


def find_samples(maps: Sequence[OpenMap]) -> None:
    """Start finding the neighbours of a sample of texts, and show the progress.

    When they are found, the page runs again: figures above this place use them.
    """
    missing = [open_map for open_map in maps if _known_sample(open_map) is None]
    for open_map in missing:
        runs = _runs(open_map)
        show_run_panel(
            runs,
            runs.start(_task(open_map)),
            lambda _result, _live: None,
            sentences=RunSentences(
                f"Finding the neighbours of {many(SAMPLED, 'text')} by {open_map.label} …",
                describe_done=lambda _: "",
            ),
            patience=PATIENCE,
        )
    if any(_known_sample(open_map) is not None for open_map in missing):
        st.rerun()


def _runs(open_map: OpenMap) -> SessionRuns:
    return SessionRuns(f"corpus-sampling-{open_map.kept.id}")


def _task(open_map: OpenMap) -> FindNeighbours:
    return FindNeighbours(open_map.corpus.id, open_map.kept.id, K)
