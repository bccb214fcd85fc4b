"""What the training page shows of a run, live and when it is over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.plots.training import (
    accuracy_by_layer_figure,
    accuracy_by_step_figure,
    accuracy_map_figure,
    describe_training,
    training_loss_figure,
)
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.in_words import (
    is_decided,
    layers_point,
    suggest_next,
    trained_part,
    training_point,
)
from neuralviz.ui.figures import show_figure
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import off_stage, slide
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
    """The point, loss and accuracy live; maps, neighbours and *Save* when the run is over.

    Args:
        run, lessons: what is shown, as far as it is.
        live: whether it still goes on.
        is_recorded: whether it came with neuralviz, so that there are no weights to save.
    """
    task = run.task
    assert isinstance(task, TrainOnCorpus)
    try:
        corpus = CorpusStore().corpus(task.corpus)
    except NeuralvizError as error:  # deleted meanwhile
        show_error(error)
        return
    about = describe_training(lessons, corpus.name, task.model.id)
    with slide("training"):
        said = training_point(
            lessons,
            plain(task.labels),
            is_decided(lessons),
            part=trained_part(task.settings[0]),
        )
        show_point(said, key="training")
        _show_first_figures(run, task.labels, lessons, about)
    has_layers = any(one.accuracy.shape[1] > 1 for one in lessons)
    if has_layers:
        _show_accuracy_maps(run, lessons, about)
    if live:
        return
    if any(one.maps is not None for one in lessons):
        show_moves(run, task, lessons, about)
    st.markdown(suggest_next(lessons))
    if not is_recorded:
        with off_stage("training-save"):
            offer_to_save(task, lessons)


def _show_first_figures(
    run: Run[tuple[Lesson, ...]], label: str, lessons: tuple[Lesson, ...], about: About
) -> None:
    """Loss, accuracy, what both ways lead to from where they began, and what was measured."""
    known = [one for one in lessons if len(one.accuracy)]
    left, middle, right = wide_columns([5, 5, 2], "training-seen")
    with left:
        show_figure(
            training_loss_figure(lessons),
            key=f"training-loss-{run.id}",
            numbers=lambda: _curves(lessons),
            name="training loss",
            height=HEIGHT,
            about=about,
        )
    if not known:
        return
    has_layers = known[0].accuracy.shape[1] > 1
    make = accuracy_by_layer_figure if has_layers else accuracy_by_step_figure
    with middle:
        show_figure(
            make(lessons, label),
            key=f"training-accuracy-{run.id}",
            numbers=lambda: _accuracies(lessons),
            name="accuracy by layer" if has_layers else "accuracy by step",
            height=HEIGHT,
            about=about,
        )
    with right, off_stage("training-numbers"):  # the point has them, too
        before = known[0].accuracy[0, -1]
        with st.container(horizontal=True):  # beside each other on a phone
            if (whole := known[0].untrained) is not None:
                st.metric("Untrained", f"{whole:.1%}", help=_WHOLE, width="content")
            st.metric("Before", f"{before:.1%}", help=_HELP, width="content")
            for one in known:
                if len(one.accuracy) > 1:
                    _show_metric(one, 100 * (one.accuracy[-1, -1] - before))
    said = [known[0].measured]
    if first := max(one.first for one in known):
        said.append(
            f"The training went on after step {first:,}. Accuracy between the start and that step "
            "was not saved, so curves and maps have no values there."
        )
    if any(said):
        st.caption(plain(" ".join(filter(None, said))))


def _show_metric(lesson: Lesson, points: float) -> None:
    """Where a way led to, and how far that is from where it began, in percentage points."""
    st.metric(
        lesson.settings.pairs.kind.capitalize(),
        f"{lesson.accuracy[-1, -1]:.1%}",
        f"{number(points, '.1f')} points",
        delta_color="green" if points > 0 else "red" if points < 0 else "off",
        delta_arrow="up" if points > 0 else "down" if points < 0 else "off",
        width="content",
    )


def _show_accuracy_maps(
    run: Run[tuple[Lesson, ...]], lessons: tuple[Lesson, ...], about: About
) -> None:
    known = [(n, one) for n, one in enumerate(lessons) if len(one.accuracy) > 1]
    if not known:
        return
    with slide("training-maps"):
        show_point(layers_point([one for _, one in known]), key="training-layers")
        columns = wide_columns(len(known), "training-by-step")
        for column, (number, lesson) in zip(columns, known, strict=True):
            with column:
                show_figure(
                    accuracy_map_figure(lesson, lessons),
                    key=f"training-steps-{run.id}-{number}",
                    numbers=partial(_accuracies, [lesson]),
                    name=f"accuracy by step {lesson.settings.pairs.kind}",
                    height=HEIGHT,
                    about=about,
                )


def _curves(lessons: Sequence[Lesson]) -> pd.DataFrame:
    return pd.concat(
        pd.DataFrame(
            {
                "pairs": one.settings.pairs.kind,
                "step": range(1, one.step + 1),
                "loss": one.loss,
                "learning_rate": one.learning_rate,
                "alignment": one.alignment,
                "uniformity": one.uniformity,
            }
        )
        for one in lessons
    )


def _accuracies(lessons: Sequence[Lesson]) -> pd.DataFrame:
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
