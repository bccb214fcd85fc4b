"""Model, pooling, rungs and seeds of a ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.evaluation.ladder_results import DEFAULT_SEED, LadderSettings
from neuralviz.layers.settings import POOLING_NAMES, POOLINGS
from neuralviz.training.similarity.settings import RUNG_MEANS, RUNG_NAMES, RUNGS
from neuralviz.ui.choices import choose_one

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from neuralviz.layers.settings import PoolingName
    from neuralviz.training.similarity.settings import Rung

SEEDS = {"One": (DEFAULT_SEED,), "Three": tuple(range(DEFAULT_SEED, DEFAULT_SEED + 3))}


def choose_pooling(model_poolings: Sequence[str]) -> PoolingName:
    """Ask how token vectors become a text's vector at each layer.

    Args:
        model_poolings: the model's poolings, its default first; empty while it is not loaded.
    """
    options = [name for name in POOLINGS if name in model_poolings] or list(POOLINGS)
    first = (
        options.index(model_poolings[0]) if model_poolings and model_poolings[0] in options else 0
    )
    chosen = st.selectbox(
        "Pooling",
        options,
        index=first,
        format_func=POOLING_NAMES.__getitem__,
        key=f"frozen-pooling-{options[first]}",  # a model with other poolings resets it
        bind="query-params",
        help="How the vectors of a text's tokens become one vector at each layer.",
    )
    return chosen or options[first]


def choose_rung(rungs: Sequence[Rung], best: Rung | None, key: str, **settings: Any) -> Rung:
    """Ask for a rung of a ladder; the best one is selected until a user chooses another.

    Args:
        rungs: to choose from.
        best: the best rung on the dev pairs so far; None where they choose none.
        key: names the widget in the session and in the address.
        settings: for `st.pills`.
    """
    best = best or rungs[0]
    before = st.session_state.get(f"{key}-best", best)
    st.session_state[f"{key}-best"] = best
    if best != before and st.session_state.get(key, before) == before:
        st.session_state[key] = best
    else:
        settings["default"] = best
    return choose_one(
        st.pills, "Rung", rungs, key=key, format_func=RUNG_NAMES.__getitem__, **settings
    )


def choose_settings(pooling: PoolingName) -> LadderSettings:
    """Ask for rungs and seeds.

    Raises:
        SettingsError: no rung is chosen.
    """
    rungs = st.pills(
        "Rungs",
        RUNGS,
        default=list(RUNGS),
        selection_mode="multi",
        format_func=RUNG_NAMES.__getitem__,
        key="frozen-rungs",
        bind="query-params",
    )
    for rung in RUNGS:
        st.caption(f"**{RUNG_NAMES[rung]}**: {RUNG_MEANS[rung]}")
    seeds = choose_one(
        st.segmented_control,
        "Seeds",
        list(SEEDS),
        key="frozen-seeds",
        default="One",
        help="With three, each rung is trained three times, and its mean is shown.",
    )
    return LadderSettings(
        pooling=pooling, rungs=tuple(rung for rung in RUNGS if rung in rungs), seeds=SEEDS[seeds]
    )
