"""Numbers as they stand in sentences, labels and tables."""

from __future__ import annotations

import pytest

from neuralviz.words import number


@pytest.mark.parametrize(
    ("value", "spec", "shown"),
    [
        (-0.5, ".2f", "−0.50"),
        (0.5, "+.2f", "+0.50"),
        (-0.004, ".2f", "0.00"),
        (0.004, "+.2f", "0.00"),
        (-0.0004, ".1%", "0.0%"),
        (-0.0114, ".1%", "−1.1%"),
        (-0.00001, ".3g", "−1e-05"),
        (-3.28, ".3f", "−3.280"),
    ],
)
def test_a_number_has_a_minus_sign_and_zero_has_none(value: float, spec: str, shown: str) -> None:
    assert number(value, spec) == shown
