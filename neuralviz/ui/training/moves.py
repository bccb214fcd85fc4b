"""How the texts move on the map during a training, and which get new neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.headlines.training import describe_moves
from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.plots.theme import shorten
from neuralviz.plots.training import colours_of_groups, moving_map_figure
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.record import new_neighbours
from neuralviz.training.snapshots import Watch
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.stage import hide_on_stage, slide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.plots.standalone import About
    from neuralviz.training.record import Lesson, NewNeighbours

N_VISIBLE = 3  # texts whose neighbours changed most
N_UNFOLDED = 12  # further ones, in the expander
MAX_LENGTH = 72  # characters


@st.fragment
def show_moves(
    run: Run[tuple[Lesson, ...]],
    task: TrainOnCorpus,
    lessons: tuple[Lesson, ...],
    provenance: About,
) -> None:
    """Draw the map at every snapshot, in one frame, and list texts with new neighbours."""
    drawn = [lesson for lesson in lessons if lesson.maps is not None]
    kinds = [lesson.settings.pairs.kind for lesson in drawn]
    try:
        texts, groups = _load_watched(task)
    except NeuralvizError as error:  # the corpus was deleted
        show_error(error)
        return
    with slide("training-moves"):
        point_place = st.container()
        with hide_on_stage("training-moves-choice"), st.container(horizontal=True):
            kind = kinds[0]
            if len(kinds) > 1:
                kind = choose_one(
                    st.pills, "Pairs on the map", kinds, key="training-map-of", default=kind,
                    format_func=str.capitalize,
                )  # fmt: skip
            lesson = drawn[kinds.index(kind)]
            steps = [snapshot.step for snapshot in lesson.snapshots]
            step_index = st.select_slider(
                "After step", list(range(len(steps))), value=len(steps) - 1,
                format_func=lambda place: f"{steps[place]:,}" if steps[place] else "before",
                key=f"training-snapshot-{run.id}-{kind}",
            )  # fmt: skip
        changed = new_neighbours(lesson, N_VISIBLE + N_UNFOLDED)
        with point_place:
            show_headline(describe_moves(lesson, changed), key="training-moves")
        left_column, right_column = wide_columns([2, 1], "training-moves-seen")
        with left_column:
            show_figure(
                moving_map_figure(
                    np.asarray(lesson.maps),
                    step_index,
                    steps,
                    texts,
                    groups,
                    colours_of_groups(groups),
                ),
                key=f"training-map-{run.id}-{kind}",
                numbers=lambda: _tabulate_points(lesson, texts, groups),
                name=f"map while training {kind}",
                height=520,
                provenance=provenance,
            )
        with right_column, hide_on_stage("training-changed"):
            _list_changes(changed[:N_VISIBLE], texts)
            if changed[N_VISIBLE:]:
                with st.expander(f"{len(changed[N_VISIBLE:])} more texts"):
                    _list_changes(changed[N_VISIBLE:], texts)


def _list_changes(changed: Sequence[NewNeighbours], texts: Sequence[str]) -> None:
    """List the nearest neighbour of some texts before and after the training."""
    for change in changed:
        text, before, after = (
            plain(shorten(texts[i], MAX_LENGTH)) for i in (change.text, change.before, change.after)
        )
        st.markdown(f"**{text}**  \nBefore, the nearest was: {before}  \nNow: {after}")


@st.cache_data(max_entries=4, show_spinner=False, hash_funcs={TrainOnCorpus: repr})
def _load_watched(task: TrainOnCorpus) -> tuple[list[str], list[str]]:
    """The texts of the points, and their labels in the column with the fewest different ones."""
    store = CorpusStore()
    corpus = store.corpus(task.corpus)
    texts = store.texts(corpus)
    columns = {
        column.name: store.label_names(corpus, column.name)
        for column in corpus.columns
        if column.kind == "text"
    }
    watch = Watch(texts, columns[task.labels] if task.labels else None, n_texts=task.n_watched)
    told_apart = [labels for labels in columns.values() if len(set(labels)) > 1]
    coarsest = min(told_apart, key=lambda labels: len(set(labels)), default=[""] * len(texts))
    return [texts[i] for i in watch.watched], [coarsest[i] for i in watch.watched]


def _tabulate_points(lesson: Lesson, texts: list[str], groups: list[str]) -> pd.DataFrame:
    if lesson.maps is None:
        return pd.DataFrame()
    return pd.concat(
        pd.DataFrame(
            {
                "step": snapshot.step,
                "text": texts,
                "label": groups,
                "x": points[:, 0],
                "y": points[:, 1],
            }
        )
        for snapshot, points in zip(lesson.snapshots, lesson.maps, strict=True)
    )
