"""The widgets that choose, add, rename, download and delete a corpus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

import pandas as pd
import streamlit as st

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.maps.exporting import corpus_table
from neuralviz.maps.settings import FEWEST_TEXTS, MOST_WHOLE, is_large
from neuralviz.plots.theme import shorten
from neuralviz.reading.folders import read_files
from neuralviz.reading.pasted import split_pasted
from neuralviz.reading.source import TABLES, WITHOUT_NAMES, Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.reading.vectors import has_vectors, read_vectors
from neuralviz.store.corpora import MAX_NAME, CorpusStore
from neuralviz.store.writing import table_bytes
from neuralviz.ui.choices import choose_header
from neuralviz.ui.corpora import corpus_store, describe_corpus_visibility, may_change
from neuralviz.ui.corpus.importing import ADDED, import_for_new, show_import_form
from neuralviz.ui.corpus.work import current_run
from neuralviz.ui.figures import download
from neuralviz.ui.limits import check_within_limits, describe_destination, effective_settings
from neuralviz.ui.page import plain, show_error
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from neuralviz.reading.texts import Mode
    from neuralviz.store.corpora import Corpus

CORPUS = "corpus"  # session state and address: the id of the chosen corpus
KEPT_SECONDS = 600  # how long the texts of an upload are cached
_TIMES_ADDED = "corpus-times-added"  # so that the dialog opens empty
_RENAMED = "corpus-renamed"
_SOURCES_OF_FILES = "corpus-uploaded"  # by id of the upload
_IN_ADDRESS = "corpus-in-address"
ENDINGS = ["txt", "md", *(ending[1:] for ending in TABLES)]
PREVIEWED = 6  # texts
ROW_HEIGHT = 37  # px, of a table
GUESSED = "detect automatically"
_MODES: dict[Mode, str] = {
    "line": "One text per line",
    "blank line": "Blank line between texts",
    "one": "A single text",
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
    """Widgets to choose, add and manage a corpus; the chosen corpus, None where there is none.

    The session state holds the id of a corpus that was just added, under `ADDED`.

    Args:
        corpora: all saved corpora that this browser sees.
    """
    by_id = {corpus.id: corpus for corpus in corpora}
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    _follow_address(by_id)
    chosen = row.selectbox(
        "Corpus",
        list(by_id),
        format_func=lambda corpus_id: (
            f"{by_id[corpus_id].name} · {many(by_id[corpus_id].n_texts, 'text')}"
        ),
        key=CORPUS,
        persist_state="session",
        placeholder="No corpora yet",
    )
    if effective_settings().demo:
        row.caption("Corpora cannot be added or changed in this demo.")
    elif row.button("Add a corpus", icon=":material/add:", key="corpus-add"):
        st.session_state[_TIMES_ADDED] = st.session_state.get(_TIMES_ADDED, 0) + 1
        st.session_state.pop(_SOURCES_OF_FILES, None)
        _show_add_dialog()
    corpus = by_id.get(chosen or "")
    if corpus is not None:
        st.query_params[CORPUS] = corpus.id
        st.session_state[_IN_ADDRESS] = corpus.id
        key = f"corpus-manage-{corpus.id}"
        with row.popover("Manage", icon=":material/folder_managed:", key=key):
            _manage(corpus)
    return corpus


def _follow_address(names: Collection[str]) -> None:
    """Choose the corpus that a newly opened address names."""
    linked_id = st.query_params.get(CORPUS)
    if linked_id and linked_id != st.session_state.get(_IN_ADDRESS):
        if linked_id in names:
            st.session_state[CORPUS] = linked_id
        else:
            st.toast("The corpus in this link is not saved here. Showing another one.")
    renamed = st.session_state.pop(_RENAMED, None)
    if renamed in names:
        st.session_state[CORPUS] = renamed  # so that the box shows the new name
    if st.session_state.get(CORPUS) not in names:
        st.session_state[CORPUS] = next(iter(names), None)


@st.dialog("Add a corpus", width="large")
def _show_add_dialog() -> None:
    """A dialog: upload or paste texts, look at a preview, save them as a corpus."""
    source = st.segmented_control(
        "Source", list(_SOURCES), default="Files", required=True, key="corpus-add-source"
    )
    try:
        new = _SOURCES[source]()
    except NeuralvizError as error:
        show_error(error)
        return
    read = new.read
    for note in read.notes if read else ():
        st.caption(plain(note))
    if not read or not read.texts:
        st.caption(
            f"{describe_corpus_visibility() or describe_destination('What you add')} "
            "Your files are not changed."
        )
        return
    _preview(read)
    typed = st.text_input("Name", shorten(new.name, MAX_NAME), max_chars=MAX_NAME)
    source_of_vectors = new.vectors
    if source_of_vectors is not None and not st.checkbox(
        plain(f"Import the embeddings in {source_of_vectors.name}"), value=True
    ):
        source_of_vectors = None
    enough = len(set(read.texts)) >= FEWEST_TEXTS
    if not enough:
        st.caption(
            f"A map needs at least {FEWEST_TEXTS} different texts. You can still save these."
        )
    if describe_corpus_visibility():
        st.caption(describe_corpus_visibility())
    label = "Save and make a map" if enough else "Save"
    if st.button(label, type="primary", icon=":material/map:" if enough else ":material/save:"):
        try:
            check_within_limits(read.texts)
            vectors = None if source_of_vectors is None else read_vectors(source_of_vectors)
            corpus = corpus_store().add(typed, read)
        except NeuralvizError as error:
            show_error(error)
            return
        st.session_state.pop(_SOURCES_OF_FILES, None)
        if vectors is not None:
            import_for_new(corpus, vectors)
            return
        st.session_state[ADDED] = corpus.id
        st.rerun()


@dataclass(frozen=True, eq=False)
class _NewCorpus:
    """The texts of a new corpus, its name, and the file with their vectors, if there is one."""

    read: ReadTexts | None = None
    name: str = ""
    vectors: Source | None = None


def _read_pasted() -> _NewCorpus:
    mode = _choose_mode(list(_MODES)[:2], "corpus-paste-mode")
    pasted = st.text_area(
        "Texts", height=220, placeholder="Paste your texts here", key="corpus-paste"
    )
    read = split_pasted(pasted, mode)
    return _NewCorpus(read, shorten(read.texts[0], 30) if read.texts else "")


def _choose_mode(modes: Sequence[Mode], key: str) -> Mode:
    return st.radio("Format", modes, format_func=_MODES.__getitem__, horizontal=True, key=key)


def _read_upload() -> _NewCorpus:
    files = st.file_uploader(
        "Tables or text files",
        type=[*ENDINGS, "npy"],
        accept_multiple_files=True,
        key=f"corpus-files-{st.session_state.get(_TIMES_ADDED)}",
        help=(
            "CSV, TSV, JSON, JSONL, Parquet or XLSX with a column of texts, or plain text. "
            "If you upload several files, each plain text file is one text. A .npy array beside a "
            "table, or a Parquet column of vectors, is imported as its embeddings."
        ),
    )
    sources = _copy_uploads(files)
    arrays = [source for source in sources if source.ending == ".npy"]
    files = [file for file in files if not file.name.lower().endswith(".npy")]
    if arrays and (len(arrays), len(files)) != (1, 1):
        raise TextError(
            "A .npy file holds vectors alone. Upload one together with one file of their texts, "
            "in the same order."
        )
    if not files:
        return _NewCorpus()
    if len(files) > 1:
        key = f"corpus-header-{st.session_state.get(_TIMES_ADDED)}"
        return _NewCorpus(_read_files(_with_header(sources, key)), f"{len(files)} files")
    (file,) = files
    source = next(source for source in sources if source not in arrays)
    name = PurePosixPath(file.name).stem
    vectors = arrays[0] if arrays else source if has_vectors(source) else None
    if not source.is_table:
        mode = _choose_mode(list(_MODES), "corpus-file-mode")
        return _NewCorpus(_read_file(source, mode=mode), name, vectors)
    text_box, id_box, header_box = st.columns(3)
    source = choose_header(source, f"corpus-header-{file.file_id}", header_box)
    read = _read_file(source)
    columns = list(read.columns)
    if len(columns) > 1:
        column = text_box.selectbox(
            "Text column",
            columns,
            index=columns.index(cast("str", read.column)),
            key=f"corpus-column-{file.file_id}",
        )
        id_choice = id_box.selectbox(
            "ID column", [GUESSED, *columns], key=f"corpus-ids-{file.file_id}"
        )
        read = _read_file(source, column, id_column=None if id_choice == GUESSED else id_choice)
    note = read.describe_header(source.name)
    return _NewCorpus(replace(read, notes=(note, *read.notes)) if note else read, name, vectors)


def _read_folder() -> _NewCorpus:
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
        return _NewCorpus()
    uploads = sorted(_copy_uploads(files), key=lambda source: source.name)
    key = f"corpus-folder-header-{st.session_state.get(_TIMES_ADDED)}"
    return _NewCorpus(
        _read_files(_with_header(uploads, key)), PurePosixPath(uploads[0].name).parts[0]
    )


def _with_header(sources: Sequence[Source], key: str) -> list[Source]:
    """Files to be read by one choice of the line that names the columns of all tables."""
    tables = [source for source in sources if source.ending in WITHOUT_NAMES]
    header = choose_header(tables[0], key).header if tables else None
    return [replace(source, header=header) if source in tables else source for source in sources]


def _copy_uploads(files: Sequence[UploadedFile]) -> list[Source]:
    """The uploaded files as sources; each file is copied once, not at every run of the page."""
    before: dict[str, Source] = st.session_state.get(_SOURCES_OF_FILES, {})
    sources = {
        file.file_id: before.get(file.file_id) or Source(file.name, file.getvalue())
        for file in files
    }
    st.session_state[_SOURCES_OF_FILES] = sources
    return list(sources.values())


_SOURCES = {"Files": _read_upload, "Folder": _read_folder, "Paste": _read_pasted}


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
    """Widgets that rename, download and delete a corpus."""
    if may_change(corpus):
        _rename(corpus)
    too_large = is_large(corpus.n_texts)
    if too_large:
        st.caption(
            f"This corpus has more than {MOST_WHOLE:,} texts. To download it, use "
            "`neuralviz corpus export`."
        )
    for ending, label in () if too_large else ((".csv", "CSV"), (".parquet", "Parquet")):
        download(
            f"Texts and labels ({label})",
            partial(_export_corpus, corpus, ending),
            f"{corpus.name}{ending}",
            key="corpus-take",
        )
    if may_change(corpus):
        show_import_form(corpus)
        _delete(corpus)


def _rename(corpus: Corpus) -> None:
    key = f"corpus-name-{corpus.id}"
    name = st.text_input(
        "Name", corpus.name, max_chars=MAX_NAME, key=key, help="Press Enter to rename the corpus."
    )
    if name != corpus.name:
        try:
            corpus_store().rename(corpus, name)
        except NeuralvizError as error:
            show_error(error)
        else:
            st.session_state[_RENAMED] = corpus.id
            st.rerun()


def _delete(corpus: Corpus) -> None:
    label = "Delete the corpus with its maps and embeddings"
    sure = st.checkbox(label, key=f"corpus-sure-{corpus.id}")
    if not st.button("Delete", key="corpus-delete", icon=":material/delete:", width="stretch"):
        return
    if not sure:
        st.info(f"Tick “{label}” first.")
    else:
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


def _export_corpus(corpus: Corpus, ending: str) -> bytes:
    return table_bytes(ending, corpus_table(CorpusStore(), corpus))
