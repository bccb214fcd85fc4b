"""The How it works page below its title: the chosen step and its texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.micro_tuning import WalkThrough
from neuralviz.models.shared import ModelRef
from neuralviz.ui.choices import choose_one
from neuralviz.ui.headline import show_headline
from neuralviz.ui.how_it_works.steps import PAGE, STEPS, introduce
from neuralviz.ui.model_choice import chosen_model_id, may_load
from neuralviz.ui.questions import show_questions
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session import is_served
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import slide
from neuralviz.ui.texts import ask_text_fields, field_keys, show_example_pills
from neuralviz.ui.tour import show_start_button

if TYPE_CHECKING:
    from neuralviz.micro_tuning.walkthrough import Walkthrough

RUNS = SessionRuns(PAGE, kept=8)
PATIENCE = 0.5  # seconds
FIELDS = ("First text", "Second text", "Unrelated text")
EXAMPLES = {
    "Similar": (
        "A dog chased the ball across the park.",
        "The dog ran after a ball in the park.",
        "Our train to the coast was an hour late.",
    ),
    "One word, two meanings": (
        "The bank raised its interest rates.",
        "They sat on the bank of the river.",
        "My sister plays the violin every evening.",
    ),
    "Same words": (
        "A dog chased the ball across the park.",
        "The ball chased a dog across the park.",
        "Our train to the coast was an hour late.",
    ),
}


def show() -> None:
    """Draw the page, one step at a time."""
    with st.container(horizontal=True):
        show_start_button()
        show_questions()
    place = st.container()
    number = _show_navigation()
    body = st.container()
    with place:
        texts = _ask_texts()
    with body:
        model_id = chosen_model_id()
        if not may_load(model_id):
            return
        run = RUNS.start(WalkThrough(ModelRef.from_id(model_id), tuple(texts)))
        walks = [earlier.result for earlier in RUNS.list_runs() if earlier.result is not None]
        last: Walkthrough | None = walks[-1] if walks else None
        words = RunSentences(
            start="The model is training on the texts …",
            error_advice="Showing the last valid texts." if last is not None else "",
            describe_done=lambda _: "",
        )
        patience = (
            0.0 if last is None and is_served() else PATIENCE
        )  # the first visit reads at once
        show_step = partial(_show_step, number, texts[0], last)
        show_run_panel(RUNS, run, show_step, sentences=words, patience=patience)


def _show_step(
    number: int,
    text: str,
    last: Walkthrough | None,
    result: Walkthrough | None,
    live: bool,
) -> None:
    """Draw a step: its words at once, its numbers when the model has them."""
    walk = last if live else result or last  # drawn once
    step = STEPS[number - 1]
    with slide("step"):
        st.subheader(f"{number}. {step.title}", anchor=False)
        if walk is not None:
            show_headline(step.headline(walk), key=f"{PAGE}-step")
        st.markdown(step.sentence)
        if walk is not None:
            step.show(walk)
        else:
            introduce(text)
    if walk is not None and step.show_more is not None:
        with slide("step-more"):
            step.show_more(walk)
    with st.expander("The formula", icon=":material/function:"):
        st.markdown(step.formula)
        st.caption(f"Neural Embeddings for Text, {step.source}")


def _ask_texts() -> list[str]:
    with st.expander("Edit the texts", icon=":material/edit:", expanded=False):
        pills_place = st.container()
        typed = ask_text_fields(PAGE, dict(zip(FIELDS, EXAMPLES["Similar"], strict=True)))
        keys = field_keys(PAGE, FIELDS)
        with pills_place:
            show_example_pills(
                PAGE,
                {name: dict(zip(keys, texts, strict=True)) for name, texts in EXAMPLES.items()},
                keys,
            )
        return typed


def _show_navigation() -> int:
    """Buttons for the steps; the number of the chosen step."""
    with st.container(horizontal=True, vertical_alignment="center"):
        buttons = st.container(horizontal=True, width="content")  # filled when the step is known
        st.session_state.setdefault("step", 1)
        number = choose_one(
            st.pills,
            "Step",
            range(1, len(STEPS) + 1),
            key="step",
            label_visibility="collapsed",
            wrap=True,  # on a phone
        )
    buttons.button(
        "Back",
        icon=":material/arrow_back:",
        on_click=_move,
        args=(-1,),
        shortcut="Left",
        disabled=number == 1,
        key="stage-back",
    )
    buttons.button(
        "Next",
        icon=":material/arrow_forward:",
        on_click=_move,
        args=(1,),
        shortcut="Right",
        type="primary",
        disabled=number == len(STEPS),
        key="stage-next",
    )
    return number


def _move(n_steps: int) -> None:
    step = st.session_state["step"] or 1  # as in `choose_one`
    st.session_state["step"] = min(max(step + n_steps, 1), len(STEPS))
