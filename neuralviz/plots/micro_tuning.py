"""Figures of a micro-tuning run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neuralviz.headlines.micro_tuning import describe_progress
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.plots.parts import (
    BARE,
    CIVIDIS,
    TOP_DOWN,
    Trace,
    bar_title,
    bars,
    cell_values,
    cells,
    dots,
    draw,
    layer_colours,
    line,
    token_bars,
)
from neuralviz.plots.report import About
from neuralviz.plots.theme import AFTER, BEFORE, escape, shorten, symmetric_range
from neuralviz.words import many, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.micro_tuning import Blueprint
    from neuralviz.micro_tuning.blanks import FilledBlank
    from neuralviz.micro_tuning.blueprints import MaskedInputs
    from neuralviz.micro_tuning.record import RunRecord


MAX_LINES = 8
PALE, PALE_WIDTH = 0.4, 11  # opacity and px of an earlier run's lines, visible behind equal ones
EXTREME = 15  # neurons at either end
MAX_CELLS = 100_000  # of an animated heatmap
MAX_WRITTEN = 12  # texts; more leave no room for numbers in the cells
FEW_EPOCHS = 12
ALL_NAMED = 60  # words; in longer texts only the largest bars are named
MOST_NAMED = 10
LINES = 16  # vertical words that fit side by side on a phone
UPRIGHT_WORDS = 14  # more are vertical
FLAT_CHARACTERS = 36  # of horizontal words in half a page
ON_STAGE = 6  # tokens of a blank in presentation mode


def describe_run(record: RunRecord, text: int = 0) -> About:
    """Title, settings and file names of a run's figures and tables."""
    settings = record.settings
    masking = "none: every token is predicted"
    if not settings.predict_unmasked:
        masking = ", ".join(map(str, settings.blueprints))
    return About(
        f"Micro-tuning on {many(len(record.texts), 'text')}",
        {
            "model": record.model_id,
            "texts": f"{len(record.texts):,}",
            "layers": ", ".join(short_layer_names(settings.layers)),
            "blueprints": masking,
            "epochs": f"{settings.epochs:,}",
            "learning rate": f"{settings.learning_rate:g}",
            "precision": settings.precision_in_words,
        }
        | ({"so far": progress} if (progress := describe_progress(record)) else {}),
        files=(record.texts[text], *_changed_settings(settings)),
    )


def _changed_settings(settings: TuningSettings) -> list[str]:
    parts = [many(settings.epochs, "epoch")]
    if settings.learning_rate != TuningSettings.learning_rate:
        parts.append(f"rate {settings.learning_rate:g}")
    if settings.precision != TuningSettings.precision:
        parts.append(settings.precision)
    return parts + ["no masks"] * settings.predict_unmasked


def short_layer_names(names: Sequence[str]) -> list[str]:
    """Layer names without their common parts: ``block 5 · output.dense.bias``."""
    return [_shorten_layer(name.split(".")) for name in names]


def _shorten_layer(parts: list[str]) -> str:
    for place, part in enumerate(parts[:-1]):
        if part.isdigit():
            return f"block {part} · {'.'.join(parts[place + 1 :])}"
    return ".".join(parts[-2:])


# --- losses ------------------------------------------------------------------------------------


def loss_figure(
    curves: np.ndarray,
    texts: Sequence[str],
    chosen: int = 0,
    earlier: np.ndarray | None = None,  # [epoch + 1] the chosen text's by another run, drawn pale
    runs: tuple[int, int] = (2, 1),
) -> go.Figure:
    """[text, epoch + 1] losses in nats, NaN to omit; many texts become a band."""
    name = f"{chosen + 1}. {escape(shorten(texts[chosen], 24))}"
    traces, n_epochs = [], len(curves[0]) - 1
    if earlier is not None:
        name = f"run {runs[0]}" if len(curves) == 1 else f"run {runs[0]}: {name}"
        traces.append(_curve(earlier, _pale_name(runs), AFTER, PALE_WIDTH, opacity=PALE))
        n_epochs = max(n_epochs, len(earlier) - 1)
    traces += _band(curves) if len(curves) > MAX_LINES else _other_curves(curves, chosen)
    traces.append(_curve(curves[chosen], name, AFTER, 4, size=8))
    return draw(
        traces,
        "Loss at the masked positions",
        _epoch_axis(n_epochs),
        {"title": "loss, nats", "rangemode": "tozero"},
        showlegend=len(curves) > 1 or earlier is not None,
    )


