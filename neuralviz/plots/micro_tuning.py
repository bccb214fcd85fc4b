"""Figures of a micro-tuning run, and of the steps from two texts to their similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neuralviz.headlines.micro_tuning import describe_progress, describe_settings, short_layer_names
from neuralviz.plots.report import About
from neuralviz.plots.theme import (
    AFTER,
    BARE,
    BEFORE,
    NAMES_OF_BARS,
    VERMILLION,
    Trace,
    bar_title,
    bars,
    cells,
    dots,
    draw,
    escape,
    layer_colours,
    line,
    name_axis,
    shorten,
    symmetric_range,
    token_bars,
    widen,
)
from neuralviz.words import many, number, write_guess, write_loss

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from neuralviz.micro_tuning import Blueprint
    from neuralviz.micro_tuning.events import FilledBlank, RunRecord
    from neuralviz.micro_tuning.settings import MaskedInputs

MAX_LINES = 8
PALE: Trace = {"width": 11, "size": 0, "opacity": 0.4}  # an earlier run's, seen behind equal lines
MAX_CELLS = 100_000  # of an animated heatmap
FEW_EPOCHS = 12
MOST_WORDS = 60  # whose shares are drawn
FEW_WORDS = 18  # with room for upright values
MOST_GUESSES = 6  # for a blank
_LOSS_AXIS = {"title": "loss (0 would be perfect)", "rangemode": "tozero"}


def describe_run(record: RunRecord, text: int = 0) -> About:
    """Title, settings and file names of a run's figures and tables."""
    return About(
        f"Micro-tuning on {many(len(record.texts), 'text')}",
        {
            "model": record.model_id,
            "texts": f"{len(record.texts):,}",
            **describe_settings(record.settings),
        }
        | ({"so far": progress} if (progress := describe_progress(record)) else {}),
        files=(record.texts[text], many(record.settings.epochs, "epoch")),
    )


# --- losses ------------------------------------------------------------------------------------


def loss_figure(
    record: RunRecord, text: int, earlier: RunRecord | None = None, runs: tuple[int, int] = (2, 1)
) -> go.Figure:
    """Losses by epoch, of many texts as a band; ``earlier``, another run, is drawn pale.

    Of a long text, the losses at its parts are dots within the epoch that has begun.
    """
    curves = record.loss_curves()
    name = f"text {text + 1}"
    traces, n_epochs = [], record.settings.epochs
    if earlier is not None:
        name = f"run {runs[0]}" if len(curves) == 1 else f"run {runs[0]}: {name}"
        traces.append(_curve(earlier.loss_curve(text), _pale_name(runs), AFTER, **PALE))
        n_epochs = max(n_epochs, earlier.settings.epochs)
    is_band = len(curves) > MAX_LINES
    traces += _band(curves[record.texts_like(text)]) if is_band else _other_curves(curves, text)
    traces.append(_main_curve(curves[text], name))
    # a point is seen by its mark, or by the line to another one
    traces = [t for t in traces if np.isfinite(t["y"]).sum() > ("marker" not in t)]
    has_epochs, parts = bool(traces), [part for part in record.parts if part.text == text]
    if parts:
        n_done = record.epochs_reached
        x, losses = [n_done + part.share for part in parts], [part.loss for part in parts]
        hover = f"part of epoch {n_done + 1}<br>loss %{{y:.3f}}"
        traces.append(dots(x, losses, BEFORE, hover, size=9, name=f"parts in epoch {n_done + 1}"))
    return draw(
        traces,
        "Loss by epoch",
        _epoch_axis(n_epochs if has_epochs else 1),
        _LOSS_AXIS,
        showlegend=len(traces) > 1,
    )


def _pale_name(runs: tuple[int, int]) -> str:
    return f"run {runs[1]} (wide line)"


def _curve(
    curve: np.ndarray, name: str, colour: str, width: float = 3, size: float = 0, **extra: Any
) -> Trace:
    hover = f"{name}<br>epoch %{{x}}: loss %{{y:.3f}}"
    epochs = np.arange(len(curve))
    return line(epochs, curve, colour, hover, width=width, size=size, name=name, **extra)


