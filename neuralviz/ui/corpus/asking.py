"""A sentence that the model fills with the mean neural embedding of the selected texts in it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from neuralviz.embedders.specs import DELTAS, list_models
from neuralviz.headlines import explain_methods
from neuralviz.headlines.corpus import describe_answer
from neuralviz.jobs.mapping import AskTexts
from neuralviz.maps.opened import OpenMap, Selection
from neuralviz.micro_tuning.events import FilledBlank
from neuralviz.plots.corpus_map import describe_maps
from neuralviz.plots.report import About
from neuralviz.ui.choices import REMEMBERED, needs_asking
from neuralviz.ui.corpus.search import MOST_SEARCHED, PATIENCE, SELECTED_BY, MapView
from neuralviz.ui.micro_tuning import show_blanks
from neuralviz.ui.page import hide_on_stage, plain, show_headline, show_only_on_stage, slide
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import many

MOST_ASKED = 10_000  # texts whose mean is taken; of more an even sample
QUESTION = "This is about ___."
QUESTION_KEY = "corpus-question"  # session state and address: the sentence
RUNS = SessionRuns("corpus-asking")


def ask_selection(view: MapView, chosen: Selection) -> None:
    """Ask the model about the selected texts, if a map's vectors are changes of its weights."""
    maps = [open_map for open_map in view.methods if open_map.spec.method in DELTAS]
    if not maps:
        with hide_on_stage("question"):
            st.caption("With a map by **neural**, you can ask the model what these texts share.")
        return
    with hide_on_stage("question"), st.container(horizontal=True, vertical_alignment="bottom"):
        sentence = st.text_input(
            "Ask the model about these texts",
            key=QUESTION_KEY,
            placeholder=QUESTION,
            max_chars=MOST_SEARCHED,
            help="The mean of their neural embeddings is added to the model's weights, at the "
            "length of a change by micro-tuning. The model then fills the blank, ___.",
            **REMEMBERED,
        )
        is_pressed = st.button(
            "Ask", icon=":material/psychology:", key="corpus-ask", on_click=_fill_question
        )
    if sentence:
        with slide("corpus-asking"):
            _answer(view, maps[0], chosen, sentence, is_pressed)


def _fill_question() -> None:
    st.session_state[QUESTION_KEY] = st.session_state.get(QUESTION_KEY) or QUESTION


def _answer(
    view: MapView, open_map: OpenMap, chosen: Selection, sentence: str, is_pressed: bool
) -> None:
    corpus, spec = open_map.corpus.corpus, open_map.spec
    rows = chosen.rows()[:: 1 + (len(chosen) - 1) // MOST_ASKED]
    models, digest = list_models((spec,)), chosen.digest
    task = AskTexts(corpus.id, open_map.kept.id, spec, sentence, models, digest, rows)
    if RUNS.find(task) is None and needs_asking((spec,)) and not is_pressed:
        st.caption("Press **Ask** to load the model.")
        return
    draw = partial(_draw_answer, view, open_map, chosen, sentence)
    sentences = RunSentences("Asking the model …", done="")
    show_run_panel(RUNS, RUNS.start(task, again=is_pressed), draw, sentences=sentences,
                   patience=PATIENCE)  # fmt: skip


def _draw_answer(
    view: MapView,
    open_map: OpenMap,
    chosen: Selection,
    sentence: str,
    blanks: tuple[FilledBlank, ...] | None,
    _live: bool,
) -> None:
    if blanks is None:
        return
    texts = f"{many(len(chosen), 'text')} {st.session_state.get(SELECTED_BY, '')}".strip()
    action = f"adding the mean {open_map.spec.method} embedding of {texts}"
    show_headline(plain(describe_answer(blanks, action)), key="corpus-answer")
    with show_only_on_stage("corpus-question"):
        st.markdown(f"{explain_methods([open_map.spec.method])} The mean is what texts share.")
        st.text(sentence)
    settings = describe_maps([open_map], view.corpus.n_texts).settings
    title = "What do these texts have in common?"
    provenance = About(
        title, {"sentence": sentence, "after": action, **settings}, files=(sentence,)
    )
    show_blanks(blanks, provenance, "corpus-answer")
