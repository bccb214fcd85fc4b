"""The layers as they are, and the ladder, live."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.best_layer import BEST_OF_ALL
from neuralviz.evaluation.ladder_results import PUBLISHED_OF, ladder_lines
from neuralviz.evaluation.results import EMPTY_CELL, in_digits
from neuralviz.headlines.ladder import describe_ladder, describe_layers
from neuralviz.plots.ladder import curves_figure, ladder_figure, ladder_height
from neuralviz.plots.pairs import layer_figure
from neuralviz.plots.standalone import About
from neuralviz.ui.figures import show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.page import plain, wide_columns
from neuralviz.ui.stage import hide_on_stage, slide
from neuralviz.words import many, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from neuralviz.evaluation.ladder_results import Curve, Ladder, LadderLine, LayerCosines
    from neuralviz.jobs import Run
    from neuralviz.training.similarity.settings import Rung

HEIGHT = 300  # px
N_BASELINES = 3  # lines of a new ladder
_READING = "Every text is read once, for its vectors at all layers."
_BEFORE = "Small models learn people's scores from all layers, rung by rung."


def ladder_provenance(model_id: str, settings: Mapping[str, str] | None = None) -> About:
    """The model and settings that downloaded figures name."""
    return About("Frozen features", {"model": model_id, **(settings or {})}, files=(model_id,))


def show_layers(model_id: str, layers: Mapping[str, LayerCosines], *, live: bool, key: str) -> None:
    """Draw how well the cosine at each layer follows human scores, for each pooling."""
    sentence, best = describe_layers(layers, is_whole=not live)
    values = {pooling: list(cosines.spearman) for pooling, cosines in layers.items()}
    figure = layer_figure(values, "Spearman", (best.pooling, best.layer) if best else None)
    figure.update_layout(legend={"xref": "container"}, yaxis={"title": "Spearman ↑"})
    if not layers:
        figure.update_layout(yaxis={"range": [0, 1]}, xaxis={"range": [0, 6], "tickvals": []})
    with slide(key):
        show_headline(sentence or _READING, key=key)
        show_figure(
            figure,
            key=f"{key}-figure",
            numbers=lambda: pd.DataFrame(
                {"pooling": pooling, "layer": layer, "Spearman": spearman, "Pearson": pearson}
                for pooling, cosines in layers.items()
                for layer, (spearman, pearson) in enumerate(
                    zip(cosines.spearman.tolist(), cosines.pearson.tolist(), strict=True)
                )
            ),
            name="correlation-by-layer",
            height=HEIGHT + 40,
            provenance=ladder_provenance(model_id),
        )
        if best is not None and not live:
            st.caption(BEST_OF_ALL)


def show_ladder(
    key: str, rungs: Sequence[Rung], model_id: str, ladder: Ladder, *, live: bool
) -> None:
    """Show the main finding, the ladder, and the rungs' learning curves.

    Args:
        key: names the figures on the page.
        rungs: all rungs of the run.
        model_id: the frozen model's.
        ladder: the finished part.
        live: whether the run still goes on.
    """
    lines, provenance = ladder_lines(ladder), ladder_provenance(model_id)
    with slide("frozen-ladder"):
        show_headline(describe_ladder(ladder, is_whole=not live) or _BEFORE, key="frozen-ladder")
        left_column, right_column = wide_columns([7, 5], "frozen-ladder")
        height = ladder_height(len(rungs) + N_BASELINES)
        with left_column:
            show_figure(
                ladder_figure(lines, rungs),
                key=f"{key}-ladder",
                numbers=lambda: ladder_numbers(lines),
                name="ladder",
                height=height,
                alt="The ladder: Spearman on the test pairs",
                provenance=provenance,
            )
        with right_column:
            show_figure(
                curves_figure(ladder.curves),
                key=f"{key}-curves",
                numbers=lambda: curve_numbers(ladder.curves),
                name="loss and dev Spearman by epoch",
                height=height,
                alt="How the rungs learn: Spearman on the dev pairs, and the loss, by epoch",
                provenance=provenance,
            )


def show_numbers(run: Run[Ladder]) -> None:
    """Show all numbers of the ladder as a table, and the numbers of pairs."""
    ladder = run.result
    test = ladder.test
    assert test is not None
    with hide_on_stage("frozen-numbers"):
        sizes = (
            f"{many(test.n_train, 'train pair')}, {test.n_dev:,} dev pairs, "
            f"{len(test.scores):,} test pairs."
        )
        st.caption(plain(" ".join([sizes, *test.notes])))
        with st.expander("All numbers"):
            lines = ladder_lines(ladder)
            st.dataframe(_format_table(lines), hide_index=True, key="frozen-table")
            if _has_published(lines):
                st.caption(
                    f"*Published*: {PUBLISHED_OF} on these test pairs, those of STS-B. All others "
                    "are measured here."
                )


def ladder_numbers(lines: Sequence[LadderLine]) -> pd.DataFrame:
    """A table with a row per baseline and rung."""
    nowhere = (np.nan, np.nan)
    return pd.DataFrame(
        {
            "name": [line.name for line in lines],
            "dev Spearman": [line.dev for line in lines],
            "Spearman": [line.spearman for line in lines],
            "low": [(line.interval or nowhere)[0] for line in lines],
            "high": [(line.interval or nowhere)[1] for line in lines],
            "Pearson": [line.pearson for line in lines],
            "seeds": [max(1, len(line.seeds)) for line in lines],
            "published Spearman": [line.published for line in lines],
        }
    )


def curve_numbers(curves: Mapping[tuple[Rung, int], Curve]) -> pd.DataFrame:
    """A table with a row per rung, seed and epoch."""
    return pd.DataFrame(
        {"rung": rung, "seed": seed, "epoch": epoch, "loss": loss, "dev Spearman": dev}
        for (rung, seed), curve in curves.items()
        for epoch, (loss, dev) in enumerate(zip(curve.losses, curve.dev, strict=True), 1)
    )


def _format_table(lines: Sequence[LadderLine]) -> pd.DataFrame:
    def format_range(bounds: tuple[float, float] | None) -> str:
        return f"{number(bounds[0], '.3f')} to {number(bounds[1], '.3f')}" if bounds else EMPTY_CELL

    table = pd.DataFrame(
        {
            "": [line.name for line in lines],
            "dev Spearman ↑": [in_digits(line.dev, 3) for line in lines],
            "Spearman ↑": [in_digits(line.spearman, 3) for line in lines],
            "95% interval": [format_range(line.interval) for line in lines],
            "seeds": [format_range(line.spread) for line in lines],
            "Pearson ↑": [in_digits(line.pearson, 3) for line in lines],
            "published Spearman": [
                EMPTY_CELL if line.published is None else in_digits(line.published, 3)
                for line in lines
            ],
        }
    )
    dropped_columns = [] if any(line.spread for line in lines) else ["seeds"]
    if not _has_published(lines):
        dropped_columns.append("published Spearman")
    return table.drop(columns=dropped_columns)


def _has_published(lines: Sequence[LadderLine]) -> bool:
    return any(line.published is not None for line in lines)