def _main_curve(curve: np.ndarray, name: str) -> Trace:
    """On the stage with the first and the last finite value above their points."""
    epochs = np.flatnonzero(np.isfinite(curve))
    ends = {*epochs[:1].tolist(), *epochs[-1:].tolist()}
    text = [write_loss(loss) * (epoch in ends) for epoch, loss in enumerate(curve)]
    look: Trace = {"textposition": "top center", "textfont": {"size": 18}, "cliponaxis": False}
    look |= {"text": text, "meta": {"stage": {"mode": "lines+markers+text"}}}
    return _curve(curve, name, AFTER, width=4, size=8, **look)


def _other_curves(curves: np.ndarray, text: int) -> list[Trace]:
    other_texts = [i for i in range(len(curves)) if i != text and np.isfinite(curves[i]).sum() > 1]
    name = "the other text" + "s" * (len(other_texts) > 1)
    # one line on the stage
    look: Trace = {"width": 2, "legendgroup": "others", "meta": {"stage": {"visible": False}}}
    return [
        _curve(curves[i], name, BEFORE, showlegend=i == other_texts[0], **look) for i in other_texts
    ]


def _band(curves: np.ndarray) -> list[Trace]:
    """Median and range of the texts that are known."""
    table = pd.DataFrame(curves).where(np.isfinite(curves))  # pandas statistics skip NaN
    low, median, high = table.quantile([0, 0.5, 1]).to_numpy()
    filled: Trace = {"fill": "tonexty", "fillcolor": "rgba(138, 144, 150, 0.18)"}
    return [
        _curve(high, "highest", BEFORE, width=2, showlegend=False),
        _curve(low, "lowest to highest", BEFORE, width=2, **filled),
        _curve(median, f"median of {len(curves):,} texts", BEFORE, width=3),
    ]


# --- deltas ------------------------------------------------------------------------------------


def delta_norm_figure(
    record: RunRecord, text: int, earlier: RunRecord | None = None, runs: tuple[int, int] = (2, 1)
) -> go.Figure:
    """Each layer's distance from its pretrained weights; ``earlier`` is drawn pale."""
    if earlier is not None and not earlier.epochs_done(text):
        earlier = None
    all_records = [record] if earlier is None else [earlier, record]
    # a layer has one colour in both runs
    layers = list(dict.fromkeys(name for run in all_records[::-1] for name in run.settings.layers))
    colours = dict(zip(layers, layer_colours(len(layers)), strict=True))
    names = dict(zip(layers, map(escape, short_layer_names(layers)), strict=True))
    has_few = len(record.settings.layers) <= MAX_LINES
    clear: Trace = {"width": 3, "size": 8} if has_few else {"width": 2, "size": 0}
    traces = []
    for run in all_records:
        look = clear | {"showlegend": has_few} if run is record else PALE | {"showlegend": False}
        for layer, values in zip(run.settings.layers, run.delta_norm[:, text].T, strict=True):
            hover = f"{names[layer]}<br>epoch %{{x:.3~g}}: %{{y:.4f}}"
            x, y = np.arange(len(values) + 1), np.append(0.0, values)
            traces.append(line(x, y, colours[layer], hover, name=names[layer], **look))
    if earlier is not None:
        traces.append(line([None], [None], BEFORE, name=_pale_name(runs), **PALE))
    return draw(
        traces,
        "Norm of each layer's delta",
        _epoch_axis(max(run.settings.epochs for run in all_records)),
        {"title": "norm of the delta", "rangemode": "tozero"},
        showlegend=True,
    )


