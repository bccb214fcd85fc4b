"""Model, pooling, rungs and seeds of a ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.evaluation.ladder_settings import DEFAULT_SEED, LadderSettings
from neuralviz.layers.settings import POOLING_NAMES, POOLINGS
from neuralviz.training.similarity.names import RUNG_MEANS, RUNG_NAMES
from neuralviz.training.similarity.settings import RUNGS
from neuralviz.ui.choices import choose_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.layers.settings import PoolingName

SEEDS = {"One": (DEFAULT_SEED,), "Three": tuple(range(DEFAULT_SEED, DEFAULT_SEED + 3))}


def choose_pooling(known: Sequence[str]) -> PoolingName:
    """How a text's vector at a layer is made of those of its tokens.

    Args:
        known: poolings that the model has, the one to begin with first; none while nobody knows.
    """
    options = [name for name in POOLINGS if name in known] or list(POOLINGS)
    first = options.index(known[0]) if known and known[0] in options else 0
    chosen = st.selectbox(
        "Pooling",
        options,
        index=first,
        format_func=POOLING_NAMES.__getitem__,
        key=f"frozen-pooling-{options[first]}",  # a model of another kind begins anew
        bind="query-params",
        help="How the vectors of a text's tokens become one vector at each layer.",
    )
    return chosen or options[first]


def choose_settings(pooling: PoolingName) -> LadderSettings:
    """Rungs and seeds.

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
        pooling=pooling, rungs=tuple(one for one in RUNGS if one in rungs), seeds=SEEDS[seeds]
    )
