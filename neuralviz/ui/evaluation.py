"""The evaluation page below its title: verdict, proof, numbers, and where methods fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from neuralviz.embedders import METHODS, split_options
from neuralviz.embedders.specs import EmbedderSpec, method_labels, short_labels, split_at_commas
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.evaluation.data import (
    BY_RANGE,
    CorpusKind,
    DataSet,
    LabelledData,
    Measure,
    ScoredData,
    corpus_data,
    load_hub_data,
    make_data,
)
from neuralviz.evaluation.measures import check_measures
from neuralviz.evaluation.probing_tasks import TASKS, ProbingTask, probing_task
from neuralviz.evaluation.results import (
    EMPTY_CELL,
    EvaluationPlan,
    Measured,
    MeasureSettings,
    Results,
    Table,
    Yardstick,
)
from neuralviz.evaluation.rows import EXPERIMENTS, Row, experiment_rows, method_rows, spec_rows
from neuralviz.evaluation.yardsticks import (
    best_first,
    compute_leads,
    rank_methods,
    worst_cases,
    yardsticks_of,
)
from neuralviz.files import corpus_view
from neuralviz.headlines import evaluation as headlines
from neuralviz.headlines import explain_prediction
from neuralviz.jobs import Run
from neuralviz.jobs.evaluating import (
    EXAMPLES,
    FIRST_METHODS,
    Evaluate,
    EvaluationState,
    recorded_results,
)
from neuralviz.maps.neighbours import K, suggest_k
from neuralviz.micro_tuning.settings import Precision
from neuralviz.models import BUNDLED
from neuralviz.models.shared import check_may_load
from neuralviz.plots import evaluation as plots
from neuralviz.plots.layers import scatter_figure
from neuralviz.plots.report import TABLE_STYLE, About, file_name, report_html, table_html
from neuralviz.plots.theme import escape, shorten
from neuralviz.reading.pairs import FIVE, Scale
from neuralviz.reading.source import Source
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import imported_specs, kept_specs
from neuralviz.store.vectors import text_keys
from neuralviz.store.writing import BYTE_ORDER_MARK
from neuralviz.ui.address import accept_former, digest_of, remember_choice
from neuralviz.ui.choices import (
    JOINED,
    MODEL_HELP,
    Write,
    choose_one,
    choose_precision,
    corpus_store,
    may_load,
    offline_models,
    pick_corpus,
    show_views,
    trained_names,
)
from neuralviz.ui.compare import offer_reasons
from neuralviz.ui.corpus.opened import open_corpus
from neuralviz.ui.downloads import Entry, Files, offer, table_files
from neuralviz.ui.figures import (
    allow_swiping,
    list_cells,
    list_worst,
    quote,
    show_figure,
    show_html,
)
from neuralviz.ui.inputs import (
    BY_DIGEST,
    MAX_ROWS,
    open_upload,
    put_upload_in_address,
    read_uploaded,
    upload_table,
)
from neuralviz.ui.limits import effective_settings, row_limit
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import (
    hide_on_stage,
    plain,
    result_view_id,
    show_error,
    show_on_stage,
    show_only_on_stage,
    slide,
    wide_columns,
)
from neuralviz.ui.runs import SessionRuns, find_current_run, show_current_run
from neuralviz.words import many

PAIR_OF_TEXTS = ("text", "text of another group", "text 1", "text 2")  # columns of worst cases
KEY = "evaluation"
PRECISION = f"{KEY}-precision"  # no two pages have a widget of the same key in the address
MAX_K = 1000
OWN_METHODS = "Methods"
SAVED_EMBEDDINGS = "Saved embeddings"
LAYER_TABLES = ("layers", "ablations", "layer-by-layer")  # rows depend on the model
CORPUS_KINDS: dict[str, CorpusKind] = {"Nearest neighbours": "labels", "Triplets": "groups"}
NO_PROBE, LABELS, WORDS = "none", "labels", "words"
PROBE_NAMES = {NO_PROBE: "No probe", LABELS: "Labels", WORDS: "Words of the text (read-back)"}
PROBE_NAMES |= {name: task.title for name, task in TASKS.items()}
PROBE_HELP = (
    "A small network learns to tell the labels, or something else, from the embeddings. Words of "
    "the text are read from each embedding without learning."
)
_TABLE_COLUMNS = (
    "sentence1, sentence2 and score; text and group; text and label; or original, generated, "
    "varies, value, fixed1 and fixed2"
)

RUNS = SessionRuns(KEY)
LONGEST_NAME = 100  # characters
LONGEST_VALUE = 33  # characters of a label on the stage
DETAILS = ("without ties", "same", "diff", "Pearson", "tau-b", "alignment", "uniformity")
ALSO_DETAILS = ("broken",)  # for pairs, whose table is wide
MAX_DRAWN_METHODS = 6  # with more, the user picks one
UNKNOWN = (np.nan, np.nan)  # an interval


def show() -> None:
    accept_former({"precision": PRECISION})
    task, pressed = choose_evaluation()
    view = ""
    if task is None and pressed:
        st.info("Choose data and at least one method first.")
    if task is not None:
        if pressed:
            put_upload_in_address(KEY)
        view = corpus_view(task.corpus) if task.corpus else result_view_id(KEY)
        (data,) = task.plan.data
        is_example = st.session_state.get(f"{KEY}-source") == "Example"
        if not is_example or isinstance(data, ProbingTask):  # an example has a line of its own
            st.caption(plain(" ".join([f"{data.name}: {data.describe()}.", *data.notes])))
    recorded = next((run for run in _load_recorded_runs() if run.task == task), None)
    run = find_current_run(RUNS, task, view, pressed=pressed, recorded=recorded)
    if run is None:
        return
    show_current_run(RUNS, run, task, "Evaluate", _show_state, recorded=recorded)


# --- what is evaluated ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DataChoice:
    """The chosen data, and for a saved corpus its id and saved embeddings."""

    data: DataSet
    corpus: str = ""
    kept: tuple[EmbedderSpec, ...] = ()


def choose_evaluation() -> tuple[Evaluate | None, bool]:
    """Ask for an evaluation, None while it is incomplete; also whether *Evaluate* was pressed."""
    left_column, right_column = wide_columns(2, "evaluation-given")
    choice: DataChoice | None = None
    measures: tuple[Measure, ...] = ()
    with left_column:
        try:
            if (choice := _choose_data()) is not None:
                choice, measures = _choose_probe(choice)
        except NeuralvizError as error:
            choice = None
            show_error(error)
    with right_column:
        table = _choose_table(choice)
        specs = _list_specs(table, choice)
        names = _choose_methods(table, specs, choice.corpus if choice is not None else "")
        row = st.container(horizontal=True)
        pressed = row.button("Evaluate", type="primary", icon=":material/play_arrow:")
        try:
            with row.popover("Settings", icon=":material/tune:", key="evaluation-settings"):
                k, data = K, None if choice is None else choice.data
                if data is not None and "neighbours" in data.by_default:
                    k = _choose_k(data)
                if isinstance(data, ScoredData):
                    data = _choose_thresholds(data)
                shared = _choose_shared_options(table)
            rows = _build_rows(table, names, specs, *shared)
            if data is None or choice is None or not rows:
                return None, pressed
            measuring = MeasureSettings(measures, k=k)
            check_measures(data, measuring)
        except NeuralvizError as error:
            show_error(error)
            return None, pressed
    plan = EvaluationPlan((data,), rows, measuring)
    return Evaluate.for_current_models(plan, corpus=choice.corpus), pressed


# --- data --------------------------------------------------------------------------------------


def _choose_data() -> DataChoice | None:
    """Ask for the data; None, with a message, while something is missing."""
    open_upload(KEY)
    sources = ["Example", "Upload", "Saved corpus", *([] if effective_settings().demo else ["Hub"])]
    source = choose_one(st.segmented_control, "Data set", sources, key=f"{KEY}-source")
    if source == "Saved corpus":
        return _choose_corpus()
    ask = {"Example": _choose_example, "Upload": choose_upload, "Hub": _choose_hub_data}[source]
    data = ask()
    return None if data is None else DataChoice(data)


def _choose_example() -> DataSet:
    with show_on_stage("example"):
        name = choose_one(
            st.pills,
            "Example",
            list(EXAMPLES),
            key="example",
            label_visibility="collapsed",
            wrap=True,
        )
    st.caption(EXAMPLES[name].line)
    return _read_example(name)


@st.cache_data(max_entries=8, show_spinner=False)
def _read_example(name: str) -> DataSet:
    return EXAMPLES[name].read()


def choose_upload() -> DataSet | None:
    upload = upload_table(KEY, _TABLE_COLUMNS, row_limit(MAX_ROWS))
    return None if upload is None else _read_upload(*upload)


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=BY_DIGEST)
def _read_upload(source: Source, roles: dict[str, str]) -> DataSet:
    return make_data(source.name, read_uploaded(source, max_rows=row_limit(MAX_ROWS)), roles)


def _choose_corpus() -> DataChoice | None:
    """Ask for a saved corpus and a label; None, with a message, where there is none."""
    corpora = {corpus.id: corpus for corpus in corpus_store().corpora()}
    if not corpora:
        st.caption("No saved corpora yet. Add one on the **Corpus map** page.")
        return None
    row = st.container(horizontal=True)
    corpus = pick_corpus(row.selectbox, corpora, "evaluation-corpus")
    if corpus is None:
        return None
    columns = list(open_corpus(corpus).label_names)
    if not columns:
        sentence = "has no column of labels. Evaluation needs to know which texts belong together."
        st.caption(plain(f"“{corpus.name}” {sentence}"))
        return None
    key = f"evaluation-label-of-{corpus.id}"
    column = row.selectbox("Label", columns, key=key, bind="query-params") or columns[0]
    kind = choose_one(
        row.segmented_control, "Measured by", list(CORPUS_KINDS), key="evaluation-corpus-by"
    )
    data = _read_corpus(corpus.id, corpus.name, column, CORPUS_KINDS[kind])
    store = CorpusStore()
    kept = kept_specs(store.vectors, partial(store.keys, corpus))
    return DataChoice(data, corpus.id, kept)


@st.cache_data(max_entries=4, show_spinner=False)
def _read_corpus(corpus_id: str, name: str, column: str, kind: CorpusKind) -> DataSet:
    """The data of a corpus; its name, which may change, is part of the cache key."""
    store = CorpusStore()
    return corpus_data(store, store.corpus(corpus_id), column, kind, max_rows=row_limit(MAX_ROWS))


def _choose_hub_data() -> DataSet | None:
    """Ask for a data set on the Hub; None while no name is entered."""
    name = st.text_input(
        "Data set",
        key="evaluation-hub",
        bind="query-params",
        placeholder="stsb, mrpc, asset, summeval, or ID:CONFIG:SPLIT",
        help=(
            "A data set on the Hugging Face Hub, downloaded when you press Enter. None of "
            "your data is sent there."
        ),
        label_visibility="collapsed",
    )
    if not (name or "").strip():
        st.caption("Enter the name of a data set. Downloading it needs an internet connection.")
        return None
    with let_others_draw(), st.spinner("Downloading …"):
        return _load_hub_data(name.strip(), max_rows=row_limit(MAX_ROWS))


@st.cache_data(max_entries=4, show_spinner=False)
def _load_hub_data(name: str, max_rows: int) -> DataSet:
    return load_hub_data(name, max_rows=max_rows)


def _choose_probe(choice: DataChoice) -> tuple[DataChoice, tuple[Measure, ...]]:
    """Ask for a probe; returns the data to probe and its measures, none for the default ones."""
    data = choice.data
    is_labelled = isinstance(data, LabelledData)
    task = st.selectbox(
        "Probe",
        [NO_PROBE, *[LABELS] * is_labelled, *[WORDS] * ("read-back" in data.measures), *TASKS],
        format_func=PROBE_NAMES.__getitem__,
        key="probe-of-labels" if is_labelled else "probe",
        bind="query-params",
        help=PROBE_HELP,
    )
    measures: dict[str, Measure] = {LABELS: "probe", WORDS: "read-back"}
    if task in measures:
        return choice, (*data.by_default, measures[task])
    if task not in TASKS:
        return choice, ()
    st.caption(TASKS[task].line)
    task_data = _make_task(task, data.name, data.texts)
    kept = () if task_data.rewrites else choice.kept
    return replace(choice, data=task_data, kept=kept), ()


_make_task = st.cache_data(max_entries=8, show_spinner=False)(probing_task)


# --- methods -----------------------------------------------------------------------------------


def _list_specs(table: str, choice: DataChoice | None) -> Mapping[str, EmbedderSpec]:
    """Embeddings that exist already, by label: those of a saved corpus, or imported vectors."""
    if choice is None:
        return {}
    if table == SAVED_EMBEDDINGS:
        return dict(zip(method_labels(choice.kept), choice.kept, strict=True))
    is_example = st.session_state.get(f"{KEY}-source") == "Example"
    return {} if is_example else find_imported(choice.data)


def find_imported(data: DataSet) -> dict[str, EmbedderSpec]:
    """Imported vectors, by label, of this browser's corpora that cover all the texts."""
    try:
        store = corpus_store()
        imported = imported_specs(store.vectors, lambda: text_keys(data.texts))
        if not imported:
            return {}
        visible = {
            spec
            for corpus in store.corpora()
            for spec in kept_specs(store.vectors, partial(store.keys, corpus))
        }
    except StoreError:  # opening a saved corpus shows the error
        return {}
    return {label: spec for label, spec in imported.items() if spec in visible}


