"""A trained rung gets a name, under which it is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.ladder_results import best_rung
from neuralviz.headlines.ladder import warn_of_rung
from neuralviz.jobs.ladder import make_similarity_models
from neuralviz.paths import similarity_models_folder
from neuralviz.training import similarity
from neuralviz.training.similarity.folder import check_free_name, model_path
from neuralviz.ui.frozen_features.choose import choose_rung
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.page import plain, show_error

if TYPE_CHECKING:
    from neuralviz.evaluation.ladder_results import Ladder
    from neuralviz.jobs import Run

_SAVED = "frozen-saved"  # session key of the last one saved: name, ladder, rung


def offer_to_save(run: Run[Ladder]) -> None:
    """Ask for a rung and a name, and save its similarity model."""
    if effective_settings().demo:
        st.caption("Similarity models cannot be saved in this demo.")
        return
    ladder = run.result
    rungs = {
        model.trained.settings.rung: model
        for model in make_similarity_models(run.task.model, ladder)
    }
    st.subheader("Save a similarity model", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rung = choose_rung(list(rungs), best_rung(ladder), "frozen-save-of")
        name = st.text_input("Name", placeholder="my-similarity", key="frozen-name")
        pressed = st.button("Save", icon=":material/save:", key="frozen-save-it")
    for warning in warn_of_rung(ladder, rung):
        st.warning(plain(warning))
    save_id = (name.strip(), run.task, rung)
    if st.session_state.get(_SAVED) == save_id and model_path(save_id[0]).is_file():
        st.success(plain(f"Saved as “{save_id[0]}” in {similarity_models_folder()}."))
        return  # a double click saves once
    if not pressed:
        st.caption(
            "It scores any pairs of texts: `neuralviz score pairs.csv --model NAME`, or from "
            "Python `load_similarity_model(NAME).score(pairs)`."
        )
        return
    try:
        model = rungs[rung]
        similarity.save_similarity_model(model, check_free_name(name))
    except NeuralvizError as error:
        show_error(error)
    else:
        st.session_state[_SAVED] = save_id
        st.rerun()  # the message stays after further clicks
