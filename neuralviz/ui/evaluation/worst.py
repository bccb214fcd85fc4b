"""What a method gets most wrong, in its own words: the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from neuralviz.evaluation.yardsticks import worst_cases, worst_in_words
from neuralviz.headlines.evaluation import short_name
from neuralviz.plots.theme import shorten
from neuralviz.ui.evaluation.pick import pick_method
from neuralviz.ui.figures import download_table
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain
from neuralviz.ui.stage import hide_on_stage, slide
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Cases, Yardstick
    from neuralviz.plots.standalone import About

VISIBLE_CASES = 3  # the others are in the expander
QUOTE_LENGTH = 90  # characters of a text in the sentence


def show_worst(results: Results, yardstick: Yardstick, provenance: About) -> None:
    """Show the worst case of a method as a sentence, and its worst cases as a table.

    Args:
        results: of one data set.
        yardstick: ranks the methods.
        provenance: for downloads.
    """
    data = results.data[0]
    name = short_name(results, lambda label: f"**{plain(label)}**")
    sentences = {
        label: worst_in_words(data, measurement, name(label), _quote)
        for _, label, measurement in results.finished(0)
    }
    labels = [label for label, sentence in sentences.items() if sentence]
    if not labels:
        return
    with slide("evaluation-worst"):
        top = st.container()
        label, measured = pick_method(
            results, yardstick, "evaluation-worst-of", among=labels, label="Errors of"
        )
        with top:
            show_headline(sentences[label], key="evaluation-worst")
        all_cases = worst_cases(data, measured)
        for cases in all_cases[:1]:
            _show_cases(cases, 0, label, provenance)
    for place, cases in enumerate(all_cases[1:], 1):  # they do not fit on the stage
        _show_cases(cases, place, label, provenance)


def _show_cases(cases: Cases, place: int, label: str, provenance: About) -> None:
    """The table of one kind of cases, and its download."""
    st.markdown(f"**{cases.title}**")
    frame = pd.DataFrame(cases.lines, columns=list(cases.heads))
    _show_table(frame, f"evaluation-worst-{place}")
    with st.popover(
        "Download", icon=":material/download:", type="tertiary", key=f"evaluation-errors-{place}"
    ):
        download_table(
            "Errors", frame, f"{provenance.title} errors of {label}",
            key=f"evaluation-errors-{place}", provenance=provenance,
        )  # fmt: skip


def _quote(text: str) -> str:
    return f"“{plain(shorten(text, QUOTE_LENGTH))}”"


def _show_table(frame: pd.DataFrame, key: str) -> None:
    """Show the first worst cases, texts cut at 300 characters, and the others on demand."""
    visible_rows = frame.copy()
    for name in visible_rows.columns:
        if is_numeric_dtype(visible_rows[name]):
            digits = ".3g" if name == "human score" else ".3f"
            visible_rows[name] = [number(value, digits) for value in visible_rows[name]]
        else:
            visible_rows[name] = [shorten(text, 300) for text in visible_rows[name]]
    worst = visible_rows[:VISIBLE_CASES].map(plain)
    st.table(worst, hide_index=True)
    if len(visible_rows) > VISIBLE_CASES:
        with hide_on_stage(key), st.expander(f"The worst {len(visible_rows)}"):
            st.dataframe(visible_rows, hide_index=True, key=key)
