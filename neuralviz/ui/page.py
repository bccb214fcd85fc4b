"""What all pages share: header, columns, errors, the stage with its slides, the tour."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import streamlit as st
import streamlit.components.v2
from streamlit.components.v2.types import ComponentRenderer
from streamlit.delta_generator import DeltaGenerator

from neuralviz.errors import NeuralvizError
from neuralviz.files import COMMON_VIEW
from neuralviz.paths import app_folder
from neuralviz.plots.report import WORD_JOINER  # prevents links and arrows, which escapes do not
from neuralviz.ui.address import run_page_again, write
from neuralviz.ui.downloads import offer_sentence, show_download_menu

USER_SOURCES = ("Paste", "Upload")  # sources that hold a user's own texts

_JOINED = re.compile(r"(?i)www(?=\.)|https?(?=://)|@|-(?=[->])|<(?=-)")  # begin links and arrows
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#|~$:<>&]|(?<=:material)/")
_AT_START = re.compile(r"^(\s*\d*)([-+.](?=\s|$)|=)", re.MULTILINE)


def show_page_header(title: str, line: str, formula_md: str, reading_md: str, source: str) -> None:
    """Draw the title, how to read the page, the menu of downloads, and a line; all in markdown."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(title, anchor=False, width="content")
        with st.popover(
            "How to read this", icon=":material/menu_book:", type="tertiary", key="how-to-read"
        ):
            st.markdown(reading_md)
            st.markdown(formula_md)
            st.caption(source)
        show_download_menu(title)
    if not show_card(title):
        st.markdown(line)


def wide_columns(spec: int | Sequence[int], key: str) -> list[DeltaGenerator]:
    """Columns side by side on a wide page, and below each other where there is no room."""
    return st.container(key=f"wide-{key}").columns(spec, gap="medium")


def dim_old_results(key: str, is_old: bool) -> DeltaGenerator:
    """A place for results, faded when they belong to other texts or settings than the widgets."""
    # the same elements either way, so that no figure is drawn anew
    opacity = 0.4 if is_old else 1
    st.html(f"<style>.st-key-result-{key} {{ --result-opacity: {opacity} }}</style>")
    return st.container(key=f"result-{key}")


def plain(text: str) -> str:
    """A user's text as markdown that shows it as it is, without links and arrows."""
    apart = _JOINED.sub(rf"\g<0>{WORD_JOINER}", text)
    return _AT_START.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\g<0>", apart))


def show_error(error: NeuralvizError) -> None:
    """Show what is wrong and what to do."""
    st.error(plain(str(error)))


# --- the stage, and the browser scripts ----------------------------------------------------------

ASSETS = Path(__file__).with_name("assets")


def script(name: str, html: str = "<span></span>") -> ComponentRenderer:
    """Register the component that runs ``assets/NAME.js``; call it once, at import."""
    return streamlit.components.v2.component(
        f"neuralviz_{name}",
        html=html,
        js=(ASSETS / f"{name}.js").read_text("utf-8"),
        isolate_styles=False,
    )


_leaving = script("leaving")
_switch = script(
    "stage", "<button class='neuralviz-stage-switch' title='Full screen (S)'>Stage</button>"
)


def show_stage_switch() -> None:
    """The button that opens the stage, as do the key S and ``?stage`` in a link.

    Past the last slide, *Right* presses ``stage-next`` or ``tour-next``; before the first, *Left*
    presses ``stage-back`` or ``tour-back``.
    """
    _switch(key="stage-switch")


def send_before_leaving() -> None:
    """Make links between pages wait until the text typed in a field has been sent."""
    with st.sidebar:
        _leaving(key="leaving")


def hide_on_stage(key: str) -> DeltaGenerator:
    return st.container(key=f"off-stage-{key}")


def show_only_on_stage(key: str) -> DeltaGenerator:
    return st.container(key=f"stage-only-{key}")


def show_on_stage(key: str, width: Literal["stretch", "content"] = "stretch") -> DeltaGenerator:
    """A widget that the tour asks the visitor to use: the stage then shows it, too, enlarged."""
    return st.container(key=f"on-stage-{key}", width=width)


def stage_step(number: int, n: int) -> str:
    """Key of a container that tells the stage which of a page's ``n`` steps is shown, from 1."""
    return f"stage-step-{number}-{n}"


def show_headline(sentence: str, *, key: str) -> None:
    """Show a headline in markdown in large type; in small type, how sure it is, and paragraphs."""
    if sentence:
        with st.container(key=f"headline-{key}"):
            st.markdown(sentence)
        offer_sentence(f"headline-{key}", sentence)


@contextmanager
def slide(key: str, headline: str = "") -> Iterator[Callable[[str], None]]:
    """A part of the page that is a slide on the stage, with headline and figures alone.

    What it yields writes the headline later, above what was drawn meanwhile.
    """
    with st.container(key=f"slide-{key}"):
        show_headline(headline, key=key)  # in no place of its own: figures below keep their zoom
        place = st.container() if not headline else None

        def write(sentence: str) -> None:
            with place or st.container():
                show_headline(sentence, key=key)

        yield write


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
    write({parameter: ""})
    run_page_again()


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
        write({_STOP: str(number), **address})
        run_page_again()  # widgets read the address as it was when the script run began
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
            st.caption(f"Stop {number} of {len(STOPS)}. Press S for the stage.")
    return True


def is_tour_at(title: str) -> bool:
    number = _find_stop(title)
    return number is not None and st.query_params.get(_STOP) == str(number)


def show_start_button() -> None:
    if st.button("Take the tour", icon=":material/tour:", help="Ten minutes, five stops"):
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
                    write({_QUESTION: str(number)})
                    run_page_again()
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
        if card.address and set(st.query_params) <= {_QUESTION, "stage"}:
            write(card.address)
            run_page_again()  # widgets read the address as it was when the script run began
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


def point_to(selector: str, *, is_framed: bool = True) -> None:
    """Scroll to what a link or a button leads to, and frame it until the page runs again."""
    _pointer(key="pointer-link", data={"at": [selector], "bare": not is_framed})


def result_view_id(key: str) -> str:
    """The id under which results are saved: a user's texts have their own, the rest one for all."""
    if st.session_state.get(f"{key}-source") in USER_SOURCES:
        return st.session_state.get(f"{key}-view") or ""
    return COMMON_VIEW
