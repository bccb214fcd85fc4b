"""Numbers and names as they stand in sentences, labels and tables."""

from __future__ import annotations

from neuralviz.words import about_seconds, free_name, joined, number, percent, why_above_100


def test_a_number_has_a_minus_sign_and_zero_has_none() -> None:
    numbers = {(-0.5, ".2f"): "−0.50", (0.5, "+.2f"): "+0.50", (-0.004, ".2f"): "0.00"}
    numbers |= {(-0.0004, ".1%"): "0.0%", (-0.0114, ".1%"): "−1.1%", (-3.28, ".3f"): "−3.280"}
    assert {value: number(*value) for value in numbers} == numbers


def test_shares_above_100_percent_are_explained_where_they_are_shown() -> None:
    assert not why_above_100([0.7, 0.4, -0.1])
    assert not why_above_100([1.0004, -0.0004])  # both are shown without the difference
    assert "exceed 100%" in why_above_100([41.2, -40.0, -0.2])


def test_names_are_listed_as_one_would() -> None:
    assert [joined("abc"[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert joined("abc", "or") == "a, b or c"


def test_times_are_said_as_one_would() -> None:
    times = [about_seconds(seconds) for seconds in (0.1, 40.4, 89, 90, 200, 5399, 7300)]
    assert times == [
        *("about 1 s", "about 40 s", "about 89 s"),
        *("about 2 min", "about 3 min", "about 90 min", "about 2 h"),
    ]


def test_only_all_is_a_hundred_percent() -> None:
    shares = {1.0: "100%", 0.9999: "99.9%", 0.998: "99.8%", 0.994: "99%", 0.5: "50%"}
    shares |= {0.002: "0.2%", 0.00001: "less than 0.1%", 0.0: "0%"}
    assert {share: percent(share) for share in shares} == shares


def test_a_name_that_is_taken_gets_a_word_or_a_number() -> None:
    assert free_name("x", ["y"]) == "x"
    assert free_name("x", ["x", "x (2)"]) == "x (3)"
    assert free_name("X", ["x"]) == "X"
    assert free_name("x", ["x"], mark="label") == "x (label)"
    assert free_name("x", ["x", "x (label)"], mark="label") == "x (label 2)"
