"""The compare page below its title: its widgets, the comparison and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.embedders import EmbedderSpec, embedder_spec
from neuralviz.embedders.specs import full_method_labels, short_labels
from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.similarity import (
    Similarity,
    are_ordered,
    disagreements,
    furthest_apart,
    least_alike,
    most_similar,
    order_apart,
    order_by_cluster,
    order_by_label,
    pair_indices,
    rank_differences,
    usable_labels,
)
from neuralviz.headlines import COSINE_IN_SHORT, METHOD_LINES, explain_interval, explain_methods
from neuralviz.headlines.micro_tuning import list_unread
from neuralviz.headlines.similar_texts import (
    describe_agreement,
    describe_similar_texts,
    note_similar_texts,
)
from neuralviz.jobs import Run
from neuralviz.jobs.comparing import Compare, Comparison
from neuralviz.paths import sample_data
from neuralviz.plots.compare import (
    MAX_NAMES,
    Layout,
    difference_heatmap,
    similarity_heatmap,
    text_names,
)
from neuralviz.plots.report import About, frame_html
from neuralviz.plots.theme import shorten, shorten_text
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.address import accept_former, remember_number
from neuralviz.ui.choices import Write, choose_method, needs_asking, show_views
from neuralviz.ui.downloads import Entry, offer, offer_table
from neuralviz.ui.explanation import show_explanation
from neuralviz.ui.figures import (
    NO_HANDLERS,
    Handlers,
    show_choosable_table,
    show_figure,
    show_first_rows,
    show_table,
)
from neuralviz.ui.inputs import View, ask_texts, put_texts_in_address, save_view
from neuralviz.ui.page import (
    find_page,
    hide_on_stage,
    plain,
    point_to,
    result_view_id,
    show_error,
    show_on_stage,
    show_only_on_stage,
    slide,
    wide_columns,
)
from neuralviz.ui.runs import RunSentences, SessionRuns, find_current_run, show_current_run
from neuralviz.words import counted, joined, many, name_texts, number

RUNS = SessionRuns("compare")
LABELS = "compare-labels"  # session state: by the id of a run, the labels of its texts
PAIR = ("compare-first", "compare-second")  # session state and address: the chosen pair
ORDER, IS_LONG = "order", "compare-is-long"  # session state; the former also in the address
MAX_TEXTS = 300
ORDER_WIDTH = 190  # px
QUICK = {"precision": "fast"}  # the default here: a page should answer soon
FIRST_METHODS = ("mean", "neural", "sbert-wk", "cls")
FOURTH = "fourth"  # query parameter: whether a fourth method is offered
EXAMPLES = {
    "Style and content": "style_and_content.csv",
    "Word order": "word_order.csv",
    "Rare words": "common_topic_rare_words.csv",
    "Topics": "sentences.csv",
}
TOPICS = ("railways", "money", "cooking")  # of the example corpus
FORMS = ("headline", "question", "diary", "complaint")
AS_GIVEN, CLUSTERED = "Original", "Clustered by the first method"  # orders of texts
HEIGHTS = {1: 560, 2: 460, 3: 390, 4: 460}  # px, by the number of methods
LISTED_PAIRS = 500
METHODS_IN_SHORT = explain_methods(METHOD_LINES)
VIEW, EXPLANATION = "compare-more", "Why?"  # session state and address: the view below; one of them
ARRIVED = "compare-arrived"  # session state: whether another page's button led to it just now
TEXT_COLUMNS = ("text A", "text B")
FRAMED_LENGTH = 1100  # characters of all texts: a third of the stage
EXPLAINED_LENGTH = 440  # of two texts above the figures of their words
MOST_BEGINNINGS = 4
SHOWN_HEIGHT = 84  # px of a text; longer ones are scrolled


@st.cache_data(max_entries=1, show_spinner=False)
def load_examples() -> dict[str, ReadTexts]:
    """Example texts with labels; the last are from the example corpus, a few forms and topics."""
    read = {
        name: read_texts(Source.from_path(sample_data() / file))
        for name, file in {**EXAMPLES, "From the corpus": "topics.csv"}.items()
    }
    corpus = read["From the corpus"]
    cells = list(zip(corpus.labels["topic"], corpus.labels["form"], strict=True))
    rows = [cells.index((topic, form)) for topic in TOPICS for form in FORMS]
    labels = {name: tuple(corpus.labels[name][row] for row in rows) for name in ("topic", "form")}
    read["From the corpus"] = ReadTexts(tuple(corpus.texts[row] for row in rows), labels=labels)
    return read


def show() -> None:
    accept_former({"order-of-many": ORDER})
    inputs, choices = wide_columns(2, "compare-given")
    with inputs:
        read = ask_texts("compare", load_examples(), max_texts=MAX_TEXTS, height=109)
    with choices:
        specs = _choose_methods()
        row = st.container(horizontal=True, vertical_alignment="bottom")
        pressed = row.button("Compare", type="primary", icon=":material/compare_arrows:")
    can_start = len(read.texts) > 1
    if not can_start:
        write_hint = st.info if pressed or read.texts else st.caption
        write_hint("A comparison needs at least two texts.")
    task = Compare.for_current_models(specs, read.texts) if specs and can_start else None
    run = _find_comparison(task, read, pressed)
    labels = _find_labels(run, read)
    by_label = [f"By {name}" for name in usable_labels(labels)]
    is_long = len(run.task.texts if run else read.texts) > MAX_NAMES
    orders = [*by_label, AS_GIVEN, CLUSTERED] if is_long else [AS_GIVEN, CLUSTERED, *by_label]
    if st.session_state.get(IS_LONG, is_long) != is_long and ORDER not in st.query_params:
        # what nobody has chosen changes with the number of texts, which the widget cannot see
        st.session_state[ORDER] = orders[0]
    st.session_state[IS_LONG] = is_long
    with row, show_on_stage("order", width="content"):
        order = st.selectbox(
            "Order of texts",
            orders,
            key=ORDER,
            bind="query-params",
            width=ORDER_WIDTH,
        )
    if run is None:
        return

    def draw(comparison: Comparison, live: bool) -> None:
        _show_comparison(Panel(run, comparison, order or AS_GIVEN, labels), live)

    sentences = RunSentences(start="Loading the models and embedding the first texts …")
    show_current_run(RUNS, run, task, "Compare", draw, sentences)


def _find_labels(run: Run[Comparison] | None, read: ReadTexts) -> Mapping[str, tuple[str, ...]]:
    """The labels of the texts that are shown, by column, also once others are typed in."""
    if run is None:
        return read.labels
    shown: dict[str, Mapping[str, tuple[str, ...]]] = st.session_state.setdefault(LABELS, {})
    if read.texts == run.task.texts:
        shown[run.id] = read.labels
    return shown.get(run.id, {})


def _choose_methods() -> tuple[EmbedderSpec, ...] | None:
    """Ask for up to four methods and their settings; None where a setting is not valid."""
    specs: list[EmbedderSpec] = []
    is_valid = True
    places = [*st.columns(2), *st.columns(2, vertical_alignment="bottom")]
    for number_, (place, first) in enumerate(zip(places, FIRST_METHODS, strict=True), 1):
        with place:
            if number_ == 4 and not st.toggle("Fourth method", key=FOURTH, bind="query-params"):
                break
            try:
                spec = choose_method(
                    f"m{number_}", f"Method {number_}", first, QUICK, optional=number_ == 3
                )
            except NeuralvizError as error:
                show_error(error)
                is_valid = False
            else:
                specs += [spec] if spec else []
    twice = next((spec for spec in specs if specs.count(spec) > 1), None)
    if is_valid and twice is not None:
        st.error(
            plain(f"Method {twice.method} is selected twice with the same settings. Change one.")
        )
        is_valid = False
    return tuple(specs) if is_valid else None


def _find_comparison(
    task: Compare | None, read: ReadTexts, pressed: bool
) -> Run[Comparison] | None:
    """The comparison to show; it starts at a press, and by itself for an example."""
    is_example = st.session_state.get("compare-source") == "Example"
    if task is not None and pressed and not is_example:
        put_texts_in_address("compare", read.texts)
    view, starts_itself = result_view_id("compare"), False
    if task is not None and is_example and not needs_asking(task.specs):
        is_known = RUNS.find(task) is not None
        run = RUNS.recall(task, view)
        # one that another comparison has stopped is not known any more
        starts_itself = run is None or (run.has_nothing and run.is_over and not is_known)
    return find_current_run(RUNS, task, view, pressed=pressed or starts_itself)


def offer_reasons(texts: Sequence[str], specs: Iterable[EmbedderSpec], key: str) -> None:
    """A button that opens the page to say which words make two texts similar."""
    chosen = [spec for spec in specs if spec.singles][:3]
    label, icon = "Which words make these texts similar?", ":material/compare_arrows:"
    if len(texts) < 2 or not chosen:
        return
    quoted = " – ".join(f"“{plain(shorten(text, 80))}”" for text in texts)
    if st.button(label, icon=icon, key=f"{key}-why", help=quoted):
        named = {spec.method for spec in chosen}
        usual = (embedder_spec("mean"), embedder_spec("neural", QUICK))
        methods = [*dict.fromkeys(chosen), *(spec for spec in usual if spec.method not in named)]
        _open_reasons(texts, methods[: max(2, len(chosen))])


def _open_reasons(texts: Sequence[str], specs: Sequence[EmbedderSpec]) -> None:
    try:
        view = save_view(View(tuple(texts)))
    except OSError:
        st.error("The texts could not be saved, so Compare cannot open them.")
        return
    task = Compare.for_current_models(specs, texts)
    run = RUNS.recall(task, view)
    if run is None or run.status in ("failed", "stopped"):
        RUNS.start(task, again=True, view=view)
    address = {FOURTH: "false", "m3": "none", "view": view, VIEW: EXPLANATION}
    for place, spec in enumerate(specs, 1):
        address |= _type_method(f"m{place}", spec)
    st.session_state[ARRIVED] = True
    st.switch_page(find_page("Compare"), query_params=address)


def _type_method(key: str, spec: EmbedderSpec) -> dict[str, str]:
    """What the address has for a method with its settings."""
    typed = {part: _type_options(part) for part in spec.singles}
    if not spec.parts:
        return {key: spec.method, **{f"{key}-{spec.method}-{n}": v for n, v in typed[spec].items()}}
    parts = [
        f"{part.method}@{','.join(map('='.join, options.items()))}"
        for part, options in typed.items()
    ]
    return {key: "+".join(parts)}


def _type_options(spec: EmbedderSpec) -> dict[str, str]:
    """The model, and the options that are no defaults here, as they are typed."""
    values = {name: spec.all_options[name] for name in QUICK if name in spec.all_options}
    typed = {"model": spec.model_id}
    for name, value in {**values, **dict(spec.options)}.items():
        several = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        typed[name] = ("no", "yes")[value] if isinstance(value, bool) else several
    return typed


# --- the comparison ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Panel:
    """A comparison, as far as it is, and the order in which its texts are drawn."""

    run: Run[Comparison]
    comparison: Comparison
    order_name: str  # the chosen order of the texts
    labels: Mapping[str, tuple[str, ...]]  # of the texts, by column

    @property
    def texts(self) -> tuple[str, ...]:
        return self.run.task.texts

    @cached_property
    def by_place(self) -> dict[int, Similarity]:
        """Similarities by each method that has embedded two texts, by its place."""
        names = short_labels([part.method for part in self.comparison])
        return {
            place: _rename(part.similarity, name)
            for place, (part, name) in enumerate(zip(self.comparison, names, strict=True))
            if part.similarity is not None
        }

    @property
    def results(self) -> list[Similarity]:
        return list(self.by_place.values())

    def find_place(self, similarity: Similarity) -> int:
        return next(place for place, drawn in self.by_place.items() if drawn is similarity)

    def name_in_full(self, similarity: Similarity) -> str:
        """The label of a method, which a file has no other place for."""
        return self.comparison[self.find_place(similarity)].method

    @cached_property
    def complete(self) -> list[Similarity]:
        """Similarities by each method that has embedded all texts; some are not, if stopped."""
        return [result for result in self.results if result.has_vector.all()]

    @cached_property
    def least_alike(self) -> tuple[Similarity, Similarity] | None:
        """The two methods that agree least, complete ones if there are two."""
        compared = self.complete if len(self.complete) > 1 else self.results
        if len(compared) < 2:
            return None
        first, second = least_alike(compared)
        return compared[first], compared[second]

    @cached_property
    def hardly_read(self) -> list[int]:
        """The texts that the model of one of these two methods hardly reads."""
        compared = [self.comparison[self.find_place(s)] for s in self.least_alike or ()]
        read = [places for part in compared for _, places in part.hardly_read]
        return sorted({text for places in read for text in places})

    @cached_property
    def furthest_apart(self) -> tuple[int, int] | None:
        """The texts on which these two methods differ most."""
        return self.least_alike and furthest_apart(*self.least_alike, self.hardly_read)

    @property
    def groups(self) -> Sequence[str] | None:
        """The labels by which the texts are ordered; as given, they may be so."""
        by_order = {f"By {name}": values for name, values in self.labels.items()}
        if self.order_name == AS_GIVEN:
            usable = [self.labels[name] for name in usable_labels(self.labels)[:1]]
            return next(filter(are_ordered, usable), None)
        return by_order.get(self.order_name)

    @cached_property
    def layout(self) -> Layout:
        """The names, order, groups and framed pair of all heatmaps."""
        groups = self.groups
        order = np.arange(len(self.texts))
        first = self.comparison[0].similarity
        if groups is not None:
            order = order_by_label(groups)
        elif self.order_name == CLUSTERED and first is not None:
            order = order_by_cluster(first)
        return Layout(text_names(self.texts, groups), order, groups, chosen_pair(self.texts))

    @property
    def provenance(self) -> About:
        title = f"Cosine similarity of {many(len(self.texts), 'text')}"
        return About(title, {"methods": "; ".join(full_method_labels(self.run.task.specs))})


@lru_cache(maxsize=16)
def _rename(similarity: Similarity, name: str) -> Similarity:
    """A similarity under a short name; a comparison that is drawn again keeps its ranks."""
    return replace(similarity, method=name)


def _show_comparison(panel: Panel, live: bool) -> None:
    if not live:  # the pair of the address, else that on which the methods differ most
        for key, text in zip(PAIR, panel.furthest_apart or (0, 1), strict=True):
            remember_number(key, range(len(panel.texts)), text, panel.run.task.cache_key())
    chosen_first = sorted(panel.labels, key=lambda name: f"By {name}" != panel.order_name)
    labels = {name: panel.labels[name] for name in chosen_first}
    headline = plain(describe_similar_texts(panel.complete, labels))
    texts = pd.DataFrame(enumerate(panel.texts, 1), columns=["number", "text"])
    offer("compare-texts", Entry(html=lambda: frame_html(texts), place="off-stage-compare-pair"))
    notes = note_similar_texts(panel.complete, labels)
    with slide("heatmaps", headline):
        if panel.results:
            _explain_grids(panel, headline, has_labels=bool(usable_labels(labels)))
        heatmaps, pair_column = wide_columns([3, 1], "compare-seen")
        with heatmaps:
            _show_heatmaps(panel, live, dict(zip(panel.complete, notes, strict=True)))
        with pair_column, hide_on_stage("compare-pair"):
            if live or not panel.results:
                st.caption("Each cell is a pair of texts. Bright cells are similar pairs.")
            else:
                _choose_texts(panel.texts)
                _show_products(panel)
    if live or not panel.results:
        return
    _show_warnings(panel)
    views: dict[str, Callable[[Write], None]] = {}
    if panel.least_alike is not None and len(panel.texts) > 2:
        views["Disagreements"] = partial(_show_disagreements, panel, *panel.least_alike)
    views[EXPLANATION] = partial(_show_why, panel)
    show_views("compare", views, key=VIEW)
    if st.session_state.pop(ARRIVED, False):
        point_to(".st-key-slide-compare-view", is_framed=False)


def _explain_grids(panel: Panel, headline: str, *, has_labels: bool) -> None:
    with show_only_on_stage("methods"):
        if len(panel.comparison) < 4:  # rows of figures need the room
            _explain_methods(panel.run.task.specs)
        nearest = " The nearest text has the highest. " * ("nearest" in headline)
        scales = " Each grid has its own range of colours." * (len(panel.comparison) > 1)
        scales += " Empty: a text with itself."
        st.markdown(COSINE_IN_SHORT + scales + nearest + explain_interval(headline))
        if not has_labels:
            pairs = map(most_similar, panel.complete)
            named = np.concatenate([*pairs, []], axis=None)
            all_texts = range(len(panel.texts))
            show_beginnings(panel.texts, named if len(all_texts) > MOST_BEGINNINGS else all_texts)


def _explain_methods(specs: Iterable[EmbedderSpec], terms: str = "") -> None:
    st.markdown(terms + explain_methods(part.method for spec in specs for part in spec.singles))


def _show_heatmaps(panel: Panel, live: bool, notes: Mapping[Similarity, str]) -> None:
    """Show a grid a method; notes are for their titles."""
    for embedded in panel.comparison:
        if embedded.error:
            st.error(plain(embedded.error))
    drawn = [n for n, part in enumerate(panel.comparison) if part.similarity or not part.error]
    if not drawn:
        return
    columns = [*st.columns(2), *st.columns(2)] if len(drawn) == 4 else st.columns(len(drawn))
    for column, place in zip(columns, drawn, strict=True):
        part = panel.comparison[place]
        if part.similarity is None:
            state = "waiting" if live else "not finished"
            column.caption(plain(f"{part.method}: {state}."))
            continue
        similarity = panel.by_place[place]
        layout = replace(panel.layout, pair=None) if live else panel.layout
        figure = similarity_heatmap(similarity, layout, notes.get(similarity, ""))
        key, height = f"compare-{place}", HEIGHTS[len(drawn)]
        name = f"similarity {part.method}"
        with column:
            show_figure(
                figure,
                name,
                partial(similarity_table, similarity),
                panel.provenance,
                key=key,
                height=height,
                handlers=NO_HANDLERS if live else Handlers(choose_cell),
            )


def _show_warnings(panel: Panel) -> None:
    """What is wrong with the methods' embeddings, each thing once."""
    methods: dict[str, list[str]] = {}
    for part in panel.comparison:
        zeros = part.similarity.zeros if part.similarity is not None else np.zeros(0)
        for texts, problem in (
            (zeros, "all embedding values, and therefore all cosine similarities, are 0 for {}."),
            (
                part.loss_rose,
                "micro-tuning diverged on {}. Lower the learning rate (the paper uses 0.01).",
            ),
        ):
            if texts.any():
                names = name_texts(np.flatnonzero(texts).tolist())
                methods.setdefault(problem.format(names), []).append(part.method)
        for problem in list_unread(part.unread, part.hardly_read):
            methods.setdefault(problem, []).append(part.method)
    for problem, said_of in methods.items():
        st.warning(plain(f"{joined(said_of)}: {problem}"))


