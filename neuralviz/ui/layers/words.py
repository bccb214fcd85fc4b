"""The view that ranks the words of a corpus by how unevenly they change from layer to layer."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.headlines.layers import describe_corpus, describe_groups
from neuralviz.jobs.layers import FollowWords
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.plots.layers import words_figure, words_height
from neuralviz.plots.standalone import About
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.layers import ask_more_figures, followed_model_id
from neuralviz.ui.model_choice import may_load
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.run_panel import show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import slide
from neuralviz.ui.texts import ask_texts, put_texts_in_address
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.layers.words import WordGroup, WordVariances

KEY = "layers-words"
RUNS = SessionRuns(KEY)
MAX_TEXTS = 5000
NAMED_WORDS = 7  # of the most uneven words, and of the least uneven
DRAWN_WORDS = 25  # of a group
GROUPS = {
    "low": ("Low: steady change", "lowest"),
    "middle": ("Middle", "middle"),
    "high": ("High: uneven change", "highest"),
}


def show() -> None:
    """Draw the view."""
    inputs, output = wide_columns([2, 3], KEY)
    with inputs:
        model_id = followed_model_id()
        texts = ask_texts(KEY, {"Sample sentences": _read_sample()}, MAX_TEXTS).texts
        if not texts:
            st.caption("Enter some texts to start. The more, the better.")
    if not texts or not may_load(model_id):
        return
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    if st.session_state[f"{KEY}-source"] != "Example" and (
        st.session_state.get(f"{KEY}-kept") != digest
    ):
        put_texts_in_address(KEY, texts)
        st.session_state[f"{KEY}-kept"] = digest
    run = RUNS.start(FollowWords(ModelRef.from_id(model_id), tuple(texts)))
    result: WordVariances | None = run.result if run.is_over else None
    with inputs:
        least = _choose_least(result, run.id) if result is not None else None
    with output:
        show_run_panel(RUNS, run, partial(_show_extremes, least))
    if result is None or least is None or not ask_more_figures():
        return
    try:
        _show_groups(result.groups(least), _describe_run(result, least))
    except SettingsError:
        return  # the page says so in place of the figure


@st.cache_data(max_entries=1, show_spinner=False)
def _read_sample() -> ReadTexts:
    """All sentences of the sample data, each once."""
    folder = sample_data()
    pairs = read_pairs(Source.from_path(folder / "scored_pairs.csv"))
    texts = [*pairs.sentences1, *pairs.sentences2]
    for name in ("sentences.csv", "triplet_groups.csv"):
        texts += read_texts(Source.from_path(folder / name)).texts
    return ReadTexts(tuple(dict.fromkeys(texts)))


def _choose_least(result: WordVariances, run: str) -> int:
    """A field for how often a word must occur."""
    return st.number_input(
        "Minimum number of occurrences",
        1,
        int(result.occurrences.max(initial=1)),
        result.default_min_count(),
        key=f"{KEY}-least-{run}",
        help=(
            "The variance of a rare word depends more on its few sentences than on the "
            "word itself. The paper uses words that occur more than 50 times."
        ),
    )


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
    """Draw the main sentence, and the words that turn most and least unevenly."""
    if result is None:
        return
    if least is None:
        least = result.default_min_count()
    try:
        groups = result.groups(least)
    except SettingsError as error:
        if not live:
            show_error(error)
        return
    words = [word for group in groups for word in group.words]
    variance, occurrences = (
        np.concatenate([getattr(group, name) for group in groups])
        for name in ("variance", "occurrences")
    )
    n = min(NAMED_WORDS, len(words) // 2)
    drawn = [*range(len(words) - 1, len(words) - 1 - n, -1), *range(n - 1, -1, -1)]
    with slide(KEY):
        show_headline(plain(describe_corpus(groups)), key=KEY)
        show_figure(
            words_figure(
                [words[i] for i in drawn],
                variance[drawn],
                occurrences[drawn],
                (float(variance.min()), float(variance.max())),
                "Most and least uneven words",
                gap=n,
            ),
            key=f"{KEY}-extremes",
            numbers=lambda: _all_words(groups),
            name="words-by-variance",
            height=words_height(2 * n + 1),
            provenance=_describe_run(result, least),
        )
    if not live:
        counted = f"{many(len(words), 'word')} with {many(int(occurrences.sum()), 'occurrence')}"
        st.caption(
            f"{counted} in {many(result.n_read, 'text')}. Each dot is a word, placed at its "
            "variance: that of the cosines between its vectors at consecutive layers, mean over "
            "its occurrences. Larger dots are more frequent words."
        )


def _show_groups(groups: Sequence[WordGroup], provenance: About) -> None:
    """Draw all words in three groups of equal size, as in the paper's Table I."""
    variance = np.concatenate([group.variance for group in groups])
    limits = (float(variance.min()), float(variance.max()))
    with slide(f"{KEY}-groups"):
        show_headline(describe_groups(groups), key=f"{KEY}-groups")
        for column, group in zip(wide_columns(3, f"{KEY}-groups"), groups, strict=True):
            with column:
                _show_group(group, limits, provenance)
    st.caption(
        "All three groups have the same size and the same scale. Special tokens and punctuation "
        "are excluded. Words split into several tokens are averaged, and case is ignored. "
        "The tokenizer decides what a word is: *don't* becomes *don* and *t*."
    )
    with st.expander("All words"):
        st.dataframe(
            _all_words(groups),
            hide_index=True,
            column_config={"variance": st.column_config.NumberColumn(format="%.5f")},
        )


def _show_group(group: WordGroup, limits: tuple[float, float], provenance: About) -> None:
    n = len(group.words)
    title, place = GROUPS[group.name]
    start = {"low": 0, "middle": max(0, (n - DRAWN_WORDS) // 2)}.get(
        group.name, max(0, n - DRAWN_WORDS)
    )
    drawn = slice(start, start + DRAWN_WORDS)
    show_figure(
        words_figure(
            group.words[drawn], group.variance[drawn], group.occurrences[drawn], limits, title
        ),
        key=f"{KEY}-{group.name}",
        numbers=lambda: _make_table(group),
        name=f"words-{group.name}",
        height=words_height(min(n, DRAWN_WORDS)),
        alt=f"{title}: {', '.join(group.words[drawn])}",
        provenance=provenance,
    )
    if n > DRAWN_WORDS:
        st.caption(f"Showing the {place} {DRAWN_WORDS} of {n:,} words in this group.")


def _all_words(groups: Sequence[WordGroup]) -> pd.DataFrame:
    return pd.concat([_make_table(group) for group in groups])


def _make_table(group: WordGroup) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "word": group.words,
            "group": group.name,
            "variance": group.variance,
            "occurrences": group.occurrences,
        }
    )
