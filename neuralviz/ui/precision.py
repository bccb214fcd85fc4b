"""The widget that says how exactly texts are learnt."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.micro_tuning.settings import PRECISIONS

if TYPE_CHECKING:
    from neuralviz.micro_tuning.settings import Precision

_HELP = {
    "exact": "every word of the vocabulary counts in every step; takes longest.",
    "fast": "after an exact first step, the likeliest words at each place are followed and the "
    "others all together: several times quicker. What that changes of the vector is estimated and "
    "kept within the tolerance.",
    "bf16": "numbers are rounded to bfloat16, of 8 significant bits, before they are multiplied; "
    "and so are the results: quicker than exact. Offered where the machine computes so itself.",
    "fast+bf16": "both.",
}


def choose_precision(label: str, key: str, first: str) -> Precision:
    """How exactly to learn; what the machine has to imitate is not offered.

    Args:
        label, key: of the widget; a link brings its value back.
        first: chosen at the start, ``exact`` or ``fast``.
    """
    offered = [one for one in PRECISIONS if "bf16" not in one or _computes_in_bf16(key)]
    return st.selectbox(
        label,
        offered,
        index=[str(one) for one in offered].index(first),
        key=key,
        bind="query-params",
        help="\n".join(f"- **{one}**: {_HELP[one]}" for one in offered),
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