def _show_disagreements(
    panel: Panel, first: Similarity, second: Similarity, write_headline: Write
) -> None:
    """Draw two methods against each other, and list the pairs on which all disagree most."""
    headline, further = describe_agreement(first, second, panel.hardly_read)
    write_headline(plain(headline))
    with hide_on_stage("compare-agreement"):
        st.markdown(plain(further))
    has_names = len(panel.texts) <= MAX_NAMES  # beside the rows
    with show_only_on_stage("framed"):
        specs = panel.run.task.specs
        parts = [part for m in (first, second) for part in specs[panel.find_place(m)].singles]
        terms = explain_methods(part.method for part in parts)
        if len(panel.results) > 2 and "most on" in headline:
            terms = f"No two of the {counted(len(panel.results))} methods agree less. {terms}"
        if has_names:
            chosen = chosen_pair(panel.texts) or ()
            framed = f" Framed: the chosen {name_texts(chosen)}." if len(set(chosen)) > 1 else ""
            st.markdown(terms + framed)
            named = [*(panel.furthest_apart or ()), *chosen]
            show_beginnings(panel.texts, named)
    if not has_names:  # a cell would be too small to be found
        _show_furthest(panel, first, second, terms)
    heatmap, pairs = wide_columns(2, "compare-differences")
    with heatmap if has_names else heatmap.container(key="off-stage-compare-differences"):
        show_figure(
            difference_heatmap(first, second, replace(panel.layout, groups=None)),
            key="compare-difference",
            numbers=lambda: similarity_table(first, rank_differences(first, second)),
            name=f"rank difference {' '.join(map(panel.name_in_full, (first, second)))}",
            height=480,
            handlers=Handlers(choose_cell),
            provenance=panel.provenance,
        )
    with pairs, hide_on_stage("compare-pairs"):
        _list_pairs(panel)