def neurons_figure(deltas: np.ndarray, layer: str) -> go.Figure:
    """[epoch, dim] deltas of a layer, NaN if unknown, the neurons sorted by the latest."""
    n_epochs, dim = deltas.shape
    known_epochs = np.flatnonzero(np.isfinite(deltas).all(axis=1))
    latest = deltas[known_epochs[-1] if len(known_epochs) else 0]
    with np.errstate(over="ignore"):  # links sort neurons alike: deltas are kept as float16
        order = np.argsort(latest.astype(np.float16), kind="stable")
    n_rows = min(n_epochs, max(2, MAX_CELLS // dim))
    drawn = np.unique(np.linspace(0, n_epochs - 1, n_rows).round().astype(int))
    values = np.round(deltas[drawn][:, order], 5)
    hover = "neuron %{x}<br>after epoch %{y}: %{z:+.4f}"
    look = {"limits": symmetric_range(deltas), **bar_title("delta")}
    return draw(
        [cells(values, order.astype(str), drawn + 1, hover, **look)],
        f"Neurons of {escape(short_layer_names([layer])[0])}",
        {
            "title": "neuron, sorted by its delta",
            "type": "category",
            "showgrid": False,
            "showticklabels": False,
            "ticks": "",
        },
        {
            "title": "epoch",
            "range": [0.5, n_epochs + 0.5],
            "showgrid": False,
            "nticks": 8,
            "dtick": 1 if n_epochs <= FEW_EPOCHS else None,
        },
    )


def _epoch_axis(n: int) -> dict[str, Any]:
    return {
        "title": "completed epochs",
        "range": [-0.04 * n, n * 1.04],
        "nticks": 12 if n < 100 else 6,  # more would turn vertical
        "dtick": 1 if n <= FEW_EPOCHS else None,
        "tickformat": ",d",
    }


# --- results -----------------------------------------------------------------------------------


def shares_figure(words: Sequence[str], shares: np.ndarray) -> go.Figure:
    """Each word's share of the delta in text order; of many, the words with the largest ones."""
    title = "Which words shaped the embedding"
    if len(words) > MOST_WORDS:
        places = np.sort(np.argsort(-np.abs(shares), kind="stable")[:MOST_WORDS])
        words, shares = [words[place] for place in places], shares[places]
        title += f": the {MOST_WORDS} largest shares"
    percents = np.asarray(shares) * 100
    hover, names = "%{customdata}: %{y:,.1f}%", list(map(escape, words))
    look: Trace = {"textposition": "outside", "constraintext": "none", "customdata": names}
    look["textangle"] = 0 if len(words) <= FEW_WORDS else -90
    look["text"] = [number(share, ".0%") * (abs(share) >= 0.005) for share in shares.tolist()]
    return draw(
        [bars(np.arange(len(percents)), percents, AFTER, hover, **look)],
        title,
        name_axis(words, 14, autotickangles=[0, -45, -90], showgrid=False),
        {"title": "share of the change, %", "range": widen([0, *percents], 0.12)},
        bargap=0.15,
    )


def shares_width(words: Sequence[str]) -> int:
    """Minimum width in px for the words of `shares_figure`."""
    return 80 + 13 * min(len(words), MOST_WORDS)


def blank_figure(
    blank: FilledBlank, title: str, *, has_after: bool = True, hidden: str = ""
) -> go.Figure:
    """Probabilities of the likeliest tokens before micro-tuning, and after it, of a hidden word."""
    guesses = sorted(blank.candidates[:MOST_GUESSES], key=lambda entry: -entry.after)
    entries, note = guesses if has_after else blank.before, "<br>(hidden word)"
    names = [
        f"“{escape(shorten(entry.token, 18))}”"
        + note * (entry.token.casefold() == hidden.casefold())
        for entry in entries
    ]
    sides = {"before": [entry.before for entry in entries]}
    if has_after:
        sides["after"] = [entry.after for entry in entries]
    elif names[-1].endswith(note):  # no next best guess
        names.insert(-1, "")
        sides["before"].insert(-1, np.nan)
    return probabilities_figure(names, sides, title)


def probabilities_figure(
    names: Sequence[str], sides: Mapping[str, Sequence[float]], title: str
) -> go.Figure:
    """[token] probabilities ``before`` micro-tuning, and ``after``, NaN if unknown.

    ``names`` are HTML.
    """
    traces, highest = [], np.nanmax([*sides.values()])
    for moment, values in sides.items():
        colour = {"before": BEFORE, "after": AFTER}[moment]
        known = ["" if np.isnan(value) else write_guess(value) for value in values]
        written = [value.replace("less than ", "&lt; ") for value in known]
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
        {"tickvals": list(range(len(names))), "ticktext": names, **NAMES_OF_BARS},
        barmode="group",
        bargap=0.25,
        height=140 + 44 * len(names),
    )


KEPT, MASKED = "#C4C9CE", AFTER  # visible on light and dark pages
MAX_ROWS = 200
_LONGEST = 14  # characters of a token
_BAND_HEAD = 27  # px above each band for its name
_LEGEND = 40  # px


def blueprint_grid(
    inputs: MaskedInputs,
    blueprints: Sequence[Blueprint],
    tokens: Sequence[str],
    window: range,
    by_hand: Sequence[int] = (),  # tokens that are masked in an input of their own
) -> go.Figure:
    """Inputs × tokens, a band per blueprint, below one for what is masked by hand."""
    drawn = slice(window.start, window.stop)
    bands = [f"keep {blueprint.keep}, mask {blueprint.mask}" for blueprint in blueprints]
    by_row, shift_of_row = inputs.blueprint[:MAX_ROWS], inputs.shift[:MAX_ROWS]
    masked = inputs.masked[:MAX_ROWS].astype(float)
    if by_hand:
        by_row, shift_of_row = np.append(len(bands), by_row), np.append(0, shift_of_row)
        masked = np.vstack([np.isin(np.arange(len(tokens)), by_hand), masked])
        bands.append("masked by hand")
    names = [escape(shorten(token, _LONGEST)) for token in tokens[drawn]]
    x = np.arange(window.start, window.stop) + 1
    starts = np.flatnonzero(np.diff(by_row, prepend=-1))  # first row of each band
    row = float(np.clip(900 / len(by_row), 5, 18))  # px
    heads = np.cumsum(np.diff(by_row, prepend=-1) != 0)
    tops = np.arange(len(by_row)) * row + heads * _BAND_HEAD  # px from the grid's top to each row
    bottom = tops[-1] + row
    # room for the name above each band
    edges = np.append(np.insert(tops, starts, tops[starts] - _BAND_HEAD), bottom)
    hover = [
        f"{bands[band]}, shift {shift}<br>masked input {number}" if number else bands[band]
        for number, (band, shift) in enumerate(
            zip(by_row, shift_of_row, strict=True), 0 if by_hand else 1
        )
    ]
    with_heads = np.insert(masked[:, drawn], starts, np.nan, axis=0)
    grid = cells(
        with_heads,
        x,
        edges,
        "%{text}<br>token %{customdata}: “%{x}”",  # as above the column
        (0, 1),
        customdata=np.broadcast_to(x, with_heads.shape),
        text=np.repeat(np.insert(np.array(hover, object), starts, "")[:, None], len(x), axis=1),
        hoverongaps=False,
        autocolorscale=False,
        colorscale=[[0, KEPT], [1, MASKED]],
        showscale=False,
        xgap=2 if len(x) <= 60 else 1,
        ygap=2 if row > 8 else 0,
    )
    legend = [
        dots([None], [None], colour, size=16, marker={"symbol": "square"}, name=name)
        for name, colour in (("kept", KEPT), ("masked", MASKED))
    ]
    place: dict[str, Any] = {"x": 0, "xref": "paper", "xanchor": "left", "yanchor": "bottom"}
    titles = [
        {"text": f"<b>{bands[by_row[start]]}</b>", "y": tops[start], "showarrow": False, **place}
        for start in starts
    ]
    middle = bottom + _BAND_HEAD / 2  # of the row below
    titles += [
        {"text": str(times), "x": place, "y": middle, "showarrow": False}
        for place, times in zip(x.tolist(), inputs.times_masked[drawn], strict=True)
    ]
    shifts = [
        f"shift {shift}" if row_number in starts else str(shift)
        for row_number, shift in enumerate(shift_of_row)
    ] + ["times"]
    if by_hand:
        shifts[0] = ""
    ticks = np.append(tops + row / 2, middle)
    bottom += _BAND_HEAD
    # a few tokens are horizontal, more are vertical
    longest = min(_LONGEST, max(map(len, tokens[drawn])))
    token_height = 40 if len(x) <= 16 else 30 + 8 * longest
    bare: dict[str, Any] = {"ticks": "", **BARE}
    return draw(
        [grid, *legend],
        None,
        {
            "side": "top",
            "tickvals": x,
            "ticktext": names,
            "autotickangles": [0, -90],  # a slanted last one would not fit
            "range": [x[0] - 0.5, x[-1] + 0.5],
            **bare,
        },
        {
            "range": [bottom, 0],
            "tickvals": ticks if row > 14 else [],
            "ticktext": shifts,
            "ticklabelstandoff": 6,
            **bare,
        },
        annotations=titles,
        margin={"t": token_height, "b": _LEGEND, "l": 8, "r": 8},
        height=token_height + int(bottom) + _LEGEND,
    )


_BEFORE, _AFTER = ("before", BEFORE), ("after micro-tuning", AFTER)


def _draw(
    traces: Sequence[Trace], title: str, x: dict, y: dict, *, bottom: int = 16, **layout: Any
) -> go.Figure:
    margin = {"l": 8, "r": 8, "b": bottom}
    return draw(traces, title, x, y, **{"margin": margin, **layout})


def learning_figure(losses: np.ndarray) -> go.Figure:
    """[epoch] mean losses in nats, from before the first step on."""
    return _draw(
        [_main_curve(losses, "the text")],
        "Loss by epoch",
        _epoch_axis(len(losses) - 1),
        _LOSS_AXIS,
        bottom=60,
        showlegend=False,
    )


def cosines_figure(texts: Sequence[str], cosines: np.ndarray) -> go.Figure:
    """[text] cosine similarities of text 1 to others, as bars."""
    names = [
        "<br>".join(map(escape, wrap(f"{i}. {shorten(text, 150)}", 32)))
        for i, text in enumerate(texts, 2)
    ]
    written = [number(cosine, ".2f") for cosine in cosines]
    lowest = min(0.0, *cosines.tolist())  # with room for its value
    return _draw(
        [token_bars(cosines, names, AFTER, "%{customdata}: %{text}", written)],
        "Cosine similarity to text 1",
        {"range": [lowest - 0.12 * (lowest < 0), 1.08], "title": "cosine similarity"},
        {"tickvals": list(range(len(names))), "ticktext": names, **NAMES_OF_BARS},
        bottom=60,
        showlegend=False,
    )


def overview_figure(stations: Sequence[str]) -> go.Figure:
    """The steps as a vertical line of stations, with plotly markup."""
    n = len(stations)
    track = line(
        np.zeros(n),
        np.arange(n),
        VERMILLION,
        size=16,
        mode="lines+markers+text",
        text=[f"   {station}" for station in stations],
        textposition="middle right",
        textfont={"size": 19},
        cliponaxis=False,
    )
    track["marker"]["color"] = VERMILLION
    hidden = {"visible": False, "fixedrange": True}
    return _draw(
        [track],
        "From a text to its cosine similarities",
        {**hidden, "range": [-0.02, 1]},
        {**hidden, "range": [n - 0.6, -0.4]},
        margin={"l": 16, "r": 0, "b": 16},
    )


def words_figure(
    words: Sequence[str], before: Sequence[float], after: Sequence[float], label: str
) -> go.Figure:
    """[word] probabilities at a masked token before and after, likeliest first; NaN for none."""
    names = [
        f"<b>{escape(word)} ✓</b>" if word == label else escape(word)
        for word in (shorten(word, 16) or word for word in words)
    ]
    title = "What the model predicts for the masked token"
    return probabilities_figure(names, {"before": before, "after": after}, title)


def losses_figure(
    tokens: Sequence[str], token_of: np.ndarray, before: np.ndarray, after: np.ndarray
) -> go.Figure:
    """[position] cross-entropy in nats of masked tokens, and each token's mean."""
    sides = ((*_BEFORE, before, -0.14), (*_AFTER, after, 0.14))
    hover = "<b>%{customdata}</b> masked<br>%{y:.2f} nats"
    look: Trace = {"size": 11, "marker": {"opacity": 0.75}}
    look["customdata"] = [escape(tokens[i]) for i in token_of]
    traces = [
        dots(token_of + side, loss, colour, hover, name=f"{name}, mean {loss.mean():.2f}", **look)
        for name, colour, loss, side in sides
    ]
    figure = _draw(
        traces,
        "Loss at every masked position",
        name_axis(tokens, 14, autotickangles=[0, -60, -90], **BARE),
        {"title": "cross-entropy, nats", "rangemode": "tozero"},
        bottom=120,
    )
    for _, colour, loss, _ in sides:
        figure.add_hline(y=loss.mean(), line={"color": colour, "width": 2, "dash": "dash"})
    return figure


def weights_figure(neurons: np.ndarray, before: np.ndarray, after: np.ndarray) -> go.Figure:
    """[neuron] weights of a layer before and after."""
    x = np.arange(len(neurons))
    gaps = np.full(len(neurons), np.nan)
    ways = np.stack([before, after, gaps], axis=1).ravel()
    traces = [line(np.repeat(x, 3), ways, AFTER, size=0, showlegend=False)]
    for (name, colour), values in ((_BEFORE, before), (_AFTER, after)):
        hover = f"neuron %{{customdata}}<br>%{{y:.4f}} {name}"
        traces.append(dots(x, values, colour, hover, size=13, name=name, customdata=neurons))
    numbers = {"tickvals": x, "ticktext": neurons.astype(str), "tickangle": -90}
    x_axis = {"title": "neuron", **numbers, **BARE}
    return _draw(traces, "The weights that change most", x_axis, {"title": "weight"}, bottom=110)


def concatenated_figure(
    names: Sequence[str], vectors: Sequence[np.ndarray], title: str
) -> go.Figure:
    """Each layer's [dim] vector, in one row."""
    ends = np.cumsum([len(vector) for vector in vectors])
    parts = zip(short_layer_names(names), vectors, ends, layer_colours(len(names)), strict=True)
    look: Trace = {"width": 1.5, "size": 0, "fill": "tozeroy"}
    hover, traces = "value %{x}<br>%{y:.4f}", []
    for name, vector, end, colour in parts:
        places = np.arange(end - len(vector), end)
        traces.append(line(places, vector, colour, hover, name=name, **look))
    x = {"title": f"{ends[-1]:,} values", "showgrid": False}
    return _draw(traces, title, x, {"title": "value"}, bottom=120)


def product_figure(
    names: Sequence[str], sizes: Sequence[int], first: np.ndarray, embeddings: Sequence[np.ndarray]
) -> go.Figure:
    """Cumulative cosine similarities of ``first`` to others, value by value, by layer."""
    ends = np.cumsum(sizes)
    by_text = [np.append(0.0, np.cumsum(first * embedding)) for embedding in embeddings]
    traces = []
    for text, sums in enumerate(by_text, 2):
        is_main = text == 2
        colours = layer_colours(len(names)) if is_main else [BEFORE] * len(names)
        hover = f"text {text}, after %{{x}} values<br>%{{y:.3f}}"
        look: Trace = {"width": 4, "size": 0, "dash": None if is_main else "dot"}
        layers = zip(short_layer_names(names), sizes, ends, colours, strict=True)
        for name, size, end, colour in layers:
            places = np.arange(end - size, end + 1)
            title = f"{name} {number(sums[end] - sums[end - size], '+.3f')}"
            look |= {"name": title, "showlegend": is_main}
            traces.append(line(places, sums[places], colour, hover, **look))
        look = {"size": 16, "mode": "markers+text", "textfont": {"size": 20}, "showlegend": False}
        is_highest = sums[-1] == max(other[-1] for other in by_text)
        look |= {"textposition": f"{'top' if is_highest else 'bottom'} left", "cliponaxis": False}
        look["text"] = [f"<b>text {text}: {number(sums[-1], '.3f')}</b>"]
        hover = f"cosine similarity to text {text}: %{{y:.3f}}"
        traces.append(dots(ends[-1:], sums[-1:], colours[-1], hover, **look))
    return _draw(
        traces,
        "The dot product, value by value",
        {"title": "values summed", "range": [0, ends[-1] * 1.03], **BARE},
        {"title": "running sum"},
        bottom=120,
    )
