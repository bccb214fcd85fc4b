"""Two texts of the user, scored by every rung."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.headlines.ladder import PAPERS_PAIR, describe_two_texts
from neuralviz.jobs.ladder import ScoreTwoTexts, make_similarity_models
from neuralviz.plots.ladder import pair_scores_figure
from neuralviz.training.similarity.settings import RUNG_NAMES
from neuralviz.ui.figures import show_figure
from neuralviz.ui.frozen_features.rung import quote
from neuralviz.ui.frozen_features.show import HEIGHT, ladder_provenance
from neuralviz.ui.headline import show_headline
from neuralviz.ui.limits import character_limit
from neuralviz.ui.page import dim_old_results
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import show_on_stage, slide

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_results import Ladder
    from neuralviz.jobs import Run
    from neuralviz.jobs.ladder import TwoScores
    from neuralviz.training.similarity import SimilarityModel

KEY = "frozen-two"
RUNS = SessionRuns(KEY, at_once=1, kept=8)
_RUNGS = f"{KEY}-rungs"  # session key of the ladder.s models
PATIENCE = 0.5  # seconds: two texts are scored by then, once the model is loaded


def show_two_texts(run: Run[Ladder]) -> None:
    """Ask for two texts, at first the paper's, and show how every rung scores them."""
    st.subheader("Two texts of your own", anchor=False)
    with show_on_stage(KEY), st.container(horizontal=True):
        texts = []
        for label, text in zip(("Text 1", "Text 2"), PAPERS_PAIR, strict=True):
            key = f"{KEY}-{label[-1]}"
            st.session_state.setdefault(key, text)
            texts.append(
                st.text_input(
                    label,
                    max_chars=character_limit(len(PAPERS_PAIR)),
                    key=key,
                    persist_state="session",
                )
            )
    task = ScoreTwoTexts(run.task.model, _similarity_models(run), *texts)
    scored = RUNS.start(task)
    last = next(
        (
            earlier
            for earlier in reversed(RUNS.list_runs())
            if earlier.result is not None and earlier.task.rungs is task.rungs
        ),
        None,
    )
    show_run_panel(
        RUNS,
        scored,
        partial(_show, task, last),
        sentences=RunSentences(start="Loading the model …", describe_done=lambda _: ""),
        patience=PATIENCE,
    )


def _similarity_models(run: Run[Ladder]) -> tuple[SimilarityModel, ...]:
    """A ladder's similarity models, made once per ladder."""
    shown_ladder, rungs = st.session_state.get(_RUNGS, (None, ()))
    if shown_ladder is not run.result:
        rungs = make_similarity_models(run.task.model, run.result)
        st.session_state[_RUNGS] = run.result, rungs
    return rungs


def _show(
    task: ScoreTwoTexts, last: Run[TwoScores] | None, result: TwoScores | None, _: bool
) -> None:
    """Draw the scores; until they are computed, those of the previous texts, faded."""
    shown_task = task if result is not None else last.task if last is not None else None
    scores = result or (last.result if last is not None else None)
    if shown_task is None or scores is None:
        return
    scale = task.rungs[0].scale
    with dim_old_results(KEY, result is None), slide(KEY):
        pair = shown_task.first, shown_task.second
        show_headline(describe_two_texts(pair, scores.pair, scores.equal, quote), key=KEY)
        show_figure(
            pair_scores_figure(scores.pair, scores.equal, scale.low, scale.high),
            key=f"{KEY}-scores",
            numbers=lambda: pd.DataFrame(
                {
                    "rung": [RUNG_NAMES[rung] for rung in scores.pair],
                    "score": list(scores.pair.values()),
                    "identical texts": list(scores.equal.values()),
                }
            ),
            name="two texts",
            height=HEIGHT,
            alt="What every rung scores the two texts",
            provenance=ladder_provenance(task.model.id),
        )