def _show_furthest(panel: Panel, first: Similarity, second: Similarity, terms: str) -> None:
    """On the stage, a table of the pairs on which two methods differ most."""
    pairs = order_apart(first, second, panel.hardly_read)[:LISTED_PAIRS].T
    table: dict[str, Any] = {
        name: [f"{i + 1}. {panel.texts[i]}" for i in texts]
        for name, texts in zip(TEXT_COLUMNS, pairs, strict=True)
    }
    for method in (first, second):
        table[f"rank by {method.method}"] = [f"{rank:,.0f}" for rank in method.ranks[*pairs]]
    show_first_rows(f"These are the pairs on which they differ most. {terms}", table, "furthest")


def _list_pairs(panel: Panel) -> None:
    """List pairs of texts, at first by how much the methods disagree, the most first."""
    differences, results = disagreements(panel.results), panel.results
    n_pairs = len(differences.first)
    if not n_pairs:
        st.caption("No pair of texts was embedded by every method.")
        return
    if n_pairs > LISTED_PAIRS:
        st.caption(
            f"The first {LISTED_PAIRS:,} of {n_pairs:,} pairs. A click on a head sorts all of them."
        )
    ranks = [f"{result.method}: rank" for result in results]
    table: dict[str, Any] = {"difference": 100 * differences.spread}
    ends = differences.first, differences.second
    table |= dict(zip(TEXT_COLUMNS, ends, strict=True))
    for m, result in enumerate(results):
        table[result.method] = differences.products[:, m]
        table[ranks[m]] = differences.ranks[:, m].astype(int)

    def quote_beginnings(places: pd.Series) -> list[str]:
        return [f"{i + 1}. {shorten(panel.texts[i], 80)}" for i in places]

    key = f"compare-pairs-{panel.run.id}"
    show_choosable_table(
        table,
        key,
        lambda row: choose_pair(*(int(texts[row]) for texts in ends)),
        {
            "difference": st.column_config.NumberColumn(format="%.0f%%", width=85),
            **{name: st.column_config.TextColumn(width=80) for name in TEXT_COLUMNS},
            **{result.method: st.column_config.NumberColumn(format="%.3f") for result in results},
        },
        [*TEXT_COLUMNS, *ranks, "difference"],  # that fit
        name="compare-pairs",
        limit=LISTED_PAIRS,
        cells=dict.fromkeys(TEXT_COLUMNS, quote_beginnings),
    )
    labelled = [part.similarity for part in panel.comparison if part.similarity is not None]
    all_pairs = partial(pairs_table, labelled)
    offer_table("All pairs", all_pairs, "pairs", place=f"table-{key}", provenance=panel.provenance)


