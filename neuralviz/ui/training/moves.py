"""Where the texts went while an encoder was trained, and which have new neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.plots.theme import shorten
from neuralviz.plots.training import colours_of_groups, moving_map_figure
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.in_words import moves_point, new_neighbours
from neuralviz.training.snapshots import Watch
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import show_figure
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.point import show_point
from neuralviz.ui.stage import off_stage, slide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.plots.standalone import About
    from neuralviz.training.in_words import NewNeighbours
    from neuralviz.training.record import Lesson

TOLD, MORE = 3, 12  # texts whose neighbours changed most: at once, and behind the expander
LETTERS = 72  # of each text


@st.fragment
def show_moves(
    run: Run[tuple[Lesson, ...]],
    task: TrainOnCorpus,
    lessons: tuple[Lesson, ...],
    about: About,
) -> None:
    """The map before, after and between in one frame, and the texts that have new neighbours."""
    drawn = [one for one in lessons if one.maps is not None]
    kinds = [one.settings.pairs.kind for one in drawn]
    try:
        texts, groups = _watched(task)
    except NeuralvizError as error:  # deleted meanwhile
        show_error(error)
        return
    with slide("training-moves"):
        said = st.container()
        with off_stage("training-moves-choice"), st.container(horizontal=True):
            kind = kinds[0]
            if len(kinds) > 1:
                kind = choose_one(
                    st.pills, "Pairs on the map", kinds, key="training-map-of", default=kind,
                    format_func=str.capitalize,
                )  # fmt: skip
            lesson = drawn[kinds.index(kind)]
            steps = [one.step for one in lesson.snapshots]
            shown = st.select_slider(
                "After step", list(range(len(steps))), value=len(steps) - 1,
                format_func=lambda place: f"{steps[place]:,}" if steps[place] else "before",
                key=f"training-snapshot-{run.id}-{kind}",
            )  # fmt: skip
        changed = new_neighbours(lesson, TOLD + MORE)
        with said:
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
                height=520,
                about=about,
            )
        with right, off_stage("training-changed"):
            _tell(changed[:TOLD], texts)
            if changed[TOLD:]:
                with st.expander(f"{len(changed[TOLD:])} more texts"):
                    _tell(changed[TOLD:], texts)


def _tell(changed: Sequence[NewNeighbours], texts: Sequence[str]) -> None:
    """What was nearest to some texts, and what is now."""
    for one in changed:
        text, before, now = (
            plain(shorten(texts[i], LETTERS)) for i in (one.text, one.before, one.after)
        )
        st.markdown(f"**{text}**  \nBefore, the nearest was: {before}  \nNow: {now}")


@st.cache_data(max_entries=4, show_spinner=False, hash_funcs={TrainOnCorpus: repr})
def _watched(task: TrainOnCorpus) -> tuple[list[str], list[str]]:
    """Texts of the points, and their labels of the column with fewest: they have colours."""
    store = CorpusStore()
    corpus = store.corpus(task.corpus)
    texts = store.texts(corpus)
    columns = {
        one.name: store.label_names(corpus, one.name)
        for one in corpus.columns
        if one.kind == "text"
    }
    watch = Watch(texts, columns[task.labels] if task.labels else None, n_texts=task.n_watched)
    told_apart = [labels for labels in columns.values() if len(set(labels)) > 1]
    coarsest = min(told_apart, key=lambda labels: len(set(labels)), default=[""] * len(texts))
    return [texts[i] for i in watch.watched], [coarsest[i] for i in watch.watched]


def _points(lesson: Lesson, texts: list[str], groups: list[str]) -> pd.DataFrame:
    if lesson.maps is None:
        return pd.DataFrame()
    return pd.concat(
        pd.DataFrame(
            {"step": one.step, "text": texts, "label": groups, "x": of[:, 0], "y": of[:, 1]}
        )
        for one, of in zip(lesson.snapshots, lesson.maps, strict=True)
    )
