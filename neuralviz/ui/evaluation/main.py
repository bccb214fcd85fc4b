"""The evaluation page below its title."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from neuralviz.evaluation.examples import EXAMPLES, recorded_results
from neuralviz.evaluation.results import Results
from neuralviz.ui.evaluation.choose import EvaluationChoice, choose
from neuralviz.ui.evaluation.data import KEY
from neuralviz.ui.evaluation.show import (
    LAST_RESULTS_KEY,
    offer_to_stop,
    recall_results,
    show_evaluation,
    show_results,
)
from neuralviz.ui.links import RUN
from neuralviz.ui.page import dim_old_results, plain
from neuralviz.ui.tables import put_upload_in_address
from neuralviz.words import many


def show() -> None:
    """Show data, methods, *Evaluate* and results; at first, the example's recorded results."""
    chosen, pressed = choose()
    requested_ids = st.session_state.setdefault("evaluation-asked", [])
    if pressed and chosen is None:
        st.info("Choose data and at least one method first; what is missing is said above.")
    elif pressed and chosen is not None:
        put_upload_in_address(KEY)
        requested_ids.append(chosen.identity)
    is_asked = chosen is not None and chosen.identity in requested_ids
    recorded = None if chosen is None or is_asked else _find_recorded(chosen)
    is_back = chosen is not None and not is_asked and (recorded is None or RUN in st.query_params)
    if chosen is not None and is_back and recall_results(chosen):
        requested_ids.append(chosen.identity)
        is_asked, recorded = True, None
    _describe_page(chosen, recorded, is_asked=is_asked)
    if chosen is not None and is_asked:
        with dim_old_results("evaluation", is_old=False):
            show_evaluation(chosen, again=pressed)
        return
    offer_to_stop()
    visible_results = recorded or st.session_state.get(LAST_RESULTS_KEY)
    if visible_results is not None:
        with dim_old_results("evaluation", is_old=recorded is None):
            show_results(visible_results, related_results=_read_recorded())


def _describe_page(
    chosen: EvaluationChoice | None, recorded: Results | None, *, is_asked: bool
) -> None:
    """Describe the data, the results below, and what the button does."""
    sentences = []
    if chosen is not None:
        data = chosen.data
        sentences += [
            plain(sentence) for sentence in (f"{data.name}: {data.describe()}.", *data.notes)
        ]
    if recorded is not None:
        sentences.append(
            f"Recorded on {recorded.begun[:10]} with neuralviz {recorded.version}. Press "
            "**Evaluate** to measure it here, live."
        )
    elif chosen is not None and not is_asked:
        sentences.append(
            f"{many(len(chosen.data.texts), 'different text')}, "
            f"{many(len(chosen.rows), 'method')}. Embeddings are saved, so you can stop and "
            "resume at any time."
        )
    last_results: Results | None = st.session_state.get(LAST_RESULTS_KEY)
    if last_results is not None and not recorded and not is_asked:
        sentences.append(
            f"The faded results below are those of {plain(last_results.data[0].name)}."
        )
    if sentences:
        st.caption(" ".join(sentences))


def _find_recorded(chosen: EvaluationChoice) -> Results | None:
    """The recorded results of exactly these data, methods and settings."""
    return next(
        (results for results in _read_recorded().values() if results.plan == chosen.plan), None
    )


@st.cache_resource(max_entries=1, show_spinner=False)
def _read_recorded() -> Mapping[str, Results]:
    """The recorded results by name of the example."""
    names = (name.lower() for name in EXAMPLES)
    recorded = recorded_results()
    return MappingProxyType(dict(zip(names, recorded, strict=True)) if recorded else {})