def similarity_table(similarity: Similarity, values: np.ndarray | None = None) -> pd.DataFrame:
    """The similarity matrix, or other ``values`` in it, with a row and a column per text."""
    names = [f"text {i + 1}" for i in range(len(similarity.texts))]
    table = pd.DataFrame(similarity.products if values is None else values, columns=names)
    table.insert(0, "text", similarity.texts)
    return table


def pairs_table(results: Sequence[Similarity]) -> pd.DataFrame:
    """Similarities and ranks by every method, a row per pair of texts."""
    texts = np.array(results[0].texts, dtype=object)
    i, j = pair_indices(len(texts))
    table = {"id1": i + 1, "id2": j + 1, "text1": texts[i], "text2": texts[j]}
    for result in results:
        table[f"{result.method} cosine similarity"] = result.products[i, j]
        table[f"{result.method} rank"] = result.ranks[i, j]
    return pd.DataFrame(table)


# --- the chosen pair -----------------------------------------------------------------------------


def choose_pair(first: int, second: int) -> None:
    st.session_state.update(zip(PAIR, (first, second), strict=True))


def choose_cell(click: dict[str, Any]) -> None:
    """Ask why the texts of a clicked cell, whose names begin with their numbers, are similar."""
    first, second = (int(str(click[axis]).partition(".")[0]) - 1 for axis in ("y", "x"))
    choose_pair(first, second)
    st.session_state[VIEW] = EXPLANATION


