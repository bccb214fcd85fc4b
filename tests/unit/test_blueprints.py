"""Masking blueprints: the paper's Figure 9, counts by hand, and its pseudocode."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralviz.errors import SettingsError
from neuralviz.micro_tuning import (
    DEFAULT_BLUEPRINTS,
    Blueprint,
    check_blueprints,
    mask_inputs,
    parse_blueprints,
)

# Six tokens, a row an input, x where a token is masked (paper, Figure 9).
FIGURE_9 = """
..x..x
x..x..
.x..x.
.x.x.x
x.x.x.
.xx.xx
x.xx.x
xx.xx.
.xxx.x
x.xxx.
xx.xxx
xxx.xx
""".split()


def test_figure_9() -> None:
    made = mask_inputs(6, DEFAULT_BLUEPRINTS)
    rows = ["".join("x" if masked else "." for masked in row) for row in made.masked]
    assert rows == FIGURE_9
    assert made.blueprint.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert made.shift.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 3]
    # in 1 of (2,1)'s rows, 1 of (1,1)'s, 2 of (1,2)'s, 3 of (1,3)'s
    assert made.times_masked.tolist() == [7, 7, 7, 7, 7, 7]


@pytest.mark.parametrize(
    ("n_tokens", "inputs", "masked"),
    [
        # One token: every shift of the period, and it is masked by all but the first `keep`:
        # (2,1): s = 0 and, of (0 - s) mod 3 >= 2, s = 1 only → 1; (1,1): s = 1 → 1;
        # (1,2): s = 1, 2 → 2; (1,3): s = 1, 2, 3 → 3.
        (1, 7, 7),
        # Over a whole period of shifts each token is masked m times: 600·(1+1+2+3).
        (600, 12, 4200),
    ],
)
def test_counts(n_tokens: int, inputs: int, masked: int) -> None:
    made = mask_inputs(n_tokens, DEFAULT_BLUEPRINTS)
    assert made.masked.shape == (inputs, n_tokens)
    assert made.masked.sum() == masked
    assert len(made.blueprint) == len(made.shift) == inputs


def pseudocode(n: int, blueprints: list[tuple[int, int]]) -> list[list[bool]]:
    """Figure 10, statement by statement: walk along the text, keep k tokens, mask m."""
    inputs = []
    for k, m in blueprints:
        for shift in range(min(k + m, n)):
            masked = [False] * n
            for position in range(n):
                phase = position - shift
                while phase < 0:
                    phase += k + m
                while phase >= k + m:
                    phase -= k + m
                if phase >= k:
                    masked[position] = True
            if True in masked:
                inputs.append(masked)
    return inputs


blueprint_lists = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5)


@settings(deadline=None, max_examples=150)
@given(st.integers(2, 60), blueprint_lists)
def test_agrees_with_the_papers_pseudocode(n: int, blueprints: list[tuple[int, int]]) -> None:
    assert mask_inputs(n, blueprints).masked.tolist() == pseudocode(n, blueprints)


@pytest.mark.parametrize(
    "typed",
    [
        "(2,1), (1,1)",
        "2 1; 1 1",
        "[(2, 1), (1, 1)]",
        "2,1\n1,1\n",
        "(2 1)(1 1)",
        " ( +2 , 1 ),(1,1), ",
    ],
)
def test_blueprints_as_typed(typed: str) -> None:
    assert parse_blueprints(typed) == (Blueprint(2, 1), Blueprint(1, 1))


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Enter 1 to 32 blueprints"),
        ("two, one", "“two, one” is not a blueprint"),
        ("(2)", "“2” is not a blueprint"),
        ("(2,1", "is not a blueprint"),
        ("(2,1) and (1,1)", "“and” is not a blueprint"),
        ("(2.5, 1)", "is not a blueprint"),
        ("()", "“” is not a blueprint"),
        ("(2,1) (0,3)", r"\(0, 3\) must keep at least 1"),
    ],
)
def test_what_is_typed_wrongly(typed: str, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        parse_blueprints(typed)


@pytest.mark.parametrize(
    ("blueprints", "sentence"),
    [
        ([(3, 0)], r"\(3, 0\) must keep .* mask at least 1"),
        ([(-1, 2)], r"\(-1, 2\) must keep at least 1"),
        ([(1, 512)], r"\(1, 512\) must .* a period of at most 512"),
        ([(2, 1, 1)], r"not \(2, 1, 1\)"),
        ([(2.0, 1)], r"not \(2.0, 1\)"),
        (["21"], "not '21'"),
        ([None], "not None"),
        ([(1, 1)] * 33, "Enter 1 to 32 blueprints.* not 33"),
        ([(511, 1)] * 4 + [(1, 1)], "up to 2,050 .*; the maximum is 2,048"),
    ],
)
def test_blueprints_that_make_no_sense(blueprints: list, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        check_blueprints(blueprints)
    with pytest.raises(SettingsError):
        mask_inputs(6, blueprints)
