"""A choice among a few options, which a link restores."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

T = TypeVar("T")


def choose_one(
    widget: Callable[..., T | None], label: str, options: Sequence[T], *, key: str, **settings: Any
) -> T:
    """A segmented control or pills in the address, one of whose options is always chosen.

    An address that names the key and no option chooses none: the key is taken out of it.

    Args:
        widget: ``segmented_control`` or ``pills`` of the place where it should be.
        label: of the widget.
        options: to choose from.
        key: in the session and in the address.
        settings: of the widget; where none is the ``default``, the first option is.
    """
    if st.query_params.get(key) == "":
        del st.query_params[key]
        st.rerun()  # widgets read the address as it was when the script run began
    chosen = widget(label, options, key=key, required=True, bind="query-params", **settings)
    if chosen is None:  # *Back* to an address without the key empties the session's value
        return settings.get("default", options[0])
    return chosen
