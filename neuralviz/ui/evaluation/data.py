"""The widgets for the data: an example, a file, a saved corpus, or a data set on the Hub."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from neuralviz.errors import TextError
from neuralviz.evaluation.corpora import CorpusKind, corpus_data, kept_specs
from neuralviz.evaluation.data import DataSet, Kind
from neuralviz.evaluation.examples import EXAMPLES
from neuralviz.evaluation.guessing import guess_columns, guess_roles
from neuralviz.evaluation.roles import OPTIONAL, ROLES, find_roles
from neuralviz.evaluation.tables import data_of
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
from neuralviz.store.corpora import CorpusStore
from neuralviz.ui.allowed import allowed, most_rows, where_it_goes
from neuralviz.ui.choices import choose_one
from neuralviz.ui.corpora import corpus_store
from neuralviz.ui.corpus.kept import open_corpus
from neuralviz.ui.header import choose_header
from neuralviz.ui.links import open_view, put_in_address
from neuralviz.ui.pace import letting_others_draw
from neuralviz.ui.page import plain
from neuralviz.ui.stage import on_stage
from neuralviz.ui.views import LARGEST_FILE, View

if TYPE_CHECKING:
    from neuralviz.embedders.specs import EmbedderSpec

MAX_ROWS = 20_000
KINDS: dict[Kind, str] = {
    "pairs": "Scored pairs",
    "groups": "Texts in groups",
    "labels": "Texts with labels",
    "paraphrases": "Controlled paraphrases",
}
CORPUS_KINDS: dict[str, CorpusKind] = {"Nearest neighbours": "labels", "Triplets": "groups"}
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

KEY = "evaluation"
_SOURCE, _KEPT = f"{KEY}-source", f"{KEY}-kept"
_HEADER = f"{KEY}-header-"
_ROLES = (f"{KEY}-kind-", f"{KEY}-role-", _HEADER)  # begin the keys of the widgets for columns
_BY_DIGEST: dict[str | type[Any], Callable[[Any], Any]] = {Source: lambda source: source.digest}
_read_table = st.cache_data(max_entries=8, show_spinner=False, hash_funcs=_BY_DIGEST)(read_table)


@dataclass(frozen=True, eq=False)
class Given:
    """Data, and what is known of them.

    Attributes:
        data: to measure on.
        corpus: id of the saved corpus that they are; empty for others.
        kept: the ways to embed by which a saved corpus is embedded already.
    """

    data: DataSet
    corpus: str = ""
    kept: tuple[EmbedderSpec, ...] = ()


def choose_data() -> Given | None:
    """The data; None where something is missing, which is shown.

    Raises:
        NeuralvizError: they cannot be read.
    """
    view = open_view(KEY)
    if view is not None and view.file is not None:
        st.session_state[_SOURCE] = "Upload"
        st.session_state[_KEPT] = view.file
        st.session_state.update(view.choices)
    st.session_state.setdefault(_SOURCE, "Example")
    sources = ["Example", "Upload", "Saved corpus", *([] if allowed().demo else ["Hub"])]
    source = choose_one(st.segmented_control, "Data set", sources, key=_SOURCE)
    if source == "Saved corpus":
        return _from_corpus()
    find = {"Example": _example, "Upload": _uploaded, "Hub": _from_hub}[source]
    data = find()
    return None if data is None else Given(data)


def _example() -> DataSet:
    with on_stage("example"):
        name = choose_one(
            st.pills,
            "Example",
            list(EXAMPLES),
            default=next(iter(EXAMPLES)),
            key="example",
            label_visibility="collapsed",
            wrap=True,
        )
    example = EXAMPLES.get(name) or next(iter(EXAMPLES.values()))
    st.caption(example.line)
    return _read_example(example.name)


@st.cache_data(max_entries=8, show_spinner=False)
def _read_example(name: str) -> DataSet:
    return EXAMPLES[name].read()


def _uploaded() -> DataSet | None:
    file = st.file_uploader(
        "Table",
        key="evaluation-file",
        label_visibility="collapsed",
    )  # of any type: reading says what it is not
    if file is not None:
        st.session_state[_KEPT] = Source(file.name, file.getvalue())
    if _KEPT not in st.session_state:
        st.caption(
            "Upload a table (CSV, TSV, JSONL, JSON, Parquet, Arrow or XLSX) with the columns "
            "sentence1, sentence2 and score; text and group; text and label; or original, "
            "generated, varies, value, fixed1 and fixed2. Columns with other names are guessed; "
            f"you can correct them. {where_it_goes()}"
        )
        return None
    source = choose_header(st.session_state[_KEPT], f"{_HEADER}{st.session_state[_KEPT].name}")
    said = _read_table(source, max_rows=most_rows(MAX_ROWS)).describe_header(source.name)
    if said:
        st.caption(plain(said))
    roles = _choose_columns(source)
    return None if roles is None else _read(source, roles)


def put_upload_in_address() -> None:
    """Let the address bring an uploaded table back, with the roles of its columns."""
    if st.session_state.get(_SOURCE) != "Upload" or _KEPT not in st.session_state:
        return
    choices = [
        (name, value)
        for name, value in st.session_state.items()
        if str(name).startswith(_ROLES) and isinstance(value, str)
    ]
    file: Source = st.session_state[_KEPT]
    put_in_address(KEY, View((), file, tuple((str(name), value) for name, value in choices)))
    if isinstance(file.content, bytes) and len(file.content) > LARGEST_FILE:
        st.toast("This table is too large to be saved, so the link does not include it.")


def _from_corpus() -> Given | None:
    """A saved corpus with a column of labels; None where there is none, which is said."""
    store = CorpusStore()
    corpora = {one.id: one for one in corpus_store().corpora()}
    if not corpora:
        st.caption("No saved corpora yet. Add one on the **Corpus map** page.")
        return None
    row = st.container(horizontal=True)
    chosen = row.selectbox(
        "Corpus", list(corpora), format_func=lambda one: corpora[one].name if one in corpora
        else one, key="evaluation-corpus", bind="query-params",
    )  # fmt: skip
    corpus = corpora.get(chosen) or next(iter(corpora.values()))
    columns = list(open_corpus(corpus).category_names)
    if not columns:
        st.caption(
            plain(f"“{corpus.name}” has no column of labels. Evaluation needs to know which texts "
                  "belong together.")
        )  # fmt: skip
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
    return Given(data, corpus.id, kept=kept_specs(store, corpus))


@st.cache_data(max_entries=4, show_spinner=False)
def _read_corpus(corpus_id: str, name: str, column: str, kind: CorpusKind) -> DataSet:
    """The data of a corpus; its name is a part of theirs, and may change."""
    store = CorpusStore()
    return corpus_data(store, store.corpus(corpus_id), column, kind, max_rows=most_rows(MAX_ROWS))


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=_BY_DIGEST)
def _read(source: Source, roles: dict[str, str]) -> DataSet:
    return data_of(source.name, _read_table(source, max_rows=most_rows(MAX_ROWS)), roles)


def _choose_columns(source: Source) -> dict[str, str] | None:
    """Role to column; None while one that is needed is missing."""
    name, table = source.name, _read_table(source, max_rows=most_rows(MAX_ROWS))
    columns = table.columns
    if not columns:
        return {}  # reading says why
    kind, guessed = guess_roles(table)
    is_named = False
    with suppress(TextError):
        kind, guessed = find_roles(name, columns, {})
        is_named = True
    is_clear = is_named or all(role in guessed or role in OPTIONAL for role in ROLES[kind])
    if is_clear and not is_named:
        said = ", ".join(f"{ROLE_NAMES[role].lower()}: {one}" for role, one in guessed.items())
        st.caption(plain(f"Columns guessed from their content ({said}). Correct them below."))
    which = hashlib.sha256(repr(columns).encode()).hexdigest()[:12]  # of these columns
    with st.expander("Columns", expanded=not is_clear, key=f"evaluation-columns-{which}"):
        if not is_clear:
            st.caption(plain(f"Could not recognise the columns of {name}. Assign them below."))
        key = f"evaluation-kind-{which}"
        st.session_state.setdefault(key, kind)
        kind = st.selectbox(
            "The table contains",
            list(KINDS),
            format_func=KINDS.__getitem__,
            key=key,
            persist_state="session",
        )
        found = guessed if set(guessed) <= set(ROLES[kind]) else guess_columns(kind, table)
        row = st.container(horizontal=True)
        roles = {}
        for role in ROLES[kind]:
            options = ("", *columns) if role in OPTIONAL else columns
            column = found.get(role, "")
            key = f"evaluation-role-{which}-{kind}-{role}"
            st.session_state.setdefault(key, column if column in options else None)
            roles[role] = row.selectbox(
                ROLE_NAMES[role],
                options,
                index=0 if column in options else None,  # without one, it can be emptied
                format_func=lambda column: column or "none",
                key=key,
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
    with letting_others_draw(), st.spinner("Downloading …"):
        return _load_hub_data(name.strip(), max_rows=most_rows(MAX_ROWS))


@st.cache_data(max_entries=4, show_spinner=False)
def _load_hub_data(name: str, max_rows: int) -> DataSet:
    from neuralviz.evaluation.hub_data import load_hub_data

    return load_hub_data(name, max_rows=max_rows)
