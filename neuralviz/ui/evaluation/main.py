"""The evaluation page below its title."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from neuralviz.evaluation.examples import EXAMPLES, recorded_results
from neuralviz.evaluation.results import Results
from neuralviz.ui.evaluation.choose import Chosen, choose
from neuralviz.ui.evaluation.data import KEY
from neuralviz.ui.evaluation.show import (
    SEEN,
    bring_back,
    offer_to_stop,
    show_evaluation,
    show_results,
)
from neuralviz.ui.links import RUN
from neuralviz.ui.page import dimmed, plain
from neuralviz.ui.tables import put_upload_in_address
from neuralviz.words import many


def show() -> None:
    """Data, methods, *Evaluate*, and what was found; first, what was recorded of the example."""
    chosen, pressed = choose()
    asked = st.session_state.setdefault("evaluation-asked", [])
    if pressed and chosen is None:
        st.info("Choose data and at least one method first; what is missing is said above.")
    elif pressed and chosen is not None:
        put_upload_in_address(KEY)
        asked.append(chosen.identity)
    is_asked = chosen is not None and chosen.identity in asked
    recorded = None if chosen is None or is_asked else _recorded(chosen)
    is_back = chosen is not None and not is_asked and (recorded is None or RUN in st.query_params)
    if chosen is not None and is_back and bring_back(chosen):
        asked.append(chosen.identity)
        is_asked, recorded = True, None
    _note(chosen, recorded, is_asked=is_asked)
    if chosen is not None and is_asked:
        with dimmed("evaluation", is_old=False):
            show_evaluation(chosen, again=pressed)
        return
    offer_to_stop()
    shown = recorded or st.session_state.get(SEEN)
    if shown is not None:
        with dimmed("evaluation", is_old=recorded is None):
            show_results(shown, others=_by_question())


def _note(chosen: Chosen | None, recorded: Results | None, *, is_asked: bool) -> None:
    """What the data are, what is shown below, and what the button would do."""
    said = []
    if chosen is not None:
        data = chosen.data
        said += [plain(one) for one in (f"{data.name}: {data.describe()}.", *data.notes)]
    if recorded is not None:
        said.append(
            f"Recorded on {recorded.begun[:10]} with neuralviz {recorded.version}. Press "
            "**Evaluate** to measure it here, live."
        )
    elif chosen is not None and not is_asked:
        said.append(
            f"{many(len(chosen.data.texts), 'different text')}, "
            f"{many(len(chosen.rows), 'method')}. Embeddings are saved, so you can stop and "
            "resume at any time."
        )
    seen: Results | None = st.session_state.get(SEEN)
    if seen is not None and not recorded and not is_asked:
        said.append(f"The faded results below are those of {plain(seen.data[0].name)}.")
    if said:
        st.caption(" ".join(said))


def _recorded(chosen: Chosen) -> Results | None:
    """What was recorded of just these data, methods and settings."""
    return next((one for one in _by_question().values() if one.plan == chosen.plan), None)


@st.cache_resource(max_entries=1, show_spinner=False)
def _by_question() -> Mapping[str, Results]:
    """What was recorded, by what the texts are asked for."""
    names = (name.lower() for name in EXAMPLES)
    recorded = recorded_results()
    return MappingProxyType(dict(zip(names, recorded, strict=True)) if recorded else {})
