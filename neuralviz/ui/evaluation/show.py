"""What the evaluation page shows: a table that fills, and figures of what is in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.evaluation.data import ParaphraseData, ScoredData
from neuralviz.evaluation.lab import Lab, Progress
from neuralviz.evaluation.paraphrases import ratio
from neuralviz.evaluation.results import NAMES, NONE, Results
from neuralviz.plots.evaluation import (
    error_figure,
    interval_figure,
    overlap_figure,
    product_histogram,
    quality_figure,
    rows_height,
)
from neuralviz.plots.pairs import scatter_figure
from neuralviz.plots.report import OVERLAP_OF, report_html
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.model_choice import LOADERS
from neuralviz.ui.page import plain
from neuralviz.ui.work import show_work, work_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuralviz.embedders.base import ShouldStop
    from neuralviz.evaluation.measures import Measured
    from neuralviz.ui.evaluation.choose import Chosen

WORST = 20
VIEWS = ("Correlations", "Errors", "Pair by pair", "Alike and different", "Errors in common",
         "Controlled paraphrases")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Filling:
    """A table that fills.

    Attributes:
        results: so far.
        doing: what is going on.
    """

    results: Results
    doing: Progress | None = None


def show(chosen: Chosen) -> None:
    """Measure, and show what is there; the last results stay while others are not asked for."""
    work = work_on("evaluation", chosen.identity, lambda stop: _fill(chosen, stop))
    show_work("evaluation", chosen.identity, work, _progress, _show)


def _fill(chosen: Chosen, should_stop: ShouldStop) -> Iterator[Filling]:
    filling = Filling(Results(chosen.rows, (chosen.data,)))
    yield filling
    events = Lab().run(chosen.rows, (chosen.data,), loaders=LOADERS, should_stop=should_stop)
    for event in events:
        if isinstance(event, Progress):
            filling = replace(filling, doing=event)
        else:
            filling = Filling(filling.results.having(event), filling.doing)
        yield filling


def _progress(filling: Filling) -> tuple[int, int, str]:
    """Texts embedded, of all methods together."""
    results, doing = filling.results, filling.doing
    n_texts = len(results.data[0].texts)
    total = n_texts * len(results.rows)
    done = n_texts * len(results.cells)
    what = "texts by all methods"
    if doing is not None and doing.row is not None and (0, doing.row) not in results.cells:
        done += round(n_texts * doing.done / max(doing.total, 1))
        what += f"; {doing.doing} by {results.rows[doing.row].label}"
    elif doing is not None and doing.row is None and not results.compared:
        what += "; looking for errors in common"
    return done, total, what


def _show(filling: Filling, live: bool) -> None:
    results = filling.results
    _table(results)
    if not results.cells:
        return
    if live:
        st.caption("Figures come when all methods are measured.")
        return
    views = [view for view in VIEWS if _has(results, view)]
    if not views:
        return
    view = st.segmented_control(
        "Look at",
        views,
        default=views[0],
        required=True,
        key="view",
        bind="query-params",
        label_visibility="collapsed",
    )
    _DRAW[view if view in views else views[0]](results)
    _take_away(results)


def _has(results: Results, view: str) -> bool:
    known = [results.measured(0, at) for at in range(len(results.rows))]
    found = [one for one in known if one is not None]
    return {
        "Correlations": any(one.correlations is not None for one in found),
        "Errors": any(one.pairs or one.triplets for one in found),
        "Pair by pair": isinstance(results.data[0], ScoredData) and bool(found),
        "Alike and different": any(len(one.same) and len(one.diff) for one in found),
        "Errors in common": bool(results.compared),
        "Controlled paraphrases": any(one.paraphrases for one in found),
    }[view]


def _table(results: Results) -> None:
    heads, lines = results.table(0)
    frame = pd.DataFrame(lines, columns=["method", *heads[1:]])
    pinned = {"method": st.column_config.TextColumn(pinned=True)}
    st.dataframe(frame, hide_index=True, key="evaluation-table", column_config=pinned)
    for at, row in enumerate(results.rows):
        cell = results.cells.get((0, at))
        if cell is None:
            continue
        if cell.error:
            st.error(plain(f"{row.label}: {cell.error}"))
        if cell.measured is not None:
            for name, why in cell.measured.failed.items():
                st.warning(plain(f"{row.label}, {name}: {why}"))
        if cell.n_rose:
            st.warning(
                plain(f"{row.label}: the loss of {cell.n_rose:,} texts rose; the learning rate is "
                      "too high.")
            )  # fmt: skip
    known = [(row, results.published(0, at)) for at, row in enumerate(results.rows)]
    theirs = [
        {
            "method": row.label,
            "published for": one.model,
            "Spearman": one.spearman,
            "tau-c": one.kendall_c,
            "tau-b": one.kendall_b,
            "pairs broken": one.pairs,
            "triplets broken": one.triplets,
            "paper": one.source,
        }
        for row, one in known
        if one is not None
    ]
    if theirs:
        st.caption("As published for the same data, with the model that was measured there:")
        st.dataframe(pd.DataFrame(theirs), hide_index=True, key="evaluation-published")
    st.caption(
        "Products that differ by less than 1e-7 are ties, and a tie counts as broken; *without "
        "ties* leaves them out. Intervals hold 95 % of bootstrap samples."
    )


def _measured(results: Results) -> list[tuple[int, str, Measured]]:
    """Row, label and measures of what is finished."""
    found = ((at, row.label, results.measured(0, at)) for at, row in enumerate(results.rows))
    return [(at, label, one) for at, label, one in found if one is not None]


def _correlations(results: Results) -> None:
    names = {NAMES[name]: name for name in COEFFICIENTS}
    chosen = st.segmented_control(
        "Coefficient", list(names), default="Spearman", required=True, key="coefficient",
        bind="query-params",
    )  # fmt: skip
    name = names[chosen or "Spearman"]
    known = [(at, label, one) for at, label, one in _measured(results) if one.correlations]
    values = [getattr(one.correlations, name) for _, _, one in known]
    bounds = [getattr(one.intervals, name) if one.intervals else None for _, _, one in known]
    theirs = [results.published(0, at) for at, _, _ in known]
    figure = interval_figure(
        [label for _, label, _ in known],
        values,
        bounds,
        "Agreement of products with scores",
        chosen or "Spearman",
        [
            None if one is None or getattr(one, name, None) is None
            else (getattr(one, name), one.model)
            for one in theirs
        ],
    )  # fmt: skip
    show_figure(
        figure,
        key="evaluation-correlations",
        numbers=pd.DataFrame(
            {
                "method": [label for _, label, _ in known],
                chosen or "Spearman": values,
                "low": [b[0] if b else np.nan for b in bounds],
                "high": [b[1] if b else np.nan for b in bounds],
            }
        ),
        name="correlations",
        height=rows_height(len(known)),
    )


def _errors(results: Results) -> None:
    for name in ("pairs", "triplets"):
        counted = [(label, getattr(one, name)) for _, label, one in _measured(results)]
        known = [(label, one) for label, one in counted if one is not None]
        if not known:
            continue
        errors = [one.error for _, one in known]
        strict = [one.wrong_strict / one.total for _, one in known]
        figure = error_figure(
            [label for label, _ in known], errors, strict,
            f"{name.capitalize()} broken, of {known[0][1].total:,}",
        )  # fmt: skip
        show_figure(
            figure,
            key=f"evaluation-{name}",
            numbers=pd.DataFrame(
                {
                    "method": [label for label, _ in known],
                    "wrong": [one.wrong for _, one in known],
                    "wrong_strict": [one.wrong_strict for _, one in known],
                    "total": [one.total for _, one in known],
                    "same": [one.same for _, one in known],
                    "diff": [one.diff for _, one in known],
                }
            ),
            name=f"{name}-broken",
            height=rows_height(len(known)),
        )


def _pick(results: Results, key: str) -> tuple[str, Measured]:
    known = _measured(results)
    labels = [label for _, label, _ in known]
    label = st.selectbox("Method", labels, key=key) or labels[0]
    return label, next(one for _, name, one in known if name == label)


def _pair_by_pair(results: Results) -> None:
    data = results.data[0]
    assert isinstance(data, ScoredData)
    label, one = _pick(results, "evaluation-pairs-of")
    sentences = [
        (data.texts[a], data.texts[b]) for a, b in zip(data.first, data.second, strict=True)
    ]
    spearman = one.correlations.spearman if one.correlations else np.nan
    told = f"Spearman {spearman:.3f}" if np.isfinite(spearman) else "no correlation"
    table = pd.DataFrame(
        {
            "text1": [first for first, _ in sentences],
            "text2": [second for _, second in sentences],
            "score": data.scores,
            "product": one.products,
        }
    )
    show_figure(
        scatter_figure(
            one.products, data.scores, sentences, None, f"Score and product, {label}: {told}"
        ),
        key="evaluation-scatter",
        numbers=table,
        name="pairs",
        height=520,
    )
    ranks = table[["score", "product"]].rank(pct=True)
    apart = (ranks["product"] - ranks["score"]).abs()
    worst = table.loc[apart.sort_values(ascending=False).index[:WORST]].copy()
    for column in ("text1", "text2"):
        worst[column] = [shorten(text, 300) for text in worst[column]]
    st.markdown("**The pairs that people and vectors disagree on most**")
    st.dataframe(
        worst,
        hide_index=True,
        key="evaluation-worst",
        column_config={
            "score": st.column_config.NumberColumn(format="%.3g", width="small"),
            "product": st.column_config.NumberColumn(format="%.3f", width="small"),
        },
    )


def _alike_and_different(results: Results) -> None:
    known = [(at, label, one) for at, label, one in _measured(results) if len(one.same)]
    for column, (at, label, one) in zip(
        [c for _ in range(0, len(known), 2) for c in st.columns(2)], known, strict=False
    ):
        with column:
            show_figure(
                product_histogram(one.same, one.diff, f"Products by {label}"),
                key=f"evaluation-histogram-{at}",
                numbers=pd.DataFrame(
                    {
                        "kind": ["alike"] * len(one.same) + ["different"] * len(one.diff),
                        "product": np.concatenate([one.same, one.diff]),
                    }
                ),
                name="products",
                height=360,
            )
    st.caption("The less the two overlap, the better products tell alike from different.")


def _in_common(results: Results) -> None:
    compared = results.compared[0]
    labels = [results.rows[at].label for at in compared.rows]
    if compared.error:
        st.warning(plain(compared.error))
    for name, one in compared.overlaps.items():
        frame = pd.DataFrame(one.share, columns=labels)
        frame.insert(0, "method", labels)
        with swiped(f"evaluation-overlap-{name}-wide", 320 + 60 * len(labels)):
            show_figure(
                overlap_figure(
                    labels, one.share, one.shared, f"Broken {OVERLAP_OF[name]} in common"
                ),
                key=f"evaluation-overlap-{name}",
                numbers=frame,
                name=f"{name}-in-common",
                height=220 + 64 * len(labels),
            )
    st.caption(
        "The share of the broken ones that two methods have in common, of the fewer of the two "
        "(Eq. 3). Little in common: the methods could help each other. Empty: a method breaks none."
    )


def _paraphrases(results: Results) -> None:
    known = [(label, one) for _, label, one in _measured(results) if one.paraphrases]
    first = known[0]
    for number, (label, one) in enumerate(known):
        maps = one.paraphrases
        names = [m.quality for m in maps]
        fixed = [(m.fixed1, m.fixed2) for m in maps]
        figure = quality_figure(names, [m.kendall_c for m in maps], fixed, f"tau-c by {label}")
        with swiped(f"evaluation-paraphrases-{number}-wide", 320 * len(maps)):
            show_figure(
                figure,
                key=f"evaluation-paraphrases-{number}",
                numbers=pd.DataFrame(
                    {"quality": m.quality, "fixed1": a, "fixed2": b, "tau-c": m.kendall_c[i, j],
                     "n": m.n[i, j]}
                    for m in maps for i, a in enumerate(m.fixed1) for j, b in enumerate(m.fixed2)
                ),
                name="paraphrases",
                height=420,
            )  # fmt: skip
        if number:
            ratios = [ratio(a, b) for a, b in zip(first[1].paraphrases, maps, strict=True)]
            title = f"tau-c by {first[0]}, over that by {label}"
            with swiped(f"evaluation-ratio-{number}-wide", 320 * len(maps)):
                show_figure(
                    quality_figure(names, ratios, fixed, title, is_ratio=True),
                    key=f"evaluation-ratio-{number}",
                    numbers=None,
                    name="ratio",
                    height=420,
                )
    if isinstance(results.data[0], ParaphraseData):
        st.caption(
            "One quality of similarity varies, the two others are fixed at the values shown."
        )


def _take_away(results: Results) -> None:
    with st.popover(
        "Download the results", icon=":material/download:", type="tertiary", key="evaluation-take"
    ):
        st.download_button(
            "Report (HTML)", lambda: report_html(results), "report.html", "text/html",
            key="evaluation-report", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Results (CSV)", results.csv, "results.csv", "text/csv",
            key="evaluation-csv", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Results (JSON)",
            lambda: json.dumps(results.as_record(), ensure_ascii=False, indent=2, allow_nan=False),
            "results.json", "application/json",
            key="evaluation-json", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.caption(f"The report has every setting in it. {NONE} stands for what is undefined.")


_DRAW = {
    "Correlations": _correlations,
    "Errors": _errors,
    "Pair by pair": _pair_by_pair,
    "Alike and different": _alike_and_different,
    "Errors in common": _in_common,
    "Controlled paraphrases": _paraphrases,
}
