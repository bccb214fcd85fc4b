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
    """Widget for the precision; one that the machine would have to emulate is not offered.

    Args:
        label, key: of the widget; a link brings its value back.
        first: chosen at the start, ``exact`` or ``fast``.
    """
    offered = [name for name in PRECISIONS if "bf16" not in name or _computes_in_bf16(key)]
    requested = st.query_params.get(key, first)
    if requested not in offered:
        st.toast(
            plain(
                f"The precision “{requested[:40]}” in this link is not available here. Using "
                f"{first} instead."
            ),
            icon=":material/warning:",
            duration="long",
        )
    return st.selectbox(
        label,
        offered,
        index=[str(name) for name in offered].index(first),
        key=key,
        bind="query-params",
        help="\n".join(f"- **{name}**: {PRECISION_LINES[name]}" for name in offered),
    )


def _computes_in_bf16(key: str) -> bool:
    """Whether the machine computes in bfloat16, as far as is known.

    Only torch can tell, and it is not imported for that unless a link asks for bfloat16.
    """
    is_requested = "bf16" in st.query_params.get(key, "")
    return (is_requested or "torch" in sys.modules) and _native_bf16()


@cache
def _native_bf16() -> bool:
    import torch

    from neuralviz.micro_tuning.products import has_native_bf16

    return has_native_bf16("cuda" if torch.cuda.is_available() else "cpu")
