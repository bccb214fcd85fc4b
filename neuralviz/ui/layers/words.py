"""The view that ranks the words of a corpus by how unevenly they change from layer to layer."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.jobs.layers import FollowWords
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.plots.words import words_figure, words_height
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.writing import frame_csv
from neuralviz.ui.figures import show_figure
from neuralviz.ui.layers import followed_model_id
from neuralviz.ui.model_choice import may_load
from neuralviz.ui.page import show_error
from neuralviz.ui.run_panel import SessionRuns, run_panel
from neuralviz.ui.texts import put_texts_in_address, texts_input
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.layers.words import WordGroup, WordVariances

RUNS = SessionRuns("layers-words")
MAX_TEXTS = 5000
DRAWN_WORDS = 25  # of a group
GROUPS = {
    "low": ("Low: steady change", "lowest"),
    "middle": ("Middle", "middle"),
    "high": ("High: uneven change", "highest"),
}


def show() -> None:
    """The view."""
    st.markdown(
        "A word's vector changes direction a little at each layer. For some words, all "
        "changes are about the same size; for others, a few layers change the vector far more "
        "than the rest. The **variance** of the cosine similarities of consecutive layers "
        "measures this. SBERT-WK gives words with a high variance more weight."
    )
    model_id = followed_model_id()
    texts = texts_input("layers-words", {"Sample sentences": _sample()}, MAX_TEXTS).texts
    if not texts:
        st.caption("Enter some texts to start. The more, the better.")
        return
    if not may_load(model_id):
        return
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    if st.session_state["layers-words-source"] != "Example" and (
        st.session_state.get("layers-words-kept") != digest
    ):
        put_texts_in_address("layers-words", texts)
        st.session_state["layers-words-kept"] = digest
    run = RUNS.start(FollowWords(ModelRef.now(model_id), tuple(texts)))
    run_panel(RUNS, run, partial(_show, key=run.id))


@st.cache_data(max_entries=1, show_spinner=False)
def _sample() -> ReadTexts:
    """All sentences of the sample data, each once."""
    folder = sample_data()
    pairs = read_pairs(Source.at(folder / "scored_pairs.csv"))
    texts = [*pairs.sentences1, *pairs.sentences2]
    for name in ("sentences.csv", "triplet_groups.csv"):
        texts += read_texts(Source.at(folder / name)).texts
    return ReadTexts(tuple(dict.fromkeys(texts)))


def _show(result: WordVariances | None, live: bool, *, key: int) -> None:
    if result is None:
        return
    most = int(result.occurrences.max(initial=1))
    least = result.default_min_count()
    if not live:
        least = st.number_input(
            "Minimum number of occurrences",
            1,
            most,
            least,
            key=f"layers-words-least-{key}",
            width=300,
            help=(
                "The variance of a rare word depends more on its few sentences than on the "
                "word itself. The paper uses words that occur more than 50 times."
            ),
        )
    try:
        groups = result.groups(least)
    except NeuralvizError as error:
        if not live:
            show_error(error)
        return
    variance = np.concatenate([group.variance for group in groups])
    limits = (float(variance.min()), float(variance.max()))
    occurrences = sum(int(group.occurrences.sum()) for group in groups)
    st.markdown(
        f"**{many(len(variance), 'word')}** with {many(occurrences, 'occurrence')} in "
        f"{many(result.done, 'text')}, in three groups of equal size."
    )
    for column, group in zip(st.columns(3, gap="medium"), groups, strict=True):
        with column:
            _group(group, limits)
    st.caption(
        "Each dot is a word, placed at the mean over its occurrences; larger dots are more "
        "frequent words. All three groups use the same scale. Special tokens and punctuation "
        "are excluded. Words split into several tokens are averaged, and case is ignored. "
        "The tokenizer decides what a word is: *don't* becomes *don* and *t*."
    )
    if not live:
        _table(groups)


def _group(group: WordGroup, limits: tuple[float, float]) -> None:
    n = len(group.words)
    title, which = GROUPS[group.name]
    start = {"low": 0, "middle": max(0, (n - DRAWN_WORDS) // 2)}.get(
        group.name, max(0, n - DRAWN_WORDS)
    )
    drawn = slice(start, start + DRAWN_WORDS)
    show_figure(
        words_figure(
            group.words[drawn], group.variance[drawn], group.occurrences[drawn], limits, title
        ),
        key=f"layers-words-{group.name}",
        numbers=lambda: _numbers(group),
        name=f"words-{group.name}",
        height=words_height(min(n, DRAWN_WORDS)),
        alt=f"{title}: {', '.join(group.words[drawn])}",
    )
    if n > DRAWN_WORDS:
        st.caption(f"Showing the {which} {DRAWN_WORDS} of {n:,} words in this group.")


def _table(groups: Sequence[WordGroup]) -> None:
    with st.expander("All words"):
        table = pd.concat([_numbers(group) for group in groups])
        st.dataframe(
            table,
            hide_index=True,
            column_config={"variance": st.column_config.NumberColumn(format="%.5f")},
        )
        st.download_button(
            "All words (CSV)",
            lambda: frame_csv(table),
            "words.csv",
            "text/csv",
            icon=":material/download:",
            key="layers-words-all",
            on_click="ignore",
        )


def _numbers(group: WordGroup) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "word": group.words,
            "group": group.name,
            "variance": group.variance,
            "occurrences": group.occurrences,
        }
    )
