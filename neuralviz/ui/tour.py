"""Cards at the top of pages: the five stops of the tour, and the answers to ten questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from neuralviz.paths import app_folder
from neuralviz.ui.stage import script, slide

_STOP, _QUESTION = "tour", "asked"  # query parameters: the number of a stop, of a question
_OPENED = "tour-opened"  # session state: the number of the last opened stop
_LIST = "questions"  # session state: whether the list of questions is open
_HOW_IT_WORKS = "How it works"
_pointer = script("pointer")


@dataclass(frozen=True)
class TourStop:
    """A page of the tour, the question that it answers, and what to say and to do there."""

    title: str  # of the page
    question: str
    instructions: str  # markdown
    address: Mapping[str, str] = field(default_factory=dict)  # what the page opens with
    texts: str = ""  # key of the page's texts, whose examples are shown
    fields: Mapping[str, str] = field(default_factory=dict)  # what widgets hold, by their keys


@dataclass(frozen=True)
class Question:
    """A question, and where its answer is."""

    sentence: str
    answer: str  # what to look at on the page, or to do there; markdown
    title: str  # of the page
    selectors: tuple[str, ...]  # CSS: of the answer at first, then when ``answer`` is done
    address: Mapping[str, str] = field(default_factory=dict)  # what the page opens with
    session: Mapping[str, str | bool | int] = field(default_factory=dict)  # what widgets hold


STOPS = (
    TourStop(
        "Micro-tuning",
        "What does a language model learn from a text?",
        "Three texts of a small corpus: two questions and a headline. The model trains on "
        "each alone; **Tune** does it again. The loss falls: the model learns. What has changed "
        "in its weights is the text's **neural embedding**. Below, it fills in a "
        "blank, before and after; press **Predict** to try another sentence.",
        {"micro-tuning-example": "From the corpus"},
        texts="micro-tuning",
    ),
    TourStop(
        "Compare",
        "Do all methods find the same texts similar?",
        "Twelve texts of the corpus: three topics, each as a headline, a question, a diary entry "
        "and a complaint. **mean** puts every text next to one on the same topic. Now order the "
        "texts **by form**: which methods see it?",
        {"compare-example": "From the corpus", "order": "By topic"},
        texts="compare",
    ),
    TourStop(
        "Corpus map",
        "Do two methods sort a corpus alike?",
        "All 480 texts, each a point. By **mean**, nearly every text lies among texts on its "
        "topic; by **neural** embedding, seven in ten do. Type a sentence of your own and press "
        "Enter: where does it land?",
        fields={"corpus-how": "By meaning"},
    ),
    TourStop(
        "Evaluation",
        "Which method is better, and how sure is that?",
        "It depends on the question: here it is the **form**. The sentence says who is ahead and "
        "whether the data decide it; the intervals are the proof. Switch to the topics: "
        "another method wins. Here **neural** takes ten epochs, on the map it took five: the more "
        "epochs, the more the form counts.",
    ),
    TourStop(
        "Layer dynamics",
        "What does a layer do?",
        "A question of the corpus. Inside the model, each layer changes every word's vector. See "
        "which words change most, and where. Then try a sentence of your own.",
        texts="followed",
        fields={
            "followed-text": "Does the front half or the rear half of this train go to the coast?"
        },
    ),
)

QUESTIONS = (
    Question(
        "What is a neural embedding?",
        "The change in a model's weights after training on one text, as one vector.",
        "How it works",
        (".st-key-slide-step",),
        session={"step": 9},
    ),
    Question(
        "Which words changed the weights most?",
        "The longest bars: each word has its share of the embedding.",
        "Micro-tuning",
        ("[class*='st-key-slide-'][class*='-words']",),
    ),
    Question(
        "What does the model know now?",
        "See how it fills in the blank, before and after training. Then write a sentence of your "
        "own, with ___ for the blank, and press **Predict**.",
        "Micro-tuning",
        ("[class*='st-key-slide-'][class*='-try']",),
        session={"try-delta-asked": True},
    ),
    Question(
        "How do two methods differ on my texts?",
        "Paste a few texts, one a line, and press **Compare**. A sentence then says what each "
        "method puts together. Below it are the pairs on which two methods disagree.",
        "Compare",
        (".st-key-compare-pasted", ".st-key-slide-heatmaps"),
        session={"compare-source": "Paste"},
    ),
    Question(
        "Which one is better on my data, and how sure is that?",
        "Upload a table and press **Evaluate**. A sentence then says which method is ahead, and "
        "whether your data decide it.",
        "Evaluation",
        (".st-key-evaluation-file", ".st-key-slide-evaluation-verdict"),
        {"evaluation-source": "Upload"},
    ),
    Question(
        "What does a layer do?",
        "It turns the vectors of the words. Where a line drops, that layer turns that word a lot.",
        "Layer dynamics",
        (".st-key-slide-layers-text",),
        {"layers-view": "A text"},
    ),
    Question(
        "Where does a new text land?",
        "Type a sentence and press Enter: a mark on the maps shows where it lands.",
        "Corpus map",
        (".st-key-corpus-search", ".st-key-slide-maps"),
        session={
            "corpus-how": "By meaning",
            "corpus-search": "My train was late, and nobody would give me my money back.",
        },
    ),
    Question(
        "What are the themes of my corpus?",
        "Each cluster is a theme: its words are in the table. For texts of your own, press **Add "
        "a corpus** at the top.",
        "Corpus map",
        (".st-key-slide-clusters",),
        session={"corpus-list": "Clusters"},
    ),
    Question(
        "How long does it take?",
        "A sentence takes about a second; 1,000 take about a minute on two cores, with *fast*. "
        "Press **Tune**: a line above the figures says how long yours took.",
        "Micro-tuning",
        (".st-key-on-stage-tune", "[class*='st-key-micro-tuning-state-']"),
    ),
    Question(
        "Can I trust it?",
        "Every lead has an interval. Where it includes 0, the data do not decide, and the sentence "
        "says so. Further down: the pairs that each method gets wrong.",
        "Evaluation",
        (".st-key-slide-evaluation-verdict",),
        {"evaluation-source": "Example", "example": "Scored pairs"},
    ),
)


def find_page(title: str) -> Path:
    """The file of the page with a title."""
    name = "layers" if title == "Layer dynamics" else re.sub("[ -]", "_", title.lower())
    return app_folder() / f"pages/{name}.py"


def show_card(title: str) -> bool:
    """Show the tour's card, or the question that the address names, on the page with this title."""
    return _show_tour_card(title) or _show_question_card(title)


