"""The compare page below its title."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders.specs import full_method_labels
from neuralviz.evaluation.similarity import disagreements, furthest_apart, least_alike
from neuralviz.headlines.similar_texts import describe_similar_texts
from neuralviz.jobs.comparing import Compare, describe_missing
from neuralviz.paths import sample_data
from neuralviz.plots.compare import text_names
from neuralviz.plots.standalone import About
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.compare.heatmaps import Look, show_heatmaps
from neuralviz.ui.compare.methods import (
    show_disagreements,
    show_spread,
    show_two_methods,
    show_warnings,
)
from neuralviz.ui.compare.pair import choose_texts, show_framed, show_neural_pairs, show_products
from neuralviz.ui.compare.selection import (
    choose_order,
    choose_pair,
    chosen_pair,
    forget_pair,
    order_labels,
    text_order,
)
from neuralviz.ui.compare.settings import choose_methods, needs_asking
from neuralviz.ui.headline import show_headline
from neuralviz.ui.links import one_history_entry, result_view_id
from neuralviz.ui.page import dim_old_results, plain, wide_columns
from neuralviz.ui.run_panel import RunSentences, describe_finish, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import hide_on_stage, show_on_stage, slide
from neuralviz.ui.texts import ask_texts, put_texts_in_address
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.embedders import EmbedderSpec
    from neuralviz.jobs import Run
    from neuralviz.jobs.comparing import Comparison

RUNS = SessionRuns("compare")
LABELS = "compare-labels"  # session state: the labels of each run's texts, by id
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
TOPICS = ("railways", "money", "cooking")  # of the example corpus
FORMS = ("headline", "question", "diary", "complaint")


@st.cache_data(max_entries=1, show_spinner=False)
def load_examples() -> dict[str, ReadTexts]:
    """Example texts from the sample data, with their labels."""
    sets = {
        name: read_texts(Source.from_path(sample_data() / file)) for name, file in EXAMPLES.items()
    }
    return {**sets, "From the corpus": _read_corpus_examples()}


def _read_corpus_examples() -> ReadTexts:
    """The first text of the example corpus for each of a few forms and topics."""
    corpus = read_texts(Source.from_path(sample_data() / "topics.csv"))
    labels = corpus.labels
    cells = list(zip(labels["topic"], labels["form"], strict=True))
    rows = [cells.index((topic, form)) for topic in TOPICS for form in FORMS]
    texts = tuple(corpus.texts[row] for row in rows)
    columns = ("topic", "form")
    return ReadTexts(
        texts, labels={name: tuple(labels[name][row] for row in rows) for name in columns}
    )


def show() -> None:
    """Draw the page: texts, methods, *Compare*, and the comparison."""
    inputs, choices = wide_columns(2, "compare-given")
    with inputs:
        read = ask_texts("compare", load_examples(), max_texts=MAX_TEXTS, height=109)
    with choices:
        specs = choose_methods()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            pressed = st.button("Compare", type="primary", icon=":material/compare_arrows:")
            with show_on_stage("order", width="content"):
                order = choose_order(dict(read.labels))
            one_scale = st.toggle(
                "One scale",
                key="one-scale",
                bind="query-params",
                width="content",
                help="The same colours for all methods. Otherwise each heatmap uses all colours.",
            )
    has_texts = len(read.texts) > 1
    if not has_texts:
        write_hint = st.info if pressed or read.texts else st.caption
        write_hint("A comparison needs at least two texts.")
    current_run = None
    if specs is not None and has_texts:
        current_run = _start_comparison(specs, read, pressed)
    run: Run[Comparison] | None = current_run or RUNS.last_to_show()
    if run is None:
        return
    is_old = current_run is None
    if is_old:
        press = " Press **Compare** to update it." if has_texts else ""
        st.caption(f"The result below is of other texts or settings.{press}")
    has_many = len(run.result[0].texts) > MANY_TEXTS
    labels = st.session_state.get(LABELS, {}).get(run.id, {})
    look = Look(labels, order, one_scale, _describe_run(run))
    with dim_old_results("compare", is_old):
        show_run_panel(
            RUNS,
            run,
            partial(_show_comparison, run, look),
            sentences=RunSentences(
                start="Loading the models and embedding the first texts …",
                describe_stopped=describe_stopped,
                describe_done=lambda _: describe_finish(run),
            ),
            interval=LIVE_SECONDS_OF_MANY if has_many else LIVE_SECONDS,
        )


def _describe_run(run: Run[Comparison]) -> About:
    """Title and settings of a comparison, for downloads."""
    task = run.task
    assert isinstance(task, Compare)
    return About(
        f"Cosine similarity of {many(len(task.texts), 'text')}",
        {"methods": "; ".join(full_method_labels(task.specs))},
    )


def _start_comparison(
    specs: tuple[EmbedderSpec, ...], read: ReadTexts, pressed: bool
) -> Run[Comparison] | None:
    """The comparison of these texts; starts it for a press, and for an example without one."""
    task = Compare.for_current_models(specs, read.texts)
    is_example = st.session_state.get("compare-source") == "Example"
    before: Run[Comparison] | None = RUNS.last()
    with one_history_entry():
        if pressed and not is_example:
            put_texts_in_address("compare", read.texts)
        run = RUNS.recall(task, result_view_id("compare"))
        if run is None and (pressed or (is_example and not needs_asking(specs))):
            run = RUNS.start(task, view=result_view_id("compare"))
        elif run is not None and pressed and run.is_over:
            failed = run.status != "done" or any(embedded.error for embedded in run.result)
            run = RUNS.start(task, again=failed, view=result_view_id("compare"))
    if run is None:
        return None
    if run is not before:
        forget_pair()
    kept = st.session_state.get(LABELS, {})
    remembered = {
        earlier.id: kept[earlier.id] for earlier in RUNS.list_runs() if earlier.id in kept
    }
    st.session_state[LABELS] = {**remembered, run.id: dict(read.labels)}
    return run


def describe_stopped(comparison: Comparison) -> str:
    """A sentence on which methods a stopped comparison has not finished."""
    unfinished = describe_missing(comparison)
    return f"Stopped. {unfinished}." if unfinished else "Stopped after the last text."


def _show_comparison(run: Run[Comparison], look: Look, comparison: Comparison, live: bool) -> None:
    """Draw the main sentence and the heatmaps, also live; the other figures at the end."""
    texts = comparison[0].texts
    results = [part.similarity for part in comparison if part.similarity is not None]
    differences = disagreements(results) if len(results) > 1 and not live else None
    if chosen_pair(len(texts)) is None and differences is not None:
        pair = furthest_apart(*(results[place] for place in least_alike(results)))
        if pair is not None:
            choose_pair(*pair)
    task = run.task
    assert isinstance(task, Compare)
    with slide("heatmaps"):
        # also where it was stopped
        complete = [result for result in results if result.has_vector.all()]
        show_headline(plain(describe_similar_texts(complete, look.labels)), key="compare")
        if not live:
            show_framed(texts, "heatmaps")
        heatmaps, pair_column = wide_columns([3, 1], "compare-seen")
        with heatmaps:
            show_heatmaps(comparison, look, live)
        with pair_column, hide_on_stage("compare-pair"):
            if live or not results:
                st.caption("Each cell is a pair of texts. Bright cells are similar pairs.")
            else:
                choose_texts(texts)
                show_products(results)
    if live or not results:
        return
    show_warnings(comparison, results)
    show_neural_pairs(task.specs, comparison)
    if len(results) > 1 and differences is not None:
        groups = order_labels(look.labels, look.order)
        names, places = text_names(texts, groups), text_order(comparison, groups, look.order)
        show_two_methods(results, names, places, groups, look.provenance)
        show_disagreements(run.id, results, differences)
    show_spread(results, look.provenance)
