"""A rung of the ladder looked at closer: its layers, its predictions and their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from neuralviz.evaluation.ladder_results import best_result, best_rung, worst_predictions
from neuralviz.headlines.ladder import (
    describe_errors,
    describe_layer_shares,
    describe_worst,
)
from neuralviz.plots.ladder import (
    autoencoder_figure,
    layer_shares_figure,
    predictions_figure,
    qq_figure,
    residual_figure,
)
from neuralviz.plots.theme import shorten
from neuralviz.training.similarity.settings import RUNG_NAMES
from neuralviz.ui.figures import download_table, show_figure
from neuralviz.ui.frozen_features.choose import choose_rung
from neuralviz.ui.frozen_features.show import HEIGHT, ladder_provenance
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain, wide_columns
from neuralviz.ui.stage import hide_on_stage, slide
from neuralviz.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from neuralviz.evaluation.ladder_results import Ladder, Prediction, RungResult
    from neuralviz.jobs import Run
    from neuralviz.plots.standalone import About

VISIBLE_PREDICTIONS = 3  # the others are in the expander
QUOTE_LENGTH = 90  # characters of a text in a sentence
CELL_LENGTH = 300  # characters of a text in the table


def show_rung(run: Run[Ladder]) -> None:
    """Show what one rung has learnt, and its errors."""
    ladder = run.result
    rungs = list(dict.fromkeys(rung for rung, _ in ladder.results))
    st.subheader("A rung looked at closer", anchor=False)
    with hide_on_stage("frozen-rung"):
        rung = choose_rung(rungs, best_rung(ladder), "frozen-rung", label_visibility="collapsed")
    result = best_result(ladder, rung)
    settings = {"rung": RUNG_NAMES[result.rung], "seed": str(result.seed)}
    provenance = ladder_provenance(run.task.model.id, settings)
    _show_layers(ladder, result, provenance)
    _show_predictions(ladder, result, provenance)
    _show_errors(ladder, result, provenance)


def quote(text: str) -> str:
    """A user's text in a sentence of markdown."""
    return f"“{plain(shorten(text, QUOTE_LENGTH))}”"


def _show_layers(ladder: Ladder, result: RungResult, provenance: About) -> None:
    """Draw each layer's share of the rung's score, and the autoencoders' loss at each layer."""
    layer_shares = result.trained.layer_shares
    rebuilt = next(
        (
            (ladder.curves[place].rebuilt if place in ladder.curves else (), losses)
            for place, rung_result in ladder.results.items()
            if (losses := rung_result.trained.losses) is not None
        ),
        None,
    )
    with slide("frozen-heard"):
        show_headline(describe_layer_shares(result.rung, layer_shares), key="frozen-heard")
        left_column, right_column = (
            wide_columns(2, "frozen-heard") if rebuilt else (st.container(), None)
        )
        with left_column:
            show_figure(
                layer_shares_figure(result.rung, layer_shares),
                key="frozen-heard",
                numbers=lambda: pd.DataFrame(
                    {"layer": range(len(layer_shares)), "share": layer_shares}
                ),
                name="layers heard",
                height=HEIGHT,
                provenance=provenance,
            )
        if right_column is not None and rebuilt is not None:
            with right_column:
                _show_autoencoders(*rebuilt, provenance)
    sentence = (
        "How far the score moves while a layer's cosine moves as it does among the dev pairs."
    )
    st.caption(sentence)


def _show_autoencoders(epochs: Sequence[np.ndarray], losses: np.ndarray, provenance: About) -> None:
    show_figure(
        autoencoder_figure(epochs, losses),
        key="frozen-rebuilt",
        numbers=lambda: pd.DataFrame({"layer": range(len(losses)), "lost": losses}),
        name="autoencoder loss by layer",
        height=HEIGHT,
        provenance=provenance,
    )


def _show_predictions(ladder: Ladder, result: RungResult, provenance: About) -> None:
    """Draw predictions against human scores, and list the worst."""
    test = ladder.test
    assert test is not None
    pairs = worst_predictions(test, result.predicted, len(test.scores))
    with slide("frozen-predictions"):
        show_headline(describe_worst(result.rung, pairs[0], quote), key="frozen-predictions")
        left_column, right_column = wide_columns(2, "frozen-predictions")
        with left_column:
            show_figure(
                predictions_figure(result.rung, pairs),
                key="frozen-predictions",
                numbers=lambda: _tabulate_pairs(pairs),
                name="predictions",
                height=HEIGHT + 100,
                provenance=provenance,
            )
        with right_column:
            _show_worst(pairs, provenance)


def _show_worst(pairs: Sequence[Prediction], provenance: About) -> None:
    st.markdown("**The worst predictions**")
    table = _tabulate_pairs(pairs[:20])
    for name in ("text 1", "text 2"):
        table[name] = [shorten(text, CELL_LENGTH) for text in table[name]]
    table["human score"] = [f"{value:.3g}" for value in table["human score"]]
    table["prediction"] = [number(value, ".2f") for value in table["prediction"]]
    st.table(table[:VISIBLE_PREDICTIONS].map(plain), hide_index=True)
    if len(table) > VISIBLE_PREDICTIONS:
        with hide_on_stage("frozen-worst"), st.expander(f"The worst {len(table)}"):
            st.dataframe(table, hide_index=True, key="frozen-worst-all")
            download_table(
                "Predictions",
                lambda: _tabulate_pairs(pairs),
                "predictions",
                key="frozen-all",
                provenance=provenance,
            )


def _show_errors(ladder: Ladder, result: RungResult, provenance: About) -> None:
    """Draw the errors of the predictions as a histogram and a Q–Q plot."""
    test = ladder.test
    assert test is not None
    errors = result.predicted - test.scores
    with slide("frozen-errors"):
        sentence = describe_errors(result.rung, result.predicted, test.scores)
        show_headline(sentence, key="frozen-errors")
        left_column, right_column = wide_columns(2, "frozen-errors")
        for place, name, make in (
            (left_column, "errors", residual_figure),
            (right_column, "q-q", qq_figure),
        ):
            with place:
                show_figure(
                    make(result.rung, errors),
                    key=f"frozen-{name}",
                    numbers=lambda: pd.DataFrame({"error": errors}),
                    name=name,
                    height=HEIGHT,
                    provenance=provenance,
                )
    st.caption(
        "If the errors were normally distributed, the dots of the Q–Q plot would lie on its line."
    )


def _tabulate_pairs(pairs: Sequence[Prediction]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text 1": [pair.sentences[0] for pair in pairs],
            "text 2": [pair.sentences[1] for pair in pairs],
            "human score": [pair.score for pair in pairs],
            "prediction": [pair.predicted for pair in pairs],
        }
    )
