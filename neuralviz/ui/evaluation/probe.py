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
    from neuralviz.ui.evaluation.data import DataChoice

NOTHING, LABELS = "none", "labels"
_NAMES = {NOTHING: "No probe", LABELS: "Labels"} | {
    name: task.title for name, task in TASKS.items()
}
_HELP = (
    "A small network learns to tell something from the embeddings of the texts.\n\n"
    + "\n".join(
        [
            "- **Labels**: the labels of the data.",
            *(f"- **{task.title}**: {task.line}" for task in TASKS.values()),
        ]
    )
)


def choose_probe(data_choice: DataChoice) -> tuple[DataChoice, tuple[Measure, ...]]:
    """Ask for a probe; the data to probe, and its measures, empty for the default ones.

    Args:
        data_choice: the chosen data.

    Raises:
        TextError: the task cannot be made from the texts.
    """
    data = data_choice.data
    options = [NOTHING, *[LABELS] * isinstance(data, LabelledData), *TASKS]
    key = "probe-of-labels" if LABELS in options else "probe"
    chosen = st.selectbox(
        "Probe", options, format_func=_NAMES.__getitem__, key=key, bind="query-params", help=_HELP
    )
    if chosen == LABELS:
        return data_choice, (*data.by_default, "probe")
    if chosen not in TASKS:
        return data_choice, ()
    st.caption(TASKS[chosen].line)
    task_data = _make_task_data(chosen, data.name, data.texts)
    return replace(
        data_choice, data=task_data, kept=() if task_data.rewrites else data_choice.kept
    ), ()


@st.cache_data(max_entries=8, show_spinner=False)
def _make_task_data(task: str, name: str, texts: tuple[str, ...]) -> ProbingTask:
    return probing_task(task, name, texts)