def _choose_table(choice: DataChoice | None) -> str:
    """Ask for what is evaluated; for a saved corpus, its embeddings at first if it has any."""
    options, key = [OWN_METHODS, *EXPERIMENTS], "experiment"
    settings: dict[str, Any] = {"bind": "query-params"}
    if choice is not None and choice.corpus:
        options, key = [*[SAVED_EMBEDDINGS] * bool(choice.kept), *options], "experiment-of-corpus"
        settings = {"persist_state": "session"}
        if remember_choice(key, options[0]) not in options:
            st.session_state[key] = OWN_METHODS
    return st.selectbox(
        "Evaluate",
        options,
        key=key,
        help="Choose your own methods, or an experiment from the papers.",
        **settings,
    )


def _choose_methods(table: str, specs: Mapping[str, EmbedderSpec], corpus: str) -> Sequence[str]:
    """Ask for methods, or for embeddings of a corpus; empty for an experiment."""
    if table in EXPERIMENTS:
        st.caption(EXPERIMENTS[table].line)
        return ()
    if table == SAVED_EMBEDDINGS:
        # labels depend on what else is saved: the address has digests
        labels = {digest_of(spec.to_json()): label for label, spec in specs.items()}
        key = f"embeddings-of-{corpus}"
        chosen = remember_choice(key, list(labels))
        if gone := [digest for digest in chosen if digest not in labels]:
            st.warning(f"{many(len(gone), 'embedding')} of this link are not saved any more.")
            st.session_state[key] = [digest for digest in chosen if digest in labels]
        chosen = st.multiselect(
            "Embeddings",
            list(labels),
            format_func=labels.__getitem__,
            key=key,
            persist_state="session",
            label_visibility="collapsed",
            placeholder="Choose saved embeddings",
        )
        return [labels[digest] for digest in chosen]
    encoders = [f"sentence-transformer@{name}" for name in trained_names("sentence-transformer")]
    return st.multiselect(
        "Methods",
        [*METHODS, *JOINED, *encoders, *specs],
        default=list(FIRST_METHODS),
        key="methods",
        bind="query-params",
        accept_new_options=True,
        label_visibility="collapsed",
        placeholder="Choose methods, or type mean@bundled or neural+mean",
    )


