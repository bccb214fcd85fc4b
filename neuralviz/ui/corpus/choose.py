"""Which corpus is looked at: chosen, added, renamed, downloaded, deleted."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.settings import FEWEST_TEXTS
from neuralviz.plots.theme import shorten
from neuralviz.reading.folders import read_files
from neuralviz.reading.pasted import split_pasted
from neuralviz.reading.source import TABLES, Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.corpora import MAX_NAME, CorpusStore
from neuralviz.store.writing import table_bytes
from neuralviz.ui.corpus.work import current_run
from neuralviz.ui.page import plain, show_error
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from neuralviz.reading.texts import Mode
    from neuralviz.store.corpora import Corpus

CORPUS = "corpus"  # where session and address keep the id of the one that is looked at
ADDED = "corpus-added"  # where the session keeps the id of one that has just been added
KEPT_SECONDS = 600  # of what was read, while one looks at it
_TIMES_ADDED = "corpus-times-added"  # so that the dialog opens empty
_RENAMED = "corpus-renamed"
_IN_ADDRESS = "corpus-in-address"
ENDINGS = ["txt", "md", *(ending[1:] for ending in TABLES)]
PREVIEWED = 6  # texts
ROW_HEIGHT = 35  # px, of a table
GUESSED = "detect automatically"
_MODES: dict[str, Mode] = {
    "line": "line",
    "paragraph": "blank line",
    "file": "one",
}

_cache = partial(
    st.cache_data,
    ttl=KEPT_SECONDS,
    show_spinner="Reading …",
    hash_funcs={Source: lambda source: source.digest},
)
_read_file = _cache(max_entries=2)(read_texts)
_read_files = _cache(max_entries=1)(read_files)


def choose_corpus(corpora: Sequence[Corpus]) -> Corpus | None:
    """The corpus to look at, with the means to add one and to manage it; None when there is none.

    The id of one that has just been added is in the session under `ADDED`.

    Args:
        corpora: those there are.
    """
    by_id = {corpus.id: corpus for corpus in corpora}
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    _follow_address(by_id)
    chosen = row.selectbox(
        "Corpus",
        list(by_id),
        format_func=lambda one: f"{by_id[one].name} · {many(by_id[one].n_texts, 'text')}",
        key=CORPUS,
        persist_state="session",
        placeholder="No corpora yet",
    )
    if row.button("Add a corpus", icon=":material/add:", key="corpus-add"):
        st.session_state[_TIMES_ADDED] = st.session_state.get(_TIMES_ADDED, 0) + 1
        _add_dialog()
    corpus = by_id.get(chosen or "")
    if corpus is not None:
        st.query_params[CORPUS] = corpus.id
        st.session_state[_IN_ADDRESS] = corpus.id
        key = f"corpus-manage-{corpus.id}"
        with row.popover("Manage", icon=":material/folder_managed:", key=key):
            _manage(corpus)
    return corpus


def _follow_address(names: Collection[str]) -> None:
    """Choose the corpus of an address that has just been opened."""
    asked = st.query_params.get(CORPUS)
    if asked and asked != st.session_state.get(_IN_ADDRESS):
        if asked in names:
            st.session_state[CORPUS] = asked
        else:
            st.toast("The corpus in this link is not on this machine. Showing another one.")
    renamed = st.session_state.pop(_RENAMED, None)
    if renamed in names:
        st.session_state[CORPUS] = renamed  # chosen anew, the box takes up the new name
    if st.session_state.get(CORPUS) not in names:
        st.session_state[CORPUS] = next(iter(names), None)


@st.dialog("Add a corpus", width="large")
def _add_dialog() -> None:
    """Upload or paste, look at what was read, save it."""
    source = st.segmented_control(
        "Source", list(_SOURCES), default="Files", required=True, key="corpus-add-source"
    )
    try:
        read, name = _SOURCES[source]()
    except NeuralvizError as error:
        show_error(error)
        return
    for note in read.notes if read else ():
        st.caption(plain(note))
    if not read or not read.texts:
        st.caption("Your texts stay on this machine. Your files are not changed.")
        return
    _preview(read)
    typed = st.text_input("Name", shorten(name, MAX_NAME), max_chars=MAX_NAME)
    enough = len(set(read.texts)) >= FEWEST_TEXTS
    if not enough:
        st.caption(
            f"A map needs at least {FEWEST_TEXTS} different texts. You can still save these."
        )
    label = "Save and make a map" if enough else "Save"
    if st.button(label, type="primary", icon=":material/map:" if enough else ":material/save:"):
        try:
            corpus = CorpusStore().add(typed, read)
        except NeuralvizError as error:
            show_error(error)
            return
        st.session_state[ADDED] = corpus.id
        st.rerun()


def _pasted() -> tuple[ReadTexts | None, str]:
    mode = st.radio("One text per", list(_MODES)[:2], horizontal=True, key="corpus-paste-mode")
    pasted = st.text_area(
        "Texts", height=220, placeholder="Paste your texts here", key="corpus-paste"
    )
    read = split_pasted(pasted, _MODES[mode])
    return read, shorten(read.texts[0], 30) if read.texts else ""


def _uploaded() -> tuple[ReadTexts | None, str]:
    files = st.file_uploader(
        "Tables or text files",
        type=ENDINGS,
        accept_multiple_files=True,
        key=f"corpus-files-{st.session_state.get(_TIMES_ADDED)}",
        help=(
            "CSV, TSV, JSON, JSONL, Parquet or XLSX with a column of texts, or plain text. "
            "If you upload several files, each plain text file is one text."
        ),
    )
    if not files:
        return None, ""
    if len(files) > 1:
        return _read_files([_source(file) for file in files]), f"{len(files)} files"
    (file,) = files
    source, name = _source(file), PurePosixPath(file.name).stem
    if not source.is_table:
        mode = st.radio("One text per", list(_MODES), horizontal=True, key="corpus-file-mode")
        return _read_file(source, mode=_MODES[mode]), name
    read = _read_file(source)
    columns = list(read.columns)
    if len(columns) > 1:
        left, right = st.columns(2)
        column = left.selectbox(
            "Text column",
            columns,
            index=columns.index(cast("str", read.column)),
            key=f"corpus-column-{file.file_id}",
        )
        of_ids = right.selectbox("ID column", [GUESSED, *columns], key=f"corpus-ids-{file.file_id}")
        read = _read_file(source, column, id_column=None if of_ids == GUESSED else of_ids)
    return read, name


def _folder() -> tuple[ReadTexts | None, str]:
    files = st.file_uploader(
        "A folder of tables and text files",
        type=ENDINGS,
        accept_multiple_files="directory",
        key=f"corpus-folder-{st.session_state.get(_TIMES_ADDED)}",
        help=(
            "Each plain text file is one text; tables are combined. The file name becomes a label."
        ),
    )
    if not files:
        return None, ""
    given = sorted(map(_source, files), key=lambda source: source.name)
    return _read_files(given), PurePosixPath(given[0].name).parts[0]


def _source(file: UploadedFile) -> Source:
    return Source(file.name, file.getvalue())


_SOURCES = {"Files": _uploaded, "Folder": _folder, "Paste": _pasted}


def _preview(read: ReadTexts) -> None:
    n = len(read.texts)
    st.markdown(f"**{many(n, 'text')}**. Preview:")
    first = read.first(PREVIEWED)
    table = {"text": [shorten(text, 200) for text in first.texts]}
    for name, values in first.labels.items():
        table[name if name not in table else f"{name} (label)"] = list(values)
    height = ROW_HEIGHT * (len(first.texts) + 1) + 3
    st.dataframe(pd.DataFrame(table), hide_index=True, height=height)


def _manage(corpus: Corpus) -> None:
    """Rename, download, delete."""
    key = f"corpus-name-{corpus.id}"
    name = st.text_input(
        "Name", corpus.name, max_chars=MAX_NAME, key=key, help="Press Enter to rename the corpus."
    )
    if name != corpus.name:
        try:
            CorpusStore().rename(corpus, name)
        except NeuralvizError as error:
            show_error(error)
        else:
            st.session_state[_RENAMED] = corpus.id
            st.rerun()
    for ending, label in ((".csv", "CSV"), (".parquet", "Parquet")):
        st.download_button(
            f"Texts and labels ({label})",
            partial(_whole_corpus, corpus, ending),
            f"{file_name(corpus)}{ending}",
            key=f"corpus-take{ending}",
            on_click="ignore",
            width="stretch",
        )
    sure = st.checkbox(
        "Delete the corpus with its maps and embeddings", key=f"corpus-sure-{corpus.id}"
    )
    if st.button(
        "Delete", key="corpus-delete", icon=":material/delete:", disabled=not sure, width="stretch"
    ):
        run = current_run(corpus)
        if run is not None:
            run.stop()
        try:
            CorpusStore().delete(corpus)
        except NeuralvizError as error:
            show_error(error)
        else:
            st.session_state.pop(CORPUS, None)
            st.rerun()


def file_name(corpus: Corpus) -> str:
    """A corpus's name as that of a file, without ending."""
    return re.sub(r"[^\w .-]+", "_", corpus.name).strip(" ._") or "corpus"


def _whole_corpus(corpus: Corpus, ending: str) -> bytes:
    return table_bytes(ending, corpus_table(CorpusStore(), corpus))
