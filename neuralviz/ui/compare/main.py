"""The compare page below its title."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.evaluation.similarity import disagreements
from neuralviz.jobs.comparing import Compare, missing
from neuralviz.paths import sample_data
from neuralviz.plots.compare import text_names
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.compare.heatmaps import show_heatmaps
from neuralviz.ui.compare.looking import (
    choose_order,
    choose_pair,
    chosen_pair,
    forget_pair,
    labels_of,
    order_of,
)
from neuralviz.ui.compare.methods import (
    show_disagreements,
    show_spread,
    show_two_methods,
    show_warnings,
)
from neuralviz.ui.compare.pair import show_pair
from neuralviz.ui.compare.settings import choose_methods, needs_asking
from neuralviz.ui.page import dimmed
from neuralviz.ui.run_panel import SessionRuns, Words, done_in, run_panel
from neuralviz.ui.texts import kept_under, put_in_address, texts_input

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neuralviz.embedders import EmbedderSpec
    from neuralviz.jobs import Run
    from neuralviz.jobs.comparing import Comparison

RUNS = SessionRuns("compare")
LABELS = "compare-labels"  # where the session keeps the labels of the texts that are shown
LIVE_SECONDS = 0.5
LIVE_SECONDS_OF_MANY = 1.5
MANY_TEXTS = 100
MAX_TEXTS = 300
EXAMPLES = {
    "Style and content": "style_and_content.csv",
    "Word order": "word_order.csv",
    "Rare words": "common_topic_rare_words.csv",
    "Topics": "sentences.csv",
}


@st.cache_data(max_entries=1, show_spinner=False)
def examples() -> dict[str, ReadTexts]:
    """Sets from the sample data, with their labels."""
    return {name: read_texts(Source.at(sample_data() / file)) for name, file in EXAMPLES.items()}


def show() -> None:
    """Texts, methods, *Compare*, and the comparison."""
    read = texts_input("compare", examples(), max_texts=MAX_TEXTS)
    specs = choose_methods()
    button, place, _ = st.columns([1, 2, 4], vertical_alignment="bottom")
    with place:
        order = choose_order(dict(read.labels))
    pressed = button.button(
        "Compare", type="primary", icon=":material/compare_arrows:", width="stretch"
    )
    if len(read.texts) < 2:
        say = st.info if pressed or read.texts else st.caption
        say("A comparison needs at least two texts.")
    is_old = True
    if specs is not None and len(read.texts) > 1:
        is_old = _compare(specs, read, pressed)
    run = RUNS.last()
    if run is None:
        return
    if is_old:
        st.caption(
            "The texts or settings have changed. Press **Compare** to update what is shown below."
        )
    has_many = len(run.result[0].texts) > MANY_TEXTS
    with dimmed("compare", is_old):
        run_panel(
            RUNS,
            run,
            partial(_show, run, st.session_state.get(LABELS, {}), order),
            words=Words(
                begins="Loading the models and embedding the first texts …",
                stopped=stopped_in_words,
                done=lambda _: done_in(run),
            ),
            bar_stays=True,
            every=LIVE_SECONDS_OF_MANY if has_many else LIVE_SECONDS,
        )


def _compare(specs: tuple[EmbedderSpec, ...], read: ReadTexts, pressed: bool) -> bool:
    """Start a comparison where it was asked for; that of an example starts by itself.

    Returns:
        Whether what is shown is of other texts or settings.
    """
    task = Compare.now(specs, read.texts)
    is_example = st.session_state.get("compare-source") == "Example"
    if pressed and not is_example:
        put_in_address("compare", read.texts)
    before: Run[Comparison] | None = RUNS.last()
    run = RUNS.recall(task, kept_under("compare"))
    if run is None and (pressed or (is_example and not needs_asking(specs))):
        run = RUNS.start(task, view=kept_under("compare"))
    elif run is not None and pressed and run.is_over:
        failed = run.status != "done" or any(one.error for one in run.result)
        run = RUNS.start(task, again=failed, view=kept_under("compare"))
    if run is None:
        return True
    if run is not before:
        forget_pair()
    st.session_state[LABELS] = dict(read.labels)
    return False


def stopped_in_words(comparison: Comparison) -> str:
    """What is said of a comparison that was stopped."""
    unfinished = missing(comparison)
    return f"Stopped. {unfinished}." if unfinished else "Stopped after the last text."


def _show(
    run: Run[Comparison],
    labels: Mapping[str, tuple[str, ...]],
    order: str,
    comparison: Comparison,
    live: bool,
) -> None:
    """Heatmaps, live while methods are under way; all the rest once they are done."""
    if live:
        show_heatmaps(comparison, labels, order, live)
        return
    texts = comparison[0].texts
    done = [one.similarity for one in comparison if one.similarity is not None]
    found = disagreements(done) if len(done) > 1 else None
    if chosen_pair(len(texts)) is None and found is not None and len(found.first):
        choose_pair(int(found.first[0]), int(found.second[0]))
    show_heatmaps(comparison, labels, order, live)
    if not done:
        return
    show_warnings(comparison, done)
    if found is not None:
        show_disagreements(run.id, done, found)
    task = run.task
    assert isinstance(task, Compare)
    show_pair(task.specs, comparison, done)
    if len(done) > 1:
        of_order = labels_of(labels, order)
        names, places = text_names(texts, of_order), order_of(comparison, of_order, order)
        show_two_methods(done, names, places)
    show_spread(done)