# --- the tour ------------------------------------------------------------------------------------


def _show_tour_card(title: str) -> bool:
    """Show the tour's card, with *Back* and *Next*, if the page is one of its stops."""
    number = _number(title)
    if number is None:
        return False
    stop = STOPS[number - 1]
    says_no_more = set(st.query_params) <= {_STOP, "stage"}
    if says_no_more and st.session_state.get(_OPENED) != number and (address := _prepare(number)):
        st.query_params.update({_STOP: str(number), **address})
        st.rerun()  # widgets read the address as it was when the script run began
    with st.container(border=True, key="tour-card"):
        with slide("tour", f"{number}\\. {stop.question}"):
            st.markdown(stop.instructions)
        with st.container(horizontal=True, vertical_alignment="center"):
            if number > 1 and st.button("Back", icon=":material/arrow_back:", key="tour-back"):
                open_tour_stop(number - 1)
            is_last = number == len(STOPS)
            label = "How it works, step by step" if is_last else f"Next: {STOPS[number].title}"
            if st.button(label, icon=":material/arrow_forward:", type="primary", key="tour-next"):
                open_tour_stop(number + 1)
            if st.button("End the tour", type="tertiary", key="tour-end"):
                del st.query_params[_STOP]
                st.rerun()
            st.caption(f"Stop {number} of {len(STOPS)}, two minutes each. Press S for the stage.")
    return True


def is_tour_at(title: str) -> bool:
    """Whether the tour is at the page with this title."""
    number = _number(title)
    return number is not None and st.query_params.get(_STOP) == str(number)


def show_start_button() -> None:
    """A button that begins the tour."""
    if st.button("Take the tour: ten minutes, five stops", icon=":material/tour:"):
        open_tour_stop(1)


def open_tour_stop(number: int) -> None:
    """Open a stop with its example; after the last stop, the How it works page."""
    if number > len(STOPS):
        st.switch_page(find_page(_HOW_IT_WORKS))
    address = {_STOP: str(number), **_prepare(number)}
    st.switch_page(find_page(STOPS[number - 1].title), query_params=address)


def _prepare(number: int) -> dict[str, str]:
    """Fill a stop's widgets in the session state; the rest of its settings, for the address."""
    st.session_state[_OPENED] = number
    stop = STOPS[number - 1]
    if stop.texts:
        st.session_state[f"{stop.texts}-source"] = "Example"
        st.session_state.pop(f"{stop.texts}-view", None)
    st.session_state.update(stop.fields)
    address = dict(stop.address)
    if stop.title == "Corpus map" and (example := _example_corpus()):
        address["corpus"] = example
    return address


def _example_corpus() -> str:
    """Id of the example corpus on this machine; empty before it exists.

    Imported here: every page asks for its stop, and the database takes its time to load.
    """
    from neuralviz.maps.example import NAME
    from neuralviz.store.corpora import CorpusStore

    return next((corpus.id for corpus in CorpusStore().corpora() if corpus.name == NAME), "")


def _number(title: str) -> int | None:
    """The number of the stop whose page has this title; None outside the tour.

    Any stop's number in the address says that it does: behind *Back* of the browser, a page has the
    number of the stop that it led to.
    """
    numbers = {str(number): stop.title for number, stop in enumerate(STOPS, 1)}
    if st.query_params.get(_STOP) not in numbers:
        return None
    return next((int(number) for number, page in numbers.items() if page == title), None)


# --- the questions -------------------------------------------------------------------------------


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


def _show_question_card(title: str) -> bool:
    """Show the question that the address names, and point to its answer, if this page has it.

    The card stays in sight until it is closed or another page is opened; what answers is framed,
    and the page scrolls to it, also when it comes later.
    """
    typed = st.query_params.get(_QUESTION, "")
    number = int(typed) if typed in map(str, range(1, len(QUESTIONS) + 1)) else None
    if number is None or QUESTIONS[number - 1].title != title:
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
            if title != _HOW_IT_WORKS:
                st.switch_page(find_page(_HOW_IT_WORKS))
            del st.query_params[_QUESTION]
            st.rerun()
        if st.button("Close", icon=":material/close:", type="tertiary", key="asked-close"):
            del st.query_params[_QUESTION]
            st.rerun()
    _pointer(key="pointer", data={"at": list(question.selectors)})
    return True


def _open_answer(number: int, question: Question) -> None:
    """Open the page that answers a question, with the question."""
    if question.title == _HOW_IT_WORKS:  # the list is on this page
        st.query_params[_QUESTION] = str(number)
        st.rerun()
    address = {_QUESTION: str(number), **question.address}
    st.switch_page(find_page(question.title), query_params=address)


def _close_list() -> None:
    st.session_state[_LIST] = False
