"""Cards at the top of pages: the stops of the tour, and the answers to questions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from neuralviz.paths import app_folder
from neuralviz.ui.stage import ASSETS, script, slide

_STOP, _QUESTION = "tour", "asked"  # query parameters: the number of a stop, of a question
_OPENED = "tour-opened"  # session state: the number of the last opened stop
_LIST = "questions"  # session state: whether the list of questions is open
_HOW_IT_WORKS = "How it works"
_pointer = script("pointer")


@dataclass(frozen=True)
class Card:
    """A question, the page that answers it, and what to look at or to do there."""

    page: str  # its title
    question: str
    text: str  # markdown
    address: Mapping[str, str] = field(default_factory=dict)  # query parameters
    session: Mapping[str, str | bool | int] = field(default_factory=dict)  # of widgets, by key
    selectors: Sequence[str] = ()  # CSS of the answer: at first, and once the text is followed


_CARDS = tomllib.loads((ASSETS / "tour.toml").read_text("utf-8"))
STOPS = [Card(**card) for card in _CARDS["stops"]]
QUESTIONS = [Card(**card) for card in _CARDS["questions"]]


def find_page(title: str) -> Path:
    name = "layers" if title == "Layer dynamics" else re.sub("[ -]", "_", title.lower())
    return app_folder() / f"pages/{name}.py"


def show_card(title: str) -> bool:
    """Show the tour's card, or the question that the address names, if it belongs to this page."""
    return _show_tour_card(title) or _show_question_card(title)


def _leave(parameter: str) -> None:
    del st.query_params[parameter]
    st.rerun()


def _read_number(parameter: str, cards: Sequence[Card]) -> int | None:
    typed = st.query_params.get(parameter, "")
    return int(typed) if typed in map(str, range(1, len(cards) + 1)) else None


# --- the tour ------------------------------------------------------------------------------------


def _find_stop(title: str) -> int | None:
    """The number of the stop at the page with this title; None outside the tour."""
    # any stop's number will do: after the browser's *Back*, a page has that of the next stop
    if _read_number(_STOP, STOPS) is None:
        return None
    return next((number for number, stop in enumerate(STOPS, 1) if stop.page == title), None)


def _show_tour_card(title: str) -> bool:
    """Show the tour's card, with *Back* and *Next*, if the page is one of its stops."""
    number = _find_stop(title)
    if number is None:
        return False
    stop = STOPS[number - 1]
    says_no_more = set(st.query_params) <= {_STOP, "stage"}
    if says_no_more and st.session_state.get(_OPENED) != number and (address := _prepare(number)):
        st.query_params.update({_STOP: str(number), **address})
        st.rerun()  # widgets read the address as it was when the script run began
    with st.container(border=True, key="tour-card"):
        with slide("tour", f"{number}\\. {stop.question}"):
            st.markdown(stop.text)
        with st.container(horizontal=True, vertical_alignment="center"):
            if number > 1 and st.button("Back", icon=":material/arrow_back:", key="tour-back"):
                open_tour_stop(number - 1)
            is_last = number == len(STOPS)
            label = "How it works, step by step" if is_last else f"Next: {STOPS[number].page}"
            if st.button(label, icon=":material/arrow_forward:", type="primary", key="tour-next"):
                open_tour_stop(number + 1)
            if st.button("End the tour", type="tertiary", key="tour-end"):
                _leave(_STOP)
            st.caption(f"Stop {number} of {len(STOPS)}, two minutes each. Press S for the stage.")
    return True


def is_tour_at(title: str) -> bool:
    number = _find_stop(title)
    return number is not None and st.query_params.get(_STOP) == str(number)


def show_start_button() -> None:
    if st.button("Take the tour: ten minutes, five stops", icon=":material/tour:"):
        open_tour_stop(1)


def open_tour_stop(number: int) -> None:
    """Open a stop with its example; after the last stop, the How it works page."""
    if number > len(STOPS):
        st.switch_page(find_page(_HOW_IT_WORKS))
    address = {_STOP: str(number), **_prepare(number)}
    st.switch_page(find_page(STOPS[number - 1].page), query_params=address)


def _prepare(number: int) -> dict[str, str]:
    """Fill a stop's widgets in the session state; the rest of its settings, for the address."""
    st.session_state[_OPENED] = number
    stop = STOPS[number - 1]
    st.session_state.update(stop.session)
    address = dict(stop.address)
    if stop.page == "Corpus map":
        # imported here: every page asks for its stop, and the database loads slowly
        from neuralviz.maps.example import NAME
        from neuralviz.store.corpora import CorpusStore

        for corpus in CorpusStore().corpora():
            if corpus.name == NAME:
                address["corpus"] = corpus.id
    return address


# --- the questions -------------------------------------------------------------------------------


def show_questions() -> None:
    with st.popover("Ten questions", icon=":material/quiz:", key=_LIST, on_change="rerun"):
        for number, card in enumerate(QUESTIONS, 1):
            title = f"**{card.question}**"
            if st.button(title, type="tertiary", on_click=_set_list, args=(False,), help=card.text):
                if card.page == _HOW_IT_WORKS:  # the list is on this page
                    st.query_params[_QUESTION] = str(number)
                    st.rerun()
                address = {_QUESTION: str(number), **card.address}
                st.switch_page(find_page(card.page), query_params=address)


def _set_list(is_open: bool) -> None:
    st.session_state[_LIST] = is_open


def _show_question_card(title: str) -> bool:
    """Show the question that the address names if this page has its answer, and point to it."""
    number = _read_number(_QUESTION, QUESTIONS)
    if number is None or QUESTIONS[number - 1].page != title:
        st.session_state.pop(_QUESTION, None)
        return False
    card = QUESTIONS[number - 1]
    if st.session_state.get(_QUESTION) != number:
        st.session_state[_QUESTION] = number
        st.session_state.update(card.session)
    with st.container(border=True, key="asked", horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{card.question}** {card.text}")
        if st.button("All questions", type="tertiary", key="asked-list"):
            _set_list(True)
            if title != _HOW_IT_WORKS:
                st.switch_page(find_page(_HOW_IT_WORKS))
            _leave(_QUESTION)
        if st.button("Close", icon=":material/close:", type="tertiary", key="asked-close"):
            _leave(_QUESTION)
    _pointer(key="pointer", data={"at": list(card.selectors)})
    return True
