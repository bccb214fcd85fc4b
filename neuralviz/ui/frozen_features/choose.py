"""The widgets of the page on frozen features: pairs, model, pooling, rungs and seeds."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.evaluation.ladder_results import DEFAULT_SEED, Ladder, LadderSettings
from neuralviz.jobs import Run
from neuralviz.jobs.ladder import (
    EXAMPLE,
    ClimbLadder,
    LookAtLayers,
    example_ladder,
    example_pairs,
    recorded_ladder,
)
from neuralviz.layers.settings import POOLING_NAMES, POOLINGS, PoolingName
from neuralviz.models.shared import ModelRef
from neuralviz.reading.pairs import ScoredPairs
from neuralviz.training.similarity.settings import RUNG_MEANS, RUNG_NAMES, RUNGS
from neuralviz.ui.choices import choose_one
from neuralviz.ui.model_choice import choose_text_model, may_load
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.ui.runs import SessionRuns
from neuralviz.ui.tables import choose_pairs
from neuralviz.words import many

KEY = "frozen"
LOOKS = SessionRuns(f"{KEY}-layers")
SEEDS = {"One": (DEFAULT_SEED,), "Three": tuple(range(DEFAULT_SEED, DEFAULT_SEED + 3))}
_MODEL_HELP = (
    "It stays as it is. You can choose a sentence encoder, a masked language model or a model that "
    "predicts the next token, by its Hub ID or its folder."
)


def choose_ladder() -> tuple[ClimbLadder | None, Run[Ladder] | None, bool]:
    """Ask for a ladder; returns it, the run over its layers, and whether *Train* was pressed."""
    left_column, right_column = wide_columns(2, f"{KEY}-given")
    with left_column:
        pairs = choose_scored_pairs()
    with right_column:
        model_place, pooling_place = st.columns(2)
        with model_place:
            model_id = choose_text_model(f"{KEY}-model", _MODEL_HELP)
        if pairs is None or not may_load(model_id):
            return None, None, False
        model = ModelRef.from_id(model_id)
        looking = _look_at_layers(model, pairs)
        with pooling_place:
            pooling = _choose_pooling(list(looking.result.layers))
        row = st.container(horizontal=True, vertical_alignment="center")
        pressed = row.button("Train", type="primary", icon=":material/fitness_center:")
        try:
            with row.popover("Settings", icon=":material/tune:", key=f"{KEY}-settings"):
                settings = _choose_settings(pooling)
        except SettingsError as error:
            show_error(error)
            return None, looking, pressed
    return ClimbLadder(model, pairs, settings), looking, pressed


def choose_scored_pairs() -> ScoredPairs | None:
    """Ask for pairs, the example's or a table's; None, with a message, without any."""
    choice = choose_pairs(KEY, _load_example)
    if choice is None:
        return None
    name, pairs, is_example = choice
    if is_example:
        st.caption(f"{many(len(pairs), 'pair')} written for neuralviz, scored from 0 to 5.")
    else:
        st.caption(plain(" ".join([f"{many(len(pairs), 'pair')} from {name}.", *pairs.notes])))
    return pairs


@st.cache_data(max_entries=1, show_spinner=False)
def _load_example() -> tuple[str, ScoredPairs]:
    return EXAMPLE, example_pairs()


@st.cache_resource(max_entries=1, show_spinner=False)
def load_recorded_run() -> Run[Ladder] | None:
    """The recorded ladder as a finished run, the same one for all sessions."""
    ladder = recorded_ladder()
    return None if ladder is None else Run.from_result(example_ladder(), ladder)


def _look_at_layers(model: ModelRef, pairs: ScoredPairs) -> Run[Ladder]:
    """A run over the layers: the recorded one where it is of these pairs."""
    recorded = load_recorded_run()
    if recorded is not None and (recorded.task.model, recorded.task.pairs) == (model, pairs):
        return recorded
    return LOOKS.start(LookAtLayers(model, pairs))


def _choose_pooling(model_poolings: Sequence[str]) -> PoolingName:
    """Ask for a pooling, at first the model's default; all are offered while it is not loaded."""
    options = [name for name in POOLINGS if name in model_poolings] or list(POOLINGS)
    default = next((name for name in model_poolings[:1] if name in options), options[0])
    chosen = st.selectbox(
        "Pooling",
        options,
        index=options.index(default),
        format_func=POOLING_NAMES.__getitem__,
        key=f"{KEY}-pooling-{default}",  # a model with other poolings resets it
        bind="query-params",
        help="How the vectors of a text's tokens become one vector at each layer.",
    )
    return chosen or default


def _choose_settings(pooling: PoolingName) -> LadderSettings:
    rungs = st.pills(
        "Rungs",
        RUNGS,
        default=list(RUNGS),
        selection_mode="multi",
        format_func=RUNG_NAMES.__getitem__,
        key=f"{KEY}-rungs",
        bind="query-params",
    )
    for rung in RUNGS:
        st.caption(f"**{RUNG_NAMES[rung]}**: {RUNG_MEANS[rung]}")
    seeds = choose_one(
        st.segmented_control,
        "Seeds",
        list(SEEDS),
        key=f"{KEY}-seeds",
        default="One",
        help="With three, each rung is trained three times, and its mean is shown.",
    )
    return LadderSettings(
        pooling=pooling, rungs=tuple(rung for rung in RUNGS if rung in rungs), seeds=SEEDS[seeds]
    )
