"""The widget for the precision of micro-tuning."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.micro_tuning.settings import PRECISION_LINES, PRECISIONS
from neuralviz.ui.page import plain

if TYPE_CHECKING:
    from neuralviz.micro_tuning.settings import Precision


def choose_precision(label: str, key: str, first: str) -> Precision:
    """Ask for the precision; what the machine would have to emulate is not offered.

    Args:
        label, key: of the widget; a link brings its value back.
        first: chosen at the start, ``exact`` or ``fast``.
    """
    offered = [one for one in PRECISIONS if "bf16" not in one or _computes_in_bf16(key)]
    asked = st.query_params.get(key, first)
    if asked not in offered:
        st.toast(
            plain(
                f"The precision “{asked[:40]}” in this link is not available here. Using "
                f"{first} instead."
            ),
            icon=":material/warning:",
            duration="long",
        )
    return st.selectbox(
        label,
        offered,
        index=[str(one) for one in offered].index(first),
        key=key,
        bind="query-params",
        help="\n".join(f"- **{one}**: {PRECISION_LINES[one]}" for one in offered),
    )


def _computes_in_bf16(key: str) -> bool:
    """Whether the machine does, as far as is known.

    Only torch can tell, and it is not imported for that unless a link asks for bfloat16.
    """
    asked = "bf16" in st.query_params.get(key, "")
    return (asked or "torch" in sys.modules) and _native_bf16()


@cache
def _native_bf16() -> bool:
    import torch

    from neuralviz.models.bfloat16 import has_native_bf16

    return has_native_bf16("cuda" if torch.cuda.is_available() else "cpu")
