"""What the training page shows of a run, live and when it is over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz import training
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.models.shared import shared_text_model
from neuralviz.models.trained import check_free_name, encoders_folder
from neuralviz.plots.theme import shorten
from neuralviz.plots.training import (
    about_training,
    accuracy_by_layer_figure,
    accuracy_map_figure,
    colours_of_groups,
    moving_map_figure,
    training_loss_figure,
)
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.in_words import (
    is_decided,
    moves_point,
    new_neighbours,
    training_point,
    what_next,
)
from neuralviz.training.snapshots import Watch
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import show_figure
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import off_stage, slide

if TYPE_CHECKING:
    from neuralviz.jobs import Run
    from neuralviz.plots.standalone import About
    from neuralviz.training.record import Lesson

CHANGED = 6  # texts whose neighbours changed most


def show_lessons(run: Run[tuple[Lesson, ...]], lessons: tuple[Lesson, ...], live: bool) -> None:
    """The point, loss and accuracy live; maps, neighbours and *Save* when the run is over."""
    task = run.task
    assert isinstance(task, TrainOnCorpus)
    corpus = CorpusStore().corpus(task.corpus)
    about = about_training(lessons, corpus.name, task.model.id)
    with slide("training"):
        said = training_point(lessons, plain(task.labels), is_decided(lessons))
        show_point(said, key="training")
        left, right = wide_columns(2, "training-seen")
        with left:
            show_figure(
                training_loss_figure(lessons),
                key=f"training-loss-{run.id}",
                numbers=lambda: _curves(lessons),
                name="training loss",
                height=360,
                about=about,
            )
        with right:
            if task.labels:
                show_figure(
                    accuracy_by_layer_figure(lessons, task.labels),
                    key=f"training-layers-{run.id}",
                    numbers=lambda: _accuracies(lessons),
                    name="accuracy by layer",
                    height=360,
                    about=about,
                )
    if task.labels:
        _show_accuracy_maps(run, lessons, about)
    if live:
        return
    if any(one.maps is not None for one in lessons):
        _show_moving_map(run, task, lessons, about)
    st.markdown(what_next(lessons))
    with off_stage("training-save"):
        _save(task, lessons)


def _show_accuracy_maps(
    run: Run[tuple[Lesson, ...]], lessons: tuple[Lesson, ...], about: About
) -> None:
    known = [(n, one) for n, one in enumerate(lessons) if len(one.accuracy) > 1]
    if not known:
        return
    with slide("training-maps"):
        for column, (number, lesson) in zip(
            wide_columns(len(known), "training-by-step"), known, strict=True
        ):
            with column:
                show_figure(
                    accuracy_map_figure(lesson),
                    key=f"training-steps-{run.id}-{number}",
                    numbers=partial(_accuracies, [lesson]),
                    name=f"accuracy by step {lesson.settings.pairs.kind}",
                    height=340,
                    about=about,
                )


def _curves(lessons: tuple[Lesson, ...]) -> pd.DataFrame:
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


def _accuracies(lessons: tuple[Lesson, ...] | list[Lesson]) -> pd.DataFrame:
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


@st.fragment
def _show_moving_map(
    run: Run[tuple[Lesson, ...]],
    task: TrainOnCorpus,
    lessons: tuple[Lesson, ...],
    about: About,
) -> None:
    """The map before and after in one frame, and the texts that have new neighbours."""
    drawn = [one for one in lessons if one.maps is not None]
    kinds = [one.settings.pairs.kind for one in drawn]
    with slide("training-moves"):
        with off_stage("training-moves-choice"), st.container(horizontal=True):
            kind = kinds[0]
            if len(kinds) > 1:
                kind = choose_one(
                    st.pills, "Pairs on the map", kinds, key="training-map-of",
                    format_func=str.capitalize,
                )  # fmt: skip
            lesson = drawn[kinds.index(kind)]
            steps = [one.step for one in lesson.snapshots]
            shown = st.select_slider(
                "After step", list(range(len(steps))), value=len(steps) - 1,
                format_func=lambda place: f"{steps[place]:,}" if steps[place] else "before",
                key=f"training-snapshot-{run.id}-{kind}",
            )  # fmt: skip
        texts, groups = _watched(task)
        changed = new_neighbours(lesson, CHANGED)
        show_point(moves_point(lesson, changed), key="training-moves")
        left, right = wide_columns([2, 1], "training-moves-seen")
        with left:
            show_figure(
                moving_map_figure(
                    np.asarray(lesson.maps), shown, steps, texts, groups, colours_of_groups(groups)
                ),
                key=f"training-map-{run.id}-{kind}",
                numbers=lambda: _points(lesson, texts, groups),
                name=f"map while training {kind}",
                height=560,
                about=about,
            )
        with right, off_stage("training-changed"):
            for one in changed:
                st.markdown(
                    f"**{plain(shorten(texts[one.text], 90))}**  \n"
                    f"nearest before: {plain(shorten(texts[one.before], 70))}  \n"
                    f"now: {plain(shorten(texts[one.after], 70))}"
                )


@st.cache_data(max_entries=4, show_spinner=False, hash_funcs={TrainOnCorpus: repr})
def _watched(task: TrainOnCorpus) -> tuple[list[str], list[str]]:
    """Texts and labels of the points."""
    store = CorpusStore()
    corpus = store.corpus(task.corpus)
    texts = store.texts(corpus)
    labels = [""] * len(texts)
    if task.labels:
        labels = [str(one).strip() for one in store.labels(corpus, task.labels)]
    watch = Watch(texts, labels if task.labels else None, n_texts=task.n_watched)
    return [texts[i] for i in watch.watched], [labels[i] for i in watch.watched]


def _points(lesson: Lesson, texts: list[str], groups: list[str]) -> pd.DataFrame:
    if lesson.maps is None:
        return pd.DataFrame()
    return pd.concat(
        pd.DataFrame(
            {"step": one.step, "text": texts, "label": groups, "x": of[:, 0], "y": of[:, 1]}
        )
        for one, of in zip(lesson.snapshots, lesson.maps, strict=True)
    )


def _save(task: TrainOnCorpus, lessons: tuple[Lesson, ...]) -> None:
    """A name for an encoder, and *Save*."""
    st.subheader("Keep the encoder", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds = [one.settings.pairs.kind for one in lessons]
        kind = kinds[0]
        if len(kinds) > 1:
            kind = choose_one(
                st.pills, "Encoder of", kinds, key="training-save-of", format_func=str.capitalize
            )
        name = st.text_input("Name", placeholder="my-encoder", key="training-name")
        pressed = st.button("Save", icon=":material/save:", key="training-save-it")
    if not pressed:
        st.caption(
            "A saved encoder is a model like any other: choose it by its name on every page, or "
            "load its folder with sentence-transformers."
        )
        return
    number = kinds.index(kind)
    try:
        name = check_free_name(name)
        with st.spinner("Saving …"):
            model = shared_text_model(task.model.id)
            store = CorpusStore()
            texts = store.texts(store.corpus(task.corpus))
            found = training.restored(model, texts, task.settings[number], task.folder(number))
            if found is None:
                raise StoreError("This training's weights are not kept any more. Train it again.")
            training.save_encoder(found, model, encoders_folder() / name)
    except NeuralvizError as error:
        show_error(error)
    else:
        st.success(plain(f"Saved as “{name}” in {encoders_folder() / name}."))
