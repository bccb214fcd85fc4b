"""The widgets for the data set, the methods and their settings."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders import METHODS, split_options
from neuralviz.embedders.specs import models_now
from neuralviz.errors import NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.data import SIMILAR, DataSet, Kind, LabelledData, ScoredData
from neuralviz.evaluation.experiments import EXPERIMENTS, Row, experiment_rows, method_rows
from neuralviz.evaluation.measures import check_measures
from neuralviz.evaluation.neighbourhoods import K
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings
from neuralviz.evaluation.roles import OPTIONAL, ROLES, columns_of, find_roles
from neuralviz.evaluation.tables import data_of
from neuralviz.models import BUNDLED, bundled
from neuralviz.models.language_model import head_layers, layers_of
from neuralviz.models.shared import LOADERS, is_loaded
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
from neuralviz.ui.method_choice import JOINED
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.precision import choose_precision

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = {
    "Texts in groups": "triplet_groups.csv",
    "Scored pairs": "scored_pairs.csv",
    "Topics": "topics.csv",
}
MAX_ROWS = 20_000
MAX_K = 1000
OWN_METHODS = "Methods"
LEAVING_LAYERS = ("layers", "ablations")  # tables whose rows are made from the layers of a model
FIRST_METHODS = ("mean", "sbert-wk", "neural")

KINDS: dict[Kind, str] = {
    "pairs": "Scored pairs",
    "groups": "Texts in groups",
    "labels": "Texts with labels",
    "paraphrases": "Controlled paraphrases",
}
ROLE_NAMES = {
    "text1": "First text",
    "text2": "Second text",
    "score": "Score",
    "text": "Text",
    "group": "Group",
    "role": "Role",
    "label": "Label",
    "original": "Original",
    "generated": "Generated",
    "varies": "Quality that varies",
    "value": "Value of that quality",
    "fixed1": "First fixed value",
    "fixed2": "Second fixed value",
}

_read_table = st.cache_data(max_entries=8, show_spinner=False)(read_table)


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is to be measured.

    Attributes:
        plan: one data set, and ways to embed.
        is_example: whether the data are those the page begins with.
    """

    plan: EvaluationPlan
    is_example: bool

    @property
    def data(self) -> DataSet:
        """What is measured on."""
        return self.plan.data[0]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Ways to embed."""
        return self.plan.rows

    @property
    def identity(self) -> tuple[object, ...]:
        """Of all that the results depend on, files of models included."""
        return self.plan.cache_key(), models_now(row.spec for row in self.rows)


def choose() -> Chosen | None:
    """Data and methods; None where something is missing or not valid, which is shown."""
    left, right = st.columns(2, gap="large")
    data, is_example, k = None, False, K
    with left:
        try:
            data, is_example = _choose_data()
            k = _choose_k(data)
        except NeuralvizError as error:
            show_error(error)
    with right:
        rows = _choose_rows()
    if data is None or rows is None:
        return None
    try:
        check_measures(data, ())
    except NeuralvizError as error:
        show_error(error)
        return None
    st.caption(plain(f"{data.name}: {data.describe()}."))
    for note in data.notes:
        st.caption(plain(note))
    return Chosen(EvaluationPlan((data,), rows, MeasureSettings(k=k)), is_example)


def _choose_k(data: DataSet | None) -> int:
    """How many neighbours vote, where there are labels."""
    if not isinstance(data, LabelledData):
        return K
    k = st.number_input(
        "Neighbours", min_value=1, max_value=MAX_K, value=K, key="neighbours", bind="query-params",
        width=160, help="Number of neighbours that vote on a text's label.",
    )  # fmt: skip
    return K if k is None else k


def _choose_data() -> tuple[DataSet | None, bool]:
    source = st.segmented_control(
        "Data set",
        ["Example", "Upload", "Hub"],
        default="Example",
        required=True,
        key="evaluation-source",
        persist_state="session",
    )
    if source == "Example":
        example = st.selectbox(
            "Example",
            list(EXAMPLES),
            key="example",
            bind="query-params",
            label_visibility="collapsed",
        )
        name = EXAMPLES[example or next(iter(EXAMPLES))]
        return _with_thresholds(_read(name, (sample_data() / name).read_bytes(), {})), True
    if source == "Hub":
        return _from_hub(), False
    file = st.file_uploader(
        "Table",
        key="evaluation-file",
        label_visibility="collapsed",
    )  # of any type: reading says what it is not
    if file is not None:
        st.session_state["evaluation-kept"] = (file.name, file.getvalue())
    if "evaluation-kept" not in st.session_state:
        st.caption(
            "Upload a table (CSV, TSV, JSONL, JSON, Parquet or XLSX) with the columns "
            "sentence1, sentence2 and score; text and group; text and label; or original, "
            "generated, varies, value, fixed1 and fixed2. Columns with other names can be "
            "assigned afterwards. The file stays on this machine."
        )
        return None, False
    name, content = st.session_state["evaluation-kept"]
    roles = _choose_columns(name, content)
    if roles is None:
        return None, False
    return _with_thresholds(_read(name, content, roles)), False


def _likely_kind(columns: Sequence[str]) -> Kind:
    """The kind of which the most is there, and for which there are columns enough."""

    def fits(kind: Kind) -> tuple[bool, int]:
        needed = [role for role in ROLES[kind] if role not in OPTIONAL]
        return len(needed) <= len(columns), len(columns_of(kind, columns))

    return max(KINDS, key=fits)


@st.cache_data(max_entries=8, show_spinner=False)
def _read(name: str, content: bytes, roles: dict[str, str]) -> DataSet:
    return data_of(name, _read_table(Source(name, content), max_rows=MAX_ROWS), roles)


def _choose_columns(name: str, content: bytes) -> dict[str, str] | None:
    """Role to column; None while one that is needed is missing."""
    columns = _read_table(Source(name, content), max_rows=MAX_ROWS).columns
    if not columns:
        return {}  # reading says why
    kind, is_clear = _likely_kind(columns), False
    with suppress(TextError):
        kind, _ = find_roles(name, columns, {})
        is_clear = True
    which = hashlib.sha256(repr(columns).encode()).hexdigest()[:12]  # of these columns
    with st.expander("Columns", expanded=not is_clear, key=f"evaluation-columns-{which}"):
        if not is_clear:
            st.caption(plain(f"Could not recognise the columns of {name}. Assign them below."))
        kind = st.selectbox(
            "The table contains", list(KINDS), index=list(KINDS).index(kind),
            format_func=KINDS.__getitem__, key=f"evaluation-kind-{which}", persist_state="session",
        )  # fmt: skip
        found = columns_of(kind, columns)
        row = st.container(horizontal=True)
        roles = {}
        for role in ROLES[kind]:
            options = ("", *columns) if role in OPTIONAL else columns
            column = found.get(role, "")
            roles[role] = row.selectbox(
                ROLE_NAMES[role],
                options,
                index=options.index(column) if column in options else None,
                format_func=lambda column: column or "none",
                key=f"evaluation-role-{which}-{kind}-{role}",
                persist_state="session",
                placeholder="Choose a column",
            )
        missing = [
            ROLE_NAMES[role]
            for role, column in roles.items()
            if not column and role not in OPTIONAL
        ]
        if missing:
            st.caption(f"Choose columns for these roles: {', '.join(missing)}.")
            return None
    return {role: column or "" for role, column in roles.items()}


def _from_hub() -> DataSet | None:
    """A data set on the Hub; None when none is named."""
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
    with st.spinner("Downloading …"):
        data = _load_hub_data(name.strip(), max_rows=MAX_ROWS)
    return _with_thresholds(data)


@st.cache_data(max_entries=4, show_spinner=False)
def _load_hub_data(name: str, max_rows: int) -> DataSet:
    from neuralviz.evaluation.hub_data import load_hub_data

    return load_hub_data(name, max_rows=max_rows)


def _with_thresholds(data: DataSet) -> DataSet:
    """Scored pairs with the thresholds that are asked for."""
    if not isinstance(data, ScoredData):
        return data
    row = st.container(horizontal=True)
    scale, step = ("", 0.5) if data.similar == SIMILAR else ("-of-1", 0.05)  # other scores
    similar = row.number_input(
        "Similar if at least", value=data.similar, step=step, format="%g",
        key=f"similar{scale}", bind="query-params",
        help="Pairs with this score or higher count as similar.",
    )  # fmt: skip
    dissimilar = row.number_input(
        "Dissimilar if at most", value=data.dissimilar, step=step, format="%g",
        key=f"dissimilar{scale}", bind="query-params",
        help="Pairs with this score or lower count as dissimilar.",
    )  # fmt: skip
    return replace(data, similar=similar, dissimilar=dissimilar)


def _choose_rows() -> tuple[Row, ...] | None:
    table = st.selectbox(
        "Evaluate",
        [OWN_METHODS, *EXPERIMENTS],
        key="experiment",
        bind="query-params",
        help="Choose your own methods, or an experiment from the papers.",
    )
    if table != OWN_METHODS:
        st.caption(EXPERIMENTS[table].line)
    methods: Sequence[str] = ()
    if table == OWN_METHODS:
        methods = st.multiselect(
            "Methods",
            [*METHODS, *JOINED],
            default=list(FIRST_METHODS),
            key="methods",
            bind="query-params",
            accept_new_options=True,
            label_visibility="collapsed",
            placeholder="Choose methods, or type neural+mean to concatenate two",
        )
    with st.popover("Settings", icon=":material/tune:", key="evaluation-settings"):
        precision = choose_precision("Precision", "precision", "exact")
        options = st.text_input(
            "Options",
            key="options",
            bind="query-params",
            placeholder="epochs=5, mean.layer=all" if table == OWN_METHODS else "NAME=VALUE",
            help=(
                "Options for every method that has them, or for one method with METHOD.NAME=VALUE."
            ),
        )
        model = st.text_input(
            "Model",
            key="evaluation-model",
            bind="query-params",
            placeholder="each method's default",
            help="“bundled”, all-MiniLM-L6-v2, a Hugging Face Hub ID, or a folder.",
        )
        beside = st.container()  # what is wrong with them, also while they cover the page
    try:
        typed = _pairs(options)
        model_id = (model or "").strip() or None
        if table == OWN_METHODS and not methods:
            st.caption("Choose at least one method.")
            return None

        masked = model_id or BUNDLED
        if table in LEAVING_LAYERS and masked != BUNDLED and not is_loaded(masked):
            st.caption("This experiment needs the model's layer names.")
            if not st.button(plain(f"Load {masked[:60]}")):
                return None

        def rows_with(options: dict[str, str]) -> tuple[Row, ...]:
            if table == OWN_METHODS:
                return method_rows(methods, options, model_id)
            return experiment_rows(table, options, model_id, _head_layers)

        rows = rows_with(typed)
        if precision != "exact" and any(row.spec.learns for row in rows):
            rows = rows_with({"precision": precision} | typed)
        return rows
    except NeuralvizError as error:
        show_error(error)
        with beside:
            show_error(error)
        return None


def _head_layers(model_id: str) -> Sequence[str]:
    """Of the bundled model without loading it."""
    if model_id == BUNDLED:
        shapes = bundled.shapes()
        return head_layers(layers_of(shapes, "bert"), shapes["cls.predictions.bias"][0])
    return LOADERS["masked"](model_id).head_layers


def _pairs(typed: str | None) -> dict[str, str]:
    """``NAME=VALUE`` pairs with commas between them; a value may hold commas itself.

    Raises:
        SettingsError: it is no list of such pairs.
    """
    entries: list[str] = []
    for part in (typed or "").split(","):
        if "=" in part or not entries:
            entries.append(part.strip())
        else:
            entries[-1] += "," + part
    if entries == [""]:
        return {}
    if any(entry.count("=") != 1 for entry in entries):
        raise SettingsError("Write options as NAME=VALUE, separated by commas.")
    return split_options(entries)
