"""The page on frozen features below its title."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError, SettingsError
from neuralviz.jobs import Run
from neuralviz.jobs.example_ladder import example_ladder, recorded_ladder
from neuralviz.jobs.ladder import ClimbLadder, LookAtLayers
from neuralviz.models.shared import ModelRef
from neuralviz.training.similarity.settings import RUNGS
from neuralviz.ui.frozen_features.choose import choose_pooling, choose_settings
from neuralviz.ui.frozen_features.closer import show_closer
from neuralviz.ui.frozen_features.pairs import KEY, choose_pairs, put_pairs_in_address
from neuralviz.ui.frozen_features.save import offer_to_save
from neuralviz.ui.frozen_features.show import show_ladder, show_layers, show_numbers
from neuralviz.ui.frozen_features.two import show_two
from neuralviz.ui.layers import followed_model_id
from neuralviz.ui.links import kept_under
from neuralviz.ui.model_choice import may_load
from neuralviz.ui.page import dimmed, show_error, wide_columns
from neuralviz.ui.run_panel import SessionRuns, Words, done_in, run_panel
from neuralviz.ui.stage import off_stage
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_events import Ladder

RUNS = SessionRuns(KEY, at_once=1, kept=3)
LOOKS = SessionRuns(f"{KEY}-layers", at_once=1, kept=3)
LIVE_SECONDS = 0.5
LOOKED_AT = 1000  # pairs, for the starting picture: every pooling reads all their texts
RECORDED = "Recorded run. Press “Train” to see it live."
# What stands above the figures takes little room, so that the first screen has them.
_LAYOUT = f"""<style>
[class*="st-key-{KEY}-state-"], [class*="st-key-{KEY}-layers-state-"] {{ margin-top: -0.8rem; }}
</style>"""


def show() -> None:
    """Pairs, model, *Train*, the layers as they are, and the ladder; first, what was recorded."""
    st.html(_LAYOUT)
    left, right = wide_columns([2, 3], KEY)
    with left:
        task, pressed = _choose()
    with right:
        run, is_asked_for = _run_of(task, pressed=pressed)
        _show_run(run, task, is_asked_for=is_asked_for)
    if run is None or not run.is_over or not run.result.results:
        return
    with dimmed(f"{KEY}-closer", not is_asked_for):
        show_numbers(run)
        show_closer(run)
        show_two(run)
        with off_stage(f"{KEY}-save"):
            offer_to_save(run)


def _choose() -> tuple[ClimbLadder | None, bool]:
    """What is asked for, and whether *Train* was pressed; None where something is missing."""
    given = choose_pairs()
    of_model, of_pooling = st.columns(2)
    with of_model:
        model_id = followed_model_id(
            "frozen-model",
            "It stays as it is. Sentence encoders, masked language models and models that predict "
            "the next token can be looked at, all by name or folder.",
        )
    if given is None or not may_load(model_id):
        return None, False
    model = ModelRef.now(model_id)
    recorded = _recorded_run()
    seen: Run[Ladder] | None = None
    if recorded is None or (recorded.task.model, recorded.task.pairs) != (model, given.rows):
        seen = LOOKS.start(LookAtLayers(model, given.rows[:LOOKED_AT]))
    layers = (seen or recorded).result.layers  # type: ignore[union-attr]
    with of_pooling:
        pooling = choose_pooling(list(layers))
    row = st.container(horizontal=True, vertical_alignment="center")
    pressed = row.button("Train", type="primary", icon=":material/fitness_center:")
    task = None
    with row.popover("Settings", icon=":material/tune:", key=f"{KEY}-settings"):
        try:
            task = ClimbLadder(model, given.rows, choose_settings(pooling))
        except SettingsError as error:
            show_error(error)
    if task is None:
        st.info("Choose at least one rung, under Settings.")
    if seen is None:
        show_layers(model_id, layers, live=False, key=f"{KEY}-layers")
    else:
        run_panel(
            LOOKS,
            seen,
            lambda result, live: show_layers(
                model_id, result.layers, live=live, key=f"{KEY}-layers"
            ),
            words=Words(begins="Loading the model …", done=lambda _: ""),
            every=LIVE_SECONDS,
        )
        if len(given.rows) > LOOKED_AT:
            st.caption(f"The layers are shown on the first {many(LOOKED_AT, 'pair')}.")
    return task, pressed


def _run_of(task: ClimbLadder | None, *, pressed: bool) -> tuple[Run[Ladder] | None, bool]:
    """The run that is shown, and whether it is the one that is asked for.

    Where there is none of other settings on the same pairs, nothing is shown of others, unless
    there are no pairs.
    """
    recorded = _recorded_run()
    if task is None:
        return RUNS.last() or recorded, False
    view = kept_under(KEY)
    run: Run[Ladder] | None = RUNS.recall(task, view)
    if pressed:
        put_pairs_in_address()
        try:
            again = run is not None and run.status != "done"
            run = RUNS.start(task, again=again, view=kept_under(KEY))
        except SettingsError as error:
            show_error(error)
    if run is not None:
        return run, True
    if recorded is not None and recorded.task == task:
        return recorded, True
    others = [*reversed(RUNS.all()), *([recorded] if recorded else [])]
    of = task.model, task.pairs
    return next((one for one in others if (one.task.model, one.task.pairs) == of), None), False


def _show_run(run: Run[Ladder] | None, task: ClimbLadder | None, *, is_asked_for: bool) -> None:
    if run is None:
        rungs = RUNGS if task is None else task.settings.rungs
        show_ladder(f"{KEY}-empty", rungs, "", None, live=False)
        return
    if not is_asked_for:
        st.caption("The results below are of other settings. Press **Train** to see yours.")
    settings = run.task.settings
    with dimmed(KEY, not is_asked_for):
        run_panel(
            RUNS,
            run,
            lambda result, live: show_ladder(
                f"{KEY}-{run.id}", settings.rungs, run.task.model.id, result, live=live
            ),
            words=Words(
                begins="Loading the model …",
                stopped=partial(_stopped, len(settings.each())),
                done=partial(_done, run, is_asked_for=is_asked_for),
            ),
            bar_stays=True,
            every=LIVE_SECONDS,
        )


@st.cache_resource(max_entries=1, show_spinner=False)
def _recorded_run() -> Run[Ladder] | None:
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
    known = {one for first, second, _ in task.pairs for one in (first, second)}
    if not known.issuperset(ladder.test.sentences1):
        return None
    return Run.over(task, ladder, status="done", finished=0.0, seconds=0.0)


def _done(run: Run[Ladder], _: object, *, is_asked_for: bool) -> str:
    if run is not _recorded_run():
        return done_in(run)
    return RECORDED if is_asked_for else "Recorded run."


def _stopped(n_rungs: int, ladder: Ladder) -> str:
    if not ladder.curves:
        return "Stopped before the first rung. The features so far are kept."
    return f"Stopped after {len(ladder.results)} of {many(n_rungs, 'training')}."