def _choose_shared_options(table: str) -> tuple[Precision, str, str | None]:
    """Ask for precision, options and model of all methods; saved embeddings have theirs."""
    if table == SAVED_EMBEDDINGS:
        return "exact", "", None
    precision = choose_precision(PRECISION, "exact")
    options = st.text_input(
        "Options",
        key="options",
        bind="query-params",
        placeholder="epochs=5, mean.layer=all" if table == OWN_METHODS else "NAME=VALUE",
        help=(
            "Options for every method that has them, or for one method with METHOD.NAME=VALUE. "
            "To use a method several times, type its model or options behind an @: "
            "mean@bundled, neural@epochs=5."
        ),
    )
    model = st.selectbox(
        "Model",
        list(dict.fromkeys([*offline_models("text"), *offline_models("sentence-transformer")])),
        index=None,
        key="evaluation-model",
        bind="query-params",
        accept_new_options=not effective_settings().demo,
        placeholder="each method's default",
        help=MODEL_HELP,
    )
    return precision, options or "", (model or "").strip() or None


def _build_rows(
    table: str,
    names: Sequence[str],
    specs: Mapping[str, EmbedderSpec],
    precision: Precision,
    options: str,
    model: str | None,
) -> tuple[Row, ...]:
    """The rows of the plan; none, with a message, while something is missing."""
    if table not in EXPERIMENTS and not names:
        st.caption(f"Choose at least one {'method' if table == OWN_METHODS else 'embedding'}.")
        return ()
    if table == SAVED_EMBEDDINGS:
        return spec_rows([specs[name] for name in names])
    typed = split_options(split_at_commas(options))
    if table in LAYER_TABLES and not may_load(model or BUNDLED):
        return ()

    def make_rows(options: dict[str, str]) -> tuple[Row, ...]:
        if table == OWN_METHODS:
            return method_rows(names, options, model, specs)
        return experiment_rows(table, options, model)

    rows = make_rows(typed)
    if precision != "exact" and any(row.spec.learns for row in rows):
        rows = make_rows({"precision": precision} | typed)
    for part in (part for row in rows for part in row.spec.singles):
        check_may_load(part.model_id)
    return rows


