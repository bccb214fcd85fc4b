"""Which texts are nearest, which methods agree least, and on which texts they differ most."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from neuralviz.embedders.specs import short_labels
from neuralviz.evaluation.similarity import (
    Similarity,
    disagreements,
    furthest_apart,
    least_alike,
    level_ties,
    nearest_shares,
    order_apart,
    random_share,
    similarity,
    usable_labels,
)
from neuralviz.headlines.similar_texts import describe_agreement, note_similar_texts
from neuralviz.jobs.comparing import MethodEmbeddings
from neuralviz.plots.compare import Layout, difference_heatmap, similarity_heatmap, text_names
from neuralviz.plots.theme import even_ticks
from neuralviz.ui.compare import Panel


def test_texts_without_a_label_are_left_out() -> None:
    labels = [*["a"] * 10, *["b"] * 10, "", "", ""]
    places = [0] * 10 + [1] * 10 + [0, 1, 2]
    vectors = np.eye(3)[places] + 0.1 * np.random.default_rng(0).random((23, 3))
    one = similarity("mean", [f"text {i}" for i in range(23)], vectors)
    assert nearest_shares(one, labels).tolist() == [True] * 20
    days = [*map(str, range(20)), "1", "2", "3"]  # a few texts of the same day are no group
    assert usable_labels({"id": ["a", "b", "", ""], "day": days, "topic": labels}) == ["topic"]
    products = one.products.copy()
    products[:19] = products[:, :19] = np.nan  # the first with a label is under way
    under_way = Similarity("mean", one.texts, products, one.zeros)
    assert not len(nearest_shares(under_way, labels))


def test_equally_similar_texts_count_in_part_so_that_ties_are_as_good_as_chance() -> None:
    nothing = similarity("neural", "abcd", np.zeros((4, 2)))
    for labels in (["x", "x", "y", "y"], ["x", "x", "x", "y"]):
        shares = nearest_shares(nothing, labels)
        assert shares.mean() == pytest.approx(random_share(labels))
        assert shares.tolist() == [(labels.count(label) - 1) / 3 for label in labels]
    twins = similarity("mean", "abcd", np.array([[1, 0], [1, 0], [1, 0], [0, 1]]))
    assert nearest_shares(twins, ["x", "x", "x", "y"]).tolist() == [1, 1, 1, 0]
    assert nearest_shares(twins, ["x", "x", "y", "y"]).tolist() == [0.5, 0.5, 0, 1 / 3]
    assert random_share(["x", "x", "x", "y", ""]) == 0.5


def test_the_titles_of_grids_have_the_numbers_of_the_sentence() -> None:
    three = np.array([[1, 0, 0], [1, 0.1, 0], [0, 1, 0], [0, 1, 0.1], [0, 1, 0.2], [0, 0, 1]])
    near, far = (similarity(name, "abcdef", v) for name, v in (("m", three), ("n", three[::-1])))
    labels = {"kind": ["x", "x", "y", "y", "x", "y"]}
    shares = [nearest_shares(s, labels["kind"]).mean() for s in (near, far)]
    assert note_similar_texts([near, far], labels) == [f": same kind for {s:.0%}" for s in shares]
    assert shares[0] != shares[1]
    few = similarity("m", "abc", three[:3])
    assert note_similar_texts([few], {}) == [f": highest {few.products[0, 1]:.2f}"]
    assert few.products[0, 1] > few.products[1, 2] > few.products[0, 2]


def ranked(method: str, *products: float) -> Similarity:
    """Of three or four texts, the products of the pairs 1-2, 1-3, 1-4, 2-3, 2-4, 3-4."""
    n = 3 if len(products) == 3 else 4
    matrix = np.eye(n, dtype=np.float32)
    matrix[np.triu_indices(n, k=1)] = products
    return Similarity(method, tuple("abcd"[:n]), np.maximum(matrix, matrix.T), np.zeros(n))


def test_of_several_methods_those_that_agree_least_are_found() -> None:
    mean = ranked("mean", 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    cls = ranked("cls", 0.9, 0.8, 0.7, 0.6, 0.4, 0.5)
    neural = ranked("neural, fast", 0.1, 0.2, 0.4, 0.3, 0.5, 0.6)
    assert least_alike([mean, neural, cls]) == (0, 1)
    assert least_alike([mean, cls, neural]) == (0, 2)
    assert furthest_apart(mean, neural) == (0, 1)
    assert order_apart(mean, neural)[:3].tolist() == [[0, 1], [2, 3], [0, 2]]
    assert order_apart(mean, neural, [1])[:2].tolist() == [[2, 3], [0, 2]]
    level = ranked("sep", *[0.5] * 6)
    assert least_alike([level, mean, cls]) == (1, 2)
    assert least_alike([level, level, level]) == (0, 1)
    nothing = ranked("sep", *[np.nan] * 6)
    assert furthest_apart(nothing, mean) is None


def test_methods_are_said_without_precision_where_that_is_clear() -> None:
    assert short_labels(["mean", "neural, fast"]) == ("mean", "neural")
    both = ("neural, fast, 1 epoch", "neural, fast")
    assert short_labels(both) == both
    assert short_labels(["neural, fast", "neural, exact"]) == ("neural, fast", "neural, exact")


def test_a_difference_is_one_of_ranks_so_that_no_range_of_similarities_wins() -> None:
    low, high = ranked("neural", 0.04, 0.02, 0.03), ranked("sbert-wk", 0.60, 0.70, 0.65)
    figure = difference_heatmap(low, high, Layout(text_names(low.texts), np.arange(3)))
    (cells,) = figure.data
    assert cells.text == (["", "1→3", "3→1"], ["1→3", "", "2→2"], ["3→1", "2→2", ""])
    assert (cells.zmin, cells.zmax) == (-2, 2)
    assert figure.layout.title.text == "Rank of each pair by neural → by sbert-wk (1: most similar)"
    title = "orange: more similar by neural, purple: by sbert-wk (in ranks)"
    assert (cells.colorbar.title.text, cells.colorbar.dtick) == (title, 1)


def test_a_heatmap_has_the_texts_where_they_fit_and_is_scaled_without_its_diagonal() -> None:
    texts = [f"Text {i}, which is so long that it takes a second line." for i in range(16)]
    vectors = np.random.default_rng(0).random((16, 4))
    figure = similarity_heatmap(
        similarity("neural", texts, vectors), Layout(text_names(texts), np.arange(16))
    )
    ((_, change, height),) = figure.layout.meta["from_width"]
    assert height > 16 * 20
    assert change["yaxis.ticktext"][15] == "16. Text 15, which is so long …"
    assert np.isnan(np.diagonal(figure.data[0].z)).all()
    assert figure.data[0].zmax < 1


def test_methods_that_agree_on_all_pairs_are_only_said_to_agree() -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 3))
    alike = [similarity(name, "uvwxyz", vectors) for name in ("mean", "cls")]
    agreement, further = describe_agreement(*alike)
    assert agreement.startswith("The methods mean and cls agree: their rankings")
    assert further == ""


def test_texts_that_only_a_third_method_hardly_reads_may_be_those_that_differ_most() -> None:
    draw = np.random.default_rng(0).normal
    parts = [
        MethodEmbeddings(name, tuple("abcdef"), np.zeros(6, bool), draw(size=(6, 3)))
        for name in ("mean", "cls", "sep")
    ]
    panel = Panel(SimpleNamespace(), tuple(parts), "Original", {})
    places = [panel.find_place(method) for method in panel.least_alike]
    (third,) = {0, 1, 2} - {*places}
    for place, expected in ((third, []), (places[1], [2, 4])):
        changed = tuple(
            replace(part, hardly_read=(("bundled", (2, 4)),)) if i == place else part
            for i, part in enumerate(parts)
        )
        assert replace(panel, comparison=changed).hardly_read == expected


def test_cosines_that_differ_by_rounding_alone_are_ties_in_ranks_and_lists() -> None:
    level = ranked("cls", *[0.5] * 6)
    mean = ranked("mean", 0.5, 0.50000006, 0.4999999, 0.5, 0.1, 0.1000002)
    assert mean.ranks[0, 1:].tolist() == [1, 1, 1]
    assert mean.ranks[3, 1:3].tolist() == [5, 5]
    assert len(set(disagreements([mean, level]).spread.round(9))) == 2
    row = ranked("mean", 0.5, 0.5 + 0.95e-6, 0.5 + 1.05e-6, 0.1, 0.2, 0.3)  # all differ by rounding
    assert row.ranks[0, 1:].tolist() == [1, 1, 1]
    assert row.of_pairs is row.of_pairs  # once
    assert np.array_equal(level_ties(np.array([np.nan, 0.1])), [np.nan, 0.1], equal_nan=True)
    many = np.linspace(0, 1, 3_000_000)  # without gaps, which makes no tie of all
    assert np.abs(level_ties(many) - many).max() < 2e-6


@pytest.mark.parametrize(
    ("limits", "least", "ticks"),
    [
        ((-2, 2), 1, (1, ".0f")),
        ((-48, 48), 1, (20, ".0f")),
        ((0.06, 0.19), 0, (0.05, ".2f")),
        ((np.nan, np.nan), 1, (1, ".0f")),
    ],
)
def test_ticks_are_round_and_even(
    limits: tuple[float, float], least: float, ticks: tuple[float, str]
) -> None:
    assert tuple(even_ticks(limits, least).values()) == (pytest.approx(ticks[0]), ticks[1])
    assert even_ticks([limits[0]] * 2) == {}
