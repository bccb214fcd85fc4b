"""The tour: five stops over the pages, on one corpus, in ten minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from neuralviz.paths import app_folder
from neuralviz.ui.headline import show_headline
from neuralviz.ui.stage import slide

_STOP = "tour"  # query parameter: the number of a stop, during the tour
_OPENED = "tour-opened"  # session state: the number of the last opened stop


@dataclass(frozen=True)
class TourStop:
    """A page of the tour.

    Attributes:
        page: its file.
        title: as it is in the list of pages.
        question: that the page answers.
        instructions: what to say and to do there, in markdown.
        address: what the page opens with.
        texts: key of the page's texts, where it has some: its examples are shown.
        fields: what is in fields of the page, by their keys.
    """

    page: str
    title: str
    question: str
    instructions: str
    address: Mapping[str, str] = field(default_factory=dict)
    texts: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


STOPS = (
    TourStop(
        "pages/micro_tuning.py",
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
        "pages/compare.py",
        "Compare",
        "Do all methods find the same texts similar?",
        "Twelve texts of the corpus: three topics, each as a headline, a question, a diary entry "
        "and a complaint. **mean** puts every text next to one on the same topic. Now order the "
        "texts **by form**: which methods see it?",
        {"compare-example": "From the corpus", "order": "By topic"},
        texts="compare",
    ),
    TourStop(
        "pages/corpus_map.py",
        "Corpus map",
        "Do two methods sort a corpus alike?",
        "All 480 texts, each a point. By **mean**, nearly every text lies among texts on its "
        "topic; by **neural** embedding, seven in ten do. Type a sentence of your own and press "
        "Enter: where does it land?",
        fields={"corpus-how": "By meaning"},
    ),
    TourStop(
        "pages/evaluation.py",
        "Evaluation",
        "Which method is better, and how sure is that?",
        "It depends on the question: here it is the **form**. The sentence says who is ahead and "
        "whether the data decide it; the intervals are the proof. Switch to the topics: "
        "another method wins. Here **neural** takes ten epochs, on the map it took five: the more "
        "epochs, the more the form counts.",
    ),
    TourStop(
        "pages/layers.py",
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


def show_tour_card(title: str) -> bool:
    """Show the tour's card on the page with this title, with *Back* and *Next*.

    Returns:
        Whether the tour goes on, and the page is one of its stops.
    """
    number = _number(title)
    if number is None:
        return False
    stop = STOPS[number - 1]
    says_no_more = set(st.query_params) <= {_STOP, "stage"}
    if says_no_more and st.session_state.get(_OPENED) != number and (address := _prepare(number)):
        st.query_params.update({_STOP: str(number), **address})
        st.rerun()  # widgets read the address as it was when the script run began
    with st.container(border=True, key="tour-card"):
        with slide("tour"):
            show_headline(f"{number}\\. {stop.question}", key="tour")
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
        st.switch_page(app_folder() / "pages/how_it_works.py")
    address = _prepare(number)
    page = app_folder() / STOPS[number - 1].page
    st.switch_page(page, query_params={_STOP: str(number), **address})


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