# --- measures ----------------------------------------------------------------------------------


def _choose_k(data: DataSet) -> int:
    """Ask for the number of voting neighbours: at first ten, or fewer for labels with few texts."""
    labels = data.labels if isinstance(data, LabelledData) else ()
    first = suggest_k(list(Counter(labels).values()))
    chosen = st.number_input(
        "Neighbours",
        min_value=1,
        max_value=MAX_K,
        value=first,
        key="neighbours" if first == K else f"neighbours-{first}",  # other data reset it
        bind="query-params",
        help="Number of neighbours that vote on a text's label.",
    )
    return chosen or first


def _choose_thresholds(data: ScoredData) -> ScoredData:
    """Ask for the lowest similar and the highest dissimilar score; return the data with them."""
    row = st.container(horizontal=True)
    scale = Scale.from_scores(data.scores)
    suffix = "" if scale == FIVE else f"-of-{scale.low:g}-{scale.high:g}"
    step = (scale.high - scale.low) / 10
    similar = row.number_input(
        "Similar if at least", value=data.similar, step=step, format="%g",
        key=f"similar{suffix}", bind="query-params",
        help="Pairs with this score or higher count as similar.",
    )  # fmt: skip
    dissimilar = row.number_input(
        "Dissimilar if at most", value=data.dissimilar, step=step, format="%g",
        key=f"dissimilar{suffix}", bind="query-params",
        help="Pairs with this score or lower count as dissimilar.",
    )  # fmt: skip
    if (similar, dissimilar) == (data.similar, data.dissimilar):
        return data
    range_note = BY_RANGE.note(data.scores)  # thresholds no longer follow the range
    notes = tuple(note for note in data.notes if note != range_note)
    return replace(data, similar=similar, dissimilar=dissimilar, notes=notes)


