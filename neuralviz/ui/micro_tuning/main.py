"""The micro-tuning page below its title."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.models import BUNDLED
from neuralviz.models.shared import ModelRef
from neuralviz.store.results import COMMON_VIEW
from neuralviz.ui.links import USER_SOURCES, one_history_entry, result_view_id
from neuralviz.ui.micro_tuning.blanks import try_deltas
from neuralviz.ui.micro_tuning.choose import ask_settings, pick_text
from neuralviz.ui.micro_tuning.results import show_results
from neuralviz.ui.micro_tuning.runs import (
    KEY,
    RECORDED,
    Overlay,
    choose_runs,
    recorded_run,
    restore_run,
    show_recorded,
    show_run,
    start_run,
)
from neuralviz.ui.model_choice import chosen_model_id
from neuralviz.ui.pace import let_others_draw, pause
from neuralviz.ui.page import dim_old_results, show_error
from neuralviz.ui.session import is_served
from neuralviz.ui.stage import show_on_stage
from neuralviz.ui.texts import ask_texts, put_texts_in_address
from neuralviz.ui.tour import is_tour_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.ui.micro_tuning.choose import Inputs

FIRST_FIGURES_SECONDS = 2.0
EXAMPLES = {
    "One sentence": [
        "The old lighthouse keeper climbed the stairs every evening to light the lamp."
    ],
    "From the corpus": [
        "Does the moon look bigger near the horizon, or am I only more romantic there?",
        "What do the substitutes talk about for eighty minutes on that bench?",
        "Leaves blamed for delays on line that has no trees",
    ],
    "Word order": ["The dog chased the cat.", "The cat chased the dog.", "The cat was chased."],
    "A short story": [
        "Mina planted a seed in a cracked pot. Nothing happened for weeks, and her brother "
        "laughed at her. Then one morning a green tip broke the soil, and nobody laughed any more."
    ],
}
# Inputs and live figures stand beside each other where both have room. The figures stay in place
# while the sentences above them grow, and when a line takes the place of the bar and *Stop*.
_LAYOUT = """<style>
[data-testid="stColumn"]:has(.st-key-tune-inputs) { min-width: min(255px, 100%); }
[data-testid="stColumn"]:has(.st-key-tune-live) { min-width: min(440px, 100%); }
[class*="st-key-micro-tuning-state-"] { min-height: 42.5px; justify-content: center; }
[class*="st-key-headline-"][class*="-learning"] { min-height: 5.6rem; }
[class*="st-key-headline-"][class*="-neurons"] { min-height: 3.7rem; }
@media (max-width: 640px) {
    [class*="st-key-headline-"][class*="-learning"] { min-height: 11.2rem; }
    [class*="st-key-headline-"][class*="-neurons"] { min-height: 5.6rem; }
}
[class*="st-key-tune-figures"] [data-testid="stColumn"] { min-width: min(250px, 100%); }
</style>"""


def show() -> None:
    """Draw the page: texts, settings, *Tune*, the runs beside them, and their results below."""
    st.html(_LAYOUT)
    input_column, live_column = st.columns([3, 7], gap="large")
    with input_column, st.container(key="tune-inputs"):
        texts, inputs = _ask_inputs()
        if inputs is not None and inputs.settings is not None:
            is_there = restore_run(chosen_model_id(), texts, inputs.settings)
            if not is_there and _should_start():
                start_run(chosen_model_id(), texts, inputs.settings, COMMON_VIEW)
        runs = choose_runs()
        picked = [pick_text(run.record) for run in runs] or [pick_text(recorded_run())]
    newest = runs[-1].record if runs else recorded_run()
    is_outdated = _is_outdated(newest, texts, inputs)
    with live_column, st.container(key="tune-live"):
        if is_outdated and inputs is None:
            st.caption("These figures belong to another model.")
        elif is_outdated:
            st.caption(
                "These figures belong to other texts or settings. Press **Tune** to update them."
            )
        with dim_old_results("tune", is_outdated):
            if runs:
                for column, run, text in zip(st.columns(len(runs)), runs, picked, strict=True):
                    with column:
                        show_run(run, text)
            else:
                show_recorded(picked[0])
    with dim_old_results("tune-after", is_outdated):
        _show_finished(runs, picked)


def _ask_inputs() -> tuple[Sequence[str], Inputs | None]:
    """Widgets for texts and settings, and *Tune*; a press that starts nothing is explained."""
    examples = {"Two banks": recorded_run().texts, **EXAMPLES}
    texts = ask_texts(KEY, examples, max_texts=1000).texts
    model_id = chosen_model_id()
    inputs = ask_settings(model_id, texts)
    if inputs is None:
        return texts, None
    with inputs.button, show_on_stage("tune"):
        pressed = st.button("Tune", type="primary", icon=":material/play_arrow:", width="stretch")
    if pressed and inputs.settings is None:
        st.info("Not started. Correct the settings first.")
    elif pressed and not texts:
        st.info("Micro-tuning needs a text. Paste one, or choose an example.")
    elif pressed and inputs.settings is not None:
        try:
            with one_history_entry():
                if st.session_state[f"{KEY}-source"] in USER_SOURCES:
                    put_texts_in_address(KEY, texts)
                start_run(model_id, texts, inputs.settings, result_view_id(KEY))
        except NeuralvizError as error:
            show_error(error)
    return texts, inputs


def _should_start() -> bool:
    """Whether *Tune* needs no press: on the tour, for an example with the bundled model."""
    is_example = st.session_state.get(f"{KEY}-source") == "Example"
    return is_tour_at("Micro-tuning") and is_example and chosen_model_id() == BUNDLED


def _is_outdated(record: RunRecord, texts: Sequence[str], inputs: Inputs | None) -> bool:
    """Whether a run has other texts, settings or another model than the widgets."""
    if inputs is None:  # the model is not available
        return chosen_model_id() != record.model_id
    if inputs.settings is None or not texts:
        return False
    current = (chosen_model_id(), tuple(texts), inputs.settings)
    return current != (record.model_id, record.texts, record.settings)


def _show_finished(runs: Sequence[Overlay], picked: Sequence[int]) -> None:
    """Show the results of finished runs, each for its chosen text."""
    if not runs:
        record, text = recorded_run(), picked[0]
        _let_the_browser_draw()
        try_deltas(record, ModelRef.from_id(record.model_id), RECORDED, text)
        show_results(record, RECORDED, text)
        return
    finished = [(run, text) for run, text in zip(runs, picked, strict=True) if run.run.is_over]
    if not finished:
        return
    newest, text = finished[-1]
    try_deltas(newest.record, newest.run.task.model, newest.key, text)
    for column, (run, its_text) in zip(st.columns(len(finished)), finished, strict=True):
        with column:
            show_results(run.record, run.key, its_text)


def _let_the_browser_draw() -> None:
    """Hold back what comes next until the first figures can be seen, once a session.

    What lies below them (a table, figures that do not move) makes the browser load megabytes of
    script, and it would do that first.
    """
    if "has-drawn" in st.session_state or not is_served():
        return
    with let_others_draw():
        for _ in range(round(FIRST_FIGURES_SECONDS / 0.1)):
            pause(0.1)
    st.session_state["has-drawn"] = True
