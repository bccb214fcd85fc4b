"""What the figures of micro-tuning look like."""

from __future__ import annotations

import numpy as np
import pytest

from neuralviz.plots.micro_tuning import shares_figure


@pytest.mark.parametrize(
    ("text", "angle"),
    [
        ("She sat on the bank.", 0),
        ("My grandmother baked plum cake every Sunday.", -45),
        ("a b c d e f g h i j k l m n o", -90),
    ],
)
def test_words_below_their_shares_do_not_run_into_each_other(text: str, angle: int) -> None:
    words = text.split()
    figure = shares_figure(words, np.full(len(words), 1 / len(words)), "Shares")
    assert figure.layout.xaxis.tickangle == angle