def _pale_name(runs: tuple[int, int]) -> str:
    return f"run {runs[1]} (wide line)"


def _curve(curve: np.ndarray, name: str, colour: str, width: float, **extra: Any) -> Trace:
    hover = f"{extra.pop('hover_name', name)}<br>epoch %{{x}}: loss %{{y:.3f}}"
    look: Trace = {"width": width, "size": 0, "name": name} | extra
    return line(np.arange(len(curve)), curve, colour, hover, **look)


def _other_curves(curves: np.ndarray, chosen: int) -> list[Trace]:
    other_texts = [i for i in range(len(curves)) if i != chosen]
    name = "the other text" if len(other_texts) == 1 else "the other texts"
    return [
        _curve(
            curves[i], name, BEFORE, 2, hover_name=f"text {i + 1}", legendgroup="others",
            showlegend=i == other_texts[0],
        )
        for i in other_texts
    ]  # fmt: skip


def _band(curves: np.ndarray) -> list[Trace]:
    """Median and range of the texts."""
    table = pd.DataFrame(curves).where(np.isfinite(curves))  # pandas statistics skip NaN
    n_texts = int(table.notna().any(axis=1).sum())
    if n_texts < 2:
        return []
    low, median, high = (values.to_numpy() for values in (table.min(), table.median(), table.max()))
    filled: Trace = {"fill": "tonexty", "fillcolor": "rgba(138, 144, 150, 0.18)"}
    return [
        _curve(high, "highest", BEFORE, 1, showlegend=False),
        _curve(low, "lowest to highest", BEFORE, 1, hover_name="lowest", **filled),
        _curve(median, f"median of {n_texts:,} texts", BEFORE, 3),
    ]


# --- deltas ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Norms:
    """Distances of one text's layers from their pretrained weights."""

    values: np.ndarray  # [epoch, layer] delta norm after each epoch; NaN if unknown
    layers: Sequence[str]  # full names


def delta_norm_figure(
    norms: Norms, earlier: Norms | None = None, runs: tuple[int, int] = (2, 1)
) -> go.Figure:
    """Each layer's distance from its pretrained weights; ``earlier`` is drawn pale."""
    # a layer has one colour in both runs
    layers = list(dict.fromkeys([*norms.layers, *(earlier.layers if earlier else ())]))
    colours = dict(zip(layers, layer_colours(len(layers)), strict=True))
    short_names = short_layer_names(layers)
    kinds = {name.partition(" · ")[2] for name in short_names}
    kind = kinds.pop() if len(kinds) == 1 < len(layers) else ""  # shared by several layers
    if kind:
        short_names = [name.partition(" · ")[0] for name in short_names]
    names = dict(zip(layers, map(escape, short_names), strict=True))
    n_layers = len(norms.layers)
    width, size = (3, 8) if n_layers <= MAX_LINES else (2, 0)
    pale: Trace = {"width": PALE_WIDTH, "size": 0, "opacity": PALE}
    clear: Trace = {"width": width, "size": size, "opacity": 1}
    traces = []
    for run in (earlier, norms) if earlier is not None else (norms,):
        look = clear if run is norms else pale
        is_named = run is norms and 1 < n_layers <= MAX_LINES
        for layer, values in zip(run.layers, run.values.T, strict=True):
            hover = f"{names[layer]}<br>epoch %{{x:.3~g}}: %{{y:.4f}}"
            entry: Trace = {
                "name": names[layer],
                "legendgroup": names[layer],
                "showlegend": is_named,
            }
            x, y = np.arange(len(values) + 1), np.append(0.0, values)
            traces.append(line(x, y, colours[layer], hover, **entry, **look))
    if earlier is not None:
        traces.append(line([None], [None], BEFORE, name=_pale_name(runs), **pale))
    n_epochs = max(len(run.values) for run in (norms, earlier) if run is not None)
    return draw(
        traces,
        f"Norm of each block's {escape(kind)}" if kind else "Norm of each layer's delta",
        _epoch_axis(n_epochs),
        {"title": "norm of the delta", "rangemode": "tozero"},
        showlegend=earlier is not None or 1 < n_layers <= MAX_LINES,
    )


