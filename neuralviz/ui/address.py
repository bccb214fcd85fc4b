"""The address of a page: it has what decides what is seen, settings and ids, but no texts.

Widgets with ``bind="query-params"`` are Streamlit's concern; what else decides is read by
`read_new` and written by `write`. Which changes become entries of the browser's history is decided
in ``assets/address.js``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import NoReturn, TypeVar
from urllib.parse import parse_qs

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

RUN = "run"  # query parameter: the id of a run
_VISIT = "visit"  # session state: its number, the page, whether the browser's history led to it
_READ = "visit-read"  # session state: by key, the visit in which `read_new` last read it
_FIRST_VISIT = (0, "", False)
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
Choice = TypeVar("Choice", str, list[str])


def begin_visit(page: StreamlitPage) -> None:
    """Note that a page is opened, or another entry of the browser's history."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:  # nobody has opened it
        return
    number, title, _ = st.session_state.get(_VISIT, _FIRST_VISIT)
    if context.is_history_navigation or page.title != title:
        st.session_state[_VISIT] = number + 1, page.title, context.is_history_navigation


def visit_number() -> int:
    """Which visit this is: of a page, or of another entry of the browser's history."""
    number: int = st.session_state.get(_VISIT, _FIRST_VISIT)[0]
    return number


def read_new(name: str, key: str = "") -> str | None:
    """A parameter of an address that was just opened; None where the session state decides.

    After *Back*, a parameter that the address lacks is empty: the page shows what it has at first.
    Each ``key``, by default the name, is read once a visit, so that clicks sent before the address
    changed do not change it back.
    """
    number, _, is_history = st.session_state.get(_VISIT, _FIRST_VISIT)
    read: dict[str, int] = st.session_state.setdefault(_READ, {})
    if read.get(key or name) == number:
        return None
    read[key or name] = number
    value: str | None = st.query_params.get(name)
    return "" if value is None and is_history else value


def read_bound(key: str) -> str | None:
    """What a bound widget that is not drawn yet will have; None for its first value."""
    context = get_script_run_ctx(suppress_warning=True)
    value = None if context and context.is_history_navigation else st.session_state.get(key)
    return value or st.query_params.get(key)


def write(values: Mapping[str, str | list[str]]) -> None:
    """Change parameters that no widget is bound to; empty ones are removed."""
    for name in [name for name, value in values.items() if not value and name in st.query_params]:
        del st.query_params[name]
    # a run of the script that a click interrupts changes parameters of which no browser hears
    context = get_script_run_ctx(suppress_warning=True)
    sent = parse_qs(context.query_string) if context is not None else {}
    listed = {name: [value] if isinstance(value, str) else value for name, value in values.items()}
    changed = {
        name: value
        for name, value in listed.items()
        if values[name] and not st.query_params.get_all(name) == value == sent.get(name)
    }
    if changed:
        st.query_params.update(changed)


def read_numbers(typed: str) -> tuple[int, ...]:
    """Numbers from 1 with commas between them; what is none is passed over."""
    return tuple(int(part) for part in typed.split(",") if _NUMBER.fullmatch(part))


def run_page_again() -> NoReturn:
    """Run the script again, unless a request waits that stops it here, such as *Back*'s.

    Such a request would get the address of this run from `st.rerun`.
    """
    st.empty()
    st.rerun()


def remember_choice(key: str, first: Choice) -> Choice:
    """The value under a key of the session state, which the address always has, too.

    For a choice whose ``first`` value depends on what is saved: a link keeps it. The value may name
    what is gone by now.
    """
    if read_new(key):
        linked = st.query_params.get_all(key)
        st.session_state[key] = linked if isinstance(first, list) else linked[-1]
    value: Choice = st.session_state.setdefault(key, first)
    write({key: value})
    return value


def accept_former(names: Mapping[str, str]) -> None:
    """Give parameters of old links the names that their widgets have today."""
    values = {former: st.query_params.get(former) for former in names}
    if renamed := {names[former]: value for former, value in values.items() if value}:
        write(dict.fromkeys(values, "") | renamed)
        run_page_again()  # widgets read the address as it was when the script run began


def digest_of(text: str) -> str:
    """Eight characters that tell data apart in an address, and reveal nothing of them."""
    return f"{zlib.crc32(text.encode()):08x}"


def remember_number(key: str, numbers: range, first: int, data: object = "") -> int:
    """A number under a key of the session state, which the address has, too, unless it is first.

    For places among options that quote a user's texts, and for numbers whose limits depend on the
    result. With other ``data``, it is the first one again.
    """
    digest, typed = digest_of(repr(data)), read_new(key)
    if typed:
        number, _, typed_digest = typed.partition("~")
        is_number = typed_digest == digest and number.isdecimal() and len(number) < 10
        st.session_state[key] = int(number) if is_number else first
    elif typed == "" or st.session_state.get(f"{key}-of") != digest:
        st.session_state[key] = first
    if st.session_state.get(key) not in numbers:
        st.session_state[key] = first
    st.session_state[f"{key}-of"] = digest
    number_: int = st.session_state[key]
    write({key: "" if number_ == first else f"{number_}~{digest}"})
    return number_


def mark_lost(key: str) -> None:
    """Note that what the address names is gone: `is_lost` until another address is opened."""
    st.session_state[f"{key}-lost"] = visit_number()


def forget_loss(key: str) -> None:
    st.session_state.pop(f"{key}-lost", None)


def is_lost(key: str) -> bool:
    lost: int | None = st.session_state.get(f"{key}-lost")
    return lost == visit_number()