# --- results --------------------------------------------------------------------------------


@st.cache_resource(max_entries=1, show_spinner=False)
def _load_recorded_runs() -> list[Run[EvaluationState]]:
    """Recorded evaluations of the examples as finished runs."""
    return [
        Run.from_result(Evaluate.for_current_models(results.plan), EvaluationState(results))
        for results in recorded_results()
    ]


def _show_state(state: EvaluationState, live: bool) -> None:
    """Show the verdict, its figures, the numbers, the worst cases, and other views."""
    results = state.results
    if not results.cells:
        return
    with slide("evaluation-verdict") as write_headline:
        yardstick = _choose_yardstick(results, live)
        verdict = headlines.describe_verdict(
            results, 0, yardstick, _name_method, plain, is_over=not live
        )
        write_headline(verdict)
        shown = _Shown(results, yardstick) if yardstick is not None else None
        if yardstick is not None:
            terms = headlines.explain_terms(
                results, 0, yardstick, lambda value: plain(shorten(value, LONGEST_VALUE)), verdict
            )
            notes = [note for note in results.data[0].notes if note.startswith("Skipped")]
            if len({row.model for row in results.rows}) > 1:
                models = f"Language models: {results.models()}"
                notes.append(f"{models}; part of a difference may come from them.")
            methods = headlines.explain_rows(results, _name_method)
            words = f"{methods} {plain(' '.join(notes))}\n\n{terms}"
            show_only_on_stage("evaluation-terms").markdown(words)
        has_figure = not live and shown is not None and shown.show_proof()
        if not has_figure:
            with hide_on_stage("evaluation-so-far") if live else nullcontext():
                _show_numbers(results)
    if has_figure:  # the stage shows the figures first
        _show_numbers(results)
    if live:
        return
    if results.finished(0):
        _offer_downloads(results)
    if shown is not None:
        shown.show_views()


def _choose_yardstick(results: Results, live: bool) -> Yardstick | None:
    """Ask for the measure that methods are compared by; None where there is none."""
    yardsticks = {yardstick.short: yardstick for yardstick in yardsticks_of(results, 0)}
    if not yardsticks:
        return None
    first = chosen = next(iter(yardsticks))
    if len(yardsticks) > 1 and not live:
        chosen = choose_one(
            st.segmented_control,
            "Measure",
            list(yardsticks),
            key=f"measure-{results.data[0].kind}",
            label_visibility="collapsed",
        )
    return yardsticks.get(chosen, yardsticks[first])


def _name_method(label: str) -> str:
    return f"**{plain(label)}**"


def _describe(results: Results) -> About:
    """What the figures show, for downloads."""
    data = results.data[0]
    return About(
        f"Evaluation: {data.name}",
        {
            "data": f"{data.name}: {data.describe()}",
            "methods": "; ".join(row.label for row in results.rows),
            "model": results.models(),
            "measured": f"{results.begun[:10]}, neuralviz {results.version}",
        },
    )


