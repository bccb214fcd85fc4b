"""The widgets for the data: an example, a file, a saved corpus, or a data set on the Hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.evaluation.data import DataSet
from neuralviz.evaluation.examples import EXAMPLES
from neuralviz.evaluation.tables import CorpusKind, corpus_data, kept_specs, make_data
from neuralviz.store.corpora import CorpusStore
from neuralviz.ui.choices import choose_one
from neuralviz.ui.corpora import corpus_store
from neuralviz.ui.corpus.opened import open_corpus
from neuralviz.ui.limits import effective_settings, row_limit
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain
from neuralviz.ui.stage import show_on_stage
from neuralviz.ui.tables import BY_DIGEST, MAX_ROWS, open_upload, read_uploaded, upload_table

if TYPE_CHECKING:
    from neuralviz.embedders.specs import EmbedderSpec
    from neuralviz.reading.source import Source

CORPUS_KINDS: dict[str, CorpusKind] = {"Nearest neighbours": "labels", "Triplets": "groups"}

KEY = "evaluation"
_SOURCE = f"{KEY}-source"


@dataclass(frozen=True, eq=False)
class DataChoice:
    """The data that are chosen, and where they come from.

    Attributes:
        data: embeddings are evaluated on them.
        corpus: id of their saved corpus; empty for other data.
        kept: specs of the embeddings that the saved corpus already has.
        is_example: whether the data come with neuralviz.
    """

    data: DataSet
    corpus: str = ""
    kept: tuple[EmbedderSpec, ...] = ()
    is_example: bool = False


def choose_data() -> DataChoice | None:
    """Ask for the data; None, with a message, while something is missing.

    Raises:
        NeuralvizError: the data cannot be read.
    """
    open_upload(KEY)
    st.session_state.setdefault(_SOURCE, "Example")
    sources = ["Example", "Upload", "Saved corpus", *([] if effective_settings().demo else ["Hub"])]
    source = choose_one(st.segmented_control, "Data set", sources, key=_SOURCE)
    if source == "Saved corpus":
        return _choose_corpus()
    find = {"Example": _choose_example, "Upload": _choose_upload, "Hub": _choose_hub_data}[source]
    data = find()
    return None if data is None else DataChoice(data, is_example=source == "Example")


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
    example = EXAMPLES.get(name) or next(iter(EXAMPLES.values()))
    st.caption(example.line)
    return _read_example(example.name)


@st.cache_data(max_entries=8, show_spinner=False)
def _read_example(name: str) -> DataSet:
    return EXAMPLES[name].read()


def _choose_upload() -> DataSet | None:
    columns = (
        "sentence1, sentence2 and score; text and group; text and label; or original, generated, "
        "varies, value, fixed1 and fixed2"
    )
    upload = upload_table(KEY, columns, row_limit(MAX_ROWS))
    return upload and _read(*upload)


def _choose_corpus() -> DataChoice | None:
    """Ask for a saved corpus and a label; None, with a message, where there is none."""
    store = CorpusStore()
    corpora = {corpus.id: corpus for corpus in corpus_store().corpora()}
    if not corpora:
        st.caption("No saved corpora yet. Add one on the **Corpus map** page.")
        return None
    row = st.container(horizontal=True)
    chosen = row.selectbox(
        "Corpus", list(corpora),
        format_func=lambda key: corpora[key].name if key in corpora else key,
        key="evaluation-corpus", bind="query-params",
    )  # fmt: skip
    corpus = corpora.get(chosen) or next(iter(corpora.values()))
    columns = list(open_corpus(corpus).label_names)
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
    return DataChoice(data, corpus.id, kept=kept_specs(store, corpus))


@st.cache_data(max_entries=4, show_spinner=False)
def _read_corpus(corpus_id: str, name: str, column: str, kind: CorpusKind) -> DataSet:
    """The data of a corpus; its name is in the cache key because it may change."""
    store = CorpusStore()
    return corpus_data(store, store.corpus(corpus_id), column, kind, max_rows=row_limit(MAX_ROWS))


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=BY_DIGEST)
def _read(source: Source, roles: dict[str, str]) -> DataSet:
    return make_data(source.name, read_uploaded(source, max_rows=row_limit(MAX_ROWS)), roles)


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
    from neuralviz.evaluation.hub_data import load_hub_data

    return load_hub_data(name, max_rows=max_rows)
