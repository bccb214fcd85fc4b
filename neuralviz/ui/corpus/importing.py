"""Ready-made vectors: imported for a corpus, chosen like a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.reading.source import Source
from neuralviz.reading.vectors import ENDINGS, read_vectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import import_vectors, imported_by_label, imported_label
from neuralviz.ui.page import plain, show_error
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.embedders.specs import EmbedderSpec
    from neuralviz.reading.vectors import ReadVectors
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.importing import Imported

ADDED = "corpus-added"  # session state: the id of a corpus that was just added
MAP_KEYS = ("map-a", "map-b")  # keys of the method boxes
_IMPORT_MESSAGE = "corpus-imported"  # session state: a message for the next page run


def show_import_form(corpus: Corpus) -> None:
    """Widgets that import a file of vectors for a saved corpus."""
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
    else:
        _import(corpus, Source(file.name, file.getvalue()), in_order=in_order)


def import_for_new(corpus: Corpus, read: ReadVectors) -> None:
    """Import vectors for a corpus that was just added, and open it.

    Deletes the corpus again where the vectors do not belong to its texts.
    """
    try:
        result = import_vectors(CorpusStore(), corpus, read)
    except NeuralvizError as error:
        CorpusStore().delete(corpus)
        show_error(error)
        return
    _keep_message(corpus, result)
    st.session_state[ADDED] = corpus.id
    st.rerun()


def _import(corpus: Corpus, source: Source, *, in_order: bool) -> None:
    """Import a file, and open the page with it."""
    try:
        result = import_vectors(CorpusStore(), corpus, read_vectors(source), in_order=in_order)
    except NeuralvizError as error:
        show_error(error)
        return
    _keep_message(corpus, result)
    st.rerun()


def _keep_message(corpus: Corpus, imported: Imported) -> None:
    """Keep a message for the next page run, which shows the imported vectors first."""
    label = imported_label(CorpusStore(), corpus, imported.kept)
    st.session_state[_IMPORT_MESSAGE] = (
        f"Imported {many(corpus.n_texts, 'embedding')} of {imported.kept.dim:,} values as the "
        f"method “{label}”. {imported.matched}"
    )
    for key in MAP_KEYS:
        st.session_state[f"{key}-renewed"] = True


def tell_imported() -> None:
    """Show once what was just imported."""
    message = st.session_state.pop(_IMPORT_MESSAGE, "")
    if message:
        st.toast(plain(message), icon=":material/check:")  # a toast stays while a map is made


def imported_methods(corpus: Corpus) -> dict[str, EmbedderSpec]:
    """The embeddings that were imported for a corpus, by label."""
    return imported_by_label(CorpusStore(), corpus)