def _show_numbers(results: Results) -> None:
    """Show the table of numbers, and what is known of its rows."""
    table = results.table(0)
    details = DETAILS + ALSO_DETAILS * (results.data[0].kind == "pairs")
    is_detailed = any(head.endswith(details) for head in table.heads)
    in_full = is_detailed and st.session_state.get("all-numbers", False)
    visible_columns = [
        place for place, head in enumerate(table.heads) if in_full or not head.endswith(details)
    ]
    table = table._replace(heads=["method", *table.heads[1:]])
    style = f"<style>{TABLE_STYLE}</style>"
    show_html(style + table_html(table, visible_columns), f"{KEY}-numbers")
    if is_detailed:
        st.toggle("Show all columns", key="all-numbers", bind="query-params")
    for sentence in results.sentences(0):
        st.warning(plain(sentence))
    published = results.published_table(0)
    if published.lines:
        st.caption("Published, with the paper's model:")
        show_html(table_html(published), f"{KEY}-published", title="Published results")
    gaps = _explain_gaps(results, table, visible_columns)
    st.caption(f"Models: {plain(results.models())}.{gaps}")


def _explain_gaps(results: Results, table: Table, visible_columns: Sequence[int]) -> str:
    """Why cells of the table that are shown are empty."""
    finished = {row for row, _, _ in results.finished(0)}
    reasons = dict.fromkeys(
        "undefined" if row in finished else "not measured"
        for row, line in enumerate(table.lines)
        for column in visible_columns
        if line[column] == EMPTY_CELL and table.heads[column] != "failed"
    )
    return f" {EMPTY_CELL}: {' or '.join(reasons)}." if reasons else ""


def _offer_downloads(results: Results) -> None:
    methods = "-".join(short_labels([row.label for row in results.rows]))
    name = file_name(f"{_describe(results).title}-{methods}"[:LONGEST_NAME])

    def write_json() -> str:
        record = results.as_record()
        return json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False)

    files: Files = {
        "Report (HTML)": (f"{name}.html", partial(report_html, results)),
        "CSV": (f"{name}.csv", lambda: BYTE_ORDER_MARK + results.csv()),
        "JSON": (f"{name}.json", write_json),
    }
    offer(KEY, Entry("All results", files, place=f"{KEY}-numbers"))


