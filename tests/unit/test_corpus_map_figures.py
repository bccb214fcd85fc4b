"""Maps of a corpus: what is drawn for each point, colours, names, and no HTML of a user's."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from neuralviz.plots.corpus_map import (
    FADED,
    MOST_NAMED,
    Standout,
    even_out,
    map_figure,
    marker_look,
)
from neuralviz.plots.evaluation import label_accuracy_figure
from neuralviz.plots.map_page import PageMap, map_page
from neuralviz.plots.point_colours import (
    COLOURS,
    GREY,
    MAX_CATEGORIES,
    colour_by_category,
    colour_by_number,
)
from neuralviz.plots.standalone import About, standalone_html
from neuralviz.plots.theme import SIGNED_POINTS, method_colour, style


def points(n: int, dimensions: int = 2) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, dimensions)).astype(np.float32)


def named(figure: object) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data}


def test_every_point_is_drawn_once_with_its_row_and_nothing_else() -> None:
    coordinates, rows = points(60), np.arange(60) * 7
    labels = [None if i % 10 == 0 else f"topic {i % 3}" for i in range(60)]
    figure = map_figure(coordinates, rows, colour_by_category("topic", labels), title="map")
    drawn = {
        row: (x, y)
        for trace in figure.data
        for row, x, y in zip(trace.customdata, trace.x, trace.y, strict=True)
    }
    assert sum(len(trace.customdata) for trace in figure.data) == 60
    assert drawn == {7 * i: tuple(place) for i, place in enumerate(coordinates)}
    for trace in figure.data:
        assert (trace.x.dtype, trace.customdata.dtype) == (np.float32, np.int32)
        assert trace.text is None
    assert figure.data[0].marker.color == GREY  # below the others
    assert figure.layout.yaxis.scaleanchor == "x"


def test_categories_go_by_size_and_numbers_by_their_order() -> None:
    assert colour_by_category("topic", ["b", "a", "a", "", " ", float("nan"), None]).categories == (
        "a",
        "b",
    )
    colour = colour_by_category("year", [10.0, 9.0, 9.0, 100.0, None])
    assert colour.categories == ("9", "10", "100")
    np.testing.assert_array_equal(colour.codes, [1, 0, 0, 2, -1])


def test_beyond_24_categories_the_smallest_are_others() -> None:
    labels = [f"{i:02d}" for i in range(30) for _ in range(30 - i)]
    colour = colour_by_category("n", labels)
    figure = map_figure(points(len(labels)), np.arange(len(labels)), colour, title="map")
    traces = named(figure)
    assert len(traces) == MAX_CATEGORIES + 1 == 25
    others = traces["other (6 more)"]
    assert len(others.x) == 6 + 5 + 4 + 3 + 2 + 1
    assert others.marker.color == GREY
    looks = {(trace.marker.color, trace.marker.symbol) for trace in figure.data[1:]}
    assert len(looks) == 24
    assert {colour for colour, _ in looks} == set(COLOURS)
    ranks = [traces[f"{i:02d}"].legendrank for i in range(24)]
    assert ranks == sorted(ranks)
    assert others.legendrank > ranks[-1]
    first = [trace.marker.color for trace in figure.data[1:13]]
    assert len(set(first)) == 12  # so many share no colour


def test_numbers_are_coloured_over_most_of_their_range_and_signed_ones_centred() -> None:
    values = np.append(np.arange(1000.0), [np.nan, 1e6])
    figure = map_figure(
        points(1002), np.arange(1002), colour_by_number("length", values), title="map"
    )
    missing, known = figure.data
    assert (list(missing.customdata), missing.name) == ([1000], "no value")
    assert known.marker.color.dtype == np.float32
    assert (known.marker.cmin, known.marker.cmax) == (pytest.approx(10), pytest.approx(990))
    assert known.marker.colorscale is None  # the template's, which is seen on each ground
    signed = map_figure(
        points(3), np.arange(3), colour_by_number("gain", [-1, 0.2, 0.5]), title="map"
    ).data[0]
    assert signed.marker.cmin == -signed.marker.cmax
    assert [colour for _, colour in signed.marker.colorscale] == [c for _, c in SIGNED_POINTS]


@pytest.mark.parametrize("values", [[], [np.nan, np.inf], [3, 3, 3]])
def test_numbers_that_are_missing_or_all_equal_can_be_drawn(values: list[float]) -> None:
    n = len(values)
    figure = map_figure(points(n), np.arange(n), colour_by_number("x", values), title="map")
    assert json.loads(style(figure, dark=True).to_json())


@pytest.mark.parametrize("dimensions", [2, 3])
def test_what_is_not_selected_fades(dimensions: int) -> None:
    coordinates, rows = points(40, dimensions), np.arange(40) + 100
    colour = colour_by_category("topic", ["a"] * 20 + ["b"] * 20)
    selected = np.array([100, 105, 120, 999])
    figure = map_figure(coordinates, rows, colour, title="map", standout=Standout(selected))
    bright = []
    for trace in figure.data:
        if dimensions == 2:
            assert trace.unselected.marker.opacity == FADED
            bright += [int(trace.customdata[at]) for at in trace.selectedpoints]
        elif trace.marker.opacity > FADED:
            bright += list(trace.customdata)
    assert sorted(bright) == [100, 105, 120]
    assert sum(len(trace.x) for trace in figure.data) == 40
    assert [trace.name for trace in figure.data if trace.showlegend] == ["a", "b"]
    none = Standout(np.array([], dtype=int))
    nothing = map_figure(coordinates, rows, colour, title="map", standout=none)
    if dimensions == 2:
        assert [trace.selectedpoints for trace in nothing.data] == [(), ()]
    else:
        assert {trace.marker.opacity for trace in nothing.data} == {FADED}


def test_a_users_words_are_never_html_nor_variables() -> None:
    evil = "<b>&%{x}"
    figure = map_figure(
        points(2),
        np.arange(2),
        colour_by_category(evil, [evil, "b"]),
        title=evil,
        texts=[f"{evil} {'word ' * 60}", "short"],
        standout=Standout(placed=[(evil, np.zeros(2))]),
        axes=(evil, "second"),
    )
    assert "<b>" not in figure.layout.title.text + figure.layout.xaxis.title.text
    first = next(trace for trace in figure.data if trace.customdata is not None)
    assert first.name.startswith("&lt;b&gt;&amp;")
    assert first.hovertemplate.count("%{") == 1  # the text's own
    lines = first.text[0].split("<br>")
    assert len(lines) == 2
    assert lines[0].startswith("&lt;b&gt;&amp;%{x} word")
    assert all(len(line) < 80 for line in lines)
    assert figure.layout.annotations[0].text == "<b>&lt;b&gt;&amp;%{x}</b>"


def test_new_sentences_and_the_highlighted_row_lie_on_top() -> None:
    coordinates = points(5)
    standout = Standout(highlighted=4, placed=[("new", coordinates[0] + 1)])
    figure = map_figure(coordinates, np.arange(5) * 2, title="map", standout=standout)
    _, ring, star = figure.data
    np.testing.assert_array_equal(ring.x, [coordinates[2, 0]] * 2)
    assert star.marker.symbol == "star"
    assert ring.customdata is star.customdata is None  # never part of a lasso's rows
    assert figure.layout.annotations[0].text == "<b>new</b>"
    absent = map_figure(coordinates, np.arange(5), title="map", standout=Standout(highlighted=77))
    assert len(absent.data) == 1


def test_clusters_are_named_at_their_places_and_no_name_lies_on_another() -> None:
    coordinates = points(50)
    at = coordinates[:3]
    names = [("1 rain, snow", at[0]), ("2 <b>, bread", at[1]), ("3 a long name, of words", at[2])]
    figure = map_figure(coordinates, np.arange(50), title="", standout=Standout(names=names))
    labels = figure.layout.annotations
    assert [label.text for label in labels] == [
        "<b>1 rain, snow</b>",
        "<b>2 &lt;b&gt;, bread</b>",
        "<b>3 a long name</b>",
    ]
    np.testing.assert_allclose([(label.x, label.y) for label in labels], at)
    larger = {f"annotations.{i}.font.size" for i in range(3)}
    assert larger <= figure.layout.meta["stage"].keys()
    same = [(f"{i} name", at[0]) for i in range(9)]
    crowded = map_figure(coordinates, np.arange(50), title="", standout=Standout(names=same))
    shifts = [label.yshift for label in crowded.layout.annotations]
    assert len(shifts) == len(set(shifts)) < 9
    apart = [(f"{i} name", np.array([0, 100.0 * i])) for i in range(MOST_NAMED + 9)]
    spread = np.array([[0, 0], [0, 100_000.0]])
    busy = map_figure(spread, np.arange(2), title="", standout=Standout(names=apart))
    assert len(busy.layout.annotations) <= MOST_NAMED
    space = map_figure(
        points(5, 3), np.arange(5), title="", standout=Standout(names=[("1 a", np.zeros(3))])
    )
    assert space.layout.scene.annotations[0].text == "<b>1 a</b>"


def test_the_name_of_equal_texts_stands_beside_their_place() -> None:
    places = np.array([[0, 0]] * 9 + [[9, 9], [9, -9]], dtype=np.float32)
    names = [("1 comment", places[0])]
    figure = map_figure(places, np.arange(11), title="", standout=Standout(names=names))
    assert [label.yshift for label in figure.layout.annotations] == [20]


def test_no_name_of_a_cluster_lies_on_the_label_of_a_new_sentence() -> None:
    coordinates = points(50, 2)
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    star = (low + high) / 2
    above = star + np.array([0, 30 / 280]) * (high - low)[1]  # where its second line is
    standout = Standout(
        placed=[("When does the last train leave?", star)],
        names=[("1 train", above), ("2 far away", low)],
    )
    figure = map_figure(coordinates, np.arange(50), title="map", standout=standout)
    texts = [label.text for label in figure.layout.annotations]
    assert texts[-1].startswith("<b>When does the")
    name, *_ = (label for label in figure.layout.annotations if label.text == "<b>2 far away</b>")
    assert name.yshift == 0
    moved = [label for label in figure.layout.annotations if label.text == "<b>1 train</b>"]
    assert all(label.yshift for label in moved)  # or left out


@pytest.mark.parametrize("dimensions", [2, 3])
def test_lines_go_from_the_chosen_text_to_its_neighbours_as_one_trace(dimensions: int) -> None:
    coordinates = points(20, dimensions)
    standout = Standout(highlighted=4, near=coordinates[[7, 9]])
    figure = map_figure(coordinates, np.arange(20), title="map", standout=standout)
    (lines,) = (trace for trace in figure.data if trace.mode == "lines")
    ends = np.stack([lines[axis] for axis in "xyz"[:dimensions]], axis=1).reshape(2, 3, dimensions)
    np.testing.assert_array_equal(ends[:, 0], [coordinates[4]] * 2)
    np.testing.assert_array_equal(ends[:, 1], coordinates[[7, 9]])
    assert np.isnan(ends[:, 2]).all()
    assert lines.customdata is None  # never part of a lasso's rows


def test_lines_go_from_a_new_sentence_to_its_nearest_texts() -> None:
    coordinates = points(9, 2)
    near = coordinates[[1, 4]]
    standout = Standout(placed=[("new", np.array([5.0, 6.0]))], near_placed=[near])
    figure = map_figure(coordinates, np.arange(9), title="map", standout=standout)
    (line,) = (trace for trace in figure.data if trace.mode == "lines")
    np.testing.assert_array_equal(line.x[0::3], [5, 5])
    np.testing.assert_array_equal(line.y[1::3], near[:, 1])


@pytest.mark.parametrize("dimensions", [2, 3])
def test_what_a_filter_leaves_out_is_pale_and_cannot_be_selected(dimensions: int) -> None:
    coordinates, rows = points(10, dimensions), np.arange(10) * 3
    within = np.arange(10) % 2 == 0
    colour = colour_by_category("topic", ["a", "b", "c", "d", "a"] * 2)
    figure = map_figure(
        coordinates,
        rows,
        colour,
        title="map",
        texts=[f"text {i}" for i in range(10)],
        within=within,
    )
    left_out, *others = figure.data
    assert (left_out.marker.color, left_out.hoverinfo, left_out.customdata) == (GREY, "skip", None)
    np.testing.assert_array_equal(left_out.x, coordinates[~within, 0])
    assert sorted(int(row) for trace in others for row in trace.customdata) == [0, 6, 12, 18, 24]
    assert {text for trace in others for text in trace.text} == {
        f"text {i}" for i in range(0, 10, 2)
    }
    whole = map_figure(coordinates, rows, colour, title="map")
    assert {t.name: t.marker.color for t in others}.items() <= {
        t.name: t.marker.color for t in whole.data
    }.items()  # colours stay


def test_maps_beside_each_other_have_frames_of_one_height() -> None:
    few = colour_by_category("form", ["a", "b"] * 15)
    many_labels = colour_by_category("topic", [f"a topic {i}" for i in range(10)] * 3)
    numbers = colour_by_number("length", np.arange(30.0))
    figures = [
        map_figure(points(30), np.arange(30), colour, title=title)
        for colour, title in ((few, "mean"), (many_labels, "neural, fast · UMAP"), (numbers, "x"))
    ]
    even_out(figures)
    assert figures[0].layout.meta["from_width"][-1][1]["legend.orientation"] == "v"
    for figure in figures[1:]:
        for first, one in zip(
            figures[0].layout.meta["from_width"], figure.layout.meta["from_width"], strict=True
        ):
            for path in ("margin.b", "margin.t"):
                assert (first[0], first[1].get(path)) == (one[0], one[1].get(path))
    assert (
        figures[1].layout.meta["stage"]["legend.entrywidth"] > figures[1].layout.legend.entrywidth
    )
    for figure in figures[:2]:  # their legends begin at one line, right below the frames
        legend = figure.layout.legend
        assert (legend.y, legend.yref, legend.yanchor) == (0, "paper", "top")
    assert figures[2].layout.legend.y is None  # the colour bar is there
    alone = map_figure(points(30), np.arange(30), few, title="mean")
    even_out([alone])
    below = [
        [
            change["margin.b"]
            for _, change in figure.layout.meta["from_width"]
            if "margin.b" in change
        ]
        for figure in (alone, figures[0])
    ]
    assert all(one < other for one, other in zip(*below, strict=True))


def test_few_points_are_large_and_many_can_be_seen_through() -> None:
    looks = [marker_look(n) for n in (0, 50, 500, 5_000, 50_000)]
    sizes, opacities = zip(*looks, strict=True)
    assert sorted(sizes, reverse=True) == list(sizes)
    assert sorted(opacities, reverse=True) == list(opacities)
    assert sizes[-1] >= 2.5
    assert opacities[-1] >= 0.6


def test_a_hundred_thousand_points_are_sent_as_little_and_at_once() -> None:
    n = 100_000
    coordinates, rows = points(n), np.arange(n)
    colour = colour_by_category("topic", [f"topic {i % 10}" for i in range(n)])
    start = time.perf_counter()
    sent = style(map_figure(coordinates, rows, colour, title="map"), dark=False).to_json(
        validate=False
    )
    assert time.perf_counter() - start < 1  # 0.05 s on a machine that is free
    assert len(sent) < 20 * n  # two floats and a row number each, in base64


def test_accuracies_are_bars_by_method_with_the_most_frequent_label_as_a_line() -> None:
    values = np.array([[0.8, 0.7, 0.85], [0.5, 0.4, 0.6], [np.nan] * 3, [0.5, 0.4, 0.6]])
    methods = ["neural", "mean", "mean (layer 3)", "cls"]
    baselines = {"topic": 0.25, "<i>": 0.5}
    figure = label_accuracy_figure(methods, {"topic": values, "<i>": values}, baselines)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    colours = [method_colour(method) for method in ("neural", "mean", "cls")]
    assert [bar.marker.color for bar in (*bars[:2], bars[3])] == colours
    assert bars[2].marker.color not in colours
    assert bars[1].marker.pattern.shape != bars[3].marker.pattern.shape
    np.testing.assert_allclose(bars[0].y, [80, 80])
    assert {bar.insidetextanchor for bar in bars} == {"middle"}  # not on the baseline
    np.testing.assert_allclose(bars[0].error_y.arrayminus, [10, 10])
    np.testing.assert_allclose(bars[0].error_y.array, [5, 5])
    lines = [trace for trace in figure.data if trace.type == "scatter"]
    assert [line.y[0] for line in lines] == [25, 50]
    assert figure.layout.xaxis.ticktext == ("topic", "&lt;i&gt;")


def test_a_page_of_its_own_is_laid_out_for_its_width_and_sends_nothing_anywhere() -> None:
    figure = map_figure(
        points(3), np.arange(3), colour_by_category("a", ["b", "c", "d"]), title="map"
    )
    page = standalone_html(figure)
    assert '"showSendToCloud": false' in page
    assert '"orientation":"v"' in page
    assert figure.layout.legend.orientation is None  # the figure itself is as it was


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("n", [0, 1])
def test_nothing_and_one_point_can_be_drawn(n: int, dimensions: int) -> None:
    for colour in (None, colour_by_category("a", ["b"] * n), colour_by_number("a", [np.nan] * n)):
        figure = map_figure(
            points(n, dimensions),
            np.arange(n),
            colour,
            title="",
            standout=Standout(np.arange(n), placed=[("new", np.zeros(dimensions))]),
            axes=["first", "second", "third"][:dimensions],
        )
        assert sum(len(trace.x) for trace in figure.data) == n + 1


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & <!-- \u2028 “x”"


def a_page(n: int = 30) -> tuple[str, dict]:
    """A page with two maps, flat and in space, and the data in it."""
    texts = [f"text {i} {HOSTILE}" for i in range(n)]
    colours = {
        HOSTILE: colour_by_category(HOSTILE, [HOSTILE, "b", None] * (n // 3)),
        "length": colour_by_number("length", [np.nan, *range(1, n)]),
    }
    maps = [
        PageMap(f"{HOSTILE} {d}", points(n, d), colours, [(HOSTILE, np.zeros(d))]) for d in (2, 3)
    ]
    page = map_page(maps, texts, About(HOSTILE, {"corpus": HOSTILE}))
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    return page, json.loads(data[1])


def test_a_page_with_both_maps_runs_nothing_of_a_text_and_needs_no_network() -> None:
    page, data = a_page()
    assert data["texts"][3] == f"text 3 {HOSTILE}"  # whole, to be searched
    assert [len(one["points"]) for one in data["maps"]] == [2, 3]
    assert "alert(1)</script>" not in page
    assert "<img" not in page.replace(get_plotlyjs(), "")
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=", page)
    own = page.replace(get_plotlyjs(), "")
    assert own.count("<script") == own.count("</script>") == 3
    for one in data["maps"]:
        categories, numbers = one["colours"]
        assert sorted(i for group in categories for i in group["at"]) == list(range(30))
        assert "<" not in "".join(g["trace"]["name"] + g["says"] for g in categories)
        assert [len(group["at"]) for group in numbers] == [1, 29]
        assert None not in numbers[1]["values"][1:]
    assert datetime.now(UTC).strftime("%Y-%m-%d") in own


def test_a_page_of_many_long_texts_holds_their_beginnings_and_says_so(monkeypatch) -> None:
    monkeypatch.setattr("neuralviz.plots.map_page.MOST_CHARACTERS", 30 * 130)
    n = 30
    texts = ["a word and " * 40] * n
    one = PageMap("mean", points(n), {"a": colour_by_category("a", ["b"] * n)})
    page = map_page([one], texts, About("corpus"))
    assert "Search covers the first 130 characters of each text." in page
    assert texts[0][:130] in page
    assert texts[0][:131] not in page
    assert "Search covers" not in map_page([one], ["short"] * n, About("corpus"))
