"""What the evaluation page shows: a table that fills, and figures of what is in it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from neuralviz.evaluation.correlation import COEFFICIENTS
from neuralviz.evaluation.data import ScoredData
from neuralviz.evaluation.events import Progress
from neuralviz.evaluation.in_words import NAMES, NONE
from neuralviz.evaluation.lab import evaluate
from neuralviz.evaluation.measures import WORST
from neuralviz.evaluation.results import Results
from neuralviz.plots.evaluation import rows_height
from neuralviz.plots.pairs import scatter_figure
from neuralviz.plots.report import report_html
from neuralviz.plots.results import (
    broken_figure,
    common_figures,
    correlation_figure,
    histograms,
    neighbours_figure,
    quality_figures,
)
from neuralviz.plots.theme import escape, shorten
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.model_choice import LOADERS
from neuralviz.ui.page import plain
from neuralviz.ui.work import Work, show_work, work_on

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.paraphrases import QualityMap
    from neuralviz.ui.evaluation.choose import Chosen

ROW_HEIGHT = 84  # px, for four lines: words are broken into lines above 64
SHORT = 25  # characters: a column of texts that are no longer is as wide as they are
MANY = 6  # methods: more are looked at one by one
WIDE = 9  # columns: more are not seen at once
DETAILS = ("without ties", "error", "same", "diff", "Pearson", "tau-b", "alignment", "uniformity")
VIEWS = (
    "Correlations",
    "Errors",
    "Nearest neighbours",
    "Pair by pair",
    "Alike and different",
    "Errors in common",
    "Controlled paraphrases",
)


@dataclass(frozen=True, eq=False)
class Filling:
    """A table that fills.

    Attributes:
        results: so far.
        doing: what is going on.
        embedded: share of the texts, 0 … 1, by row.
    """

    results: Results
    doing: Progress | None = None
    embedded: Mapping[int, float] = field(default_factory=dict)


def show(chosen: Chosen) -> None:
    """Measure, and show what is there."""
    work = work_on("evaluation", chosen.identity, lambda stop: _fill(chosen, stop))
    show_work("evaluation", chosen.identity, work, _progress, _show)


def offer_to_stop() -> None:
    """A way to end what was asked for with other settings and is still going on."""
    works: dict[Hashable, Work[Filling]] = st.session_state.get("evaluation-works", {})
    going_on = [work for work in works.values() if not work.job.is_over]
    if not going_on:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("What was asked for before is still being measured.")
        if st.button("Stop", icon=":material/stop:", key="evaluation-stop-before"):
            for work in going_on:
                work.job.stop()


def forget_failed(chosen: Chosen) -> None:
    """Have what failed or was stopped done again; what is embedded is found."""
    works: dict[Hashable, Work[Filling]] = st.session_state.get("evaluation-works", {})
    work = works.get(chosen.identity)
    if work is None or not work.job.is_over:
        return
    cells = () if work.latest is None else work.latest.results.cells.values()
    if work.job.status != "done" or any(cell.measured is None for cell in cells):
        del works[chosen.identity]


def _fill(chosen: Chosen, should_stop: ShouldStop) -> Iterator[Filling]:
    filling = Filling(Results(chosen.plan))
    yield filling
    for event in evaluate(chosen.plan, loaders=LOADERS, should_stop=should_stop):
        if isinstance(event, Progress):
            filling = replace(filling, doing=event, embedded={**filling.embedded, **_shares(event)})
        else:
            filling = replace(filling, results=filling.results.having(event))
        yield filling


def _shares(event: Progress) -> dict[int, float]:
    """How much is embedded, by row, as far as an event says it."""
    if event.row is None or not event.total:
        return {}
    return dict.fromkeys(event.at_once or (event.row,), event.done / event.total)


def _progress(filling: Filling) -> tuple[int, int, str]:
    """Texts embedded, of all methods together."""
    results, doing = filling.results, filling.doing
    n_texts = len(results.data[0].texts)
    failed = {row for (_, row), cell in results.cells.items() if cell.measured is None}
    total = n_texts * (len(results.rows) - len(failed))
    shares = {**filling.embedded, **{row: 1.0 for _, row in results.cells}}
    done = round(n_texts * sum(share for row, share in shares.items() if row not in failed))
    what = "texts by the methods that did not fail" if failed else "texts by all methods"
    if doing is not None and doing.row is not None and (0, doing.row) not in results.cells:
        what += f"; {doing.doing} by {results.rows[doing.row].label}"
        if doing.at_once:
            what += f" and {len(doing.at_once) - 1} more at once"
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
    if not results.finished(0):
        return
    _take_away(results)
    views = [view for view in VIEWS if _has(results, view)]
    if not views:
        return
    view = st.segmented_control(
        "Look at",
        views,
        default=views[0],
        required=True,
        key=f"view-{results.data[0].kind}",  # what is looked at first depends on the kind
        bind="query-params",
        label_visibility="collapsed",
    )
    _DRAW[view if view in views else views[0]](results)


def _has(results: Results, view: str) -> bool:
    known = [results.measured(0, at) for at in range(len(results.rows))]
    found = [one for one in known if one is not None]
    return {
        "Correlations": any(one.correlations is not None for one in found),
        "Errors": any(one.pairs or one.triplets for one in found),
        "Nearest neighbours": any(one.neighbours for one in found),
        "Pair by pair": isinstance(results.data[0], ScoredData) and bool(found),
        "Alike and different": any(len(one.same) and len(one.diff) for one in found),
        "Errors in common": any(True for _ in common_figures(results, 0)),
        "Controlled paraphrases": any(one.paraphrases for one in found),
    }[view]


def _table(results: Results) -> None:
    heads, lines = results.table(0)
    frame = pd.DataFrame(lines, columns=["method", *heads[1:]])
    brief = [head for head in frame.columns if not head.endswith(DETAILS)]
    if len(frame.columns) > WIDE and not st.toggle("All numbers", key="all-numbers"):
        frame = frame[brief]
    pinned = {"method": st.column_config.TextColumn(pinned=True)}
    st.dataframe(frame, hide_index=True, key="evaluation-table", column_config=pinned)
    for sentence in results.sentences(0):
        st.warning(plain(sentence))
    heads, theirs = results.published_table(0)
    if theirs:
        st.caption("As published for the same data, with the model that was measured there:")
        st.dataframe(
            pd.DataFrame(theirs, columns=heads),
            hide_index=True,
            key="evaluation-published",
            column_config=pinned,
        )
    found = [one for _, _, one in results.finished(0)]
    said = [f"Embedded by {plain(results.models())}."]
    if any(one.pairs or one.triplets for one in found):
        said.append(
            "Products that differ by less than 1e-7 are ties, and a tie counts as broken; *without "
            "ties* leaves them out."
        )
    if any(one.intervals for one in found):
        said.append("Intervals hold 95 % of bootstrap samples.")
    if any(one.neighbours for one in found):
        said.append("Intervals are Wilson's, of 95 %.")
    if found:
        st.caption(" ".join(said))


def _correlations(results: Results) -> None:
    names = {NAMES[name]: name for name in COEFFICIENTS}
    chosen = st.segmented_control(
        "Coefficient", list(names), default="Spearman", required=True, key="coefficient",
        bind="query-params",
    )  # fmt: skip
    name = names[chosen or "Spearman"]
    found = correlation_figure(results, 0, name)
    if found is None:
        return
    figure, n_rows = found
    show_figure(
        figure,
        key="evaluation-correlations",
        numbers=lambda: _intervals(results, name),
        name="correlations",
        height=rows_height(n_rows),
    )


def _intervals(results: Results, name: str) -> pd.DataFrame:
    known = [(label, one) for _, label, one in results.finished(0) if one.correlations]
    nowhere = (np.nan, np.nan)
    bounds = [getattr(one.intervals, name) if one.intervals else nowhere for _, one in known]
    return pd.DataFrame(
        {
            "method": [label for label, _ in known],
            NAMES[name]: [getattr(one.correlations, name) for _, one in known],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
        }
    )


def _errors(results: Results) -> None:
    for name in ("pairs", "triplets"):
        found = broken_figure(results, 0, name)
        if found is None:
            continue
        figure, n_rows = found
        show_figure(
            figure,
            key=f"evaluation-{name}",
            numbers=partial(_counts, results, name),
            name=f"{name}-broken",
            height=rows_height(n_rows),
        )
    _worst_triplets(results)


def _worst_triplets(results: Results) -> None:
    known = [(label, one.worst_triplets) for _, label, one in results.finished(0)]
    of = {label: worst for label, worst in known if worst}
    if not of:
        return
    st.markdown("**The triplets that a method breaks most, one for each anchor**")
    worst = of[_pick(of, "evaluation-triplets-of")]
    texts = results.data[0].texts
    _in_words(
        {
            "anchor": [texts[at] for at in worst.anchor],
            "alike": [texts[at] for at in worst.positive],
            "product": worst.alike,
            "not alike": [texts[at] for at in worst.negative],
            "its product": worst.unlike,
        },
        "evaluation-worst-triplets",
    )


def _neighbours(results: Results) -> None:
    found = neighbours_figure(results, 0)
    if found is None:
        return
    figure, n_rows = found
    show_figure(
        figure,
        key="evaluation-neighbours",
        numbers=partial(_accuracies, results),
        name="nearest-neighbours",
        height=rows_height(n_rows) + 40,
    )
    of = {label: one.outvoted for _, label, one in results.finished(0) if one.outvoted}
    if not of:
        return
    st.markdown("**Texts whose neighbours vote for another label**")
    outvoted = of[_pick(of, "evaluation-outvoted-of")]
    texts = results.data[0].texts
    _in_words(
        {
            "text": [texts[one.text] for one in outvoted],
            "label": [one.label for one in outvoted],
            "voted for": [one.voted for one in outvoted],
            "votes for its label": [f"{one.agree:.0%}" for one in outvoted],
        },
        "evaluation-outvoted",
    )


def _accuracies(results: Results) -> pd.DataFrame:
    counted = [(label, one.neighbours) for _, label, one in results.finished(0)]
    return pd.DataFrame(
        {
            "method": label,
            "accuracy": one.accuracy,
            "low": one.interval[0],
            "high": one.interval[1],
            "k": one.k,
            "n": one.n,
            "baseline": one.baseline,
        }
        for label, one in counted
        if one is not None
    )


def _counts(results: Results, name: str) -> pd.DataFrame:
    counted = [(label, getattr(one, name)) for _, label, one in results.finished(0)]
    return pd.DataFrame(
        {"method": label, **asdict(one)} for label, one in counted if one is not None
    )


def _pick(of: Iterable[str], key: str) -> str:
    labels = list(of)
    return st.selectbox("Method", labels, key=key) or labels[0]


def _in_words(
    columns: pd.DataFrame | Mapping[str, Any], key: str, digits: Mapping[str, str] | None = None
) -> None:
    """A table of texts, each cut at 300 characters, and of numbers, ``digits`` or three each."""
    frame = pd.DataFrame(columns).copy()
    config: dict[str, Any] = {}
    for name in frame.columns:
        if is_numeric_dtype(frame[name]):
            shown = (digits or {}).get(name, "%.3f")
            config[name] = st.column_config.NumberColumn(format=shown, width="small")
            continue
        frame[name] = [shorten(text, 300) for text in frame[name]]
        if frame[name].str.len().max() > SHORT:
            config[name] = st.column_config.TextColumn(width="medium")
    st.dataframe(frame, hide_index=True, key=key, column_config=config, row_height=ROW_HEIGHT)


def _pair_by_pair(results: Results) -> None:
    data = results.data[0]
    assert isinstance(data, ScoredData)
    of = {label: one for _, label, one in results.finished(0)}
    label = _pick(of, "evaluation-pairs-of")
    one = of[label]
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
            one.products,
            data.scores,
            sentences,
            None,
            f"Score and product, {escape(label)}: {told}",
        ),
        key="evaluation-scatter",
        numbers=table,
        name="pairs",
        height=520,
    )
    ranks = table[["score", "product"]].rank(pct=True)
    apart = (ranks["product"] - ranks["score"]).abs()
    worst = table.loc[apart.sort_values(ascending=False).index[:WORST]]
    st.markdown("**The pairs that people and vectors disagree on most**")
    _in_words(worst, "evaluation-worst", {"score": "%.3g"})


def _alike_and_different(results: Results) -> None:
    places = (place for _ in results.rows for place in st.columns(2))
    drawn = list(histograms(results, 0))
    if len(drawn) > MANY:
        of = {results.rows[at].label: (at, figure) for at, figure in drawn}
        drawn = [of[_pick(of, "evaluation-histograms-of")]]
    for at, figure in drawn:
        with next(places) if len(drawn) > 1 else st.container():
            show_figure(
                figure,
                key=f"evaluation-histogram-{at}",
                numbers=partial(_products, results, at),
                name="products",
                height=360,
            )
    st.caption(
        "The less the two overlap, the better products tell alike from different. Where there are "
        "many pairs, 20,000 of each kind are drawn."
    )


def _products(results: Results, row: int) -> pd.DataFrame:
    one = results.measured(0, row)
    same, diff = (np.zeros(0), np.zeros(0)) if one is None else (one.same, one.diff)
    kinds = ["alike"] * len(same) + ["different"] * len(diff)
    return pd.DataFrame({"kind": kinds, "product": np.concatenate([same, diff])})


def _in_common(results: Results) -> None:
    compared = results.compared[0]
    labels = [results.rows[at].label for at in compared.rows]
    for name, figure, n_rows in common_figures(results, 0):
        frame = pd.DataFrame(compared.overlaps[name].share, columns=labels)
        frame.insert(0, "method", labels)
        with swiped(f"evaluation-overlap-{name}-wide", 320 + 60 * n_rows):
            show_figure(
                figure,
                key=f"evaluation-overlap-{name}",
                numbers=frame,
                name=f"{name}-in-common",
                height=220 + 64 * n_rows,
            )
    st.caption(
        "The share of the broken ones that two methods have in common, of the fewer of the two "
        "(Eq. 3). Little in common: the methods could help each other. Empty: a method breaks none."
    )
    if left_out := results.left_out(0):
        st.caption(left_out)


def _paraphrases(results: Results) -> None:
    for at, kind, figure in quality_figures(results, 0):
        one = results.measured(0, at)
        maps = () if one is None else one.paraphrases
        with swiped(f"evaluation-{kind}-{at}-wide", 320 * len(maps)):
            show_figure(
                figure,
                key=f"evaluation-{kind}-{at}",
                numbers=partial(_maps, maps) if kind == "tau-c" else None,
                name=f"paraphrases-{kind}",
                height=420,
            )
    st.caption("One quality of similarity varies, the two others are fixed at the values shown.")


def _maps(maps: Sequence[QualityMap]) -> pd.DataFrame:
    return pd.DataFrame(
        {"quality": m.quality, "fixed1": a, "fixed2": b, "tau-c": m.kendall_c[i, j], "n": m.n[i, j]}
        for m in maps
        for i, a in enumerate(m.fixed1)
        for j, b in enumerate(m.fixed2)
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
    "Nearest neighbours": _neighbours,
    "Pair by pair": _pair_by_pair,
    "Alike and different": _alike_and_different,
    "Errors in common": _in_common,
    "Controlled paraphrases": _paraphrases,
}