@dataclass(frozen=True, eq=False)
class _Shown:
    """The figures and tables of results, by the measure that methods are compared by."""

    results: Results
    yardstick: Yardstick

    def draw(
        self,
        figure: go.Figure,
        name: str,
        numbers: pd.DataFrame | Callable[[], pd.DataFrame] | None,
        **look: Any,
    ) -> None:
        show_figure(figure, name, numbers, _describe(self.results), **look)

    def show_proof(self) -> bool:
        """Draw each method's result and the lead of the best; return whether there is a figure."""
        results, yardstick = self.results, self.yardstick
        chart = plots.yardstick_figure(results, 0, yardstick)
        if chart is None:
            return False
        drawings = [("", chart, self._tabulate_values)]
        if (lead := plots.lead_of_best(results, 0, yardstick)) is not None:
            drawings.append(("lead in ", lead, self._tabulate_leads))
        height = max(figure.layout.height for _, figure, _ in drawings)
        columns = st.columns(len(drawings), gap="large")
        for column, (name, figure, tabulate) in zip(columns, drawings, strict=True):
            title = f"{_describe(results).title} {name}{yardstick.title}"
            key = f"evaluation-{name.replace(' ', '-')}{yardstick.name}"
            with column:
                self.draw(figure, title, tabulate, key=key, height=height)
        return True

    def _tabulate_values(self) -> pd.DataFrame:
        rows = [
            (label, value, *(measured.interval(self.yardstick.name) or UNKNOWN))
            for label, value, measured in rank_methods(self.results, 0, self.yardstick)
        ]
        return pd.DataFrame(rows, columns=["method", self.yardstick.title, "low", "high"])

    def _tabulate_leads(self) -> pd.DataFrame:
        """Leads of each method over those that are not better, with intervals."""
        rows = [
            (lead.first, lead.second, lead.value, *(lead.interval or UNKNOWN), lead.is_decided)
            for lead in compute_leads(self.results, 0, self.yardstick)
        ]
        title = f"lead of A in {self.yardstick.title}"
        return pd.DataFrame(rows, columns=["A", "B", title, "low", "high", "significant"])

    def pick_method(
        self,
        key: str,
        among: Mapping[str, Any] | None = None,  # by label; all by default; empty ones come last
        label: str = "Method",
    ) -> tuple[str, Measured]:
        """Ask for a method, at first the best one."""
        measured_by_label = {
            name: measured
            for name, measured in best_first(self.results, 0, self.yardstick)
            if among is None or name in among
        }
        # other data or another measure select the best one again
        key = f"{key}-{digest_of(self.results.data[0].digest)}-{self.yardstick.name}"
        options = sorted(measured_by_label, key=lambda name: not (among or {}).get(name))
        chosen = st.selectbox(label, options, key=key, bind="query-params")
        return chosen, measured_by_label[chosen]

    def explain(self, label: str = "", term: str = "") -> None:
        """Say on the stage what a term and a method are, or all methods."""
        words = f"{term} {headlines.explain_rows(self.results, _name_method, label)}"
        show_only_on_stage("evaluation-view-terms").markdown(words)

    # --- the worst cases -----------------------------------------------------------------------

    def _describe_worst(self) -> dict[str, str]:
        """A sentence on the worst case of each method that has one, by label."""
        data, name = self.results.data[0], headlines.short_name(self.results, _name_method)
        return {
            label: sentence
            for _, label, measured in self.results.finished(0)
            if (sentence := headlines.describe_worst(data, measured, name(label), quote))
        }

    def _draw_worst(self, write_headline: Write) -> None:
        """Show the worst case of a method as a sentence, and its worst cases as a table."""
        sentences = self._describe_worst()
        label, measured = self.pick_method("evaluation-worst-of", sentences, "Errors of")
        write_headline(sentences[label])
        data = self.results.data[0]
        has_labels = isinstance(data, LabelledData)
        term = explain_prediction("label") if has_labels else headlines.SIMILARITY_IN_SHORT
        if not isinstance(data, LabelledData | ScoredData):
            term += f" {headlines.YARDSTICKS_IN_SHORT['triplets']}"
        self.explain(label, term)
        kinds = list(worst_cases(data, measured).items())
        for place, (title, cases) in enumerate(kinds):
            place_on_page = hide_on_stage(f"evaluation-other-{place}") if place else nullcontext()
            with place_on_page:  # on the stage, there is room for one
                self._show_cases(title, cases, place, label)

    def _show_cases(self, title: str, cases: pd.DataFrame, place: int, label: str) -> None:
        st.markdown(f"**{title}**")
        about = _describe(self.results)
        files = table_files(cases, f"{about.title} errors of {label}", about)
        list_worst(cases, f"evaluation-worst-{place}", title, files)
        names = [name for name in PAIR_OF_TEXTS if name in cases]
        if len(names) == 2:
            specs = [row.spec for row in self.results.rows if row.label == label]
            offer_reasons([str(cases[name].iloc[0]) for name in names], specs, f"worst-{place}")

    # --- other views ---------------------------------------------------------------------------

    def show_views(self) -> None:
        """Ask for a view that has something to show, and draw it."""
        results = self.results
        finished = [measured for _, _, measured in results.finished(0)]
        confused = self._describe_confused()
        is_pairs = isinstance(results.data[0], ScoredData) and bool(finished)
        drawings: dict[str, tuple[bool, Callable[[Write], None]]] = {
            "Errors": (bool(self._describe_worst()), self._draw_worst),
            "Pair by pair": (is_pairs, self._draw_pairs),
            "Similar and dissimilar": (
                any(len(measured.same) and len(measured.diff) for measured in finished),
                self._draw_histograms,
            ),
            "Confused labels": (bool(confused), self._draw_confusions),
            "Shared errors": (
                any(True for _ in plots.common_figures(results, 0)),
                self._draw_shared_errors,
            ),
            "Controlled paraphrases": (any(m.paraphrases for m in finished), self._draw_qualities),
        }
        views = {view: draw for view, (is_there, draw) in drawings.items() if is_there}
        best = next((name for name, _ in best_first(results, 0, self.yardstick)), "")
        if is_silent := bool(confused) and not confused.get(best):
            views["Confused labels"] = views.pop("Confused labels")  # last, and off the stage
        if views:
            # the first view depends on the kind
            key, n_on_stage = f"view-{results.data[0].kind}", len(views) - is_silent
            show_views("evaluation", views, key=key, n_on_stage=n_on_stage)

    def _draw_pairs(self, write_headline: Write) -> None:
        data = self.results.data[0]
        assert isinstance(data, ScoredData)
        label, measured = self.pick_method("evaluation-pairs-of")
        name = headlines.short_name(self.results, _name_method)(label)
        write_headline(headlines.describe_pairs(data, measured, name))
        self.explain(label, headlines.SIMILARITY_IN_SHORT)
        firsts, seconds = ([data.texts[i] for i in side] for side in (data.first, data.second))
        table = pd.DataFrame(
            {"text1": firsts, "text2": seconds, "score": data.scores, "product": measured.products}
        )
        short = headlines.short_name(self.results)(label)
        title = f"Human scores and cosine similarities with {escape(short)}"
        sentences = list(zip(firsts, seconds, strict=True))
        figure = scatter_figure(measured.products, data.scores, sentences, title)
        self.draw(figure, "pairs", table, height=520)

    def _draw_histograms(self, write_headline: Write) -> None:
        results = self.results
        sentence = headlines.describe_separation(results, 0, self.yardstick, _name_method, plain)
        write_headline(sentence)
        figures = {
            results.rows[row].label: (row, figure) for row, figure in plots.histograms(results, 0)
        }
        if len(figures) > MAX_DRAWN_METHODS:
            label, _ = self.pick_method("evaluation-histograms-of", figures)
            figures = {label: figures[label]}
        ordered = [label for label, _ in best_first(results, 0, self.yardstick)]
        on_stage = min(figures, key=ordered.index)  # what the headline is about
        self.explain(on_stage, headlines.SIMILARITY_IN_SHORT)

        def tabulate(row: int) -> pd.DataFrame:
            measured = results.measured(0, row)
            assert measured is not None
            products = {"similar": measured.same, "dissimilar": measured.diff}
            return pd.concat(pd.DataFrame({"kind": k, "product": v}) for k, v in products.items())

        n_columns = 3 if len(figures) == 3 else min(2, len(figures))  # no empty corner
        places = [place for _ in figures for place in st.columns(n_columns)]
        for place, (row, figure) in zip(places, figures.values(), strict=False):
            label, key = results.rows[row].label, f"evaluation-histogram-{row}"
            with place, nullcontext() if label == on_stage else hide_on_stage(key):
                name = f"products {label}"
                self.draw(figure, name, partial(tabulate, row), key=key)

    def _draw_shared_errors(self, write_headline: Write) -> None:
        results, compared = self.results, self.results.compared[0]
        write_headline(headlines.describe_shared_errors(results, 0, name=_name_method))
        self.explain(term=headlines.explain_shared_errors(results, 0))
        labels = [results.rows[row].label for row in compared.rows]
        for place, (name, figure) in enumerate(plots.common_figures(results, 0)):
            frame = pd.DataFrame(compared.overlaps[name].share, columns=labels)
            frame.insert(0, "method", labels)
            with (
                hide_on_stage(f"evaluation-overlap-{name}") if place else nullcontext(),
                allow_swiping(f"evaluation-overlap-{name}-wide", 140 + 65 * len(labels)),
            ):
                self.draw(figure, f"{name}-shared-errors", frame)

    def _describe_confused(self) -> dict[str, str]:
        """Which labels each method confuses, by its label; empty where nothing stands out."""
        name, by_label = headlines.short_name(self.results, _name_method), dict[str, str]()
        for _, label, measured in self.results.finished(0):
            for kind, confusion in measured.confusions.items():
                method = f"{name(label)} ({kind})" if len(measured.confusions) > 1 else name(label)
                sentence = headlines.describe_confusion(confusion, method, quote)
                by_label[label] = f"{by_label.get(label, '')} {sentence}".strip()
        return by_label

    def _draw_confusions(self, write_headline: Write) -> None:
        sentences = self._describe_confused()
        label, measured = self.pick_method("evaluation-confused-by", sentences)
        write_headline(sentences[label])
        self.explain(label, headlines.CONFUSED_IN_SHORT[next(iter(measured.confusions))])
        for row, measure, confusion, figure in plots.confusion_figures(self.results, 0):
            if self.results.rows[row].label != label:
                continue
            frame = pd.DataFrame(confusion.counts, columns=list(confusion.labels))
            frame.insert(0, "own label", list(confusion.labels), allow_duplicates=True)
            self.draw(figure, f"{measure}-confused-labels", frame)

    def _draw_qualities(self, write_headline: Write) -> None:
        sentence = headlines.describe_followed_quality(
            self.results, 0, self.yardstick, _name_method, plain
        )
        write_headline(sentence)
        drawings = list(plots.quality_figures(self.results, 0))
        labels = dict.fromkeys(self.results.rows[row].label for row, *_ in drawings)
        label, measured = self.pick_method("evaluation-paraphrases-by", labels)

        def tabulate() -> pd.DataFrame:
            frames = {
                result.quality: list_cells(
                    {"fixed1": result.fixed1, "fixed2": result.fixed2},
                    **{"tau-c": result.kendall_c, "n": result.n},
                )
                for result in measured.paraphrases
            }
            return pd.concat(frames, names=["quality"]).reset_index("quality")

        for row, kind, figure in drawings:
            if self.results.rows[row].label == label:
                with allow_swiping(f"evaluation-{kind}-wide", 320 * len(measured.paraphrases)):
                    self.draw(figure, f"paraphrases-{kind}", tabulate if kind == "tau-c" else None)
