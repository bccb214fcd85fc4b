"""Further figures of the view of one text: cosine maps, layer weights, other settings."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines.layers import describe_layer_weights, describe_map, describe_settings
from neuralviz.layers.geometry import cosine_maps, mean_map, offset_diagonals
from neuralviz.plots import layers as plots
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import allow_swiping, show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain, wide_columns
from neuralviz.ui.stage import slide
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.jobs.layers import FollowedText
    from neuralviz.layers.following import Sensitivity, TokenWeights
    from neuralviz.layers.geometry import TokenStates
    from neuralviz.plots.standalone import About

MEAN = -1


def show_more(key: str, followed: FollowedText, provenance: About) -> None:
    """Draw the figures, each with its main sentence.

    Args:
        key: begins the keys of their widgets.
        followed: what they show.
        provenance: for what is downloaded.
    """
    _show_maps(key, followed.states, provenance)
    _show_layer_weights(key, followed.states, followed.weights, provenance)
    _show_sensitivity(key, followed.sensitivity, provenance)


def _show_maps(key: str, states: TokenStates, provenance: About) -> None:
    """The cosine map of a token or of their mean, and its offset diagonals."""
    st.subheader("How the vectors change direction", anchor=False)
    n = states.n_counted
    token = st.selectbox(
        "Token",
        [MEAN, *range(len(states.tokens))],
        format_func=lambda i: (
            f"Mean over {many(n, 'token')}" if i == MEAN
            else f"{i}. {shorten(states.tokens[i], 40)}"
        ),
        key=f"{key}-token-{zlib.crc32(' '.join(states.tokens).encode())}",  # of this text
        width=360,
        help="The mean includes the text's tokens and [CLS], as in SBERT-WK.",
    )  # fmt: skip
    if token == MEAN:
        cosines, source = mean_map(states), "token mean"
        subject = "the average word"
    else:
        cosines = cosine_maps(states.vectors[:, token : token + 1])[0]
        source = f"“{shorten(states.tokens[token], 20)}”"
        subject = source
    with slide(f"{key}-maps"):
        show_headline(plain(describe_map(cosines, subject)), key=f"{key}-maps")
        _show_map_and_diagonals(key, cosines, source, provenance)


def _show_map_and_diagonals(key: str, cosines: np.ndarray, source: str, provenance: About) -> None:
    map_column, diagonals_column = wide_columns(2, f"{key}-maps")
    n_layers = len(cosines)
    with map_column:
        show_figure(
            plots.cosine_map_figure(cosines, source),
            key=f"{key}-map",
            numbers=pd.DataFrame(
                {
                    "layer": np.repeat(np.arange(n_layers), n_layers),
                    "other layer": np.tile(np.arange(n_layers), n_layers),
                    "cosine": cosines.ravel(),
                }
            ),
            name="cosine-similarity-between-layers",
            height=440,
            provenance=provenance,
        )
        st.caption(
            "Each cell is the cosine similarity between a token's vectors at two layers. "
            "In bright squares along the diagonal, the vectors hardly change from layer to layer."
        )
    with diagonals_column:
        diagonals = offset_diagonals(cosines)
        show_figure(
            plots.diagonals_figure(diagonals, source),
            key=f"{key}-diagonals",
            numbers=pd.DataFrame(
                [
                    (offset, layer, layer + offset, value)
                    for offset, values in diagonals.items()
                    for layer, value in enumerate(values)
                ],
                columns=["offset", "layer", "other layer", "cosine"],
            ),
            name="cosine-similarity-by-layer-distance",
            height=440,
            provenance=provenance,
        )
        st.caption(
            "Each line is a diagonal of the heatmap. Where the top line drops, the vectors "
            "change direction sharply. A token's importance is the variance of its top "
            "line from the chosen *first layer* on."
        )


def _show_layer_weights(
    key: str, states: TokenStates, weights: TokenWeights, provenance: About
) -> None:
    """Alignment, novelty and both together, token by token."""
    st.subheader("Which layers shape a word's vector", anchor=False)
    kinds = {
        "Alignment": weights.alignment,
        "Novelty": weights.novelty,
        "Combined": weights.combined,
    }
    n_layers = len(weights.layers)
    with slide(f"{key}-weights"):
        show_headline(describe_layer_weights(weights), key=f"{key}-weights")
        with allow_swiping(f"{key}-scrolled", 720):
            show_figure(
                plots.weights_figure(kinds, weights.layers, states.counted),
                key=f"{key}-weights",
                numbers=lambda: pd.DataFrame(
                    {
                        "position": np.repeat(np.arange(states.n_counted), n_layers),
                        "token": np.repeat(states.counted, n_layers),
                        "layer": np.tile(weights.layers, states.n_counted),
                        **{name.lower(): values.ravel() for name, values in kinds.items()},
                    }
                ),
                name="layer-weights",
                height=plots.weights_height(states.n_counted),
                provenance=provenance,
            )
    if states.n_counted > plots.MAX_TOKENS:
        st.caption(
            f"Showing the first {plots.MAX_TOKENS} of {states.n_counted:,} tokens. The "
            "download contains all of them."
        )
    st.caption(
        "Each row sums to 1 in each panel. **Alignment** is high where a layer points away "
        "from its neighbouring layers, **novelty** where it contains something they do not. "
        f"**Combined** is {weights.settings.omega:.0%} alignment and "
        f"{1 - weights.settings.omega:.0%} novelty."
    )


def _show_sensitivity(key: str, result: Sensitivity, provenance: About) -> None:
    """Draw how similar the sentence vector stays at other settings."""
    st.subheader("Effect of the settings", anchor=False)
    with slide(f"{key}-settings"):
        show_headline(describe_settings(result), key=f"{key}-settings")
        window_column, omega_column = wide_columns(2, f"{key}-settings")
        with window_column:
            _show_by_window(key, result, provenance)
        with omega_column:
            _show_by_omega(key, result, provenance)


def _show_by_window(key: str, result: Sensitivity, provenance: About) -> None:
    chosen = (result.settings.window, result.settings.layer_start)
    show_figure(
        plots.settings_figure(result.by_window, result.windows, result.layer_starts, chosen),
        key=f"{key}-by-window",
        numbers=pd.DataFrame(
            {
                "layer window": np.repeat(result.windows, len(result.layer_starts)),
                "first layer": np.tile(result.layer_starts, len(result.windows)),
                "cosine": result.by_window.ravel(),
            }
        ),
        name="sentence-vector-by-layer-window-and-first-layer",
        height=400,
        provenance=provenance,
    )
    st.caption(
        "Cosine similarity between the embedding with your settings (framed) and the "
        "embeddings with other settings. Values close to 1 mean that the settings hardly "
        "matter for this text."
    )


def _show_by_omega(key: str, result: Sensitivity, provenance: About) -> None:
    show_figure(
        plots.omega_figure(result.omegas, result.by_omega, result.settings.omega),
        key=f"{key}-by-omega",
        numbers=pd.DataFrame({"omega": result.omegas, "cosine": result.by_omega}),
        name="sentence-vector-by-omega",
        height=400,
        provenance=provenance,
    )
    st.caption(
        "Cosine similarity between the embedding with your omega (dotted line) and the "
        "embeddings with other values of omega."
    )