def chosen_pair(texts: Sequence[str]) -> tuple[int, int] | None:
    """The chosen pair, if it is among these texts."""
    a, b = (st.session_state.get(key, -1) for key in PAIR)
    return (int(a), int(b)) if a in range(len(texts)) and b in range(len(texts)) else None


def _choose_texts(texts: Sequence[str]) -> None:
    for key, label in zip(PAIR, ("Text A", "Text B"), strict=True):
        st.selectbox(
            label,
            range(len(texts)),
            format_func=lambda i: f"{i + 1}. {shorten(texts[i], 70)}",
            key=key,
            help="Or click a cell of a heatmap, which opens *Why?*." if key == PAIR[0] else None,
        )
        with st.container(height=SHOWN_HEIGHT, border=False):
            st.text(texts[st.session_state[key]])


def show_beginnings(texts: Sequence[str], chosen: Iterable[int], room: int = FRAMED_LENGTH) -> None:
    """Show a few texts, such as a sentence names, or the beginnings of long ones."""
    named = sorted([*dict.fromkeys(map(int, chosen))][:MOST_BEGINNINGS])
    lengths = room // max(1, len(named))
    st.markdown("  \n".join(f"**{i + 1}** {plain(shorten_text(texts[i], lengths))}" for i in named))


def _show_products(panel: Panel) -> None:
    a, b = chosen_pair(panel.texts) or (0, 1)
    if a == b:
        st.caption("Choose two different texts.")
        return
    rows = []
    for result in panel.results:
        cosine, rank = "", ""
        if np.isfinite(result.products[a, b]):
            cosine = number(float(result.products[a, b]), ".3f")
            rank = f"{result.ranks[a, b]:,.0f} of {np.isfinite(result.of_pairs).sum():,}"
        rows.append({"method": result.method, "cosine": cosine, "rank": rank})
    show_table(pd.DataFrame(rows), "compare-pair-table")


