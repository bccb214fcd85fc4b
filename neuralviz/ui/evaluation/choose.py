"""The widgets of the evaluation page: the data set, the methods and their settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from neuralviz.embedders import METHODS, split_options
from neuralviz.embedders.specs import EmbedderSpec, method_labels, split_at_commas
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.evaluation.data import BY_RANGE, DataSet, LabelledData, Measure, ScoredData
from neuralviz.evaluation.measures import check_measures
from neuralviz.evaluation.plan import (
    EXPERIMENTS,
    EvaluationPlan,
    MeasureSettings,
    Row,
    experiment_rows,
    method_rows,
    spec_rows,
)
from neuralviz.evaluation.probing_tasks import TASKS, ProbingTask, probing_task
from neuralviz.evaluation.tables import (
    CorpusKind,
    corpus_data,
    kept_specs,
    load_hub_data,
    make_data,
)
from neuralviz.jobs.evaluating import EXAMPLES, FIRST_METHODS, Evaluate
from neuralviz.maps.neighbours import K, suggest_k
from neuralviz.micro_tuning.settings import Precision
from neuralviz.models import BUNDLED
from neuralviz.models.shared import check_may_load
from neuralviz.reading.pairs import FIVE, Scale
from neuralviz.reading.source import Source
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import imported_specs
from neuralviz.store.vectors import text_keys
from neuralviz.ui.choices import BY_DIGEST, choose_one, choose_precision, corpus_store
from neuralviz.ui.corpus.opened import open_corpus
from neuralviz.ui.inputs import MAX_ROWS, open_upload, read_uploaded, upload_table
from neuralviz.ui.limits import effective_settings, row_limit
from neuralviz.ui.model_choice import (
    JOINED,
    MODEL_HELP,
    may_load,
    offline_models,
    trained_names,
)
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.stage import show_on_stage

KEY = "evaluation"
MAX_K = 1000
OWN_METHODS = "Methods"
SAVED_EMBEDDINGS = "Saved embeddings"
LAYER_TABLES = ("layers", "ablations", "layer-by-layer")  # rows depend on the model
CORPUS_KINDS: dict[str, CorpusKind] = {"Nearest neighbours": "labels", "Triplets": "groups"}
NO_PROBE, LABELS = "none", "labels"
PROBE_NAMES = {NO_PROBE: "No probe", LABELS: "Labels"}
PROBE_NAMES |= {name: task.title for name, task in TASKS.items()}
PROBE_HELP = "\n".join(
    [
        "A small network learns to tell something from the embeddings of the texts.\n",
        "- **Labels**: the labels of the data.",
        *(f"- **{task.title}**: {task.line}" for task in TASKS.values()),
    ]
)
_TABLE_COLUMNS = (
    "sentence1, sentence2 and score; text and group; text and label; or original, generated, "
    "varies, value, fixed1 and fixed2"
)


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
        kept = choice.kept if choice is not None else ()
        table = _choose_table(bool(kept))
        specs = _list_specs(table, choice)
        names = _choose_methods(table, specs)
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
    st.session_state.setdefault(f"{KEY}-source", "Example")
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
            default=next(iter(EXAMPLES)),
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
    chosen = row.selectbox(
        "Corpus",
        list(corpora),
        format_func=lambda key: corpora[key].name if key in corpora else key,
        key="evaluation-corpus",
        bind="query-params",
    )
    corpus = corpora.get(chosen) or next(iter(corpora.values()))
    columns = list(open_corpus(corpus).label_names)
    if not columns:
        sentence = "has no column of labels. Evaluation needs to know which texts belong together."
        st.caption(plain(f"“{corpus.name}” {sentence}"))
        return None
    column = row.selectbox("Label", columns, key=f"evaluation-label-of-{corpus.id}") or columns[0]
    kind = choose_one(
        row.segmented_control,
        "Measured by",
        list(CORPUS_KINDS),
        default=next(iter(CORPUS_KINDS)),
        key="evaluation-corpus-by",
    )
    data = _read_corpus(corpus.id, corpus.name, column, CORPUS_KINDS[kind])
    return DataChoice(data, corpus.id, kept_specs(CorpusStore(), corpus))


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
        [NO_PROBE, *[LABELS] * is_labelled, *TASKS],
        format_func=PROBE_NAMES.__getitem__,
        key="probe-of-labels" if is_labelled else "probe",
        bind="query-params",
        help=PROBE_HELP,
    )
    if task == LABELS:
        return choice, (*data.by_default, "probe")
    if task not in TASKS:
        return choice, ()
    st.caption(TASKS[task].line)
    task_data = _make_task_data(task, data.name, data.texts)
    kept = () if task_data.rewrites else choice.kept
    return replace(choice, data=task_data, kept=kept), ()


@st.cache_data(max_entries=8, show_spinner=False)
def _make_task_data(task: str, name: str, texts: tuple[str, ...]) -> ProbingTask:
    return probing_task(task, name, texts)


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
        visible = {spec for corpus in store.corpora() for spec in kept_specs(store, corpus)}
    except StoreError:  # opening a saved corpus shows the error
        return {}
    return {label: spec for label, spec in imported.items() if spec in visible}


def _choose_table(has_saved: bool) -> str:
    return st.selectbox(
        "Evaluate",
        [*[SAVED_EMBEDDINGS] * has_saved, OWN_METHODS, *EXPERIMENTS],
        key="experiment-of-corpus" if has_saved else "experiment",
        bind="query-params",
        help="Choose your own methods, or an experiment from the papers.",
    )


def _choose_methods(table: str, specs: Mapping[str, EmbedderSpec]) -> Sequence[str]:
    """Ask for methods, or for embeddings of a corpus; empty for an experiment."""
    if table in EXPERIMENTS:
        st.caption(EXPERIMENTS[table].line)
        return ()
    if table == SAVED_EMBEDDINGS:
        labels = list(specs)
        return st.multiselect(
            "Embeddings",
            labels,
            default=labels,
            key=f"kept-{'-'.join(labels)}",
            label_visibility="collapsed",
            placeholder="Choose saved embeddings",
        )
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
    precision = choose_precision("precision", "exact")
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
    first = suggest_k([list(Counter(labels).values())])
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
