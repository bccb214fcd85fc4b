"""A trained encoder gets a name, under which every page finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz import training
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.models.shared import shared_text_model
from neuralviz.models.trained import check_free_name, encoders_folder, trained_encoder
from neuralviz.paths import app_folder
from neuralviz.store.corpora import CorpusStore
from neuralviz.ui.choices import choose_one
from neuralviz.ui.limits import effective_settings, has_visitors
from neuralviz.ui.pace import let_others_draw
from neuralviz.ui.page import plain, show_error
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.jobs.training import TrainOnCorpus
    from neuralviz.training.record import Lesson
    from neuralviz.training.settings import TrainingSettings

_SAVED = "training-saved"  # session key of the last one saved: name and training


def offer_to_save(task: TrainOnCorpus, lessons: tuple[Lesson, ...]) -> None:
    """Ask for an encoder and a name, and save it; a message where no weights are left."""
    if effective_settings().demo:
        st.caption("Encoders cannot be saved in this demo.")
        return
    kept = task.kept_steps()
    if not any(kept):
        st.caption(
            "The weights of this training are not saved, only its results, so there is no encoder "
            "to keep."
        )
        return
    st.subheader("Keep the encoder", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        all_kinds = [lesson.settings.pairs.kind for lesson in lessons]
        kinds = [kind for kind, steps in zip(all_kinds, kept, strict=True) if steps]
        kind = kinds[0]
        if len(kinds) > 1:
            kind = choose_one(
                st.pills, "Encoder of", kinds, key="training-save-of", default=kind,
                format_func=str.capitalize,
            )  # fmt: skip
        name = st.text_input("Name", placeholder="my-encoder", key="training-name")
        pressed = st.button("Save", icon=":material/save:", key="training-save-it")
    number = all_kinds.index(kind)
    if kept[number] < lessons[number].step:
        st.caption(
            f"The weights that are saved are those after {many(kept[number], 'step')} of "
            f"{lessons[number].step:,}: the training ended suddenly."
        )
    save_id = (name.strip(), task.model, task.corpus, task.settings[number])
    if st.session_state.get(_SAVED) == save_id and trained_encoder(save_id[0]) is not None:
        folder_note = "" if has_visitors() else f" in {encoders_folder() / save_id[0]}"
        st.success(plain(f"Saved as “{save_id[0]}”{folder_note}."))
        _offer_maps(task, task.settings[number], save_id[0])
        return  # a double click saves once
    if not pressed:
        st.caption(
            "A saved encoder is a model like any other: choose it by its name on every page, or "
            "load its folder with sentence-transformers."
        )
        return
    try:
        name = check_free_name(name)
        with let_others_draw(), st.spinner("Saving …"):
            _save(task, number, name)
    except NeuralvizError as error:
        show_error(error)
    else:
        st.session_state[_SAVED] = save_id
        st.rerun()  # the page lists the encoder


def _offer_maps(task: TrainOnCorpus, settings: TrainingSettings, name: str) -> None:
    """Offer maps of the corpus by the trained encoder and by the original one."""
    if st.button("Map the corpus with it", icon=":material/scatter_plot:"):
        before = settings.pooling
        after = before if settings.part == "model" else "sentence-transformer"  # has no layers
        address = {"corpus": task.corpus}
        for side, method, model in (("a", after, name), ("b", before, task.model.id)):
            address |= {f"map-{side}": method, f"map-{side}-{method}-model": model}
        st.switch_page(app_folder() / "pages/corpus_map.py", query_params=address)


def _save(task: TrainOnCorpus, number: int, name: str) -> None:
    """Save the encoder from a training's folder.

    Raises:
        NeuralvizError: the weights are gone, or the disk is full.
    """
    model = shared_text_model(task.model.id)
    store = CorpusStore()
    texts = store.texts(store.corpus(task.corpus))
    restored = training.restore_training(model, texts, task.settings[number], task.folder(number))
    if restored is None:
        raise StoreError("This training's weights are not kept any more. Train it again.")
    training.save_encoder(restored, model, encoders_folder() / name)
