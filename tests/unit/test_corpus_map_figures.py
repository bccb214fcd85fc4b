"""Maps of a corpus: what is drawn for each point, colours, names, and no HTML of a user's."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from neuralviz.maps.opened import Window
from neuralviz.plots.corpus_map import (
    COLOURS,
    FADED,
    GREY,
    LABEL_CHARACTERS,
    MAX_CATEGORIES,
    MOST_NAMED,
    STAGE_CATEGORIES,
    Density,
    PointColour,
    Standout,
    colour_by_code,
    colour_by_number,
    darken,
    date_ticks,
    even_out,
    levels,
    map_figure,
)
from neuralviz.plots.theme import SIGNED_POINTS, shorten, style
from neuralviz.store.corpora import encode_labels


def colour_by_category(name: str, labels: list[str | None]) -> PointColour:
    return colour_by_code(name, *encode_labels(pa.array(labels, pa.string())))


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
    assert figure.data[0].marker.color == GREY  # below the others


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
    assert figure.layout.meta["others"] == {
        "n": 18,
        "from": traces["12"].legendrank,
    }  # on the stage
    ranks = [traces[f"{i:02d}"].legendrank for i in range(24)]
    assert ranks == sorted(ranks)
    assert others.legendrank > ranks[-1]
    assert len({trace.marker.color for trace in figure.data[1:13]}) == 12  # so many share none


def test_labels_that_begin_alike_stay_apart_whatever_is_filtered_out() -> None:
    labels = [100 * "a" + ending for ending in "bbc"]
    figure = map_figure(points(3), np.arange(3), colour_by_category("n", labels), title="map")
    (first, second) = figure.data
    assert {first.name[-1], second.name[-1]} == {"b", "c"}
    assert {first.meta, second.meta} == set(labels)


@pytest.mark.parametrize(("name", "is_shown"), [("no typical words", False), ("bank rate", None)])
def test_clusters_that_no_words_tell_apart_have_no_legend(name: str, is_shown: bool | None) -> None:
    colour = PointColour(
        "cluster", (f"1 {name}", f"2 {name}"), np.array([0, 1, 0]), are_clusters=True
    )
    assert map_figure(points(3), np.arange(3), colour, title="map").layout.showlegend is is_shown


def test_the_stage_greys_the_rarest_numbers() -> None:
    years = [str(year) for year in range(2001, 2021) for _ in range(year - 2000)]
    categories = colour_by_category("year", years).categories
    assert categories[:STAGE_CATEGORIES] == tuple(map(str, range(2021 - STAGE_CATEGORIES, 2021)))
    assert categories[STAGE_CATEGORIES:] == tuple(map(str, range(2001, 2021 - STAGE_CATEGORIES)))


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


@pytest.mark.parametrize("dimensions", [2, 3])
def test_what_is_not_selected_fades(dimensions: int) -> None:
    coordinates, rows = points(40, dimensions), np.arange(40) + 100
    colour = colour_by_category("topic", ["a"] * 20 + ["b"] * 20)
    selected = np.isin(np.arange(1000), [100, 105, 120, 999])
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


def test_a_users_words_are_never_html_nor_variables() -> None:
    evil = "<b>&%{x}"
    figure = map_figure(
        points(2),
        np.arange(2),
        colour_by_category(evil, [evil, "b"]),
        title=evil,
        texts=[f"{evil} {'word ' * 60}", "short"],
        standout=Standout(placed=(evil, np.zeros(2))),
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
    assert figure.layout.annotations[0].text == "<b>“&lt;b&gt;&amp;%{x}”</b>"


def test_categories_go_by_size_and_numbers_by_their_order() -> None:
    assert colour_by_category("topic", ["b", "a", "a", "", " ", None]).categories == ("a", "b")
    colour = colour_by_category("year", ["10", "9", "9", "100", None])
    assert colour.categories == ("9", "10", "100")
    np.testing.assert_array_equal(colour.codes, [1, 0, 0, 2, -1])


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("values", [[], [np.nan], [3, 3, 3]])
def test_nothing_and_equal_numbers_can_be_drawn(values: list[float], dimensions: int) -> None:
    n = len(values)
    for colour in (None, colour_by_category("a", ["b"] * n), colour_by_number("a", values)):
        figure = map_figure(
            points(n, dimensions), np.arange(n), colour, title="",
            standout=Standout(np.ones(n, dtype=bool), placed=("new", np.zeros(dimensions))),
            axes=["first", "second", "third"][:dimensions],
        )  # fmt: skip
        assert sum(len(trace.x) for trace in figure.data) == n + 1
        assert json.loads(style(figure, dark=True).to_json())


@pytest.mark.parametrize("dimensions", [2, 3])
def test_what_a_filter_leaves_out_is_pale_and_cannot_be_selected(dimensions: int) -> None:
    coordinates, rows = points(10, dimensions), np.arange(10) * 3
    within = np.arange(10) % 2 == 0
    colour = colour_by_category("topic", ["a", "b", "c", "d", "a"] * 2)
    texts = [f"text {i}" for i in range(10)]
    figure = map_figure(coordinates, rows, colour, title="map", texts=texts, within=within)
    left_out, *others = figure.data
    assert (left_out.marker.color, left_out.hoverinfo, left_out.customdata) == (GREY, "skip", None)
    np.testing.assert_array_equal(left_out.x, coordinates[~within, 0])
    assert sorted(int(row) for trace in others for row in trace.customdata) == [0, 6, 12, 18, 24]
    assert {text for trace in others for text in trace.text} == set(texts[::2])
    whole = named(map_figure(coordinates, rows, colour, title="map"))
    assert all(trace.marker.color == whole[trace.name].marker.color for trace in others)


def read_names(figure: object) -> dict[str, object]:
    labels = figure.layout.annotations or figure.layout.scene.annotations
    return {label.text.removeprefix("<b>").removesuffix("</b>"): label for label in labels}


def draw_names(names: list, coordinates: np.ndarray, **more: object) -> dict[str, object]:
    standout, rows = Standout(names=names), np.arange(len(coordinates))
    return read_names(map_figure(coordinates, rows, title="", standout=standout, **more))


TIGHT = 27  # clusters
CENTRES = np.random.default_rng(3).uniform(-1, 1, size=(TIGHT, 2)) * [9, 6]
CLOUD = np.repeat(CENTRES, 11, axis=0) + 0.15 * np.random.default_rng(4).normal(size=(297, 2))
TIGHT_NAMES = [(f"problem {i}", centre) for i, centre in enumerate(CENTRES)]
HOME = Window(-10, 10, -7, 7)


def test_names_are_at_their_clusters_short_and_escaped() -> None:
    places = points(50)
    names = [("rain snow", places[0]), ("<b> bread", places[1]), ("word " * 40, places[2])]
    labels = draw_names([*names, ("x" * 200, places[3])], places)
    assert list(labels)[:2] == ["rain snow", "&lt;b&gt; bread"]
    assert all(len(name) <= LABEL_CHARACTERS + len("&lt;&gt;") for name in labels)
    assert [label.x for label in labels.values()] == places[:4, 0].tolist()
    assert not any(label.visible for label in labels.values())  # until the browser places them
    (in_space,) = draw_names([("a", np.zeros(3))], points(5, 3)).values()
    assert in_space.visible is not False


@pytest.mark.parametrize("n_labels", [2, 30])
def test_wrong_predictions_have_crosses_and_no_names_on_the_stage_if_the_legend_tells_all(
    n_labels: int,
) -> None:
    standout = Standout(names=[("ice", np.zeros(2))], wrong=points(2)[:2])
    labels = colour_by_category("form", [str(i) for i in range(n_labels)])
    figure = map_figure(points(n_labels), np.arange(n_labels), labels, title="", standout=standout)
    (crosses,) = (trace for trace in figure.data if trace.name == "predicted wrongly")
    assert crosses.marker.symbol == "x" and len(crosses.x) == 2
    assert figure.layout.annotations
    assert ("annotations" in figure.layout.meta["stage"]) is (n_labels == 2)


def test_of_very_many_clusters_those_in_view_are_named() -> None:
    names = [(f"{i} name", place) for i, place in enumerate(points(2 * MOST_NAMED))]
    window = Window(-0.5, 0.5, -0.5, 0.5)
    labels = draw_names(names, points(50), home=HOME, window=window)
    assert 20 < len(labels) < MOST_NAMED
    assert all(abs(label.x) <= 0.5 >= abs(label.y) for label in labels.values())
    assert all(f"{label.name} name" == name for name, label in labels.items())
    assert len(draw_names(names, points(50), home=HOME)) == MOST_NAMED


def test_names_have_the_colours_of_clusters_alone_and_then_replace_the_legend() -> None:
    labels = np.repeat(np.arange(TIGHT), 11)
    names = tuple(f"{i + 1} problem {i}" for i in range(TIGHT))
    by_cluster = PointColour("cluster", names, labels, are_clusters=True)
    standout, rows = Standout(names=TIGHT_NAMES), np.arange(297)
    for colour, is_folded in ((by_cluster, True), (replace(by_cluster, are_clusters=False), False)):
        figure = map_figure(CLOUD, rows, colour, title="", standout=standout, home=HOME)
        traces = named(figure)
        for label in figure.layout.annotations:
            cluster = int(label.name)
            name = shorten(names[cluster], 16)
            tint = traces[name].marker.color if cluster < MAX_CATEGORIES else GREY
            assert label.font.color == (darken(tint) if is_folded else None)
            assert not is_folded or not label.showarrow or label.arrowcolor == tint
        assert figure.layout.showlegend is (False if is_folded else None)
    unnamed = map_figure(CLOUD, rows, by_cluster, title="", home=HOME)
    assert unnamed.layout.showlegend is None


@pytest.mark.parametrize("colour", [*COLOURS, GREY])
def test_names_in_colours_can_be_read_on_light_and_dark_pages(colour: str) -> None:
    def luminance(written: str) -> float:  # WCAG 2.2
        shares = np.array([int(written[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    own = luminance(darken(colour)) + 0.05
    assert 1.05 / own > 4
    assert own / (luminance("#14171A") + 0.05) > 2.5


def test_a_map_opens_with_the_middle_of_its_points_in_all_of_the_frame() -> None:
    figure = map_figure(CLOUD, np.arange(297), title="", home=HOME)
    assert (tuple(figure.layout.xaxis.range), tuple(figure.layout.yaxis.range)) == (
        (-10, 10), (-7, 7),
    )  # fmt: skip
    assert figure.layout.yaxis.scaleanchor is None  # fills the frame
    true = map_figure(CLOUD, np.arange(297), title="", home=HOME, axes=("first", "second"))
    assert true.layout.yaxis.scaleanchor == "x"  # its distances mean something
    topics = [colour_by_category("topic", list(letters) * 99) for letters in ("abc", "abd")]
    folded = replace(topics[0], are_clusters=True)  # names on the map replace its legend
    standout = Standout(names=TIGHT_NAMES)
    for second, margin in ((topics[0], None), (topics[1], 110), (folded, 110)):
        maps = [
            map_figure(CLOUD, np.arange(297), colour, title=colour.name, standout=standout)
            for colour in (topics[0], second)
        ]
        even_out(maps)  # room for legends is left only where they differ
        assert [figure.layout.margin.b for figure in maps] == [margin, margin]
        assert maps[0].layout.meta["titles"] == ["topic", "topic"]
        hidden = [figure.layout.meta["hides_legend"] for figure in maps]
        assert hidden == [False, second is topics[0]]  # one of equal legends, on the stage


def test_dates_are_written_as_such_beside_the_points_and_the_colours() -> None:
    days = np.append(20_089.0 + np.arange(300), np.nan)  # from 2025-01-01
    colour = replace(colour_by_number("opened", days), is_date=True)
    missing, known = map_figure(points(301), np.arange(301), colour, title="").data
    assert (known.hovertext[0], known.hovertext[-1]) == ("2025-01-01", "2025-10-27")
    assert "%{hovertext}" in known.hovertemplate
    assert list(known.marker.colorbar.ticktext) == ["2025-04", "2025-07", "2025-10"]
    assert list(known.marker.colorbar.tickvals) == [20_179, 20_270, 20_362]
    assert len(missing.x) == 1
    week = date_ticks(20_089, 20_096)
    assert week["ticktext"] == ["2025-01-01", "2025-01-04", "2025-01-07"]
    assert date_ticks(0, 365 * 80)["ticktext"] == ["1970", "1990", "2010", "2030"]


def test_shades_of_a_large_map_are_by_the_logarithm_of_counts_and_bound_the_whole() -> None:
    counts = np.array([[0, 1, 3, 7], [0, 0, 0, 1]])
    assert levels(np.array([[10**7, 1]])).tolist() == [[255, 11]]
    density = Density(counts, (0.0, 4.0, 10.0, 12.0), (-1.0, 9.0, 10.0, 12.0))
    standout = Standout(np.arange(100) > 90, 20, near=points(2), names=[("<i>", np.array([0, 11]))])
    rows = np.array([4, 20, 99])
    figure = map_figure(points(3), rows, title="<b>", standout=standout, density=density)
    shades, corners, drawn, *_ = figure.data
    np.testing.assert_array_equal(shades.z, [[0, 85, 170, 255], [0, 0, 0, 85]])
    assert (shades.x0, shades.dx, shades.y0, shades.dy) == (0.5, 1, 10.5, 1)
    assert (shades.zmin, shades.zmax) == (0, 255)
    assert (list(corners.x), list(corners.y), corners.marker.opacity) == ([-1, 9], [10, 12], 0)
    assert (list(drawn.customdata), list(drawn.selectedpoints)) == (rows.tolist(), [2])
    assert figure.layout.title.text == "&lt;b&gt;"
    assert "<i>" not in figure.to_json()
