"""The page that explains how it works: which step, which texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.jobs.walking import WalkThrough
from neuralviz.models.shared import ModelRef
from neuralviz.ui.choices import choose_one
from neuralviz.ui.fields import field_keys, keep_texts, text_fields
from neuralviz.ui.how_it_works.steps import PAGE, STEPS
from neuralviz.ui.model_choice import chosen_model_id, may_load
from neuralviz.ui.run_panel import SessionRuns, Words, run_panel

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.micro_tuning.walkthrough import Walkthrough

RUNS = SessionRuns(PAGE, kept=8)
PATIENCE = 0.5  # seconds
FIELDS = ("First text", "Second text")
PAIRS = {
    "Similar": ("A dog chased the ball across the park.", "The dog ran after a ball in the park."),
    "One word, two meanings": (
        "The bank raised its interest rates.",
        "They sat on the bank of the river.",
    ),
    "Same words": (
        "A dog chased the ball across the park.",
        "The ball chased a dog across the park.",
    ),
}


def show(header: Callable[[], None]) -> None:
    """The way, one step at a time.

    Args:
        header: draws title and explanation, which the stage does without.
    """
    top = st.container()  # empty on the stage, and only the navigation knows of it
    number, on_stage = _navigation()
    with top:
        if not on_stage:
            header()
    body = st.container()
    with st.container() if on_stage else top:
        first, second = _texts()
    with body:
        model_id = chosen_model_id()
        if not may_load(model_id):
            return
        run = RUNS.start(WalkThrough(ModelRef.now(model_id), first, second))
        walks = [earlier.result for earlier in RUNS.all() if earlier.result is not None]
        last: Walkthrough | None = walks[-1] if walks else None
        words = Words(
            begins="Micro-tuning on both texts …",
            after_error="Showing the last valid texts." if last is not None else "",
            done=lambda _: "",
        )
        step = partial(_show_step, number, last, on_stage=on_stage)
        run_panel(RUNS, run, step, words=words, patience=PATIENCE)


def _show_step(
    number: int,
    last: Walkthrough | None,
    result: Walkthrough | None,
    live: bool,
    *,
    on_stage: bool,
) -> None:
    walk = result or last
    if walk is None:
        return
    step = STEPS[number - 1]
    st.subheader(f"{number}. {step.title}", anchor=False)
    st.markdown(step.sentence)
    step.show(walk)
    if not on_stage:
        with st.expander("The formula", icon=":material/function:"):
            st.markdown(step.formula)
            st.caption(f"Neural Embeddings for Text, {step.source}")


def _texts() -> list[str]:
    with st.expander("Edit the two texts", icon=":material/edit:", expanded=False):
        with st.container(horizontal=True):
            for name in PAIRS:
                st.button(name, on_click=_open_pair, args=(name,), key=f"{PAGE}-{name}")
        return text_fields(PAGE, dict(zip(FIELDS, PAIRS["Similar"], strict=True)))


def _open_pair(name: str) -> None:
    keys = field_keys(PAGE, FIELDS)
    st.session_state.update(zip(keys, PAIRS[name], strict=True))
    keep_texts(PAGE, keys)


def _navigation() -> tuple[int, bool]:
    """Back, next, stage and the numbers of the steps: the step, and whether on the stage."""
    with st.container(horizontal=True, vertical_alignment="center"):
        buttons = st.container(horizontal=True, width="content")  # filled when the step is known
        on_stage = st.toggle(
            "Presentation mode",
            key="stage",
            bind="query-params",
            help="Hide the introduction and enlarge the figure.",
        )
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
        on_click=_go,
        args=(-1,),
        shortcut="Left",
        disabled=number == 1,
        key=f"{PAGE}-back",
    )
    buttons.button(
        "Next",
        icon=":material/arrow_forward:",
        on_click=_go,
        args=(1,),
        shortcut="Right",
        type="primary",
        disabled=number == len(STEPS),
        key=f"{PAGE}-next",
    )
    return number, on_stage


def _go(by: int) -> None:
    step = st.session_state["step"] or 1  # as in `choose_one`
    st.session_state["step"] = min(max(step + by, 1), len(STEPS))
