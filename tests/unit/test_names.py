from __future__ import annotations

import pytest

from neuralviz.words import free_name


@pytest.mark.parametrize(
    ("name", "taken", "options", "free"),
    [
        ("x", ["y"], {}, "x"),
        ("x", ["x", "x (2)"], {}, "x (3)"),
        ("x", ["x"], {"mark": "label"}, "x (label)"),
        ("X", ["x"], {}, "X"),
        ("X", ["x", "x (LABEL)"], {"mark": "label", "fold": str.casefold}, "X (label 2)"),
    ],
)
def test_a_name_that_is_taken_gets_a_word_or_a_number(name, taken, options, free) -> None:
    assert free_name(name, taken, **options) == free
