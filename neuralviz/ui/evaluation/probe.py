"""The widget that asks a probe: for the labels of the data, or for a task made from their texts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.evaluation.data import LabelledData
from neuralviz.evaluation.probing_tasks import TASKS, probing_task

if TYPE_CHECKING:
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.probing_tasks import ProbingTask
    from neuralviz.ui.evaluation.data import Given

NOTHING, LABELS = "none", "labels"
_NAMES = {NOTHING: "No probe", LABELS: "Labels"} | {name: one.title for name, one in TASKS.items()}
_HELP = (
    "A small network learns to tell something from the embeddings of the texts.\n\n"
    + "\n".join(
        [
            "- **Labels**: the labels of the data.",
            *(f"- **{one.title}**: {one.line}" for one in TASKS.values()),
        ]
    )
)


def choose_probe(given: Given) -> tuple[Given, tuple[Measure, ...]]:
    """The data that are probed, and what is measured on them; no measures for those by default.

    Args:
        given: the data that are chosen.

    Raises:
        TextError: a task cannot be made from their texts.
    """
    data = given.data
    options = [NOTHING, *[LABELS] * isinstance(data, LabelledData), *TASKS]
    key = "probe-of-labels" if LABELS in options else "probe"
    chosen = st.selectbox(
        "Probe", options, format_func=_NAMES.__getitem__, key=key, bind="query-params", help=_HELP
    )
    if chosen == LABELS:
        return given, (*data.by_default, "probe")
    if chosen not in TASKS:
        return given, ()
    st.caption(TASKS[chosen].line)
    made = _made(chosen, data.name, data.texts)
    return replace(given, data=made, kept=() if made.rewrites else given.kept), ()


@st.cache_data(max_entries=8, show_spinner=False)
def _made(task: str, name: str, texts: tuple[str, ...]) -> ProbingTask:
    return probing_task(task, name, texts)
