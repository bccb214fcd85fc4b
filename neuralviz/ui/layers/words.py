"""The view that ranks the words of a corpus by how unevenly they change from layer to layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.headlines.layers import describe_corpus
from neuralviz.jobs.layers import FollowWords
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.plots.layers import words_figure
from neuralviz.plots.report import About
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.figures import show_figure
from neuralviz.ui.inputs import ask_texts, put_texts_in_address
from neuralviz.ui.links import USER_SOURCES
from neuralviz.ui.model_choice import choose_text_model, may_load
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.runs import SessionRuns, show_run_panel
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.layers.words import WordVariances

KEY = "layers-words"
RUNS = SessionRuns(KEY)
MAX_TEXTS = 5000
NAMED_WORDS = 7  # of the most uneven words, and of the least uneven


def show() -> None:
    inputs, output = wide_columns([2, 3], KEY)
    with inputs:
        model_id = choose_text_model()
        texts = ask_texts(KEY, {"Sample sentences": _read_sample()}, MAX_TEXTS).texts
    if not texts or not may_load(model_id):
        return
    if st.session_state[f"{KEY}-source"] in USER_SOURCES:
        put_texts_in_address(KEY, texts)
    run = RUNS.start(FollowWords(ModelRef.from_id(model_id), tuple(texts)))
    result: WordVariances | None = run.result if run.is_over else None
    least = None
    if result is not None:
        least = inputs.number_input(
            "Minimum number of occurrences",
            1,
            int(result.occurrences.max(initial=1)),
            result.default_min_count(),
            key=f"{KEY}-least-{run.id}",
            help=(
                "The variance of a rare word depends more on its few sentences than on the "
                "word itself. The paper uses words that occur more than 50 times."
            ),
        )
    with output:
        show_run_panel(RUNS, run, partial(_show_extremes, least))


@st.cache_data(max_entries=1, show_spinner=False)
def _read_sample() -> ReadTexts:
    """All sentences of the sample data, each once."""
    folder = sample_data()
    pairs = read_pairs(Source.from_path(folder / "scored_pairs.csv"))
    texts = [*pairs.sentences1, *pairs.sentences2]
    for name in ("sentences.csv", "triplet_groups.csv"):
        texts += read_texts(Source.from_path(folder / name)).texts
    return ReadTexts(tuple(dict.fromkeys(texts)))


def _describe_run(result: WordVariances, least: int) -> About:
    return About(
        "Words by how unevenly they turn from layer to layer",
        {
            "texts": f"{result.n_read:,}",
            "words": f"that occur {least:,} times or more" if least > 1 else "all",
            "model": result.model_id,
        },
    )


def _show_extremes(least: int | None, result: WordVariances | None, live: bool) -> None:
    """Draw the headline, and the words that turn most and least unevenly."""
    if result is None:
        return
    least = least or result.default_min_count()
    try:
        words = result.rank(least)
    except SettingsError as error:
        if not live:
            show_error(error)
        return
    n = min(NAMED_WORDS, len(words) // 2)
    drawn = pd.concat([words.tail(n)[::-1], words.head(n)[::-1]])
    with slide(KEY, plain(describe_corpus(words["word"].tolist(), words["variance"].to_numpy()))):
        figure = words_figure(
            drawn["word"].tolist(),
            drawn["variance"].to_numpy(),
            drawn["occurrences"].to_numpy(),
            (float(words["variance"].min()), float(words["variance"].max())),
            "Most and least uneven words",
            gap=n,
        )
        provenance = _describe_run(result, least)
        show_figure(figure, "words-by-variance", words, provenance)
    if not live:
        occurrences = many(int(words["occurrences"].sum()), "occurrence")
        st.caption(
            f"{many(len(words), 'word')} with {occurrences} in {many(result.n_read, 'text')}. Each "
            "dot is a word, placed at its variance: that of the cosines between its vectors at "
            "consecutive layers, mean over its occurrences. Larger dots are more frequent words. "
            "Special tokens and punctuation are excluded, and case is ignored."
        )
        with st.expander("All words, in three groups of equal size"):
            variance = st.column_config.NumberColumn(format="%.5f")
            st.dataframe(words, hide_index=True, column_config={"variance": variance})
