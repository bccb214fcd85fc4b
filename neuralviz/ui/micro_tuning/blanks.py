"""Try the delta: what a micro-tuned model puts into the blanks of any sentence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.jobs.micro_tuning import FillBlanks
from neuralviz.micro_tuning.blanks import (
    MAX_SCALE,
    describe_blanks,
    describe_deltas,
    sentence_with_blank,
)
from neuralviz.models import BUNDLED
from neuralviz.models.shared import is_held
from neuralviz.plots.micro_tuning import blank_figure, blank_height, describe_run
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.limits import character_limit
from neuralviz.ui.micro_tuning.choose import digest_texts
from neuralviz.ui.page import plain
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns
from neuralviz.ui.stage import show_on_stage, slide
from neuralviz.ui.tour import is_tour_at

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.micro_tuning.blanks import FilledBlank
    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.models.shared import ModelRef

RUNS = SessionRuns("try-delta")
PREDICT_KEY = "try-delta-asked"
PATIENCE = 0.6  # seconds: enough to fill most sentences
NO_OTHER = -1


def try_deltas(record: RunRecord, model: ModelRef, key: str, text: int) -> None:
    """A sentence with blanks, filled before and after micro-tuning on a text.

    The model is loaded when somebody first asks for it; on the tour, the bundled one by itself.

    Args:
        record: of a run that is over.
        model: that it was run on, as its files were then.
        key: begins the keys of the widgets.
        text: the one that is looked at.
    """
    if text not in record.started_texts:
        return
    is_asked = any(st.session_state.get(name, False) for name in (PREDICT_KEY, f"{key}-predict"))
    is_automatic = is_tour_at("Micro-tuning") and record.model_id == BUNDLED
    is_answered = is_asked or is_automatic or is_held("masked", record.model_id)
    with slide(f"{key}-try") if is_answered else st.container():  # an empty slide shows nothing
        st.subheader("What does it know now?", anchor=False)
        with show_on_stage("try"), st.container(horizontal=True, vertical_alignment="bottom"):
            sentence = st.text_input(
                "A sentence with a blank: ___",
                sentence_with_blank(record.texts[text], record.reports.get(text)),
                max_chars=character_limit(),
                key=f"sentence-{digest_texts(record)}-{text}",
                persist_state="session",
                help="Any sentence, also one that is not in the text. Write ___ for each blank.",
            )
            pressed = st.button("Predict", icon=":material/psychology:", key=f"{key}-predict")
        scaled = _ask_scales(record, text)
        st.session_state[PREDICT_KEY] = is_asked
        if not is_answered:
            st.caption("Press **Predict** to see what the model puts into the blank.")
            return
        deltas = [(scale, record.text_delta(source)) for scale, source in scaled]
        run = RUNS.start(FillBlanks.from_deltas(model, sentence or "", deltas), again=pressed)
        show_run_panel(
            RUNS,
            run,
            partial(_draw_blanks, record, key, sentence or "", scaled),
            sentences=RunSentences(start="Reading the sentence …", describe_done=lambda _: ""),
            patience=PATIENCE,
        )


def _ask_scales(record: RunRecord, text: int) -> list[tuple[float, int]]:
    """Sliders for the deltas to add: pairs of a scale and a text."""
    first, middle, last = st.columns(3, vertical_alignment="bottom")
    names = {NO_OTHER: "no other text"}
    names |= {
        i: f"{i + 1}. {shorten(record.texts[i], 40)}" for i in record.started_texts if i != text
    }
    label = "× the delta" if len(record.texts) == 1 else f"× the delta of text {text + 1}"
    scaled = [(_ask_scale(first, label, "delta-scale"), text)]
    if len(names) > 1:
        second = middle.selectbox(
            "Add the delta of",
            list(names),
            format_func=names.__getitem__,
            key=f"other-delta-{digest_texts(record)}-{text}",
            persist_state="session",
        )
        if second != NO_OTHER:
            label = f"× the delta of text {second + 1}"
            scaled.append((_ask_scale(last, label, "other-delta-scale"), second))
    return scaled


def _ask_scale(place: DeltaGenerator, label: str, key: str) -> float:
    return place.slider(label, -MAX_SCALE, MAX_SCALE, 1.0, 0.1, key=key, bind="query-params")


def _draw_blanks(
    record: RunRecord,
    key: str,
    sentence: str,
    scaled: list[tuple[float, int]],
    blanks: tuple[FilledBlank, ...] | None,
    _live: bool,
) -> None:
    if blanks is None:
        return
    action = describe_deltas(scaled, len(record.texts))
    show_headline(plain(describe_blanks(blanks, action)), key=f"{key}-try")
    of_run = describe_run(record)
    provenance = About(
        "What does it know now?",
        {"sentence": sentence, "after": action, **of_run.settings},
        files=(sentence, *of_run.files[1:]),
    )
    for place, blank in enumerate(blanks, 1):
        name = f"blank {place}" if len(blanks) > 1 else "the blank"
        show_figure(
            blank_figure(blank, f"What the model puts into {name}"),
            key=f"{key}-blank-{place}",
            numbers=pd.DataFrame(
                [(row.token, row.before, row.after, row.change) for row in blank.candidates],
                columns=["token", "before", "after", "change"],
            ),
            name=f"blank {place}",
            height=blank_height(blank),
            provenance=provenance,
        )