def _show_why(panel: Panel, _write_headline: Write) -> None:
    """Show which words make the two texts similar, by each method."""
    pair = chosen_pair(panel.texts) or (0, 1)
    if pair[0] == pair[1]:
        st.caption("Choose two different texts.")
        return
    methods = {
        place: (panel.by_place[place].method, spec, embedded.vectors)
        for place, (spec, embedded) in enumerate(
            zip(panel.run.task.specs, panel.comparison, strict=True)
        )
        if embedded.vectors is not None and np.isfinite(embedded.vectors[list(pair)]).all()
    }
    if not methods:
        st.caption("No method has embedded both texts.")
        return
    texts = {f"text {text + 1}": panel.texts[text] for text in pair}
    reads = [panel.comparison[place].hardly_read for place in methods]
    of_pair = [[(m, {*pair} & {*places}) for m, places in read] for read in reads]
    unread = [sentence for read in of_pair for sentence in list_unread("", read)]

    def show_terms(has_words: bool) -> None:
        terms = "".join(f"{sentence} " for sentence in [*dict.fromkeys(unread), COSINE_IN_SHORT])
        _explain_methods((spec for _, spec, _ in methods.values()), terms)
        if not has_words:  # in the figure
            show_beginnings(panel.texts, pair, EXPLAINED_LENGTH)

    show_explanation(methods, texts, panel.run.task.models, show_terms)
