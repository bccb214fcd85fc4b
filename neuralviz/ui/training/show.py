"""A training as the page shows it, live and when it is over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.headlines.training import (
    describe_lessons,
    describe_trained_layers,
    suggest_next,
    trained_part,
)
from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.plots.training import (
    accuracy_by_layer_figure,
    accuracy_by_step_figure,
    accuracy_map_figure,
    describe_training,
    training_loss_figure,
)
from neuralviz.store.corpora import CorpusStore
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.stage import hide_on_stage, slide
from neuralviz.ui.training.moves import show_moves
from neuralviz.ui.training.save import offer_to_save
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.plots.standalone import About
    from neuralviz.training.record import Lesson

HEIGHT = 310  # px, of the figures on the first screen
_HELP = "10-NN accuracy at the last layer; higher is better."
_WHOLE = f"The whole model, untrained. {_HELP}"


def show_lessons(
    run: Run[tuple[Lesson, ...]], lessons: tuple[Lesson, ...], live: bool, *, is_recorded: bool
) -> None:
    """Show the main finding, loss and accuracy live; maps and *Save* when the run is over.

    Args:
        run, lessons: the run and its result so far.
        live: whether the run still goes on.
        is_recorded: whether the run comes with neuralviz, without weights to save.
    """
    task = run.task
    assert isinstance(task, TrainOnCorpus)
    try:
        corpus = CorpusStore().corpus(task.corpus)
    except NeuralvizError as error:  # the corpus was deleted
        show_error(error)
        return
    provenance = describe_training(lessons, corpus.name, task.model.id)
    with slide("training"):
        sentence = describe_lessons(
            lessons, plain(task.labels), part=trained_part(task.settings[0])
        )
        show_headline(sentence, key="training")
        _show_first_figures(run, task.labels, lessons, provenance)
    has_layers = any(lesson.accuracy.shape[1] > 1 for lesson in lessons)
    if has_layers:
        _show_accuracy_maps(run, lessons, provenance)
    if live:
        return
    if any(lesson.maps is not None for lesson in lessons):
        show_moves(run, task, lessons, provenance)
    st.markdown(suggest_next(lessons))
    if not is_recorded:
        with hide_on_stage("training-save"):
            offer_to_save(task, lessons)


def _show_first_figures(
    run: Run[tuple[Lesson, ...]], label: str, lessons: tuple[Lesson, ...], provenance: About
) -> None:
    """Draw loss and accuracy, and show accuracy before and after the training."""
    measured_lessons = [lesson for lesson in lessons if len(lesson.accuracy)]
    left_column, middle_column, right_column = wide_columns([5, 5, 2], "training-seen")
    with left_column:
        show_figure(
            training_loss_figure(lessons),
            key=f"training-loss-{run.id}",
            numbers=lambda: _tabulate_curves(lessons),
            name="training loss",
            height=HEIGHT,
            provenance=provenance,
        )
    if not measured_lessons:
        return
    has_layers = measured_lessons[0].accuracy.shape[1] > 1
    make = accuracy_by_layer_figure if has_layers else accuracy_by_step_figure
    with middle_column:
        show_figure(
            make(lessons, label),
            key=f"training-accuracy-{run.id}",
            numbers=lambda: _tabulate_accuracies(lessons),
            name="accuracy by layer" if has_layers else "accuracy by step",
            height=HEIGHT,
            provenance=provenance,
        )
    with right_column, hide_on_stage("training-numbers"):  # the main sentence has them, too
        before = measured_lessons[0].accuracy[0, -1]
        with st.container(horizontal=True):  # side by side on a phone
            if (whole := measured_lessons[0].untrained) is not None:
                st.metric("Untrained", f"{whole:.1%}", help=_WHOLE, width="content")
            st.metric("Before", f"{before:.1%}", help=_HELP, width="content")
            for lesson in measured_lessons:
                if len(lesson.accuracy) > 1:
                    _show_metric(lesson, 100 * (lesson.accuracy[-1, -1] - before))
    sentences = [measured_lessons[0].measured]
    if first := max(lesson.first for lesson in measured_lessons):
        sentences.append(
            f"The training went on after step {first:,}. Accuracy between the start and that step "
            "was not saved, so curves and maps have no values there."
        )
    if any(sentences):
        st.caption(plain(" ".join(filter(None, sentences))))


def _show_metric(lesson: Lesson, points: float) -> None:
    """Show an encoder's accuracy and its gain in percentage points."""
    st.metric(
        lesson.settings.pairs.kind.capitalize(),
        f"{lesson.accuracy[-1, -1]:.1%}",
        f"{number(points, '.1f')} points",
        delta_color="green" if points > 0 else "red" if points < 0 else "off",
        delta_arrow="up" if points > 0 else "down" if points < 0 else "off",
        width="content",
    )


def _show_accuracy_maps(
    run: Run[tuple[Lesson, ...]], lessons: tuple[Lesson, ...], provenance: About
) -> None:
    numbered_lessons = [(n, lesson) for n, lesson in enumerate(lessons) if len(lesson.accuracy) > 1]
    if not numbered_lessons:
        return
    with slide("training-maps"):
        show_headline(
            describe_trained_layers([lesson for _, lesson in numbered_lessons]),
            key="training-layers",
        )
        columns = wide_columns(len(numbered_lessons), "training-by-step")
        for column, (number, lesson) in zip(columns, numbered_lessons, strict=True):
            with column:
                show_figure(
                    accuracy_map_figure(lesson, lessons),
                    key=f"training-steps-{run.id}-{number}",
                    numbers=partial(_tabulate_accuracies, [lesson]),
                    name=f"accuracy by step {lesson.settings.pairs.kind}",
                    height=HEIGHT,
                    provenance=provenance,
                )


def _tabulate_curves(lessons: Sequence[Lesson]) -> pd.DataFrame:
    return pd.concat(
        pd.DataFrame(
            {
                "pairs": lesson.settings.pairs.kind,
                "step": range(1, lesson.step + 1),
                "loss": lesson.loss,
                "learning_rate": lesson.learning_rate,
                "alignment": lesson.alignment,
                "uniformity": lesson.uniformity,
            }
        )
        for lesson in lessons
    )


def _tabulate_accuracies(lessons: Sequence[Lesson]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pairs": lesson.settings.pairs.kind,
            "step": snapshot.step,
            "layer": layer,
            "accuracy": float(value),
        }
        for lesson in lessons
        for snapshot in lesson.snapshots
        if snapshot.accuracy is not None
        for layer, value in enumerate(snapshot.accuracy)
    )
