"""The page on frozen features below its title."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.jobs import Run
from neuralviz.jobs.ladder import (
    EXAMPLE,
    LOOKED_AT,
    ClimbLadder,
    LookAtLayers,
    example_ladder,
    example_pairs,
    recorded_ladder,
)
from neuralviz.models.shared import ModelRef
from neuralviz.ui.frozen_features.choose import choose_pooling, choose_settings
from neuralviz.ui.frozen_features.rung import show_rung
from neuralviz.ui.frozen_features.save import offer_to_save
from neuralviz.ui.frozen_features.show import show_ladder, show_layers, show_numbers
from neuralviz.ui.frozen_features.two_texts import show_two_texts
from neuralviz.ui.layers import followed_model_id
from neuralviz.ui.links import result_view_id
from neuralviz.ui.model_choice import may_load
from neuralviz.ui.page import dim_old_results, plain, show_error, wide_columns
from neuralviz.ui.run_panel import RunSentences, describe_finish, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import hide_on_stage
from neuralviz.ui.tables import choose_pairs, put_upload_in_address
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_results import Ladder
    from neuralviz.reading.pairs import ScoredPairs

KEY = "frozen"
RUNS = SessionRuns(KEY, at_once=1, kept=3)
LOOKS = SessionRuns(f"{KEY}-layers", at_once=1, kept=3)
LIVE_SECONDS = 0.5
RECORDED = "Recorded run. Press “Train” to see it live."
# What stands above the figures takes little room, so that the first screen has them.
_LAYOUT = f"""<style>
[class*="st-key-{KEY}-state-"]:not(:has([data-testid="stAlert"])),
[class*="st-key-{KEY}-layers-state-"]:not(:has([data-testid="stAlert"])) {{ margin-top: -0.8rem; }}
</style>"""


def show() -> None:
    """Show pairs, model, *Train*, ladder and layers; at first, the recorded ladder."""
    st.html(_LAYOUT)
    task, layers_run, pressed = _choose()
    run, is_asked_for = _find_run(task, pressed=pressed)
    if run is not None:
        if not is_asked_for:
            press = "" if task is None else " Press **Train** to see yours."
            st.caption(f"The results below are of other pairs or settings.{press}")
        _show_run(run, is_asked_for=is_asked_for)
    if layers_run is not None:
        _show_layers(layers_run)
    if run is None or not run.is_over or not run.result.results:
        return
    with dim_old_results(f"{KEY}-closer", not is_asked_for):
        show_numbers(run)
        show_rung(run)
        show_two_texts(run)
        with hide_on_stage(f"{KEY}-save"):
            offer_to_save(run)


def _choose() -> tuple[ClimbLadder | None, Run[Ladder] | None, bool]:
    """Ask for a ladder; also the run over its layers, and whether *Train* was pressed.

    The ladder and the run are None, with a message, while something is missing.
    """
    left_column, right_column = wide_columns(2, f"{KEY}-given")
    with left_column:
        pairs = _choose_pairs()
    with right_column:
        of_model, of_pooling = st.columns(2)
    with of_model:
        model_id = followed_model_id(
            "frozen-model",
            "It stays as it is. You can choose a sentence encoder, a masked language model or a "
            "model that predicts the next token, by its Hub ID or its folder.",
        )
    if pairs is None:
        return None, None, False
    with right_column:
        if not may_load(model_id):
            return None, None, False
    model = ModelRef.from_id(model_id)
    layers_run = _load_recorded_run()
    if layers_run is None or (layers_run.task.model, layers_run.task.pairs) != (model, pairs):
        layers_run = LOOKS.start(LookAtLayers(model, pairs))
    with of_pooling:
        pooling = choose_pooling(list(layers_run.result.layers))
    with right_column:
        row = st.container(horizontal=True, vertical_alignment="center")
    pressed = row.button("Train", type="primary", icon=":material/fitness_center:")
    with row.popover("Settings", icon=":material/tune:", key=f"{KEY}-settings"):
        try:
            task = ClimbLadder(model, pairs, choose_settings(pooling))
        except SettingsError:
            task = None
    if task is None:
        st.info("Choose at least one rung, under Settings.")
    return task, layers_run, pressed


def _choose_pairs() -> ScoredPairs | None:
    """Ask for pairs: the example's or a table's; None, with a message, without any."""
    choice = choose_pairs(KEY, _load_example)
    if choice is None:
        return None
    name, pairs, is_example = choice
    if is_example:
        st.caption(f"{many(len(pairs), 'pair')} written for neuralviz, scored from 0 to 5.")
    else:
        sentences = [f"{many(len(pairs), 'pair')} from {name}.", *pairs.notes]
        st.caption(plain(" ".join(sentences)))
    return pairs


@st.cache_data(max_entries=1, show_spinner=False)
def _load_example() -> tuple[str, ScoredPairs]:
    return EXAMPLE, example_pairs()


def _show_layers(layers_run: Run[Ladder]) -> None:
    """Draw how well the cosine at each layer follows human scores."""
    key, model_id = f"{KEY}-layers", layers_run.task.model.id
    if layers_run is _load_recorded_run():
        show_layers(model_id, layers_run.result.layers, live=False, key=key)
        return
    show_run_panel(
        LOOKS,
        layers_run,
        lambda result, live: show_layers(model_id, result.layers, live=live, key=key),
        sentences=RunSentences(start="Loading the model …", describe_done=lambda _: ""),
        interval=LIVE_SECONDS,
    )
    if any(len(cosines.scores) == LOOKED_AT for cosines in layers_run.result.layers.values()):
        st.caption(f"The first {many(LOOKED_AT, 'train pair')}.")


def _find_run(task: ClimbLadder | None, *, pressed: bool) -> tuple[Run[Ladder] | None, bool]:
    """The run to show, and whether it has the chosen settings.

    Without such a run, one of other settings on the same pairs; without pairs, the last run.
    """
    recorded = _load_recorded_run()
    if task is None:
        return RUNS.last_to_show() or recorded, False
    view = result_view_id(KEY)
    run: Run[Ladder] | None = RUNS.recall(task, view)
    if pressed:
        put_upload_in_address(KEY)
        try:
            again = run is not None and run.status != "done"
            run = RUNS.start(task, again=again, view=result_view_id(KEY))
        except SettingsError as error:
            show_error(error)
    if run is not None:
        return run, True
    if recorded is not None and recorded.task == task:
        return recorded, True
    earlier_runs = [*reversed(RUNS.list_runs()), *([recorded] if recorded else [])]
    model_and_pairs = task.model, task.pairs
    similar_runs = (
        earlier
        for earlier in earlier_runs
        if (earlier.task.model, earlier.task.pairs) == model_and_pairs
    )
    return next((earlier for earlier in similar_runs if not earlier.has_nothing), None), False


def _show_run(run: Run[Ladder], *, is_asked_for: bool) -> None:
    settings = run.task.settings
    with dim_old_results(KEY, not is_asked_for):
        show_run_panel(
            RUNS,
            run,
            lambda result, live: show_ladder(
                f"{KEY}-{run.id}", settings.rungs, run.task.model.id, result, live=live
            ),
            sentences=RunSentences(
                start="Loading the model …",
                describe_stopped=partial(_describe_stopped, len(settings.list_trainings())),
                describe_done=partial(_describe_done, run, is_asked_for=is_asked_for),
            ),
            bar_stays=True,
            interval=LIVE_SECONDS,
        )


@st.cache_resource(max_entries=1, show_spinner=False)
def _load_recorded_run() -> Run[Ladder] | None:
    """The recorded ladder as a run that is over, the same one for all sessions.

    None where it cannot be read, or is of another example.
    """
    ladder = recorded_ladder()
    if ladder is None or ladder.test is None:
        return None
    try:
        task = example_ladder()
    except NeuralvizError:
        return None
    if not {*task.pairs.sentences1, *task.pairs.sentences2}.issuperset(ladder.test.sentences1):
        return None
    return Run.from_result(task, ladder)


def _describe_done(run: Run[Ladder], _: object, *, is_asked_for: bool) -> str:
    if run is not _load_recorded_run():
        return describe_finish(run)
    return RECORDED if is_asked_for else "Recorded run."


def _describe_stopped(n_rungs: int, ladder: Ladder) -> str:
    if not ladder.curves:
        return "Stopped before the first rung. The features so far are saved."
    return f"Stopped after {len(ladder.results)} of {many(n_rungs, 'training')}."
