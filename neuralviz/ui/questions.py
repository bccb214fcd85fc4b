"""Ten questions, each with the figure that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from neuralviz.paths import app_folder
from neuralviz.ui.stage import script

_QUESTION = "asked"  # query parameter: the number of the question
_LIST = "questions"  # session state: whether the list is open
_MICRO_TUNING, _COMPARE, _CORPUS, _EVALUATION, _LAYERS, _HOW_IT_WORKS = (
    ("pages/micro_tuning.py", "Micro-tuning"),
    ("pages/compare.py", "Compare"),
    ("pages/corpus_map.py", "Corpus map"),
    ("pages/evaluation.py", "Evaluation"),
    ("pages/layers.py", "Layer dynamics"),
    ("pages/how_it_works.py", "How it works"),
)
_NEW_SENTENCE = "My train was late, and nobody would give me my money back."


@dataclass(frozen=True)
class Question:
    """A question, and where its answer is.

    Attributes:
        sentence: as people ask it.
        answer: what to look at on the page, or to do there; markdown.
        page: its file and its title.
        selectors: CSS selectors of the answer: what the page shows at first, then what it shows
            when the visitor has done what ``answer`` says.
        address: what the page opens with.
        session: what its widgets hold, by their keys, where no address may say so.
    """

    sentence: str
    answer: str
    page: tuple[str, str]
    selectors: tuple[str, ...]
    address: Mapping[str, str] = field(default_factory=dict)
    session: Mapping[str, str | bool | int] = field(default_factory=dict)


QUESTIONS = (
    Question(
        "What is a neural embedding?",
        "The change in a model's weights after training on one text, as one vector.",
        _HOW_IT_WORKS,
        (".st-key-slide-step",),
        session={"step": 9},
    ),
    Question(
        "Which words changed the weights most?",
        "The longest bars: each word has its share of the embedding.",
        _MICRO_TUNING,
        ("[class*='st-key-slide-'][class*='-words']",),
    ),
    Question(
        "What does the model know now?",
        "See how it fills in the blank, before and after training. Then write a sentence of your "
        "own, with ___ for the blank, and press **Predict**.",
        _MICRO_TUNING,
        ("[class*='st-key-slide-'][class*='-try']",),
        session={"try-delta-asked": True},
    ),
    Question(
        "How do two methods differ on my texts?",
        "Paste a few texts, one a line, and press **Compare**. A sentence then says what each "
        "method puts together. Below it are the pairs on which two methods disagree.",
        _COMPARE,
        (".st-key-compare-pasted", ".st-key-slide-heatmaps"),
        session={"compare-source": "Paste"},
    ),
    Question(
        "Which one is better on my data, and how sure is that?",
        "Upload a table and press **Evaluate**. A sentence then says which method is ahead, and "
        "whether your data decide it.",
        _EVALUATION,
        (".st-key-evaluation-file", ".st-key-slide-evaluation-verdict"),
        {"evaluation-source": "Upload"},
    ),
    Question(
        "What does a layer do?",
        "It turns the vectors of the words. Where a line drops, that layer turns that word a lot.",
        _LAYERS,
        (".st-key-slide-layers-text",),
        {"layers-view": "A text"},
    ),
    Question(
        "Where does a new text land?",
        "Type a sentence and press Enter: a mark on the maps shows where it lands.",
        _CORPUS,
        (".st-key-corpus-search", ".st-key-slide-maps"),
        session={
            "corpus-how": "By meaning",
            "corpus-search": _NEW_SENTENCE,
        },
    ),
    Question(
        "What are the themes of my corpus?",
        "Each cluster is a theme: its words are in the table. For texts of your own, press **Add "
        "a corpus** at the top.",
        _CORPUS,
        (".st-key-slide-clusters",),
        session={"corpus-list": "Clusters"},
    ),
    Question(
        "How long does it take?",
        "A sentence takes about a second; 1,000 take about a minute on two cores, with *fast*. "
        "Press **Tune**: a line above the figures says how long yours took.",
        _MICRO_TUNING,
        (".st-key-on-stage-tune", "[class*='st-key-micro-tuning-state-']"),
    ),
    Question(
        "Can I trust it?",
        "Every lead has an interval. Where it includes 0, the data do not decide, and the sentence "
        "says so. Further down: the pairs that each method gets wrong.",
        _EVALUATION,
        (".st-key-slide-evaluation-verdict",),
        {"evaluation-source": "Example", "example": "Scored pairs"},
    ),
)

_pointer = script("pointer")


def show_questions() -> None:
    """A popover with all questions, each with a link to its answer."""
    with st.popover("Ten questions", icon=":material/quiz:", key=_LIST, on_change="rerun"):
        for number, question in enumerate(QUESTIONS, 1):
            if st.button(
                f"**{question.sentence}**",
                type="tertiary",
                on_click=_close_list,
                help=question.answer,
            ):
                _open_answer(number, question)


def show_question_card(title: str) -> bool:
    """Show the question that the address names, and point to its answer, if this page has it.

    The card stays in sight until it is closed or another page is opened; what answers is framed,
    and the page scrolls to it, also when it comes later.

    Returns:
        Whether the page with this title answers it.
    """
    typed = st.query_params.get(_QUESTION, "")
    number = int(typed) if typed in map(str, range(1, len(QUESTIONS) + 1)) else None
    if number is None or QUESTIONS[number - 1].page[1] != title:
        st.session_state.pop(_QUESTION, None)
        return False
    question = QUESTIONS[number - 1]
    if st.session_state.get(_QUESTION) != number:
        st.session_state[_QUESTION] = number
        st.session_state.update(question.session)
    with st.container(border=True, key="asked", horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{question.sentence}** {question.answer}")
        if st.button("All questions", type="tertiary", key="asked-list"):
            st.session_state[_LIST] = True
            if title != _HOW_IT_WORKS[1]:
                st.switch_page(app_folder() / _HOW_IT_WORKS[0])
            del st.query_params[_QUESTION]
            st.rerun()
        if st.button("Close", icon=":material/close:", type="tertiary", key="asked-close"):
            del st.query_params[_QUESTION]
            st.rerun()
    _pointer(key="pointer", data={"at": list(question.selectors)})
    return True


def _open_answer(number: int, question: Question) -> None:
    """Open the page that answers a question, with the question."""
    if question.page == _HOW_IT_WORKS:  # the list is on this page
        st.query_params[_QUESTION] = str(number)
        st.rerun()
    address = {_QUESTION: str(number), **question.address}
    st.switch_page(app_folder() / question.page[0], query_params=address)


def _close_list() -> None:
    st.session_state[_LIST] = False
