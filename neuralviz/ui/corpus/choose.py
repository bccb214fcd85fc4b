"""The widgets that choose, add, rename, download and delete a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from neuralviz.errors import NeuralvizError, TextError
from neuralviz.jobs import Run
from neuralviz.jobs.mapping import MakeMaps, MapsState
from neuralviz.maps.kept import corpus_table
from neuralviz.maps.projection import FEWEST_TEXTS, MOST_WHOLE, is_large
from neuralviz.plots.theme import shorten
from neuralviz.reading.source import WITHOUT_NAMES, Source
from neuralviz.reading.texts import ReadTexts, read_files
from neuralviz.reading.vectors import ENDINGS, ReadVectors, has_vectors, read_vectors
from neuralviz.store.corpora import MAX_NAME, Corpus
from neuralviz.store.importing import import_vectors, imported_label
from neuralviz.store.writing import table_bytes
from neuralviz.ui.choices import (
    BY_DIGEST,
    ROW_HEIGHT,
    choose_header,
    corpus_store,
    describe_corpus_visibility,
    may_change,
)
from neuralviz.ui.figures import download
from neuralviz.ui.inputs import TEXT_ENDINGS, ask_pasted, ask_texts_of_file
from neuralviz.ui.limits import (
    describe_destination,
    describe_limits,
    effective_settings,
    n_within_limits,
)
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.runs import SessionRuns
from neuralviz.words import many

RUNS = SessionRuns("corpus-maps")
PLACES = (("a", "Map", "mean"), ("b", "Compare with", "neural"))  # keys, labels, first methods
CORPUS = "corpus"  # session state and address: the id of the chosen corpus
ADDED = "corpus-added"  # session state: the id of a corpus that was just added
_TIMES_ADDED = "corpus-times-added"  # in widgets' keys, so that the dialog opens empty
_IN_ADDRESS = "corpus-in-address"  # that the page put there
_NEXT = "corpus-next"  # the corpus to choose in the next run of the page
_UPLOADS = "corpus-uploads"  # sources of files by id
_IMPORTED = "corpus-imported"  # a message for the next run of the page
PREVIEWED = 6  # texts

_read_files = st.cache_data(max_entries=1, ttl=600, show_spinner="Reading …", hash_funcs=BY_DIGEST)(
    read_files
)


def choose_corpus(corpora: Sequence[Corpus]) -> Corpus | None:
    """Ask for a corpus, with widgets to add and manage one; None where there is none."""
    by_id = {corpus.id: corpus for corpus in corpora}
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    linked = st.query_params.get(CORPUS, "")
    linked = "" if linked == st.session_state.get(_IN_ADDRESS) else linked
    if linked and linked not in by_id:
        st.toast("The corpus in this link is not saved here. Showing another one.")
    for corpus_id in (linked, st.session_state.pop(_NEXT, None)):
        if corpus_id in by_id:
            st.session_state[CORPUS] = corpus_id
    if st.session_state.get(CORPUS) not in by_id:
        st.session_state[CORPUS] = next(iter(by_id), None)
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
        st.session_state.pop(_UPLOADS, None)
        _show_add_dialog()
    corpus = by_id.get(chosen or "")
    if corpus is not None:
        st.query_params[CORPUS] = st.session_state[_IN_ADDRESS] = corpus.id
        key = f"corpus-manage-{corpus.id}"
        with row.popover("Manage", icon=":material/folder_managed:", key=key):
            _manage(corpus)
    if message := st.session_state.pop(_IMPORTED, ""):
        st.toast(plain(message), icon=":material/check:")  # a toast stays while a map is made
    return corpus


# --- adding --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _NewCorpus:
    read: ReadTexts
    name: str = ""
    vectors: Source | None = None  # a file with the texts' vectors


@st.dialog("Add a corpus", width="large")
def _show_add_dialog() -> None:
    source = st.segmented_control(
        "Source", list(_READERS), default="Files", required=True, key="corpus-add-source"
    )
    try:
        new = _READERS[source]()
    except NeuralvizError as error:
        show_error(error)
        return
    for note in new.read.notes:
        st.caption(plain(note))
    visibility = describe_corpus_visibility()
    if not new.read.texts:
        destination = visibility or describe_destination("What you add")
        st.caption(f"{destination} Your files are not changed.")
        return
    _preview(new.read)
    name = st.text_input("Name", shorten(new.name, MAX_NAME), max_chars=MAX_NAME)
    vectors = new.vectors
    if vectors and not st.checkbox(plain(f"Import the embeddings in {vectors.name}"), value=True):
        vectors = None
    if visibility:
        st.caption(visibility)
    has_enough = len(set(new.read.texts)) >= FEWEST_TEXTS
    label, icon = "Save and make a map", ":material/map:"
    if not has_enough:
        st.caption(
            f"A map needs at least {FEWEST_TEXTS} different texts. You can still save these."
        )
        label, icon = "Save", ":material/save:"
    if st.button(label, type="primary", icon=icon):
        with _run_page_after_change():
            _save(new.read, name, vectors)


def _save(read: ReadTexts, name: str, vectors: Source | None) -> None:
    """Save a corpus; delete it again if the vectors do not match its texts."""
    if n_within_limits(read.texts) < len(read.texts):
        raise NeuralvizError(describe_limits())
    read_of_file = read_vectors(vectors) if vectors else None
    corpus = corpus_store().add(name, read)
    if read_of_file is not None:
        try:
            _import(corpus, read_of_file)
        except NeuralvizError:
            corpus_store().delete(corpus)
            raise
    st.session_state.pop(_UPLOADS, None)
    st.session_state[ADDED] = st.session_state[_NEXT] = corpus.id


def _read_pasted() -> _NewCorpus:
    key = f"corpus-{st.session_state.get(_TIMES_ADDED)}"
    read = ask_pasted(key, ("line", "blank line"), height=220)
    return _NewCorpus(read, shorten(read.texts[0], 30) if read.texts else "")


def _read_upload() -> _NewCorpus:
    files = st.file_uploader(
        "Tables or text files",
        type=[*TEXT_ENDINGS, "npy"],
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
    sources = [source for source in sources if source not in arrays]
    if arrays and (len(arrays), len(sources)) != (1, 1):
        raise TextError(
            "A .npy file holds vectors alone. Upload one together with one file of their texts, "
            "in the same order."
        )
    if len(sources) != 1:
        return _read_several(sources, f"{len(sources)} files")
    (source,) = sources
    vectors = arrays[0] if arrays else source if has_vectors(source) else None
    read = ask_texts_of_file(f"corpus-{source.digest}", source, with_ids=True)
    return _NewCorpus(read, PurePosixPath(source.name).stem, vectors)


def _read_folder() -> _NewCorpus:
    files = st.file_uploader(
        "A folder of tables and text files",
        type=TEXT_ENDINGS,
        accept_multiple_files="directory",
        key=f"corpus-folder-{st.session_state.get(_TIMES_ADDED)}",
        help=(
            "Each plain text file is one text; tables are combined. The file name becomes a label."
        ),
    )
    sources = sorted(_copy_uploads(files), key=lambda source: source.name)
    return _read_several(sources, PurePosixPath(sources[0].name).parts[0] if sources else "")


_READERS = {"Files": _read_upload, "Folder": _read_folder, "Paste": _read_pasted}


def _copy_uploads(files: Sequence[UploadedFile]) -> list[Source]:
    """The uploaded files as sources; each file is copied once, not at every run of the page."""
    before: dict[str, Source] = st.session_state.get(_UPLOADS, {})
    sources = {
        file.file_id: before.get(file.file_id) or Source(file.name, file.getvalue())
        for file in files
    }
    st.session_state[_UPLOADS] = sources
    return list(sources.values())


def _read_several(sources: Sequence[Source], name: str) -> _NewCorpus:
    """The texts of several files; one choice of header applies to all tables."""
    if not sources:
        return _NewCorpus(ReadTexts(()))
    tables = [source for source in sources if source.ending in WITHOUT_NAMES]
    key = f"corpus-header-{st.session_state.get(_TIMES_ADDED)}"
    header = choose_header(tables[0], key).header if tables else None
    files = [replace(source, header=header) if source in tables else source for source in sources]
    return _NewCorpus(_read_files(files), name)


def _preview(read: ReadTexts) -> None:
    st.markdown(f"**{many(len(read.texts), 'text')}**. Preview:")
    first = read.first(PREVIEWED)
    table = {"text": [shorten(text, 200) for text in first.texts]}
    for name, values in first.labels.items():
        table[name if name not in table else f"{name} (label)"] = list(values)
    height = ROW_HEIGHT * (len(first.texts) + 1) + 3
    st.dataframe(pd.DataFrame(table), hide_index=True, height=height)


# --- managing ------------------------------------------------------------------------------------


@contextmanager
def _run_page_after_change() -> Iterator[None]:
    """Run the page again after the change of a corpus; show an error of the change."""
    try:
        yield
    except NeuralvizError as error:
        show_error(error)
    else:
        st.rerun()


def _manage(corpus: Corpus) -> None:
    if may_change(corpus):
        _rename(corpus)
    if is_large(corpus.n_texts):
        st.caption(
            f"This corpus has more than {MOST_WHOLE:,} texts. To download it, use "
            "`neuralviz corpus export`."
        )
    else:
        for ending, label in ((".csv", "CSV"), (".parquet", "Parquet")):
            make = partial(_export_corpus, corpus, ending)
            name = f"{corpus.name}{ending}"
            download(f"Texts and labels ({label})", make, name, key="corpus-take")
    if may_change(corpus):
        _show_import_form(corpus)
        _delete(corpus)


def _export_corpus(corpus: Corpus, ending: str) -> bytes:
    return table_bytes(ending, corpus_table(corpus_store(), corpus))


def _rename(corpus: Corpus) -> None:
    key = f"corpus-name-{corpus.id}"
    name = st.text_input(
        "Name", corpus.name, max_chars=MAX_NAME, key=key, help="Press Enter to rename the corpus."
    )
    if name != corpus.name:
        with _run_page_after_change():
            corpus_store().rename(corpus, name)
            st.session_state[_NEXT] = corpus.id  # so that the box shows the new name


def _show_import_form(corpus: Corpus) -> None:
    file = st.file_uploader(
        "Import embeddings",
        type=[ending[1:] for ending in ENDINGS],
        key=f"corpus-vectors-{corpus.id}",
        help=(
            "Vectors that you computed elsewhere: a Parquet file with the vectors in a column and "
            "the texts or IDs of the corpus in another, in any order, or a .npy array with one "
            "row per text, in the order of the corpus."
        ),
    )
    in_order = st.checkbox(
        "Match by row",
        key="corpus-import-in-order",
        help=(
            "For Parquet files without texts and IDs whose rows are in the order of the corpus. "
            "The rows of .npy arrays always are."
        ),
    )
    if not st.button("Import", icon=":material/upload_file:", key="corpus-import", width="stretch"):
        return
    if file is None:
        st.info("Choose a .npy or .parquet file first.")
        return
    with _run_page_after_change():
        read = read_vectors(Source(file.name, file.getvalue()))
        _import(corpus, read, in_order=in_order)


def _import(corpus: Corpus, read: ReadVectors, *, in_order: bool = False) -> None:
    """Import vectors, which the next run of the page announces and shows first."""
    imported = import_vectors(corpus_store(), corpus, read, in_order=in_order)
    label = imported_label(corpus_store(), corpus, imported.kept)
    st.session_state[_IMPORTED] = (
        f"Imported {many(corpus.n_texts, 'embedding')} of {imported.kept.dim:,} values as the "
        f"method “{label}”. {imported.matched}"
    )
    for key, *_ in PLACES:
        st.session_state[f"map-{key}-renewed"] = True  # its method is chosen anew: the vectors


def _delete(corpus: Corpus) -> None:
    label = "Delete the corpus with its maps and embeddings"
    is_sure = st.checkbox(label, key=f"corpus-sure-{corpus.id}")
    if not st.button("Delete", key="corpus-delete", icon=":material/delete:", width="stretch"):
        return
    if not is_sure:
        st.info(f"Tick “{label}” first.")
        return
    run = current_run(corpus)
    if run is not None:
        run.stop()
    with _run_page_after_change():
        corpus_store().delete(corpus)
        st.session_state.pop(CORPUS, None)


def current_run(corpus: Corpus) -> Run[MapsState] | None:
    """This session's last run on the corpus, else the one under way that the address names."""
    return RUNS.meet(
        lambda task: isinstance(task, MakeMaps) and task.corpus_id == corpus.id,
        unnamed=effective_settings().private or not effective_settings().open,
    )
