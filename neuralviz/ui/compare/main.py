"""The compare page below its title: its widgets, the comparison that they ask for, its result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import streamlit as st

from neuralviz.embedders.specs import full_method_labels
from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.similarity import (
    disagreements,
    furthest_apart,
    least_alike,
    usable_labels,
)
from neuralviz.headlines.similar_texts import describe_similar_texts
from neuralviz.jobs.comparing import Compare, describe_missing
from neuralviz.paths import sample_data
from neuralviz.plots.standalone import About
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.compare.show import (
    AS_GIVEN,
    CLUSTERED,
    Look,
    choose_pair,
    choose_texts,
    chosen_pair,
    forget_pair,
    show_disagreements,
    show_framed,
    show_heatmaps,
    show_neural_pairs,
    show_products,
    show_spread,
    show_two_methods,
    show_warnings,
)
from neuralviz.ui.links import one_history_entry, result_view_id
from neuralviz.ui.method_choice import NOTHING, choose_method, needs_asking
from neuralviz.ui.page import dim_old_results, plain, show_error, wide_columns
from neuralviz.ui.runs import RunSentences, SessionRuns, describe_finish, show_run_panel
from neuralviz.ui.stage import hide_on_stage, show_headline, show_on_stage, slide
from neuralviz.ui.texts import ask_texts, put_texts_in_address
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.embedders import EmbedderSpec
    from neuralviz.jobs import Run
    from neuralviz.jobs.comparing import Comparison

RUNS = SessionRuns("compare")
LABELS = "compare-labels"  # session state: the labels of each run's texts, by id
MAX_TEXTS = 300
ORDER_WIDTH = 190  # px
QUICK = {"precision": "fast"}  # the default here: a page should answer soon
FIRST_METHODS = ("mean", "neural", "sbert-wk", NOTHING)
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
    cells = list(zip(corpus.labels["topic"], corpus.labels["form"], strict=True))
    rows = [cells.index((topic, form)) for topic in TOPICS for form in FORMS]
    labels = {name: tuple(corpus.labels[name][row] for row in rows) for name in ("topic", "form")}
    return ReadTexts(tuple(corpus.texts[row] for row in rows), labels=labels)


def show() -> None:
    """Draw the page: texts, methods, *Compare*, and the comparison."""
    inputs, choices = wide_columns(2, "compare-given")
    with inputs:
        read = ask_texts("compare", load_examples(), max_texts=MAX_TEXTS, height=109)
    with choices:
        specs = _choose_methods()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            pressed = st.button("Compare", type="primary", icon=":material/compare_arrows:")
            with show_on_stage("order", width="content"):
                order = st.selectbox(
                    "Order of texts",
                    [AS_GIVEN, CLUSTERED, *(f"By {name}" for name in usable_labels(read.labels))],
                    key="order",
                    bind="query-params",
                    width=ORDER_WIDTH,
                )
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
    if current_run is None:
        press = " Press **Compare** to update it." if has_texts else ""
        st.caption(f"The result below is of other texts or settings.{press}")
    task = cast("Compare", run.task)
    provenance = About(
        f"Cosine similarity of {many(len(task.texts), 'text')}",
        {"methods": "; ".join(full_method_labels(task.specs))},
    )
    labels = st.session_state.get(LABELS, {}).get(run.id, {})
    look = Look(labels, order or AS_GIVEN, one_scale, provenance)
    with dim_old_results("compare", current_run is None):
        show_run_panel(
            RUNS,
            run,
            partial(_show_comparison, run, look),
            sentences=RunSentences(
                start="Loading the models and embedding the first texts …",
                describe_stopped=describe_stopped,
                describe_done=lambda _: describe_finish(run),
            ),
        )


def _choose_methods() -> tuple[EmbedderSpec, ...] | None:
    """Widgets for up to four methods with their settings; None where a setting is not valid."""
    specs: list[EmbedderSpec] = []
    is_valid = True
    places = [*st.columns(2), *st.columns(2)]
    for number, (place, first) in enumerate(zip(places, FIRST_METHODS, strict=True), 1):
        with place:
            try:
                spec = choose_method(
                    f"m{number}", f"Method {number}", first, QUICK, optional=number > 2
                )
            except NeuralvizError as error:
                show_error(error)
                is_valid = False
            else:
                specs += [spec] if spec else []
    twice = next((spec for spec in specs if specs.count(spec) > 1), None)
    if is_valid and twice is not None:
        st.error(
            plain(f"{twice.method} is selected twice with the same settings. Change one of them.")
        )
        is_valid = False
    return tuple(specs) if is_valid else None


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
        view = result_view_id("compare")
        run = RUNS.recall(task, view)
        if run is None and (pressed or (is_example and not needs_asking(specs))):
            run = RUNS.start(task, view=view)
        elif run is not None and pressed and run.is_over:
            failed = run.status != "done" or any(embedded.error for embedded in run.result)
            run = RUNS.start(task, again=failed, view=view)
    if run is None:
        return None
    if run is not before:
        forget_pair()
    kept = st.session_state.get(LABELS, {})
    earlier = {former.id: kept[former.id] for former in RUNS.list_runs() if former.id in kept}
    st.session_state[LABELS] = {**earlier, run.id: dict(read.labels)}
    return run


def describe_stopped(comparison: Comparison) -> str:
    """A sentence on which methods a stopped comparison has not finished."""
    unfinished = describe_missing(comparison)
    return f"Stopped. {unfinished}." if unfinished else "Stopped after the last text."


def _show_comparison(run: Run[Comparison], look: Look, comparison: Comparison, live: bool) -> None:
    """Draw the main sentence and the heatmaps, also live; the other figures at the end."""
    texts = comparison[0].texts
    results = [part.similarity for part in comparison if part.similarity is not None]
    if chosen_pair(len(texts)) is None and len(results) > 1 and not live:
        pair = furthest_apart(*(results[place] for place in least_alike(results)))
        if pair is not None:
            choose_pair(*pair)
    # also where it was stopped
    complete = [result for result in results if result.has_vector.all()]
    headline = plain(describe_similar_texts(complete, look.labels))
    with slide("heatmaps"):
        show_headline(headline, key="compare")
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
    show_neural_pairs(cast("Compare", run.task).specs, comparison)
    if len(results) > 1:
        show_two_methods(comparison, results, look, headline)
        show_disagreements(run.id, results, disagreements(results))
    show_spread(results, look.provenance)
