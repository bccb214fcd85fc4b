"""The run that a page shows: that of the widgets, else the last one or a recorded one, faded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.ui.page import dim_old_results, show_error
from neuralviz.ui.run_panel import RunSentences, show_run_panel

if TYPE_CHECKING:
    from collections.abc import Callable

    from neuralviz.jobs import Run
    from neuralviz.jobs.task import KeptTask
    from neuralviz.ui.session_runs import SessionRuns


@dataclass(frozen=True)
class VisibleRun:
    """A run to show.

    Attributes:
        is_current: whether it is what the widgets ask for.
        is_recorded: whether it comes with neuralviz.
    """

    run: Run[Any]
    is_current: bool
    is_recorded: bool


def find_visible_run(
    runs: SessionRuns,
    task: KeptTask[Any, Any] | None,
    view: str,
    *,
    pressed: bool,
    recorded: Run[Any] | None = None,
) -> VisibleRun | None:
    """The run of a task: started, remembered, saved or recorded; else the last run that there is.

    Args:
        task: what the widgets ask for; None while something is missing.
        view: id under which its result is saved.
        pressed: whether to start it; one that was stopped or has failed starts again.
        recorded: what the page opens with.
    """
    run = None if task is None else runs.recall(task, view)
    if task is not None and pressed:
        is_incomplete = run is not None and not (run.status == "done" and task.is_whole(run.result))
        try:
            run = runs.start(task, again=is_incomplete, view=view)
        except SettingsError as error:
            show_error(error)
    if run is None and recorded is not None and recorded.task == task:
        run = recorded
    visible = run or runs.last_to_show() or recorded
    if visible is None:
        return None
    return VisibleRun(visible, is_current=run is not None, is_recorded=visible is recorded)


def show_visible_run(
    runs: SessionRuns,
    visible: VisibleRun,
    button: str,
    draw: Callable[[Any, bool], None],
    sentences: RunSentences | None = None,
) -> None:
    """Show a run in its panel, faded where it is of other data or settings.

    Args:
        button: label of the button that starts one.
        draw: as of `show_run_panel`.
        sentences: likewise.
    """
    sentences = sentences or RunSentences()
    if not visible.is_current:
        st.caption(
            f"The results below are of other data or settings. Press **{button}** to see yours."
        )
    if visible.is_recorded:
        invitation = f" Press “{button}” to see it live." if visible.is_current else ""
        sentences = replace(sentences, describe_done=lambda _: f"Recorded run.{invitation}")
    with dim_old_results(runs.kind, not visible.is_current):
        show_run_panel(runs, visible.run, draw, sentences=sentences)
