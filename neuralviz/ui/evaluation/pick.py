"""One method at a time: the best comes first, until another is picked."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.evaluation.yardsticks import best_first

if TYPE_CHECKING:
    from neuralviz.evaluation.events import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick


def pick_method(
    results: Results,
    yardstick: Yardstick,
    key: str,
    *,
    among: Collection[str] | None = None,
    label: str = "Method",
) -> tuple[str, Measured]:
    """Ask for a method; other results or another measure select the best one again.

    Args:
        results: of one data set.
        yardstick: ranks the methods.
        key: the widget's.
        among: labels to choose from, at least one; by default all.
        label: the widget's.

    Returns:
        The method and its measurements.
    """
    measured_by_label = {
        name: measured
        for name, measured in best_first(results, 0, yardstick)
        if among is None or name in among
    }
    context = (results.data[0].digest, yardstick.name, tuple(measured_by_label))
    if st.session_state.get(f"{key}-for") != context:
        st.session_state[f"{key}-for"] = context
        st.session_state[key] = next(iter(measured_by_label))
    chosen = st.selectbox(label, list(measured_by_label), key=key)
    return chosen, measured_by_label[chosen]
