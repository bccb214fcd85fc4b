"""A trained rung gets a name, under which it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.ladder_table import best_rung
from neuralviz.jobs.ladder import similarity_model
from neuralviz.training import similarity
from neuralviz.training.similarity.folder import check_free_name, model_path, models_folder
from neuralviz.training.similarity.names import RUNG_NAMES
from neuralviz.ui.choices import choose_one
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_events import Ladder
    from neuralviz.jobs import Run

_SAVED = "frozen-saved"  # where the session keeps the last one: its name, its ladder and its rung


def offer_to_save(run: Run[Ladder]) -> None:
    """A name for one of the rungs, and *Save*."""
    ladder = run.result
    st.subheader("Keep a similarity model", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rungs = list(dict.fromkeys(rung for rung, _ in ladder.results))
        rung = choose_one(
            st.pills, "Rung", rungs, key="frozen-save-of", default=best_rung(ladder) or rungs[0],
            format_func=RUNG_NAMES.__getitem__,
        )  # fmt: skip
        name = st.text_input("Name", placeholder="my-similarity", key="frozen-name")
        pressed = st.button("Save", icon=":material/save:", key="frozen-save-it")
    this = (name.strip(), run.task, rung)
    if st.session_state.get(_SAVED) == this and model_path(this[0]).is_file():
        st.success(plain(f"Saved as “{this[0]}” in {models_folder()}."))
        return  # also for the second click of a double click
    if not pressed:
        st.caption(
            "A saved similarity model scores any two texts from Python: "
            "`load_similarity_model(name).score(pairs)`. Of several seeds, the first is saved."
        )
        return
    results = ladder.of_rung(rung)
    try:
        model = similarity_model(run.task.model, ladder, results[0])
        similarity.save_similarity_model(model, check_free_name(name))
    except NeuralvizError as error:
        show_error(error)
    else:
        st.session_state[_SAVED] = this
        st.rerun()  # says so also after the next click