def neurons_figure(deltas: np.ndarray, layer: str, *, all_neurons: bool = False) -> go.Figure:
    """[epoch, dim] deltas of a layer, NaN if unknown; by default only the largest changes."""
    n_epochs, dim = deltas.shape
    order = neurons_in_order(deltas, all_neurons=all_neurons)
    n_rows = min(n_epochs, max(2, MAX_CELLS // len(order)))
    drawn = np.unique(np.linspace(0, n_epochs - 1, n_rows).round().astype(int))
    values = np.round(deltas[drawn][:, order], 5)
    hover = "neuron %{x}<br>after epoch %{y}: %{z:+.4f}"
    look = {"limits": symmetric_range(deltas), **bar_title("delta")}
    heatmap = cells(values, [str(neuron) for neuron in order], drawn + 1, hover, **look)
    shapes = []
    name = escape(short_layer_names([layer])[0])
    wide_title = f"All neurons of {name}, sorted by their delta"
    if len(order) < dim:
        wide_title = f"{name}: the {EXTREME} neurons that fell and the {EXTREME} that rose most"
        ends = {"x0": EXTREME - 0.5, "x1": EXTREME - 0.5, "y0": 0, "y1": 1, "yref": "y domain"}
        look = {"line": {"dash": "dot", "width": 2, "color": BEFORE}}
        shapes = [{"type": "line", "xref": "x", **ends, **look}]
    if len(drawn) < n_epochs:
        wide_title += f" ({len(drawn)} of {n_epochs:,} epochs shown)"
    return draw(
        [heatmap],
        f"Neurons of {name}",
        {
            "title": "neuron, sorted by its delta",
            "type": "category",
            "showgrid": False,
            "showticklabels": len(order) <= 2 * EXTREME,
            "tickangle": -90,
            "tickfont": {"size": 13},
        },
        {
            "title": "epoch",
            "range": [0.5, n_epochs + 0.5],
            "showgrid": False,
            "nticks": 8,
            "dtick": 1 if n_epochs <= FEW_EPOCHS else None,
        },
        shapes=shapes,
        meta={
            "from_width": [[560, {"title.text": wide_title, "xaxis.dtick": 1}]],
            "stage": {"xaxis.tickfont.size": 18},
        },
    )


def neurons_in_order(deltas: np.ndarray, *, all_neurons: bool = False) -> np.ndarray:
    """The neurons of `neurons_figure`, left to right."""
    finite_epochs = np.flatnonzero(np.isfinite(deltas).all(axis=1))
    latest = finite_epochs[-1] if len(finite_epochs) else 0
    order = np.argsort(deltas[latest], kind="stable")
    if all_neurons or len(order) <= 2 * EXTREME:
        return order
    return np.concatenate([order[:EXTREME], order[-EXTREME:]])


def _epoch_axis(n: int) -> dict[str, Any]:
    return {
        "title": "epoch",
        "range": [-0.04 * n, n * 1.04],
        "nticks": 12 if n < 100 else 6,  # more would turn vertical
        "dtick": 1 if n <= FEW_EPOCHS else None,
        "tickformat": ",d",
    }


# --- results -----------------------------------------------------------------------------------


def products_figure(
    texts: Sequence[str], products: np.ndarray, numbers: Sequence[int]
) -> go.Figure:
    """[text, text] cosine similarities; ``numbers`` of the texts count from 0."""
    names = [f"{i + 1}" for i in numbers]
    short = [escape(shorten(text, 60)) for text in texts]
    look = {**CIVIDIS, **cell_values(products, most_columns=MAX_WRITTEN)}
    look["customdata"] = [[f"{a}<br>{b}" for b in short] for a in short]
    hover, limits = "%{customdata}<br>cosine similarity %{z:.3f}", (min(0.0, products.min()), 1.0)
    matrix = cells(products, names, names, hover, limits, **look)
    axis = {"title": "text", "type": "category", "showgrid": False, "constrain": "domain"}
    upright = {**axis, **TOP_DOWN, "scaleanchor": "x"}
    return draw([matrix], "Cosine similarity of the embeddings", axis, upright)


def shares_figure(words: Sequence[str], shares: np.ndarray, title: str) -> go.Figure:
    """Each word's share of the delta in text order; if many, only the largest are named."""
    percents = np.asarray(shares) * 100
    low, high = symmetric_range(percents)
    hover, names = "%{customdata}: %{y:,.1f}%", list(map(escape, words))
    share_bars = bars(np.arange(len(percents)), percents, percents, hover, customdata=names)
    # outlined, as bars near 0 take the background colour
    share_bars["marker"] |= {"coloraxis": "coloraxis", "line": {"width": 1, "color": BEFORE}}
    named = _named_places(percents)
    is_upright = len(words) > UPRIGHT_WORDS
    fits = sum(len(word) + 2 for word in words) <= FLAT_CHARACTERS
    angle = -90 if is_upright else 0 if fits else -45  # prevents overlaps
    return draw(
        [share_bars],
        title,
        {
            "tickvals": named,
            "ticktext": [escape(shorten(words[place], 14)) for place in named],
            "tickangle": angle,
            "tickfont": {"size": 13} if is_upright else None,
            "showgrid": False,
        },
        {"title": "share of the delta, %", "zeroline": True},
        coloraxis={"cmin": low, "cmax": high, "showscale": False},
        bargap=0.15,
        meta={"stage": {"xaxis.tickangle": -45}} if is_upright and len(words) <= 30 else None,
    )


def _named_places(shares: np.ndarray) -> list[int]:
    if len(shares) <= ALL_NAMED:
        return list(range(len(shares)))
    named: list[int] = []
    for place in np.argsort(-np.abs(shares), kind="stable").tolist():
        if all(abs(place - named_place) * LINES >= len(shares) for named_place in named):
            named.append(place)
        if len(named) == MOST_NAMED:
            break
    return sorted(named)


def shares_width(words: Sequence[str]) -> int:
    """Minimum width in px for the words of `shares_figure`."""
    return 80 + 13 * len(words) if len(words) <= ALL_NAMED else 300


def blank_figure(blank: FilledBlank, title: str) -> go.Figure:
    """Probabilities of the likeliest tokens before and after micro-tuning."""
    entries = blank.candidates
    names = [f"“{escape(shorten(entry.token, 18))}”" for entry in entries]
    traces, highest = [], 0.0
    for moment, colour in (("before", BEFORE), ("after", AFTER)):
        values = [getattr(entry, moment) for entry in entries]
        highest = max(highest, *values)
        written = [percent(value).replace("less than ", "&lt; ") for value in values]
        hover = f"%{{customdata}} {moment}: %{{text}}"
        traces.append(token_bars(values, names, colour, hover, written, name=moment))
    return draw(
        traces,
        title,
        {
            "title": "probability",
            "tickformat": ".0%" if highest > 0.05 else "~p",
            "range": [0, min(highest * 1.25, 1.1)],
            "nticks": 6,
        },
        {
            "tickvals": list(range(len(entries))),
            "ticktext": names,
            "range": [len(entries) - 0.4, -0.6],
            "showgrid": False,
        },
        barmode="group",
        bargap=0.25,
        height=140 + 44 * len(entries),
        meta={"stage": {"yaxis.range": [min(len(entries), ON_STAGE) - 0.4, -0.6]}},
    )


KEPT, MASKED = "#C4C9CE", AFTER  # visible on light and dark pages
MAX_ROWS = 200
_LONGEST = 14  # characters of a token

_BAND_HEAD = 27  # px above each band for its name
_STRIP = 56  # px for the counts under the grid
_LEGEND = 40  # px


def blueprint_grid(
    inputs: MaskedInputs, blueprints: Sequence[Blueprint], tokens: Sequence[str], window: range
) -> go.Figure:
    """Inputs × tokens, a band per blueprint, above the mask count of each token."""
    drawn = slice(window.start, window.stop)
    by_row = inputs.blueprint[:MAX_ROWS]  # which blueprint
    names = [escape(shorten(token, _LONGEST)) for token in tokens[drawn]]
    x = np.arange(window.start, window.stop) + 1
    starts = np.flatnonzero(np.diff(by_row, prepend=-1))  # first row of each band
    row = float(np.clip(900 / len(by_row), 5, 18))  # px
    heads = np.cumsum(np.diff(by_row, prepend=-1) != 0)
    tops = np.arange(len(by_row)) * row + heads * _BAND_HEAD  # px from the grid's top to each row
    bottom = tops[-1] + row
    plot_height = bottom + _BAND_HEAD + _STRIP
    # room for the name above each band
    edges = np.append(np.insert(tops, starts, tops[starts] - _BAND_HEAD), bottom)
    masked = inputs.masked[: len(tops), drawn].astype(float)
    hover = _describe_cells(inputs, blueprints, names, drawn, len(tops))
    grid = cells(
        np.insert(masked, starts, np.nan, axis=0),
        x,
        edges,
        "%{text}",
        (0, 1),
        text=np.insert(hover, starts, "", axis=0),
        hoverongaps=False,
        autocolorscale=False,
        colorscale=[[0, KEPT], [1, MASKED]],
        showscale=False,
        xgap=2 if len(x) <= 60 else 1,
        ygap=2 if row > 8 else 0,
    )
    times = inputs.times_masked[drawn]
    counts = bars(
        x,
        times,
        MASKED,
        "position %{x}: <b>%{customdata}</b><br>times masked: %{y}",
        yaxis="y2",
        text=times,
        textfont=None,
        textposition="outside",
        textangle=0,
        customdata=names,
        showlegend=False,
    )
    legend = [
        dots([None], [None], colour, size=16, marker={"symbol": "square"}, name=name)
        for name, colour in (("kept", KEPT), ("masked", MASKED))
    ]
    bands = [(blueprints[by_row[start]], tops[start]) for start in starts]
    titles = [_head(f"keep {band.keep}, mask {band.mask}", top, "y") for band, top in bands]
    titles.append(_head("how often each token is masked", _STRIP / plot_height, "paper"))
    shifts = [
        f"shift {shift}" if number in starts else str(shift)
        for number, shift in enumerate(inputs.shift[: len(tops)])
    ]
    # a few tokens are horizontal, more are vertical
    longest = min(_LONGEST, max(map(len, tokens[drawn])))
    token_height = 40 if len(x) <= 16 else 30 + 8 * longest
    bare: dict[str, Any] = {"ticks": "", **BARE}
    return draw(
        [grid, counts, *legend],
        None,
        {
            "side": "top",
            "anchor": "free",
            "position": 1,
            "tickvals": x,
            "ticktext": names,
            "autotickangles": [0, -60, -90],
            "range": [x[0] - 0.5, x[-1] + 0.5],
            **bare,
        },
        {
            "domain": [(_STRIP + _BAND_HEAD) / plot_height, 1],
            "range": [bottom, 0],
            "tickvals": tops + row / 2 if row > 14 else [],
            "ticktext": shifts,
            **bare,
        },
        yaxis2={
            "domain": [0, _STRIP / plot_height],
            "range": [0, 1.7 * (times.max() or 1)],
            "showticklabels": False,
            "fixedrange": True,
            **BARE,
        },
        annotations=titles,
        margin={"t": token_height, "b": _LEGEND, "l": 8, "r": 8},
        bargap=0.12,
        height=token_height + int(bottom) + _BAND_HEAD + _STRIP + _LEGEND,
    )


def _describe_cells(
    inputs: MaskedInputs, blueprints: Sequence[Blueprint], names: list[str], drawn: slice, n: int
) -> np.ndarray:
    """[row, token] hover texts of the first ``n`` rows."""
    hover = [
        [
            f"blueprint {blueprints[inputs.blueprint[i]]}, shift {inputs.shift[i]}<br>"
            f"masked input {i + 1}, position {drawn.start + j + 1}: <b>{name}</b><br>"
            f"{'masked' if inputs.masked[i, drawn.start + j] else 'kept'}"
            for j, name in enumerate(names)
        ]
        for i in range(n)
    ]
    return np.array(hover, dtype=object)


def _head(text: str, y: float, yref: str) -> dict[str, Any]:
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "yref": yref, "yanchor": "bottom"}
    return {"text": f"<b>{text}</b>", "showarrow": False, **place}
