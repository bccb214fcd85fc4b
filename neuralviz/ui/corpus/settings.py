"""The widgets for the maps: methods and projections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders import FOR_CORPORA
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.mapping import MapChoice
from neuralviz.maps.settings import (
    METRICS,
    MOST_NEIGHBORS,
    REDUCERS,
    SEED,
    SEEDS,
    ProjectionSettings,
)
from neuralviz.store.importing import FILE
from neuralviz.ui.choices import choose_one
from neuralviz.ui.method_choice import choose_method
from neuralviz.ui.page import show_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.embedders import EmbedderSpec

COLOUR_WIDTH = 150  # px
PLACES = (("a", "Map"), ("b", "Compare with"))  # keys of the widgets, and labels
FIRST = ("mean", "neural")  # methods at the start


@dataclass(frozen=True)
class Place:
    """A place for a map on the page.

    Attributes:
        key: begins the keys of its widgets.
        choice: the map that is chosen for it.
        row: of its widgets.
    """

    key: str
    choice: MapChoice
    row: DeltaGenerator


def choose_maps(imported: Mapping[str, EmbedderSpec]) -> tuple[Place, ...] | None:
    """Widgets for one map or two; None where a setting is not valid, which the page shows.

    Args:
        imported: vectors that can be chosen beside the methods, by label; those that came last are
            the first map at the start.
    """
    chosen: list[Place] = []
    sound = True
    methods = [*list(imported)[-1:], *FIRST]
    columns = zip(st.columns(len(PLACES)), PLACES, methods, strict=False)
    for column, (key, label), first in columns:
        _renew(f"map-{key}", first, imported)
        with column:
            row = st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall")
            try:
                with row:
                    spec = choose_method(
                        f"map-{key}",
                        label,
                        first,
                        FOR_CORPORA,
                        optional=key != PLACES[0][0],
                        extra_methods=imported,
                    )
                if spec is not None:
                    with row:
                        chosen.append(Place(key, MapChoice(spec, _choose_settings(key)), row))
            except NeuralvizError as error:
                show_error(error)
                sound = False
    if not sound:
        return None
    if len({place.choice for place in chosen}) < len(chosen):
        st.caption("Both maps are the same. Change the method or settings of one.")
        return tuple(chosen[:1])
    return tuple(chosen)


def _renew(key: str, first: str, imported: Mapping[str, EmbedderSpec]) -> None:
    """Choose the first method after an import, and in place of another corpus's file."""
    current = st.session_state.get(key, "")
    is_gone = str(current).startswith(FILE) and current not in imported
    if key in st.session_state and (is_gone or st.session_state.pop(f"{key}-renewed", False)):
        st.session_state[key] = first


def choose_colour(place: Place, options: Mapping[str, str]) -> str:
    """The colours of a map's points; at first, those of the first label, on both maps.

    Args:
        place: of the map.
        options: names of the ways to colour, by key.
    """
    key = f"colour-{place.key}"
    first = next((option for option in options if option.startswith("label:")), next(iter(options)))
    if st.session_state.get(key, first) not in options:
        del st.session_state[key]
    return place.row.selectbox(
        "Colour by",
        list(options),
        index=list(options).index(first),
        format_func=lambda option: options[option],
        key=key,
        bind="query-params",
        width=COLOUR_WIDTH,
    )


def _find_reducer(key: str) -> str:
    """The projection that a box shows; before it is there, the address has its title."""
    title = st.query_params.get(key)
    linked = next((name for name in REDUCERS if REDUCERS[name] == title), "umap")
    return st.session_state.get(key) or linked


def _choose_settings(key: str) -> ProjectionSettings:
    reducer_key = f"map-{key}-reducer"
    with st.popover(
        REDUCERS[_find_reducer(reducer_key)],
        icon=":material/scatter_plot:",
        help="Projection settings",
        key=f"map-{key}-projection",
    ):
        reducer = st.selectbox(
            "Projection",
            list(REDUCERS),
            format_func=lambda name: REDUCERS[name],
            key=reducer_key,
            bind="query-params",
            help=(
                "UMAP keeps neighbours together. t-SNE does so more strongly, but distorts "
                "the overall layout. PCA is a linear projection."
            ),
        )
        values: dict[str, object] = {"reducer": reducer}
        if reducer != "tsne":
            values["dimensions"] = choose_one(
                st.segmented_control, "Dimensions", [2, 3], default=2, key=f"map-{key}-dimensions"
            )
        if reducer == "umap":
            values["n_neighbors"] = st.number_input(
                "Number of neighbours", 2, MOST_NEIGHBORS, 15, key=f"map-{key}-neighbors",
                bind="query-params",
                help="Low values show local detail, high values the overall structure.",
            )  # fmt: skip
            values["min_dist"] = st.number_input(
                "Minimum distance", 0.0, 0.99, 0.1, 0.05, key=f"map-{key}-distance",
                bind="query-params", help="How close together points may be placed.",
            )  # fmt: skip
        if reducer == "tsne":
            values["perplexity"] = st.number_input(
                "Perplexity", 1.0, 100.0, 30.0, 5.0, key=f"map-{key}-perplexity",
                bind="query-params",
                help="Roughly the number of neighbours that count for each text.",
            )  # fmt: skip
        values["metric"] = st.selectbox(
            "Distance", METRICS, key=f"map-{key}-metric", bind="query-params"
        )
        if reducer != "pca":
            values["seed"] = st.number_input(
                "Seed", 0, SEEDS - 1, SEED, key=f"map-{key}-seed", bind="query-params",
                help="Random seed. The same seed gives the same map.",
            )  # fmt: skip
    return ProjectionSettings.from_dict(values)
